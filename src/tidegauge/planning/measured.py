"""What a gauge measures, with which noise, at what cost, and what of it is published."""

from __future__ import annotations

from fractions import Fraction

from tidegauge.mechanisms.clip_plan import UNIT
from tidegauge.mechanisms.first_values import Threshold
from tidegauge.planning.choices import choices_in_words
from tidegauge.planning.plan import Plan, PlannedGauge
from tidegauge.planning.spending import budget_share
from tidegauge.planning.words import (
    as_code,
    as_number,
    gauge_in_words,
    length_in_words,
    ranked_in_words,
    threshold_in_words,
    view_in_words,
)
from tidegauge.privacy.costs import GaussianCost
from tidegauge.privacy.guarantee import rounded_up
from tidegauge.strategies.decay import Decay

__all__ = ["measured"]


def measured(plan: Plan, gauge: PlannedGauge) -> str:
    """Return in one sentence what a gauge measures, with which noise, at what cost."""
    mechanism, cost = gauge.mechanism, gauge.mechanism.cost
    rows = "rows" if plan.event is None else "events"
    what = f"number of {rows}" if gauge.kind == "count" else gauge_in_words(gauge)
    where = "" if gauge.where is None else f" where {as_code(gauge.where)}"
    by = f" by {' and '.join(column for column, _ in gauge.by)}" if gauge.by else ""
    spends = f"mu^2 = {rounded_up(cost.mu_squared)}" if isinstance(cost, GaussianCost) else (
        f"epsilon = {rounded_up(cost.epsilon)}"
    )  # fmt: skip
    scale = mechanism.law.scale / Fraction(2) ** mechanism.strategy.lattice_bits * gauge.round_to
    noise = f"of scale {float(scale):.6g}"
    if gauge.clip is not None:
        noise = f"of scale {float(scale / gauge.round_to / UNIT):.6g} times the clip"
    views = "; ".join(_published(plan, gauge, name, decay) for name, decay in gauge.views)
    whole = "mean" if gauge.kind == "mean" else "sum"
    totals = f"; and of each of them the {whole} of all cells, as the cell *"
    totals = totals if gauge.totals else ""
    top = "" if gauge.top is None else f"; of each {ranked_in_words(gauge)}"
    number = f"{len(gauge.cells):,} cell{'s' * (len(gauge.cells) != 1)}"
    if gauge.discover is not None:
        number = "cells that are discovered"
    if gauge.select is not None:
        top = ", of the cells that are shown, ranked by noisy values"
    return (
        f"the {what}{where}{by} ({number}), as {mechanism.measures}, with "
        f"{mechanism.noise} noise {noise} on every coordinate, drawn once. "
        f"{100 * budget_share(plan, gauge):.3g} % of the budget{_of_it(gauge)} ({spends}). "
        f"Published: {views}{totals}{top}.{_names(plan, gauge)}"
        f"{choices_in_words(plan, gauge)}{_ratio(gauge)}{_clip(gauge)}"
    )


def _of_it(gauge: PlannedGauge) -> str:
    """Which part of a gauge's budget its values have, where finding a clip has the rest."""
    if gauge.clip is None:
        return ""
    whole = "epsilon" if isinstance(gauge.clip, Threshold) else "mu^2"
    return f", of whose {whole} values have {100 * (1 - float(gauge.clipped.share)):.3g} %"


def _clip(gauge: PlannedGauge) -> str:
    """How a clip is found; nothing of other gauges. Begins with a space."""
    if gauge.clip is None:
        return ""
    if isinstance(gauge.clip, Threshold):
        return f" {gauge.clipped.in_words()}"
    cost = gauge.clip.mechanism.cost
    assert isinstance(cost, GaussianCost), "others were refused"
    return (
        f" {gauge.clipped.in_words()} The counts of magnitudes are measured once an epoch of steps "
        f"that are fixed in advance, as {gauge.clip.mechanism.measures} (mu^2 = "
        f"{rounded_up(cost.mu_squared)} of its own) and are published as well. What comes before "
        "there is a first clip counts at the first step that has one."
    )


def _ratio(gauge: PlannedGauge) -> str:
    """How a mean comes to be; nothing of other gauges. Begins with a space."""
    if gauge.kind != "mean":
        return ""
    if gauge.clip is not None:
        return (
            " Measured are the sum of distances from the middle of the clip, and the number of "
            "values; a mean is the ratio of the two noisy numbers, and the noisy number of values "
            "is published beside it. Where that is too small for a ratio there is no value."
        )
    middle, reach = (
        as_number(n * gauge.round_to) for n in (gauge.bounds.centre, gauge.bounds.reach)
    )
    return (
        f" Measured are the sum of distances from {middle}, the middle of the bounds, and the "
        f"number of values, each counted as {reach}; a mean is the ratio of the two noisy numbers, "
        "and the noisy number of values is published beside it. Where that is too small for a "
        "ratio there is no value."
    )


def _names(plan: Plan, gauge: PlannedGauge) -> str:
    """Return how the cells of a gauge come to be named, and at what cost; nothing if all are known.

    Begins with a space where there is something to say.
    """
    found = gauge.mechanism.discovery
    if found is None:
        return ""
    sentence, unit = threshold_in_words(plan, gauge), "event" if plan.unit is None else "id"
    kind = (
        "This holds also where later events are chosen after reading what was published."
        if found.adaptive
        else "This holds for streams fixed in advance: where events are chosen after reading what "
        "was published, a name could be shown with a larger chance."
    )
    return (
        f" {sentence[0].upper()}{sentence[1:]}; from then on it is published at every step, and "
        "what was measured of it before stands in its measurement. Until then nothing of it is: no "
        f"name, number or count. A name that one {unit} alone brings is "
        f"shown with a chance of at most {rounded_up(found.delta)}. {kind}"
    )


def _published(plan: Plan, gauge: PlannedGauge, name: str, decay: Decay) -> str:
    """A view's name and what it is."""
    every, step_us = gauge.every_of(name), plan.clock.step_us
    aligned = f", every {length_in_words(every, step_us)}" if every > 1 else ""
    return f"{name} ({view_in_words(decay, step_us)}{aligned})"
