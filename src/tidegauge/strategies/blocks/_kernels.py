"""Compiled loops of the block strategies; integers wrap modulo 2^64 and never saturate.

Positions are counted in blocks of their own level: position ``i`` of level ``l`` is the boundary
after ``i * b_l`` steps. A ring holds, for each level, the running sum of that level's blocks at
its latest positions; position 0 is zero. ``layout[l] = (first slot, number of slots)``, the
number a power of two.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from tidegauge.strategies.strategy import Float64, Int64

_FAR = float(1 << 60)


@njit(nogil=True, cache=True, error_model="numpy")
def _parent(position: int, ratio: int) -> int:
    """The boundary below, in blocks of ``ratio``; halves, which trees have, without a division."""
    return position >> 1 if ratio == 2 else position // ratio


@njit(nogil=True, cache=True, error_model="numpy")
def _climb(
    below: float, above: float, at: int, odd: int, target: int, price: float
) -> tuple[float, int]:
    """Least cost of an end at ``target`` from its two positions, and which: 0 below, 1 above."""
    from_below = below + abs(target - at) * price
    from_above = above + abs(target - at - odd) * price
    return (from_above, 1) if from_above < from_below else (from_below, 0)


@njit(nogil=True, cache=True, error_model="numpy")
def find_path(t: int, span: int, ratios: Int64, prices: Float64, mode: int, path: Int64) -> int:
    """Write the cheapest path of blocks over the last ``span`` steps (0: all) before ``t``.

    ``path[l] = (p, p', q', q)``: the sum is ``S_l(q) - S_l(q') + S_l(p') - S_l(p)`` over all
    levels. ``ratios[l]`` is the size of level l + 1 in blocks of level l; ``path`` has shape
    (levels, 8), columns 4 to 7 are scratch. ``mode``: 0 the fewest blocks, none subtracted; 1 and
    2 (blocks that are open too) the least sum of ``prices``; 3 the printed formula.

    Returns how many levels it may use, the smallest; it has no block of the others.
    """
    top: int = ratios.shape[0]
    if mode == 3 and span > 0 and _write_printed(t, span, ratios, path):
        return top + 1
    if mode != 2:
        used: int = _find_completed(t, span, ratios, prices, mode == 1, path)
        return used
    p = t - span if 0 < span < t else 0
    q = t
    p_odd, q_odd = 0, 0  # 1: the boundary above differs from the one below
    a, b, c, d = 0.0, _FAR, 0.0, _FAR  # costs of p below, p above, q below, q above
    best, meet, state = _FAR, 0, 0
    for level in range(top + 1):
        price = prices[level]
        for i in range(2):
            for j in range(2):
                move = q + j * q_odd - p - i * p_odd
                cost = (b if i else a) + (d if j else c) + abs(move) * price
                if cost < best:
                    best, meet, state = cost, level, 2 * i + j
        path[level, 0], path[level, 1], path[level, 2], path[level, 3] = p, p + p_odd, q, q + q_odd
        if p == q:  # within one block, or at one boundary: larger blocks cannot help
            break
        if level < top:
            ratio = ratios[level]
            up = _parent(p, ratio)
            odd = 1 if p_odd or up * ratio != p else 0
            low, path[level, 4] = _climb(a, b, p, p_odd, up * ratio, price)
            high, path[level, 5] = _climb(a, b, p, p_odd, (up + odd) * ratio, price)
            a, b, p, p_odd = low, high, up, odd
            up = _parent(q, ratio)
            odd = 1 if q_odd or up * ratio != q else 0
            low, path[level, 6] = _climb(c, d, q, q_odd, up * ratio, price)
            high, path[level, 7] = _climb(c, d, q, q_odd, (up + odd) * ratio, price)
            c, d, q, q_odd = low, high, up, odd
    _trace(path, ratios, meet, state // 2, state % 2)
    return meet + 1


@njit(nogil=True, cache=True, error_model="numpy")
def _find_completed(
    t: int, span: int, ratios: Int64, prices: Float64, signed: bool, path: Int64
) -> int:
    """Write the cheapest path of completed blocks, as :func:`find_path` does.

    The end at ``t`` goes back to the boundary below, for what lies beyond is not complete. The
    begin goes on to the boundary above, or ``signed`` to either.
    """
    top = ratios.shape[0]
    p, q = t - span if 0 < span < t else 0, t
    odd = 0  # 1: the boundary above p differs from the one below
    a, b, c = 0.0, 0.0, 0.0  # costs of p below, p above (no other than below unless odd), q
    best, meet, state = _FAR, 0, 0
    for level in range(top + 1):
        price = prices[level] if signed else 1.0
        cost = a + c + (q - p) * price
        if cost < best:
            best, meet, state = cost, level, 0
        if odd:
            cost = b + c + abs(q - p - 1) * price
            if cost < best:
                best, meet, state = cost, level, 1
        path[level, 0], path[level, 1], path[level, 2], path[level, 3] = p, p + odd, q, q
        if p == q or level == top or best <= min(a, b) + c:  # larger blocks cannot help
            break
        ratio = ratios[level]
        up, end = _parent(p, ratio), _parent(q, ratio)
        past, rest = p - up * ratio, q - end * ratio
        low = a + past * price if signed or past == 0 else _FAR
        high = a + (ratio - past) * price
        path[level, 4], path[level, 5], path[level, 6] = 0, 0, 0
        if odd:
            other = b + (past + 1) * price if signed else _FAR
            if other < low:
                low, path[level, 4] = other, 1
            other = b + (ratio - past - 1) * price
            if other < high:
                high, path[level, 5] = other, 1
        odd = 1 if past or odd else 0
        if (up + 1) * ratio > q:
            high = _FAR
        a, b, c = low, high if odd else low, c + rest * price
        p, q = up, end
    _trace(path, ratios, meet, state, 0)
    return meet + 1


@njit(nogil=True, cache=True, error_model="numpy")
def _write_printed(t: int, span: int, ratios: Int64, path: Int64) -> bool:
    """Write the path of Bolot et al.'s formula; False where no block is as long as the span.

    The smallest such blocks are the trees. The sum is a tree's root, less the prefix of it that
    the window has left behind, plus a prefix of the next; within one tree it is the difference of
    two prefixes. Blocks in both prefixes cancel.
    """
    root, size = 0, 1
    while size < span and root < ratios.shape[0]:
        size *= ratios[root]
        root += 1
    if size < span:
        return False
    path[:, :] = 0
    begin = max(t - span, 0)
    tree, left = (t - 1) // size, begin // size
    if left < tree:
        path[root, 0], path[root, 1] = left, tree
    _write_prefix(t - tree * size, tree * size, root, size, ratios, path, 3)
    if begin > left * size:
        _write_prefix(begin - left * size, left * size, root, size, ratios, path, 0)
    for level in range(root):
        if path[level, 0] == path[level, 3] and path[level, 1] == path[level, 2]:
            path[level] = 0
    return True


@njit(nogil=True, cache=True, error_model="numpy")
def _write_prefix(
    length: int, start: int, root: int, size: int, ratios: Int64, path: Int64, end: int
) -> None:
    """Write a tree's prefix, largest blocks first; ``end``: 3 added, 0 subtracted."""
    other = 2 if end == 3 else 1
    at, block = start, size
    for level in range(root, -1, -1):
        number = length // block
        if number > 0:
            path[level, other], path[level, end] = at // block, at // block + number
            at += number * block
            length -= number * block
        if level > 0:
            block //= ratios[level - 1]


