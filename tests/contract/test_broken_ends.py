"""Strategies of streams with an end, broken one by one; each judge rejects what was broken."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from contract.strategy_contract import (
    assert_covers_every_pattern,
    assert_factorizes,
    assert_knows_its_noise,
    assert_stays_within_under_attack,
    assert_stops_at_its_hard_end,
)
from twins.cases import ADD, ONE

from tidegauge.privacy.rounding import sqrt_up
from tidegauge.privacy.unit import Contributions, Neighbors
from tidegauge.strategies.blt import Blt, NormalisedBlt, fit_normalised
from tidegauge.strategies.blt.patterns import column_gain_squared
from tidegauge.strategies.decay import Exponential, Running, Window
from tidegauge.strategies.dense import DenseToeplitz, square_root, square_root_strategy
from tidegauge.strategies.strategy import Norm

SOUND = replace(fit_normalised(16), lattice_bits=40)
DENSE = square_root_strategy(Running(), 16, 3)
UNIT, MILLION = 1 << 64, 1 << 20
SLOW = ((UNIT // 2000, UNIT // 10), (UNIT // 50, UNIT // 5))


def broken(kind, strategy=SOUND, **fields):
    fields = {name: getattr(strategy, name) for name in strategy.__dataclass_fields__} | fields
    return kind(**fields)


def test_the_sound_ones_pass_every_judge():
    for strategy in (SOUND, DENSE):
        assert_factorizes(strategy, [Running(), Window(3)], steps=16)
        assert_covers_every_pattern(strategy, Norm.L2, ONE, steps=16, slack=1e-3)
        assert_knows_its_noise(strategy, [Running()], steps=16, tolerance=1e-7)
        assert_stops_at_its_hard_end(strategy, Norm.L2, ONE)


class LastColumnOnly(NormalisedBlt):
    """Takes the multiplier for the whole norm, as if every column began with the last step."""

    @property
    def largest_column_squared(self):
        return Fraction(max(self.multipliers), MILLION) ** 2


class ShortColumns(NormalisedBlt):
    """Measures each column from the end of its piece, not from the start."""

    @property
    def largest_column_squared(self):
        ends = np.cumsum(self.lengths)
        return max(
            Fraction(m, MILLION) ** 2
            * column_gain_squared(self.gaps, self.weights, max(1, self.hard_end - int(end)))
            for m, end in zip(self.multipliers, ends, strict=True)
        )


class Unrounded(NormalisedBlt):
    """Pays for no rounding."""

    def sensitivity(self, norm, neighbors):
        squared = neighbors.event_l2_squared * self.largest_column_squared
        return sqrt_up(squared) * (1 << self.lattice_bits)


class Unmultiplied(NormalisedBlt):
    """Forgets the multipliers on the private side."""

    def encode(self, state, x, first):
        return self._filter.encode(state, x << 20, first)


class OneEvent(NormalisedBlt):
    """Charges one event of an id that may have three."""

    def sensitivity(self, norm, neighbors):
        return super().sensitivity(norm, ONE)


class Endless(NormalisedBlt):
    """Goes on after the end with the last multiplier."""

    def encode(self, state, x, first):
        longer = Blt(self.gaps, self.weights, self.lattice_bits - 20)
        return longer.encode(state, x * self.multipliers[-1], first)


class Even(NormalisedBlt):
    """Tells the noise of the filter without its multipliers."""

    def variance_gain(self, view, steps):
        return Blt(self.gaps, self.weights, self.lattice_bits).variance_gain(view, steps)


@pytest.mark.parametrize("kind", [LastColumnOnly, ShortColumns])
def test_columns_that_are_measured_too_short_are_rejected(kind):
    pieces = {"lengths": (8, 8), "multipliers": (MILLION // 2, MILLION)}
    assert_covers_every_pattern(broken(NormalisedBlt, **pieces), Norm.L2, ONE, 16, slack=1e-3)
    with pytest.raises(AssertionError):
        assert_covers_every_pattern(broken(kind, **pieces), Norm.L2, ONE, 16, slack=1.0)


def test_paying_no_roundings_of_multiplied_totals_is_rejected():
    filtered = (*SLOW, (1, 149), (MILLION, MILLION // 2), 0)
    assert_stays_within_under_attack(NormalisedBlt(*filtered), 1, signed=False, steps=150)
    with pytest.raises(AssertionError):
        assert_stays_within_under_attack(Unrounded(*filtered), 1, signed=False, steps=150)


def test_an_encoder_without_its_multipliers_is_rejected():
    with pytest.raises(AssertionError):
        assert_factorizes(broken(Unmultiplied), [Running()], steps=16)


def test_charging_one_event_of_three_is_rejected():
    three = Neighbors(Contributions(3, 2), ADD, 0, 1, 1, 1)
    with pytest.raises(AssertionError):
        assert_covers_every_pattern(broken(OneEvent), Norm.L2, three, steps=16, slack=2.0)


def test_a_normalised_filter_without_its_end_is_rejected():
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        assert_stops_at_its_hard_end(broken(Endless), Norm.L2, ONE)


def test_the_noise_of_the_filter_alone_is_rejected():
    with pytest.raises(AssertionError):
        assert_knows_its_noise(broken(Even), [Running()], steps=16)


class OfTheRoot(DenseToeplitz):
    """Charges the norm of the root itself, not that of the integers that are multiplied with."""

    def sensitivity(self, norm, neighbors):
        return sqrt_up(Fraction(float((square_root(Running(), 16) ** 2).sum())) * 4**3)


class Inverted(DenseToeplitz):
    """Decodes with the root itself, not with the integers that were multiplied with."""

    @property
    def _floats(self):
        return square_root(Running(), 16) * 8


class Closest(DenseToeplitz):
    """Takes the closest pattern for the worst although C does not fall."""

    def sensitivity(self, norm, neighbors):
        moved = np.zeros(self.hard_end)
        for event in range(neighbors.unit.max_events):
            start = event * neighbors.unit.min_separation
            moved[start:] += self.coefficients[: self.hard_end - start]
        return sqrt_up(Fraction(int(moved @ moved)))


def test_the_norm_of_an_unrounded_root_is_rejected():
    rounded_up = DenseToeplitz(tuple(int(c) for c in np.ceil(square_root(Running(), 16) * 8)), 3)
    assert_covers_every_pattern(rounded_up, Norm.L2, ONE, steps=16, slack=1e-9)
    with pytest.raises(AssertionError):
        assert_covers_every_pattern(broken(OfTheRoot, rounded_up), Norm.L2, ONE, 16, slack=1.0)


def test_decoding_with_an_unrounded_root_is_rejected():
    with pytest.raises(AssertionError):
        assert_factorizes(broken(Inverted, DENSE), [Running()], steps=16)


def test_the_closest_pattern_of_integers_that_do_not_fall_is_rejected():
    two = Neighbors(Contributions(2, 1), ADD, 0, 1, 1, 1)
    swinging = DenseToeplitz((4, -3, 4, 0, 0, 0), 2)
    assert_covers_every_pattern(swinging, Norm.L2, two, steps=6, slack=1.0)
    with pytest.raises(AssertionError):
        assert_covers_every_pattern(broken(Closest, swinging), Norm.L2, two, steps=6, slack=1.0)


def test_more_noise_than_needed_is_rejected():
    class Wasteful(DenseToeplitz):
        def sensitivity(self, norm, neighbors):
            return 2 * super().sensitivity(norm, neighbors)

    fading = square_root_strategy(Exponential(half_life=3), 16, 20)
    with pytest.raises(AssertionError):
        assert_covers_every_pattern(broken(Wasteful, fading), Norm.L2, ONE, 16, slack=0.01)
