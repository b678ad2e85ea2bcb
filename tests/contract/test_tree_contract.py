"""Trees with weights, and the printed formula: the contract, and ledgers that must be caught."""

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

from tidegauge.privacy.unit import Contributions, Event, NeighboringRelation, Neighbors, PrivacyUnit
from tidegauge.strategies.blocks import Blocks
from tidegauge.strategies.decay import Window
from tidegauge.strategies.strategy import Norm
from tidegauge.strategies.trees import DECODINGS, all_window_sum, window_sum

TREES = [
    *(window_sum(window, decode) for window in (1, 5, 8) for decode in DECODINGS),
    all_window_sum(1.5),
    all_window_sum(Fraction(1, 2), steps=50, printed=True),
    Blocks((1, 4, 12), lattice_bits=5, weights=(3, 2, 2)),
]


@pytest.mark.parametrize("tree", TREES)
def test_decoding_the_trees_gives_every_view(tree: Blocks) -> None:
    assert_factorizes(tree, VIEWS, steps=50)


@pytest.mark.parametrize("tree", TREES)
def test_streaming_leaves_no_trace_in_the_bytes(tree: Blocks) -> None:
    assert_streams(tree, VIEWS, steps=40, cells=3)


def test_rings_of_trees_grow_without_a_trace_in_the_bytes() -> None:
    views = [Window(300), Window(1 << 37)]
    for tree in (window_sum(300), window_sum(300, "paper"), all_window_sum(2, printed=True)):
        assert_streams(tree, views, steps=700, cells=2)


@pytest.mark.parametrize("tree", TREES)
def test_trees_know_their_noise(tree: Blocks) -> None:
    assert_knows_its_noise(tree, VIEWS, steps=50)


@pytest.mark.parametrize("unit", [Event(), Contributions(2), Contributions(3, 2)])
@pytest.mark.parametrize("relation", list(NeighboringRelation))
@pytest.mark.parametrize("norm", list(Norm))
def test_the_sensitivity_of_weighted_rows_is_that_of_the_worst_pattern(
    unit: PrivacyUnit, relation: NeighboringRelation, norm: Norm
) -> None:
    neighbors = Neighbors(unit, relation, -1, 2, 1, 1)
    tree = Blocks((1, 3, 6), False, lattice_bits=3, weights=(5, 3, 1))
    assert_covers_every_pattern(tree, norm, neighbors, steps=12, slack=1e-12)


class _CountsLevels:
    """A ledger that charges levels and not their weights."""

    lattice_bits = 0
    encoder_matrix = Blocks((1, 2, 4), False, weights=(4, 2, 1)).encoder_matrix
    sensitivity = Blocks((1, 2, 4), False).sensitivity


class _ChargesTheLargest:
    """A ledger that charges the largest weight once."""

    lattice_bits = 0
    encoder_matrix = _CountsLevels.encoder_matrix
    sensitivity = Blocks((1,), False, weights=(4,)).sensitivity


class _RootDropped:
    """The roots are measured, and charged as if they were left out."""

    lattice_bits = 0
    encoder_matrix = window_sum(8, "direct").encoder_matrix
    sensitivity = window_sum(8).sensitivity


@pytest.mark.parametrize("broken", [_CountsLevels, _ChargesTheLargest, _RootDropped])
@pytest.mark.parametrize("norm", list(Norm))
def test_broken_ledgers_are_caught(broken: type, norm: Norm) -> None:
    with pytest.raises(AssertionError):
        assert_covers_every_pattern(broken(), norm, ONE, steps=8, slack=10.0)


def test_every_window_can_be_read_at_every_step() -> None:
    tree, cells = all_window_sum(1.5), 2
    lengths = np.array([1, 2, 5, 14, 100, 1 << 37])
    views = [Window(int(length)) for length in lengths]
    source = np.random.Generator(np.random.PCG64(3))
    state, kept = tree.init_decoder(views, cells), tree.init_decoder(views[-1:], cells)
    for t in range(1, 80):
        rows = source.integers(-1000, 1000, (len(tree.coordinates(t - 1, 1)), cells))
        out, longest = np.empty((len(views), 1, cells)), np.empty((1, 1, cells))
        tree.decode(state, views, rows, t - 1, out)
        tree.decode(kept, views[-1:], rows, t - 1, longest)
        assert out[:, 0].tobytes() == tree.windows(kept, lengths, t).tobytes()
