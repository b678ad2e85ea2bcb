"""Compiled loops of PolynomialSum: binary trees of several windows over one delayed stream."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from tidegauge.strategies.blocks._kernels import find_path
from tidegauge.strategies.strategy import Float64, Int64

Int32 = NDArray[np.int32]
UInt64 = NDArray[np.uint64]
U = np.uint64


@njit(nogil=True, error_model="numpy", forceinline=True)
def _encode(
    cells: int,
    history: Int64,
    x: Int64,
    first: int,
    delays: Int64,
    heights: UInt64,
    weights: Int64,
    largest: int,
    out: Int64,
) -> None:
    """See :func:`encode`. Indices are unsigned: Numba looks whether others are below 0."""
    mask, row = U(history.shape[0] - 1), U(0)
    for s in range(U(x.shape[0])):
        t = first + np.int64(s) + 1
        for c in range(cells):
            value = min(max(x[s, c], -largest), largest)
            history[U(t) & mask, c] = history[U(t - 1) & mask, c] + value
        for k in range(U(delays.shape[0])):
            if t <= delays[k]:
                break
            end, size, weight = U(t - delays[k]), U(1), weights[k]
            for _ in range(heights[k]):
                new, old = end & mask, end - size & mask
                for c in range(cells):
                    out[row, c] = (history[new, c] - history[old, c]) * weight
                row += U(1)
                if end & size:
                    break
                size <<= U(1)


@njit(nogil=True, cache=True, error_model="numpy")
def encode(
    history: Int64,
    x: Int64,
    first: int,
    delays: Int64,
    heights: Int64,
    weights: Int64,
    largest: int,
    out: Int64,
) -> None:
    """Rows of each step: window after window, the blocks that complete, smallest first.

    ``history[t % slots]`` is the sum of the first t steps, slots a power of two above the reach. A
    single cell is compiled apart, without its loops.
    """
    levels = heights.view(np.uint64)
    if x.shape[1] == 1:
        _encode(1, history, x, first, delays, levels, weights, largest, out)
    else:
        _encode(x.shape[1], history, x, first, delays, levels, weights, largest, out)


@njit(nogil=True, cache=True, error_model="numpy")
def number_rows(
    first: int, steps: int, delays: Int64, heights: Int64, each: int, out: Int64
) -> None:
    """The number of each row, ``step * each + place``, in the order of :func:`encode`."""
    row, windows = U(0), U(delays.shape[0])
    for s in range(first, first + steps):
        number = s * each
        for k in range(windows):
            end = s + 1 - delays[k]
            if end <= 0:
                break
            for level in range(heights[k]):
                out[row] = number + level
                row += U(1)
                if end & 1:
                    break
                end >>= 1
            number += heights[k]


@njit(nogil=True, cache=True, error_model="numpy")
def find_moves(lengths: Int64, heights: Int64, mode: int, starts: Int64, moves: Int32) -> int:
    """List the moves of each window's path, for each place of its end in its largest block.

    A path does not depend on which of the largest blocks its end lies in, once the window has
    begun after step 0. ``moves[i] = (level, from, to)`` counts positions from the last boundary of
    the largest blocks; those of window k with its end r steps after it are the rows from
    ``starts[j]`` to ``starts[j + 1]``, j = r + the sizes of the windows before. Returns how many.
    """
    most = heights.max()
    ratios, prices = np.full(most - 1, 2, np.int64), np.ones(most)
    path = np.zeros((most, 8), np.int64)
    found, place = 0, 0
    for k in range(lengths.shape[0]):
        height, size = heights[k], 1 << (heights[k] - 1)
        boundary = (lengths[k] // size + 2) * size
        for r in range(size):
            starts[place] = found
            place += 1
            taken = path[:height]
            find_path(boundary + r, lengths[k], ratios[: height - 1], prices, mode, taken)
            for level in range(height):
                for end in range(0, 4, 2):
                    if taken[level, end] != taken[level, end + 1]:
                        moves[found, 0] = level
                        moves[found, 1] = taken[level, end] - (boundary >> level)
                        moves[found, 2] = taken[level, end + 1] - (boundary >> level)
                        found += 1
    starts[place] = found
    return found


@njit(nogil=True, cache=True, error_model="numpy")
def _cancel(plus: Int64, minus: Int64, count: int) -> int:
    """Drop pairs of running sums up to one boundary, added and subtracted; return what is left."""
    for a in range(count):
        for b in range(count):
            if a < count and b < count and plus[a] == minus[b]:
                plus[a], minus[b] = plus[count - 1], minus[count - 1]
                count -= 1
    return count


@njit(nogil=True, cache=True, error_model="numpy")
def _level_above(r: int, top: int) -> int:
    """The level of the second binary digit of r from the right; without one, the top."""
    rest, level = r & (r - 1), 0
    while level < top and not rest >> level & 1:
        level += 1
    return level


@njit(nogil=True, cache=True, error_model="numpy")
def _alike(far: Int32, before: int, now: int, end: int) -> int:
    """How many of the moves ``now .. end - 1`` are, in order, those from ``before`` on."""
    most, n = min(now - before, end - now), 0
    while n < most:
        for part in range(3):
            if far[before + n, part] != far[now + n, part]:
                return n
        n += 1
    return n


@njit(nogil=True, cache=True, error_model="numpy")
def find_far(
    starts: Int64,
    moves: Int32,
    heights: Int64,
    begins: Int64,
    kept: Int64,
    larger: Int64,
    far: Int32,
) -> int:
    """List what is left of each list of moves without the end's blocks in its largest block.

    These are the blocks of the binary digits of r, which a counter adds up; the others change
    little as the end goes on. So they are listed largest first, and the first ``kept[j]`` of place
    j are those of the place before. ``begins`` and ``far`` are as ``starts`` and ``moves``.
    """
    plus, minus = np.empty(4, np.int64), np.empty(4, np.int64)
    found, place = 0, 0
    for k in range(heights.shape[0]):
        top = heights[k] - 1
        for r in range(1 << top):
            begins[place] = found
            i = starts[place + 1] - 1
            for level in range(top, -1, -1):
                count = 0
                while i >= starts[place] and moves[i, 0] == level:
                    minus[count], plus[count] = moves[i, 1], moves[i, 2]
                    count += 1
                    i -= 1
                digit = r >> level
                if level < top and digit & 1:
                    minus[count], plus[count] = digit, digit - 1
                    count += 1
                for a in range(_cancel(plus, minus, count)):
                    far[found, 0], far[found, 1], far[found, 2] = level, minus[a], plus[a]
                    found += 1
            larger[place] = _level_above(r, top)
            kept[place] = _alike(far, begins[place - 1], begins[place], found) if r > 0 else 0
            place += 1
    begins[place] = found
    return found


@njit(nogil=True, cache=True, error_model="numpy")
def _begin_near(
    ring: Int64, layout: Int64, first: int, delays: Int64, heights: Int64, near: Int64
) -> None:
    """Add up the blocks of each window's end at the first step, as :func:`decode` goes on to."""
    place = 0
    for k in range(delays.shape[0]):
        end, after = max(first - delays[k], 0), place + heights[k] - 1
        for c in range(near.shape[1]):
            near[after, c] = 0  # the largest blocks are none of the end's
        for level in range(heights[k] - 2, -1, -1):
            position, at = end >> level, place + level
            if position & 1:
                start, mask = layout[at, 0], layout[at, 1] - 1
                new, old = start + (position & mask), start + ((position - 1) & mask)
                for c in range(near.shape[1]):
                    near[at, c] = near[after, c] + ring[new, c] - ring[old, c]
                after = at
        place += heights[k]


