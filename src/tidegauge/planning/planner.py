"""From a config to a plan: every gauge's strategy, noise and share of the budget; reads no data.

Whole plans are compared (see :mod:`tidegauge.mechanisms.design`): all gauges have noise of one
kind, and share the budget by weight.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from tidegauge.errors import UnsupportedCombination
from tidegauge.mechanisms.apart import with_views_apart
from tidegauge.mechanisms.clip_plan import (
    clipped_neighbors,
    magnitude_neighbors,
    magnitudes_request,
)
from tidegauge.mechanisms.comparison import Comparison
from tidegauge.mechanisms.design import compare
from tidegauge.mechanisms.first_values import (
    FirstValues,
    Threshold,
    set_apart,
    spends,
    threshold_of,
)
from tidegauge.mechanisms.plan import GaugePlan
from tidegauge.mechanisms.request import Request
from tidegauge.planning.declared import Config, GaugeConfig
from tidegauge.planning.parts import (
    Clip,
    PlannedGauge,
    count_cells,
    counted_cells,
    distinct_of,
    neighbors_of,
)
from tidegauge.planning.plan import Plan
from tidegauge.planning.verified import verify_plan
from tidegauge.privacy.costs import ThresholdCost
from tidegauge.privacy.unit import Contributions, Event, Neighbors, PrivacyUnit
from tidegauge.strategies.decay import Decay

__all__ = ["candidates_of", "compared", "plan_of"]


def plan_of(config: Config) -> Plan:
    """Return the plan of a config: the least noise, relative to what any factorization could reach.

    Raises:
        UnsupportedCombination: No proved mechanism fits a gauge, or its totals could overflow; the
            message names it.

    Cost: no data is read and nothing is spent; 10 to 500 ms a gauge, most of it the fit.
    """
    found, magnitudes = _compared(config)
    plan = Plan(
        clock=config.clock,
        time=config.time,
        unit=config.unit,
        relation=config.relation,
        guarantee=config.guarantee,
        gauges=tuple(
            _planned(g, f.plan, _clip(config, g, cost, magnitudes))
            for g, f, cost in zip(config.gauges, found, _thresholds(config), strict=True)
        ),
        about=config.about,
        versions=_versions(),
        multiline=config.multiline,
        event=config.event,
    )
    verify_plan(plan)
    return plan


def compared(config: Config) -> tuple[Comparison, ...]:
    """Return for each gauge of a config all candidates, and why each was chosen or not.

    Raises:
        UnsupportedCombination: See :func:`plan_of`.
    """
    return _compared(config)[0]


def _compared(config: Config) -> tuple[tuple[Comparison, ...], dict[str, GaugePlan]]:
    """All candidates of each gauge, and what counts magnitudes for those whose clip is found."""
    clipped = [gauge for gauge in config.gauges if isinstance(gauge.clip, Fraction)]
    requests = [_request(config, gauge) for gauge in config.gauges]
    more_requests = [_magnitudes(config, gauge) for gauge in clipped]
    found = compare([*requests, *more_requests], set_apart(_thresholds(config)))
    more = zip(clipped, found[len(requests) :], strict=True)
    return tuple(found[: len(requests)]), {gauge.name: one.plan for gauge, one in more}


def candidates_of(config: Config) -> tuple[Comparison, ...]:
    """Return :func:`compared`, and beside it a paper's systems that serve one view alone.

    Raises:
        UnsupportedCombination: See :func:`plan_of`.
    """
    found = zip(config.gauges, compared(config), strict=True)
    return tuple(with_views_apart(_request(config, gauge), one) for gauge, one in found)


def _unit(config: Config) -> PrivacyUnit:
    return Event() if config.unit is None else Contributions(config.unit.max_contributions)


def _thresholds(config: Config) -> tuple[ThresholdCost | None, ...]:
    """What each gauge spends on a clip that is drawn from first values."""
    asked = [g.clip if isinstance(g.clip, FirstValues) else None for g in config.gauges]
    return spends(config.guarantee, asked, [gauge.budget_weight for gauge in config.gauges])


def _clip(
    config: Config,
    gauge: GaugeConfig,
    cost: ThresholdCost | None,
    magnitudes: Mapping[str, GaugePlan],
) -> Clip | Threshold | None:
    """How the clip of a gauge is found; None: it has none."""
    if isinstance(gauge.clip, FirstValues):
        assert cost is not None
        try:
            return threshold_of(gauge.clip, cost, _unit(config))
        except UnsupportedCombination as problem:
            raise UnsupportedCombination(f"{gauge.name}: {problem}") from None
    return None if gauge.clip is None else Clip(gauge.clip, magnitudes[gauge.name])


def _magnitudes(config: Config, gauge: GaugeConfig) -> Request:
    """What counts the magnitudes of the values of a gauge whose clip is found."""
    neighbors = magnitude_neighbors(_unit(config), config.relation, gauge.low, gauge.high)
    return replace(
        magnitudes_request(_request(config, gauge), neighbors),
        name=f"{gauge.name}, magnitudes",
        budget_weight=gauge.budget_weight * gauge.clip_share,
    )


def _neighbors(config: Config, gauge: GaugeConfig) -> Neighbors:
    """What one protected unit can move in a gauge."""
    unit, relation, mean = _unit(config), config.relation, gauge.kind == "mean"
    cells, views = count_cells(gauge.by, gauge.other), _views(gauge)
    if gauge.clip is not None:
        assert cells is not None, "discovered cells were refused"
        return clipped_neighbors(unit, relation, gauge.low, gauge.high, cells, mean=mean)
    touched = counted_cells(gauge.select, gauge.max_items, cells, relation)
    what = distinct_of(gauge.kind, views), touched
    return neighbors_of(unit, relation, gauge.low, gauge.high, cells, *what, mean=mean)


def _views(gauge: GaugeConfig) -> tuple[tuple[str, Decay], ...]:
    return tuple((view.name, view.decay) for view in gauge.views)


def _request(config: Config, gauge: GaugeConfig) -> Request:
    return Request(
        views=_views(gauge),
        cells=None,
        scalar=False,
        guarantee=config.guarantee,
        neighbors=_neighbors(config, gauge),
        max_per_step=gauge.max_per_step,
        horizon=config.horizon,
        end=config.clock.end,
        level=gauge.level,
        band=gauge.band,
        anticipate=tuple(view.decay for view in gauge.anticipate),
        importance=tuple((v.name, v.importance) for v in gauge.views if v.importance != 1),
        every=_every(gauge),
        name=gauge.name,
        budget_weight=gauge.budget_weight * (1 - gauge.clip_share),
        rescaled=gauge.clip is not None,
        strategy=gauge.strategy,
        discover=gauge.discover,
        select=gauge.select,
    )


def _every(gauge: GaugeConfig) -> tuple[tuple[str, int], ...]:
    """The views that are read at every so many steps only."""
    return tuple((view.name, view.every) for view in gauge.views if view.every != 1)


def _planned(
    gauge: GaugeConfig, mechanism: GaugePlan, clip: Clip | Threshold | None
) -> PlannedGauge:
    return PlannedGauge(
        name=gauge.name,
        kind=gauge.kind,
        column=gauge.column,
        low=gauge.low,
        high=gauge.high,
        round_to=gauge.round_to,
        where=gauge.where,
        by=gauge.by,
        other=gauge.other,
        views=mechanism.views,
        every=_every(gauge),
        anticipate=tuple(dict.fromkeys(view.decay for view in gauge.anticipate)),
        budget_weight=gauge.budget_weight,
        mechanism=mechanism,
        totals=gauge.totals,
        discover=gauge.discover,
        max_items=gauge.max_items,
        top=gauge.top,
        clip=clip,
        select=gauge.select,
    )


def _versions() -> tuple[tuple[str, str], ...]:
    from importlib.metadata import version

    return (("tidegauge", version("tidegauge")),)
