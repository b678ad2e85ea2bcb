r"""Fewest blocks: how a range of steps is put together from nested blocks.

Level ``l`` cuts the stream into blocks of ``b_l`` steps, ``b_0 = 1`` and each ``b_l`` divides the
next. A range ``[a, t)`` is a path from a to t along boundaries of blocks; every block walked
forward counts +1, backward -1. Each end climbs, from level to level, to one of the two boundaries
around it, until both ends meet within one level:

.. math:: a = p_0 \to p_1 \to \dots \to p_m \to q_m \to \dots \to q_1 \to q_0 = t.

Going past a neighbouring boundary of the next level never helps, since a block of that level is
at least as short a way. So two candidates an end and a level suffice, and the shortest path costs
O(levels) per step. The path is written as differences of running sums ``S_l`` of a level's
blocks, so that adding it up costs at most four look-ups a level, however many blocks it has.

Three modes: ``opened`` (blocks up to the end of the open parent are there), completed blocks with
signs (all boundaries <= t), completed blocks without signs (each end moves one way only).
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from math import gcd
from typing import TYPE_CHECKING

import numpy as np

from tidegauge.compiled import lazy_module
from tidegauge.strategies.decay import Decay, Difference, Running, Step, Window
from tidegauge.strategies.strategy import Int64

if TYPE_CHECKING:
    from tidegauge.strategies.blocks import _kernels
else:
    _kernels = lazy_module("tidegauge.strategies.blocks._kernels")

__all__ = ["ALL", "base_of", "count_blocks", "count_changes", "sum_of", "worst_count"]

ALL = 0
"""The span of the running sum."""


def base_of(view: Decay) -> Decay:
    """Return the view that a difference is of, and every other view itself."""
    return view.view if isinstance(view, Difference) else view


def sum_of(view: Decay) -> tuple[int, int] | None:
    """Return how many steps a view sums up, 0 for all, and the lag of its change, 0 for none.

    None: it weighs steps unequally.

    Examples:
        >>> sum_of(Running()), sum_of(Step()), sum_of(Difference(Window(24), 7))
        ((0, 0), (1, 0), (24, 7))
    """
    lag = view.lag if isinstance(view, Difference) else 0
    base = base_of(view)
    if isinstance(base, Running):
        return ALL, lag
    if isinstance(base, Step):
        return 1, lag
    return (base.steps, lag) if isinstance(base, Window) else None


def count_blocks(
    levels: tuple[int, ...], span: int, steps: Int64, signed: bool, opened: bool
) -> Int64:
    """Return how many blocks the sum over the last ``span`` steps takes at each of ``steps``.

    Args:
        levels: Sizes of the blocks, 1 first, each divides the next.
        span: Steps summed up; 0: everything so far.
        steps: Steps counted from 1.
        signed: Blocks may be subtracted.
        opened: Blocks of parents that are still open may be used.

    Examples:
        >>> count_blocks((1, 3, 9), 0, np.array([8]), signed=True, opened=True)
        array([2])
        >>> count_blocks((1, 3, 9), 0, np.array([8]), signed=True, opened=False)
        array([4])
    """
    out = np.empty(len(steps), np.int64)
    numbers = np.ascontiguousarray(steps, np.int64)
    _kernels.count_blocks(numbers, span, np.array(levels, np.int64), signed, opened, out)
    return out


def count_changes(
    levels: tuple[int, ...], span: int, lag: int, steps: Int64, signed: bool, opened: bool
) -> Int64:
    """Return how many blocks the change of a sum over ``lag`` steps takes once, and how many twice.

    Arguments are those of :func:`count_blocks`. Blocks that both sums take cancel, or count
    twice where one takes them forward and the other backward.

    Returns:
        Shape (steps, 2).

    Examples:
        >>> count_changes((1, 7), 7, 7, np.array([14, 15]), signed=True, opened=False)
        array([[2, 0],
               [4, 1]])
    """
    out = np.empty((len(steps), 2), np.int64)
    numbers = np.ascontiguousarray(steps, np.int64)
    _kernels.count_changes(numbers, span, lag, np.array(levels, np.int64), signed, opened, out)
    return out


def worst_count(
    levels: tuple[int, ...],
    span: int,
    horizon: int,
    signed: bool,
    opened: bool,
    enough: int = 1 << 60,
    tries: int = 1 << 18,
    lag: int = 0,
) -> int:
    """Return the largest number of blocks that a sum takes at any step up to ``horizon``.

    With a ``lag``: that the sum's change takes at any step, squares of their factors added up.

    Exact: digit by digit for the running sum; for a window over all steps until the largest block
    that can serve it comes round again. Of more than ``tries`` such steps all are covered while
    the window fills, and ``tries`` of the others, evenly spread. Any number above ``enough`` may
    be returned once it is passed.

    Cost: O(levels * largest ratio) for the running sum; for a window 0.1 us a try.

    Examples:
        >>> worst_count((1, 19), 256, 1 << 20, signed=True, opened=True)
        24
    """
    if span == 1:
        return 2 if lag else 1
    if span == ALL:
        return _worst_running(levels, horizon, signed and opened)
    useful = tuple(size for size in levels if size <= _LONGEST * span)
    last = span + lag + useful[-1] - 1
    first, last, worst = 1, last if lag else min(horizon, last), 0
    if last > tries and lag:
        first = span + lag
    elif last > tries:  # a few steps could miss the worst while the window fills
        worst = _worst_running(useful, min(span, horizon), signed and opened)
        first = min(span, last)
    if worst > enough:
        return worst
    length = last - first + 1
    stride = next(n for n in range(1 + length * 5 // 8, 2 * length + 2) if gcd(n, length) == 1)
    sizes, mode = np.array(useful, np.int64), signed + (signed and opened)
    looked = min(length, tries)
    found = _kernels.worst_count(first, length, looked, stride, span, lag, sizes, mode, enough)
    return max(worst, int(found))


_LONGEST = 4  # a block longer than four windows would have to be undone nearly whole
_Costs = set[tuple[int, int]]
_FAR = 1 << 60


@lru_cache(maxsize=4096)
def _worst_running(levels: tuple[int, ...], horizon: int, beyond: bool) -> int:
    """Largest count over all prefixes ``t <= horizon``.

    For every remainder of t modulo ``b_l``, (blocks down to the boundary below, blocks up to the
    one above); only the pairs that no other pair exceeds can be the worst. One set holds the pairs
    of all remainders, the other those of remainders up to the horizon's own.
    """
    free: _Costs = {(0, _FAR)}
    tight: _Costs = {(0, _FAR)}
    for size, parent in pairwise(levels):
        ratio, digit = parent // size, horizon // size % (parent // size)
        tight = _largest(
            {_step(pair, d, ratio, beyond) for d in range(digit) for pair in free}
            | {_step(pair, digit, ratio, beyond) for pair in tight}
        )
        free = _largest({_step(pair, d, ratio, beyond) for d in range(ratio) for pair in free})
    whole = horizon // levels[-1]
    below = {min(f + whole - 1, c + whole) for f, c in free} if whole else set()
    return max(below | {min(f + whole, c + whole + 1) for f, c in tight})


def _step(pair: tuple[int, int], digit: int, ratio: int, beyond: bool) -> tuple[int, int]:
    floor, ceiling = pair
    down = min(floor + digit, ceiling + digit + 1)
    up = min(floor + ratio - digit, ceiling + ratio - digit - 1) if beyond else _FAR
    return down, up


def _largest(pairs: _Costs) -> _Costs:
    """Keep the pairs that no other pair reaches in both places."""
    kept: _Costs = set()
    highest = -1
    for floor, ceiling in sorted(pairs, reverse=True):
        if ceiling > highest:
            kept.add((floor, ceiling))
            highest = ceiling
    return kept
