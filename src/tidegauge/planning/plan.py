"""The plan of a run: what is measured of which stream, for whom, at what cost; fit to be signed.

Its canonical bytes are JSON with sorted keys, no spaces, integers, text and fractions ``"n/d"``:
no float, so that every reader hashes the same bytes. A plan is made from a config by
:mod:`tidegauge.planning.planner` and read back by :meth:`Plan.from_bytes`, which fits nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from tidegauge.checks import shown
from tidegauge.errors import InvalidParameter
from tidegauge.mechanisms.clip_plan import EPOCH_EVENTS
from tidegauge.mechanisms.discovery import deltas
from tidegauge.mechanisms.first_values import Threshold, set_apart
from tidegauge.mechanisms.plain_data import Reader
from tidegauge.mechanisms.restoring import verify_gauge
from tidegauge.mechanisms.stored import plain, read_as
from tidegauge.planning.canonical import canonical_bytes, digest, parsed_json
from tidegauge.planning.clips import clipped_neighbors, magnitude_neighbors
from tidegauge.planning.drawn import thresholds_agree
from tidegauge.planning.parts import (
    Clip,
    Clock,
    IdUnit,
    PlannedGauge,
    TimeColumn,
    counted_cells,
    distinct_of,
    neighbors_of,
)
from tidegauge.planning.parts_data import (
    changed,
    clock_of,
    gauge_data,
    gauge_of,
    line,
    texts_of,
    time_of,
    unit_of,
)
from tidegauge.privacy.costs import GaussianCost, ThresholdCost
from tidegauge.privacy.guarantee import ZCDP, ApproxDP, GaussianDP, Guarantee, PureDP
from tidegauge.privacy.ledger import Ledger
from tidegauge.privacy.rounding import sqrt_up
from tidegauge.privacy.unit import (
    Contributions,
    Distinct,
    Event,
    NeighboringRelation,
    Neighbors,
    PrivacyUnit,
    relation_of,
)
from tidegauge.strategies.decay import Step
from tidegauge.strategies.identity import Identity
from tidegauge.strategies.rescaled import serves_rescaled

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
            gauge.pop("top", None)  # what finds a clip publishes no view of its own
            for name in ("views", "level", "band"):
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

    @property
    def ledger(self) -> Ledger:
        """The account, with every gauge charged at once.

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
        if self.delta_for_names:
            costs = [cost for gauge in self.gauges for cost in gauge.costs.values()]
            squared = [cost.mu_squared for cost in costs if isinstance(cost, GaussianCost)]
            return GaussianDP(sqrt_up(releases * sum(squared, Fraction(0))))
        whole = self.ledger
        ledger = Ledger(whole.noise)
        noise = [c for c in whole.charges if not isinstance(c.cost, ThresholdCost)]
        ledger.charge({charge.name: charge.cost for charge in noise})
        spent = ledger.total(releases)
        assert spent is not None
        assert not isinstance(spent, ApproxDP)  # neither names nor thresholds are in it
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

    def verify(self) -> None:
        """Refuse a plan whose parts contradict one another.

        Raises:
            InvalidParameter: A mechanism protects another unit, range or number of cells.
            BudgetExceeded: The gauges together exceed the guarantee.
        """
        if len({gauge.name for gauge in self.gauges}) < len(self.gauges) or not self.gauges:
            raise changed("gauges, each once", "none, or one twice")
        if self.event is not None and self.clock.step_us is None:
            raise changed("rows of one event in one step", "a step for each of them")
        for gauge in self.gauges:
            mechanism = gauge.mechanism
            one = gauge.max_items == 1 and (gauge.kind in ("sum", "mean") or gauge.high == 1)
            if self.event is None and not one:
                raise changed("a row to count once, in one cell", "more, without sets of rows")
            verify_gauge(mechanism)
            distinct = distinct_of(gauge.kind, gauge.views)
            low, high, cells = gauge.low, gauge.high, gauge.number_of_cells
            if gauge.clip is not None:
                self._verify_clip(gauge, gauge.clip)
                continue
            mean = gauge.kind == "mean"
            touched = counted_cells(gauge.select, gauge.max_items, cells, self.relation)
            expected = self.neighbors(low, high, cells, distinct, touched, mean=mean)
            if mechanism.neighbors != expected or mechanism.guarantee != self.guarantee:
                raise changed("a mechanism for this unit, range and cells", "one for others")
            if mechanism.end != self.clock.end or mechanism.views != gauge.views:
                raise changed("a mechanism for these steps and views", "one for others")
        self._verify_discovery()
        unit, end = self.privacy_unit, self.clock.end
        if not thresholds_agree(self.guarantee, unit, self.gauges, end):
            raise changed("clips of first values that are drawn as was asked for", "others")
        noisy = [gauge.mechanism for gauge in self.gauges]
        noisy += [g.clip.mechanism for g in self.gauges if isinstance(g.clip, Clip)]
        if len({type(mechanism.cost) for mechanism in noisy}) > 1:
            raise changed("one kind of noise in all gauges", "two, whose costs do not add up")
        self.ledger  # noqa: B018 (it refuses to exceed the guarantee)

    def _verify_clip(self, gauge: PlannedGauge, clip: Clip | Threshold) -> None:
        """Refuse a clip that is found by something else than magnitudes or first values."""
        unit, relation, bounds = self.privacy_unit, self.relation, (gauge.low, gauge.high)
        mean, mechanisms = gauge.kind == "mean", [gauge.mechanism]
        if isinstance(clip, Clip):
            verify_gauge(clip.mechanism)
            mechanisms.append(clip.mechanism)
            if clip.mechanism.neighbors != magnitude_neighbors(unit, relation, *bounds):
                raise changed("a mechanism for this unit, range and cells", "one for others")
            bins = clip.mechanism
            once = isinstance(bins.strategy, Identity) and bins.max_per_step == EPOCH_EVENTS
            if not once or bins.views != (("step", Step()),) or bins.last_step is not None:
                raise changed("counts of magnitudes of each epoch", "others")
        if gauge.mechanism.neighbors != clipped_neighbors(
            unit, relation, *bounds, len(gauge.cells), mean=mean
        ):
            raise changed("a mechanism for this unit, range and cells", "one for others")
        for mechanism in mechanisms:
            if not serves_rescaled(mechanism.strategy) or mechanism.guarantee != self.guarantee:
                raise changed("measurements of which the noise is known", "others")
        if gauge.mechanism.end != self.clock.end or gauge.mechanism.views != gauge.views:
            raise changed("a mechanism for these steps and views", "one for others")
        if isinstance(clip, Clip):
            values, magnitudes = gauge.mechanism.cost, clip.mechanism.cost
            assert isinstance(values, GaussianCost), "others were refused"
            assert isinstance(magnitudes, GaussianCost), "others were refused"
            whole = values.mu_squared + magnitudes.mu_squared
            if magnitudes.mu_squared != clip.share * whole:
                raise changed("the share of the budget that magnitudes cost", "another")

    def _verify_discovery(self) -> None:
        """Refuse gauges that discover their cells in another way than was asked for."""
        if not any(gauge.discover for gauge in self.gauges):
            spends: Sequence[Fraction] = [Fraction(0)] * len(self.gauges)
        elif isinstance(self.guarantee, ApproxDP):
            spends = deltas(self.guarantee, [gauge.discover for gauge in self.gauges])
        else:
            raise changed("epsilon and delta where cells are discovered", "another guarantee")
        for gauge, delta in zip(self.gauges, spends, strict=True):
            asked, planned = gauge.discover, gauge.mechanism.discovery
            if (asked is None) != (planned is None):
                raise changed("a mechanism that discovers cells where it is asked to", "another")
            if asked is None or planned is None:
                continue
            if asked.view not in (None, planned.decay) or planned.delta != delta:
                raise changed("names that are found as it was asked for", "others")
            if asked.expected_items != planned.expected_items:
                raise changed("as many expected items as were declared", "others")

    @staticmethod
    def from_bytes(data: bytes) -> Plan:
        """Return the plan of a plan file.

        Nothing is fitted: the stored numbers are used, after sensitivity, cost and ledger were
        computed anew from them.

        Raises:
            InvalidParameter: It is no plan of this version, or its numbers contradict.
            BudgetExceeded: The gauges together exceed the guarantee.
        """
        plan = _plan_of(parsed_json(data))
        plan.verify()
        return plan


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


