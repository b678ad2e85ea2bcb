"""Fits: how near to the lower bounds, for which views, and that nothing is lost in rounding."""

import math

import numpy as np
import pytest
from twins.exact_filters import column_norm_squared

from tidegauge.errors import InvalidParameter
from tidegauge.strategies.blt import growth, search
from tidegauge.strategies.blt.buffers import UNIT
from tidegauge.strategies.blt.fitting import _targets, fit
from tidegauge.strategies.blt.growth import demands_of, grow, memory
from tidegauge.strategies.blt.inverse import zeros
from tidegauge.strategies.blt.shipped import SHIPPED, SPREAD_OF_HORIZONS
from tidegauge.strategies.blt.variance import variance_gain
from tidegauge.strategies.bounds import lower_bound
from tidegauge.strategies.decay import (
    Custom,
    Difference,
    Exponential,
    Polynomial,
    Running,
    Step,
    Window,
)

DAY = Exponential(half_life=24)
MIXED = [Running(), Window(24), Window(168), DAY]


def assert_interlaced(result):
    """Positive weights, increasing gaps, a zero of C after each pole: c and 1 / c decrease."""
    assert all(a < b for a, b in zip(result.gaps, result.gaps[1:], strict=False))
    assert all(weight > 0 for weight in result.weights)
    found = [z >> 64 for z in zeros(result.gaps, result.weights)]
    assert all(g <= z < UNIT for g, z in zip(result.gaps, found, strict=True))
    assert sum(result.weights) < UNIT
    theta = 1 - np.array(result.gaps) / UNIT
    c = (np.array(result.weights) / UNIT * theta ** np.arange(200)[:, None]).sum(axis=1)
    assert (np.diff(np.r_[1.0, c]) <= 0).all()


@pytest.mark.parametrize(
    ("views", "horizon", "most"),
    [
        ([Running()], 1 << 16, 1.10),
        ([Running()], 1 << 20, 1.085),
        ([Running()], 1 << 24, 1.075),
        ([Running()], 10**9, 1.065),
        ([Window(7)], None, 1.015),
        ([Window(24)], None, 1.015),
        ([Window(168)], None, 1.015),
        ([Window(1440)], None, 1.015),
        ([Window(43200)], None, 1.10),
        ([DAY], None, 1.005),
        ([Exponential(half_life=1000)], None, 1.005),
        ([Exponential(factor=0.999)], None, 1.005),
        ([Exponential(half_life=2)], None, 1.005),
        ([Polynomial(0.5)], None, 1.005),
        ([Polynomial(1)], None, 1.005),
        ([Polynomial(1.5)], None, 1.005),
        ([Polynomial(2)], None, 1.005),
        (MIXED, 8760, 1.24),
        ([*MIXED, Step()], 8760, 1.34),
        ([Running(), Step()], 8760, 1.31),
        ([Running(), Window(60), Window(1440), Window(10080)], 525_600, 1.28),
        ([Running(), Window(7), Window(30)], 365, 1.25),
        ([Window(7), Window(43200)], None, 1.285),
        ([Exponential(half_life=h) for h in (1, 24, 168)], None, 1.145),
    ],
    ids=lambda value: "+".join(v.name for v in value) if isinstance(value, list) else str(value),
)
def test_the_worst_ratio_is_as_good_as_promised(views, horizon, most):
    result = fit(views, horizon)
    assert_interlaced(result)
    assert 1 <= result.worst <= most
    assert len(result.gaps) <= 7


@pytest.mark.parametrize(
    ("views", "horizon", "most"),
    [
        ([Difference(Step(), 24)], None, 1.12),
        ([Difference(Window(7), 7)], None, 1.19),
        ([Window(168), Difference(Window(168), 168)], None, 1.21),
        ([Difference(Exponential(half_life=24), 24)], None, 1.1),
        ([Running(), Window(168), Difference(Window(168), 168)], 8760, 1.32),
        ([Difference(Window(10080), 10080)], None, 1.23),  # by the window that it is of
    ],
)
def test_changes_are_fitted_too(views, horizon, most):
    result = fit(views, horizon)
    assert_interlaced(result)
    assert 1 <= result.worst <= most


def test_an_average_is_fitted_as_its_total():
    for half_life, horizon in ((24, None), (1000, 100)):
        total = fit([Exponential(half_life=half_life)], horizon)
        average = fit([Exponential(half_life=half_life, average=True)], horizon)
        assert average.worst == pytest.approx(total.worst, rel=1e-4)
        assert average.stds[0] == pytest.approx(total.stds[0] * total.views[0].gap, rel=1e-3)


def test_ten_views_cost_a_third():
    views = [Running(), *map(Window, (7, 24, 168, 1440, 10080)), DAY]
    views += [Exponential(half_life=168), Polynomial(0.5), Polynomial(1)]
    assert fit(views, 525_600).worst <= 1.35


