"""Who is protected, and how far one protected unit can move the exact stream.

The stream is ``x``: int64 of shape (steps, cells). One event adds at most ``largest`` grains
(its contribution) to each of at most ``max_cells`` cells of one step.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal, final

from tidegauge.checks import integer, shown
from tidegauge.errors import InvalidParameter, UnsupportedCombination

__all__ = [
    "LONGEST_WINDOW",
    "Contributions",
    "Distinct",
    "Event",
    "NeighboringRelation",
    "Neighbors",
    "PrivacyUnit",
    "relation_of",
    "unit_of",
]

Distinct = Literal["ever"] | int
"""Which different values are counted: all so far, or those of the last so many steps."""

LONGEST_WINDOW = 1 << 20
"""Of a count of different values, in steps: its sensitivity is computed for each length."""

_MOST = 1 << 40
_WHY_EVENTS = (
    "Noise is made for that many events of one id; with more the promise would be broken. Declare "
    "the most events of one id over the whole life of the stream, such as 20."
)
_WHY_SEPARATION = (
    "It is a number of whole steps, and events that lie closer would break the promise. Write 0 if "
    "events of one id may coincide."
)
_WHY_CHANGE = (
    "Noise is made for what one event may add to a cell, from low to high grains, where 0 is "
    "always possible. Declare low at most 0 and high at least 0, in whole grains."
)
_WHY_CELLS = "A gauge counts in at least one cell. Give the number of its cells."
_WHY_DISTINCT = (
    "Each length up to it is looked at. Count over a shorter window, in longer steps, or ever."
)
_WHY_MAX_CELLS = (
    "Noise is made for that many cells changed by one event, and there are no more than all. "
    "Declare between 1 and the number of cells."
)


class NeighboringRelation(Enum):
    """When two streams count as neighbors."""

    ADD_OR_REMOVE_ONE = "add_or_remove_one"
    """The event is there, or its step has nothing of it."""
    REPLACE_ONE = "replace_one"
    """The event's values and cells change; its step does not."""


@final
@dataclass(frozen=True)
class Event:
    """One event is protected: what it alone changes, not what all events of a person tell.

    Examples:
        One event moves one cell of one step by at most 1; two streams that differ in it:

        >>> one = Neighbors(Event(), NeighboringRelation.ADD_OR_REMOVE_ONE, 0, 1, 1, cells=8)
        >>> one.event_l1, one.touched_cells
        (1, 1)
    """

    max_events = 1
    min_separation = 0


@final
@dataclass(frozen=True)
class Contributions:
    """An id with at most ``max_events`` events over the whole life of the stream is protected.

    Args:
        max_events: Most events of one id, over all steps and restarts.
        min_separation: Least distance in steps between two events of one id; 0: may coincide.

    Raises:
        InvalidParameter: A number is out of range.

    Examples:
        Twenty events of one id may touch twenty cells, but never more than there are:

        >>> add = NeighboringRelation.ADD_OR_REMOVE_ONE
        >>> [Neighbors(Contributions(20), add, 0, 1, 1, d).touched_cells for d in (8, 100)]
        [8, 20]
    """

    max_events: int
    min_separation: int = 0

    def __post_init__(self) -> None:
        # kept as Python's integers: arithmetic on NumPy's would wrap around
        events = integer("max_events", self.max_events, low=1, high=_MOST, why=_WHY_EVENTS)
        object.__setattr__(self, "max_events", events)
        apart = self.min_separation
        apart = integer("min_separation", apart, low=0, high=_MOST, why=_WHY_SEPARATION)
        object.__setattr__(self, "min_separation", apart)


PrivacyUnit = Event | Contributions


def unit_of(unit: object) -> PrivacyUnit:
    """Return the privacy unit that a user named; there is no default.

    Args:
        unit: ``"event"``, or a unit.

    Raises:
        InvalidParameter: It is not a unit.

    Examples:
        >>> unit_of("event"), unit_of(Contributions(20))
        (Event(), Contributions(max_events=20, min_separation=0))
    """
    if isinstance(unit, PrivacyUnit):
        return unit
    if isinstance(unit, str) and unit == "event":
        return Event()
    raise InvalidParameter(
        f"Expected unit to say who is protected, got {shown(unit)}. There is no default: a promise "
        'for one event is far weaker than one for a person with many. Write unit="event", or '
        "unit=Contributions(20) for an id with at most 20 events over the whole stream."
    )


