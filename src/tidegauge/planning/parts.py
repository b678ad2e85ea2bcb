"""The parts of a plan: its clock, its columns, its unit, its gauges."""

from __future__ import annotations

import itertools
from abc import ABC
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal

from tidegauge.checks import integer
from tidegauge.mechanisms.clip_plan import ClipPlan
from tidegauge.mechanisms.discovery import MOST_ITEMS, Discover
from tidegauge.mechanisms.first_values import Threshold
from tidegauge.mechanisms.mean import Bounds
from tidegauge.mechanisms.plan import GaugePlan
from tidegauge.mechanisms.selection import Select, shown_cells
from tidegauge.privacy.costs import AnyCost
from tidegauge.privacy.unit import Distinct, NeighboringRelation, Neighbors, PrivacyUnit
from tidegauge.strategies.decay import Decay, Window

__all__ = [
    "ALL_CELLS",
    "MOST_CELLS",
    "MOST_VALUES",
    "UNKNOWN_CELLS",
    "Clip",
    "Clock",
    "DeclaredGauge",
    "IdUnit",
    "Kind",
    "PlannedGauge",
    "TimeColumn",
    "count_cells",
    "counted_cells",
    "distinct_of",
    "for_all",
    "neighbors_of",
]

MOST_VALUES = 1 << 30
"""Most different values in one cell at a time: to remember them takes 24 GB. A run that has more
stops, as one whose memory is full does."""

Kind = Literal["count", "sum", "mean", "count_distinct"]

ALL_CELLS = "*"
"""Stands in the place of each ``by`` value in the sum of all cells."""

MOST_CELLS = 1 << 20
"""Most cells of one gauge: with a thousand steps that is 8 GB of exact totals."""


UNKNOWN_CELLS = MOST_ITEMS
"""Of a gauge that discovers its cells, nobody knows how many: at most so many."""


@dataclass(frozen=True)
class Clock:
    """The public clock: step t, from 0, covers ``[start + t * step, start + (t + 1) * step)``.

    Attributes:
        start_us: Microseconds from 1970-01-01T00:00:00Z.
        step_us: Length of a step in microseconds; None: each record is a step.
        end: Number of steps; None: no end.
    """

    start_us: int
    step_us: int | None
    end: int | None


@dataclass(frozen=True)
class TimeColumn:
    """Where an event's time stands and how it is written.

    Attributes:
        column: Name of the column.
        timezone: Zone of stamps that carry none; None: such stamps are bad rows.
        format: ISO 8601, or seconds or milliseconds since 1970 in UTC.
    """

    column: str
    timezone: str | None
    format: Literal["iso", "epoch_s", "epoch_ms"]


@dataclass(frozen=True)
class IdUnit:
    """An id with a bound on its contributions is protected.

    Attributes:
        column: Name of the column with the id.
        max_contributions: Most events of one id, over all gauges.
        per: ``"lifetime"`` of the store, or a number of steps: periods cut from the start, each of
            which is protected by itself, a weaker promise.
    """

    column: str
    max_contributions: int
    per: Literal["lifetime"] | int


@dataclass(frozen=True)
class Clip:
    """How the clip of a sum or a mean is chosen from published numbers.

    Attributes:
        share: The part of the gauge's budget that it costs.
        mechanism: Of the counts of magnitudes that it is chosen from.
    """

    share: Fraction
    mechanism: GaugePlan


@dataclass(frozen=True)
class DeclaredGauge(ABC):
    """What a gauge counts and by what, as its config declares and its plan keeps it.

    Attributes:
        name: As published.
        kind: ``"count"`` of rows, ``"sum"`` or ``"mean"`` of a column, or ``"count_distinct"``
            values of it.
        column: What is summed or averaged, or whose values are counted; None for a count.
        low: Least contribution of an event to a cell, in grains; less counts as this. Of a mean:
            the least value.
        high: Largest contribution of an event to a cell, in grains; more counts as this. Of an
            event that is a set: how many times it counts in a cell, or how many values it brings.
        round_to: The value of one grain.
        where: Canonical text of the predicate; a row counts only if it is TRUE; None: every row.
        by: Name of each column that cells are made of, and its known values; none of a column
            whose values are discovered.
        other: Name of the cell for the rest of each ``by`` column; None: the rest is dropped.
    """

    name: str
    kind: Kind
    column: str | None
    low: int
    high: int
    round_to: Fraction
    where: str | None
    by: tuple[tuple[str, tuple[str, ...]], ...]
    other: str | None


