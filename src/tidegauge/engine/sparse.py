"""Exact sums of a gauge whose cells are not known: only where an event was.

Memory: 24 bytes for each pair of an item and a step at which it occurs, and as much again while
pairs are merged; neither the number of rows nor that of empty steps matters. Time: a sort of each
batch, and one of what is kept each time that as much is waiting.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tidegauge.mechanisms.accumulator import MOST
from tidegauge.planning.parts import UNKNOWN_CELLS

if TYPE_CHECKING:
    import polars as pl

__all__ = ["MOST_STEPS", "SparseSums", "SparseTotals"]

Int64 = NDArray[np.int64]

MOST_STEPS = 1 << 31
"""Steps that a gauge with unknown cells may have: step and item share one word."""

_DIGIT = 40  # bits of the lower half of a sum
_PENDING = 1 << 20  # pairs that wait before they are merged; of 2^40 each, they fit a word


@dataclass(frozen=True)
class SparseTotals:
    """The exact totals of one gauge where an event was: private, every part of it.

    Attributes:
        items: All items in the order of their numbers, as text, a column for each of ``by``.
        step: Of each pair of an item and a step with an event, int64 of shape (pairs,), in order.
        item: Its item's number.
        amount: What the events add up to, in grains; it may be 0.
        known: How many items were known before.
    """

    items: pl.DataFrame = field(repr=False)
    step: Int64 = field(repr=False)
    item: Int64 = field(repr=False)
    amount: Int64 = field(repr=False)
    known: int = field(repr=False)

    def block(self, first: int, steps: int) -> tuple[Int64, Int64, Int64]:
        """Return offset in the block, item and amount of each pair of the steps from ``first``."""
        low, high = np.searchsorted(self.step, [first, first + steps])
        part = slice(low, high)
        return self.step[part] - first, self.item[part], self.amount[part]

    def seen(self, step: int) -> int:
        """Return how many items have been seen when a step begins: numbers follow first steps."""
        before = self.item[: np.searchsorted(self.step, step)]
        return max(self.known, int(before.max(initial=-1)) + 1)


class SparseSums:
    """Adds up amounts at keys ``step * UNKNOWN_CELLS + item``.

    Examples:
        >>> sums = SparseSums()
        >>> sums.add(np.array([7, 3, -1, 7]), None)
        >>> [array.tolist() for array in sums.result()]
        [[3, 7], [1, 2]]
    """

    def __init__(self) -> None:
        self._kept = np.empty((3, 0), np.int64)  # key, lower and upper half of the sum
        self._pending: list[Int64] = []
        self._waiting = 0

    def add(self, keys: Int64, amounts: Int64 | None) -> None:
        """Add amounts, or 1 if None, at ``keys``; negative keys are left out."""
        there = np.flatnonzero(keys >= 0)
        for start in range(0, len(there), _PENDING):
            rows = there[start : start + _PENDING]
            given = np.ones(len(rows), np.int64) if amounts is None else amounts[rows]
            table = np.stack([keys[rows], given & ((1 << _DIGIT) - 1), given >> _DIGIT])
            self._pending.append(_added(table))
            self._waiting += self._pending[-1].shape[1]
            if self._waiting >= max(_PENDING, self._kept.shape[1]):
                self._merge()

    def _merge(self) -> None:
        """Add what waits to what is kept; a key comes at most once in each part."""
        self._kept = _added(np.concatenate([self._kept, *self._pending], axis=1))
        self._pending, self._waiting = [], 0

    def result(self) -> tuple[Int64, Int64]:
        """Return the keys in order and their sums, cut off at 2^62 in size."""
        self._merge()
        keys, low, high = self._kept
        top = MOST >> _DIGIT
        inside = (np.clip(high, -top, top) << _DIGIT) + low
        return keys, np.where(high >= top, MOST, np.where(high < -top, -MOST, inside))

    def totals(self, items: pl.DataFrame, known: int) -> SparseTotals:
        """Return the sums by step, the new items numbered by first step and then bytes.

        Args:
            items: Every item in the order of the numbers in the keys.
            known: The first so many keep their numbers.
        """
        import polars as pl

        keys, amount = self.result()
        step, item = np.divmod(keys, UNKNOWN_CELLS)
        seen, at = np.unique(item, return_index=True)
        first = step[at]  # keys are in the order of steps
        new = seen >= known
        order = (
            items[seen[new]]
            .select(
                pl.Series("first", first[new]),
                *(pl.col(name).alias(str(place)) for place, name in enumerate(items.columns)),
                pl.Series("item", seen[new]),
            )
            .sort(pl.all().exclude("item"))["item"]
            .to_numpy()
        )
        numbers = np.arange(items.height)
        numbers[order] = known + np.arange(len(order))
        named = pl.concat([items[:known], items[order]])
        item = numbers[item]
        place = np.lexsort((item, step))
        return SparseTotals(named, step[place], item[place], amount[place], known)


def _added(table: Int64) -> Int64:
    """Return each key once, in order, with its sum in two halves."""
    table = table[:, np.argsort(table[0], kind="stable")]
    heads = np.flatnonzero(np.concatenate([[True], table[0, 1:] != table[0, :-1]]))
    heads = heads[heads < table.shape[1]]
    if not len(heads):
        return table
    low, high = np.add.reduceat(table[1:], heads, axis=1)
    high += low >> _DIGIT
    return np.stack([table[0, heads], low & ((1 << _DIGIT) - 1), high])
