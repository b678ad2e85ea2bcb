"""Exact totals of a finite source: every batch of rows onto the steps and cells of each gauge.

Each row adds what it is by itself: its step from its own stamp, its cell from its own columns, its
grains from its own value. So one row more or less moves one cell of one step of each gauge, by at
most the declared contribution. Where an event is a set of rows, the same holds of the set (see
:mod:`~tidegauge.engine.events`), for at most ``max_items`` cells. Rows that cannot be read, have no
stamp, or lie outside the steps that are asked for add nothing. What was dropped is counted for the
operator alone.

Time grows with the rows, memory with steps x cells (of discovered cells: with the pairs of a cell
and a step at which it occurs) and with what is kept of each protected id, each event that is a set
and each counted value; neither the number of rows nor their order matters for memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tidegauge.checks import integer
from tidegauge.engine.bounding import Bounding
from tidegauge.engine.clock import steps
from tidegauge.engine.contributions import Contributor, check_types
from tidegauge.engine.distinct import DistinctCounts
from tidegauge.engine.events import EVERYWHEN, EventIds, Events
from tidegauge.engine.hashed import checked_key
from tidegauge.engine.pairs import Pairs
from tidegauge.engine.source import UNREADABLE, Source
from tidegauge.engine.sparse import MOST_STEPS, SparseSums, SparseTotals
from tidegauge.engine.stamps import stamps
from tidegauge.engine.values import KeptValues, ValueLists
from tidegauge.errors import InvalidParameter
from tidegauge.mechanisms.accumulator import MOST, Accumulator
from tidegauge.privacy.unit import NeighboringRelation

if TYPE_CHECKING:
    import polars as pl

    from tidegauge.planning.plan import Plan, PlannedGauge

__all__ = ["Totals", "totals"]

Int64 = NDArray[np.int64]
State = dict[str, NDArray[np.int64]]


def _no_state(_: int) -> State | None:
    return None


@dataclass(frozen=True)
class Totals:
    """What a source adds up to.

    Attributes:
        arrays: Name of each gauge and int64[steps, cells], in grains; of a mean int64[steps, 2
            cells], sums and then counts.
        first: The first step.
        last: The step after the last.
        records: Records seen, whatever became of them.
        counters: What was dropped and why; the operator's alone, no part of any release.
        unit_state_at: Returns how many events of each id are used up when a step in
            ``[first, last]`` begins, and which events that are sets began before it; private,
            to be stored with the measurement of the steps before. None if there is neither.
        sparse: Name of each gauge that discovers its cells, and its totals where an event was;
            private.
        seen_at: Returns, by name of the gauge, what counts of different values need when a step
            in ``[first, last]`` begins; private, stored alike. Empty without such a gauge.
        values: Of gauges whose clip is found, all values in place of sums; private.
    """

    arrays: dict[str, Int64] = field(repr=False)
    first: int
    last: int
    records: int = field(repr=False)
    counters: dict[str, int] = field(repr=False)
    sparse: dict[str, SparseTotals] = field(default_factory=dict, repr=False)
    unit_state_at: Callable[[int], State | None] = field(default=_no_state, repr=False)
    seen_at: Callable[[int], dict[str, State]] = field(default=lambda _: {}, repr=False)
    values: dict[str, KeptValues] = field(default_factory=dict, repr=False)

    def items_seen(self, step: int) -> dict[str, int]:
        """Return how many items were seen when a step begins: the operator's alone."""
        return {f"{name}: items": sparse.seen(step) for name, sparse in self.sparse.items()}

    @property
    def unit_state(self) -> State | None:
        """The same after the last step."""
        return self.unit_state_at(self.last)


def totals(
    plan: Plan,
    source: Source,
    first: int,
    last: int | None,
    *,
    unit_key: bytes | None = None,
    unit_state: Mapping[str, NDArray[np.int64]] | None = None,
    seen: Mapping[str, Mapping[str, NDArray[np.int64]]] | None = None,
    items: Mapping[str, pl.DataFrame] | None = None,
) -> Totals:
    """Read a source once and return the exact totals of the steps ``[first, last)``.

    Args:
        plan: Declares the clock, the unit and the gauges.
        source: Is read from beginning to end.
        first: First step, from 0; rows of earlier steps take part in nothing.
        last: The step after the last. None, only where each record is a step: the number of
            records, which is public there, but not beyond the clock's end.
        unit_key: At least 16 secret bytes, the same over the life of a store; ids are kept only
            as hashes under it. Needed if an id is protected, an event is a set of rows, or
            different values are counted.
        unit_state: What ``unit_state_at(first)`` of the call for the steps before returned; None:
            no events are used up, and none began.
        seen: What ``seen_at(first)`` of that call returned; None: no value was seen.
        items: Name of each gauge that discovers its cells, and those that were seen in steps
            before, in the order of their numbers; None: none were.

    Raises:
        SourceUnavailable: The source is away, cannot be read or lacks a column. Never because of
            what a row says.
        InvalidParameter: The range of steps is none, or the key is missing.
    """
    _check_range(plan, first, last)
    check_types(plan, source.types(plan.columns))
    reading = _Reading(plan, first, last, unit_key, unit_state, seen or {}, items or {})
    for frame in source.batches(plan.columns):
        reading.add(frame)
    return reading.totals()


