"""Plain-Python twins of the block strategies: breadth-first search, paths, noise by dictionary."""

from __future__ import annotations

import itertools
from heapq import heappop, heappush

import numpy as np

from tidegauge.strategies.strategy import Int64

FAR = float("inf")
Block = tuple[int, int]  # level, index


def distances(t: int, levels: tuple[int, ...], signed: bool, opened: bool) -> dict[int, int]:
    """Fewest blocks from every boundary a to t, by breadth-first search over all boundaries."""
    parents = (*levels[1:], levels[-1])
    last = [-(-t // parent) * parent if opened else t for parent in parents]
    found, edge = {t: 0}, [t]
    while edge:
        beyond = []
        for place in edge:
            for size, end in zip(levels, last, strict=True):
                if place % size:
                    continue
                steps = [place - size] + ([place + size] if signed else [])
                for other in steps:
                    inside = other >= 0 and max(place, other) <= end
                    if inside and other not in found:
                        found[other] = found[place] + 1
                        beyond.append(other)
        edge = beyond
    return found


def path(
    t: int, span: int, levels: tuple[int, ...], signed: bool, opened: bool
) -> list[tuple[int, int, int]]:
    """(level, index, sign) of the blocks that the strategies take for a sum before step t."""
    begin = t - span if 0 < span < t else 0
    left: dict[int, tuple[float, list[tuple[int, int, int]]]] = {0: (0, [])}
    right = dict(left)
    best: tuple[float, list[tuple[int, int, int]]] = (FAR, [])
    for level, size in enumerate(levels):
        for i, j in itertools.product(sorted(left), sorted(right)):
            p, q = _boundary(begin, size, i), _boundary(t, size, j)
            length = left[i][0] + right[j][0] + abs(q - p) // size
            if (signed or q >= p) and length < best[0]:
                best = length, left[i][1] + right[j][1] + _walk(p, q, level, size)
        if level + 1 < len(levels):
            left = _climb(begin, t, left, level, levels, signed, opened, 1)
            right = _climb(t, t, right, level, levels, signed, opened, -1)
    return best[1]


def _boundary(place: int, size: int, ceiling: int) -> int:
    return -(-place // size) * size if ceiling else place // size * size


def _walk(p: int, q: int, level: int, size: int) -> list[tuple[int, int, int]]:
    sign = 1 if q >= p else -1
    return [(level, index, sign) for index in range(min(p, q) // size, max(p, q) // size)]


def _climb(place, t, states, level, levels, signed, opened, direction):
    size, parent = levels[level], levels[level + 1]
    climbed = {}
    for state in (0, 1):
        target = _boundary(place, parent, state)
        best = None
        for source in sorted(states):
            origin = _boundary(place, size, source)
            allowed = (opened or target <= t) and (signed or (target - origin) * direction >= 0)
            length = states[source][0] + abs(target - origin) // size
            if allowed and (best is None or length < best[0]):
                ends = (origin, target) if direction == 1 else (target, origin)
                best = length, states[source][1] + _walk(*ends, level, size)
        if best is not None:
            climbed[state] = best
    return climbed


def block_numbers(levels: tuple[int, ...], first: int, steps: int) -> list[Block]:
    """Blocks whose parents open within a block of steps, level after level."""
    numbers = []
    parents = (*levels[1:], levels[-1])
    for level, (size, parent) in enumerate(zip(levels, parents, strict=True)):
        for start in range(first, first + steps):
            if start % parent == 0:
                numbers += [(level, start // size + n) for n in range(parent // size)]
    return numbers


def completing(levels: tuple[int, ...], t: int) -> list[Block]:
    """Blocks that end with step t (from 1), smallest first."""
    return [(level, t // size - 1) for level, size in enumerate(levels) if t % size == 0]


def rows(
    values: dict[Block, Int64],
    levels: tuple[int, ...],
    spans: list[int],
    first: int,
    steps: int,
) -> Int64:
    """Rows of a block of steps from the value of each block, planned sums by their open paths."""
    written = []
    for t in range(first + 1, first + steps + 1):
        written += [values[block] for block in completing(levels, t)]
        written += [
            sum(
                (
                    sign * values[level, index]
                    for level, index, sign in path(t, span, levels, True, True)
                ),
                start=np.zeros_like(values[0, 0]),
            )
            for span in spans
        ]
    return np.array(written)


def block_totals(x: Int64, levels: tuple[int, ...]) -> dict[Block, Int64]:
    """The exact total of every block of a stream; steps beyond its end count as zero."""
    return {
        (level, index): x[index * size : (index + 1) * size].sum(axis=0)
        for level, size in enumerate(levels)
        for index in range(-(-len(x) // levels[-1]) * levels[-1] // size)
    }


def cheapest(
    t: int, levels: tuple[int, ...], prices: tuple[float, ...], opened: bool
) -> dict[int, float]:
    """Least price of a path of blocks from every boundary a to t, by Dijkstra's search."""
    parents = (*levels[1:], levels[-1])
    last = [-(-t // parent) * parent if opened else t for parent in parents]
    found: dict[int, float] = {}
    edge = [(0.0, t)]
    while edge:
        cost, place = heappop(edge)
        if place in found:
            continue
        found[place] = cost
        for size, end, price in zip(levels, last, prices, strict=True):
            for other in (place - size, place + size):
                if place % size == 0 and other >= 0 and max(place, other) <= end:
                    heappush(edge, (cost + price, other))
    return found


def printed(t: int, span: int) -> dict[Block, int]:
    """Nodes, with their factors, of the printed formula for windows; zeros left out.

    Trees are as long as the least power of two that holds the window.
    """
    height = (span - 1).bit_length()
    size, begin = 1 << height, max(0, t - span)
    tree, left = (t - 1) // size, begin // size
    factors: dict[Block, int] = {}

    def add(blocks: list[Block], sign: int) -> None:
        for block in blocks:
            factors[block] = factors.get(block, 0) + sign

    if left < tree:
        add([(height, left)], 1)
    add(_prefix(left * size, begin - left * size, height), -1)
    add(_prefix(tree * size, t - tree * size, height), 1)
    return {block: factor for block, factor in factors.items() if factor}


def _prefix(start: int, length: int, height: int) -> list[Block]:
    blocks = []
    for level in range(height, -1, -1):
        if length >> level & 1:
            blocks.append((level, start >> level))
            start += 1 << level
    return blocks
