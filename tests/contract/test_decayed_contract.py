import numpy as np
import pytest
from contract.strategy_contract import (
    assert_covers_every_pattern,
    assert_factorizes,
    assert_knows_its_noise,
    assert_streams,
)
from twins import python_tree
from twins.cases import ADD, ONE

from tidegauge.errors import InvalidInput, InvalidParameter, UnsupportedCombination
from tidegauge.privacy.unit import (
    Contributions,
    Event,
    NeighboringRelation,
    Neighbors,
    PrivacyUnit,
)
from tidegauge.strategies.decay import Decay, Exponential, Running, Step
from tidegauge.strategies.decayed import DecayedTree
from tidegauge.strategies.decayed.table import powers, table_of
from tidegauge.strategies.strategy import Norm

DECAYS = [Exponential(factor=f) for f in (0.1, 0.5, 0.9, 0.99, 0.99999)]


def views_of(decay: Exponential) -> list[Decay]:
    return [decay, Step(), Exponential(factor=decay.factor, average=True)]


@pytest.mark.parametrize("decay", DECAYS)
def test_the_nodes_of_the_binary_digits_give_the_decayed_sum(decay: Exponential) -> None:
    assert_factorizes(DecayedTree.of(decay, 30), views_of(decay), steps=70, tolerance=1e-7)


@pytest.mark.parametrize("decay", DECAYS)
def test_streaming_leaves_no_trace_in_the_bytes(decay: Exponential) -> None:
    assert_streams(DecayedTree.of(decay, 20), views_of(decay), steps=67, cells=3)


@pytest.mark.parametrize("decay", DECAYS)
def test_the_tree_knows_its_noise(decay: Exponential) -> None:
    assert_knows_its_noise(DecayedTree.of(decay, 24), views_of(decay), steps=100)


@pytest.mark.parametrize("decay", DECAYS)
def test_the_worst_step_is_the_worst(decay: Exponential) -> None:
    tree = DecayedTree.of(decay, 20)
    for view in views_of(decay):
        gains = tree.variance_gain(view, np.arange(1, 300))
        for horizon in (1, 2, 3, 4, 6, 7, 100, 127, 128, 254, 255, 256):
            worst = tree.worst_variance_gain(view, horizon)
            np.testing.assert_allclose(worst, gains[:horizon].max(), rtol=1e-12)


@pytest.mark.parametrize("relation", list(NeighboringRelation))
@pytest.mark.parametrize("norm", list(Norm))
@pytest.mark.parametrize("decay", DECAYS)
def test_one_event_moves_the_nodes_by_the_sensitivity(
    decay: Exponential, norm: Norm, relation: NeighboringRelation
) -> None:
    tree = DecayedTree.of(decay, 20)
    for neighbors in (
        Neighbors(Event(), relation, -1, 2, 1, 2),
        Neighbors(Event(), ADD, 0, 3, 2, 2),
    ):
        assert_covers_every_pattern(tree, norm, neighbors, steps=40, slack=10)
    assert 1e-9 > _missing(tree, norm)


def _missing(tree: DecayedTree, norm: Norm) -> float:
    """What the worst column of 2048 steps leaves of the sensitivity, beyond the later levels."""
    columns = tree.encoder_matrix(2048) * 2.0**tree.lattice_bits
    power = 1 if norm is Norm.L1 else 2
    worst = (columns**power).sum(axis=0)
    assert 0 == worst.argmax()  # the first step
    later = sum(tree._table.weight((1 << k) - 1, tree.lattice_bits) ** power for k in range(12, 40))
    declared = float(tree.sensitivity(norm, ONE)) ** power
    return abs(1 - (worst[0] + later) / declared)


@pytest.mark.parametrize("unit", [Contributions(2), Contributions(3, 1), Contributions(2, 5)])
@pytest.mark.parametrize("norm", list(Norm))
def test_several_events_of_an_id_are_covered(unit: PrivacyUnit, norm: Norm) -> None:
    neighbors = Neighbors(unit, ADD, -1, 1, 1, 1)
    assert_covers_every_pattern(DecayedTree.of(DECAYS[1], 20), norm, neighbors, steps=9, slack=1.5)


