"""Exact totals of a finite source: every batch of rows onto the steps and cells of each gauge.

Each row adds what it is by itself: its step from its own stamp, its cell from its own columns, its
grains from its own value. So one row more or less moves one cell of one step of each gauge, by at
most the declared contribution. Rows that cannot be read, have no stamp, or lie outside the steps
that are asked for add nothing. What was dropped is counted for the operator alone.

Time grows with the rows, memory with steps x cells and, if an id is protected, with what is kept of
each id; neither the number of rows nor their order matters for memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tidegauge.checks import integer
from tidegauge.engine.bounding import Bounding
from tidegauge.engine.clock import stamps, steps
from tidegauge.engine.contributions import Contributor, check_types
from tidegauge.engine.source import UNREADABLE, Source
from tidegauge.errors import InvalidParameter

if TYPE_CHECKING:
    import polars as pl

    from tidegauge.plan.plan import Plan

__all__ = ["Accumulator", "Totals", "totals"]

Int64 = NDArray[np.int64]
State = dict[str, NDArray[np.int64]]

_MOST = 1 << 62  # a total is cut off here; no gauge's max_per_step lies beyond
_DIGIT = 40  # bits of the lower half of a wide total
_MOST_ROWS = 1 << 20  # added at once: with contributions up to 2^40, that is below 2^60


def _no_state(step: int) -> None:
    """No id is protected."""


@dataclass(frozen=True)
class Totals:
    """What a source adds up to.

    Attributes:
        arrays: Name of each gauge and int64[steps, cells], in grains.
        first: The first step.
        last: The step after the last.
        records: Records seen, whatever became of them.
        counters: What was dropped and why; the operator's alone, no part of any release.
        unit_state_at: How many events of each id are used up when a step begins; private, to be
            stored with the measurement of the steps before. None unless an id is protected.
    """

    arrays: dict[str, Int64]
    first: int
    last: int
    records: int
    counters: dict[str, int] = field(repr=False)
    unit_state_at: Callable[[int], State | None] = field(default=_no_state, repr=False)


def totals(
    plan: Plan,
    source: Source,
    first: int,
    last: int | None,
    *,
    unit_key: bytes | None = None,
    unit_state: Mapping[str, NDArray[np.int64]] | None = None,
) -> Totals:
    """Read a source once and return the exact totals of the steps ``[first, last)``.

    Args:
        plan: Declares the clock, the unit and the gauges.
        source: Is read from beginning to end.
        first: First step, from 0; rows of earlier steps take part in nothing.
        last: The step after the last. None, only where each record is a step: the number of
            records, which is public there, but not beyond the clock's end.
        unit_key: At least 16 secret bytes, the same over the life of a store; ids are kept only
            as hashes under it. Needed if an id is protected.
        unit_state: What the call for the steps before returned; None: no events are used up.

    Raises:
        SourceUnavailable: The source is away, cannot be read or lacks a column. Never because of
            what a row says.
        InvalidParameter: The range of steps is none, or the key is missing.
    """
    _check_range(plan, first, last)
    check_types(plan, source.types(plan.columns))
    reading = _Reading(plan, first, last, unit_key, unit_state)
    for frame in source.batches(plan.columns):
        reading.add(frame)
    return reading.totals()


def _check_range(plan: Plan, first: int, last: int | None) -> None:
    if last is None and plan.clock.step_us is not None:
        raise InvalidParameter(
            "Expected the step after the last, got None. The end of a clock never comes from the "
            "rows. Give the declared end, or the steps until now."
        )
    integer("first", first, low=0, high=_MOST)
    if last is not None:
        integer("last", last, low=first, high=_MOST if plan.clock.end is None else plan.clock.end)


class _Reading:
    """The state of one pass over a source."""

    def __init__(
        self,
        plan: Plan,
        first: int,
        last: int | None,
        key: bytes | None,
        state: Mapping[str, NDArray[np.int64]] | None,
    ) -> None:
        self._plan, self._first, self._last = plan, first, last
        self._gauges = [Contributor(gauge) for gauge in plan.gauges]
        self._sums = [Accumulator(gauge.largest) for gauge in self._gauges]
        self._records = 0
        self._counters: Counter[str] = Counter()
        if last is not None:
            for total, gauge in zip(self._sums, self._gauges, strict=True):
                total.grow((last - first) * gauge.cells)
        self._bounding = None
        if plan.unit is not None:
            if key is None or len(key) < 16:
                raise InvalidParameter(
                    "Expected unit_key to be at least 16 secret bytes, got fewer. Ids are kept "
                    "only as hashes under it. Give the store's key."
                )
            self._bounding = Bounding(plan.unit, len(self._gauges), key, state)

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
        order, step, inside = self._placed(frame, known, start)
        if not inside.all():
            import polars as pl

            frame = frame.filter(pl.Series(inside))
            step, order = step[inside], order[inside]
        if frame.height == 0:
            return
        parts = [gauge.contributions(frame, step - self._first) for gauge in self._gauges]
        if self._bounding is not None:
            assert self._plan.unit is not None
            self._bounding.add(frame[self._plan.unit.column], step, order, parts)
            return
        for total, (keys, amounts) in zip(self._sums, parts, strict=True):
            total.add(keys, amounts)

    def _placed(
        self, frame: pl.DataFrame, known: NDArray[np.bool_], start: int
    ) -> tuple[Int64, Int64, NDArray[np.bool_]]:
        """Return each row's place in time, its step and whether that is asked for."""
        plan, first, last = self._plan, self._first, self._last
        if plan.time is None or plan.clock.step_us is None:
            step = np.arange(start, start + frame.height)
            end = plan.clock.end if last is None else last
            self._grow(start + frame.height if end is None else min(end, start + frame.height))
            inside = known & (step >= first)
            if end is not None:
                inside &= step < end
            return step, step, inside
        assert last is not None
        clock = plan.clock
        around = tuple(clock.start_us + edge * plan.clock.step_us for edge in (first, last))
        us, timed = stamps(frame[plan.time.column], plan.time, (around[0], around[1]))
        timed &= known
        self._counters["no_time"] += int(known.sum() - timed.sum())
        step, inside = steps(us, timed, clock, first, last)
        self._counters["outside"] += int(timed.sum() - inside.sum())
        return us, step, inside

    def _grow(self, end: int) -> None:
        """Make room for the steps of records, if their number comes from the source."""
        if self._last is None:
            for total, gauge in zip(self._sums, self._gauges, strict=True):
                total.grow(max(0, end - self._first) * gauge.cells)

    def _dropped(self, reason: str, kept: NDArray[np.bool_]) -> None:
        self._counters[reason] += int(len(kept) - kept.sum())

    def totals(self) -> Totals:
        """Return what all batches add up to."""
        last, clock = self._last, self._plan.clock
        if last is None:
            last = max(self._first, self._records)
            last = last if clock.end is None else min(last, max(clock.end, self._first))
        if self._bounding is not None:
            for total, (keys, amounts) in zip(self._sums, self._bounding.kept(), strict=True):
                total.add(keys, amounts)
            self._counters.update(self._bounding.counters)
        arrays = {}
        for gauge, total in zip(self._gauges, self._sums, strict=True):
            arrays[gauge.name] = total.result().reshape(last - self._first, gauge.cells)
            self._counters.update(gauge.counters)
        return Totals(
            arrays, self._first, last, self._records, dict(self._counters), self._unit_state
        )

    def _unit_state(self, step: int) -> State | None:
        """How many events of each id are used up when a step begins."""
        if self._bounding is None:
            return None
        clock = self._plan.clock
        begins = step if clock.step_us is None else clock.start_us + step * clock.step_us
        return self._bounding.state(step, begins)