@njit(nogil=True, cache=True, error_model="numpy")
def _gain(path: Int64, prices: Float64) -> float:
    """Sum of the prices of a path's blocks: no block is on it twice."""
    total = 0.0
    for level in range(path.shape[0]):
        blocks = abs(path[level, 1] - path[level, 0]) + abs(path[level, 3] - path[level, 2])
        total += blocks * prices[level]
    return total


@njit(nogil=True, cache=True, error_model="numpy")
def _trace(path: Int64, ratios: Int64, meet: int, i: int, j: int) -> None:
    """Replace the two positions of each end by the chosen moves of each level."""
    for level in range(meet + 1, ratios.shape[0] + 1):
        path[level, 0], path[level, 1], path[level, 2], path[level, 3] = 0, 0, 0, 0
    p, q = path[meet, i], path[meet, 2 + j]
    path[meet, 0], path[meet, 1], path[meet, 2], path[meet, 3] = p, p, p, q
    for level in range(meet - 1, -1, -1):
        p_up, q_up = p * ratios[level], q * ratios[level]
        i, j = path[level, 4 + i], path[level, 6 + j]
        p, q = path[level, i], path[level, 2 + j]
        path[level, 0], path[level, 1], path[level, 2], path[level, 3] = p, p_up, q_up, q


