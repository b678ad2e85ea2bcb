"""What a plan will give, in numbers: for the operator, before any data is read."""

from __future__ import annotations

import math
from typing import Any

from tidegauge.mechanisms.clip_plan import UNIT
from tidegauge.mechanisms.clipping import clips_up_to
from tidegauge.mechanisms.mean import MeanReading
from tidegauge.planning.choices import choices_of
from tidegauge.planning.clip_worth import clip_worth
from tidegauge.planning.plan import Plan, PlannedGauge
from tidegauge.planning.spending import (
    budget_share,
    delta_in_words,
    delta_of,
    epsilon_of,
    k_events,
    noise_delta_of,
    thresholds_in_words,
)
from tidegauge.planning.widest import ratio_to_bound, worst_half_width, worst_std
from tidegauge.planning.words import (
    gauge_in_words,
    most_per_step,
    ranked_in_words,
    span_in_words,
    threshold_in_words,
    view_in_words,
)
from tidegauge.privacy.costs import GaussianCost
from tidegauge.privacy.unit import NeighboringRelation
from tidegauge.strategies.bounds import UNKNOWN_HORIZON
from tidegauge.strategies.decay import Decay

__all__ = ["MEAN_EVENTS", "described"]

_ADDED = NeighboringRelation.ADD_OR_REMOVE_ONE
MEAN_EVENTS = (10, 100, 1000)
"""For so many events in a view it is told how far a mean may be off."""


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
        "spent": _spent(plan),
        "epsilon": float(epsilon_of(plan)),
        "delta": float(delta_of(plan)),
        **({"delta_spent": delta_in_words(plan)} if plan.delta_for_names else {}),
        **({"thresholds": thresholds_in_words(plan)} if plan.thresholds else {}),
        "k_events": [
            {"events": row.events, "epsilon": float(row.epsilon), "delta": float(row.delta)}
            for row in k_events(plan)
        ],
        "horizon": plan.gauges[0].mechanism.horizon,
        "end": plan.clock.end,
        "gauges": [_gauge(plan, gauge) for gauge in plan.gauges],
    }


def _spent(plan: Plan) -> str:
    """What is spent on noise, and on clips of first values if there are any."""
    noise, clips = plan.spent_on_noise(), plan.thresholds
    return repr(noise) if clips is None else f"{noise!r} on noise, {clips!r} on clips"


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
        "says": f"{plan.in_words()} {why}",
    }


def _clipped_view(plan: Plan, gauge: PlannedGauge, name: str, decay: Decay) -> dict[str, Any]:
    """The noise of a view of clipped values as a multiple of the clip, which is not known yet."""
    every = gauge.every_of(name)
    std = worst_std(gauge.mechanism, decay, every) / UNIT
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


def _view(plan: Plan, gauge: PlannedGauge, name: str, decay: Decay) -> dict[str, Any]:
    every = gauge.every_of(name)
    last = plan.clock.end or gauge.mechanism.horizon or UNKNOWN_HORIZON
    whole = max(1, last // every)
    steps = [min(every * place, last) for place in (1, (whole + 1) // 2, whole)]
    grain = float(gauge.round_to)

    def noise(summed: int) -> dict[str, Any]:
        std = gauge.mechanism.noise_std(decay, steps, summed) * grain
        half = gauge.shown.half_width(decay, steps, summed) * grain
        most = worst_std(gauge.mechanism, decay, every) * math.sqrt(summed) * grain
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
