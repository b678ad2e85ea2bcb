"""A plan that is read back: nothing is fitted, and its parts have to belong together.

Sensitivity, cost and ledger are computed anew from what is declared, whoever wrote the numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from tidegauge.errors import InvalidParameter
from tidegauge.mechanisms.clip_plan import EPOCH_EVENTS, clipped_neighbors, magnitude_neighbors
from tidegauge.mechanisms.discovery import deltas
from tidegauge.mechanisms.first_values import Threshold
from tidegauge.mechanisms.plain_data import Reader
from tidegauge.mechanisms.restoring import verify_gauge
from tidegauge.mechanisms.stored import read_as
from tidegauge.planning.canonical import parsed_json
from tidegauge.planning.drawn import thresholds_agree
from tidegauge.planning.parts import Clip, counted_cells, distinct_of
from tidegauge.planning.parts_data import (
    changed,
    clock_of,
    gauge_of,
    line,
    texts_of,
    time_of,
    unit_of,
)
from tidegauge.planning.plan import FORMAT, Plan, PlannedGauge
from tidegauge.privacy.costs import GaussianCost
from tidegauge.privacy.guarantee import ZCDP, ApproxDP, GaussianDP, PureDP
from tidegauge.privacy.unit import relation_of
from tidegauge.strategies.decay import Step
from tidegauge.strategies.identity import Identity
from tidegauge.strategies.rescaled import serves_rescaled

__all__ = ["plan_from_bytes", "verify_plan"]


def plan_from_bytes(data: bytes) -> Plan:
    """Return the plan of a plan file.

    Nothing is fitted: the stored numbers are used, after sensitivity, cost and ledger were
    computed anew from them.

    Raises:
        InvalidParameter: It is no plan of this version, or its numbers contradict.
        BudgetExceeded: The gauges together exceed the guarantee.
    """
    plan = _plan_of(parsed_json(data))
    verify_plan(plan)
    return plan


def verify_plan(plan: Plan) -> None:
    """Refuse a plan whose parts contradict one another.

    Raises:
        InvalidParameter: A mechanism protects another unit, range or number of cells.
        BudgetExceeded: The gauges together exceed the guarantee.
    """
    if len({gauge.name for gauge in plan.gauges}) < len(plan.gauges) or not plan.gauges:
        raise changed("gauges, each once", "none, or one twice")
    if plan.event is not None and plan.clock.step_us is None:
        raise changed("rows of one event in one step", "a step for each of them")
    for gauge in plan.gauges:
        mechanism = gauge.mechanism
        one = gauge.max_items == 1 and (gauge.kind in ("sum", "mean") or gauge.high == 1)
        if plan.event is None and not one:
            raise changed("a row to count once, in one cell", "more, without sets of rows")
        verify_gauge(mechanism)
        distinct = distinct_of(gauge.kind, gauge.views)
        low, high, cells = gauge.low, gauge.high, gauge.number_of_cells
        if gauge.clip is not None:
            _verify_clip(plan, gauge, gauge.clip)
            continue
        mean = gauge.kind == "mean"
        touched = counted_cells(gauge.select, gauge.max_items, cells, plan.relation)
        expected = plan.neighbors(low, high, cells, distinct, touched, mean=mean)
        if mechanism.neighbors != expected or mechanism.guarantee != plan.guarantee:
            raise changed("a mechanism for this unit, range and cells", "one for others")
        if mechanism.end != plan.clock.end or mechanism.views != gauge.views:
            raise changed("a mechanism for these steps and views", "one for others")
    _verify_discovery(plan)
    unit, end = plan.privacy_unit, plan.clock.end
    if not thresholds_agree(plan.guarantee, unit, plan.gauges, end):
        raise changed("clips of first values that are drawn as was asked for", "others")
    noisy = [gauge.mechanism for gauge in plan.gauges]
    noisy += [g.clip.mechanism for g in plan.gauges if isinstance(g.clip, Clip)]
    if len({type(mechanism.cost) for mechanism in noisy}) > 1:
        raise changed("one kind of noise in all gauges", "two, whose costs do not add up")
    plan.charged()  # refuses to exceed the guarantee


def _verify_clip(plan: Plan, gauge: PlannedGauge, clip: Clip | Threshold) -> None:
    """Refuse a clip that is found by something else than magnitudes or first values."""
    unit, relation, bounds = plan.privacy_unit, plan.relation, (gauge.low, gauge.high)
    mean, mechanisms = gauge.kind == "mean", [gauge.mechanism]
    if isinstance(clip, Clip):
        verify_gauge(clip.mechanism)
        mechanisms.append(clip.mechanism)
        if clip.mechanism.neighbors != magnitude_neighbors(unit, relation, *bounds):
            raise changed("a mechanism for this unit, range and cells", "one for others")
        bins = clip.mechanism
        once = isinstance(bins.strategy, Identity) and bins.max_per_step == EPOCH_EVENTS
        if not once or bins.views != (("step", Step()),) or bins.last_step is not None:
            raise InvalidParameter(
                "Expected counts of magnitudes of each epoch, got others. An earlier version of "
                "tidegauge counted them at every step, or the plan was changed after it was "
                "written. Go on with the version that wrote it, or begin a new store, whose cost "
                "comes on top."
            )
    if gauge.mechanism.neighbors != clipped_neighbors(
        unit, relation, *bounds, len(gauge.cells), mean=mean
    ):
        raise changed("a mechanism for this unit, range and cells", "one for others")
    for mechanism in mechanisms:
        if not serves_rescaled(mechanism.strategy) or mechanism.guarantee != plan.guarantee:
            raise changed("measurements of which the noise is known", "others")
    if gauge.mechanism.end != plan.clock.end or gauge.mechanism.views != gauge.views:
        raise changed("a mechanism for these steps and views", "one for others")
    if isinstance(clip, Clip):
        values, magnitudes = gauge.mechanism.cost, clip.mechanism.cost
        assert isinstance(values, GaussianCost), "others were refused"
        assert isinstance(magnitudes, GaussianCost), "others were refused"
        whole = values.mu_squared + magnitudes.mu_squared
        if magnitudes.mu_squared != clip.share * whole:
            raise changed("the share of the budget that magnitudes cost", "another")


def _verify_discovery(plan: Plan) -> None:
    """Refuse gauges that discover their cells in another way than was asked for."""
    if not any(gauge.discover for gauge in plan.gauges):
        spends: Sequence[Fraction] = [Fraction(0)] * len(plan.gauges)
    elif isinstance(plan.guarantee, ApproxDP):
        spends = deltas(plan.guarantee, [gauge.discover for gauge in plan.gauges])
    else:
        raise changed("epsilon and delta where cells are discovered", "another guarantee")
    for gauge, delta in zip(plan.gauges, spends, strict=True):
        asked, planned = gauge.discover, gauge.mechanism.discovery
        if (asked is None) != (planned is None):
            raise changed("a mechanism that discovers cells where it is asked to", "another")
        if asked is None or planned is None:
            continue
        if asked.view not in (None, planned.decay) or planned.delta != delta:
            raise changed("names that are found as it was asked for", "others")
        if asked.expected_items != planned.expected_items:
            raise changed("as many expected items as were declared", "others")


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
