"""Who is protected, in words: the subject of every sentence of a statement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from tidegauge.privacy.unit import Contributions, NeighboringRelation, PrivacyUnit

__all__ = ["Protected"]


@final
@dataclass(frozen=True)
class Protected:
    """A privacy unit under a neighboring relation, as sentences name it.

    Args:
        unit: Who is protected.
        relation: Which two streams count as neighbors.
        period: Of an id unit, the periods that its bound holds for, each of which is protected by
            itself, such as "the periods of 7 days counted from 2013-01-01T00:00:00Z"; None: the
            bound holds for the whole life of the stream.
        records: Whether each record is a step, so that one that is taken away leaves its step.
        bounded: Whether the bound on an id's events is kept by leaving out what is beyond it; else
            it is the caller's.
        event: What makes rows one event, such as "one basket_id"; None: each row is an event.

    Examples:
        >>> from tidegauge.privacy.unit import Event
        >>> Protected(Event(), NeighboringRelation.ADD_OR_REMOVE_ONE).question
        'whether one event was in the data'
    """

    unit: PrivacyUnit
    relation: NeighboringRelation
    period: str | None = None
    records: bool = False
    bounded: bool = False
    event: str | None = None

    @property
    def is_added(self) -> bool:
        """Whether neighbors have the unit or not, rather than another in its place."""
        return self.relation is NeighboringRelation.ADD_OR_REMOVE_ONE

    @property
    def most(self) -> int | None:
        """The bound on an id's events; None: one event is protected."""
        return self.unit.max_events if isinstance(self.unit, Contributions) else None

    @property
    def question(self) -> str:
        """What a reader may want to find out about one unit; begins with "whether"."""
        during = f" in one of {self.period}" if self.period else ""
        if self.most is None:
            if self.is_added:
                return "whether one event was in the data"
            return "whether one event was this or any other in its step"
        if self.is_added:
            return f"whether one id was in the data{during}"
        return f"whether the events of one id{during} were these or any others in their steps"

    def sentences(self) -> str:
        """The unit and the relation in full."""
        return " ".join(self._sentences())

    def _sentences(self) -> list[str]:
        who, most = "one event", self.most
        if most is not None:
            many = "1 event" if most == 1 else f"{most:,} events"
            who = f"one id, with at most {many} over the whole life of the stream"
            if self.period:
                who = f"one id in one of {self.period}, with at most {many} in it"
            apart = self.unit.min_separation
            if apart == 1:
                who += ", no two in one step"
            elif apart:
                who += f", at least {apart:,} steps apart"
        if self.is_added:
            how = "it is in the data, or nothing of it is (`add_or_remove_one`)"
            if self.records:
                how += "; a record that is taken away keeps its place and adds nothing"
        else:
            whose, steps = "its values and cells", "its step"
            if most is not None:
                whose, steps = "the values and cells of its events", "their steps"
            how = f"{whose} are these or any others, {steps} the same (`replace_one`)"
        found = [f"Protected is {who}: {how}."]
        if self.event is not None:
            found.append(
                f"An event is all rows with {self.event}, taken together, at the step of the "
                "earliest."
            )
        if most is not None and self.bounded:
            which = " that a gauge counts" if self.is_added else ""
            during = " in a period" if self.period else ""
            first = "the first counts" if most == 1 else f"the first {most:,} count"
            rows = "rows" if self.event is None else "events"
            found.append(
                f"Of an id with more {rows}{which}{during}, only {first}, so that it is protected "
                "whole."
            )
        return found

    def gaps(self) -> list[str]:
        """What this unit and this relation leave open."""
        found = []
        if not self.is_added:
            found.append(
                "Whether an event took place at all, at which step, and how many did."
                if self.most is None
                else "Whether an id was in the data at all, at which steps, and how often."
            )
        elif self.records:
            found.append("How many records there were.")
        if self.most is None:
            found.append("A person with several events: what each of them may tell adds up.")
            return found
        several = "A person with several ids: what each of them may tell adds up."
        if self.period:
            several = (
                "A person with several ids, or in several periods: what each may tell adds up."
            )
        found.append(several)
        if not self.bounded:
            found.append(f"An id with more than {self.most:,} events: it counts as several ids.")
            if self.unit.min_separation > 1:
                apart = self.unit.min_separation
                found.append(f"An id with two events less than {apart:,} steps apart.")
        return found

    @property
    def units(self) -> str:
        """Several protected units, in one word or a few: the head of a table."""
        if self.most is None:
            return "events"
        return "ids or periods" if self.period else "ids"

    def moved(self) -> str | None:
        """What changing or moving counts as; None: the relation leaves it open."""
        if not self.is_added:
            return None
        if self.most is None:
            what = "An event that changes or moves to another step counts as two events"
        else:
            what = "An id whose events change or move to other steps counts as two ids"
        return f"{what}, one removed and one added: see the row for 2."