@njit(nogil=True, cache=True, error_model="numpy")
def _ratios(levels: Int64) -> Int64:
    return levels[1:] // levels[:-1]


@njit(nogil=True, cache=True, error_model="numpy")
def weigh_sums(
    steps: Int64, span: int, levels: Int64, prices: Float64, mode: int, out: Float64
) -> None:
    """Sum of the prices of the blocks that a sum takes at each of ``steps``."""
    path, ratios = np.zeros((levels.shape[0], 8), np.int64), _ratios(levels)
    for k in range(steps.shape[0]):
        find_path(steps[k], span, ratios, prices, mode, path)
        out[k] = _gain(path, prices)


@njit(nogil=True, cache=True, error_model="numpy")
def _find_change(
    t: int,
    span: int,
    lag: int,
    ratios: Int64,
    prices: Float64,
    mode: int,
    paths: Int64,
    counts: Int64,
) -> float:
    """Blocks of the sum before ``t`` minus the sum before ``t - lag``; return the sum of squares.

    Squares of factors, times prices. ``counts[l, m - 1]`` becomes the number of blocks of level l
    with the factor m or -m: a block in both sums has 0 or 2. Along a level the factor changes
    only at the ends of moves: in ``ends``, sorted. Lag 0: the sum itself.
    """
    count = ratios.shape[0] + 1
    counts[:] = 0
    find_path(t, span, ratios, prices, mode, paths[0])
    if 0 < lag < t:
        find_path(t - lag, span, ratios, prices, mode, paths[1])
    else:
        paths[1] = 0
    ends, signs = np.empty(8, np.int64), np.empty(8, np.int64)
    total = 0.0
    for level in range(count):
        for k in range(8):
            end = paths[k // 4, level, k % 4]
            sign = (1 if k % 2 else -1) * (1 if k < 4 else -1)
            place = k
            while place > 0 and ends[place - 1] < end:
                ends[place], signs[place] = ends[place - 1], signs[place - 1]
                place -= 1
            ends[place], signs[place] = end, sign
        factor = 0
        for k in range(7):
            factor += signs[k]
            if factor != 0:
                counts[level, abs(factor) - 1] += ends[k] - ends[k + 1]
        total += (counts[level, 0] + 4 * counts[level, 1]) * prices[level]
    return total


@njit(nogil=True, cache=True, error_model="numpy")
def count_changes(
    steps: Int64,
    span: int,
    lag: int,
    levels: Int64,
    prices: Float64,
    mode: int,
    out: Int64,
) -> None:
    """Blocks of each level with factor 1 and 2 in a sum's change, at each of ``steps``.

    Shape (n, levels, 2); lag 0: in the sum itself.
    """
    paths, ratios = np.zeros((2, levels.shape[0], 8), np.int64), _ratios(levels)
    for k in range(steps.shape[0]):
        _find_change(steps[k], span, lag, ratios, prices, mode, paths, out[k])


@njit(nogil=True, cache=True, error_model="numpy")
def worst_gain(
    first: int,
    length: int,
    tries: int,
    stride: int,
    span: int,
    lag: int,
    levels: Int64,
    prices: Float64,
    mode: int,
    enough: float,
) -> float:
    """Largest price of a sum at ``tries`` of ``first <= t < first + length``, or one too large.

    With a ``lag``, the largest sum of squared factors, times prices, in the sum's change over it.
    Too large is above ``enough``; it ends the search. ``stride`` is coprime to ``length``:
    scattered steps meet such a number early.
    """
    paths, ratios = np.zeros((2, levels.shape[0], 8), np.int64), _ratios(levels)
    counts = np.zeros((levels.shape[0], 2), np.int64)
    worst, offset = 0.0, 0
    for _ in range(tries):
        t = first + offset
        if lag > 0:
            found = _find_change(t, span, lag, ratios, prices, mode, paths, counts)
        else:
            find_path(t, span, ratios, prices, mode, paths[0])
            found = _gain(paths[0], prices)
        worst = max(worst, found)
        if worst > enough:
            break
        offset = (offset + stride) % length
    return worst


@njit(nogil=True, cache=True, error_model="numpy")
def _write_path(ring: Int64, layout: Int64, path: Int64, out: Int64, row: int) -> None:
    """Add up the running sums at the ends of the path's moves."""
    for c in range(out.shape[1]):
        out[row, c] = 0
    for level in range(path.shape[0]):
        start, mask = layout[level, 0], layout[level, 1] - 1
        for end in range(0, 4, 2):
            minus, plus = path[level, end], path[level, end + 1]
            if minus == plus:
                continue
            if plus > 0:
                slot = start + (plus & mask)
                for c in range(out.shape[1]):
                    out[row, c] += ring[slot, c]
            if minus > 0:
                slot = start + (minus & mask)
                for c in range(out.shape[1]):
                    out[row, c] -= ring[slot, c]


@njit(nogil=True, cache=True, error_model="numpy")
def _scale(total: Int64, grain: float, out: Float64) -> None:
    """Write lattice units in grains: a loop, which makes no array as a product would."""
    for c in range(total.shape[0]):
        out[c] = total[c] * grain


@njit(nogil=True, cache=True, error_model="numpy")
def _write_scaled(
    ring: Int64, layout: Int64, path: Int64, scales: Float64, grain: float, out: Float64
) -> None:
    """Add up a path's blocks, those of each level times its scale, then in grains: (cells,)."""
    out[:] = 0.0
    for level in range(path.shape[0]):
        start, mask, scale = layout[level, 0], layout[level, 1] - 1, scales[level]
        for end in range(0, 4, 2):
            minus, plus = path[level, end], path[level, end + 1]
            if minus == plus:
                continue
            later, earlier = start + (plus & mask), start + (minus & mask)
            for c in range(out.shape[0]):  # differences of wrapped sums are exact
                new = ring[later, c] if plus > 0 else 0
                old = ring[earlier, c] if minus > 0 else 0
                out[c] += (new - old) * scale
    for c in range(out.shape[0]):
        out[c] *= grain


@njit(nogil=True, cache=True, error_model="numpy")
def _push(ring: Int64, layout: Int64, level: int, position: int, values: Int64, row: int) -> None:
    """S_l(position) = S_l(position - 1) + the values of the row; slot 0 begins as S_l(0) = 0."""
    start, mask = layout[level, 0], layout[level, 1] - 1
    target, before = start + (position & mask), start + ((position - 1) & mask)
    for c in range(values.shape[1]):
        ring[target, c] = values[row, c] + ring[before, c]


@njit(nogil=True, cache=True, error_model="numpy")
def _push_completed(
    ring: Int64, layout: Int64, ratios: Int64, t: int, measured: Int64, row: int
) -> int:
    """Extend the running sums of every block that ends at ``t``; return the next row."""
    position = t
    for level in range(ratios.shape[0] + 1):
        if level > 0:
            up = _parent(position, ratios[level - 1])
            if up * ratios[level - 1] != position:
                break
            position = up
        if ring.shape[0] > 0:
            _push(ring, layout, level, position, measured, row)
        row += 1
    return row


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
    units: Int64,
    spans: Int64,
    out: Int64,
) -> None:
    """Rows of each step: the blocks that complete, smallest first, then the planned views.

    Totals of level l times ``units[l]``, planned sums times the last. ``x`` is clamped to
    ``[-largest, largest]``. A completed block moves up into its parent.
    """
    row, top, ratios = 0, levels.shape[0] - 1, _ratios(levels)
    values = np.empty(x.shape[1], np.int64)
    for s in range(x.shape[0]):
        t = first + s + 1
        position = t
        for c in range(values.shape[0]):
            open_sums[0, c] = values[c] = min(max(x[s, c], -largest), largest)
        for level in range(top + 1):
            if level > 0:
                for c in range(values.shape[0]):
                    open_sums[level, c] += open_sums[level - 1, c]
                    open_sums[level - 1, c] = 0
                up = _parent(position, ratios[level - 1])
                if up * ratios[level - 1] != position:
                    break
                position = up
            unit = units[level]
            for c in range(values.shape[0]):
                out[row, c] = open_sums[level, c] * unit
            row += 1
            if level == top:
                open_sums[top, :] = 0
        if spans.shape[0] > 0:
            _encode_views(history, values, t, units[top + 1], spans, out[row:])
            row += spans.shape[0]


