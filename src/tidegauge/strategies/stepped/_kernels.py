"""Compiled loops of PolynomialSum: binary trees of several windows over one delayed stream."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from tidegauge.strategies.blocks._kernels import _write_path, find_path
from tidegauge.strategies.strategy import Float64, Int64

Int32 = NDArray[np.int32]


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

    ``history[t % slots]`` is the sum of the first t steps, slots a power of two above the reach.
    """
    mask, row = history.shape[0] - 1, 0
    for s in range(x.shape[0]):
        t = first + s + 1
        for c in range(x.shape[1]):
            value = min(max(x[s, c], -largest), largest)
            history[t & mask, c] = history[(t - 1) & mask, c] + value
        for k in range(delays.shape[0]):
            end = t - delays[k]
            if end <= 0:
                break
            for level in range(heights[k]):
                size = 1 << level
                if end % size != 0:
                    break
                for c in range(x.shape[1]):
                    total = history[end & mask, c] - history[(end - size) & mask, c]
                    out[row, c] = total * weights[k]
                row += 1


@njit(nogil=True, cache=True, error_model="numpy")
def number_rows(
    first: int, steps: int, delays: Int64, heights: Int64, each: int, out: Int64
) -> None:
    """The number of each row, ``step * each + place``, in the order of :func:`encode`."""
    row = 0
    for s in range(first, first + steps):
        place = 0
        for k in range(delays.shape[0]):
            end = s + 1 - delays[k]
            if end <= 0:
                break
            for level in range(heights[k]):
                if end % (1 << level) != 0:
                    break
                out[row] = s * each + place + level
                row += 1
            place += heights[k]


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
def _push_rows(
    ring: Int64, layout: Int64, place: int, height: int, end: int, measured: Int64, row: int
) -> int:
    """Extend the running sums of a window's blocks that are complete; return the next row.

    The window's levels are those of ``layout`` from ``place`` on: no slice, which costs more.
    """
    for level in range(height):
        if end & ((1 << level) - 1):
            break
        start, mask = layout[place + level, 0], layout[place + level, 1] - 1
        position = end >> level
        target, before = start + (position & mask), start + ((position - 1) & mask)
        for c in range(measured.shape[1]):
            ring[target, c] = measured[row, c] + ring[before, c]
        row += 1
    return row


@njit(nogil=True, cache=True, error_model="numpy")
def _sum_moves(
    ring: Int64,
    layout: Int64,
    place: int,
    moves: Int32,
    some: tuple[int, int],
    boundary: int,
    total: Int64,
) -> None:
    """Add up the running sums at the ends of some moves of one window: (1, cells)."""
    total[0, :] = 0
    for i in range(some[0], some[1]):
        level = moves[i, 0]
        start, mask = layout[place + level, 0], layout[place + level, 1] - 1
        minus, plus = (boundary >> level) + moves[i, 1], (boundary >> level) + moves[i, 2]
        old, new = start + (minus & mask), start + (plus & mask)
        for c in range(total.shape[1]):  # the sum up to position 0 is 0, whatever its slot holds
            total[0, c] += ring[new, c] * (plus > 0) - ring[old, c] * (minus > 0)


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
    mode: int,
    starts: Int64,
    moves: Int32,
    out: Float64,
) -> None:
    """The sum over all windows, each from its own blocks: shape (steps, cells).

    ``starts`` and ``moves`` are those of :func:`find_moves`.
    """
    most, cells = heights.max(), out.shape[1]
    ratios, prices = np.full(most - 1, 2, np.int64), np.ones(most)
    path, total = np.zeros((most, 8), np.int64), np.zeros((1, cells), np.int64)
    row = 0
    for s in range(out.shape[0]):
        out[s, :] = 0.0
        place, listed = 0, 0
        for k in range(delays.shape[0]):
            end, height = first + s + 1 - delays[k], heights[k]
            if end <= 0:
                break
            row = _push_rows(ring, layout, place, height, end, measured, row)
            size = 1 << (height - 1)
            if end > lengths[k]:
                boundary = end & -size
                at = listed + end - boundary
                some = starts[at], starts[at + 1]
                _sum_moves(ring, layout, place, moves, some, boundary, total)
            else:  # everything since the start: once
                mine = layout[place : place + height]
                find_path(end, lengths[k], ratios[: height - 1], prices, mode, path[:height])
                _write_path(ring, mine, path[:height], total, 0)
            for c in range(cells):
                out[s, c] += total[0, c] * scales[k]
            place += height
            listed += size
