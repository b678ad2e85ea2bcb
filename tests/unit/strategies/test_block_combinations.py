from collections import Counter

import numpy as np
import pytest
from twins.python_blocks import cheapest, distances, path, printed

from tidegauge.strategies.blocks.combinations import ALL, Paths, Way
from tidegauge.strategies.strategy import Int64

SHAPES = [(1,), (1, 2, 4, 8, 16), (1, 3, 9, 27), (1, 5, 10), (1, 4, 12, 60), (1, 19)]
MODES = [(False, False), (True, False), (True, True)]
SPANS = [ALL, 1, 2, 7, 24, 60, 150]
STEPS = np.arange(1, 201)


def _way(signed: bool, opened: bool) -> Way:
    return Way.OPENED if opened else Way.SIGNED if signed else Way.UNSIGNED


def count_blocks(
    levels: tuple[int, ...], span: int, steps: Int64, signed: bool, opened: bool
) -> Int64:
    paths = Paths(levels, _way(signed, opened))
    counts = paths.count_blocks(span, steps)
    assert not counts[:, :, 1].any()
    assert (counts.sum(axis=(1, 2)) == paths.prices_of_sums(span, steps)).all()
    return np.asarray(counts.sum(axis=(1, 2)))


def count_changes(
    levels: tuple[int, ...], span: int, lag: int, steps: Int64, signed: bool, opened: bool
) -> Int64:
    paths = Paths(levels, _way(signed, opened))
    return np.asarray(paths.count_blocks(span, steps, lag).sum(axis=1))


def worst_count(
    levels: tuple[int, ...], span: int, horizon: int, signed: bool, opened: bool, lag: int = 0
) -> float:
    return Paths(levels, _way(signed, opened)).worst_price(span, horizon, lag=lag)


def _number(blocks: Int64) -> list[int]:
    return [int(block) for block in blocks]


@pytest.mark.parametrize("levels", SHAPES)
@pytest.mark.parametrize(("signed", "opened"), MODES)
def test_no_combination_takes_fewer_blocks(
    levels: tuple[int, ...], signed: bool, opened: bool
) -> None:
    searched = {int(t): distances(int(t), levels, signed, opened) for t in STEPS}
    for span in SPANS:
        expected = [found[max(t - span, 0) if span else 0] for t, found in searched.items()]
        assert expected == _number(count_blocks(levels, span, STEPS, signed, opened))


@pytest.mark.parametrize("levels", SHAPES)
@pytest.mark.parametrize(("signed", "opened"), MODES)
def test_the_worst_count_is_the_largest_of_all_steps(
    levels: tuple[int, ...], signed: bool, opened: bool
) -> None:
    for span in SPANS:
        counts = count_blocks(levels, span, np.arange(1, 700), signed, opened)
        for horizon in (1, 2, 3, 8, 59, 100, 699):
            expected = int(counts[:horizon].max())
            assert expected == worst_count(levels, span, horizon, signed, opened)


def test_a_sum_one_step_short_of_a_block_needs_an_open_block() -> None:
    step = np.array([26])
    assert _number(count_blocks((1, 3, 9, 27), ALL, step, True, True)) == [2]
    assert _number(count_blocks((1, 3, 9, 27), ALL, step, True, False)) == [6]
    assert _number(count_blocks((1, 3, 9, 27), ALL, step, False, False)) == [6]


def test_only_the_steps_own_block_measures_a_single_step() -> None:
    for signed, opened in MODES:
        assert {1} == set(_number(count_blocks((1, 4, 12), 1, STEPS, signed, opened)))


@pytest.mark.parametrize(("signed", "opened"), MODES)
def test_paths_of_the_plain_twin_are_as_short(signed: bool, opened: bool) -> None:
    levels = (1, 4, 12)
    for span in SPANS:
        expected = [len(path(int(t), span, levels, signed, opened)) for t in STEPS]
        assert expected == _number(count_blocks(levels, span, STEPS, signed, opened))


def test_counts_of_a_window_repeat_with_the_largest_block() -> None:
    phase = np.arange(1024, 1024 + 135)
    near = count_blocks((1, 9, 135), 1024, phase, True, True)
    far = count_blocks((1, 9, 135), 1024, phase + 135 * 10**9, True, True)
    assert _number(near) == _number(far)
    assert max(_number(near)) == worst_count((1, 9, 135), 1024, 1 << 38, True, True)


@pytest.mark.parametrize(
    "levels", [(1, 2, 4, 8, 16, 32, 64), (1, 3, 9, 27, 81), (1, 9, 135, 2025), (1, 17, 34, 578)]
)
@pytest.mark.parametrize(("signed", "opened"), [(False, False), (True, False), (True, True)])
def test_blocks_longer_than_four_windows_never_serve_it(levels, signed, opened):
    for span in (2, 3, 5, 9, 16, 17, 33, 100):
        useful = tuple(size for size in levels if size <= 4 * span)
        steps = np.arange(span + 1, 3 * levels[-1] + span)
        expected = count_blocks(levels, span, steps, signed=signed, opened=opened)
        actual = count_blocks(useful, span, steps, signed=signed, opened=opened)
        assert (expected == actual).all()


