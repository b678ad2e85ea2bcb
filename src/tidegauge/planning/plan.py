"""The plan of a run: what is measured of which stream, for whom, at what cost; fit to be signed.

Its canonical bytes are JSON with sorted keys, no spaces, integers, text and fractions ``"n/d"``:
no float, so that every reader hashes the same bytes. A plan is made from a config by
:mod:`tidegauge.planning.planner` and read back by
:func:`~tidegauge.planning.verified.plan_from_bytes`, which fits nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from tidegauge.checks import shown
from tidegauge.errors import InvalidParameter
from tidegauge.mechanisms.first_values import Threshold, set_apart
from tidegauge.mechanisms.stored import plain
from tidegauge.planning.canonical import canonical_bytes, digest
from tidegauge.planning.parts import (
    Clock,
    IdUnit,
    PlannedGauge,
    TimeColumn,
    neighbors_of,
)
from tidegauge.planning.parts_data import (
    gauge_data,
)
from tidegauge.privacy.guarantee import ZCDP, ApproxDP, GaussianDP, Guarantee, PureDP
from tidegauge.privacy.ledger import Ledger
from tidegauge.privacy.unit import (
    Contributions,
    Distinct,
    Event,
    NeighboringRelation,
    Neighbors,
    PrivacyUnit,
)

__all__ = [
    "FORMAT",
    "Clock",
    "IdUnit",
    "Plan",
    "PlannedGauge",
    "TimeColumn",
    "canonical_bytes",
]

FORMAT = 1
"""Of the plan file; a reader refuses every other."""


@dataclass(frozen=True)
class Plan:
    """Everything that affects privacy, and the words that are published with it.

    Attributes:
        clock: The steps.
        time: Where an event's time stands; None: each record is a step.
        unit: None: one event is protected; else an id.
        relation: When two streams are neighbors.
        guarantee: What is promised for everything ever published under this plan.
        gauges: In the order of the config.
        about: What the operator says of the publication: field and text.
        versions: Of the library that made the plan: name and version.
        multiline: Whether newlines within quotes belong to a field of a CSV source.
        event: Column whose rows of one value are one event, of one id if an id is protected; None:
            each row is an event.
    """

    clock: Clock
    time: TimeColumn | None
    unit: IdUnit | None
    relation: NeighboringRelation
    guarantee: Guarantee
    gauges: tuple[PlannedGauge, ...]
    about: tuple[tuple[str, str], ...]
    versions: tuple[tuple[str, str], ...]
    multiline: bool = False
    event: str | None = None

    def canonical(self) -> bytes:
        """Return the bytes that are hashed, signed and published."""
        return canonical_bytes(_plan_data(self))

    @cached_property
    def sha256(self) -> str:
        """``"sha256:..."`` of the canonical bytes: what an officer approves."""
        return digest(self.canonical())

    @cached_property
    def fingerprint(self) -> str:
        """``"sha256:..."`` of everything but what is published of it, ``about`` and ``versions``.

        A store is bound to it: what has it in common measures the same, with the same noise.
        """
        data = _plan_data(self)
        for gauge in data["gauges"]:
            del gauge["views"], gauge["every"], gauge["anticipate"]
            gauge.pop("totals", None)
            gauge.pop("top", None)
            for name in ("views", "level", "band"):  # what finds a clip publishes no view: it stays
                del gauge["mechanism"][name]
        del data["about"], data["versions"]
        return digest(canonical_bytes(data))

    @cached_property
    def declaration(self) -> str:
        """``"sha256:..."`` of what a config declares apart from views: no fit is in it.

        Two plans with one declaration promise the same for the same stream, though another library
        or other views may have fitted other numbers; see :meth:`reading`.
        """
        data = _plan_data(self)
        for gauge in data["gauges"]:
            gauge["max_per_step"] = gauge["mechanism"]["max_per_step"]
            gauge["horizon"] = gauge["mechanism"]["horizon"]
            if gauge["kind"] == "count_distinct":  # the window is no view to be changed
                gauge["window"] = gauge["views"][0][1]
            if "mechanism" in gauge.get("clip", ()):
                gauge["clip"] = gauge["clip"]["share"]
            del gauge["views"], gauge["every"], gauge["anticipate"], gauge["mechanism"]
            gauge.pop("totals", None)
            gauge.pop("top", None)
        del data["about"], data["versions"]
        return digest(canonical_bytes(data))

    def reading(self, other: Plan) -> Plan:
        """Return this plan with the published views, the intervals and the words of another.

        That is how an accepted plan is read in ways that were thought of later: strategies,
        noise and cost are this plan's.

        Raises:
            InvalidParameter: The other plan does not declare the same.
        """
        if self.declaration != other.declaration:
            raise InvalidParameter(
                "Expected a plan that differs in its views alone, got one that declares another "
                "stream, unit, budget or gauge. It would be a second release. Use the accepted "
                "plan, or start a new store."
            )
        gauges = tuple(
            replace(
                mine,
                views=theirs.views,
                every=theirs.every,
                totals=theirs.totals,
                top=theirs.top,
                mechanism=replace(
                    mine.mechanism,
                    views=theirs.views,
                    level=theirs.mechanism.level,
                    band=theirs.mechanism.band,
                ),
            )
            for mine, theirs in zip(self.gauges, other.gauges, strict=True)
        )
        return replace(self, gauges=gauges, about=other.about)

    def gauge(self, name: str) -> PlannedGauge:
        """Return a gauge by its name.

        Raises:
            InvalidParameter: There is no gauge of this name.
        """
        for gauge in self.gauges:
            if gauge.name == name:
                return gauge
        raise InvalidParameter(
            f"Expected the name of a gauge, got {shown(name)}. "
            f"Use one of {shown([gauge.name for gauge in self.gauges])}."
        )

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """All source columns that are needed, sorted."""
        names = {column for gauge in self.gauges for column in gauge.columns}
        if self.time is not None:
            names.add(self.time.column)
        if self.unit is not None:
            names.add(self.unit.column)
        if self.event is not None:
            names.add(self.event)
        return tuple(sorted(names))

    @cached_property
    def privacy_unit(self) -> PrivacyUnit:
        """The unit as the mechanisms charge for it."""
        return Event() if self.unit is None else Contributions(self.unit.max_contributions)

    @property
    def delta_for_names(self) -> Fraction:
        """What all gauges together spend of delta on the names of discovered cells."""
        found = (gauge.mechanism.discovery for gauge in self.gauges)
        return sum((one.delta for one in found if one is not None), Fraction(0))

    @property
    def thresholds(self) -> ApproxDP | None:
        """What all clips of first values spend together; None: there are none."""
        clips = (gauge.clip for gauge in self.gauges)
        return set_apart([clip.cost for clip in clips if isinstance(clip, Threshold)])

    def charged(self) -> Ledger:
        """Return an account of the guarantee with every gauge charged, all at once.

        Raises:
            BudgetExceeded: Together they exceed the guarantee.
        """
        names, thresholds = self.delta_for_names, self.thresholds
        ledger = Ledger(self.guarantee, delta_for_names=names, thresholds=thresholds)
        ledger.charge({name: cost for g in self.gauges for name, cost in g.costs.items()})
        return ledger

    def spent_on_noise(self, releases: int = 1) -> PureDP | ZCDP | GaussianDP:
        """Return what all gauges spend on noise; names and thresholds come on top.

        Args:
            releases: How often everything was released; each time costs all of it again.
        """
        spent = self.charged().spent_on_noise(releases)
        assert spent is not None, "each gauge has noise"
        return spent

    def spent_on_thresholds(self, releases: int = 1) -> ApproxDP | None:
        """Return what all clips of first values spend, however often everything was released."""
        once = self.thresholds
        if once is None:
            return None
        return ApproxDP(releases * once.epsilon, releases * once.delta)

    def neighbors(
        self,
        low: int,
        high: int,
        cells: int | None,
        distinct: Distinct | None = None,
        max_items: int = 1,
        *,
        mean: bool = False,
    ) -> Neighbors:
        """Return what one protected unit can move in a gauge, in grains."""
        unit, relation = self.privacy_unit, self.relation
        return neighbors_of(unit, relation, low, high, cells, distinct, max_items, mean=mean)


def _plan_data(plan: Plan) -> dict[str, Any]:
    time, unit = plan.time, plan.unit
    data: dict[str, Any] = {
        "tidegauge_plan": FORMAT,
        "clock": {
            "start_us": plan.clock.start_us,
            "step_us": plan.clock.step_us,
            "end": plan.clock.end,
        },
        "time": None
        if time is None
        else {"column": time.column, "timezone": time.timezone, "format": time.format},
        "unit": "event"
        if unit is None
        else {"id": unit.column, "max_contributions": unit.max_contributions, "per": unit.per},
        "neighboring_relation": plan.relation.value,
        "guarantee": plain(plan.guarantee),
        "gauges": [gauge_data(gauge) for gauge in plan.gauges],
        "about": dict(plan.about),
        "versions": dict(plan.versions),
    }
    if plan.multiline:
        data["csv"] = {"multiline": True}
    if plan.event is not None:
        data["event"] = plan.event
    return data
