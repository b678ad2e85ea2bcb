"""Compiled loops of PolynomialSum: binary trees of several windows over one delayed stream."""

from __future__ import annotations

import numpy as np
from numba import njit

from tidegauge.strategies.blocks._kernels import _push, _write_path, find_path
from tidegauge.strategies.strategy import Float64, Int64


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
    out: Float64,
) -> None:
    """The sum over all windows, each from its own blocks: shape (steps, cells)."""
    most = heights.max()
    ratios, prices = np.full(most - 1, 2, np.int64), np.ones(most)
    path, total = np.zeros((most, 8), np.int64), np.zeros((1, out.shape[1]), np.int64)
    row = 0
    for s in range(out.shape[0]):
        out[s, :] = 0.0
        place = 0
        for k in range(delays.shape[0]):
            end, height = first + s + 1 - delays[k], heights[k]
            if end <= 0:
                break
            mine = layout[place : place + height]
            for level in range(height):
                if end % (1 << level) != 0:
                    break
                _push(ring, mine, level, end >> level, measured, row)
                row += 1
            find_path(end, lengths[k], ratios[: height - 1], prices, mode, path[:height])
            _write_path(ring, mine, path[:height], total, 0)
            for c in range(out.shape[1]):
                out[s, c] += total[0, c] * scales[k]
            place += height