def test_an_unknown_horizon_is_flat_over_four_decades():
    result = fit([Running()])
    column = float(column_norm_squared(result.gaps, result.weights))
    steps = 1 << np.arange(10, 25)
    stds = np.sqrt(column * variance_gain(result.gaps, result.weights, Running(), steps))
    ratios = stds / [lower_bound(Running(), int(t)) for t in steps]
    assert ratios.max() <= 1.28
    assert ratios.min() >= 1.2
    assert result.worst == pytest.approx(
        ratios[list(np.log2(SPREAD_OF_HORIZONS).astype(int) - 10)].max()
    )


@pytest.mark.parametrize(
    "views", SHIPPED, ids=lambda views: "+".join(sorted(v.name for v in views))
)
def test_a_shipped_fit_is_the_fit(views):
    shipped = fit(list(views))
    fitted = fit(list(views), importance=[1.0] * len(views))  # asks for a fit of its own
    assert (shipped.gaps, shipped.weights) == SHIPPED[views]
    assert_interlaced(shipped)
    assert shipped.worst == pytest.approx(fitted.worst, rel=1e-5)
    assert len(shipped.gaps) == len(fitted.gaps)


def test_ratios_are_those_of_the_rounded_integers():
    result = fit(MIXED, 8760, longest_lag=0)
    c = [1.0]
    state = np.array(result.weights) / UNIT
    theta = 1 - np.array(result.gaps) / UNIT
    for _ in range(8759):
        c.append(state.sum())
        state = state * theta
    inverse = np.zeros(8760)
    inverse[0] = 1
    q = np.zeros(len(theta))
    for n in range(8760):
        inverse[n] -= np.array(result.weights) @ q / UNIT
        q = theta * q + inverse[n]
    running = np.cumsum(inverse)
    window = running.copy()
    window[24:] -= running[:-24]
    column = math.sqrt(column_norm_squared(result.gaps, result.weights))
    assert column >= math.sqrt(sum(v * v for v in c))
    assert result.stds[0] == pytest.approx(column * math.sqrt((running**2).sum()), rel=1e-6)
    assert result.stds[1] == pytest.approx(column * math.sqrt((window**2).sum()), rel=1e-4)
    assert result.bounds[0] == lower_bound(Running(), 8760)
    assert result.views == tuple(MIXED)


def test_the_closed_forms_of_the_search_are_those_of_the_error():
    views = [*MIXED, Step(), Custom([3.0, -1.0, 0.5]), Polynomial(1)]
    targets = [target for view in views for target in _targets(view, 8760)]
    order = np.argsort([0, 1, 1, 2, 3, 3, 2], kind="stable")  # running, windows, poles, finite
    demands = demands_of(targets, [1.0] * len(targets))
    solution = search.solve(demands, search.geometric_start(3, 8760, 0.0, 1.0))
    ratios = np.exp(demands.log_ratios(solution.logits))
    assert math.log(ratios.max()) == pytest.approx(solution.worst)
    poles, ends = search.interlaced(solution.logits)
    gaps = tuple(round(float(g) * UNIT) for g in poles)
    weights = tuple(round(float(w) * UNIT) for w in search.residues(poles, ends))
    late = np.array([8760])
    column = float(column_norm_squared(gaps, weights))
    for ratio, index in zip(ratios, order, strict=True):
        steps = late if targets[index].step else np.array([1 << 40])
        gain = variance_gain(gaps, weights, views[index], steps)[0]
        expected = math.sqrt(column * gain) / targets[index].bound
        assert ratio == pytest.approx(expected, rel=1e-7), views[index]


