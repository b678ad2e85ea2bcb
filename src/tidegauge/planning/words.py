"""What a plan will give, in numbers and in words: for the operator, before any data is read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from tidegauge.mechanisms.clip_plan import UNIT
from tidegauge.mechanisms.clipping import clips_up_to
from tidegauge.mechanisms.comparison import least_std, worst_gain
from tidegauge.mechanisms.mean import MeanReading
from tidegauge.mechanisms.plan import GaugePlan
from tidegauge.planning.choices import choices_of
from tidegauge.planning.clip_worth import clip_worth
from tidegauge.planning.durations import UNITS, written
from tidegauge.planning.plan import Plan, PlannedGauge
from tidegauge.planning.widest import worst_half_width
from tidegauge.privacy.costs import GaussianCost
from tidegauge.privacy.guarantee import ApproxDP, PureDP, rounded_up
from tidegauge.privacy.k_events import K_EVENTS, KEvents, k_event_table
from tidegauge.privacy.unit import NeighboringRelation
from tidegauge.strategies.bounds import UNKNOWN_HORIZON
from tidegauge.strategies.decay import (
    Custom,
    Decay,
    Difference,
    Exponential,
    Polynomial,
    Running,
    Step,
    Window,
)

__all__ = [
    "budget_share",
    "delta_in_words",
    "delta_of",
    "described",
    "epsilon_of",
    "gauge_in_words",
    "k_events",
    "length_in_words",
    "most_per_step",
    "noise_delta_of",
    "ranked_in_words",
    "ratio_to_bound",
    "span_in_words",
    "threshold_in_words",
    "view_in_words",
]

_ADDED = NeighboringRelation.ADD_OR_REMOVE_ONE
_DELTA = Fraction(1, 10**9)
MEAN_EVENTS = (10, 100, 1000)
"""For so many events in a view it is told how far a mean may be off."""
_NAMES = {
    "w": "week",
    "d": "day",
    "h": "hour",
    "m": "minute",
    "s": "second",
    "ms": "millisecond",
    "us": "microsecond",
}


def described(plan: Plan) -> dict[str, Any]:
    """Return what ``tidegauge plan`` tells, as plain data.

    Numbers are in the units of each gauge; steps count from 1. ``half_width`` is half of the
    interval at ``level``, pointwise or simultaneous as ``band`` says, of noise alone, at the first,
    a middle and the last step and, under ``worst``, where it is widest; ``total`` has the same for
    the sum of all cells, where it is published. ``ratio`` compares the noise of the worst step with
    the least that any factorization mechanism could have with noise of this kind at this cost. Of a
    mean, ``half_width_of`` has half the interval at the worst step for so many events in the view,
    wherever the mean lies, and ``count_std`` the noise of the count beside it.

    Cost: no data; 0.1 to 1 s.
    """
    return {
        "sha256": plan.sha256,
        "fingerprint": plan.fingerprint,
        "guarantee": repr(plan.guarantee),
        "spent": repr(plan.spent_on_noise()),
        "epsilon": float(epsilon_of(plan)),
        "delta": float(delta_of(plan)),
        **({"delta_spent": delta_in_words(plan)} if plan.names else {}),
        "k_events": [
            {"events": row.events, "epsilon": float(row.epsilon), "delta": float(row.delta)}
            for row in k_events(plan)
        ],
        "horizon": plan.gauges[0].mechanism.horizon,
        "end": plan.clock.end,
        "gauges": [_gauge(plan, gauge) for gauge in plan.gauges],
    }


def _gauge(plan: Plan, gauge: PlannedGauge) -> dict[str, Any]:
    mechanism = gauge.mechanism
    told = _mean_view if gauge.kind == "mean" else _view
    if gauge.clip is not None:
        told = _clipped_view
    return {
        "name": gauge.name,
        "kind": gauge.kind,
        "cells": gauge.number_of_cells,
        "budget_share": budget_share(plan, gauge),
        "strategy": type(mechanism.strategy).__name__,
        "measures": mechanism.measures,
        "noise": mechanism.noise,
        "level": mechanism.level,
        "band": mechanism.band,
        "max_per_step": most_per_step(gauge),
        "views": [told(plan, gauge, name, decay) for name, decay in gauge.views],
        **({} if gauge.clip is None else {"clip": _clip(plan, gauge)}),
        **({} if mechanism.discovery is None else {"discovery": _discovery(plan, gauge)}),
        **({} if mechanism.selection is None else {"choices": choices_of(plan, gauge)}),
        **({} if gauge.top is None else {"ranked": ranked_in_words(gauge)}),
        **_sets(plan, gauge),
    }


def _sets(plan: Plan, gauge: PlannedGauge) -> dict[str, str]:
    """What of the ratio is for events in several cells: the least is that of one cell alone."""
    most = gauge.max_items
    one = most == 1 or gauge.kind not in ("count", "sum") or gauge.clip is not None
    if one or gauge.select is not None or plan.relation is not _ADDED:
        return {}
    gaussian = isinstance(gauge.mechanism.cost, GaussianCost)
    factor = f"{math.sqrt(most):.2f}" if gaussian else f"at least {most:,}"
    return {"sets": f"of its ratio a factor of {factor} is for events in {most:,} cells"}


def most_per_step(gauge: PlannedGauge) -> float:
    """Return the cap on a cell's total of one step, in its unit; of a mean, on its events."""
    most = gauge.mechanism.max_per_step
    if gauge.clip is not None:
        return float(most // UNIT)
    if gauge.kind == "mean":
        return float(most // gauge.bounds.reach)
    return float(most * gauge.round_to)


def _clip(whole: Plan, gauge: PlannedGauge) -> dict[str, Any]:
    """What finding the clip costs, and when that cannot pay: from declared numbers alone."""
    plan, grain = gauge.clipped, float(gauge.round_to)
    ends = max(-gauge.low, gauge.high)
    part, why = clip_worth(whole, gauge)
    below = part * ends
    return {
        "share": float(plan.share),
        "pays_below": below * grain,
        "can_pay": bool((clips_up_to(ends)[1:] < below).any()),
        "says": f"{plan.in_words()}{why}",
    }


def _clipped_view(plan: Plan, gauge: PlannedGauge, name: str, decay: Decay) -> dict[str, Any]:
    """The noise of a view of clipped values as a multiple of the clip, which is not known yet."""
    every = gauge.every_of(name)
    std = _worst_std(gauge.mechanism, decay, every) / UNIT
    return {
        "name": name,
        "decay": view_in_words(decay, plan.clock.step_us),
        "every": every,
        "noise_of_clip": std,
    }


def _mean_view(plan: Plan, gauge: PlannedGauge, name: str, decay: Decay) -> dict[str, Any]:
    """How far a mean may be off, by how many events the view weighs; no bound is known for it."""
    every = gauge.every_of(name)
    reading, grain = MeanReading(gauge.mechanism, gauge.bounds), float(gauge.round_to)
    _, step = worst_half_width(gauge.mechanism, decay, every)
    half = reading.half_width(decay, step, MEAN_EVENTS) * grain
    std = float(gauge.mechanism.noise_std(decay, [step])[0]) / gauge.bounds.reach
    return {
        "name": name,
        "decay": view_in_words(decay, plan.clock.step_us),
        "every": every,
        "step": step,
        "half_width_of": {str(n): float(one) for n, one in zip(MEAN_EVENTS, half, strict=True)},
        "count_std": std,
    }


def _discovery(plan: Plan, gauge: PlannedGauge) -> dict[str, Any]:
    """When a discovered cell is named, and what names cost."""
    found = gauge.mechanism.discovery
    assert found is not None
    return {
        "columns": [column for column, values in gauge.by if not values],
        "view": found.view,
        "decay": view_in_words(found.decay, plan.clock.step_us),
        "threshold": float(found.threshold * gauge.round_to),
        "delta": float(found.delta),
        "noise_delta": float(noise_delta_of(plan)),
        "adaptive": found.adaptive,
        "expected_items": found.expected_items,
        "named": threshold_in_words(plan, gauge),
    }


def threshold_in_words(plan: Plan, gauge: PlannedGauge) -> str:
    """Return when a cell of a gauge that discovers them is named: a sentence without a full stop.

    The number is rounded up: a count that is said to pass does pass.
    """
    found = gauge.mechanism.discovery
    assert found is not None
    threshold = found.threshold * gauge.round_to
    least = gauge.round_to * math.ceil(threshold / gauge.round_to)
    number = f"{int(least):,}" if least.denominator == 1 else f"{float(least):,.10g}"
    columns = " and ".join(column for column, _ in gauge.by)
    span = span_in_words(found.decay, plan.clock.step_us)
    what = gauge_in_words(gauge)
    return f"a value of {columns} is named once its noisy {what} {span} passes {number}"


def ranked_in_words(gauge: PlannedGauge) -> str:
    """Return what is published of ranked cells: a phrase, for after "of each view"."""
    number, found = gauge.ranked, gauge.discover
    which = "largest cells" if found is None else "largest named cells"
    if gauge.select is not None:
        which = "cells that are shown"
    ranked = f"the {gauge.top:,} {which}, ranked by noisy values, with intervals that hold "
    if found is None:
        return f"{ranked}for all {number:,} at once"
    return (
        f"{ranked}at once for up to {found.expected_items:,} items, named or not (of more items, "
        "less surely)"
    )


def _view(plan: Plan, gauge: PlannedGauge, name: str, decay: Decay) -> dict[str, Any]:
    every = gauge.every_of(name)
    last = plan.clock.end or gauge.mechanism.horizon or UNKNOWN_HORIZON
    whole = max(1, last // every)
    steps = [min(every * place, last) for place in (1, (whole + 1) // 2, whole)]
    grain = float(gauge.round_to)

    def noise(summed: int) -> dict[str, Any]:
        std = gauge.mechanism.noise_std(decay, steps, summed) * grain
        half = gauge.shown.half_width(decay, steps, summed) * grain
        most = _worst_std(gauge.mechanism, decay, every) * math.sqrt(summed) * grain
        width, step = worst_half_width(gauge.shown, decay, every, summed)
        worst = {"step": step, "noise_std": most, "half_width": width * grain}
        return {"noise_std": std.tolist(), "half_width": half.tolist(), "worst": worst}

    own = noise(1)
    totals = {"total": noise(len(gauge.cells))} if gauge.totals else {}
    return {
        "name": name,
        "decay": view_in_words(decay, plan.clock.step_us),
        "every": every,
        "steps": steps,
        **own,
        **totals,
        "stands_out": _stands_out(plan, gauge, decay, own["worst"]["half_width"]),
        "ratio": ratio_to_bound(gauge.mechanism, decay, every),
    }


def _stands_out(plan: Plan, gauge: PlannedGauge, decay: Decay, half: float) -> str:
    """The widest half as a sentence: what is smaller cannot be told from nothing at some step."""
    grain = gauge.round_to
    least = grain * (math.floor(half / float(grain)) + 1)  # at the half-width itself 0 is covered
    number = f"{int(least):,}" if least.denominator == 1 else f"{float(least):,.10g}"
    what = gauge_in_words(gauge)
    span = span_in_words(decay, plan.clock.step_us)
    if gauge.discover is not None:
        return f"of a named cell, the smallest {what} {span} told from 0 is {number}"
    return f"the smallest {what} {span} that stands out is {number}"


def gauge_in_words(gauge: PlannedGauge) -> str:
    """Return what a number of a gauge is: ``"count"``, ``"sum of fare"``, ``"mean of fare"``..."""
    match gauge.kind:
        case "count":
            return "count"
        case "sum":
            return f"sum of {gauge.column}"
        case "mean":
            return f"mean of {gauge.column}"
        case "count_distinct":
            return f"number of different values of {gauge.column}"


def ratio_to_bound(mechanism: GaugePlan, decay: Decay, every: int = 1) -> float:
    """Return a view's noise at its worst step over the least of any factorization mechanism.

    The least is that of :func:`~tidegauge.mechanisms.comparison.least_std`. Of a view that is read
    at every so many steps, only those count, in the noise and in the bound.
    """
    horizon, end = mechanism.horizon, mechanism.end
    flips = mechanism.flips
    least = least_std(decay, horizon, end, mechanism.cost, mechanism.neighbors, every, flips=flips)
    return _worst_std(mechanism, decay, every) / least if least else math.inf


def _worst_std(mechanism: GaugePlan, decay: Decay, every: int) -> float:
    """The noise of a view at its worst step, in grains."""
    gain = worst_gain(mechanism.strategy, decay, mechanism.horizon, mechanism.end, every)
    return math.sqrt(gain) * mechanism.law.std


def budget_share(plan: Plan, gauge: PlannedGauge) -> float:
    """Return the part of the declared weights that is this gauge's."""
    return float(gauge.budget_weight / sum(other.budget_weight for other in plan.gauges))


def delta_of(plan: Plan, releases: int = 1) -> Fraction:
    """Return the delta at which the promise is read: the plan's own, 0 for pure, else 1e-9.

    Names of discovered cells cost their part of it with every release.
    """
    if isinstance(plan.guarantee, ApproxDP):
        return plan.guarantee.delta + (releases - 1) * plan.names
    return Fraction(0) if isinstance(plan.guarantee, PureDP) else _DELTA


def epsilon_of(plan: Plan, releases: int = 1) -> Fraction:
    """Return the epsilon that all gauges together spend at :func:`noise_delta_of`, rounded up.

    Args:
        plan: Whose gauges.
        releases: How often the whole plan was released; each time costs it again.
    """
    return _for_units(plan, (1,), releases)[0].epsilon


def noise_delta_of(plan: Plan) -> Fraction:
    """Return the delta at which the noise is read; names of discovered cells have the rest."""
    return (delta_of(plan) or _DELTA) - plan.names


def delta_in_words(plan: Plan, releases: int = 1) -> str:
    """Return what delta is spent on where cells are discovered: a sentence without a full stop.

    Args:
        plan: With a gauge that discovers its cells.
        releases: How often the whole plan was released; names cost their part each time.
    """
    parts = ", ".join(
        f"{gauge.name} {rounded_up(releases * gauge.mechanism.discovery.delta)}"
        for gauge in plan.gauges
        if gauge.mechanism.discovery is not None
    )
    whole, noise = rounded_up(delta_of(plan, releases)), rounded_up(noise_delta_of(plan))
    return f"Of delta = {whole}: {noise} for noise; names: {parts}"


def k_events(plan: Plan, releases: int = 1) -> tuple[KEvents, ...]:
    """Return what is spent for one unit, read for k of them; see :func:`epsilon_of`."""
    return _for_units(plan, K_EVENTS, releases)


def _for_units(plan: Plan, ks: Sequence[int], releases: int) -> tuple[KEvents, ...]:
    spent = plan.spent_on_noise(releases)
    return k_event_table(spent, noise_delta_of(plan), ks, releases * plan.names)


def length_in_words(steps: Fraction | int, step_us: int | None) -> str:
    """Return a length as people say it.

    Examples:
        >>> length_in_words(168, UNITS["h"]), length_in_words(1, UNITS["h"])
        ('7 days', '1 hour')
        >>> length_in_words(1000, None)
        '1,000 records'
    """
    if step_us is None:
        return f"{float(steps):,.6g} record{'s' * (steps != 1)}"
    length = Fraction(steps) * step_us
    if length.denominator != 1:
        return f"{float(steps):,.6g} steps of {written(step_us)}"
    units = [u for u in UNITS if u != "w" and length % UNITS[u] == 0]
    count = int(length / UNITS[units[-1]])
    return f"{count:,} {_NAMES[units[-1]]}{'s' * (count != 1)}"


def view_in_words(decay: Decay, step_us: int | None) -> str:
    """Return what a view is, in words.

    Examples:
        >>> view_in_words(Window(168), UNITS["h"])
        'the last 7 days'
        >>> view_in_words(Difference(Window(168), 24), UNITS["h"])
        'the last 7 days, minus the same 1 day earlier'
    """
    match decay:
        case Difference(view=view, lag=lag):
            earlier = length_in_words(lag, step_us)
            return f"{view_in_words(view, step_us)}, minus the same {earlier} earlier"
        case Step():
            return f"each step of {length_in_words(1, step_us)}"
        case Running():
            return "everything since the start"
        case Window(steps=steps):
            return f"the last {length_in_words(steps, step_us)}"
        case Exponential(half_life=half_life) if half_life is not None:
            length = length_in_words(Fraction(half_life), step_us)
            return f"a decayed {_total(decay)}, weights halve every {length}"
        case Exponential(factor=factor):
            return f"a decayed {_total(decay)}, weights fall by {float(factor or 0):g} each step"
        case Polynomial(c=c):
            return f"a decayed total, weights fall as age to the power -{c:g}"
        case Custom(values=values):
            return f"a weighted total of the last {length_in_words(len(values), step_us)}"


def _total(decay: Exponential) -> str:
    return "average per step" if decay.average else "total"


def span_in_words(decay: Decay, step_us: int | None) -> str:
    """Return what a view's number is of, in words.

    Examples:
        >>> span_in_words(Window(168), UNITS["h"]), span_in_words(Running(), UNITS["h"])
        ('in 7 days', 'since the start')
    """
    match decay:
        case Difference(view=view, lag=lag):
            earlier = length_in_words(lag, step_us)
            return f"{span_in_words(view, step_us)} more or less than {earlier} earlier"
        case Step():
            return f"in {length_in_words(1, step_us)}"
        case Running():
            return "since the start"
        case Window(steps=steps):
            return f"in {length_in_words(steps, step_us)}"
        case Exponential(average=True):
            return "per step, averaged with decaying weights"
        case Exponential(half_life=half_life) if half_life is not None:
            return f"with a half-life of {length_in_words(Fraction(half_life), step_us)}"
        case _:
            return "with decaying weights"
