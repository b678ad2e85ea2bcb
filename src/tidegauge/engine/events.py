r"""Events that are sets of rows: which rows are one event, at which step, and what it adds.

Rows that share an event id are one event, and where an id is protected, rows that share both: an
event is the pair, so that an id that leaves takes its own events with it and no part of another's.
An event's step is that of its earliest row, wherever the other rows lie; it adds to that step
alone. What it adds to a gauge is a function of its own rows as a multiset:

* *Count*: of the cells that its rows have, the ``max_items`` smallest by bytes (column by column,
  UTF-8) stay; each counts once for every row of it, up to ``repeats`` times.
* *Sum*: of the same cells, the amounts of its rows are added up and then clamped to the bounds.
  (A row's own amount is cut off at 2^40 grains, and sums are taken modulo 2^64: an event with four
  million such rows would have a wrong sum, still within the bounds.)
* *Mean*: the same, and each such sum is one value.
* *Different values*: its ``max_items`` values smallest by hash, each in the smallest of its cells.

Cells may be left out early, for what is not among the smallest of some rows never is of more.

An event whose earliest row lies before the first step that is asked for adds nothing. The ids of
events that began before are kept over the life of a store, as 128-bit keyed hashes: of an old event
in a source that was rotated, the rows that are left are no new event.

Memory: 24 bytes for each event (40 where an id is protected) and 32 for each cell or value that it
keeps, and as much again while batches are merged; in the store 16 bytes for each event ever seen
until its last committed step. Time: one hash for each event of a batch, and sorts: n log n in all.
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

    from tidegauge.engine.bounding import Bounding
    from tidegauge.engine.contributions import Contributor
    from tidegauge.planning.plan import Clock, PlannedGauge

__all__ = ["EVERYWHEN", "EventIds", "Events"]

Int64 = NDArray[np.int64]
Bool = NDArray[np.bool_]
Part = tuple[Int64, Int64 | None]

EVERYWHEN = (-62_135_596_800_000_000, 253_402_300_799_999_999)
"""First and last microsecond of the years 1 to 9999: an event may begin at any time."""

_PENDING = 1 << 17  # rows that wait before they are merged with what is kept
_BEFORE = np.iinfo(np.int64).min  # the stamp of events that began in earlier runs
_HIGH, _LOW, _STAMP, _ID_HIGH, _ID_LOW = range(5)  # of the table of events
_ITEM, _AMOUNT = 2, 3  # of a gauge's table, after the same hash


class EventIds:
    """Turns the ids of rows into hashes of their events.

    Args:
        key: Secret bytes; the same over the life of a store.
        event: Column with the id of the event.
        unit: Column with the protected id; None: one event is protected.
    """

    def __init__(self, key: bytes, event: str, unit: str | None) -> None:
        self._hashes = Hashed(key, b"tidegauge events")
        self._event, self._unit = event, unit

    def known(self, frame: pl.DataFrame) -> dict[str, Bool]:
        """Return which rows have an id of each kind, by the name under which others count."""
        columns = {"no_event": self._event, "no_id": self._unit}
        return {
            reason: id_texts(frame[column]).is_not_null().to_numpy()
            for reason, column in columns.items()
            if column is not None
        }

    def halves(self, frame: pl.DataFrame) -> tuple[Int64, Int64]:
        """Return both halves of the hash of each row's event; every row has its ids."""
        text = id_texts(frame[self._event])
        if self._unit is not None:
            unit = id_texts(frame[self._unit])
            text = unit.str.len_bytes().cast(text.dtype) + ":" + unit + text  # tells pairs apart
        return self._hashes.halves(text)[:2]