def _plan_of(data: Any) -> Plan:
    reader = Reader(data, "a plan")
    version = reader.integer("tidegauge_plan")
    if version != FORMAT:
        raise InvalidParameter(
            f"Expected a plan in version {FORMAT}, got version {version}. Its fields may mean "
            "something else. Use the version of tidegauge that wrote it."
        )
    time, unit = reader.take("time"), reader.take("unit")
    plan = Plan(
        clock=clock_of(Reader(reader.take("clock"), "clock")),
        time=None if time is None else time_of(Reader(time, "time")),
        unit=None if unit == "event" else unit_of(Reader(unit, "unit")),
        relation=relation_of(reader.text("neighboring_relation")),
        guarantee=read_as(reader.take("guarantee"), PureDP, ZCDP, GaussianDP, ApproxDP),
        gauges=tuple(gauge_of(Reader(item, "a gauge")) for item in reader.items("gauges")),
        about=texts_of(reader.take("about"), "about"),
        versions=texts_of(reader.take("versions"), "versions"),
        multiline="csv" in reader.names and _multiline(Reader(reader.take("csv"), "csv")),
        event=line(reader.text("event")) if "event" in reader.names else None,
    )
    reader.done()
    if (plan.clock.step_us is None) != (plan.time is None):
        raise changed("a time column, or records as steps", "both or neither")
    return plan


def _multiline(reader: Reader) -> bool:
    """Read how CSV sources are cut; a plan says nothing of it where every newline ends a row."""
    if reader.take("multiline") is not True:
        raise changed("multiline: true, or nothing of csv", "another")
    reader.done()
    return True
