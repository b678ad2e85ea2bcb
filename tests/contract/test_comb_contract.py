"""A comb keeps every promise of a strategy, and the judges reject the combs that break one."""

from dataclasses import replace
from fractions import Fraction

import pytest
from contract.strategy_contract import (
    assert_covers_every_pattern,
    assert_each_rounding_is_paid,
    assert_factorizes,
    assert_knows_its_noise,
    assert_stays_within_under_attack,
    assert_stops_at_its_hard_end,
    assert_streams,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from twins.blts import RUNNING, UNIT, filters
from twins.cases import ADD, ONE, VIEWS, neighbors
from twins.python_comb import PythonComb

from tidegauge.privacy.rounding import sqrt_up
from tidegauge.privacy.unit import Contributions, Neighbors
from tidegauge.strategies.blt import Comb
from tidegauge.strategies.blt.comb_patterns import comb_pattern_gain_squared
from tidegauge.strategies.blt.fixed_point import rounding_error
from tidegauge.strategies.strategy import Norm

SLOW_AND_FAST = ((UNIT // 2000, UNIT // 10), (UNIT // 50, UNIT // 5))
QUICK = ((UNIT // 2, UNIT * 3 // 4), (UNIT // 4, UNIT // 16))
BETA = Fraction(13, 32)
betas = st.integers(1, 31).map(lambda n: Fraction(n, 32))


@given(filters(longest=30), betas, st.integers(1, 30), st.integers(15, 25))
@settings(max_examples=30, deadline=None)
def test_each_view_of_a_comb_is_its_decay(buffers, beta, lag, bits):
    assert_factorizes(Comb(*buffers, beta, lag, bits, 1 << 20), VIEWS, steps=25, tolerance=1e-8)


@given(filters(longest=1.0, most=3), betas, st.integers(1, 4), neighbors())
@settings(max_examples=40, deadline=None)
def test_no_pattern_moves_a_comb_further_than_it_says(buffers, beta, lag, unit):
    comb = Comb(*buffers, beta, lag, lattice_bits=35, charged_steps=8)
    assert_covers_every_pattern(comb, Norm.L2, unit, steps=8, slack=1.0)


@given(filters(longest=1.0, most=3), betas, st.integers(1, 2))
@settings(max_examples=30, deadline=None)
def test_one_event_moves_a_comb_as_far_as_it_says(buffers, beta, lag):
    comb = Comb(*buffers, beta, lag, lattice_bits=35, charged_steps=20)
    assert_covers_every_pattern(comb, Norm.L2, ONE, steps=20, slack=0.001)


@pytest.mark.parametrize("separation", [0, 1, 2, 3, 4, 5])
@pytest.mark.parametrize(("lag", "most"), [(1, 0.1), (3, 0.12), (4, 0.12)])
def test_three_events_of_one_id_are_covered(separation, lag, most):
    one_cell = Neighbors(Contributions(3, separation), ADD, -1, 2, 1, 1)
    comb = Comb(*QUICK, BETA, lag, 35, 14)
    assert_covers_every_pattern(comb, Norm.L2, one_cell, steps=14, slack=most)


@pytest.mark.parametrize("max_cells", [1, 4])
@pytest.mark.parametrize(("lag", "least"), [(3, 0.65), (200, 0.8)])
def test_an_adversary_of_the_roundings_comes_close_but_stays_within(max_cells, lag, least):
    comb = Comb(*SLOW_AND_FAST, Fraction(1, 2), lag, lattice_bits=0, charged_steps=150)
    share = assert_stays_within_under_attack(comb, max_cells, signed=True, steps=150)
    assert share > least


@pytest.mark.parametrize("bits", [-3, 0, 9])
def test_each_rounding_is_paid_and_nearly_reached(bits):
    comb = Comb(*SLOW_AND_FAST, BETA, 5, lattice_bits=bits, charged_steps=100)
    error = float(rounding_error(comb.gaps, bits))
    assert assert_each_rounding_is_paid(comb, error, signed=True, steps=100) > 0.85


def test_a_comb_streams_without_a_trace():
    for lag in (1, 7, 20, 59, 400):
        assert_streams(Comb(*RUNNING, BETA, lag, 30, 1 << 20), VIEWS, steps=60, cells=3)
    assert_streams(Comb(*RUNNING, BETA, 4, -4, 1 << 20), VIEWS, steps=30, cells=17)


@given(filters(longest=12), betas, st.integers(1, 30))
@settings(max_examples=15, deadline=None)
def test_a_comb_knows_its_noise(buffers, beta, lag):
    comb = Comb(*buffers, beta, lag, 25, 1 << 20)
    assert_knows_its_noise(comb, VIEWS, steps=40, tolerance=1e-6)


def test_a_comb_stops_where_its_roundings_are_no_longer_paid():
    assert_stops_at_its_hard_end(Comb(*RUNNING, BETA, 7, 20, charged_steps=50), Norm.L2, ONE)


SOUND = PythonComb(*QUICK, 30, 16, beta=BETA, lag=3)


def test_the_sound_twin_passes_every_judge():
    pair = Neighbors(Contributions(2, 1), ADD, -1, 1, 1, 1)
    assert_factorizes(SOUND, VIEWS, steps=12)
    assert_covers_every_pattern(SOUND, Norm.L2, ONE, steps=16, slack=0.01)
    assert_covers_every_pattern(SOUND, Norm.L2, pair, steps=16, slack=0.01)
    assert_streams(SOUND, VIEWS, steps=16, cells=2)
    assert_stops_at_its_hard_end(SOUND, Norm.L2, ONE)


class WithoutDenominator(PythonComb):
    """Charges for x_t - beta x_(t - lag), and feeds c_d times as much."""

    def sensitivity(self, norm, neighbors):
        return super().sensitivity(norm, neighbors) / self.beta.denominator


class ClosestPattern(PythonComb):
    """Takes the closest pattern for the worst, as a filter that falls may."""

    def sensitivity(self, norm, neighbors):
        events, b = neighbors.unit.max_events, neighbors.unit.min_separation
        c = self.column(400)
        lags = [sum(c[k] * c[k + n * b] for k in range(400 - n * b)) for n in range(events)]
        square = events * lags[0] + 2 * sum((events - n) * lags[n] for n in range(1, events))
        moved = sqrt_up(neighbors.event_l2_squared * Fraction(square))
        rounded = self.error * sqrt_up(Fraction(self.charged_steps * neighbors.touched_cells))
        return (moved + rounded) * 2**self.lattice_bits

    def column(self, n):
        return [float(c) for c in Comb(*QUICK, self.beta, self.lag, 30).coefficients(n)]


class OneSign(PythonComb):
    """Forgets that later events may take away what earlier ones added."""

    def sensitivity(self, norm, neighbors):
        one = replace(neighbors, unit=Contributions(1, 0))
        return super().sensitivity(norm, one) * sqrt_up(Fraction(neighbors.unit.max_events))


def rebuilt(kind):
    return kind(*QUICK, 30, 16, beta=BETA, lag=3)


def test_forgetting_the_denominator_is_rejected():
    with pytest.raises(AssertionError):
        assert_covers_every_pattern(rebuilt(WithoutDenominator), Norm.L2, ONE, steps=16, slack=100)


@pytest.mark.parametrize("kind", [ClosestPattern, OneSign])
def test_the_shortcut_of_falling_filters_is_rejected(kind):
    pair = Neighbors(Contributions(2, 2), ADD, -1, 1, 1, 1)
    assert_covers_every_pattern(SOUND, Norm.L2, pair, steps=16, slack=0.1)
    with pytest.raises(AssertionError):
        assert_covers_every_pattern(rebuilt(kind), Norm.L2, pair, steps=16, slack=100)


def test_an_encoder_that_does_not_outlive_a_block_is_rejected():
    class Forgetful(PythonComb):
        def encode(self, state, x, first):
            state["totals"] = state["totals"] * 0
            return super().encode(state, x, first)

    with pytest.raises(AssertionError):
        assert_streams(rebuilt(Forgetful), VIEWS, steps=12, cells=2)


def test_the_bound_on_patterns_is_computed_for_the_filter_behind_the_comb():
    alone = comb_pattern_gain_squared(*QUICK, BETA, 3, 1, 0)
    column = Comb(*QUICK, BETA, 3, 30).coefficients(400) / 32
    assert float(alone) == pytest.approx((column**2).sum(), rel=1e-12)