@njit(nogil=True, error_model="numpy", forceinline=True)
def _push_rows(
    cells: int,
    ring: Int64,
    layout: UInt64,
    place: np.uint64,
    last: np.uint64,
    end: np.uint64,
    measured: Int64,
    row: np.uint64,
) -> tuple[np.uint64, np.uint64]:
    """Extend the running sums of a window's blocks that are complete; the largest, the next row."""
    at, position = place, end
    while True:
        start, mask = layout[at, 0], layout[at, 1] - U(1)
        new, old = start + (position & mask), start + (position - U(1) & mask)
        for c in range(cells):
            ring[new, c] = measured[row, c] + ring[old, c]
        row += U(1)
        if position & U(1) or at == last:
            return at, row
        position >>= U(1)
        at += U(1)


@njit(nogil=True, error_model="numpy", forceinline=True)
def _sum_far(
    cells: int,
    ring: Int64,
    layout: UInt64,
    place: np.uint64,
    boundary: np.uint64,
    far: Int32,
    begin: np.uint64,
    after: np.uint64,
    sums: Int64,
    base: np.uint64,
) -> np.uint64:
    """Add far moves to the sum at ``base``, one after another; return where the last sum is."""
    for i in range(begin, after):
        level = U(far[i, 0])
        start, mask = layout[place + level, 0], layout[place + level, 1] - U(1)
        new = start + ((boundary >> level) + U(far[i, 2]) & mask)
        old = start + ((boundary >> level) + U(far[i, 1]) & mask)
        for c in range(cells):
            sums[base + U(1), c] = sums[base, c] + ring[new, c] - ring[old, c]
        base += U(1)
    return base