class Accumulator:
    """Exact sums of any number of contributions: int64, with a second half once that could wrap.

    Args:
        largest: No contribution is larger in size.

    Examples:
        >>> total = Accumulator(1)
        >>> total.grow(2)
        >>> total.add(np.array([0, 1, 1]), None)
        >>> total.result().tolist()
        [1, 2]
    """

    def __init__(self, largest: int) -> None:
        self._largest = largest
        self._low = np.zeros(0, np.int64)
        self._high: Int64 | None = None
        self._reached = 0  # no entry of the lower half can be larger in size

    def grow(self, size: int) -> None:
        """Make room for ``size`` sums, the added ones 0."""
        if size > len(self._low):
            room = max(size, 2 * len(self._low) if len(self._low) else size)
            self._low = _longer(self._low, room)
            if self._high is not None:
                self._high = _longer(self._high, room)
        self._size = size

    def add(self, keys: Int64, amounts: Int64 | None) -> None:
        """Add amounts, or 1 if None, to the sums at ``keys``; negative keys are left out."""
        taking = keys >= 0
        if not taking.all():
            keys = keys[taking]
            amounts = None if amounts is None else amounts[taking]
        for start in range(0, len(keys), _MOST_ROWS):
            part = slice(start, start + _MOST_ROWS)
            reach = self._largest * len(keys[part])
            if self._reached + reach > _MOST:
                self._carry()
            self._reached += reach
            np.add.at(self._low, keys[part], 1 if amounts is None else amounts[part])

    def _carry(self) -> None:
        if self._high is None:
            self._high = np.zeros_like(self._low)
        self._high += self._low >> _DIGIT
        self._low &= (1 << _DIGIT) - 1
        self._reached = 1 << _DIGIT

    def result(self) -> Int64:
        """Return the sums, cut off at 2^62 in size: a completed total may be clamped."""
        low = self._low[: self._size]
        if self._high is None:
            return np.clip(low, -_MOST, _MOST, out=low)
        self._carry()
        high, low = self._high[: self._size], self._low[: self._size]
        top = _MOST >> _DIGIT
        inside = np.clip(high, -top, top) << _DIGIT
        return np.where(high >= top, _MOST, np.where(high < -top, -_MOST, inside + low))


def _longer(array: Int64, size: int) -> Int64:
    result = np.zeros(size, np.int64)
    result[: len(array)] = array
    return result
