"""Fits with a comb: closed forms, when one is taken, and that no start finds a better one."""

import math
from fractions import Fraction

import numpy as np
import pytest

from tidegauge.errors import InvalidParameter
from tidegauge.strategies.blt import Blt, Comb, fit, search
from tidegauge.strategies.blt.buffers import UNIT
from tidegauge.strategies.blt.comb_patterns import comb_pattern_gain_squared
from tidegauge.strategies.blt.comb_search import CombDemands
from tidegauge.strategies.blt.fitting import _targets
from tidegauge.strategies.blt.growth import demands_of, grow, memory
from tidegauge.strategies.blt.variance import variance_gain
from tidegauge.strategies.decay import Custom, Exponential, Polynomial, Running, Step, Window

DAY = Exponential(half_life=24)
MIXED = [Running(), Window(24), Window(168), DAY]
EVERY = [Running(), Window(24), Window(168), Window(1000), Window(9000), DAY, Polynomial(1), Step()]
EVERY += [Custom([3.0, -1.0, 0.5])]


def demanded(views, horizon):
    """The views in the order in which the search takes them, and the demands of them."""
    order = {Running: 0, Window: 1, Exponential: 2, Polynomial: 2, Step: 3, Custom: 3}
    targets = [target for view in views for target in _targets(view, horizon)]
    targets.sort(key=lambda t: 0 if t.step else order[type(t.decay)])
    return targets, demands_of(targets, [1.0] * len(targets))


def integers(x):
    poles, ends = search.interlaced(x)
    gaps = tuple(round(float(g) * UNIT) for g in poles)
    return gaps, tuple(round(float(w) * UNIT) for w in search.residues(poles, ends))


@pytest.mark.parametrize("lag", [3, 7, 24, 30, 1000])
@pytest.mark.parametrize("beta", [Fraction(1, 32), Fraction(13, 32), Fraction(19, 32)])
def test_the_closed_forms_of_the_search_are_those_of_the_error(lag, beta):
    targets, demands = demanded(EVERY, 8760)
    x = search.geometric_start(3, 8760, 0.0, 1.0)
    ratios = np.exp(CombDemands(demands, lag).log_ratios(np.r_[x, float(beta)]))
    fixed = np.exp(CombDemands(demands, lag, float(beta)).log_ratios(x))
    np.testing.assert_allclose(fixed, ratios, rtol=1e-14)
    gaps, weights = integers(x)
    column = float(comb_pattern_gain_squared(gaps, weights, beta, lag, 1, 0))
    for ratio, target in zip(ratios, targets, strict=True):
        steps = np.array([target.step or 1 << 40])
        gain = variance_gain(gaps, weights, target.decay, steps, (beta, lag))[0]
        assert ratio == pytest.approx(math.sqrt(column * gain) / target.bound, rel=1e-6)


def test_a_decay_on_top_of_a_zero_is_judged_like_its_neighbours():
    x = search.geometric_start(2, 8760, 0.0, 1.0)
    _, ends = search.interlaced(x)
    for aside in (0.0, 1e-14, 1e-9, -1e-9):
        views = [Exponential(factor=1 - Fraction(float(y)) * Fraction(1 + aside)) for y in ends]
        _, demands = demanded(views, None)
        there = CombDemands(demands, 24, 0.4).log_ratios(x)
        _, beside = demanded([Exponential(factor=1 - v.gap * 1.0001) for v in views], None)
        np.testing.assert_allclose(there, CombDemands(beside, 24, 0.4).log_ratios(x), atol=1e-3)


