"""What the fields of one gauge have to agree on."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import prod
from typing import Any

from tidegauge.errors import TidegaugeError, UnsupportedCombination
from tidegauge.mechanisms.clip_plan import LEAST_SHARE, MOST_SHARE
from tidegauge.mechanisms.discovery import Discover, check_discoverable
from tidegauge.mechanisms.first_values import FirstValues
from tidegauge.mechanisms.selection import Select
from tidegauge.planning import fields
from tidegauge.planning.amounts import grains_of, most_of
from tidegauge.planning.averages import MOST_REACH, refuse_beside_mean
from tidegauge.planning.cells import by_of, rest_of
from tidegauge.planning.clips import refuse_beside_clip
from tidegauge.planning.declared import GaugeConfig
from tidegauge.planning.discovering import discovery_of
from tidegauge.planning.document import Document, Path_
from tidegauge.planning.drawn import first_values_of
from tidegauge.planning.form import ConfigForm
from tidegauge.planning.gauge_form import GaugeForm
from tidegauge.planning.gauge_views import anticipated_of, views_of
from tidegauge.planning.named import why_not
from tidegauge.planning.parts import MOST_VALUES, UNKNOWN_CELLS, Kind
from tidegauge.planning.ranks import refuse_beside_top, select_of
from tidegauge.planning.sets import cells_of_event
from tidegauge.planning.view_form import View
from tidegauge.strategies.decay import Running, Window

__all__ = ["GaugeAgreement"]


def _kind(read: GaugeForm) -> Kind:
    if read.count_distinct is not None:
        return "count_distinct"
    if read.mean is not None:
        return "mean"
    return "count" if read.sum is None else "sum"  # a top_k is a count of which less is shown


class GaugeAgreement:
    """What the fields of one gauge have to agree on.

    Args:
        document: Where problems are noted.
        config: What the gauge stands in.
        wrong: Fields of the config that were refused already, and stand in it as placeholders.
        name: Of the gauge.
    """

    def __init__(
        self, document: Document, config: ConfigForm, wrong: frozenset[str], name: str
    ) -> None:
        self._document = document
        self._config = config
        self._wrong = wrong
        self._name = name
        self._read = config.gauges[name]
        self._path: Path_ = ("gauges", name)
        self._privacy = None if "privacy" in wrong else config.privacy

    def gauge(self) -> GaugeConfig | None:
        """Return the gauge, or None with problems noted."""
        document, path, read = self._document, self._path, self._read
        what = self._what()
        if what is None:
            return None
        grains = grains_of(document, path, read)
        by = by_of(document, path, read)
        discover = discovery_of(document, path, read, self._privacy)
        views = views_of(document, path, self._config, read)
        self._check_discoverable(discover, views)
        self._check_noise()
        if grains is None or by is None:
            return None
        low, high, round_to = grains
        known = all(values for _, values in by)
        other = rest_of(read)
        crossed = prod(len(values) + (other is not None) for _, values in by)
        cells = crossed if known else UNKNOWN_CELLS
        select = self._ranked(crossed, cells, discover)
        anticipate = anticipated_of(document, path, read)
        if read.mean is not None:
            refuse_beside_mean(read, (*views, *anticipate), self._refuse)
        max_items, high = cells_of_event(read, self._has_event, cells, high, self._refuse)
        clip = self._clip((low, high), (*views, *anticipate))
        most = most_of(document, path, read, (low, high, round_to), clip)
        if read.count_distinct is not None and views[0].decay not in (Running(), Window(1)):
            most = MOST_VALUES  # never cut off, see the engine
        return GaugeConfig(
            name=self._name,
            kind=_kind(read),
            column=getattr(what, "column", None),
            low=low,
            high=high,
            round_to=round_to,
            where=what.where,
            by=by,
            other=other if any(values for _, values in by) else None,
            views=views,
            anticipate=anticipate,
            budget_weight=read.budget_weight,
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

    def _check_discoverable(self, asked: Discover | None, views: Sequence[View]) -> None:
        """Refuse views in which no value could be named; a running sum needs an end."""
        if asked is None or not self._wrong.isdisjoint({"start", "end", "step"}):
            return
        try:
            check_discoverable(asked, [(v.name, v.decay) for v in views], self._config.end)
        except UnsupportedCombination as error:
            self._refuse("views" if self._read.discover is None else "discover", str(error))

    def _what(self) -> Any:
        """The form of what is measured, one of five; None: a problem is noted."""
        try:
            fields.name(self._name)
        except TidegaugeError as error:
            self._refuse("", str(error))
        read = self._read
        parts = (read.count, read.sum, read.mean, read.count_distinct, read.top_k)
        given = [part for part in parts if part is not None]
        if len(given) == 1:
            return given[0]
        got = ("none of them", "", "both", "three", "four", "all of them")[len(given)]
        self._refuse(
            "",
            f"Expected count, sum, mean, count_distinct or top_k, got {got}. Each is a gauge of "
            "its own. Write count: {where: ...}, sum: {column: ..., bounds: [lowest, highest]}, "
            "mean: {column: ..., bounds: [lowest, highest]}, count_distinct: {column: ..., "
            "window: 7d}, or top_k: {k: 10}.",
        )
        return None

    def _check_noise(self) -> None:
        """Refuse a strategy that is for other gauges, and a gauge without noise."""
        problem = why_not(self._read)
        if problem is not None:
            self._document.refuse((*self._path, "strategy"), problem)
        if self._read.budget_weight <= 0:
            self._document.refuse(
                (*self._path, "budget_weight"),
                "Expected a weight above 0, got another. A gauge without a share of the budget "
                "has no noise. Write 1.",
            )

    def _clip(
        self, bounds: tuple[int, int], views: tuple[View, ...]
    ) -> Fraction | FirstValues | None:
        """What finding a clip costs, or the values it is drawn from; None: none is to be found."""
        read = self._read
        kind, asked = ("sum", read.sum) if read.mean is None else ("mean", read.mean)
        if asked is None or asked.clip is None:
            return None
        auto, perrier = asked.clip.auto, asked.clip.perrier
        share = Fraction(1, 2) if auto is None else auto.share
        refuse_beside_clip(read, bounds, share, views, self._refuse)
        if max(-bounds[0], bounds[1]) > MOST_REACH:
            self._document.refuse(
                (*self._path, kind, "bounds"),
                "Expected bounds of at most 2^39 times round_to beside clip, got more. Sums could "
                "overflow. Choose a coarser round_to.",
            )
        config = self._config
        steps = (config.end or 0) - (config.start or 0), config.step or 1
        if self._wrong.isdisjoint({"start", "end", "step"}) and steps[0] == steps[1]:
            self._document.refuse(
                (*self._path, kind, "clip"),
                "Expected an end of two steps or more beside clip, got one step. A clip is chosen "
                "from what earlier steps published, and there would be none. Write a later end, "
                "or leave out clip.",
            )
        privacy = self._privacy
        place = (*self._path, kind, "clip")
        if perrier is not None:
            return first_values_of(
                perrier,
                bounds[0],
                self._config,
                self._wrong,
                lambda message: self._document.refuse(place, message, key=True),
            )
        if privacy is not None and privacy.epsilon is not None and privacy.delta is None:
            self._document.refuse(
                place,
                "Expected a delta beside clip, got a pure promise. The noise under a clip that "
                "moves is known for Gaussian noise alone. Write delta: 1e-9, or leave out clip.",
            )
        return min(max(share, LEAST_SHARE), MOST_SHARE)

    def _ranked(self, crossed: int, cells: int, discover: Discover | None) -> Select | None:
        """How cells are chosen, by a method; None: all are measured."""
        read, top = self._read, self._read.top_k
        if top is None:
            return None
        ranked = crossed if discover is None else discover.expected_items
        refuse_beside_top(read, max(1, top.k if top.method else ranked), self._refuse)
        select = select_of(
            read,
            cells,
            has_event=self._has_event,
            has_end=self._config.end is not None or "end" in self._wrong,
            refuse=self._refuse,
        )
        if select is not None:
            self._check_method()
        return select

    def _check_method(self) -> None:
        """Refuse what the whole config has no room for beside a choice of cells."""
        given: list[Any] = [v for gauge in self._config.gauges.values() for v in gauge.by.values()]
        if fields.DISCOVER in given:
            self._refuse(
                "top_k.method",
                "Expected known values in all gauges beside method: sparse_gumb, got discover. "
                "Names are paid for in delta beside Gaussian noise alone, and choices in rho. List "
                "the values, or remove method.",
            )
        privacy = self._privacy
        if privacy is not None and privacy.rho is None and privacy.delta is None:
            self._refuse(
                "top_k.method",
                "Expected rho, or epsilon and delta, beside method: sparse_gumb, got another "
                "promise. Choices of cells have a price in rho alone. Write rho: 0.1, or "
                "epsilon: 1 and delta: 1e-9.",
            )

    @property
    def _has_event(self) -> bool:
        """Whether events are sets of rows, or would be if the field were right."""
        return self._config.event is not None or "event" in self._wrong

    def _refuse(self, name: str, message: str) -> None:
        """Note a problem with a field of the gauge, or ``field.part``; empty: the gauge."""
        self._document.refuse((*self._path, *filter(None, name.split("."))), message, key=True)
