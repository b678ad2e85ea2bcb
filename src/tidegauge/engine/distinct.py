r"""Counts of different values, step by step, from rows in any order.

A value occurs in a cell at the steps of the rows that bring it. An occurrence at step s makes it
present in :math:`[s, s + W)`, up to the next occurrence, which then takes over. So removing one
occurrence lowers the count by one on a single interval of at most W steps and nowhere else (the
interval lemma, ``docs/proofs/distinct.md``), and the count of values seen for the first time at
two steps at most, in opposite ways.

Values are told apart as text, byte for byte: composed and decomposed letters are two values, the
integer 1 and the text "1" are one, 1.0 is another. Nulls and empty texts are not counted. A value
is kept only as a 64-bit hash under the store's key: of n values some :math:`n^2 / 2^{65}` pairs
would be taken for one, which keeps the lemma and lowers the count.

State: for each value its cell and the step at which it was seen last, 24 bytes, as long as it is
in the window; of a count since the start, its cell, 16 bytes, for ever. Sorted by cell and hash:
nothing tells in what order the values came. Reading takes as much again, and 24 bytes for each
step at which a value occurs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tidegauge.engine.hashed import Hashed

if TYPE_CHECKING:
    import polars as pl

    from tidegauge.privacy.unit import Distinct

__all__ = ["DistinctCounts", "Values"]

Int64 = NDArray[np.int64]
Bool = NDArray[np.bool_]
State = dict[str, Int64]

_PENDING = 1 << 17  # occurrences that wait before they are merged with what is kept
_CELL, _VALUE, _STEP = range(3)


class Values:
    """Turns a column into hashes of its values.

    Args:
        key: Secret bytes; the same over the life of a store.
    """

    def __init__(self, key: bytes) -> None:
        self._hashed = Hashed(key, b"tidegauge values")

    def hashes(self, column: pl.Series) -> tuple[Int64, Bool]:
        """Return a hash for each row, and which rows have a value."""
        import polars as pl

        text = column if column.dtype == pl.String else column.cast(pl.String, strict=False)
        first, _, known = self._hashed.halves(text.set(text == "", None))
        return first, known


class DistinctCounts:
    """Counts the different values of one gauge in each of its cells.

    Args:
        distinct: ``"ever"``, or the window in steps.
        cells: Number of cells.
        first: The first step that is asked for.
        state: What :meth:`state` returned at ``first``; None: no value was seen.

    Examples:
        Two values in one cell, over a window of two steps; a third, seen one step before:

        >>> past = {"cell": np.array([0]), "value": np.array([9]), "last": np.array([4])}
        >>> counts = DistinctCounts(2, 1, 5, past)
        >>> counts.add(np.array([5, 5, 8]), np.array([7, 8, 7]))
        >>> counts.result(10).ravel().tolist()
        [3, 2, 0, 1, 1]
    """

    def __init__(
        self,
        distinct: Distinct,
        cells: int,
        first: int,
        state: Mapping[str, Int64] | None = None,
    ) -> None:
        self._window = None if distinct == "ever" else distinct
        self._cells, self._first = cells, first
        self._seen = np.empty((3, 0), np.int64)
        if state is not None:
            count = len(state["value"])
            last = state["last"] if self._window else np.full(count, first - 1)
            self._seen = np.stack([state["cell"], state["value"], last])
        self._pending: list[Int64] = []
        self._waiting = 0

    def add(self, keys: Int64, values: Int64) -> None:
        """Add occurrences: ``step * cells + cell`` of each, counted from step 0, and its value.

        Negative keys are left out.
        """
        there = keys >= 0
        step, cell = np.divmod(keys[there], self._cells)
        self._pending.append(np.stack([cell, values[there], step]))
        self._waiting += len(step)
        if self._waiting >= max(_PENDING, self._seen.shape[1]):
            self._merge()

    def _merge(self) -> None:
        """Sort by cell, value and step, and keep each once."""
        if self._pending:
            table = np.concatenate([self._seen, *self._pending], axis=1)
            self._pending, self._waiting = [], 0
            table = table[:, np.lexsort((table[_STEP], table[_VALUE], table[_CELL]))]
            new = np.concatenate([[True], (table[:, 1:] != table[:, :-1]).any(axis=0)])
            self._seen = np.ascontiguousarray(table[:, new[: table.shape[1]]])

    def result(self, last: int) -> Int64:
        """Return the counts of the steps ``[first, last)``, int64 of shape (steps, cells).

        Of a window: how many values are present. Ever: how many are seen for the first time.
        """
        self._merge()
        cell, _, step = self._seen
        again = self._again()  # whether the occurrence after is of the same value and cell
        changes = np.zeros((last - self._first + 1, self._cells), np.int64)
        steps = last - self._first

        def change(by: int, at: Int64, where: Int64) -> None:
            place = np.clip(at - self._first, 0, steps)
            np.add.at(changes, (place, where), by)

        if self._window is None:
            heads = np.concatenate([[True], ~again])[: len(step)] & (step >= self._first)
            change(1, step[heads], cell[heads])
            return changes[:-1]
        gone = step + self._window
        gone[:-1] = np.where(again, np.minimum(gone[:-1], step[1:]), gone[:-1])
        change(1, step, cell)
        change(-1, gone, cell)
        return np.cumsum(changes[:-1], axis=0)

    def state(self, step: int) -> State:
        """Return what later counts need when a step begins; private.

        Args:
            step: From the first step to the step after the last that was added.
        """
        self._merge()
        before = self._seen[:, self._seen[_STEP] < step]
        again = (before[:_STEP, 1:] == before[:_STEP, :-1]).all(axis=0)
        kept = np.concatenate([~again, [True]])[: before.shape[1]]
        if self._window is not None:
            kept &= before[_STEP] + self._window > step
        cell, value, last = before[:, kept]
        found = {"cell": cell, "value": value}
        return found if self._window is None else {**found, "last": last}

    def _again(self) -> Bool:
        result: Bool = (self._seen[:_STEP, 1:] == self._seen[:_STEP, :-1]).all(axis=0)
        return result