@njit(nogil=True, error_model="numpy", forceinline=True)
def _copy(cells: int, source: Int64, place: np.uint64, target: Int64, slot: np.uint64) -> None:
    """Copy a row."""
    for c in range(cells):
        target[slot, c] = source[place, c]


@njit(nogil=True, error_model="numpy", forceinline=True)
def _decode(
    cells: int,
    ring: Int64,
    layout: UInt64,
    measured: Int64,
    first: int,
    delays: Int64,
    lengths: Int64,
    heights: UInt64,
    scales: Float64,
    begins: UInt64,
    kept: UInt64,
    larger: UInt64,
    far: Int32,
    near: Int64,
    sums: Int64,
    out: Float64,
) -> None:
    """See :func:`decode`. Indices are unsigned: Numba looks whether others are below 0."""
    most = U(sums.shape[0] // delays.shape[0])
    row = U(0)
    for s in range(U(out.shape[0])):
        place, listed = U(0), U(0)
        for k in range(U(delays.shape[0])):
            seen = first + np.int64(s) + 1 - delays[k]
            if seen <= 0:
                break
            end, top = U(seen), heights[k] - U(1)
            last = place + top
            at, row = _push_rows(cells, ring, layout, place, last, end, measured, row)
            r, base = end & (U(1) << top) - U(1), k * most
            if seen > lengths[k]:
                begin, after = begins[listed + r], begins[listed + r + U(1)]
                if s > 0 and seen > lengths[k] + 1:
                    begin += kept[listed + r]
                    base += kept[listed + r]
                base = _sum_far(cells, ring, layout, place, end - r, far, begin, after, sums, base)
            else:  # everything since the start
                base += U(1)
                _copy(
                    cells, ring, layout[last, 0] + (end >> top & layout[last, 1] - U(1)), sums, base
                )
            if at != last:
                before = place + larger[listed + r]
                for c in range(cells):
                    near[at, c] = near[before, c] + measured[row - U(1), c]
            for c in range(cells):
                out[s, c] += (near[at, c] + sums[base, c]) * scales[k]
            place = last + U(1)
            listed += U(1) << top


@njit(nogil=True, cache=True, error_model="numpy")
def decode(
    ring: Int64,
    layout: Int64,
    measured: Int64,
    first: int,
    delays: Int64,
    lengths: Int64,
    heights: Int64,
    scales: Float64,
    begins: Int64,
    kept: Int64,
    larger: Int64,
    far: Int32,
    out: Float64,
) -> None:
    """The sum over all windows, each from its own blocks: shape (steps, cells).

    ``begins``, ``kept`` and ``far`` are those of :func:`find_far`. Of window k, ``near[l]`` is the
    sum of the end's blocks of level l and above, for each l that has one, and ``sums[d]`` that of
    the first d far moves: a step adds about one of each. The slot of a level's position 0 holds
    0 as long as a window reaches back to it. A single cell is compiled apart, without its loops.
    """
    cells, most = out.shape[1], 2 * heights.max() + 1
    near = np.empty((layout.shape[0], cells), np.int64)
    sums = np.zeros((delays.shape[0] * most, cells), np.int64)
    out[:, :] = 0.0
    _begin_near(ring, layout, first, delays, heights, near)
    public = ring, layout.view(np.uint64), measured, first
    windows = delays, lengths, heights.view(np.uint64), scales
    places = begins.view(np.uint64), kept.view(np.uint64), larger.view(np.uint64)
    if cells == 1:
        _decode(1, *public, *windows, *places, far, near, sums, out)
    else:
        _decode(cells, *public, *windows, *places, far, near, sums, out)
