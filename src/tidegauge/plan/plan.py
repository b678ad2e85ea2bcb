"""The plan of a run: what is measured of which stream, for whom, at what cost; fit to be signed.

Its canonical bytes are JSON with sorted keys, no spaces, integers, text and fractions ``"n/d"``:
no float, so that every reader hashes the same bytes. A plan is made from a config by
:mod:`tidegauge.plan.planner` and read back by :meth:`Plan.from_bytes`, which fits nothing.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

from tidegauge.checks import integer, shown
from tidegauge.errors import InvalidParameter
from tidegauge.mechanisms.plan import GaugePlan, views_read
from tidegauge.mechanisms.stored import Reader, fraction_text, plain, read_as
from tidegauge.privacy.guarantee import ZCDP, ApproxDP, GaussianDP, Guarantee, PureDP
from tidegauge.privacy.ledger import Ledger
from tidegauge.privacy.unit import (
    Contributions,
    Event,
    NeighboringRelation,
    Neighbors,
    PrivacyUnit,
    relation_of,
)
from tidegauge.strategies.decay import Decay

__all__ = ["FORMAT", "Clock", "IdUnit", "Plan", "PlannedGauge", "TimeColumn", "most_cells"]

FORMAT = 1
"""Of the plan file; a reader refuses every other."""

most_cells = 1 << 20
"""Most cells of one gauge: with a thousand steps that is 8 GB of exact totals."""

_MOST_BYTES = 1 << 28
_FORMATS = ("iso", "epoch_s", "epoch_ms")
_KINDS = ("count", "sum")
_LONGEST = 1 << 62
_LIFETIME = "lifetime"


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
class PlannedGauge:
    """One gauge: what is counted, by what, how it is read, and its mechanism.

    Attributes:
        name: As published.
        kind: ``"count"`` of rows or ``"sum"`` of a column.
        column: What is summed; None for a count.
        low: Least contribution of a row, in grains; values below count as this.
        high: Largest contribution of a row, in grains; values above count as this.
        round_to: The value of one grain.
        where: Canonical text of the predicate; a row counts only if it is TRUE; None: every row.
        by: Name of each column that cells are made of, and its known values.
        other: Name of the cell for the rest of each ``by`` column; None: the rest is dropped.
        views: Name and decay of each published view.
        every: For the views that are read only at every n-th step, counted from the start: n.
        anticipate: Decays that the accuracy is designed for as well, not published.
        budget_weight: Its part in the split of the budget.
        mechanism: Strategy, noise and cost, with all their numbers.
    """

    name: str
    kind: Literal["count", "sum"]
    column: str | None
    low: int
    high: int
    round_to: Fraction
    where: str | None
    by: tuple[tuple[str, tuple[str, ...]], ...]
    other: str | None
    views: tuple[tuple[str, Decay], ...]
    every: tuple[tuple[str, int], ...]
    anticipate: tuple[Decay, ...]
    budget_weight: Fraction
    mechanism: GaugePlan

    @cached_property
    def cells(self) -> tuple[tuple[str, ...], ...]:
        """The crossed values in declared order, the first column slowest; ``((),)`` without by."""
        rest = () if self.other is None else (self.other,)
        return tuple(itertools.product(*(values + rest for _, values in self.by)))

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
            from tidegauge.plan.where import columns

            names |= set(columns(self.where))
        return tuple(sorted(names))


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
    """

    clock: Clock
    time: TimeColumn | None
    unit: IdUnit | None
    relation: NeighboringRelation
    guarantee: Guarantee
    gauges: tuple[PlannedGauge, ...]
    about: tuple[tuple[str, str], ...]
    versions: tuple[tuple[str, str], ...]

    def canonical(self) -> bytes:
        """Return the bytes that are hashed, signed and published."""
        return canonical_bytes(_plan_data(self))

    @cached_property
    def sha256(self) -> str:
        """``"sha256:..."`` of the canonical bytes: what an officer approves."""
        return _digest(self.canonical())

    @cached_property
    def fingerprint(self) -> str:
        """``"sha256:..."`` of everything but the published views, ``about`` and ``versions``.

        A store is bound to it: what has it in common measures the same, with the same noise.
        """
        data = _plan_data(self)
        for gauge in data["gauges"]:
            del gauge["views"], gauge["every"], gauge["anticipate"]
            del gauge["mechanism"]["views"], gauge["mechanism"]["level"]
        del data["about"], data["versions"]
        return _digest(canonical_bytes(data))

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
            del gauge["views"], gauge["every"], gauge["anticipate"], gauge["mechanism"]
        del data["about"], data["versions"]
        return _digest(canonical_bytes(data))

    def reading(self, other: Plan) -> Plan:
        """Return this plan with the published views, and the words, of another.

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
                mechanism=replace(mine.mechanism, views=theirs.views),
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
        return tuple(sorted(names))

    @cached_property
    def privacy_unit(self) -> PrivacyUnit:
        """The unit as the mechanisms charge for it."""
        return Event() if self.unit is None else Contributions(self.unit.max_contributions)

    @property
    def ledger(self) -> Ledger:
        """The account, with every gauge charged at once.

        Raises:
            BudgetExceeded: Together they exceed the guarantee.
        """
        ledger = Ledger(self.guarantee)
        ledger.charge({gauge.name: gauge.mechanism.cost for gauge in self.gauges})
        return ledger

    def neighbors(self, low: int, high: int, cells: int) -> Neighbors:
        """Return what one protected unit can move in a gauge, in grains.

        A row whose value is missing or that does not pass contributes 0, so 0 is in the range.
        """
        return neighbors_of(self.privacy_unit, self.relation, low, high, cells)

    def verify(self) -> None:
        """Refuse a plan whose parts contradict one another.

        Raises:
            InvalidParameter: A mechanism protects another unit, range or number of cells.
            BudgetExceeded: The gauges together exceed the guarantee.
        """
        if len({gauge.name for gauge in self.gauges}) < len(self.gauges) or not self.gauges:
            raise _changed("gauges, each once", "none, or one twice")
        for gauge in self.gauges:
            mechanism = gauge.mechanism
            mechanism.verify()
            expected = self.neighbors(gauge.low, gauge.high, len(gauge.cells))
            if mechanism.neighbors != expected or mechanism.guarantee != self.guarantee:
                raise _changed("a mechanism for this unit, range and cells", "one for others")
            if mechanism.end != self.clock.end or mechanism.views != gauge.views:
                raise _changed("a mechanism for these steps and views", "one for others")
        self.ledger  # noqa: B018 (it refuses to exceed the guarantee)

    @staticmethod
    def from_bytes(data: bytes) -> Plan:
        """Return the plan of a plan file; ``settings`` beside it are left aside.

        Nothing is fitted: the stored numbers are used, after sensitivity, cost and ledger were
        computed anew from them.

        Raises:
            InvalidParameter: It is no plan of this version, or its numbers contradict.
            BudgetExceeded: The gauges together exceed the guarantee.
        """
        parsed = parsed_json(data)
        if isinstance(parsed, Mapping):
            parsed = {key: value for key, value in parsed.items() if key != "settings"}
        plan = _plan_of(parsed)
        plan.verify()
        return plan


def neighbors_of(
    unit: PrivacyUnit, relation: NeighboringRelation, low: int, high: int, cells: int
) -> Neighbors:
    """Return what may differ between neighbors in a gauge where an event touches one cell."""
    return Neighbors(unit, relation, min(low, 0), max(high, 0), 1, cells)


def canonical_bytes(data: Any) -> bytes:
    """Return JSON in the one form that is hashed: sorted keys, no spaces, UTF-8, a final newline.

    Examples:
        >>> canonical_bytes({"b": 1, "a": "é"})
        b'{"a":"\\xc3\\xa9","b":1}\\n'
    """
    text = json.dumps(
        data, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    return text.encode() + b"\n"


def parsed_json(data: bytes) -> Any:
    """Return JSON that has no float, no key twice and no more than 256 MiB.

    Raises:
        InvalidParameter: It is not of that kind.
    """
    if len(data) > _MOST_BYTES:
        raise _not_a_plan("more than 256 MiB")
    try:
        return json.loads(
            data.decode(),
            object_pairs_hook=_once,
            parse_float=_refuse_float,
            parse_constant=_refuse_float,
        )
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise _not_a_plan(f"something else ({type(error).__name__})") from None
    except ValueError as error:
        if isinstance(error, InvalidParameter):
            raise
        raise _not_a_plan("a number of too many digits") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        raise _not_a_plan("a field twice")
    return result


def _refuse_float(text: str) -> Any:
    raise _not_a_plan(f"the float {shown(text)}")


def _digest(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def _not_a_plan(got: str) -> InvalidParameter:
    return InvalidParameter(
        f"Expected a plan file, got {got}. Nothing can be run from it. "
        'Write one with "tidegauge plan CONFIG -o plan.json".'
    )


def _changed(expected: str, got: str) -> InvalidParameter:
    return InvalidParameter(
        f"Expected {expected}, got {got}. The plan was changed after it was written, and would not "
        "keep what it says. Use the plan as it was written."
    )


def _plan_data(plan: Plan) -> dict[str, Any]:
    time, unit = plan.time, plan.unit
    return {
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
        "gauges": [_gauge_data(gauge) for gauge in plan.gauges],
        "about": dict(plan.about),
        "versions": dict(plan.versions),
    }


def _gauge_data(gauge: PlannedGauge) -> dict[str, Any]:
    return {
        "name": gauge.name,
        "kind": gauge.kind,
        "column": gauge.column,
        "low": gauge.low,
        "high": gauge.high,
        "round_to": fraction_text(gauge.round_to),
        "where": gauge.where,
        "by": [[column, list(values)] for column, values in gauge.by],
        "other": gauge.other,
        "views": [[name, plain(decay)] for name, decay in gauge.views],
        "every": dict(gauge.every),
        "anticipate": [plain(decay) for decay in gauge.anticipate],
        "budget_weight": fraction_text(gauge.budget_weight),
        "mechanism": gauge.mechanism.stored(),
    }


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
        clock=_clock(Reader(reader.take("clock"), "clock")),
        time=None if time is None else _time(Reader(time, "time")),
        unit=None if unit == "event" else _unit(Reader(unit, "unit")),
        relation=relation_of(reader.text("neighboring_relation")),
        guarantee=read_as(reader.take("guarantee"), PureDP, ZCDP, GaussianDP, ApproxDP),
        gauges=tuple(_gauge(Reader(item, "a gauge")) for item in reader.items("gauges")),
        about=_texts(reader.take("about"), "about"),
        versions=_texts(reader.take("versions"), "versions"),
    )
    reader.done()
    if (plan.clock.step_us is None) != (plan.time is None):
        raise _changed("a time column, or records as steps", "both or neither")
    return plan


def _clock(reader: Reader) -> Clock:
    clock = Clock(
        integer("start_us", reader.integer("start_us"), low=-_LONGEST, high=_LONGEST),
        reader.optional_integer("step_us"),
        reader.optional_integer("end"),
    )
    reader.done()
    if clock.step_us is not None:
        integer("step_us", clock.step_us, low=1, high=_LONGEST)
    return clock


def _time(reader: Reader) -> TimeColumn:
    column, zone = reader.text("column"), reader.optional_text("timezone")
    written = reader.text("format")
    reader.done()
    for known in _FORMATS:
        if written == known:
            return TimeColumn(column, zone, known)  # type: ignore[arg-type]  # one of the literals
    raise _changed(f"a time format of {_FORMATS}", shown(written))


def _unit(reader: Reader) -> IdUnit:
    column = reader.text("id")
    most = integer("max_contributions", reader.integer("max_contributions"), low=1, high=1 << 40)
    per = reader.take("per")
    reader.done()
    if per != _LIFETIME:
        per = integer("per", per, low=1, high=_LONGEST)
    return IdUnit(column, most, per)


def _gauge(reader: Reader) -> PlannedGauge:
    kind = reader.text("kind")
    if kind not in _KINDS:
        raise _changed(f"a gauge of {_KINDS}", shown(kind))
    every = Reader(reader.take("every"), "every")
    views = views_read(reader.items("views"))
    names = [name for name, _ in views if name in every.names]
    gauge = PlannedGauge(
        name=reader.text("name"),
        kind="count" if kind == "count" else "sum",
        column=reader.optional_text("column"),
        low=reader.integer("low"),
        high=reader.integer("high"),
        round_to=reader.fraction("round_to"),
        where=_where(reader.optional_text("where")),
        by=tuple(_by(item) for item in reader.items("by")),
        other=reader.optional_text("other"),
        views=views,
        every=tuple(
            (name, integer("every", every.integer(name), low=1, high=_LONGEST)) for name in names
        ),
        anticipate=_anticipated(reader.items("anticipate")),
        budget_weight=reader.fraction("budget_weight"),
        mechanism=GaugePlan.restore(reader.take("mechanism")),
    )
    reader.done()
    every.done()
    _check_gauge(gauge)
    return gauge


def _check_gauge(gauge: PlannedGauge) -> None:
    """What a gauge's own fields have to agree on."""
    if (gauge.kind == "sum") != (gauge.column is not None):
        raise _changed("a column for a sum and none for a count", "another")
    if gauge.kind == "count" and (gauge.low, gauge.high, gauge.round_to) != (0, 1, 1):
        raise _changed("a count to go up by 1", "another contribution")
    if gauge.low > gauge.high or gauge.round_to <= 0 or gauge.budget_weight <= 0:
        raise _changed("ordered bounds, and numbers above 0", "others")
    for i, (column, values) in enumerate(gauge.by):
        rest = () if gauge.other is None else (gauge.other,)
        repeated = len(set(values + rest)) < len(values + rest)
        if repeated or not values or column in dict(gauge.by[:i]):
            raise _changed("by columns and values, each once", "one twice, or none")
    count_cells(gauge.by, gauge.other)


