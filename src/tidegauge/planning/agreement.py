"""What the fields of one config have to agree on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from math import prod
from pathlib import Path
from typing import Any

from tidegauge.checks import shown
from tidegauge.errors import InvalidParameter, TidegaugeError
from tidegauge.mechanisms.clip_plan import UNIT
from tidegauge.mechanisms.discovery import Discover, discover_of
from tidegauge.mechanisms.mean import Bounds
from tidegauge.mechanisms.request import EVENTS_PER_STEP
from tidegauge.mechanisms.selection import Select
from tidegauge.planning import durations, fields
from tidegauge.planning.averages import MOST_REACH, refuse_beside_mean
from tidegauge.planning.clips import refuse_beside_clip
from tidegauge.planning.complaints import value_at
from tidegauge.planning.declared import Config, GaugeConfig
from tidegauge.planning.document import Document, Path_
from tidegauge.planning.form import ConfigForm, IdForm, SinkForm
from tidegauge.planning.gauge_form import DiscoverForm, FileForm, GaugeForm
from tidegauge.planning.items import items_of
from tidegauge.planning.known_values import distinct, values_of_file
from tidegauge.planning.named import why_not
from tidegauge.planning.parts import (
    ALL_CELLS,
    MOST_VALUES,
    UNKNOWN_CELLS,
    Clock,
    IdUnit,
    Kind,
    TimeColumn,
    count_cells,
)
from tidegauge.planning.problems import did_you_mean
from tidegauge.planning.ranks import refuse_beside_top, select_of
from tidegauge.planning.settings import Settings, Sink
from tidegauge.planning.sources import kind_of, unknown_kind
from tidegauge.planning.view_form import View
from tidegauge.privacy.guarantee import ZCDP, ApproxDP, GaussianDP, Guarantee, PureDP
from tidegauge.privacy.unit import relation_of
from tidegauge.strategies.decay import Running, Step, Window
from tidegauge.strategies.named import own_decay

__all__ = ["Agreement"]

_MOST_GRAINS = 1 << 40
_MOST_TOTAL = 1 << 62
_PLACES = frozenset({"sources", "store", "public", "mark", "sinks"})
_CLOCK = frozenset({"step", "start", "end", "event_time", "timezone", "time_format"})


_WHY_NOT_RECORDS = {
    **dict.fromkeys(
        ("event_time", "timezone", "time_format", "start"),
        "Records are counted, whenever they happened.",
    ),
    "event": "Rows of one event would be several steps, and it has one.",
}
_WHY_NOT_DISTINCT = {
    "views": "Expected no views beside count_distinct, got some. Different values of another "
    "window are no function of these: each window is a gauge of its own.",
    "anticipate": "Expected no anticipate beside count_distinct, got some. Its one view is its "
    "window.",
    "max_per_step": "Expected no max_per_step beside count_distinct, got one. A count of different "
    "values cannot be cut off as a sum can.",
    "totals": "Expected no totals beside count_distinct, got some. A value that occurs in two "
    "cells would count twice: a gauge without by counts it once.",
}


def _kind(read: GaugeForm) -> Kind:
    if read.count_distinct is not None:
        return "count_distinct"
    if read.mean is not None:
        return "mean"
    return "count" if read.sum is None else "sum"  # a top_k is a count of which less is shown


def _rest(read: GaugeForm) -> str | None:
    """The name of the cell for the rest; None: it is left out, as where cells are ranked."""
    return None if read.other == "drop" or read.top_k is not None else read.other


class Agreement:
    """What the fields of one config have to agree on."""

    def __init__(
        self, document: Document, read: ConfigForm, wrong: frozenset[str] = frozenset()
    ) -> None:
        self._document = document
        self._read = read
        self._wrong = wrong  # fields that were refused already, and stand here as placeholders
        self._refuse = document.refuse

    def config(self) -> Config | None:
        """Return the config, or None with problems noted."""
        told = bool(self._wrong & _CLOCK)
        clock, time = (None, None) if told else (self._clock(), self._time())
        guarantee, unit = self._guarantee(), self._unit()
        gauges = [self._gauge(name, gauge) for name, gauge in self._read.gauges.items()]
        if not gauges and "gauges" not in self._wrong:
            self._refuse(("gauges",), "Expected at least one gauge, got none. Nothing is counted.")
        self._tell_apart(list(self._read.gauges))
        settings = self._settings(gauges)
        if self._document.problems or guarantee is None or clock is None:
            return None
        about = self._read.about.model_dump(exclude_none=True)
        horizon = self._read.horizon if clock.end is None else clock.end
        return Config(
            file=self._document.file,
            clock=clock,
            time=time,
            unit=unit,
            relation=relation_of(self._read.privacy.neighboring_relation),
            guarantee=guarantee,
            gauges=tuple(gauge for gauge in gauges if gauge is not None),
            horizon=horizon,
            about=tuple(sorted(about.items())),
            multiline=self._read.csv.multiline,
            event=self._read.event,
            settings=settings,
            warnings=tuple(self._document.warnings),
        )

    def _tell_apart(self, names: list[str]) -> None:
        """Refuse gauges whose folders some file systems would take for one."""
        seen: dict[str, str] = {}
        for name in names:
            if name.lower() in seen:
                self._refuse(
                    ("gauges", name),
                    f"Expected names that differ in more than case, got {seen[name.lower()]} and "
                    f"{name}. Some file systems would give them one folder. Rename one.",
                    key=True,
                )
            seen.setdefault(name.lower(), name)

    def _clock(self) -> Clock | None:
        read = self._read
        if read.step is None:
            return Clock(read.start or 0, None, read.end)
        if read.start is None:
            self._refuse(
                (),
                "Expected start, got nothing of it. The first step cannot be learned from the data "
                "without giving an event away. Write start: 2013-01-01T00:00:00Z.",
            )
            return None
        if read.end is None:
            return Clock(read.start, read.step, None)
        steps = Fraction(read.end - read.start, read.step)
        if steps <= 0:
            self._refuse(("end",), "Expected end after start, got one that is not. Correct it.")
        elif steps.denominator != 1:
            near = durations.instant_text(read.start + int(steps + 1) * read.step)
            self._refuse(
                ("end",),
                f"Expected a whole number of steps of {durations.written(read.step)} from start to "
                f"end, got {float(steps):.6g}. The last step would be cut. Write {near}.",
            )
        elif steps >= 1 << 38:
            self._refuse(("end",), "Expected fewer than 2^38 steps, got more. Use longer steps.")
        return Clock(read.start, read.step, int(steps))

    def _time(self) -> TimeColumn | None:
        read = self._read
        if read.step is None:
            for name in ("event_time", "timezone", "time_format", "start", "event"):
                if name in read.model_fields_set:
                    self._refuse(
                        (name,),
                        f"Expected no {name} with step: record, got one. {_WHY_NOT_RECORDS[name]} "
                        "Remove it.",
                        key=True,
                    )
            return None
        if read.event_time is None:
            self._refuse(
                (),
                "Expected event_time, got nothing of it. A row's step is told by its own time. "
                "Write event_time: COLUMN.",
            )
            return None
        if read.timezone is not None and read.time_format != "iso":
            self._refuse(
                ("timezone",),
                "Expected no timezone with an epoch, got one. Seconds since 1970 are in UTC. "
                "Remove it.",
                key=True,
            )
        if read.timezone is None and read.time_format == "iso" and self._is_text(read.sources):
            self._document.warn(
                ("event_time",),
                "Stamps without a zone are left out, for no timezone is declared. If they all end "
                "in Z or an offset this is right; else write timezone: UTC, or the zone they are "
                "of.",
            )
        return TimeColumn(read.event_time, read.timezone, read.time_format)

    @staticmethod
    def _is_text(sources: Sequence[str]) -> bool:
        """Whether a source has its stamps as text; Parquet tells whether its times have zones."""
        return any(source == "-" or kind_of(source) != "parquet" for source in sources)

    def _unit(self) -> IdUnit | None:
        unit: Any = self._read.privacy.unit  # a word or a mapping
        if isinstance(unit, IdForm):
            per: Any = unit.per
            return IdUnit(unit.id, unit.max_contributions, per)
        return None

    def _guarantee(self) -> Guarantee | None:
        privacy = self._read.privacy
        epsilon, delta, rho, mu = privacy.epsilon, privacy.delta, privacy.rho, privacy.mu
        given = [n for n, v in (("epsilon", epsilon), ("rho", rho), ("mu", mu)) if v is not None]
        if len(given) != 1:
            got = " and ".join(given) or "none of them"
            self._refuse(
                ("privacy",),
                f"Expected one of epsilon, rho and mu, got {got}. There is no default: how much "
                "may be learned is a decision. Write epsilon: 1 and delta: 1e-9.",
                key=True,
            )
            return None
        if delta is not None and epsilon is None:
            self._refuse(
                ("privacy", "delta"),
                f"Expected delta beside epsilon only, got it beside {given[0]}. {given[0]} says "
                "all. Remove delta.",
                key=True,
            )
            return None
        try:
            if rho is not None:
                return ZCDP(rho)
            if mu is not None:
                return GaussianDP(mu)
            assert epsilon is not None
            return PureDP(epsilon) if delta is None else ApproxDP(epsilon, delta)
        except InvalidParameter as error:
            name = "delta" if str(error).startswith("Expected delta") else given[0]
            self._refuse(("privacy", name), str(error))
            return None

    # --- gauges

    def _gauge(self, name: str, read: GaugeForm) -> GaugeConfig | None:
        path: Path_ = ("gauges", name)
        self._try(path, lambda: fields.name(name), key=True)
        parts = (read.count, read.sum, read.mean, read.count_distinct, read.top_k)
        given = [part for part in parts if part is not None]
        if len(given) != 1:
            got = ("none of them", "", "both", "three", "four", "all of them")[len(given)]
            self._refuse(
                path,
                f"Expected count, sum, mean, count_distinct or top_k, got {got}. Each is a gauge "
                "of its own. Write count: {where: ...}, sum: {column: ..., bounds: [lowest, "
                "highest]}, mean: {column: ..., bounds: [lowest, highest]}, count_distinct: "
                "{column: ..., window: 7d}, or top_k: {k: 10}.",
                key=True,
            )
            return None
        grains = self._grains(path, read)
        by = self._by(path, read)
        discover = self._discover(path, read)
        views = self._views((*path, "views"), read.views)
        if read.count_distinct is not None:
            views = self._distinct(path, read, read.count_distinct.window)
        views = views or self._default_views(path, read)
        problem = why_not(read)
        if problem is not None:
            self._refuse((*path, "strategy"), problem)
        weight = read.budget_weight
        if weight <= 0:
            self._refuse(
                (*path, "budget_weight"),
                "Expected a weight above 0, got another. A gauge without a share of the budget "
                "has no noise. Write 1.",
            )
        if grains is None or by is None:
            return None
        low, high, round_to = grains
        other = _rest(read)
        known = all(values for _, values in by)
        crossed = prod(len(values) + (other is not None) for _, values in by)
        cells = crossed if known else UNKNOWN_CELLS
        select = None
        if read.top_k is not None:
            ranked = crossed if discover is None else discover.expected_items
            ranked = read.top_k.k if read.top_k.method else ranked
            refuse_beside_top(read, max(1, ranked), self._refusing(path))
            select = self._select(path, read, cells)
        if read.mean is not None:
            refuse_beside_mean(read, (*views, *self._anticipated(path, read)), self._refusing(path))
        max_items, high = items_of(read, self._has_event, cells, high, self._refusing(path))
        clip = self._clip(path, read, (low, high), views)
        most = self._most(path, read, (low, high), round_to, clip)
        if read.count_distinct is not None and views[0].decay not in (Running(), Window(1)):
            most = MOST_VALUES  # never cut off, see the engine
        what: Any = given[0]  # one of five forms
        return GaugeConfig(
            name=name,
            kind=_kind(read),
            column=getattr(what, "column", None),
            low=low,
            high=high,
            round_to=round_to,
            where=what.where,
            by=by,
            other=other if any(values for _, values in by) else None,
            views=views,
            anticipate=tuple(self._anticipated(path, read)),
            budget_weight=weight,
            max_per_step=most,
            totals=read.totals,
            max_items=max_items,
            top=None if read.top_k is None else read.top_k.k,
            select=select,
            level=read.level,
            band=read.band,
            strategy=read.strategy,
            discover=discover,
            clip=clip,
        )

    def _clip(
        self,
        path: Path_,
        read: GaugeForm,
        bounds: tuple[int, int],
        views: tuple[View, ...],
    ) -> Fraction | None:
        """The part of the budget that finding a clip costs; None: there is none to be found."""
        asked = read.sum if read.mean is None else read.mean
        if asked is None or asked.clip is None:
            return None
        share, kind = asked.clip.auto.share, "sum" if read.mean is None else "mean"
        anticipated = self._anticipated(path, read)
        refuse_beside_clip(read, bounds, share, (*views, *anticipated), self._refusing(path))
        if max(-bounds[0], bounds[1]) > MOST_REACH:
            self._refuse(
                (*path, kind, "bounds"),
                "Expected bounds of at most 2^39 times round_to beside clip, got more. Sums could "
                "overflow. Choose a coarser round_to.",
            )
        privacy = self._read.privacy
        if "privacy" not in self._wrong and privacy.epsilon is not None and privacy.delta is None:
            self._refuse(
                (*path, kind, "clip"),
                "Expected a delta beside clip, got a pure promise. The noise under a clip that "
                "moves is known for Gaussian noise alone. Write delta: 1e-9, or leave out clip.",
            )
        return min(max(share, Fraction(1, 100)), Fraction(1, 2))

    def _default_views(self, path: Path_, read: GaugeForm) -> tuple[View, ...]:
        """Each step and the running sum; of a strategy that releases one decay of its own, that."""
        try:
            own = None if read.strategy is None else own_decay(read.strategy)
        except TidegaugeError as error:
            self._refuse((*path, "strategy"), str(error))
            own = None
        if own is not None:
            return (View("polynomial_sum", own),)
        if read.top_k is not None and read.top_k.method is not None:
            return (View("running", Running()),)
        return View("step", Step()), View("running", Running())

    def _select(self, path: Path_, read: GaugeForm, cells: int) -> Select | None:
        """How cells are chosen, by a method; None: all are measured."""
        select = select_of(
            read,
            cells,
            has_event=self._has_event,
            has_end=self._read.end is not None or "end" in self._wrong,
            refuse=self._refusing(path),
        )
        given: list[Any] = [v for gauge in self._read.gauges.values() for v in gauge.by.values()]
        if select is not None and fields.DISCOVER in given:
            self._refuse(
                (*path, "top_k", "method"),
                "Expected known values in all gauges beside method: sparse_gumb, got discover. "
                "Names are paid for in delta beside Gaussian noise alone, and choices in rho. List "
                "the values, or remove method.",
                key=True,
            )
        privacy = self._read.privacy
        paid = privacy.rho is not None or privacy.delta is not None
        if select is not None and "privacy" not in self._wrong and not paid:
            self._refuse(
                (*path, "top_k", "method"),
                "Expected rho, or epsilon and delta, beside method: sparse_gumb, got another "
                "promise. Choices of cells have a price in rho alone. Write rho: 0.1, or "
                "epsilon: 1 and delta: 1e-9.",
                key=True,
            )
        return select

    @property
    def _has_event(self) -> bool:
        """Whether events are sets of rows, or would be if the field were right."""
        return self._read.event is not None or "event" in self._wrong

    def _refusing(self, path: Path_) -> Callable[[str, str], None]:
        """Refuse a field of a gauge, or ``field.part``; without a name: the gauge."""
        return lambda name, message: self._refuse(
            (*path, *filter(None, name.split("."))), message, key=True
        )

    def _distinct(self, path: Path_, read: GaugeForm, window: View) -> tuple[View, ...]:
        """The one view of a count of different values; refuse what has no meaning beside it."""
        for name in ("views", "anticipate", "max_per_step", "totals"):
            if name in read.model_fields_set:
                self._refuse((*path, name), f"{_WHY_NOT_DISTINCT[name]} Remove it.", key=True)
        end, steps = self._read.end, getattr(window.decay, "steps", 0)
        if end is not None and self._read.step is not None and self._read.start is not None:
            end = (end - self._read.start) // self._read.step
        if end is not None and 0 < end < steps:
            self._refuse(
                (*path, "count_distinct", "window"),
                f"Expected a window within the stream, got {steps:,} steps of {end:,}. It would "
                "never be full. Write running for everything since the start.",
            )
        return (window,)

    def _try(self, path: Path_, check: Callable[[], object], *, key: bool = False) -> None:
        try:
            check()
        except TidegaugeError as error:
            self._refuse(path, str(error), key=key)

    def _grains(self, path: Path_, read: GaugeForm) -> tuple[int, int, Fraction] | None:
        """The least and largest contribution of a row, in grains, and the value of a grain."""
        kind = "sum" if read.mean is None else "mean"
        asked = read.sum if read.mean is None else read.mean
        if asked is None:
            return 0, 1, Fraction(1)
        (low, high), round_to = asked.bounds, asked.round_to
        place: Path_ = (*path, kind, "bounds")
        if round_to <= 0:
            self._refuse(
                (*path, kind, "round_to"), "Expected a number above 0, got another. Write 0.01."
            )
            return None
        if kind == "mean" and low == high:
            self._refuse(
                place,
                "Expected [lowest, highest] with values between, got one value. Every value would "
                "count as the same. Write what values can be.",
            )
            return None
        if low > high or low == high == 0:
            self._refuse(
                place, "Expected [lowest, highest] with a value between, got others. Swap them."
            )
            return None
        if (low / round_to).denominator != 1 or (high / round_to).denominator != 1:
            self._refuse(
                place,
                f"Expected multiples of round_to = {_plain(round_to)}, got others. Sums are exact "
                "in multiples of it. Choose a finer round_to, or other bounds.",
            )
            return None
        grains = int(low / round_to), int(high / round_to)
        most = _MOST_GRAINS if kind == "sum" else MOST_REACH
        if max(map(abs, grains)) > most:
            self._refuse(
                place,
                f"Expected bounds of at most 2^{most.bit_length() - 1} times round_to, got more. "
                "Sums could overflow. Choose a coarser round_to.",
            )
            return None
        return *grains, round_to

    def _most(
        self,
        path: Path_,
        read: GaugeForm,
        bounds: tuple[int, int],
        round_to: Fraction,
        clip: Fraction | None,
    ) -> int:
        """The cap on one cell's total in one step, in grains."""
        if clip is not None:
            return self._most_events(path, read, UNIT)
        if read.mean is not None:
            return self._most_events(path, read, Bounds(*bounds).reach)
        largest = max(map(abs, bounds))
        if read.max_per_step is None:
            return EVENTS_PER_STEP * largest
        most = read.max_per_step / round_to
        if most.denominator != 1 or not 1 <= most <= _MOST_TOTAL:
            self._refuse(
                (*path, "max_per_step"),
                f"Expected a multiple of {_plain(round_to)} above 0, got another. It is the "
                "largest total of one cell and step, in the column's own unit. Write one.",
            )
        return max(1, int(most))

    def _most_events(self, path: Path_, read: GaugeForm, reach: int) -> int:
        """The cap on a mean's events in one cell and step, in the grains that they are counted."""
        events = Fraction(EVENTS_PER_STEP) if read.max_per_step is None else read.max_per_step
        if events.denominator != 1 or not 1 <= events <= 4 * EVENTS_PER_STEP:
            self._refuse(
                (*path, "max_per_step"),
                "Expected a whole number from 1 to 2^22, got another. Here it is the most "
                "events of one cell and step. Write 1000, say.",
            )
        return max(1, min(int(events), 4 * EVENTS_PER_STEP)) * reach

    def _by(self, path: Path_, read: GaugeForm) -> Any:
        """The known values of every ``by`` column."""
        before = len(self._document.problems)
        crossed: list[tuple[str, tuple[str, ...]]] = []
        by: dict[str, Any] = dict(read.by)  # lists and files
        for column, given in by.items():
            place: Path_ = (*path, "by", column)
            self._column(place, column)
            if given == fields.DISCOVER:
                crossed.append((column, ()))
                continue
            if isinstance(given, FileForm):
                values = values_of_file(self._document, place, given)
            else:
                values = list(given)
                distinct(self._document, place, values)
            if not values and len(self._document.problems) == before:
                self._refuse(place, "Expected at least one known value, got none. List them.")
            if _rest(read) in values:
                self._refuse(
                    (*path, "other") if "other" in read.model_fields_set else place,
                    f"Expected a name for the rest that is no value of {column}, got "
                    f"{read.other!r}. Two cells would have one name. Write other: REST, or drop.",
                )
            crossed.append((column, tuple(values)))
        if read.totals:
            self._totals(path, read, crossed)
        if "other" in read.model_fields_set and not any(values for _, values in crossed):
            self._refuse(
                (*path, "other"),
                "Expected other beside known values, got it without. Nothing is left over. "
                "Remove it.",
                key=True,
            )
        if len(self._document.problems) > before:
            return None
        other = _rest(read)
        self._try((*path, "by"), lambda: count_cells(crossed, other if crossed else None), key=True)
        return tuple(crossed)

    def _column(self, place: Path_, column: str) -> None:
        """Refuse a ``by`` column that could not stand in what is published."""
        if not column or not fields.is_line(column):
            self._refuse(
                place,
                "Expected a column's name in one line, got another. Published documents would "
                "show something else than was signed. Rename it in the source.",
                key=True,
            )
        if column in fields.RESERVED:
            self._refuse(
                place,
                f"Expected a column that no release has, got {column}. Both would stand side "
                "by side under one name. Rename it in the source.",
                key=True,
            )

    def _discover(self, path: Path_, read: GaugeForm) -> Discover | None:
        """How cells are discovered; None: all are known."""
        by: dict[str, Any] = dict(read.by)
        unknown = [column for column, given in by.items() if given == fields.DISCOVER]
        asked = read.discover or DiscoverForm.model_validate({})
        if not unknown:
            if read.discover is not None:
                self._refuse(
                    (*path, "discover"),
                    "Expected discover beside a by column whose values are not known, got it "
                    "without. Nothing is to be found. Write by: {COLUMN: discover}, or remove it.",
                    key=True,
                )
            return None
        place: Path_ = (*path, "by", unknown[0])
        privacy = self._read.privacy
        if "privacy" not in self._wrong and privacy.delta is None:
            given = next((n for n in ("epsilon", "rho", "mu") if getattr(privacy, n)), "no delta")
            self._refuse(
                place,
                f"Expected epsilon and delta beside discover, got {given} alone. A name that only "
                "one unit brings is never shown by noise that may be large by chance: that chance "
                "is a delta. List the values, or write epsilon: 1 and delta: 1e-9.",
            )
        if read.count_distinct is not None:
            self._refuse(
                place,
                "Expected known values beside count_distinct, got discover. It finds the cells of "
                "counts and sums alone. List the values, or count rows.",
            )
        if read.totals:
            self._refuse(
                (*path, "totals"),
                "Expected no totals beside discover, got some. A sum over the cells that are named "
                "leaves out the rest, and changes with every new name. Count the same in a gauge "
                "without by.",
                key=True,
            )
        if fields.MEASURED & set(by):
            name = min(fields.MEASURED & set(by))
            self._refuse(
                (*path, "by", name),
                f"Expected a column that no measurement has, got {name}. Both would stand side by "
                "side under one name. Rename it in the source.",
                key=True,
            )
        if not 0 < asked.delta_share < 1:
            self._refuse(
                (*path, "discover", "delta_share"),
                "Expected a part of delta between 0 and 1, got another. Names need some of it, and "
                "so does the noise. Write 0.5.",
            )
            return None
        try:
            return discover_of(asked.view, asked.delta_share, asked.expected_items)
        except InvalidParameter as error:
            self._refuse((*path, "discover", "expected_items"), str(error))
            return None

    def _totals(
        self, path: Path_, read: GaugeForm, crossed: list[tuple[str, tuple[str, ...]]]
    ) -> None:
        """Refuse a sum over cells that there are not, or beside a cell of its name."""
        if not read.by:
            self._refuse(
                (*path, "totals"),
                "Expected totals beside by, got it alone. Without cells there is nothing to add "
                "up. Remove it.",
                key=True,
            )
        rest = _rest(read) or ""
        for column, values in crossed:
            if ALL_CELLS in (*values, rest):
                self._refuse(
                    (*path, "totals"),
                    f"Expected totals beside values of {column} other than {ALL_CELLS}, got that. "
                    "The sum of all cells has this name. Remove totals, or rename the value.",
                    key=True,
                )

    def _views(self, path: Path_, given: list[Any]) -> tuple[View, ...]:
        views: list[View] = list(given)
        seen: set[str] = set()
        written = value_at(self._document.root, path)
        keys = list(written) if isinstance(written, dict) else range(len(views))
        for key, view in zip(keys, views, strict=True):
            if view.name in seen:
                self._refuse(
                    (*path, key),
                    f"Expected each view once, got {view.name} again. Both would be the same "
                    "numbers. Remove one, or name them in a mapping.",
                )
            seen.add(view.name)
        return tuple(views)

    def _anticipated(self, path: Path_, read: GaugeForm) -> list[View]:
        """Views that accuracy is designed for; they are never read, and count once."""
        views: list[Any] = list(read.anticipate)
        for i, view in enumerate(views):
            if view.every != 1:
                self._refuse(
                    (*path, "anticipate", i),
                    "Expected no every in anticipate, got one. Accuracy does not depend on when a "
                    "view is read. Remove it.",
                )
            if view.importance != 1:
                self._refuse(
                    (*path, "anticipate", i),
                    "Expected no importance in anticipate, got one. What is not published counts "
                    "once. Remove it, or publish the view.",
                )
        return views

    # --- settings

    def _settings(self, gauges: list[GaugeConfig | None]) -> Settings:
        read, document = self._read, self._document
        if not read.sources:
            self._refuse(("sources",), "Expected at least one source, got none. Name a file.")
        for i, source in enumerate(read.sources):
            path = (
                ("sources", i) if isinstance(document.root.get("sources"), list) else ("sources",)
            )
            if source == "-" and len(read.sources) > 1:
                self._refuse(path, "Expected standard input alone, got it beside others. Split.")
            elif source != "-" and kind_of(source) is None:
                self._refuse(path, unknown_kind(source))
        store = read.store or f"{Path(document.file).stem}.tidegauge"
        names = {view.name for gauge in gauges if gauge for view in gauge.views}
        if None in gauges or "gauges" in self._wrong:
            names = set()  # some are not known, so that none can be refused
        sinks = tuple(
            sink for i, given in enumerate(read.sinks) for sink in self._sink(i, given, names)
        )
        settings = Settings(
            base=str(Path(document.file).parent),
            sources=tuple(read.sources),
            store=store,
            public=read.public,
            mark=read.mark,
            sinks=sinks,
        )
        if not self._wrong & _PLACES and len(sinks) == len(read.sinks):
            for conflict in settings.check(Path(document.file)):
                told = conflict.field if conflict.field[0] in document.root else ("public",)
                self._refuse(told, conflict.message)
        return settings

    def _sink(self, i: int, given: SinkForm, names: set[str]) -> Iterator[Sink]:
        files = [(kind, getattr(given, kind)) for kind in ("parquet", "jsonl", "csv")]
        chosen = [(kind, file) for kind, file in files if file is not None]
        if len(chosen) != 1:
            self._refuse(
                ("sinks", i),
                f"Expected one of parquet, jsonl and csv, got {len(chosen)}. Each sink is one "
                "file. Write {parquet: {path: releases.parquet}}.",
            )
            return
        kind, file = chosen[0]
        for k, view in enumerate(file.views or ()):
            if names and view not in names:
                self._refuse(
                    ("sinks", i, kind, "views", k),
                    f"Expected the name of a view, got {shown(view)}. "
                    f"{did_you_mean(view, sorted(names))}".replace("fields here", "views"),
                )
        yield Sink(kind, file.path, None if file.views is None else tuple(file.views))


def _plain(value: Fraction) -> str:
    """A decimal as it was written."""
    return str(value.numerator) if value.denominator == 1 else f"{float(value):g}"
