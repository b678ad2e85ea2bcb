"""Exact norms of C: equal to the truth, or above it."""

from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegauge.errors import InvalidParameter
from tidegauge.strategies import norms
from tidegauge.strategies.norms import (
    UNIT,
    autocorrelation_up,
    column_norm_squared,
    total_gain,
)

PAIRS = st.lists(
    st.tuples(st.integers(1, UNIT - 1), st.integers(1, UNIT - 1)), min_size=1, max_size=5
)


def coefficients(gaps, weights, count):
    """c_0, c_1, ... as exact fractions, from the definition."""
    c = [Fraction(1)]
    state = [Fraction(w, UNIT) for w in weights]
    for _ in range(count - 1):
        c.append(sum(state, Fraction(0)))
        state = [s * Fraction(UNIT - g, UNIT) for s, g in zip(state, gaps, strict=True)]
    return c


def exact_autocorrelation(gaps, weights, lag):
    """The same sum in 120 digits, by the formula's powers and not by its rounding."""
    with mpmath.workdps(120):
        theta = [mpmath.mpf(UNIT - g) / UNIT for g in gaps]
        w = [mpmath.mpf(v) / UNIT for v in weights]
        total = mpmath.mpf(0)
        for a, u in zip(theta, w, strict=True):
            inner = sum(v / (1 - a * b) for b, v in zip(theta, w, strict=True))
            total += u * a ** (lag - 1) * (1 + a * inner)
        return total


@given(PAIRS)
def test_the_column_norm_is_the_geometric_sum(pairs):
    gaps, weights = zip(*pairs, strict=True)
    norm = column_norm_squared(gaps, weights)
    with mpmath.workdps(120):
        theta = [mpmath.mpf(UNIT - g) / UNIT for g in gaps]
        w = [mpmath.mpf(v) / UNIT for v in weights]
        expected = 1 + sum(
            u * v / (1 - a * b)
            for a, u in zip(theta, w, strict=True)
            for b, v in zip(theta, w, strict=True)
        )
        assert mpmath.almosteq(mpmath.mpf(norm.numerator) / norm.denominator, expected, 1e-100)


def honest(norm):
    """Is a norm never below the sum of squares of exact coefficients, however many are taken?"""
    for gaps, weights in (
        ((UNIT // 8, UNIT // 2), (UNIT // 16, UNIT // 4)),
        ((UNIT // 500, UNIT // 9), (UNIT // 700, UNIT // 20)),
        ((UNIT // 3,), (UNIT // 4,)),
    ):
        squares = (c * c for c in coefficients(gaps, weights, 200))
        if sum(squares) > norm(gaps, weights):
            return False
    return True


def test_the_norm_is_honest_and_twins_that_are_not_are_caught():
    def without_cross_terms(gaps, weights):
        parts = (column_norm_squared([g], [w]) - 1 for g, w in zip(gaps, weights, strict=True))
        return 1 + sum(parts)

    def up_to_a_horizon(gaps, weights):
        return sum(c * c for c in coefficients(gaps, weights, 30))

    assert honest(column_norm_squared)
    assert not honest(without_cross_terms)
    assert not honest(up_to_a_horizon)


def test_partial_sums_stay_below_the_column_norm_and_reach_it():
    gaps, weights = (UNIT // 8, UNIT // 2), (UNIT // 16, UNIT // 4)
    squares = [c * c for c in coefficients(gaps, weights, 300)]
    norm = column_norm_squared(gaps, weights)
    assert sum(squares) < norm
    assert float(norm - sum(squares)) < 1e-12


def test_the_total_gain_is_the_sum_of_all_coefficients():
    gaps, weights = (UNIT // 8, UNIT // 2), (UNIT // 16, UNIT // 4)
    assert total_gain(gaps, weights) == 1 + Fraction(1, 2) + Fraction(1, 2)
    total = sum(coefficients(gaps, weights, 400))
    assert total < total_gain(gaps, weights)
    assert float(total_gain(gaps, weights) - total) < 1e-12


def test_lagged_sums_are_those_of_the_coefficients():
    gaps, weights = (UNIT // 8, UNIT // 2), (UNIT // 16, UNIT // 4)
    c = coefficients(gaps, weights, 500)
    for lag in (0, 1, 2, 3, 17, 60):
        expected = sum(a * b for a, b in zip(c, c[lag:], strict=False))
        assert float(autocorrelation_up(gaps, weights, lag)) == pytest.approx(
            float(expected), rel=1e-12
        )


def rounds_up_everywhere(power):
    """Does a power routine give an upper bound, and a tight one, for many poles and lags?"""
    for gap in (1, 3, 12345, UNIT // 7, UNIT // 2, UNIT - 3):
        for exponent in (0, 1, 5, 6, 7, 100, 12345, (1 << 40) - 1):
            with mpmath.workdps(700):
                truth = mpmath.mpf(UNIT - gap) ** exponent / mpmath.mpf(UNIT) ** exponent
                found = mpmath.mpf(power(UNIT - gap, exponent)) / mpmath.mpf(2) ** 256
                if not truth <= found <= truth + mpmath.mpf(2) ** -200:
                    return False
    return True


def test_powers_are_rounded_up_and_a_twin_that_rounds_down_is_caught():
    def down(pole, exponent):
        square, result = pole << 192, 1 << 256
        while exponent:
            if exponent & 1:
                result = result * square >> 256
            square = square * square >> 256
            exponent >>= 1
        return result

    assert rounds_up_everywhere(norms._power_up)
    assert not rounds_up_everywhere(down)


@given(PAIRS, st.integers(1, 1 << 40))
def test_a_lagged_sum_is_never_below_the_truth(pairs, lag):
    gaps, weights = zip(*pairs, strict=True)
    bound = autocorrelation_up(gaps, weights, lag)
    with mpmath.workdps(120):
        above = mpmath.mpf(bound.numerator) / bound.denominator
        truth = exact_autocorrelation(gaps, weights, lag)
        slack = mpmath.mpf(10) ** -110 * (1 + truth)
        assert above >= truth - slack
        assert above <= truth + mpmath.mpf(2) ** -180 * (1 + total_gain(gaps, weights)) ** 2


def test_no_buffers_are_the_identity():
    assert column_norm_squared((), ()) == 1
    assert total_gain((), ()) == 1
    assert autocorrelation_up((), (), 0) == 1
    assert autocorrelation_up((), (), 5) == 0


@pytest.mark.parametrize(
    ("gaps", "weights"),
    [((1,), ()), ((0,), (1,)), ((UNIT,), (1,)), ((1,), (0,)), ((1,), (-1,)), ((0.5,), (1,))],
)
def test_what_is_not_a_buffer_is_refused(gaps, weights):
    for norm in (column_norm_squared, total_gain):
        with pytest.raises(InvalidParameter):
            norm(gaps, weights)


@pytest.mark.parametrize("lag", [-1, 1.0, (1 << 40) + 1])
def test_a_lag_that_no_stream_has_is_refused(lag):
    with pytest.raises(InvalidParameter, match="lag"):
        autocorrelation_up((1,), (1,), lag)
