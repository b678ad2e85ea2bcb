"""Compiled loops of the block strategies; integers wrap modulo 2^64 and never saturate.

Positions are counted in blocks of their own level: position ``i`` of level ``l`` is the boundary
after ``i * b_l`` steps. A ring holds, for each level, the running sum of that level's blocks at
its latest positions; position 0 is zero. ``layout[l] = (first slot, number of slots)``.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from tidegauge.strategies.strategy import Float64, Int64

_FAR = 1 << 60


@njit(nogil=True, cache=True, error_model="numpy")
def _climb(
    at: Int64, cost: Int64, up: Int64, ratio: int, most: int, direction: int, back: Int64
) -> None:
    """One end of a range moves from its two positions of a level to the two of the next.

    ``direction`` is 1 or -1 where the end may only move that way, else 0.
    """
    below_floor, below_ceiling = cost[0], cost[1]
    for state in range(2):
        target = up[state] * ratio
        best = _FAR
        for source in range(2):
            before = below_floor if source == 0 else below_ceiling
            move = target - at[source]
            if before < _FAR and target <= most and move * direction >= 0:
                length = before + abs(move)
                if length < best:
                    best = length
                    back[state] = source
        cost[state] = best


@njit(nogil=True, cache=True, error_model="numpy")
def find_path(
    t: int, span: int, levels: Int64, signed: bool, opened: bool, path: Int64, scratch: Int64
) -> int:
    """Write the shortest path of blocks over the last ``span`` steps (0: all) before ``t``.

    ``path[l] = (p, p', q', q)``: the sum is ``S_l(q) - S_l(q') + S_l(p') - S_l(p)`` over all
    levels. ``scratch`` has shape (levels + 5, 4). Returns the number of blocks.
    """
    count = levels.shape[0]
    left, right, cost = scratch[count], scratch[count + 1], scratch[count + 2]
    up_left, up_right = scratch[count + 3], scratch[count + 4]
    begin = t - span if 0 < span < t else 0
    left[0], left[1], right[0], right[1] = begin, begin, t, t
    cost[0], cost[1], cost[2], cost[3] = 0, _FAR, 0, _FAR
    best, meet, best_left, best_right = _FAR, 0, 0, 0
    for level in range(count):
        for i in range(2):
            for j in range(2):
                move = right[j] - left[i]
                if cost[i] < _FAR and cost[2 + j] < _FAR and (signed or move >= 0):
                    length = cost[i] + cost[2 + j] + abs(move)
                    if length < best:
                        best, meet, best_left, best_right = length, level, i, j
        path[level, 0], path[level, 1] = left[0], left[1]
        path[level, 2], path[level, 3] = right[0], right[1]
        if level + 1 < count:
            base = levels[level + 1]
            ratio = base // levels[level]
            up_left[0], up_right[0] = begin // base, t // base
            up_left[1], up_right[1] = -(-begin // base), -(-t // base)
            most = _FAR if opened else t // levels[level]
            back = scratch[level]
            _climb(left, cost[:2], up_left, ratio, most, 0 if signed else 1, back[:2])
            _climb(right, cost[2:], up_right, ratio, most, 0 if signed else -1, back[2:])
            left[0], left[1] = up_left[0], up_left[1]
            right[0], right[1] = up_right[0], up_right[1]
    _trace(path, scratch, levels, meet, best_left, best_right)
    return best


@njit(nogil=True, cache=True, error_model="numpy")
def _trace(path: Int64, back: Int64, levels: Int64, meet: int, i: int, j: int) -> None:
    """Replace the two positions of each end by the chosen moves of each level."""
    for level in range(meet + 1, levels.shape[0]):
        path[level, :] = 0
    p, q = path[meet, i], path[meet, 2 + j]
    path[meet, 0], path[meet, 1], path[meet, 2], path[meet, 3] = p, p, p, q
    for level in range(meet - 1, -1, -1):
        ratio = levels[level + 1] // levels[level]
        i, j = back[level, i], back[level, 2 + j]
        p_up, q_up = p * ratio, q * ratio
        p, q = path[level, i], path[level, 2 + j]
        path[level, 0], path[level, 1], path[level, 2], path[level, 3] = p, p_up, q_up, q


@njit(nogil=True, cache=True, error_model="numpy")
def count_blocks(
    steps: Int64, span: int, levels: Int64, signed: bool, opened: bool, out: Int64
) -> None:
    """Number of blocks of the shortest path at each of ``steps``."""
    path = np.zeros((levels.shape[0], 4), np.int64)
    scratch = np.zeros((levels.shape[0] + 5, 4), np.int64)
    for k in range(steps.shape[0]):
        out[k] = find_path(steps[k], span, levels, signed, opened, path, scratch)


@njit(nogil=True, cache=True, error_model="numpy")
def worst_count(
    first: int, length: int, stride: int, span: int, levels: Int64, mode: int, enough: int
) -> int:
    """Largest number of blocks for ``first <= t < first + length``, or one above ``enough``.

    ``mode``: 0 unsigned, 1 signed, 2 opened. ``stride`` is coprime to ``length``: scattered steps
    meet a number above ``enough`` early.
    """
    path = np.zeros((levels.shape[0], 4), np.int64)
    scratch = np.zeros((levels.shape[0] + 5, 4), np.int64)
    worst, offset = 0, 0
    for _ in range(length):
        t = first + offset
        worst = max(worst, find_path(t, span, levels, mode > 0, mode > 1, path, scratch))
        if worst > enough:
            break
        offset = (offset + stride) % length
    return worst


@njit(nogil=True, cache=True, error_model="numpy")
def _add(ring: Int64, layout: Int64, level: int, position: int, sign: int, row: Int64) -> None:
    if position > 0:
        source = ring[layout[level, 0] + position % layout[level, 1]]
        for c in range(row.shape[0]):
            row[c] += sign * source[c]


@njit(nogil=True, cache=True, error_model="numpy")
def _add_path(ring: Int64, layout: Int64, path: Int64, row: Int64) -> None:
    for level in range(path.shape[0]):
        if path[level, 3] != path[level, 2]:
            _add(ring, layout, level, path[level, 3], 1, row)
            _add(ring, layout, level, path[level, 2], -1, row)
        if path[level, 1] != path[level, 0]:
            _add(ring, layout, level, path[level, 1], 1, row)
            _add(ring, layout, level, path[level, 0], -1, row)


@njit(nogil=True, cache=True, error_model="numpy")
def _push(ring: Int64, layout: Int64, level: int, position: int, value: Int64) -> None:
    """S_l(position) = S_l(position - 1) + value."""
    start, size = layout[level, 0], layout[level, 1]
    target, before = ring[start + position % size], ring[start + (position - 1) % size]
    for c in range(value.shape[0]):
        target[c] = value[c] + (before[c] if position > 1 else 0)


@njit(nogil=True, cache=True, error_model="numpy")
def _encode_views(
    history: Int64, values: Int64, t: int, unit: int, spans: Int64, out: Int64
) -> None:
    """Planned views of step t: ``history[t % slots]`` is the sum of the first t steps."""
    slots = history.shape[0]
    total, before = history[t % slots], history[(t - 1) % slots]
    for c in range(values.shape[0]):
        total[c] = before[c] + values[c]
    for v in range(spans.shape[0]):
        past = t - spans[v]
        old = history[past % slots]
        inside = spans[v] > 0 and past > 0
        for c in range(values.shape[0]):
            out[v, c] = (total[c] - (old[c] if inside else 0)) * unit


@njit(nogil=True, cache=True, error_model="numpy")
def encode(
    open_sums: Int64,
    history: Int64,
    x: Int64,
    first: int,
    levels: Int64,
    largest: int,
    unit: int,
    spans: Int64,
    out: Int64,
) -> None:
    """Rows of each step: the blocks that complete, smallest first, then the planned views.

    ``x`` is clamped to ``[-largest, largest]``. A completed block moves up into its parent.
    """
    row, top = 0, levels.shape[0] - 1
    values = np.empty(x.shape[1], np.int64)
    for s in range(x.shape[0]):
        t = first + s + 1
        for c in range(values.shape[0]):
            values[c] = min(max(x[s, c], -largest), largest)
        open_sums[0, :] = values
        for level in range(top + 1):
            if level > 0:
                child, sums = open_sums[level - 1], open_sums[level]
                for c in range(values.shape[0]):
                    sums[c] += child[c]
                    child[c] = 0
            if t % levels[level] != 0:
                break
            total, written = open_sums[level], out[row]
            for c in range(values.shape[0]):
                written[c] = total[c] * unit
            row += 1
        if t % levels[top] == 0:
            open_sums[top, :] = 0
        if spans.shape[0] > 0:
            _encode_views(history, values, t, unit, spans, out[row:])
            row += spans.shape[0]


@njit(nogil=True, cache=True, error_model="numpy")
def mix(
    ring: Int64,
    layout: Int64,
    fresh: Int64,
    first: int,
    steps: int,
    levels: Int64,
    spans: Int64,
    out: Int64,
) -> None:
    """The noise of every row of ``encode``: of each block that completes, of each planned view.

    ``fresh`` holds the noise of the blocks whose parents open, level after level.
    """
    count = levels.shape[0]
    path = np.zeros((count, 4), np.int64)
    scratch = np.zeros((count + 5, 4), np.int64)
    pointers = np.zeros(count, np.int64)
    for level in range(1, count):  # the top level's parent is the block itself
        size, parent = levels[level - 1], levels[level]
        opened = -(-(first + steps) // parent) - -(-first // parent)
        pointers[level] = pointers[level - 1] + opened * (parent // size)
    row = 0
    for t in range(first + 1, first + steps + 1):
        for level in range(count):
            parent = levels[min(level + 1, count - 1)]
            if (t - 1) % parent != 0:
                break
            begin = (t - 1) // levels[level]
            for child in range(parent // levels[level]):
                _push(ring, layout, level, begin + child + 1, fresh[pointers[level]])
                pointers[level] += 1
        for level in range(count):
            if t % levels[level] != 0:
                break
            out[row, :] = 0
            _add(ring, layout, level, t // levels[level], 1, out[row])
            _add(ring, layout, level, t // levels[level] - 1, -1, out[row])
            row += 1
        for v in range(spans.shape[0]):
            find_path(t, spans[v], levels, True, True, path, scratch)
            out[row, :] = 0
            _add_path(ring, layout, path, out[row])
            row += 1


@njit(nogil=True, cache=True, error_model="numpy")
def decode(
    ring: Int64,
    layout: Int64,
    measured: Int64,
    first: int,
    levels: Int64,
    signed: bool,
    planned_rows: int,
    spans: Int64,
    sources: Int64,
    grain: float,
    out: Float64,
) -> None:
    """Views from completed blocks, or straight from the row of a planned view.

    ``spans[v]``: steps of the view, 0 for all, -1 for a view that is decoded elsewhere.
    ``sources[v]``: the view's place among the planned ones, or -1. ``grain`` is one lattice unit.
    """
    count = levels.shape[0]
    path = np.zeros((count, 4), np.int64)
    scratch = np.zeros((count + 5, 4), np.int64)
    total = np.zeros(measured.shape[1], np.int64)
    row = 0
    for s in range(out.shape[1]):
        t = first + s + 1
        for level in range(count):
            if t % levels[level] != 0:
                break
            if ring.shape[0] > 0:
                _push(ring, layout, level, t // levels[level], measured[row])
            row += 1
        for v in range(spans.shape[0]):
            if sources[v] >= 0:
                for c in range(total.shape[0]):
                    out[v, s, c] = measured[row + sources[v], c] * grain
            elif spans[v] >= 0:
                find_path(t, spans[v], levels, signed, False, path, scratch)
                total[:] = 0
                _add_path(ring, layout, path, total)
                for c in range(total.shape[0]):
                    out[v, s, c] = total[c] * grain
        row += planned_rows