@njit(nogil=True, cache=True, error_model="numpy")
def number_rows(first: int, steps: int, levels: Int64, planned: int, each: int, out: Int64) -> None:
    """The number of each row, ``step * each + place``: levels first, then planned views."""
    row, count, ratios = 0, levels.shape[0], _ratios(levels)
    for s in range(first, first + steps):
        position = s + 1
        for level in range(count):
            if level > 0:
                up = _parent(position, ratios[level - 1])
                if up * ratios[level - 1] != position:
                    break
                position = up
            out[row] = s * each + level
            row += 1
        for place in range(count, count + planned):
            out[row] = s * each + place
            row += 1


@njit(nogil=True, cache=True, error_model="numpy")
def move_rings(
    ring: Int64, layout: Int64, larger: Int64, larger_layout: Int64, latest: Int64
) -> None:
    """Copy every position that a ring holds, up to the ``latest`` of each level, into a larger."""
    for level in range(layout.shape[0]):
        old, slots = layout[level, 0], layout[level, 1]
        new, room = larger_layout[level, 0], larger_layout[level, 1]
        for position in range(max(0, latest[level] - slots + 1), latest[level] + 1):
            source, target = old + position % slots, new + position % room
            for c in range(ring.shape[1]):
                larger[target, c] = ring[source, c]


