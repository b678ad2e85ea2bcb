"""Each judge of the contract suite rejects the strategy that was broken for it."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
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
from twins.cases import ONE
from twins.python_blt import PythonBlt, paid_in_full, truncated

from tidegauge.privacy.rounding import sqrt_up
from tidegauge.strategies.blt.patterns import pattern_gain_squared
from tidegauge.strategies.decay import Running, Step, Window
from tidegauge.strategies.identity import Identity
from tidegauge.strategies.strategy import Norm

HALF = 1 << 63
SOUND = PythonBlt((HALF, 3 * HALF // 2), (HALF // 2, HALF // 4), 30, 16)
COARSE = PythonBlt((600,), (29491,), 2, 120, unit_bits=16)
TINY = PythonBlt((2, 20), (30, 12), 6, 120, unit_bits=6)
SLOW = PythonBlt((33, 6554), (1311, 13107), 0, 150, unit_bits=16)


def paid_once_for_all_cells(blt, neighbors):
    moved = paid_in_full(replace(blt, charged_steps=0), neighbors)
    return moved + blt.error * sqrt_up(Fraction(blt.charged_steps))


def paid_without_roundings(blt, neighbors):
    return paid_in_full(replace(blt, charged_steps=0), neighbors)


def paid_without_last_buffer(blt, neighbors):
    return sqrt_up(pattern_gain_squared(blt.gaps[:-1], blt.weights[:-1], 1, 0))


def test_the_sound_twin_passes_every_judge():
    assert_factorizes(SOUND, [Step(), Running(), Window(3)], steps=12)
    assert_covers_every_pattern(SOUND, Norm.L2, ONE, steps=16, slack=0.01)
    assert_streams(SOUND, [Running()], steps=16, cells=2)
    assert_stops_at_its_hard_end(SOUND, Norm.L2, ONE)
    assert assert_each_rounding_is_paid(COARSE, float(COARSE.error), signed=True, steps=80) > 0.9
    assert assert_each_rounding_is_paid(TINY, float(TINY.error), signed=False, steps=120) > 0.85


def test_truncation_towards_zero_is_rejected():
    broken = replace(COARSE, rounded=truncated)
    with pytest.raises(AssertionError):
        assert_each_rounding_is_paid(broken, float(broken.error), signed=True, steps=80)


def test_counting_one_rounding_less_is_rejected():
    without_first = float(TINY.error - Fraction(1, TINY.gaps[0]))
    with pytest.raises(AssertionError):
        assert_each_rounding_is_paid(TINY, without_first, signed=False, steps=120)


def test_paying_the_roundings_of_one_cell_for_four_is_rejected():
    assert assert_stays_within_under_attack(SLOW, 4, signed=False, steps=150) > 0.85
    with pytest.raises(AssertionError):
        assert_stays_within_under_attack(
            replace(SLOW, paid=paid_once_for_all_cells), 4, signed=False, steps=150
        )


def test_paying_no_roundings_is_rejected():
    with pytest.raises(AssertionError):
        assert_stays_within_under_attack(
            replace(SLOW, paid=paid_without_roundings), 1, signed=False, steps=150
        )


def test_a_sensitivity_that_drops_one_buffer_is_rejected():
    with pytest.raises(AssertionError):
        assert_covers_every_pattern(
            replace(SOUND, paid=paid_without_last_buffer), Norm.L2, ONE, steps=16, slack=1.0
        )


def test_a_sensitivity_far_above_the_truth_is_rejected():
    wasteful = replace(SOUND, paid=lambda blt, neighbors: 2 * paid_in_full(blt, neighbors))
    with pytest.raises(AssertionError):
        assert_covers_every_pattern(wasteful, Norm.L2, ONE, steps=16, slack=0.01)


def test_a_decoder_with_a_wrong_sign_is_rejected():
    with pytest.raises(AssertionError):
        assert_factorizes(replace(SOUND, sign=1.0), [Running()], steps=12)


class Forgetful(PythonBlt):
    def encode(self, state, x, first):
        state["states"][:] = 0
        return super().encode(state, x, first)


class Endless(PythonBlt):
    def encode(self, state, x, first):
        return super().encode(state, x, 0)


class Quiet(PythonBlt):
    def variance_gain(self, view, steps):
        return Identity(self.lattice_bits).variance_gain(view, steps)

    def noise_terms(self, view, step):
        return Identity(self.lattice_bits).noise_terms(view, step)


def rebuilt(kind):
    return kind(SOUND.gaps, SOUND.weights, SOUND.lattice_bits, SOUND.charged_steps)


def test_states_that_do_not_outlive_a_block_are_rejected():
    with pytest.raises(AssertionError):
        assert_streams(rebuilt(Forgetful), [Running()], steps=12, cells=2)


def test_a_strategy_without_its_hard_end_is_rejected():
    with pytest.raises(pytest.fail.Exception):
        assert_stops_at_its_hard_end(rebuilt(Endless), Norm.L2, ONE)


def test_a_wrong_variance_is_rejected():
    with pytest.raises(AssertionError):
        assert_knows_its_noise(rebuilt(Quiet), [Running()], steps=12)


def test_real_coordinates_are_rejected():
    class Real(PythonBlt):
        def encode(self, state, x, first):
            return super().encode(state, x, first) + 0.5

    with pytest.raises(AssertionError):
        assert_streams(rebuilt(Real), [], steps=12, cells=2)
    assert np.issubdtype(SOUND.encode(SOUND.init_encoder(1), np.ones((1, 1), int), 0).dtype, int)
