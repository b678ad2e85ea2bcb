import numpy as np
import pytest
from contract.strategy_contract import (
    assert_covers_every_pattern,
    assert_factorizes,
    assert_knows_its_noise,
    assert_streams,
)
from twins.cases import ONE, VIEWS

from tidegauge.privacy.unit import (
    Contributions,
    Event,
    NeighboringRelation,
    Neighbors,
    PrivacyUnit,
)
from tidegauge.strategies.blocks import Blocks, OpenBlocks
from tidegauge.strategies.blocks.combinations import base_of
from tidegauge.strategies.decay import Difference, Exponential, Running, Window
from tidegauge.strategies.strategy import Norm

COMPLETED = [
    Blocks((1,)),
    Blocks.base(2, 50),
    Blocks((1, 3, 9, 27)),
    Blocks((1, 5, 10), lattice_bits=20),
    Blocks((1, 4, 12), signed=False, lattice_bits=7),
]
OPENED = [
    OpenBlocks((1, 3, 9), (Running(),)),
    OpenBlocks((1, 4, 12), (Window(7), Running(), Window(1000)), lattice_bits=5),
    OpenBlocks((1,), (Window(3),)),
]
UNITS: list[PrivacyUnit] = [
    Event(),
    Contributions(2),
    Contributions(3, 1),
    Contributions(3, 2),
    Contributions(2, 5),
]


@pytest.mark.parametrize("strategy", [*COMPLETED, *OPENED])
def test_decoding_the_blocks_gives_every_view(strategy: Blocks | OpenBlocks) -> None:
    assert_factorizes(strategy, VIEWS, steps=50)


@pytest.mark.parametrize("strategy", [*COMPLETED, *OPENED])
def test_streaming_leaves_no_trace_in_the_bytes(strategy: Blocks | OpenBlocks) -> None:
    assert_streams(strategy, VIEWS, steps=40, cells=3)


def test_rings_grow_without_a_trace_in_the_bytes() -> None:
    changes = [Difference(Window(300), 400), Difference(Exponential(half_life=9), 300)]
    views = [Window(300), Window(1000), Running(), *changes]
    assert_streams(Blocks((1, 16, 80)), views, steps=700, cells=2)
    assert_streams(OpenBlocks((1, 16, 80), (Window(300),)), views, steps=700, cells=2)


@pytest.mark.parametrize("strategy", COMPLETED)
def test_completed_blocks_know_their_noise(strategy: Blocks) -> None:
    assert_knows_its_noise(strategy, VIEWS, steps=50)


@pytest.mark.parametrize("strategy", OPENED)
def test_views_that_are_not_planned_know_their_noise(strategy: OpenBlocks) -> None:
    views = [view for view in VIEWS if base_of(view) not in strategy.views]
    assert_knows_its_noise(strategy, views, steps=50)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("relation", list(NeighboringRelation))
@pytest.mark.parametrize("norm", list(Norm))
def test_the_sensitivity_is_that_of_the_worst_pattern(
    unit: PrivacyUnit, relation: NeighboringRelation, norm: Norm
) -> None:
    neighbors = Neighbors(unit, relation, -1, 2, 1, 1)
    strategy = Blocks((1, 3, 6), lattice_bits=3)
    assert_covers_every_pattern(strategy, norm, neighbors, steps=12, slack=1e-12)


@pytest.mark.parametrize("relation", list(NeighboringRelation))
@pytest.mark.parametrize("norm", list(Norm))
def test_the_sensitivity_counts_every_cell(relation: NeighboringRelation, norm: Norm) -> None:
    neighbors = Neighbors(Contributions(2, 1), relation, 0, 2, 2, 3)
    assert_covers_every_pattern(Blocks((1, 4)), norm, neighbors, steps=8, slack=1e-12)


def test_a_ledger_with_one_level_too_few_is_caught() -> None:
    class OneLevelShort:
        lattice_bits = 0
        encoder_matrix = Blocks((1, 2, 4)).encoder_matrix
        sensitivity = Blocks((1, 2)).sensitivity

    for norm in Norm:
        with pytest.raises(AssertionError):
            assert_covers_every_pattern(OneLevelShort(), norm, ONE, steps=8, slack=1.0)  # type: ignore[arg-type]  # a broken twin


@pytest.mark.parametrize("levels", [(1,), (1, 2, 4, 8), (1, 3, 15)])
def test_every_step_lies_in_one_block_of_each_level(levels: tuple[int, ...]) -> None:
    strategy, steps = Blocks(levels), levels[-1] * 3
    level = strategy.coordinates(0, steps) % 64
    C = strategy.encoder_matrix(steps)
    for place in range(len(levels)):
        assert [1.0] * steps == C[level == place].sum(axis=0).tolist()
    assert set(np.unique(C)) <= {0.0, 1.0}


@pytest.mark.parametrize("strategy", [*COMPLETED, *OPENED])
def test_matrices_are_the_blocks_and_the_steps_own_rows(strategy: Blocks | OpenBlocks) -> None:
    C, plus = strategy.matrices(30)
    np.testing.assert_array_equal(np.eye(30), plus @ C)
    assert len(C) == sum(30 // size for size in strategy.levels)
    assert set(np.unique(C)) <= {0.0, 1.0}
