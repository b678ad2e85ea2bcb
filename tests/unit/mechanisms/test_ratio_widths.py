"""Intervals of means: Laplace noise at every level, and how wide they are at their widest."""

import numpy as np
import pytest

import tidegauge as tg
from tidegauge.mechanisms.mean_gauge import MeanGauge
from tidegauge.mechanisms.ratio import laplace_widths, widest_half
from tidegauge.noise.quantile import laplace_half_width
from tidegauge.testing import seeded_meter

LEVELS = (0.05, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99)
ONE, TWO = np.array([1]), np.array([2])


def straight(one, two, tail, lattice):
    """Broken twin: a straight line between one draw and two, and nothing else."""
    return one**2, 0 * one, two**2 - one**2


def least_coverage(scale, level, widths=laplace_widths):
    """The least chance, over all ratios, that one discrete draw less another is within q."""
    reach = int(30 * scale) + 3
    n = np.arange(-reach, reach + 1)
    p = np.exp(-np.abs(n) / scale)
    p /= p.sum()
    both = np.outer(p, p)
    halves = [laplace_half_width(scale, np.ones(1), count, 1 - level) for count in (ONE, TWO)]
    one, two = (np.array([half]) for half in halves)
    s, _, t = (float(width[0]) for width in widths(one, two, np.array([1 - level]), 1.0))
    found = []
    for ratio in (0, 1 / 10, 1 / 3, 0.45, 1 / 2, 0.6, 2 / 3, 0.8, 0.9, 1):
        apart = np.abs(np.subtract.outer(n, ratio * n))
        found.append(both[apart <= np.sqrt(s + ratio**2 * t) + 1e-12].sum())
    return min(found)


@pytest.mark.parametrize("scale", [0.4, 0.7, 1.0, 1.5, 2.0, 5.0, 20.0])
@pytest.mark.parametrize("level", LEVELS)
def test_the_half_width_of_a_ratio_is_safe_at_every_level(scale, level):
    assert least_coverage(scale, level) >= level - 1e-9


@pytest.mark.parametrize(("scale", "level"), [(20.0, 0.3), (20.0, 0.5), (20.0, 0.8), (2.0, 0.95)])
def test_a_straight_line_is_not(scale, level):
    assert least_coverage(scale, level, straight) < level - 0.003


@pytest.mark.parametrize(
    "weights", [[1.0], [1, 0.3], [1, 0.5, 0.26], [1, 0.8, 0.63, 0.51], [1, 1 / 30]]
)
@pytest.mark.parametrize("level", [0.02, *LEVELS])
def test_the_half_width_of_a_ratio_of_weighted_sums_is_safe(level, weights):
    """Continuous draws: their sums have tails in closed form, since no two weights are equal."""
    one = np.array(weights)
    two = np.concatenate([one, 0.99999 * one])
    halves = [np.array([_quantile(w, level)]) for w in (one, two)]
    s, _, t = (float(w[0]) for w in laplace_widths(*halves, np.array([1 - level]), 0.0))
    for ratio in (0.1, 0.25, 1 / 3, 0.4, 0.55, 0.65, 0.75, 0.87, 0.97):
        needed = _quantile(np.concatenate([one, ratio * 1.0001 * one]), level)
        assert needed**2 <= s + ratio**2 * t


def _quantile(weights, level):
    squares = weights**2
    shares = [np.prod([a / (a - b) for j, b in enumerate(squares) if j != i])
              for i, a in enumerate(squares)]  # fmt: skip
    low, high = 0.0, 60 * weights.sum()
    for _ in range(60):
        middle = (low + high) / 2
        below = 1 - (shares * np.exp(-middle / weights)).sum() < level
        low, high = (middle, high) if below else (low, middle)
    return high


@pytest.mark.statistical
@pytest.mark.parametrize("level", [0.3, 0.5, 0.8])
@pytest.mark.parametrize("ratio", [0.2, 0.5, 0.7])
def test_means_under_pure_noise_cover_as_often_as_they_say(level, ratio):
    cells, events = 20_000, 40
    gauge = MeanGauge(
        views=[tg.Step()], bounds=(-1000, 1000), epsilon=1, unit="event", cells=cells, end=1,
        level=level,
    )  # fmt: skip
    gauge._start(gauge._plan, seeded_meter(7, gauge._plan))
    value = int(1000 * ratio)
    release = gauge.update(np.full(cells * events, value), np.repeat(np.arange(cells), events))
    step = release["step"]
    covered = ((step.lower <= value) & (value <= step.upper)).mean()
    # three standard deviations are 0.011: a straight line misses by 0.02 at 0.5, by 0.045 at 0.3
    assert level - 0.011 < covered < level + 0.04


# --- the widest ------------------------------------------------------------------------------


@pytest.mark.parametrize("law", [{"epsilon": 1}, {"guarantee": tg.ZCDP(0.5)}])
@pytest.mark.parametrize("bounds", [(-1000, 1000), (0, 1000), (0, 1)])
def test_no_mean_has_a_wider_interval_than_is_told(law, bounds):
    gauge = MeanGauge(views=[tg.Step()], bounds=bounds, unit="event", end=1, **law)
    low, high = bounds
    centre, reach = gauge._bounds.centre, gauge._bounds.reach
    for events in (1, 5, 8, 10, 12, 20, 50, 100, 1000, 10**5):
        told = gauge.half_width("step", 1, events)
        means = np.linspace(low, high, 1001)
        rows = np.stack([(means - centre) * events, np.full(1001, reach * events)], axis=1)
        _, lower, upper, _, _ = gauge._means.means("step", np.ones(1001, int), rows)
        widest = float((upper - lower).max()) / 2
        assert widest <= told * (1 + 1e-9)
        assert told <= widest * 1.004 + 1e-9
        assert told <= (high - low) / 2


def test_looking_at_the_middle_and_the_bounds_alone_is_caught():
    widths = 1.0, 0.0, 1.0
    told = widest_half(np.array([4.0]), widths, (-1.0, 1.0))[0]
    at_three = _half_at(4.0, widths, (-1, 0, 1))
    assert told > 1.04 * at_three
    assert told == pytest.approx(_half_at(4.0, widths, np.linspace(-1, 1, 20_001)), rel=1e-4)


def _half_at(b, widths, ratios):
    from tidegauge.mechanisms.ratio import ratio_interval

    ratios = np.array(ratios, float)
    _, lower, upper, _ = ratio_interval(
        b * ratios, np.full(len(ratios), b), tuple(np.array(w) for w in widths), (-1.0, 1.0)
    )
    return float((upper - lower).max()) / 2
