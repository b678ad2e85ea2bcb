"""From a config to a plan: every gauge's strategy, noise and share of the budget; reads no data.

Two whole plans are compared: all gauges with Gaussian noise, mu^2 shared by weight, and all with
discrete Laplace noise, epsilon shared by weight and delta unused. Mixtures would
be kept in zCDP, which charges both kinds more; they are not tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import sqrt

from tidegauge.errors import UnsupportedCombination
from tidegauge.mechanisms.design import design, worst_ratio
from tidegauge.mechanisms.plan import GaugePlan
from tidegauge.mechanisms.request import Request
from tidegauge.plan.declared import Config, GaugeConfig
from tidegauge.plan.parts import PlannedGauge, count_cells, neighbors_of
from tidegauge.plan.plan import Plan
from tidegauge.privacy.costs import Cost, GaussianCost, PureCost
from tidegauge.privacy.guarantee import ApproxDP, PureDP
from tidegauge.privacy.ledger import Ledger
from tidegauge.privacy.unit import Contributions, Event, PrivacyUnit

__all__ = ["plan_of"]


def plan_of(config: Config) -> Plan:
    """Return the plan of a config: the least noise, relative to what any factorization could reach.

    Raises:
        UnsupportedCombination: No proved mechanism fits a gauge, or its totals could overflow; the
            message names it.

    Cost: no data is read and nothing is spent; 10 to 500 ms a gauge, most of it the fit.
    """
    best: tuple[float, list[GaugePlan]] | None = None
    refused: UnsupportedCombination | None = None
    for costs in _splits(config):
        requests = [
            _request(config, gauge, cost) for gauge, cost in zip(config.gauges, costs, strict=True)
        ]
        try:
            plans = [_designed(gauge, r) for gauge, r in zip(config.gauges, requests, strict=True)]
        except UnsupportedCombination as error:
            refused = refused or error
            continue
        score = max(_scores(config.gauges, requests, plans))
        if best is None or score < best[0]:
            best = score, plans
    if best is None:
        assert refused is not None
        raise refused
    plan = Plan(
        clock=config.clock,
        time=config.time,
        unit=config.unit,
        relation=config.relation,
        guarantee=config.guarantee,
        gauges=tuple(_planned(g, m) for g, m in zip(config.gauges, best[1], strict=True)),
        about=config.about,
        versions=_versions(),
        multiline=config.multiline,
    )
    plan.verify()
    return plan


def _splits(config: Config) -> Iterator[Sequence[Cost]]:
    """The shares of all gauges, by noise of each kind that the guarantee allows."""
    weights = [gauge.budget_weight for gauge in config.gauges]
    if not isinstance(config.guarantee, PureDP):
        yield Ledger(config.guarantee).split(weights, GaussianCost)
    if isinstance(config.guarantee, PureDP | ApproxDP):
        yield Ledger(config.guarantee).split(weights, PureCost)


def _unit(config: Config) -> PrivacyUnit:
    return Event() if config.unit is None else Contributions(config.unit.max_contributions)


def _request(config: Config, gauge: GaugeConfig, cost: Cost) -> Request:
    cells = count_cells(gauge.by, gauge.other)
    return Request(
        views=tuple((view.name, view.decay) for view in gauge.views),
        cells=None,
        scalar=False,
        guarantee=config.guarantee,
        neighbors=neighbors_of(_unit(config), config.relation, gauge.low, gauge.high, cells),
        max_per_step=gauge.max_per_step,
        horizon=config.horizon,
        end=config.clock.end,
        level=gauge.level,
        band=gauge.band,
        anticipate=tuple(view.decay for view in gauge.anticipate),
        share=cost,
    )


def _designed(gauge: GaugeConfig, request: Request) -> GaugePlan:
    try:
        return design(request)
    except UnsupportedCombination as error:
        raise UnsupportedCombination(f"Gauge {gauge.name}: {error}") from None


def _scores(
    gauges: Sequence[GaugeConfig], requests: Sequence[Request], plans: Sequence[GaugePlan]
) -> Iterator[float]:
    """Ratios to the lower bounds with the weights taken out: noise falls as their root."""
    for gauge, request, plan in zip(gauges, requests, plans, strict=True):
        yield worst_ratio(request, plan) * sqrt(gauge.budget_weight) / request.neighbors.largest


def _planned(gauge: GaugeConfig, mechanism: GaugePlan) -> PlannedGauge:
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
        every=tuple((view.name, view.every) for view in gauge.views if view.every != 1),
        anticipate=tuple(dict.fromkeys(view.decay for view in gauge.anticipate)),
        budget_weight=gauge.budget_weight,
        mechanism=mechanism,
    )


def _versions() -> tuple[tuple[str, str], ...]:
    from importlib.metadata import version

    return (("tidegauge", version("tidegauge")),)