@njit(nogil=True, cache=True, error_model="numpy")
def mix(
    ring: Int64,
    layout: Int64,
    fresh: Int64,
    first: int,
    steps: int,
    levels: Int64,
    prices: Float64,
    spans: Int64,
    out: Int64,
) -> None:
    """The noise of every row of ``encode``: of each block that completes, of each planned view.

    ``fresh`` holds the noise of the blocks whose parents open, level after level.
    """
    count = levels.shape[0]
    path, ratios = np.zeros((count, 8), np.int64), _ratios(levels)
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
                _push(ring, layout, level, begin + child + 1, fresh, pointers[level])
                pointers[level] += 1
        for level in range(count):
            if t % levels[level] != 0:
                break
            end = t // levels[level]
            path[:, :4] = 0
            path[level, 2], path[level, 3] = end - 1, end
            _write_path(ring, layout, path, out, row)
            row += 1
        for v in range(spans.shape[0]):
            find_path(t, spans[v], ratios, prices, 2, path)
            _write_path(ring, layout, path, out, row)
            row += 1


@njit(nogil=True, cache=True, error_model="numpy")
def decode(
    ring: Int64,
    layout: Int64,
    measured: Int64,
    first: int,
    levels: Int64,
    prices: Float64,
    scales: Float64,
    mode: int,
    planned_rows: int,
    spans: Int64,
    sources: Int64,
    grain: float,
    out: Float64,
) -> None:
    """Views from completed blocks, or straight from the row of a planned view.

    ``spans[v]``: steps of the view, 0 for all, -1 for a view that is decoded elsewhere.
    ``sources[v]``: the view's place among the planned ones, or -1. ``grain`` is one lattice unit.
    ``scales``: what the rows of each level are multiplied by, none where all are alike.
    """
    count = levels.shape[0]
    path, ratios = np.zeros((count, 8), np.int64), _ratios(levels)
    total = np.zeros((1, measured.shape[1]), np.int64)
    row, begun = 0, count if mode == 3 else 1
    taken, between = path[:begun], ratios[: begun - 1]
    for s in range(out.shape[1]):
        t = first + s + 1
        if begun < count and levels[begun] <= t:  # no block of the others is complete
            while begun < count and levels[begun] <= t:
                begun += 1
            taken, between = path[:begun], ratios[: begun - 1]
        row = _push_completed(ring, layout, ratios, t, measured, row)
        for v in range(spans.shape[0]):
            if sources[v] >= 0:
                _scale(measured[row + sources[v]], grain, out[v, s])
            elif spans[v] >= 0:
                used = taken[: find_path(t, spans[v], between, prices, mode, taken)]
                if scales.shape[0] > 0:
                    _write_scaled(ring, layout, used, scales, grain, out[v, s])
                else:
                    _write_path(ring, layout, used, total, 0)
                    _scale(total[0], grain, out[v, s])
        row += planned_rows


@njit(nogil=True, cache=True, error_model="numpy")
def read_sums(
    ring: Int64,
    layout: Int64,
    t: int,
    levels: Int64,
    prices: Float64,
    scales: Float64,
    mode: int,
    spans: Int64,
    grain: float,
    out: Float64,
) -> None:
    """Sums over the last ``spans`` steps before ``t`` from rings that reach back so far.

    Shape of ``out``: (spans, cells). ``scales``: one for each level.
    """
    path, ratios = np.zeros((levels.shape[0], 8), np.int64), _ratios(levels)
    for v in range(spans.shape[0]):
        find_path(t, spans[v], ratios, prices, mode, path)
        _write_scaled(ring, layout, path, scales, grain, out[v])
