"""Plans for tests of reading: what matters there, without a fitted mechanism."""

from dataclasses import dataclass
from fractions import Fraction

from tidegauge.planning.plan import Clock, IdUnit, PlannedGauge, TimeColumn
from tidegauge.privacy.unit import NeighboringRelation

HOUR = 3_600_000_000
START = 1_356_998_400_000_000  # 2013-01-01T00:00:00Z


@dataclass(frozen=True)
class ReadingPlan:
    """The part of a plan that reading looks at."""

    clock: Clock
    time: TimeColumn | None
    unit: IdUnit | None
    gauges: tuple[PlannedGauge, ...]
    relation: NeighboringRelation = NeighboringRelation.ADD_OR_REMOVE_ONE
    event: str | None = None

    @property
    def columns(self):
        names = {column for gauge in self.gauges for column in gauge.columns}
        names |= set() if self.time is None else {self.time.column}
        names |= set() if self.unit is None else {self.unit.column}
        names |= set() if self.event is None else {self.event}
        return tuple(sorted(names))


def gauge(name="departures", **changes):
    fields = {
        "kind": "count",
        "column": None,
        "low": 0,
        "high": 1,
        "round_to": Fraction(1),
        "where": None,
        "by": (),
        "other": None,
        "views": (),
        "every": (),
        "anticipate": (),
        "budget_weight": Fraction(1),
        "mechanism": None,
    }
    return PlannedGauge(name=name, **(fields | changes))


def plan(
    *gauges,
    time="time",
    form="iso",
    timezone=None,
    unit=None,
    end=24,
    step=HOUR,
    relation=NeighboringRelation.ADD_OR_REMOVE_ONE,
    event=None,
):
    """A plan of hourly steps from 2013 on; ``step=None``: each record is a step."""
    column = None if step is None else TimeColumn(time, timezone, form)
    clock, gauges = Clock(START, step, end), gauges or (gauge(),)
    return ReadingPlan(clock, column, unit, gauges, relation, event)