def count_cells(by: Sequence[tuple[str, tuple[str, ...]]], other: str | None) -> int:
    """Return the number of cells.

    Raises:
        InvalidParameter: There are too many.
    """
    cells = 1
    for _, values in by:
        cells *= len(values) + (other is not None)
    return integer(
        "cells",
        cells,
        low=1,
        high=most_cells,
        why="Every crossed value is a cell of its own, at every step. Cross fewer columns.",
    )


def _where(text: str | None) -> str | None:
    """The predicate, which has to be in the form that was written."""
    if text is not None:
        from tidegauge.plan.where import checked

        if checked(text) != text:
            raise _changed("a predicate in canonical form", "another")
    return text


def _by(item: Any) -> tuple[str, tuple[str, ...]]:
    if isinstance(item, list) and len(item) == 2 and isinstance(item[0], str):
        values = item[1]
        if isinstance(values, list) and all(isinstance(value, str) for value in values):
            return item[0], tuple(values)
    raise _changed("each by column with a list of values", shown(item))


def _anticipated(items: tuple[Any, ...]) -> tuple[Decay, ...]:
    named = [[str(i), item] for i, item in enumerate(items)]
    return tuple(decay for _, decay in views_read(tuple(named))) if named else ()


def _texts(data: Any, what: str) -> tuple[tuple[str, str], ...]:
    reader = Reader(data, what)
    pairs = tuple((name, reader.text(name)) for name in sorted(reader.names))
    reader.done()
    return pairs