def test_a_tree_whose_root_is_not_counted_as_left_is_caught() -> None:
    """The paper's definition gives the root no sibling, so that its level is not paid for."""

    class RootNotLeft:
        lattice_bits = 20
        encoder_matrix = DecayedTree.of(DECAYS[2], 20).encoder_matrix

        def sensitivity(self, norm: Norm, neighbors: Neighbors) -> float:
            table = table_of(DecayedTree.of(DECAYS[2], 20).gap)
            return sum(table.weight((1 << k) - 1, 20) for k in range(6) if k != 5)

    with pytest.raises(AssertionError):
        assert_covers_every_pattern(RootNotLeft(), Norm.L1, ONE, steps=32, slack=1.0)  # type: ignore[arg-type]  # a broken twin


@pytest.mark.parametrize("bits", [10, 20, 30])
@pytest.mark.parametrize("decay", DECAYS)
def test_the_kernels_equal_plain_python(decay: Exponential, bits: int) -> None:
    source = np.random.Generator(np.random.PCG64(3))
    tree = DecayedTree.of(decay, bits)
    x = source.integers(-3 * tree.largest_total, 3 * tree.largest_total, (40, 2))
    rows = tree.encode(tree.init_encoder(2), x, 0)
    expected = python_tree.encode(x, tree.gap, bits, tree.largest_total)
    assert expected.tobytes() == rows.tobytes()
    out = np.empty((1, 40, 2))
    tree.decode(tree.init_decoder([decay], 2), [decay], rows, 0, out)
    unit = 2.0**-bits
    assert python_tree.decode(rows, powers(tree.gap, 40), unit).tobytes() == out[0].tobytes()


@pytest.mark.parametrize("decay", [*DECAYS, Exponential(factor=1 - 1e-6)])
def test_weights_never_grow_with_age_and_are_close_to_the_decay(decay: Exponential) -> None:
    table = table_of(DecayedTree.of(decay, 10).gap)
    source = np.random.Generator(np.random.PCG64(4))
    reach = len(table.high) * len(table.low)
    edges = len(table.low) * np.arange(1, len(table.high))
    ages = np.unique(
        np.concatenate([np.arange(3000), source.integers(0, reach, 3000), edges, edges - 1])
    )
    for bits in (10, 20, 30):
        weights = np.array([table.weight(age, bits) for age in ages.tolist()])
        assert (np.diff(weights) <= 0).all()
        ideal = np.exp(ages * np.log1p(-decay.gap))
        assert np.abs(weights * 2.0**-bits - ideal).max() < 0.51 * 2.0**-bits + 40 * 2.0**-30
    assert 1 << 20 == table.weight(0, 20)
    assert 0 == table.weight(1 << 37, 20)


def test_the_extremes_stay_within_64_bits() -> None:
    tree = DecayedTree.of(DECAYS[3], 22)
    x = np.full((5000, 1), tree.largest_total, dtype=np.int64)
    rows = tree.encode(tree.init_encoder(1), x, 0)
    assert 0 < rows.min() <= rows.max() <= 1 << 62
    assert rows.max() > 1 << 61


def test_what_the_tree_is_not_made_for_is_refused() -> None:
    tree = DecayedTree.of(DECAYS[2], 20)
    for view in (Running(), Exponential(factor=0.8)):
        with pytest.raises(UnsupportedCombination, match="exponential decay"):
            tree.init_decoder([view], 1)
        with pytest.raises(UnsupportedCombination):
            tree.variance_gain(view, np.array([1]))
    for gap, bits in ((0, 20), (1 << 64, 20), (1 << 39, 20), (1 << 60, 9), (1 << 60, 31)):
        with pytest.raises(InvalidParameter):
            DecayedTree(gap, bits)
    with pytest.raises(InvalidInput):
        tree.encode(tree.init_encoder(2), np.zeros((3, 1), dtype=np.int64), 0)
