"""What is said of a gauge that chooses the cells it shows: how, at what cost, what it misses."""

from __future__ import annotations

from typing import Any

from tidegauge.planning.plan import Plan, PlannedGauge
from tidegauge.privacy.guarantee import rounded_up

__all__ = ["choices_in_words", "choices_of", "noticed_in_words"]


def choices_of(plan: Plan, gauge: PlannedGauge) -> dict[str, Any]:
    """Return how cells are chosen, as plain data: counts, and what all choices cost in rho.

    ``ever``: how many cells are shown at most, over the whole stream. ``noticed``: a cell that
    leads one that is shown by so much is noticed; null where the stream has no end.
    """
    chosen, neighbors = gauge.mechanism.selection, gauge.mechanism.neighbors
    assert chosen is not None
    return {
        "k": chosen.k,
        "switches": chosen.switches,
        "ever": min(len(gauge.cells), chosen.k * (chosen.switches + 1)),
        "margin": chosen.margin,
        "noticed": chosen.noticed(neighbors, plan.clock.end),
        "scale": float(chosen.scale),
        "epsilon_of_tests": float(chosen.epsilon),
        "rho": float(chosen.cost(neighbors).rho),
        "chosen": noticed_in_words(plan, gauge),
    }


def noticed_in_words(plan: Plan, gauge: PlannedGauge) -> str:
    """Return when cells change: a sentence without a full stop."""
    chosen = gauge.mechanism.selection
    assert chosen is not None
    noticed = chosen.noticed(gauge.mechanism.neighbors, plan.clock.end)
    surely = (
        ""
        if noticed is None
        else f", and in 95 of 100 streams as soon as one leads by {noticed:,}, while switches are "
        "left"
    )
    return (
        f"{chosen.k:,} of {len(gauge.cells):,} cells are shown; they are chosen anew, at most "
        f"{chosen.switches:,} times, when a noisy test finds that a hidden cell leads one of them "
        f"by {chosen.margin:,}{surely}"
    )


def choices_in_words(plan: Plan, gauge: PlannedGauge) -> str:
    """Return the same for a statement, with what it costs; nothing if all cells are published.

    Begins with a space where there is something to say.
    """
    chosen, neighbors = gauge.mechanism.selection, gauge.mechanism.neighbors
    if chosen is None:
        return ""
    ever = min(len(gauge.cells), chosen.k * (chosen.switches + 1))
    return (
        f" {noticed_in_words(plan, gauge)}. A choice takes the first {chosen.k:,} by "
        f"exact counts with Gumbel noise of scale {float(chosen.scale):.6g}; a run of tests, up to "
        f"the first that passes, is {rounded_up(chosen.epsilon, 6)}-DP. All choices and tests "
        f"together cost rho = {rounded_up(chosen.cost(neighbors).rho)}. At most {ever:,} cells are "
        "ever shown, and noise is made for an event in all of these: it may be in any number of "
        "cells. Of a hidden cell nothing is published. Intervals are of the cells that are shown, "
        "all at once; they say nothing of hidden ones, nor that the shown ones are the largest."
    )