@dataclass(frozen=True)
class PlannedGauge(DeclaredGauge):
    """One gauge: what is counted, by what, how it is read, and its mechanism.

    Other attributes are those of :class:`DeclaredGauge`.

    Attributes:
        views: Name and decay of each published view.
        every: For the views that are read only at every n-th step, counted from the start: n.
        anticipate: Decays that the accuracy is designed for as well, not published.
        budget_weight: Its part in the split of the budget.
        mechanism: Strategy, noise and cost, with all their numbers.
        totals: Whether the sum of all cells is published as well, as the cell ``*``.
        max_items: Most cells that one event touches.
        top: How many cells are published at a step, the largest in their order; None: all.
        discover: How cells are discovered, as it was asked for; None: all are known.
        clip: How the clip is found up to which values count: chosen, or drawn from first values;
            None: they count up to the bounds. With it, ``mechanism`` measures values in units of
            the clip.
        select: How few cells were asked to be chosen, of which alone counts are published; None:
            all are measured.
    """

    views: tuple[tuple[str, Decay], ...]
    every: tuple[tuple[str, int], ...]
    anticipate: tuple[Decay, ...]
    budget_weight: Fraction
    mechanism: GaugePlan
    totals: bool = False
    max_items: int = 1
    top: int | None = None
    discover: Discover | None = None
    clip: Clip | Threshold | None = None
    select: Select | None = None

    @cached_property
    def clipped(self) -> ClipPlan:
        """All that measures a gauge whose clip is found, and what finds it."""
        clip, cells = self.clip, len(self.cells)
        assert clip is not None
        of: Literal["sum", "mean"] = "mean" if self.kind == "mean" else "sum"
        if isinstance(clip, Threshold):
            share = clip.asked.share
            return ClipPlan(of, self.bounds, share, self.mechanism, None, cells, clip)
        return ClipPlan(of, self.bounds, clip.share, self.mechanism, clip.mechanism, cells)

    @property
    def costs(self) -> dict[str, AnyCost]:
        """What each of its measurements costs, by name."""
        if self.clip is None:
            return self.mechanism.charges(self.name)
        if isinstance(self.clip, Threshold):
            return {self.name: self.mechanism.cost, f"{self.name}, threshold": self.clip.cost}
        magnitudes = self.clip.mechanism.cost
        return {self.name: self.mechanism.cost, f"{self.name}, magnitudes": magnitudes}

    @property
    def last_step(self) -> int | None:
        """The last step that all its measurements are proved for; None: there is none."""
        return self.mechanism.last_step if self.clip is None else self.clipped.last_step

    @cached_property
    def shown(self) -> GaugePlan:
        """The mechanism with the intervals that are published: of ranked cells, of all at once.

        The largest of many values is likely to have the largest noise, too: so each cell's share
        of what may be missed is one of as many as there are cells (Boole); of discovered ones, of
        as many as are expected.
        """
        return self.mechanism if self.top is None else for_all(self.mechanism, self.ranked)

    @property
    def ranked(self) -> int | None:
        """How many cells are ranked at a step: all, or those that are chosen; None: nobody knows.

        Which are chosen depends on no noise that their counts have.
        """
        return self.number_of_cells if self.select is None else self.select.k

    @property
    def distinct(self) -> Distinct | None:
        """Which different values are counted; None: rows or a sum."""
        return distinct_of(self.kind, self.views)

    @property
    def largest(self) -> int:
        """No contribution of an event to a cell is larger in size, in grains."""
        return max(-self.low, self.high)

    @property
    def bounds(self) -> Bounds:
        """What a value of a mean may be, in grains."""
        return Bounds(self.low, self.high)

    @property
    def lanes(self) -> int:
        """How many numbers are published of each step: of a mean, a sum and a count a cell.

        With a clip that is found, the clip as well, and what it is chosen from if that is public.
        """
        own = 2 * len(self.cells) if self.kind == "mean" else len(self.cells)
        if isinstance(self.clip, Clip):
            own += self.clip.mechanism.neighbors.known_cells
        return own if self.clip is None else own + 2

    @cached_property
    def cells(self) -> tuple[tuple[str, ...], ...]:
        """The crossed values in declared order, the first column slowest; ``((),)`` without by.

        Of a gauge that discovers its cells: none that is known.
        """
        rest = () if self.other is None else (self.other,)
        if self.discover is not None:
            return ()
        return tuple(itertools.product(*(values + rest for _, values in self.by)))

    @property
    def number_of_cells(self) -> int | None:
        """How many cells there are; None: nobody knows, for they are discovered."""
        return len(self.cells) if self.discover is None else None

    def every_of(self, view: str) -> int:
        """At every how many steps a view is published: at step t, from 1, with t % every == 0."""
        return dict(self.every).get(view, 1)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The source columns that this gauge needs, sorted."""
        names = {column for column, _ in self.by}
        if self.column is not None:
            names.add(self.column)
        if self.where is not None:
            from tidegauge.planning.where import columns

            names |= set(columns(self.where))
        return tuple(sorted(names))


def for_all(mechanism: GaugePlan, cells: int | None) -> GaugePlan:
    """Return a plan whose intervals cover so many cells at once, at the level of one.

    Args:
        mechanism: The plan.
        cells: How many; None: as many items as are expected, for cells are discovered.

    Raises:
        InvalidParameter: So little may then be missed that no tail is known.
    """
    if cells is None:
        assert mechanism.discovery is not None
        cells = mechanism.discovery.expected_items
    miss = (1 - Fraction(repr(mechanism.level))) / cells
    return mechanism.with_intervals(float(1 - miss))


def distinct_of(kind: Kind, views: Sequence[tuple[str, Decay]]) -> Distinct | None:
    """Return which different values a gauge counts, by its one view; None: it counts none."""
    if kind != "count_distinct":
        return None
    decay = views[0][1]
    return decay.steps if isinstance(decay, Window) else "ever"


def counted_cells(
    select: Select | None, max_items: int, cells: int | None, relation: NeighboringRelation
) -> int:
    """Return in how many cells an event is charged: those that it touches, as far as shown."""
    if select is None or cells is None:
        return max_items
    return shown_cells(select.k, select.switches, cells, relation)


def neighbors_of(
    unit: PrivacyUnit,
    relation: NeighboringRelation,
    low: int,
    high: int,
    cells: int | None,
    distinct: Distinct | None = None,
    max_items: int = 1,
    *,
    mean: bool = False,
) -> Neighbors:
    """Return what may differ between neighbors in a gauge.

    A row whose value is missing or that does not pass contributes 0, so 0 is in the range. An event
    of a mean moves a sum, by at most the reach of the bounds, and a count of as many grains.
    """
    if mean:
        assert cells is not None, "discovered cells were refused"
        reach = Bounds(low, high).reach
        return Neighbors(unit, relation, -reach, reach, 2 * max_items, 2 * cells, paired=True)
    return Neighbors(unit, relation, min(low, 0), max(high, 0), max_items, cells, distinct)


def count_cells(by: Sequence[tuple[str, tuple[str, ...]]], other: str | None) -> int | None:
    """Return the number of cells; None: some values are discovered.

    Raises:
        InvalidParameter: There are too many.
    """
    if not all(values for _, values in by):
        return None
    cells = 1
    for _, values in by:
        cells *= len(values) + (other is not None)
    return integer(
        "cells",
        cells,
        low=1,
        high=MOST_CELLS,
        why="Every crossed value is a cell of its own, at every step. Cross fewer columns.",
    )