def test_a_window_of_a_billion_steps_takes_two_ends_and_the_whole_blocks_between() -> None:
    levels, span = (1, 8, 184, 4232, 97336, 2238728, 51490744), 1 << 30
    end = worst_count(levels, ALL, levels[-1] - 1, True, True)
    worst = worst_count(levels, span, 1 << 38, True, True)
    assert worst_count(levels, ALL, span, True, True) < worst
    assert worst <= 2 * end + span // levels[-1] + 1


@pytest.mark.parametrize("levels", SHAPES)
@pytest.mark.parametrize(("signed", "opened"), MODES)
def test_a_change_takes_the_blocks_in_which_its_two_sums_differ(
    levels: tuple[int, ...], signed: bool, opened: bool
) -> None:
    for span, lag in ((1, 1), (7, 7), (24, 7), (7, 24), (60, 1), (20, 90)):
        counts = count_changes(levels, span, lag, STEPS, signed, opened)
        for t, found in zip(STEPS.tolist(), counts.tolist(), strict=True):
            factors: Counter[tuple[int, int]] = Counter()
            for level, index, sign in path(t, span, levels, signed, opened):
                factors[level, index] += sign
            for level, index, sign in (
                path(t - lag, span, levels, signed, opened) if t > lag else ()
            ):
                factors[level, index] -= sign
            sizes = Counter(abs(factor) for factor in factors.values())
            assert [sizes[1], sizes[2]] == found
            assert set(sizes) <= {0, 1, 2}


@pytest.mark.parametrize("levels", SHAPES)
@pytest.mark.parametrize(("signed", "opened"), MODES)
def test_the_worst_change_is_the_largest_of_all_steps(
    levels: tuple[int, ...], signed: bool, opened: bool
) -> None:
    for span, lag in ((1, 9), (7, 7), (24, 7), (7, 24), (60, 1), (20, 90)):
        counts = count_changes(levels, span, lag, np.arange(1, 2000), signed, opened)
        expected = int((counts @ np.array([1, 4])).max())
        assert expected == worst_count(levels, span, 8, signed, opened, lag=lag)


PRICED = [
    ((1, 2, 4, 8, 16), (1.0, 1.5, 2.0, 2.5, 2.5)),
    ((1, 3, 9, 27), (9.0, 16.0, 36.0, 100.0)),
    ((1, 5, 10), (1.0, 5.0, 10.0)),
    ((1, 19), (1.0, 7.0)),
]


@pytest.mark.parametrize(("levels", "prices"), PRICED)
@pytest.mark.parametrize("way", [Way.SIGNED, Way.OPENED])
def test_no_combination_is_cheaper(
    levels: tuple[int, ...], prices: tuple[float, ...], way: Way
) -> None:
    paths = Paths(levels, way, prices)
    searched = {int(t): cheapest(int(t), levels, prices, way is Way.OPENED) for t in STEPS}
    for span in SPANS:
        expected = [found[max(t - span, 0) if span else 0] for t, found in searched.items()]
        np.testing.assert_allclose(paths.prices_of_sums(span, STEPS), expected, rtol=1e-12)


@pytest.mark.parametrize(("levels", "prices"), PRICED)
@pytest.mark.parametrize("way", [Way.UNSIGNED, Way.SIGNED, Way.OPENED])
def test_the_worst_price_is_the_largest_of_all_steps(
    levels: tuple[int, ...], prices: tuple[float, ...], way: Way
) -> None:
    paths = Paths(levels, way, prices)
    for span in SPANS:
        found = paths.prices_of_sums(span, np.arange(1, 700))
        for horizon in (1, 2, 3, 8, 59, 100, 699):
            worst = paths.worst_price(span, horizon)
            assert found[:horizon].max() == pytest.approx(worst, rel=1e-12)


def test_prices_are_those_of_the_blocks_counted() -> None:
    levels, prices = PRICED[1]
    for way in Way:
        if way is Way.PRINTED:
            continue
        paths = Paths(levels, way, prices)
        for span in SPANS:
            counted = paths.count_blocks(span, STEPS)[:, :, 0] @ np.array(prices)
            np.testing.assert_array_equal(counted, paths.prices_of_sums(span, STEPS))


@pytest.mark.parametrize("span", [1, 2, 5, 8, 13, 16, 31, 32])
def test_the_printed_formula_takes_a_root_and_two_prefixes(span: int) -> None:
    levels = tuple(1 << level for level in range(8))
    counts = Paths(levels, Way.PRINTED).count_blocks(span, STEPS)
    assert not counts[:, :, 1].any()
    for t, found in zip(STEPS.tolist(), counts[:, :, 0].tolist(), strict=True):
        expected = Counter(level for level, _ in printed(t, span))
        assert [expected[level] for level in range(8)] == found


def test_the_printed_formula_never_takes_fewer_nodes() -> None:
    levels = tuple(1 << level for level in range(8))
    for span in range(1, 60):
        as_printed = Paths(levels, Way.PRINTED).prices_of_sums(span, STEPS)
        assert (Paths(levels, Way.SIGNED).prices_of_sums(span, STEPS) <= as_printed).all()
        if span & (span - 1) == 0:  # else a root less one step may be shorter than its parts
            unsigned = Paths(levels, Way.UNSIGNED).prices_of_sums(span, STEPS)
            assert unsigned.max() <= as_printed.max()
