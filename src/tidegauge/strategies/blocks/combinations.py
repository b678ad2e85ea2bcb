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

Blocks may be priced by their level's noise variance, as long as a block costs at most what its
parts cost together; then the cheapest path is as easy to find. :class:`Way` says which blocks
there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from itertools import pairwise
from math import gcd
from typing import TYPE_CHECKING, final

import numpy as np

from tidegauge.compiled import lazy_module
from tidegauge.strategies.decay import Decay, Difference, Running, Step, Window
from tidegauge.strategies.strategy import Float64, Int64

if TYPE_CHECKING:
    from tidegauge.strategies.blocks import _kernels
else:
    _kernels = lazy_module("tidegauge.strategies.blocks._kernels")

__all__ = ["ALL", "Paths", "Way", "base_of", "sum_of"]

ALL = 0
"""The span of the running sum."""


class Way(IntEnum):
    """Which blocks a sum is put together from."""

    UNSIGNED = 0
    """The fewest completed blocks, none of them subtracted."""
    SIGNED = 1
    """The cheapest completed blocks."""
    OPENED = 2
    """The cheapest blocks, those of parents that are still open among them."""
    PRINTED = 3
    """A tree's root less a prefix of it plus a prefix of the next (Bolot et al. 2013, Alg. 1)."""


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