class Events:
    """Gathers the rows of events, from any batches in any order.

    Args:
        gauges: What is counted, each with what turns rows into cells of it.
        clock: With a step of fixed length.
        state: What :meth:`state` returned for the steps before; None: no event began.
        bounding: Keeps the first events of each id; None: one event is protected.
        every_event: Events that add nowhere use up the bound, too: needed under ``replace_one``.

    Attributes:
        counters: What was left out and why, for the operator alone.
    """

    def __init__(
        self,
        gauges: Sequence[tuple[PlannedGauge, Contributor]],
        clock: Clock,
        state: Mapping[str, Int64] | None = None,
        bounding: Bounding | None = None,
        *,
        every_event: bool = False,
    ) -> None:
        self._clock, self._bounding, self._every_event = clock, bounding, every_event
        self._items = [_Items(*gauge) for gauge in gauges]
        begun = np.empty((0, 2), np.int64) if state is None else state["events"]
        width = _STAMP + 1 if bounding is None else _ID_LOW + 1
        self._events = np.full((width, len(begun)), _BEFORE)
        self._events[: _LOW + 1] = begun.T
        self._pending: list[Int64] = []
        self._waiting = 0
        self.counters: Counter[str] = Counter()

    def add(
        self,
        events: tuple[Int64, Int64],
        stamps: Int64,
        parts: Sequence[Part],
        ids: tuple[Int64, Int64] | None = None,
    ) -> None:
        """Add the rows of a batch.

        Args:
            events: Both halves of the hash of each row's event, shape (rows,).
            stamps: Each row's place in time.
            parts: For each gauge, each row's cell (-1: it adds nothing) and how much (None: 1).
            ids: Both halves of the hash of each row's protected id.
        """
        self._pending.append(np.stack([*events, stamps, *(ids or ())]))
        self._waiting += len(stamps)
        if self._waiting >= max(_PENDING, self._events.shape[1]):
            self._merge()
        for items, (cells, amounts) in zip(self._items, parts, strict=True):
            items.add(events, cells, amounts)

    def _merge(self) -> None:
        """Keep the earliest stamp of each event."""
        if self._pending:
            table = np.concatenate([self._events, *self._pending], axis=1)
            self._pending, self._waiting = [], 0
            table, heads = _sorted(table, _STAMP + 1, _STAMP)
            self._events = np.ascontiguousarray(table[:, heads])

    def result(self, first: int, last: int) -> Iterator[Part]:
        """Yield where and how much the events of the steps ``[first, last)`` add, for each gauge.

        Where: step * cells + cell, counted from step 0.
        """
        self._merge()
        clock, stamps = self._clock, self._events[_STAMP]
        assert clock.step_us is not None
        begins, ends = (clock.start_us + edge * clock.step_us for edge in (first, last))
        inside = (stamps >= begins) & (stamps < ends)
        self.counters["event_before"] += int(((stamps < begins) & (stamps != _BEFORE)).sum())
        self.counters["event_outside"] += int((stamps >= ends).sum())
        steps = (np.where(inside, stamps, clock.start_us) - clock.start_us) // clock.step_us
        found = [items.result(self._events) for items in self._items]
        if self._bounding is not None:
            inside &= self._bounded(inside, steps, [numbers for numbers, _, _ in found])
        for items, (numbers, cells, amounts) in zip(self._items, found, strict=True):
            kept = inside[numbers]
            yield (steps[numbers] * items.cells + cells)[kept], amounts[kept]

    def _bounded(self, inside: Bool, steps: Int64, adding: Sequence[Int64]) -> Bool:
        """Return which events are among the first of their ids."""
        assert self._bounding is not None
        counting = np.full(len(steps), self._every_event)
        for numbers in adding:
            counting[numbers] = True
        number = np.flatnonzero(inside & counting)
        events = self._events[:, number]
        ids, ties = (events[_ID_HIGH], events[_ID_LOW]), events[_LOW]
        self._bounding.add_events(ids, steps[number], events[_STAMP], (number, ties))
        ((kept, _),) = self._bounding.kept()
        self.counters["event_beyond_bound"] += len(number) - len(kept)
        result = np.zeros(len(steps), np.bool_)
        result[kept] = True
        return result

    def state(self, stamp: int) -> dict[str, Int64]:
        """Return the hashes of all events that began before a moment, sorted; private."""
        self._merge()
        begun = self._events[: _LOW + 1, self._events[_STAMP] < stamp]
        return {"events": np.ascontiguousarray(begun.T)}


