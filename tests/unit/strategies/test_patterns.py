import math
import time
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from twins.blts import RUNNING, UNIT, filters

from tidegauge.strategies.blt.fixed_point import sqrt_up
from tidegauge.strategies.blt.patterns import pattern_gain_squared
from tidegauge.strategies.norms import autocorrelation_up, column_norm_squared

CLOSE = Fraction(1, 1 << 64)


def by_lags(buffers, events, separation):
    """The definition: every pair of events, each lag from exact geometric sums."""
    if separation == 0:
        return events**2 * column_norm_squared(*buffers)
    pairs = sum(
        (events - m) * autocorrelation_up(*buffers, m * separation) for m in range(1, events)
    )
    return events * column_norm_squared(*buffers) + 2 * pairs


@given(filters(longest=60), st.integers(1, 12), st.integers(0, 1 << 40))
@settings(max_examples=60)
def test_the_closed_form_is_the_sum_over_all_pairs(buffers, events, separation):
    if separation * events > 1 << 40:
        separation //= 16
    truth = by_lags(buffers, events, separation)
    bound = pattern_gain_squared(*buffers, events, separation)
    assert truth * (1 - CLOSE) <= bound <= truth * (1 + CLOSE)


@given(filters(longest=3), st.integers(1, 5), st.integers(1, 6))
@settings(max_examples=30)
def test_the_closed_form_covers_finite_columns(buffers, events, separation):
    gaps, weights = buffers
    steps = 60
    buffers = [(Fraction(UNIT - g, UNIT), Fraction(w, UNIT)) for g, w in zip(*buffers, strict=True)]
    c = [Fraction(1)] + [sum(w * p ** (k - 1) for p, w in buffers) for k in range(1, steps)]
    moved = [
        sum(c[t - n * separation] for n in range(events) if t >= n * separation)
        for t in range(steps)
    ]
    truth = sum(value**2 for value in moved)
    assert truth <= pattern_gain_squared(gaps, weights, events, separation)


def test_one_event_needs_no_separation():
    assert pattern_gain_squared(*RUNNING, 1, 0) == pattern_gain_squared(*RUNNING, 1, 5)


def test_distance_lowers_the_bound_to_independent_events():
    bounds = [float(pattern_gain_squared(*RUNNING, 20, b)) for b in (0, 1, 24, 1000, 1 << 40)]
    assert sorted(bounds, reverse=True) == bounds
    assert 20 * float(column_norm_squared(*RUNNING)) == pytest.approx(bounds[-1], rel=1e-12)


def test_a_million_events_are_counted_at_once():
    start = time.perf_counter()
    bound = pattern_gain_squared(*RUNNING, 10**6, 24)
    assert time.perf_counter() - start < 0.5
    assert 10**6 < bound < 10**12 * column_norm_squared(*RUNNING)


@given(st.fractions(0, 10**30))
def test_the_square_root_is_rounded_up_by_a_hair(value):
    root = sqrt_up(value)
    assert root**2 >= value
    assert root**2 <= value * (1 + CLOSE)


@given(st.integers(0, 1 << 200))
def test_the_square_root_of_a_square_is_exact(root):
    assert root == sqrt_up(Fraction(root * root))


def test_the_square_root_of_a_tiny_number_keeps_its_precision():
    root = sqrt_up(Fraction(2, 10**60))
    assert float(root) == pytest.approx(math.sqrt(2) * 1e-30, rel=1e-15)
