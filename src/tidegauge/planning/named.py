"""Which gauges the strategies of a paper are for, where the name says it."""

from __future__ import annotations

from tidegauge.planning.gauge_form import GaugeForm

__all__ = ["why_not"]


def why_not(read: GaugeForm) -> str | None:
    """Return what is missing in a gauge for the strategy that it asks for; None: nothing.

    Whether the strategy serves the views is told when the gauge is planned.
    """
    name = None if read.strategy is None else read.strategy.name
    counted = read.count or read.sum
    match name:
        case "PredicateSum" if counted is None or counted.where is None:
            return (
                "Expected a gauge with where for PredicateSum, got one without. It sums up a "
                "condition over each row. Write count: {where: ...}."
            )
        case "DecayedHistogram" if counted is None or not read.by:
            return (
                "Expected a count or sum with by for DecayedHistogram, got another gauge. It has a "
                "sum for each known value. Write by: {column: [value, ...]}."
            )
        case "RandomizedResponse" if read.count is None or read.max_per_step != 1:
            return (
                "Expected a count with max_per_step: 1 for RandomizedResponse, got another gauge. "
                "It flips bits: whether a cell has anything in a step. Write max_per_step: 1."
            )
        case "DistinctCount" if read.count_distinct is None:
            return (
                "Expected count_distinct for DistinctCount, got another gauge. It counts different "
                "values. Write count_distinct: {column: ..., window: running}."
            )
    return None
