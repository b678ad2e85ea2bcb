"""The compiled loops of the block strategies against plain Python, byte for byte."""

from fractions import Fraction

import numpy as np
import pytest
from twins.python_blocks import block_numbers, block_totals, completing, path, printed, rows

from tidegauge.strategies.blocks import Blocks, OpenBlocks, _kernels
from tidegauge.strategies.blocks.levels import row_coordinates
from tidegauge.strategies.blocks.rings import moved
from tidegauge.strategies.decay import Decay, Running, Step, Window
from tidegauge.strategies.stepped import PolynomialSum
from tidegauge.strategies.strategy import Int64
from tidegauge.strategies.trees import window_sum

CASES = [
    OpenBlocks((1,), (Running(), Window(5))),
    OpenBlocks((1, 3, 9), (Running(),)),
    OpenBlocks((1, 4, 12), (Window(30), Running(), Window(2)), lattice_bits=3),
]
STEPS = 60


def _spans(views: tuple[Decay, ...]) -> list[int]:
    return [view.steps if isinstance(view, Window) else 0 for view in views]


def _stream(cells: int, bits: int = 40) -> Int64:
    source = np.random.Generator(np.random.PCG64(5))
    return source.integers(-(1 << bits), 1 << bits, (STEPS, cells))


@pytest.mark.parametrize("strategy", CASES)
@pytest.mark.parametrize("cells", [1, 5])
def test_the_noise_of_the_rows_is_that_of_their_blocks(strategy: OpenBlocks, cells: int) -> None:
    numbers = block_numbers(strategy.levels, 0, STEPS)
    draws = np.random.Generator(np.random.PCG64(6)).integers(
        -(1 << 62), 1 << 62, (len(numbers), cells)
    )
    expected = rows(
        dict(zip(numbers, draws, strict=True)), strategy.levels, _spans(strategy.views), 0, STEPS
    )
    mixed = strategy.mix(strategy.init_noise(cells), draws, 0, STEPS)
    assert expected.tobytes() == mixed.tobytes()


@pytest.mark.parametrize("strategy", CASES)
def test_blocks_draw_when_their_parents_open(strategy: OpenBlocks) -> None:
    for first, steps in ((0, STEPS), (0, 1), (7, 6), (11, 1), (12, 30)):
        expected = [
            ((index + 1) * strategy.levels[level] - 1) * 64 + level
            for level, index in block_numbers(strategy.levels, first, steps)
        ]
        assert expected == strategy.noise_coordinates(first, steps).tolist()


@pytest.mark.parametrize("cuts", [range(1, STEPS + 1), [17, 18, 40, STEPS], [0, 31, 31, STEPS]])
@pytest.mark.parametrize("strategy", CASES)
def test_cuts_leave_no_trace_in_the_noise(strategy: OpenBlocks, cuts: list[int]) -> None:
    numbers = strategy.noise_coordinates(0, STEPS)
    draws = np.random.Generator(np.random.PCG64(7)).integers(-100, 100, (len(numbers), 2))
    by_number = dict(zip(numbers.tolist(), draws, strict=True))
    whole = strategy.mix(strategy.init_noise(2), draws, 0, STEPS)
    state, first, parts, drawn = strategy.init_noise(2), 0, [], []
    for cut in cuts:
        fresh = strategy.noise_coordinates(first, cut - first).tolist()
        drawn += fresh
        values = np.array([by_number[n] for n in fresh], np.int64).reshape(-1, 2)
        state = {name: array.copy() for name, array in state.items()}
        parts.append(strategy.mix(state, values, first, cut - first))
        first = cut
    assert whole.tobytes() == np.concatenate(parts).tobytes()
    assert sorted(numbers.tolist()) == sorted(drawn)


@pytest.mark.parametrize("cuts", [[700], [250, 270, 700], [13, 300, 513, 700]])
def test_noise_of_open_blocks_survives_the_growth_of_the_rings(cuts: list[int]) -> None:
    strategy = OpenBlocks((1, 10, 100), (Window(600), Running()))
    numbers = block_numbers(strategy.levels, 0, 700)
    draws = np.random.Generator(np.random.PCG64(9)).integers(-100, 100, (len(numbers), 2))
    values = dict(zip(numbers, draws, strict=True))
    expected = rows(values, strategy.levels, _spans(strategy.views), 0, 700)
    state, first, parts = strategy.init_noise(2), 0, []
    for cut in cuts:
        fresh = [values[block] for block in block_numbers(strategy.levels, first, cut - first)]
        parts.append(strategy.mix(state, np.array(fresh), first, cut - first))
        first = cut
    assert expected.tobytes() == np.concatenate(parts).tobytes()