def test_the_derivatives_of_the_search_are_right():
    targets = [t for v in [*MIXED, Step(), Custom([3.0, -1.0, 0.5])] for t in _targets(v, 8760)]
    demands = demands_of(targets, [1.0] * len(targets))
    x = search.geometric_start(2, 8760, 0.0, 1.0)
    _, slope = search._Rise(demands, 4).at(x)
    for j in range(4):
        step = 1e-5 * np.eye(4)[j]
        expected = (demands.log_ratios(x + step) - demands.log_ratios(x - step)) / 2e-5
        np.testing.assert_allclose(slope[:, j], expected, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("horizon", [1, 2, 3, 4, 7, 8, 9, 255, 256, 257])
def test_short_streams_are_fitted(horizon):
    result = fit([Running(), Window(24), DAY, Step()], horizon)
    assert_interlaced(result)
    assert result.worst < 1.5


@pytest.mark.parametrize(
    ("views", "horizon", "most"),
    [
        ([Step()], None, 1.001),
        ([Window(1)], None, 1.001),
        ([Window(1 << 40)], None, 1.15),
        ([Window(1 << 40)], 8760, 1.12),
        ([Exponential(half_life=1e9)], None, 1.01),
        ([Exponential(half_life=1e9)], 8760, 1.12),
        ([Exponential(half_life=0.02)], None, 1.001),
        ([Exponential(factor=1 - 1e-12)], None, 1.03),
        ([Polynomial(0.01)], None, 1.02),
        ([Polynomial(16)], None, 1.001),
        ([Custom([0, 1])], None, 1.001),
        ([Custom([1, -1])], None, 1.2),
        ([Custom([0, 1, -2, 3])], None, 1.2),
        ([Custom(range(1, 1000))], None, 1.2),
        ([Running(), Step(), Exponential(half_life=1), Window(2)], 1 << 20, 1.4),
    ],
    ids=lambda value: "+".join(v.name for v in value) if isinstance(value, list) else str(value),
)
def test_odd_views_are_fitted(views, horizon, most):
    result = fit(views, horizon)
    assert_interlaced(result)
    assert result.worst <= most


def test_a_view_asked_twice_changes_nothing():
    once, twice = fit(MIXED, 8760), fit([*MIXED, Window(24), Running()], 8760)
    assert (once.gaps, once.weights) == (twice.gaps, twice.weights)
    assert twice.ratios == (*once.ratios, once.ratios[1], once.ratios[0])


def test_a_fit_is_the_same_each_time():
    assert fit(MIXED, 8760) == fit(MIXED, 8760)


def test_a_hundred_views_are_fitted():
    views = [Running(), *(Window(2 + 3 * k) for k in range(60))]
    views += [Exponential(half_life=1.0 + k) for k in range(39)]
    result = fit(views, 8760)
    assert_interlaced(result)
    assert len(result.ratios) == 100
    assert result.worst < 1.35


def test_an_important_view_is_served_better():
    even = fit([Running(), Window(24)], 8760)
    leaning = fit([Running(), Window(24)], 8760, importance=[1, 1.1])
    assert leaning.ratios[1] < even.ratios[1] - 0.03
    assert leaning.ratios[0] == pytest.approx(1.1 * leaning.ratios[1], rel=1e-3)


def test_buffers_are_added_only_while_they_pay(monkeypatch):
    buffers = []
    for most in (1, 2, 3, 7):
        monkeypatch.setattr(growth, "_MOST_BUFFERS", most)
        buffers.append(len(fit(MIXED, 8760).gaps))
    assert [1, 2, 3, 3] == buffers


def test_the_horizon_does_not_touch_the_norm_that_is_charged():
    result = fit([Running()], 256)
    short = 1 + sum(
        (
            sum(
                w / UNIT * (1 - g / UNIT) ** k
                for g, w in zip(result.gaps, result.weights, strict=True)
            )
        )
        ** 2
        for k in range(255)
    )
    assert column_norm_squared(result.gaps, result.weights) > short


@pytest.mark.parametrize(
    ("call", "remedy"),
    [
        (lambda: fit([]), "Name the views"),
        (lambda: fit(["running"]), r"Use Step\(\)"),
        (lambda: fit([Running], 10), r"Use Step\(\)"),
        (lambda: fit([Running()], 0), "horizon in"),
        (lambda: fit([Running()], 2.5), "horizon to be an integer"),
        (lambda: fit([Running()], 10, importance=[1, 2]), "Give one number for each"),
        (lambda: fit([Running()], 10, importance=[0]), r"importance\[0\] > 0"),
        (lambda: fit([Running()], (1 << 38) + 1), "horizon in"),
    ],
)
def test_what_cannot_be_fitted_is_refused_with_the_remedy(call, remedy):
    with pytest.raises(InvalidParameter, match=remedy):
        call()


@pytest.mark.parametrize(
    ("views", "horizon"),
    [
        (MIXED, 8760),
        ([Running(), Window(60), Window(1440), Window(10080)], 525_600),
        ([Window(7), Window(43200)], None),
        ([Running(), Step()], 8760),
        ([Running()], None),
    ],
    ids=["mixed", "minutes", "two windows", "running and step", "unknown horizon"],
)
def test_forty_random_starts_find_nothing_better(views, horizon, monkeypatch):
    monkeypatch.setattr(growth, "_MOST_BUFFERS", 4)
    targets = [target for view in views for target in _targets(view, horizon)]
    demands = demands_of(targets, [1.0] * len(targets))
    rng = np.random.default_rng(1)
    found = grow(demands, max(map(memory, targets)))
    buffers = len(found.logits) // 2
    best = math.inf
    for _ in range(40):
        start = np.sort(rng.uniform(math.log(0.1 / 525_600), 3, 2 * buffers))
        start += 2e-3 * np.arange(2 * buffers)
        best = min(best, search.solve(demands, start).worst)
    assert found.worst <= best + 1e-3