def test_the_derivatives_of_the_search_are_right():
    _, demands = demanded(EVERY, 8760)
    judged = CombDemands(demands, 24)
    x = np.r_[search.geometric_start(2, 8760, 0.0, 1.0), 0.3]
    _, slope = search._Rise(judged, 5).at(x)
    for j in range(5):
        step = 1e-5 * np.eye(5)[j]
        expected = (judged.log_ratios(x + step) - judged.log_ratios(x - step)) / 2e-5
        np.testing.assert_allclose(slope[:, j], expected, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize(
    ("views", "horizon"),
    [
        ([Window(7)], None),
        ([Window(24)], None),
        ([Window(168)], None),
        ([Window(1440)], None),
        (MIXED, 8760),
        ([Running(), Window(60), Window(1440), Window(10080)], 525_600),
        ([Running(), Window(24)], None),
    ],
    ids=lambda value: "+".join(v.name for v in value) if isinstance(value, list) else str(value),
)
def test_a_comb_at_the_shortest_window_pays(views, horizon):
    combed, alone = fit(views, horizon), fit(views, horizon, longest_lag=0)
    beta, lag = combed.comb
    assert combed.worst < alone.worst / 1.005
    assert lag == min(view.steps for view in views if isinstance(view, Window))
    assert 0 < beta < 1
    assert 32 % beta.denominator == 0
    assert alone.comb is None
    assert isinstance(combed.strategy(20), Comb)
    assert isinstance(alone.strategy(20), Blt)


@pytest.mark.parametrize(
    ("views", "horizon", "longest"),
    [
        ([Window(43200)], None, 2048),
        ([Window(24)], None, 23),
        ([Window(24)], None, 0),
        ([Window(1)], None, 2048),
        ([DAY], None, 2048),
        ([Running()], 8760, 2048),
        ([Window(24)], 20, 2048),
        ([*MIXED, Step()], 8760, 2048),
        ([Window(24), Custom(range(1, 100))], None, 2048),
        ([Window(24 + k) for k in range(13)], None, 2048),
    ],
)
def test_no_comb_where_it_does_not_pay_or_is_not_tried(views, horizon, longest):
    assert fit(views, horizon, longest_lag=longest).comb is None


@pytest.mark.parametrize("views", [[Window(24)], MIXED], ids=["day", "mixed"])
def test_the_strategy_has_the_errors_of_the_fit(views):
    fitted = fit(views, 8760)
    strategy = fitted.strategy(35, 8760)
    for view, std in zip(views, fitted.stds, strict=True):
        gain = strategy.worst_variance_gain(view, 8760)
        assert strategy._unit_std(None) * gain**0.5 == pytest.approx(std, rel=1e-5)
        assert strategy.max_error(view, 8760) <= std * (1 + 1e-5)


def test_ratios_are_those_of_the_stored_integers_as_an_impulse_shows():
    fitted = fit(MIXED, 2000)
    comb = fitted.strategy(20, 2000)
    n = 1 << 15
    column = comb.coefficients(n)
    impulse = np.zeros((n, 1), dtype=np.int64)
    impulse[0] = 1 << 50
    out = np.empty((len(MIXED), n, 1))
    comb.decode(comb.init_decoder(MIXED, 1), MIXED, impulse, 0, out)
    energy = np.cumsum((out[..., 0] / 2.0**30) ** 2, axis=1)  # an impulse of 2^30 grains
    last = [2000, n, n, n]
    for view in range(4):
        std = math.sqrt((column**2).sum() * energy[view, last[view] - 1])
        assert std == pytest.approx(fitted.stds[view], rel=1e-3)


def test_a_fit_with_a_comb_is_the_same_each_time():
    assert fit(MIXED, 8760) == fit(MIXED, 8760)


def test_an_important_view_is_served_better_by_a_comb():
    even = fit([Running(), Window(24)], 8760)
    leaning = fit([Running(), Window(24)], 8760, importance=[1, 1.1])
    assert leaning.comb is not None
    assert leaning.ratios[1] < even.ratios[1] - 0.03
    assert leaning.ratios[0] == pytest.approx(1.1 * leaning.ratios[1], rel=1e-3)


@pytest.mark.parametrize("longest", [-1, 0.5, 1 << 17])
def test_a_lag_is_a_number_of_steps(longest):
    with pytest.raises(InvalidParameter, match="longest_lag"):
        fit([Window(24)], longest_lag=longest)


HARD = [
    ([Window(24)], None, 24),
    (MIXED, 8760, 24),
    ([Running(), Window(60), Window(1440), Window(10080)], 525_600, 60),
    ([Window(7), Window(43200)], None, 7),
    ([Running(), Window(7), Window(30)], 365, 7),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("views", "horizon", "lag"), HARD, ids=["day", "mixed", "minutes", "two windows", "year"]
)
def test_forty_random_starts_find_nothing_better(views, horizon, lag):
    targets, demands = demanded(views, horizon)
    longest = max(4.0, *map(memory, targets))
    found = grow(demands, longest, lag)
    assert found.beta > 0
    buffers, rng, best = len(found.logits) // 2, np.random.default_rng(1), math.inf
    for _ in range(40):
        start = np.sort(rng.uniform(math.log(0.1 / longest), 3, 2 * buffers))
        start += 2e-3 * np.arange(2 * buffers)
        tried = search.solve(CombDemands(demands, lag), np.r_[start, rng.uniform(0.05, 0.55)])
        best = min(best, tried.worst)
    assert found.worst <= best + 1e-3
