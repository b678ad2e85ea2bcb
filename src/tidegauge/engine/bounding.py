r"""At most k events of each id: the bound that a promise for an id rests on.

Of each id the first :math:`k` events are kept, in the order of their stamps; among equal stamps a
hash of what they add decides. An event is a row that adds to at least one gauge; it counts once,
whatever number of gauges it adds to. Under ``replace_one``, where values change and steps do not,
every row that has an id and a step is an event, also one that adds nowhere: else a changed value
would make room for a row of another step. What is kept of one id depends on that id's rows
alone, so removing an id removes its at most :math:`k` events and changes nothing else (whole-id
neighbors). A cap that ids share would let one id decide what another contributes; there is none
here.

A row without an id (null or empty text) is dropped: the rows of a person without one would have no
bound together. Equal ids are equal text, byte for byte: the integer 1 and the text "1" are one id.
A whole number that is spelled as a float (``1.0``, ``1.5e10``, ``1e+16``) is no id, for some
writers spell an integer so once a neighbor is null; its row is dropped as if it had none.

``per="lifetime"`` counts over the whole life of a store: the counts of one call enter the next.
With ``per`` a number of steps, :math:`k` events of each id are kept in each period, cut from step
0: a weaker unit, an id's events of one period.

Ids are kept only as 128-bit BLAKE2b hashes under the store's key. Memory: :math:`56 + 16 g` bytes
for each kept event of :math:`g` gauges, at most :math:`k` of each id, and up to as much again
while a batch is merged; 24 bytes for each id in the stored counts. Time: a hash of each distinct id
of a batch, and a sort each time the rows that wait outnumber the kept ones: n log n in all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tidegauge.engine.hashed import Hashed, id_texts

if TYPE_CHECKING:
    import polars as pl

    from tidegauge.planning.plan import IdUnit

__all__ = ["Bounding"]

Int64 = NDArray[np.int64]
Part = tuple[Int64, Int64 | None]

_PENDING = 1 << 17  # rows that wait before they are merged with what is kept
_ODD = 0x1E3779B97F4A7C15  # spreads periods over a word
_FIRST = np.iinfo(np.int64).min
# columns of the table of kept events: hash (two halves), period, stamp, tie, weight, then gauges
_HIGH, _LOW, _PERIOD, _STAMP, _TIE, _WEIGHT, _GAUGES = range(7)


class Bounding:
    """Keeps the first events of each id.

    Args:
        unit: The column, how many events of an id are kept, and per what.
        gauges: How many gauges an event may add to.
        key: Secret bytes; the same over the life of a store.
        state: What :meth:`state` returned for the steps before; None: nothing is used up.
        every_row: Rows that add nowhere are events, too: needed under ``replace_one``.

    Attributes:
        counters: What was dropped and why, for the operator alone.
    """

    def __init__(
        self,
        unit: IdUnit,
        gauges: int,
        key: bytes,
        state: Mapping[str, Int64] | None = None,
        *,
        every_row: bool = False,
    ) -> None:
        self._every_row = every_row
        self._unit = unit
        self._gauges = gauges
        self._hashes = Hashed(key, b"tidegauge ids")
        self.counters: Counter[str] = Counter()
        self._kept = self._used(state)
        self._pending: list[Int64] = []
        self._waiting = 0

    def _used(self, state: Mapping[str, Int64] | None) -> Int64:
        """The counts of the steps before, as the first rows of their ids."""
        count = 0 if state is None else len(state["counts"])
        table = np.zeros((_GAUGES + 2 * self._gauges, count), np.int64)
        if state is not None:
            table[_HIGH], table[_LOW] = state["ids"].T
            table[_PERIOD], table[_WEIGHT] = state["period"], state["counts"]
            table[_STAMP] = _FIRST
            table[_GAUGES::2] = -1
        return table

    def add(
        self,
        ids: pl.Series,
        steps: Int64,
        stamps: Int64,
        parts: Sequence[Part],
        ties: Sequence[Int64] | None = None,
    ) -> None:
        """Add the rows of a batch.

        Args:
            ids: The column of ids, shape (rows,).
            steps: Each row's step, from step 0.
            stamps: Each row's place in time, never later for an earlier step.
            parts: For each gauge, where each row adds (-1: nowhere) and how much (None: 1).
            ties: For each gauge, what of ``where`` tells equally old rows apart; None: that itself.
        """
        events = np.full(len(steps), self._every_row)
        for keys, _ in parts:
            events |= keys >= 0
        high, low, known = self.hashed(ids, events)
        self.counters["no_id"] += int((events & ~known).sum())
        rows = np.flatnonzero(known)
        if not len(rows):
            return
        adding = [(keys[rows], None if more is None else more[rows]) for keys, more in parts]
        words = None if ties is None else [tie[rows] for tie in ties]
        self._pend(high[rows], low[rows], steps[rows], stamps[rows], adding, words)
        if self._waiting >= max(_PENDING, self._kept.shape[1]):
            self._merge()

    def _pend(
        self,
        high: Int64,
        low: Int64,
        steps: Int64,
        stamps: Int64,
        parts: Sequence[Part],
        ties: Sequence[Int64] | None = None,
    ) -> None:
        """Let events wait to be merged with what is kept."""
        table = np.empty((_GAUGES + 2 * self._gauges, len(steps)), np.int64)
        table[_HIGH], table[_LOW] = high, low
        table[_PERIOD] = self._period(steps)
        table[_STAMP], table[_WEIGHT] = stamps, 1
        for at, (keys, amounts) in enumerate(parts):
            table[_GAUGES + 2 * at] = keys
            table[_GAUGES + 2 * at + 1] = 1 if amounts is None else amounts
        telling = table[_GAUGES:].copy()
        for at, words in enumerate(ties or ()):
            telling[2 * at] = words
        table[_TIE] = _mixed(telling)
        self._pending.append(table)
        self._waiting += len(steps)

    @property
    def rows(self) -> int:
        """Rows held in memory."""
        return int(self._kept.shape[1]) + self._waiting

    def _period(self, steps: Int64) -> Int64:
        if self._unit.per == "lifetime":
            return np.zeros_like(steps)
        return steps // self._unit.per

    def hashed(
        self, ids: pl.Series, wanted: NDArray[np.bool_]
    ) -> tuple[Int64, Int64, NDArray[np.bool_]]:
        """Return both halves of the hash of each wanted id, and which rows have one."""
        import polars as pl

        return self._hashes.halves(id_texts(ids).set(~pl.Series(wanted), None))

    def add_events(
        self, ids: tuple[Int64, Int64], steps: Int64, stamps: Int64, events: tuple[Int64, Int64]
    ) -> None:
        """Add events that are sets of rows, each once; :meth:`kept` yields the numbers of some.

        Args:
            ids: Both halves of the hash of each event's id.
            steps: Each event's step, from step 0.
            stamps: Each event's place in time.
            events: Each event's number, and a hash of its own, which decides among equal stamps.
        """
        if not len(steps):
            return
        self._pend(*ids, steps, stamps, [(events[0], None)])
        self._pending[-1][_TIE] = events[1]
        self._merge()

    def _merge(self) -> None:
        """Keep the first events of each id and period; the rest can never come back."""
        if not self._pending:
            return
        table = np.concatenate([self._kept, *self._pending], axis=1)
        self._pending, self._waiting = [], 0
        table = table[:, _order(table)]
        heads = np.concatenate([[True], ~_same(table)])
        so_far = np.cumsum(table[_WEIGHT])
        before = (so_far - table[_WEIGHT])[heads][np.cumsum(heads) - 1]
        keep = so_far - before <= self._unit.max_contributions
        keep |= table[_STAMP] == _FIRST  # what is used up stays so
        self.counters["beyond_bound"] += int((~keep).sum())
        self._kept = np.ascontiguousarray(table[:, keep])

    def kept(self) -> Iterator[Part]:
        """Yield where and how much the kept events add, for each gauge."""
        self._merge()
        events = self._kept[:, self._kept[_STAMP] != _FIRST]
        for at in range(self._gauges):
            yield events[_GAUGES + 2 * at], events[_GAUGES + 2 * at + 1]

    def state(self, step: int, stamp: int) -> dict[str, Int64]:
        """Return how many events of each id are used up when a step begins.

        Args:
            step: At most the step after the last that was added.
            stamp: The place in time at which it begins.

        Returns:
            ``ids`` int64[n, 2] (hashes), ``counts`` and ``period`` int64[n]; sorted by hash.
        """
        self._merge()
        period = self._period(np.array([step]))[0]
        before = (self._kept[_PERIOD] == period) & (self._kept[_STAMP] < stamp)
        table = self._kept[: _WEIGHT + 1, before]  # rows of one id stand together
        heads = np.flatnonzero(np.concatenate([[True], ~_same(table)])[: table.shape[1]])
        counts = np.add.reduceat(table[_WEIGHT], heads) if len(heads) else heads
        order = np.lexsort((table[_LOW, heads], table[_HIGH, heads]))
        ids = np.ascontiguousarray(table[: _LOW + 1, heads[order]].T)
        return {"ids": ids, "counts": counts[order], "period": np.full(len(heads), period)}


def _same(table: Int64) -> NDArray[np.bool_]:
    """Return which rows are of the same id and period as the row before; the first has none."""
    result: NDArray[np.bool_] = (table[:_STAMP, 1:] == table[:_STAMP, :-1]).all(axis=0)
    return result


def _order(table: Int64) -> Int64:
    """Return an order in which the rows of one id and period stand together, first events first.

    One word of the hash, mixed with the period, nearly always tells groups apart and is three
    times as fast to sort; where it does not, all words are used.
    """
    group = table[_HIGH] ^ (table[_PERIOD] * _ODD)
    order = np.lexsort((table[_TIE], table[_STAMP], group))
    group = group[order]
    if ((group[1:] == group[:-1]) & ~_same(table[:_STAMP, order])).any():
        return np.lexsort((table[_TIE], table[_STAMP], table[_PERIOD], table[_LOW], table[_HIGH]))
    return order


def _mixed(columns: Int64) -> Int64:
    """A hash of what each row adds, so that among equal stamps no cell is preferred."""
    value = np.zeros(columns.shape[1], np.uint64)
    for column in columns:
        value = (value ^ column.view(np.uint64)) + np.uint64(0x9E3779B97F4A7C15)
        value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)  # splitmix64
        value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        value ^= value >> np.uint64(31)
    return value.view(np.int64)
