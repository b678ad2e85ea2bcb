from fractions import Fraction
from itertools import pairwise

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
from tidegauge.strategies.blocks import _kernels as block_kernels
from tidegauge.strategies.blocks.combinations import Way
from tidegauge.strategies.stepped import PolynomialSum, polynomial_sum
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


@pytest.mark.parametrize("printed", [False, True])
@pytest.mark.parametrize(("c", "beta", "reach"), [(1.5, 0.5, 64), (0.7, 0.25, 33), (3, 0.6, 9)])
def test_listed_moves_are_the_paths_at_every_end(c, beta, reach, printed):
    """What the decoder reads is looked up by the end's place in a largest block."""
    strategy = polynomial_sum(c, beta, reach, printed=printed)
    starts, moves = strategy._moves
    way = Way.PRINTED if printed else Way.SIGNED
    listed = 0
    for length, height in zip(strategy._lengths.tolist(), strategy._heights.tolist(), strict=True):
        size = 1 << (height - 1)
        path, ratios = np.zeros((height, 8), np.int64), np.full(height - 1, 2, np.int64)
        for end in [*range(length + 1, length + 3 * size + 2), 10**9 + 7, (1 << 37) - 1]:
            block_kernels.find_path(end, length, ratios, np.ones(height), int(way), path)
            at, place = end // size * size, listed + end % size
            expected = [
                [level, path[level, k] - (at >> level), path[level, k + 1] - (at >> level)]
                for level in range(height)
                for k in (0, 2)
                if path[level, k] != path[level, k + 1]
            ]
            assert expected == moves[starts[place] : starts[place + 1]].tolist()
        listed += size


@pytest.mark.parametrize("printed", [False, True])
@pytest.mark.parametrize(("c", "beta", "reach"), [(1.5, 0.5, 64), (0.7, 0.25, 33), (3, 0.6, 9)])
def test_far_moves_and_binary_digits_are_all_moves(c, beta, reach, printed):
    """A counter of the end's digits and the far moves read each boundary as often as the moves."""
    strategy = polynomial_sum(c, beta, reach, printed=printed)
    starts, moves = strategy._moves
    begins, kept, larger, far = strategy._far
    place = 0
    for height in strategy._heights.tolist():
        before: list[list[int]] = []
        for r in range(1 << (height - 1)):
            digits = [
                [level, (r >> level) - 1, r >> level]
                for level in range(height - 1)
                if r >> level & 1
            ]
            now = far[begins[place] : begins[place + 1]].tolist()
            expected = _boundaries(moves[starts[place] : starts[place + 1]].tolist())
            assert _boundaries(digits + now) == expected
            assert now[: kept[place]] == before[: kept[place]]
            levels = [level for level, _, _ in digits]
            assert larger[place] == ([*levels, height - 1, height - 1])[1]
            assert sorted(now, reverse=True, key=lambda move: move[0]) == now
            before, place = now, place + 1
    assert begins[place] == len(far)


def _boundaries(moves):
    """How often the running sum up to each boundary counts."""
    counts: dict[tuple[int, int], int] = {}
    for level, old, new in moves:
        counts[level, new] = counts.get((level, new), 0) + 1
        counts[level, old] = counts.get((level, old), 0) - 1
    return {boundary: count for boundary, count in counts.items() if count}


@pytest.mark.parametrize("cells", [1, 3])
@pytest.mark.parametrize("printed", [False, True])
def test_decoding_adds_up_the_paths_of_a_plain_twin(printed, cells):
    """Rows of any numbers, in uneven parts: each window by its path, each block by its own row."""
    strategy = polynomial_sum(0.9, 0.3, 50, printed=printed)
    way, steps = int(Way.PRINTED if printed else Way.SIGNED), 230
    count = strategy._row_count(0, steps)
    rows = np.random.default_rng(6).integers(-(1 << 40), 1 << 40, (count, cells))
    totals: dict[tuple[int, int, int], np.ndarray] = {}
    state = strategy.init_decoder([strategy.decay], cells)
    expected, out, row = np.zeros((steps, cells)), np.empty((1, steps, cells)), 0
    windows = list(zip(*(getattr(strategy, name).tolist() for name in TABLES), strict=True))
    for t in range(1, steps + 1):
        for k, (delay, length, height, scale) in enumerate(windows):
            end, total = t - delay, np.zeros(cells, np.int64)
            if end <= 0:
                continue
            for level in range(height):
                if end % (1 << level) == 0:
                    totals[k, level, end >> level] = rows[row]
                    row += 1
            path, ratios = np.zeros((height, 8), np.int64), np.full(height - 1, 2, np.int64)
            block_kernels.find_path(end, length, ratios, np.ones(height), way, path)
            for level, ends in enumerate(path[:, :4].tolist()):
                for old, new in (ends[:2], ends[2:]):
                    for i in range(min(old, new), max(old, new)):
                        total += totals[k, level, i + 1] * (1 if new > old else -1)
            expected[t - 1] += total * scale
    row = 0
    for first, last in pairwise([0, 1, 2, 40, 41, 100, 230]):
        count = strategy._row_count(first, last - first)
        measured = np.ascontiguousarray(rows[row : row + count])
        strategy.decode(state, [strategy.decay], measured, first, out[:, first:last])
        row += count
    assert expected.tolist() == out[0].tolist()


TABLES = ("_delays", "_lengths", "_heights", "_scales")


def test_coordinates_are_those_of_a_plain_loop():
    strategy = polynomial_sum(1.5, 0.5, 40)
    each, expected = strategy.coordinates_per_step, []
    for step in range(90):
        place = 0
        for delay, height in zip(strategy._delays, strategy._heights, strict=True):
            seen = step + 1 - delay
            expected += [
                step * each + place + level
                for level in range(height)
                if seen > 0 and seen % (1 << level) == 0
            ]
            place += height
    assert expected == strategy.coordinates(0, 90).tolist()
    parts = [strategy.coordinates(first, 9).tolist() for first in range(0, 90, 9)]
    assert expected == [number for part in parts for number in part]
