"""Compiled loops of the tree of decayed sums; integers wrap modulo 2^64 and never saturate.

The node that ends at step t, from 1, has as many steps as the lowest bit of t; its level is the
place of that bit.
"""

from __future__ import annotations

from numba import njit

from tidegauge.strategies.strategy import Float64, Int64


@njit(nogil=True, cache=True, error_model="numpy")
def level_of(t: int) -> int:
    """The place of the lowest bit of t > 0."""
    level = 0
    while not t & 1:
        t >>= 1
        level += 1
    return level


@njit(nogil=True, cache=True, error_model="numpy")
def encode(
    open_sums: Int64,
    x: Int64,
    first: int,
    high: Int64,
    low: Int64,
    bits: int,
    shift: int,
    largest: int,
    out: Int64,
) -> None:
    """Add each step to every open node that covers it, weighted by its age when the node ends."""
    cells = x.shape[1]
    mask = low.shape[0] - 1
    drop = 62 - bits
    half = 1 << (drop - 1)
    reach = high.shape[0] << shift
    for i in range(x.shape[0]):
        t = first + i + 1
        for cell in range(cells):
            out[i, cell] = min(max(x[i, cell], -largest), largest)
        end = t
        while end - t < reach:
            weight = (high[(end - t) >> shift] * low[(end - t) & mask] + half) >> drop
            if weight == 0:
                break
            level = level_of(end)
            for cell in range(cells):
                open_sums[level, cell] += weight * out[i, cell]
            end += end & -end
        level = level_of(t)
        for cell in range(cells):
            out[i, cell] = open_sums[level, cell]
            open_sums[level, cell] = 0


@njit(nogil=True, cache=True, error_model="numpy")
def decode(
    nodes: Float64,
    sums: Float64,
    measured: Int64,
    first: int,
    powers: Float64,
    unit: float,
    out: Float64,
) -> None:
    """Write the decayed sum of each step; keep the latest node and sum of each level."""
    for i in range(measured.shape[0]):
        t = first + i + 1
        level = level_of(t)
        before = t & (t - 1)  # where the node begins
        above = level_of(before) if before else level
        for cell in range(measured.shape[1]):
            node = measured[i, cell] * unit
            value = node + powers[level] * sums[above, cell] if before else node
            nodes[level, cell] = node
            sums[level, cell] = value
            out[i, cell] = value


@njit(nogil=True, cache=True, error_model="numpy")
def decode_steps(
    nodes: Float64, measured: Int64, first: int, powers: Float64, unit: float, out: Float64
) -> None:
    """Write each step by itself: its node without what the nodes inside it hold of earlier steps.

    ``nodes``: the latest of each level, kept here in an array of its own.
    """
    for i in range(measured.shape[0]):
        level = level_of(first + i + 1)
        for cell in range(measured.shape[1]):
            value = node = measured[i, cell] * unit
            for lower in range(level):
                value -= powers[lower] * nodes[lower, cell]
            nodes[level, cell] = node
            out[i, cell] = value
