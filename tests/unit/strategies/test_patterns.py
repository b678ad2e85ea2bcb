"""How far a pattern of events moves a filter: never below the truth, and above it by a hair."""

from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from twins.blts import RUNNING, UNIT, filters
from twins.exact_filters import DIGITS, autocorrelation, coefficients, column_norm_squared

from tidegauge.strategies.blt import patterns
from tidegauge.strategies.blt.patterns import pattern_gain_squared

CLOSE = Fraction(1, 1 << 64)
PLAIN = ((UNIT // 8, UNIT // 2), (UNIT // 16, UNIT // 4))


def by_lags(buffers, events, separation):
    """The definition: every pair of events, each lag from exact geometric sums."""
    alone = _real(column_norm_squared(*buffers))
    if separation == 0:
        return events**2 * alone
    pairs = sum((events - m) * autocorrelation(*buffers, m * separation) for m in range(1, events))
    return events * alone + 2 * pairs


def _real(value):
    return mpmath.mpf(value.numerator) / value.denominator


@given(filters(longest=60), st.integers(1, 12), st.integers(0, 1 << 40))
@settings(max_examples=60)
def test_the_closed_form_is_the_sum_over_all_pairs(buffers, events, separation):
    with mpmath.workdps(DIGITS):
        truth = by_lags(buffers, events, separation)
        bound = _real(pattern_gain_squared(*buffers, events, separation))
        assert truth <= bound <= truth * (1 + _real(CLOSE))


@given(filters(longest=3), st.integers(1, 5), st.integers(1, 6))
@settings(max_examples=30)
def test_the_closed_form_covers_finite_columns(buffers, events, separation):
    steps = 60
    c = coefficients(*buffers, steps)
    moved = [
        sum(c[t - n * separation] for n in range(events) if t >= n * separation)
        for t in range(steps)
    ]
    truth = sum(value**2 for value in moved)
    assert truth <= pattern_gain_squared(*buffers, events, separation)


def test_one_event_needs_no_separation():
    assert pattern_gain_squared(*RUNNING, 1, 0) == pattern_gain_squared(*RUNNING, 1, 5)


def test_one_event_moves_a_filter_by_the_norm_of_its_column():
    for buffers in (PLAIN, RUNNING, ((), ())):
        norm = column_norm_squared(*buffers)
        assert norm <= pattern_gain_squared(*buffers, 1, 0) <= norm * (1 + CLOSE)


def test_the_norm_of_a_column_is_reached_by_its_coefficients():
    short = sum(c * c for c in coefficients(*PLAIN, 300))
    assert short < column_norm_squared(*PLAIN)
    assert float(column_norm_squared(*PLAIN) - short) < 1e-12


def honest(norm):
    """Is a norm never below the sum of squares of exact coefficients, however many are taken?"""
    for gaps, weights in (
        PLAIN,
        ((UNIT // 500, UNIT // 9), (UNIT // 700, UNIT // 20)),
        ((UNIT // 3,), (UNIT // 4,)),
    ):
        squares = (c * c for c in coefficients(gaps, weights, 200))
        if sum(squares) > norm(gaps, weights):
            return False
    return True


def test_the_norm_is_honest_and_twins_that_are_not_are_caught():
    def of_one_event(gaps, weights):
        return pattern_gain_squared(gaps, weights, 1, 0)

    def without_cross_terms(gaps, weights):
        parts = (of_one_event([g], [w]) - 1 for g, w in zip(gaps, weights, strict=True))
        return 1 + sum(parts)

    def up_to_a_horizon(gaps, weights):
        return sum(c * c for c in coefficients(gaps, weights, 30))

    assert honest(of_one_event)
    assert not honest(without_cross_terms)
    assert not honest(up_to_a_horizon)


def rounds_up_everywhere(power):
    """Does a power routine give an upper bound, and a tight one, for many poles and lags?"""
    for gap in (1, 3, 12345, UNIT // 7, UNIT // 2, UNIT - 3):
        for exponent in (0, 1, 5, 6, 7, 100, 12345, (1 << 40) - 1):
            with mpmath.workdps(700):
                truth = mpmath.mpf(UNIT - gap) ** exponent / mpmath.mpf(UNIT) ** exponent
                found = mpmath.mpf(power((UNIT - gap) << 128, exponent)) / mpmath.mpf(2) ** 192
                if not truth <= found <= truth + mpmath.mpf(2) ** -140:
                    return False
    return True


def test_powers_are_rounded_up_and_a_twin_that_rounds_down_is_caught():
    def down(base, exponent):
        result = 1 << 192
        while exponent:
            if exponent & 1:
                result = result * base >> 192
            base = base * base >> 192
            exponent >>= 1
        return result

    assert rounds_up_everywhere(patterns.power_up)
    assert not rounds_up_everywhere(down)


def test_distance_lowers_the_bound_to_independent_events():
    bounds = [float(pattern_gain_squared(*RUNNING, 20, b)) for b in (0, 1, 24, 1000, 1 << 40)]
    assert sorted(bounds, reverse=True) == bounds
    assert 20 * float(column_norm_squared(*RUNNING)) == pytest.approx(bounds[-1], rel=1e-12)


def test_a_million_events_are_counted():
    bound = pattern_gain_squared(*RUNNING, 10**6, 24)
    assert 10**6 < bound < 10**12 * column_norm_squared(*RUNNING)