def _check_range(plan: Plan, first: int, last: int | None) -> None:
    if last is None and plan.clock.step_us is not None:
        raise InvalidParameter(
            "Expected the step after the last, got None. The end of a clock never comes from the "
            "rows. Give the declared end, or the steps until now."
        )
    integer("first", first, low=0, high=MOST)
    most = MOST if plan.clock.end is None else plan.clock.end
    if any(gauge.discover is not None for gauge in plan.gauges):
        most = min(most, MOST_STEPS)
    if last is not None:
        integer("last", last, low=first, high=most)


def _sums(
    gauge: PlannedGauge, first: int, seen: Mapping[str, NDArray[np.int64]] | None
) -> Accumulator | DistinctCounts | SparseSums | Pairs | ValueLists:
    """What adds up one gauge."""
    if gauge.discover is not None:
        return SparseSums()
    if gauge.distinct is not None:
        return DistinctCounts(gauge.distinct, len(gauge.cells), first, seen)
    if gauge.clip is not None:
        return ValueLists()
    if gauge.kind == "mean":
        return Pairs(gauge.bounds, len(gauge.cells))
    return Accumulator(gauge.largest)


class _Reading:
    """The state of one pass over a source."""

    def __init__(
        self,
        plan: Plan,
        first: int,
        last: int | None,
        key: bytes | None,
        state: Mapping[str, NDArray[np.int64]] | None,
        seen: Mapping[str, Mapping[str, NDArray[np.int64]]],
        items: Mapping[str, pl.DataFrame],
    ) -> None:
        self._plan, self._first, self._last = plan, first, last
        sets = plan.event is not None
        self._gauges = [
            Contributor(gauge, key, items.get(gauge.name), sets=sets) for gauge in plan.gauges
        ]
        self._known = {name: table.height for name, table in items.items()}
        self._sums = [_sums(gauge, first, seen.get(gauge.name)) for gauge in plan.gauges]
        self._records = 0
        self._counters: Counter[str] = Counter()
        if last is not None:
            self._grow(last)
        self._bounding = None
        if plan.unit is not None:
            unit_key = checked_key(key)
            replaced = plan.relation is NeighboringRelation.REPLACE_ONE
            count = len(self._gauges) if plan.event is None else 1
            self._bounding = Bounding(plan.unit, count, unit_key, state, every_row=replaced)
        self._ids, self._events = None, None
        if plan.event is not None:
            unit = None if plan.unit is None else plan.unit.column
            self._ids = EventIds(checked_key(key), plan.event, unit)
            replaced = plan.relation is NeighboringRelation.REPLACE_ONE
            gauges = tuple(zip(plan.gauges, self._gauges, strict=True))
            self._events = Events(gauges, plan.clock, state, self._bounding, every_event=replaced)

    def add(self, frame: pl.DataFrame) -> None:
        """Add one batch."""
        count = frame.height
        if count == 0:
            return
        start = self._records
        self._records += count
        self._counters["records"] += count
        known = np.ones(count, np.bool_)
        if UNREADABLE in frame.columns:
            known = ~frame[UNREADABLE].to_numpy()
            self._dropped("unreadable", known)
        if self._events is not None:
            self._gather(frame, known)
            return
        order, step, inside = self._placed(frame, known, start)
        if not inside.all():
            import polars as pl

            frame = frame.filter(pl.Series(inside))
            step, order = step[inside], order[inside]
        if frame.height == 0:
            return
        parts = [gauge.contributions(frame, step) for gauge in self._gauges]
        if self._bounding is not None:
            assert self._plan.unit is not None
            ties = [gauge.ties(keys) for gauge, (keys, _) in zip(self._gauges, parts, strict=True)]
            self._bounding.add(frame[self._plan.unit.column], step, order, parts, ties)
            return
        self._sum(parts)

    def _gather(self, frame: pl.DataFrame, known: NDArray[np.bool_]) -> None:
        """Add the rows of events that are sets, whenever they are: the earliest tells the step."""
        import polars as pl

        plan = self._plan
        assert plan.time is not None
        assert self._ids is not None
        assert self._events is not None
        us, timed = stamps(frame[plan.time.column], plan.time, EVERYWHEN)
        taken = known & timed
        self._counters["no_time"] += int(known.sum() - taken.sum())
        for reason, there in self._ids.known(frame).items():
            self._counters[reason] += int((taken & ~there).sum())
            taken &= there
        if not taken.all():
            frame, us = frame.filter(pl.Series(taken)), us[taken]
        if frame.height == 0:
            return
        parts = [gauge.contributions(frame, np.zeros_like(us)) for gauge in self._gauges]
        ids = None
        if self._bounding is not None:
            assert plan.unit is not None
            ids = self._bounding.hashed(frame[plan.unit.column], np.ones(len(us), np.bool_))[:2]
        self._events.add(self._ids.halves(frame), us, parts, ids)

    def _sum(self, parts: Iterable[tuple[Int64, Int64 | None]]) -> None:
        for total, gauge, (keys, amounts) in zip(self._sums, self._gauges, parts, strict=True):
            if isinstance(total, DistinctCounts):
                assert amounts is not None
                total.add(keys, amounts)
            elif isinstance(total, SparseSums):
                total.add(keys, amounts)
            elif isinstance(total, Pairs | ValueLists):
                assert amounts is not None
                total.add(keys - self._first * gauge.cells, amounts)
            else:
                total.add(keys - self._first * gauge.cells, amounts)

    def _placed(
        self, frame: pl.DataFrame, known: NDArray[np.bool_], start: int
    ) -> tuple[Int64, Int64, NDArray[np.bool_]]:
        """Return each row's place in time, its step and whether that is asked for."""
        plan, first, last = self._plan, self._first, self._last
        if plan.time is None or plan.clock.step_us is None:
            step = np.arange(start, start + frame.height)
            end = plan.clock.end if last is None else last
            if last is None:
                reached = start + frame.height
                self._grow(reached if end is None else min(end, reached))
            inside = known & (step >= first)
            self._counters["step_published"] += int((known & (step < first)).sum())
            if end is not None:
                inside &= step < end
            return step, step, inside
        assert last is not None
        clock = plan.clock
        begins, ends = (clock.start_us + edge * plan.clock.step_us for edge in (first, last))
        us, timed = stamps(frame[plan.time.column], plan.time, (clock.start_us, ends))
        timed &= known
        self._counters["no_time"] += int(known.sum() - timed.sum())
        step, inside = steps(us, timed, clock, first, last)
        published = int((timed & (us >= clock.start_us) & (us < begins)).sum())
        self._counters["step_published"] += published
        self._counters["outside"] += int(timed.sum() - inside.sum()) - published
        return us, step, inside

    def _grow(self, end: int) -> None:
        """Make room for sums up to a step."""
        for total, gauge in zip(self._sums, self._gauges, strict=True):
            if isinstance(total, Accumulator | Pairs):
                total.grow(max(0, end - self._first) * gauge.cells)

    def _dropped(self, reason: str, kept: NDArray[np.bool_]) -> None:
        self._counters[reason] += int(len(kept) - kept.sum())

    def totals(self) -> Totals:
        """Return what all batches add up to."""
        last, clock = self._last, self._plan.clock
        if last is None:
            last = max(self._first, self._records)
            last = last if clock.end is None else min(last, max(clock.end, self._first))
        if self._events is not None:
            self._sum(self._events.result(self._first, last))
            self._counters.update(self._events.counters)
        elif self._bounding is not None:
            self._sum(self._bounding.kept())
            self._counters.update(self._bounding.counters)
        arrays, sparse, values = {}, {}, {}
        for gauge, total in zip(self._gauges, self._sums, strict=True):
            if isinstance(total, DistinctCounts):
                arrays[gauge.name] = total.result(last)
            elif isinstance(total, SparseSums):
                assert gauge.items is not None
                known = self._known.get(gauge.name, 0)
                sparse[gauge.name] = total.totals(gauge.items.table, known)
            elif isinstance(total, ValueLists):
                values[gauge.name] = total.result(self._first, gauge.cells)
            elif isinstance(total, Pairs):
                arrays[gauge.name] = total.result()
            else:
                arrays[gauge.name] = total.result().reshape(last - self._first, gauge.cells)
            self._counters.update(gauge.counts())
        return Totals(
            arrays,
            self._first,
            last,
            self._records,
            dict(self._counters),
            sparse,
            self._unit_state,
            self._seen,
            values,
        )

    def _seen(self, step: int) -> dict[str, State]:
        return {
            gauge.name: total.state(step)
            for gauge, total in zip(self._gauges, self._sums, strict=True)
            if isinstance(total, DistinctCounts)
        }

    def _unit_state(self, step: int) -> State | None:
        if self._bounding is None and self._events is None:
            return None
        clock = self._plan.clock
        begins = step if clock.step_us is None else clock.start_us + step * clock.step_us
        used = {} if self._bounding is None else self._bounding.state(step, begins)
        return used if self._events is None else {**used, **self._events.state(begins)}
