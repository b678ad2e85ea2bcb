"""How far a pattern of events moves a comb: never below the truth, and what is lost."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from twins.blts import RUNNING, UNIT, filters
from twins.exact_filters import coefficients, column_norm_squared

from tidegauge.strategies.blt.comb_patterns import comb_pattern_gain_squared

BETA = Fraction(13, 32)
QUICK = ((UNIT // 2, UNIT * 3 // 4), (UNIT // 4, UNIT // 16))
DAY = ((UNIT // 30, UNIT // 4), (UNIT // 9, UNIT // 3))  # close to what a window of 24 asks for


def column(buffers, beta, lag, steps):
    c = coefficients(*buffers, steps)
    return [c[k] - (beta * c[k - lag] if k >= lag else 0) for k in range(steps)]


def autocorrelation(buffers, beta, lag, lags):
    theta, w = 1 - np.array(buffers[0]) / UNIT, np.array(buffers[1]) / UNIT
    c = np.r_[1.0, theta ** np.arange(3 * lag + lags + 2000.0)[:, None] @ w]
    c[lag:] -= float(beta) * c[:-lag].copy()
    return np.array([c[: len(c) - n] @ c[n:] for n in range(lags)])


def worst_by_enumeration(r, events, separation, span):
    """The largest sum over pairs of |R|, over all placements within ``span`` steps."""
    sizes, best = np.abs(r), 0.0
    for steps in itertools.combinations(range(1, span), events - 1):
        at = (0, *steps)
        if all(b - a >= separation for a, b in itertools.pairwise(at)):
            pairs = sum(sizes[b - a] for a, b in itertools.combinations(at, 2))
            best = max(best, events * r[0] + 2 * pairs)
    return best


@given(filters(longest=3, most=4), st.integers(1, 31), st.integers(1, 40))
@settings(max_examples=20, deadline=None)
def test_one_event_moves_a_comb_by_the_norm_of_its_column(buffers, n, lag):
    beta = Fraction(n, 32)
    truth = sum(v * v for v in column(buffers, beta, lag, 120 + lag))
    bound = comb_pattern_gain_squared(*buffers, beta, lag, 1, 0)
    assert truth <= bound
    assert float(bound) == pytest.approx(float(truth), rel=1e-6)


@pytest.mark.parametrize("buffers", [QUICK, DAY], ids=["quick", "day"])
@pytest.mark.parametrize(("lag", "events"), [(1, 4), (3, 4), (5, 3), (24, 3), (24, 2)])
@pytest.mark.parametrize("separation", [1, 2, 5, 20, 30])
def test_no_pattern_is_worse_and_little_is_lost(buffers, lag, events, separation):
    span = min((events - 1) * separation + 2 * lag + 2, 90 if events == 3 else 40)
    r = autocorrelation(buffers, BETA, lag, 3 * lag + 200)
    truth = worst_by_enumeration(r, events, separation, span)
    bound = float(comb_pattern_gain_squared(*buffers, BETA, lag, events, separation))
    assert truth <= bound * (1 + 1e-9)
    assert bound <= (1.3 if events > 2 else 1 + 1e-6) * max(truth, events * r[0])


@pytest.mark.parametrize("events", [2, 30, 1000, 10**6])
@pytest.mark.parametrize("separation", [1, 7, 24, 47, 48, 49, 50, 1000, 1 << 40])
def test_the_closed_form_is_the_sum_over_the_envelope(events, separation):
    lag, far = 24, 6000
    r = np.abs(autocorrelation(DAY, BETA, lag, far))
    tail = np.maximum.accumulate(r[::-1])[::-1]
    at = np.arange(1, min(events, far)) * min(separation, far)
    at = at[at < far]
    counts = events - np.arange(1, len(at) + 1.0)
    least = events * r[0] + 2 * counts @ tail[at]
    bound = float(comb_pattern_gain_squared(*DAY, BETA, lag, events, separation))
    if least < events**2 * r[0]:
        assert least <= bound * (1 + 1e-9)
        assert bound <= min(least * 1.02, events**2 * r[0] * (1 + 1e-9))


def test_events_that_coincide_move_a_comb_by_their_number():
    one = comb_pattern_gain_squared(*RUNNING, BETA, 24, 1, 0)
    assert comb_pattern_gain_squared(*RUNNING, BETA, 24, 9, 0) == 81 * one
    assert comb_pattern_gain_squared(*RUNNING, BETA, 24, 9, 1) <= 81 * one


def test_far_events_are_independent():
    one = comb_pattern_gain_squared(*RUNNING, BETA, 24, 1, 0)
    far = comb_pattern_gain_squared(*RUNNING, BETA, 24, 20, 1 << 40)
    assert float(far) == pytest.approx(20 * float(one), rel=1e-12)


def test_a_comb_that_takes_half_away_lowers_the_norm_of_a_slow_filter():
    slow = ((1 << 40,), (1 << 62,))
    behind = comb_pattern_gain_squared(*slow, Fraction(1, 2), 1, 1, 0)
    assert behind < column_norm_squared(*slow) / 3


def never_below(norm):
    """Is a bound for two events never below the worst pair of events, of any sign?"""
    r = autocorrelation(QUICK, BETA, 5, 60)
    worst = max(2 * r[0] + 2 * abs(r[n]) for n in range(2, 60))
    return worst <= norm(2, 2) * (1 + 1e-9)


def test_the_bound_is_honest_and_twins_that_are_not_are_caught():
    r = autocorrelation(QUICK, BETA, 5, 60)

    def closest(events, separation):
        return 2 * r[0] + 2 * r[separation]

    def of_one_sign(events, separation):
        return 2 * r[0] + 2 * max(r[separation:].max(), 0)

    assert never_below(lambda k, b: float(comb_pattern_gain_squared(*QUICK, BETA, 5, k, b)))
    assert not never_below(closest)
    assert not never_below(of_one_sign)