@final
@dataclass(frozen=True)
class Paths:
    """How sums are put together from nested blocks, and what that costs.

    Args:
        levels: Sizes of the blocks, 1 first, each divides the next.
        way: Which blocks are used.
        prices: For each level the noise variance of a block, in any unit; never falling. None: 1
            for all, so that prices are numbers of blocks.

    Examples:
        >>> Paths((1, 3, 9), Way.OPENED).prices_of_sums(ALL, np.array([8]))
        array([2.])
        >>> Paths((1, 3, 9), Way.SIGNED).prices_of_sums(ALL, np.array([8]))
        array([4.])
    """

    levels: tuple[int, ...]
    way: Way
    prices: tuple[float, ...] = ()

    @property
    def sizes(self) -> Int64:
        """The levels as an array."""
        return np.array(self.levels, np.int64)

    @property
    def level_prices(self) -> Float64:
        """The price of a block of each level."""
        return np.array(self.prices) if self.prices else np.ones(len(self.levels))

    def prices_of_sums(self, span: int, steps: Int64, lag: int = 0) -> Float64:
        """Return what the sum over the last ``span`` steps costs at each of ``steps``.

        Args:
            span: Steps summed up; 0: everything so far.
            steps: Steps counted from 1.
            lag: Price the sum's change over so many steps, factors squared; 0: the sum.
        """
        numbers = np.ascontiguousarray(steps, np.int64)
        if lag:
            counts = self.count_blocks(span, numbers, lag)
            squares = counts[:, :, 0] + 4.0 * counts[:, :, 1]
            return np.asarray(squares @ self.level_prices)
        out = np.empty(len(steps))
        _kernels.weigh_sums(numbers, span, self.sizes, self.level_prices, int(self.way), out)
        return out

    def count_blocks(self, span: int, steps: Int64, lag: int = 0) -> Int64:
        """Return how many blocks of each level a sum, or its change, takes once and twice.

        Blocks that both sums of a change take cancel, or count twice where one takes them forward
        and the other backward.

        Returns:
            Shape (steps, levels, 2).

        Examples:
            >>> Paths((1, 7), Way.SIGNED).count_blocks(7, np.array([14, 15]), lag=7).sum(axis=1)
            array([[2, 0],
                   [4, 1]])
        """
        out = np.empty((len(steps), len(self.levels), 2), np.int64)
        numbers = np.ascontiguousarray(steps, np.int64)
        way, prices = int(self.way), self.level_prices
        _kernels.count_changes(numbers, span, lag, self.sizes, prices, way, out)
        return out

    def worst_price(
        self,
        span: int,
        horizon: int,
        enough: float = float(1 << 60),
        tries: int = 1 << 18,
        lag: int = 0,
    ) -> float:
        """Return the largest price of a sum at any step up to ``horizon``.

        With a ``lag``: of the sum's change at any step, squares of factors times prices.

        Exact: digit by digit for the running sum; for a window over all steps until the largest
        block that can serve it comes round again. Of more than ``tries`` such steps all are
        covered while the window fills, and ``tries`` of the others, evenly spread. Any number
        above ``enough`` may be returned once it is passed.

        Cost: O(levels * largest ratio) for the running sum; for a window 0.1 us a try.

        Examples:
            >>> Paths((1, 19), Way.OPENED).worst_price(256, 1 << 20)
            24.0
        """
        if span == 1:
            return (2 if lag else 1) * float(self.level_prices[0])
        opened = self.way is Way.OPENED
        if span == ALL:
            return _worst_running(self.levels, tuple(self.level_prices.tolist()), horizon, opened)
        useful = tuple(size for size in self.levels if size <= _LONGEST * span)
        prices = self.level_prices[: len(useful)]
        last = span + lag + useful[-1] - 1
        first, last, worst = 1, last if lag else min(horizon, last), 0.0
        if last > tries and lag:
            first = span + lag
        elif last > tries:  # a few steps could miss the worst while the window fills
            filled = min(span, horizon)
            worst = _worst_running(useful, tuple(prices.tolist()), filled, opened)
            first = min(span, last)
        if worst > enough:
            return worst
        length = last - first + 1
        stride = next(n for n in range(1 + length * 5 // 8, 2 * length + 2) if gcd(n, length) == 1)
        sizes, way = np.array(useful, np.int64), int(self.way)
        looked = min(length, tries)
        found = _kernels.worst_gain(
            first, length, looked, stride, span, lag, sizes, prices, way, float(enough)
        )
        return max(worst, float(found))


_LONGEST = 4  # a block longer than four windows would have to be undone nearly whole
_FAR = float(1 << 60)


@lru_cache(maxsize=4096)
def _worst_running(
    levels: tuple[int, ...], prices: tuple[float, ...], horizon: int, beyond: bool
) -> float:
    """Largest price over all prefixes ``t <= horizon``.

    For every remainder of t modulo ``b_l``, (price down to the boundary below, up to the one
    above); only the pairs that no other pair exceeds can be the worst. One array holds the pairs
    of all remainders, the other those of remainders up to the horizon's own.
    """
    free = tight = np.array([[0.0, _FAR]])
    for (size, parent), price in zip(pairwise(levels), prices, strict=False):
        ratio, digit = parent // size, horizon // size % (parent // size)
        below = _steps(free, np.arange(digit), ratio, price, beyond)
        at = _steps(tight, np.array([digit]), ratio, price, beyond)
        tight = _largest(np.concatenate([below, at]))
        free = _largest(_steps(free, np.arange(ratio), ratio, price, beyond))
    whole, price = horizon // levels[-1], prices[-1]
    worst = np.minimum(tight[:, 0] + whole * price, tight[:, 1] + (whole + 1) * price).max()
    if whole:
        earlier = np.minimum(free[:, 0] + (whole - 1) * price, free[:, 1] + whole * price)
        worst = max(worst, earlier.max())
    return float(worst)


def _steps(pairs: Float64, digits: Int64, ratio: int, price: float, beyond: bool) -> Float64:
    """Return what each of the pairs costs with each of the digits before it, shape (n, 2)."""
    floor, ceiling = pairs[:, :1], pairs[:, 1:]
    down = np.minimum(floor + digits * price, ceiling + (digits + 1) * price)
    rest = ratio - digits
    up = np.full_like(down, _FAR)
    if beyond:
        up = np.minimum(floor + rest * price, ceiling + (rest - 1) * price)
    return np.stack([down.ravel(), up.ravel()], axis=1)


def _largest(pairs: Float64) -> Float64:
    """Keep the pairs, shape (n, 2), that no other pair reaches in both places."""
    ordered = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))[::-1]]
    highest = np.maximum.accumulate(np.r_[-1.0, ordered[:-1, 1]])
    return np.ascontiguousarray(ordered[ordered[:, 1] > highest])