class _Items:
    """The cells of events in one gauge, or their values."""

    def __init__(self, gauge: PlannedGauge, contributor: Contributor) -> None:
        self.cells = contributor.cells
        self._gauge, self._contributor = gauge, contributor
        self._distinct = gauge.distinct is not None
        self._most = gauge.high if self._distinct else gauge.max_items
        self._cell = _AMOUNT if self._distinct else _ITEM
        self._kept = np.empty((_AMOUNT + 1, 0), np.int64)
        self._pending: list[Int64] = []
        self._waiting = 0

    def add(self, events: tuple[Int64, Int64], cells: Int64, amounts: Int64 | None) -> None:
        rows = np.flatnonzero(cells >= 0)
        table = np.empty((_AMOUNT + 1, len(rows)), np.int64)
        table[_HIGH], table[_LOW] = events[0][rows], events[1][rows]
        amount = 1 if amounts is None else amounts[rows]
        other = _ITEM if self._distinct else _AMOUNT
        table[self._cell], table[other] = cells[rows], amount
        self._pending.append(table)
        self._waiting += len(rows)
        if self._waiting >= max(_PENDING, self._kept.shape[1]):
            self._merge()

    def _merge(self) -> None:
        """Bring together what each event adds to a cell, and keep its smallest cells."""
        if not self._waiting:
            return
        table = np.concatenate([self._kept, *self._pending], axis=1)
        self._pending, self._waiting = [], 0
        rank = self._contributor.ranks  # of all cells so far: those of two never change places
        table[self._cell] = rank[table[self._cell]]
        table, heads = _sorted(table, _AMOUNT, _ITEM + 1)
        together = np.minimum if self._distinct else np.add
        amounts = together.reduceat(table[_AMOUNT], heads)
        table = table[:, heads]
        table[_AMOUNT] = amounts
        if self._gauge.kind == "count":
            np.minimum(table[_AMOUNT], self._gauge.high, out=table[_AMOUNT])
        place = np.arange(len(heads))
        begins = np.flatnonzero(_first(table, _ITEM))
        place -= np.repeat(begins, np.diff(np.append(begins, len(heads))))
        self._kept = np.ascontiguousarray(table[:, place < self._most])
        self._kept[self._cell] = np.argsort(rank)[self._kept[self._cell]]

    def result(self, events: Int64) -> tuple[Int64, Int64, Int64]:
        """Return the number of the event, the cell and the amount of everything that is kept."""
        self._merge()
        numbers = _numbers(events, self._kept)
        item, amount = self._kept[_ITEM], self._kept[_AMOUNT]
        if self._distinct:
            return numbers, amount, item
        if self._gauge.kind in ("sum", "mean"):
            amount = np.clip(amount, self._gauge.low, self._gauge.high)
        return numbers, item, amount


def _sorted(table: Int64, keys: int, same: int) -> tuple[Int64, Int64]:
    """Sort columns by their first rows; return them, and where one differs from the one before.

    Half of a hash nearly always tells events apart; only where it does not, both are sorted by.

    Args:
        table: int64 of shape (rows, columns), a hash in the first two.
        keys: By how many rows it is sorted, the first of most weight.
        same: In how many of them columns are compared.
    """
    order = np.lexsort((*table[_LOW + 1 : keys][::-1], table[_HIGH]))
    high, low = table[_HIGH, order], table[_LOW, order]
    if ((high[1:] == high[:-1]) & (low[1:] != low[:-1])).any():
        order = np.lexsort(table[:keys][::-1])
    table = table[:, order]
    return table, np.flatnonzero(_first(table, same))


def _first(table: Int64, same: int) -> Bool:
    """Return which columns differ in their first rows from the column before."""
    result = np.ones(table.shape[1], np.bool_)
    result[1:] = (table[:same, 1:] != table[:same, :-1]).any(axis=0)
    return result


def _numbers(events: Int64, items: Int64) -> Int64:
    """Return the place of each item's event among events; both are sorted by hash."""
    begins = np.flatnonzero(_first(items, _ITEM))
    count, heads = events.shape[1], len(begins)
    both = np.concatenate([events[: _LOW + 1], items[: _LOW + 1, begins]], axis=1)
    later = np.arange(count + heads) >= count
    order = np.lexsort((later, both[_LOW], both[_HIGH]))
    place = np.empty(count + heads, np.int64)
    place[order] = np.cumsum(~later[order]) - 1
    return np.repeat(place[count:], np.diff(np.append(begins, items.shape[1])))