@pytest.mark.parametrize("strategy", CASES)
@pytest.mark.parametrize("cells", [1, 5])
def test_rows_are_the_exact_totals_of_blocks_and_views(strategy: OpenBlocks, cells: int) -> None:
    x = _stream(cells, 20)
    expected = rows(
        block_totals(x, strategy.levels), strategy.levels, _spans(strategy.views), 0, STEPS
    )
    encoded = strategy.encode(strategy.init_encoder(cells), x, 0)
    assert (expected << strategy.lattice_bits).tobytes() == encoded.tobytes()


@pytest.mark.parametrize(
    "strategy", [Blocks((1, 4, 12)), Blocks((1, 3, 9, 27), lattice_bits=2), Blocks.base(2, 60)]
)
@pytest.mark.parametrize("cells", [1, 5])
def test_views_are_sums_of_the_noisy_blocks_of_their_paths(strategy: Blocks, cells: int) -> None:
    views: list[Decay] = [Running(), Step(), Window(7), Window(40), Window(500)]
    numbers = [block for t in range(1, STEPS + 1) for block in completing(strategy.levels, t)]
    measured = np.random.Generator(np.random.PCG64(8)).integers(
        -(1 << 40), 1 << 40, (len(numbers), cells)
    )
    values = dict(zip(numbers, measured, strict=True))
    out = np.empty((len(views), STEPS, cells))
    strategy.decode(strategy.init_decoder(views, cells), views, measured, 0, out)
    for place, view in enumerate(views):
        span = view.steps if isinstance(view, Window) else int(isinstance(view, Step))
        for t in range(1, STEPS + 1):
            blocks = path(t, span, strategy.levels, strategy.signed, False)
            expected = np.zeros(cells, np.int64)
            for level, index, sign in blocks:
                expected += sign * values[level, index]
            assert (expected * 0.5**strategy.lattice_bits).tobytes() == out[place, t - 1].tobytes()


def test_totals_above_the_largest_are_clamped() -> None:
    strategy = OpenBlocks((1, 2), (Window(3),), lattice_bits=10)
    largest = strategy.largest_total
    assert largest * int(strategy.absolute_gain) << 10 <= 1 << 62
    x = np.array([[2 * largest], [-(1 << 63)], [largest + 1]])
    clamped = np.clip(x, -largest, largest)
    encoded = strategy.encode(strategy.init_encoder(1), x, 0)
    assert strategy.encode(strategy.init_encoder(1), clamped, 0).tobytes() == encoded.tobytes()


def test_memory_does_not_grow_with_the_stream() -> None:
    completed = Blocks((1, 4, 12))
    strategy = OpenBlocks((1, 4, 12), (Running(), Window(30)))
    public, private = completed.init_decoder([Running(), Window(9)], 1), strategy.init_encoder(1)
    noise = strategy.init_noise(1)
    sizes = None
    for first in range(0, 9600, 960):
        x = np.ones((960, 1), np.int64)
        completed.decode(
            public,
            [Running(), Window(9)],
            completed.encode(completed.init_encoder(1), x, first),
            first,
            np.empty((2, 960, 1)),
        )
        strategy.encode(private, x, first)
        draws = np.zeros((len(strategy.noise_coordinates(first, 960)), 1), np.int64)
        strategy.mix(noise, draws, first, 960)
        now = [array.size for state in (public, private, noise) for array in state.values()]
        assert sizes is None or sizes == now
        sizes = now


@pytest.mark.parametrize("cells", [1, 5])
def test_rows_with_weights_are_so_many_times_the_totals(cells: int) -> None:
    strategy, x = Blocks((1, 4, 12), lattice_bits=3, weights=(5, 4, 3)), _stream(cells, 20)
    plain = Blocks((1, 4, 12), lattice_bits=3)
    level = strategy.coordinates(0, STEPS) % 64
    expected = plain.encode(plain.init_encoder(cells), x, 0) * np.array([5, 4, 3])[level][:, None]
    assert expected.tobytes() == strategy.encode(strategy.init_encoder(cells), x, 0).tobytes()


@pytest.mark.parametrize("cells", [1, 5])
def test_views_of_weighted_blocks_divide_by_the_weights(cells: int) -> None:
    strategy = Blocks((1, 2, 4, 8), False, weights=(8, 4, 2, 1))  # powers of two: exact in floats
    views: list[Decay] = [Running(), Step(), Window(7), Window(40)]
    numbers = [block for t in range(1, STEPS + 1) for block in completing(strategy.levels, t)]
    measured = np.random.Generator(np.random.PCG64(8)).integers(
        -(1 << 40), 1 << 40, (len(numbers), cells)
    )
    values = dict(zip(numbers, measured, strict=True))
    out = np.empty((len(views), STEPS, cells))
    strategy.decode(strategy.init_decoder(views, cells), views, measured, 0, out)
    for place, view in enumerate(views):
        span = view.steps if isinstance(view, Window) else int(isinstance(view, Step))
        for t in range(1, STEPS + 1):
            expected = np.zeros(cells)
            for level, index, sign in path(t, span, strategy.levels, False, False):
                expected += sign * values[level, index] / strategy.weights[level]
            np.testing.assert_array_equal(expected, out[place, t - 1])


