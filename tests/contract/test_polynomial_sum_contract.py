from fractions import Fraction

import numpy as np
import pytest
from contract.strategy_contract import (
    assert_covers_every_pattern,
    assert_factorizes,
    assert_knows_its_noise,
    assert_streams,
)
from twins.cases import ONE, VIEWS

from tidegauge.errors import StreamEnded
from tidegauge.privacy.unit import Contributions, Event, NeighboringRelation, Neighbors, PrivacyUnit
from tidegauge.strategies.polynomial_sum import PolynomialSum, polynomial_sum
from tidegauge.strategies.strategy import Norm

HALF = Fraction(1, 2)
CASES = [
    polynomial_sum(1, 0.5, 20),
    polynomial_sum(2, 0.25, 30, printed=True),
    polynomial_sum(1.5, 0.1, 40),
    PolynomialSum(HALF, (0, 1, 3), (2, 5, 13), (7, 3, 2)),
]
SMALL = PolynomialSum(HALF, (0, 1), (1, 4), (3, 2))


@pytest.mark.parametrize("strategy", CASES)
def test_decoding_gives_every_view(strategy: PolynomialSum) -> None:
    assert_factorizes(strategy, [strategy.decay, *VIEWS], steps=60)


@pytest.mark.parametrize("strategy", CASES)
def test_streaming_leaves_no_trace_in_the_bytes(strategy: PolynomialSum) -> None:
    assert strategy.coordinates_per_step == 64 or strategy is CASES[2]
    _assert_streams(strategy)


def _assert_streams(strategy: PolynomialSum) -> None:
    assert_streams(strategy, [strategy.decay, *VIEWS[:5]], steps=40, cells=3)


@pytest.mark.parametrize("strategy", CASES)
def test_it_knows_its_noise(strategy: PolynomialSum) -> None:
    assert_knows_its_noise(strategy, [strategy.decay, *VIEWS], steps=60)


@pytest.mark.parametrize("strategy", CASES)
def test_the_worst_gain_is_the_largest_of_all_steps(strategy: PolynomialSum) -> None:
    gains = strategy.variance_gain(strategy.decay, np.arange(1, 500))
    for horizon in (1, 7, 30, 499):
        assert gains[:horizon].max() == strategy.worst_variance_gain(strategy.decay, horizon)


@pytest.mark.parametrize("unit", [Event(), Contributions(2), Contributions(2, 3)])
@pytest.mark.parametrize("relation", list(NeighboringRelation))
def test_the_sensitivity_is_that_of_the_worst_pattern(
    unit: PrivacyUnit, relation: NeighboringRelation
) -> None:
    neighbors = Neighbors(unit, relation, -1, 2, 1, 1)
    assert_covers_every_pattern(SMALL, Norm.L1, neighbors, steps=10, slack=1e-12)


class _ForgetsRows:
    """Charges each window once, whatever its levels."""

    lattice_bits = 0
    encoder_matrix = SMALL.encoder_matrix

    def sensitivity(self, norm: Norm, neighbors: Neighbors) -> Fraction:
        return Fraction(sum(SMALL.weights) * neighbors.event_l1)


class _ChargesByDecay:
    """Charges each window by its weight in the sum, not by that of its rows."""

    lattice_bits = 0
    encoder_matrix = SMALL.encoder_matrix

    def sensitivity(self, norm: Norm, neighbors: Neighbors) -> Fraction:
        return Fraction(1 + 2 * HALF) * neighbors.event_l1


@pytest.mark.parametrize("broken", [_ForgetsRows, _ChargesByDecay])
def test_broken_ledgers_are_caught(broken: type) -> None:
    with pytest.raises(AssertionError):
        assert_covers_every_pattern(broken(), Norm.L1, ONE, steps=10, slack=10.0)


def test_many_windows_have_numbers_of_their_own_up_to_a_hard_end() -> None:
    strategy = polynomial_sum(1.5, 0.1, 4096)
    assert strategy.coordinates_per_step > 64
    end = strategy.hard_end
    assert end is not None
    last = strategy.coordinates(end - 1, 1)
    assert last.max() < 1 << 44
    assert not set(last.tolist()) & set(strategy.coordinates(end - 2, 1).tolist())
    with pytest.raises(StreamEnded):
        strategy.coordinates(end, 1)