def relation_of(relation: object) -> NeighboringRelation:
    """Return the neighboring relation of this name.

    Args:
        relation: ``"add_or_remove_one"`` or ``"replace_one"``, or a relation.

    Raises:
        InvalidParameter: There is no such relation.

    Examples:
        >>> relation_of("replace_one")
        <NeighboringRelation.REPLACE_ONE: 'replace_one'>
    """
    if isinstance(relation, NeighboringRelation):
        return relation
    for known in NeighboringRelation:
        if isinstance(relation, str) and relation == known.value:
            return known
    raise InvalidParameter(
        f"Expected neighboring_relation to be known, got {shown(relation)}. It decides how far "
        'one event can move the exact stream. Write "add_or_remove_one" (the event is there or '
        'not) or "replace_one" (its values and cells change, its step does not).'
    )


@final
@dataclass(frozen=True)
class Neighbors:
    """What may differ between two neighboring streams, in grains.

    Args:
        unit: Who is protected.
        relation: When two streams are neighbors.
        low: Least contribution of one event to one cell; at most 0.
        high: Largest contribution of one event to one cell; at least 0.
        max_cells: Most cells that one event touches (D_0).
        cells: Cells of the gauge (d); None: they are found in the stream, and nobody knows how many
            there are. Nothing that is charged then rests on their number.
        distinct: None: x_t sums up the step's contributions. ``"ever"``: x_t counts the values
            that occur at step t for the first time; an event brings at most ``high`` values to
            each cell that it touches, and moves x at two steps for each of them. A number W: x_t
            counts the different values of the last W steps; an event moves x by at most ``high``
            over intervals of at most W steps. Proof: ``docs/proofs/distinct.md``.
        paired: The first half of the cells holds sums, the second half how many events each adds
            up, every one counted as ``largest`` grains: an event moves both cells of a pair or
            none, and ``max_cells`` counts both. Proof: ``docs/proofs/mean.md``.

    Raises:
        InvalidParameter: A number is out of range.

    Examples:
        >>> Neighbors(Event(), NeighboringRelation.REPLACE_ONE, 0, 1, 1, 8).event_l2_squared
        2
        >>> add = NeighboringRelation.ADD_OR_REMOVE_ONE
        >>> Neighbors(Event(), add, 0, 1, 1, 8, distinct="ever").event_l1
        2
        >>> Neighbors(Event(), add, -3, 3, 2, 8, paired=True).event_l2_squared
        18
    """

    unit: PrivacyUnit
    relation: NeighboringRelation
    low: int
    high: int
    max_cells: int
    cells: int | None
    distinct: Distinct | None = None
    paired: bool = False

    def __post_init__(self) -> None:
        # kept as Python's integers: arithmetic on NumPy's would wrap around
        low = integer("low", self.low, low=-_MOST, high=0, why=_WHY_CHANGE)
        high = integer("high", self.high, low=0, high=_MOST, why=_WHY_CHANGE)
        if low == high:
            raise InvalidParameter(
                "Expected a contribution other than zero, got low=high=0. Nothing would be "
                "measured. Declare how much one event may add to one cell."
            )
        cells = self.cells
        if cells is not None:
            cells = integer("cells", cells, low=1, high=_MOST, why=_WHY_CELLS)
        most = _MOST if cells is None else cells
        touched = integer("max_cells", self.max_cells, low=1, high=most, why=_WHY_MAX_CELLS)
        names = ("low", "high", "cells", "max_cells")
        for name, number in zip(names, (low, high, cells, touched), strict=True):
            object.__setattr__(self, name, number)
        if self.paired and (most % 2 or touched % 2 or self.distinct is not None):
            raise InvalidParameter(
                f"Expected pairs of a sum and a count, got cells={cells}, max_cells={touched} and "
                f"distinct={shown(self.distinct)}. A sum without its count is no mean. Declare "
                "even numbers, and no distinct."
            )
        if self.distinct is not None:
            self._check_distinct()

    def _check_distinct(self) -> None:
        if self.low or self.unit.min_separation:
            raise InvalidParameter(
                "Expected values that are there or not, and events that may coincide, got low="
                f"{self.low} and min_separation={self.unit.min_separation}. A value that one event "
                "takes away reappears with any later one. Declare low=0 and no separation."
            )
        if self.distinct != "ever":
            steps = integer(
                "distinct", self.distinct, low=1, high=LONGEST_WINDOW, why=_WHY_DISTINCT
            )
            object.__setattr__(self, "distinct", steps)

    @property
    def largest(self) -> int:
        """D_inf: the largest absolute contribution of one event to one cell, in grains."""
        return max(-self.low, self.high)

    @property
    def cell_change(self) -> int:
        """How far one event can move one cell of its step and no other, in grains."""
        apart = self.relation is NeighboringRelation.ADD_OR_REMOVE_ONE
        return self.largest if apart else self.high - self.low

    @property
    def event_l1(self) -> int:
        """How far one event's change moves its step of x, in L1 (grains).

        Of values seen for the first time: how far it moves all of x. In a cell that it keeps
        under ``replace_one`` that is no further than in one that it leaves, since what it brings
        and what it takes away begin at one step.

        Raises:
            UnsupportedCombination: x counts the values of a window; an event moves many steps.
        """
        if self._moves_apart:
            return 2 * self.high * self.moved_cells
        return max(
            kept * span + moved * self._each * self.largest for kept, moved, span in self._changes()
        )

    @property
    def event_l2_squared(self) -> int:
        """The square of how far one event's change moves its step of x, in L2 (grains^2).

        Of values seen for the first time: how far it moves all of x, and C x, for every C whose
        columns have inner products >= 0, times the square of C's longest column.

        Raises:
            UnsupportedCombination: x counts the values of a window; an event moves many steps.
        """
        if self._moves_apart:
            return 2 * self.high**2 * self.moved_cells
        return max(
            kept * span**2 + moved * self._each * self.largest**2
            for kept, moved, span in self._changes()
        )

    def _changes(self) -> tuple[tuple[int, int, int], ...]:
        """The extreme changes: cells whose value changes, cells left or entered, largest change.

        Of pairs: whole pairs. In one that an event keeps, its count stays as it is.
        """
        most = self.max_cells // self._each
        if self.relation is NeighboringRelation.ADD_OR_REMOVE_ONE:
            return ((0, most, 0),)
        shared, span = self.shared_cells // self._each, self.high - self.low
        changes = tuple((kept, 2 * (most - kept), span) for kept in (shared, most))
        # a narrow range may move a pair less than an event that is not there any more
        moved = 2 * most if self.cells is None else min(2 * most, self.cells // self._each)
        return (*changes, (0, moved, span)) if self.paired else changes

    @property
    def _each(self) -> int:
        """How many cells an event moves together."""
        return 2 if self.paired else 1

    @property
    def shared_cells(self) -> int:
        """How many cells the two sets of a replaced event share at least: there are no others."""
        return 0 if self.cells is None else max(0, 2 * self.max_cells - self.cells)

    @property
    def known_cells(self) -> int:
        """The number of cells, for whoever keeps an array of them all.

        Raises:
            UnsupportedCombination: Nobody knows it.
        """
        if self.cells is None:
            raise UnsupportedCombination(
                "Expected a gauge whose cells are known, got one that finds its items in the "
                "stream. There is no array of them all. Use tidegauge.DiscoveryGauge."
            )
        return self.cells

    @property
    def lasting(self) -> int | None:
        """Over how many steps an event can move x, where they are more than single ones.

        Such an x cannot be cut off at a largest total: of an interval, pieces could be left.
        """
        return None if self.distinct in (None, 1, "ever") else int(self.distinct)

    @property
    def _moves_apart(self) -> bool:
        """Whether an event moves x at two steps, in opposite ways; refuse where it moves more."""
        if self.lasting:
            raise UnsupportedCombination(
                "Expected a stream that an event moves at its own step, got a count of the values "
                f"of the last {self.distinct} steps. It moves as many steps as the window is long. "
                "Use a strategy for such counts."
            )
        return self.distinct == "ever"

    @property
    def moved_cells(self) -> int:
        """Most cells that one event's change moves: those it leaves and those it enters."""
        return max(kept + moved for kept, moved, _ in self._changes())

    @property
    def touched_cells(self) -> int:
        """Most cells that one protected unit touches over the whole stream; at most ``cells``."""
        each = self.max_cells * (1 if self.relation is NeighboringRelation.ADD_OR_REMOVE_ONE else 2)
        touched = each * self.unit.max_events
        return touched if self.cells is None else min(touched, self.cells)