@pytest.mark.parametrize("span", [1, 5, 8, 13])
def test_the_printed_formula_adds_a_root_and_two_prefixes(span: int) -> None:
    strategy = window_sum(span, "paper")
    numbers = [block for t in range(1, STEPS + 1) for block in completing(strategy.levels, t)]
    measured = np.random.Generator(np.random.PCG64(8)).integers(
        -(1 << 40), 1 << 40, (len(numbers), 1)
    )
    values = dict(zip(numbers, measured, strict=True))
    out = np.empty((1, STEPS, 1))
    views = [Window(span)]
    strategy.decode(strategy.init_decoder(views, 1), views, measured, 0, out)
    for t in range(1, STEPS + 1):
        expected = sum(
            (factor * values[block] for block, factor in printed(t, span).items()),
            start=np.zeros(1, np.int64),
        )
        assert expected.tolist() == out[0, t - 1].tolist()


@pytest.mark.parametrize("cells", [1, 3])
def test_stepped_windows_are_sums_of_delayed_trees(cells: int) -> None:
    strategy = PolynomialSum(Fraction(1, 2), (0, 1, 3), (2, 5, 13), (7, 3, 2))
    x = _stream(cells, 20)
    rows_now = strategy.encode(strategy.init_encoder(cells), x, 0)
    delays, heights, lengths = (0, 2, 5), (1, 2, 3), (2, 3, 8)
    noise = np.random.Generator(np.random.PCG64(9)).integers(-(1 << 30), 1 << 30, rows_now.shape)
    values: list[dict[tuple[int, int], Int64]] = [{}, {}, {}]
    expected_rows, row, expected = [], 0, np.zeros((STEPS, cells))
    for t in range(1, STEPS + 1):
        for k, (delay, height, length) in enumerate(zip(delays, heights, lengths, strict=True)):
            levels = tuple(1 << level for level in range(height))
            if t <= delay:
                continue
            for level, index in completing(levels, t - delay):
                block = x[index << level : (index + 1) << level].sum(axis=0) * strategy.weights[k]
                expected_rows.append(block)
                values[k][level, index] = block + noise[row]
                row += 1
            total = np.zeros(cells, np.int64)
            for level, index, sign in path(t - delay, length, levels, True, False):
                total += sign * values[k][level, index]
            expected[t - 1] += total * (0.5 ** strategy.powers[k] / strategy.weights[k])
    assert np.array(expected_rows).tobytes() == rows_now.tobytes()
    out = np.empty((1, STEPS, cells))
    views: list[Decay] = [strategy.decay]
    strategy.decode(strategy.init_decoder(views, cells), views, rows_now + noise, 0, out)
    assert expected.tobytes() == out[0].tobytes()


@pytest.mark.parametrize("mode", [0, 1, 2, 3])
def test_paths_have_no_block_beyond_the_levels_they_tell(mode: int) -> None:
    ratios, prices = np.full(5, 2, np.int64), np.ones(6)
    path = np.full((6, 8), 7, np.int64)
    told = set()
    for t in range(1, 200):
        for span in (0, 1, 6, 13, 64):
            used = _kernels.find_path(t, span, ratios, prices, mode, path)
            assert (path[used:, 0] == path[used:, 1]).all()
            assert (path[used:, 2] == path[used:, 3]).all()
            told.add(used)
    assert len(told) > (0 if mode == 3 else 3)


@pytest.mark.parametrize("levels", [(1,), (1, 3, 9), (1, 2, 4, 8), (1, 5, 10)])
@pytest.mark.parametrize("planned", [0, 2])
def test_numbers_of_rows_are_those_of_a_plain_loop(levels: tuple[int, ...], planned: int) -> None:
    expected = [
        64 * step + place
        for step in range(7, 70)
        for place in range(len(levels) + planned)
        if place >= len(levels) or (step + 1) % levels[place] == 0
    ]
    assert expected == row_coordinates(levels, planned, 7, 63).tolist()


def test_larger_rings_hold_every_position_of_the_smaller() -> None:
    layout, larger_layout = np.array([[0, 8], [8, 4]]), np.array([[0, 32], [32, 8]])
    ring, larger = np.arange(24).reshape(12, 2), np.zeros((40, 2), np.int64)
    _kernels.move_rings(ring, layout, larger, larger_layout, np.array([21, 5]))
    for level, latest in enumerate((21, 5)):
        begin, slots = larger_layout[level]
        old = ring[layout[level, 0] : layout[level].sum()]
        assert moved(old, slots, latest).tolist() == larger[begin : begin + slots].tolist()
