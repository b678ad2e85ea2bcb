"""A count of different values in a window, anchored now and then, with its changes in between."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import final

import numpy as np

from tidegauge.checks import integer, shown
from tidegauge.errors import InvalidInput, InvalidParameter
from tidegauge.privacy.unit import Neighbors
from tidegauge.strategies.decay import Decay
from tidegauge.strategies.distinct.change import check_norm, check_views, window_of, worst_change
from tidegauge.strategies.strategy import (
    Float64,
    Int64,
    Norm,
    RowPerStep,
    State,
)

__all__ = ["Anchored", "anchored"]

_LARGEST = 1 << 61
_MOST_LEVELS = 8
_NEAR = 1.6  # radices are looked for within so many times the even one


@final
@dataclass(frozen=True)
class Anchored(RowPerStep):
    r"""x_t counts the different values of the last W steps; each step is measured once, see below.

    Of nested periods :math:`b_1 = 1 | b_2 | \dots | b_m`, step t (from 1) belongs to the largest
    that divides it. At the largest of all, x_t itself is measured, else its change
    :math:`x_t - x_{t - b}` since the step b before. Decoding adds a row to what was decoded b
    steps before: at most :math:`1 + \sum_i (b_{i+1} / b_i - 1)` rows in all.

    An interval of at most W steps contains :math:`\lceil W / b_m \rceil` anchors and begins and
    ends once, and each of the two moves at most one row a smaller period. For pure epsilon.

    Guarantee:
        Neighboring streams' coordinates differ by at most ``sensitivity`` in L1, for ever, on every
        path of an adaptively chosen stream. Proof: ``docs/proofs/distinct.md``.

    Args:
        periods: b_1 = 1, ..., b_m, each a multiple of the one before; 1 to 8 of them.
        window: W, at most 2^20.

    Raises:
        InvalidParameter: They are not.

    Memory: 8 bytes a period and cell, private, and as much public.

    Examples:
        >>> strategy = Anchored((1, 2, 4), window=4)
        >>> x = np.array([[1], [3], [4], [4], [2]])
        >>> strategy.encode(strategy.init_encoder(1), x, 0).ravel()
        array([ 1,  3,  1,  4, -2])

    References:
        One anchor a window and a tree of changes: state_of_the_art 6; periods instead of a binary
        tree halve its noise.
    """

    periods: tuple[int, ...]
    window: int

    lattice_bits = 0

    def __post_init__(self) -> None:
        periods = self.periods
        if not isinstance(periods, tuple) or not 1 <= len(periods) <= _MOST_LEVELS:
            raise InvalidParameter(
                f"Expected a tuple of 1 to {_MOST_LEVELS} periods, got {shown(periods)}. Each is "
                "a number of steps. Write (1, 16, 256)."
            )
        why = "A period is a number of steps, and the next is a multiple of it."
        periods = tuple(integer("periods", p, low=1, high=1 << 30, why=why) for p in periods)
        object.__setattr__(self, "periods", periods)
        object.__setattr__(self, "window", window_of(self.window))
        if periods[0] != 1 or any(b <= a or b % a for a, b in pairwise(periods)):
            raise InvalidParameter(
                f"Expected periods 1 | b_2 | b_3 ..., got {shown(periods)}. A step would belong to "
                "no period, or to two that overlap. Write (1, 16, 256)."
            )

    @property
    def norms(self) -> frozenset[Norm]:
        """L1 only: under L2 ``Shaped`` is much better."""
        return frozenset({Norm.L1})

    @property
    def hard_end(self) -> None:
        """None: an interval has two ends however long the stream is."""
        return None

    @property
    def absolute_gain(self) -> Fraction:
        """2: a row is a difference of two counts."""
        return Fraction(2)

    @property
    def largest_total(self) -> int:
        """2^61."""
        return _LARGEST

    def sensitivity(self, norm: Norm, neighbors: Neighbors) -> Fraction:
        """How far the coordinates can move in L1: a whole number.

        Raises:
            UnsupportedCombination: The norm is L2, or x does not count the values of this window.
        """
        check_norm(self, norm)
        anchors, smaller = -(-self.window // self.periods[-1]), len(self.periods) - 1
        change = worst_change(neighbors, self.window, anchors + 2 * smaller, anchors + 4 * smaller)
        return Fraction(neighbors.unit.max_events * neighbors.high * change)

    def init_encoder(self, cells: int) -> State:
        """X at the last multiple of each period, shape (periods, cells)."""
        return {"anchors": np.zeros((len(self.periods), cells), np.int64)}

    def encode(self, state: State, x: Int64, first: int) -> Int64:
        """Measure each step: itself, or its change.

        Raises:
            InvalidInput: ``x`` is not int64 of shape (steps, cells); the state is as it was.
        """
        anchors = state["anchors"]
        if x.dtype != np.int64 or x.ndim != 2 or x.shape[1] != anchors.shape[1]:
            raise InvalidInput(
                f"Expected counts of dtype int64 and shape (steps, {anchors.shape[1]}), got "
                f"{x.dtype} of shape {x.shape}. They would be measured in the wrong cells. "
                "Convert them first."
            )
        exact = np.clip(x, -_LARGEST, _LARGEST)
        rows = exact.copy()
        steps = np.arange(first + 1, first + len(x) + 1)
        for level, period in enumerate(self.periods):
            at = np.flatnonzero(steps % period == 0)
            if not len(at):
                break  # nor of a larger one
            if level < len(self.periods) - 1:
                before = np.concatenate([anchors[level : level + 1], exact[at[:-1]]])
                own = steps[at] % self.periods[level + 1] != 0
                rows[at[own]] -= before[own]
            anchors[level] = exact[at[-1]]
        return rows

    def init_decoder(self, views: Sequence[Decay], cells: int) -> State:
        """What was decoded at the last multiple of each period, in whole counts.

        Raises:
            InvalidParameter: A view other than ``Window(W)``.
        """
        check_views(views, self.window)
        return {"anchors": np.zeros((len(self.periods), cells), np.int64)}

    def decode(
        self, state: State, views: Sequence[Decay], measured: Int64, first: int, out: Float64
    ) -> None:
        """Add each row to what was decoded its period before; exact, in integers."""
        if out.shape != (len(views), *measured.shape):
            raise InvalidInput(
                f"Expected results for a measurement of shape {measured.shape}, got shape "
                f"{out.shape}. Values would land at other steps. Give arrays of one shape."
            )
        anchors, found = state["anchors"], measured.copy()
        steps = np.arange(first + 1, first + len(measured) + 1)
        for level in range(len(self.periods) - 1, -1, -1):
            at = np.flatnonzero(steps % self.periods[level] == 0)
            if not len(at):
                continue
            if level < len(self.periods) - 1:
                own = steps[at] % self.periods[level + 1] != 0
                known = np.maximum.accumulate(np.where(own, -1, np.arange(len(at))))
                added = np.cumsum(np.where(own[:, None], found[at], 0), axis=0)
                base = np.where(known[:, None] < 0, anchors[level], found[at[known]])
                base -= np.where(known[:, None] < 0, 0, added[known])
                found[at] = np.where(own[:, None], base + added, found[at])
            anchors[level] = found[at[-1]]
        out[...] = found

    def variance_gain(self, view: Decay, steps: Int64) -> Float64:
        """How many rows are added up at each of ``steps``."""
        check_views([view], self.window)
        left = np.asarray(steps, np.int64)
        total = (left >= self.periods[-1]).astype(np.float64)
        for small, large in pairwise(self.periods):
            total += left % large // small
        return total

    def worst_variance_gain(self, view: Decay, horizon: int) -> float:
        """The most rows that are added up by the horizon."""
        last = min(horizon, 2 * self.periods[-1])
        return float(self.variance_gain(view, np.arange(1, last + 1)).max())

    def noise_terms(self, view: Decay, step: int) -> tuple[Float64, Int64]:
        """Ones."""
        count = self.variance_gain(view, np.array([step]))
        return np.ones(1), count.astype(np.int64)


@lru_cache(maxsize=64)
def anchored(window: int) -> Anchored:
    """Return the strategy for a window whose worst noise is least.

    Args:
        window: W.

    Examples:
        >>> anchored(256).periods
        (1, 16, 256)
    """
    window_of(window)
    found: list[tuple[int, ...]] = [(1,)]
    for smaller in range(1, _MOST_LEVELS):
        for anchors in range(1, 5):
            reach = -(-window // anchors)
            found += [_periods(radices) for radices in _radices(reach, smaller)]
    return min((Anchored(periods, window) for periods in dict.fromkeys(found)), key=_noise)


def _noise(strategy: Anchored) -> tuple[int, int]:
    """Its worst variance, but for a factor, and the largest period."""
    anchors, smaller = -(-strategy.window // strategy.periods[-1]), len(strategy.periods) - 1
    rows = 1 + sum(b // a - 1 for a, b in pairwise(strategy.periods))
    return (anchors + 2 * smaller) ** 2 * rows, strategy.periods[-1]


def _periods(radices: Sequence[int]) -> tuple[int, ...]:
    return tuple(itertools.accumulate((1, *radices), lambda a, b: a * b))


def _radices(reach: int, count: int) -> list[tuple[int, ...]]:
    """Radices from 2 whose product is at least ``reach``, near even; the last makes it up."""
    if count == 1:
        return [(max(2, reach),)]
    even = reach ** (1 / count)
    found = []
    low = max(2, math.floor(even / _NEAR))
    for first in range(low, max(low + 1, math.ceil(_NEAR * even) + 1)):
        rest = -(-reach // first)
        if rest > 1:
            found += [
                (first, *others) for others in _radices(rest, count - 1) if first <= others[0]
            ]
    return found
