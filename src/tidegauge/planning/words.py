"""Gauges, views and lengths in words, as plans, statements and pictures name them."""

from __future__ import annotations

import math
from fractions import Fraction

from tidegauge.mechanisms.clip_plan import UNIT
from tidegauge.planning.durations import UNITS, written
from tidegauge.planning.plan import Plan, PlannedGauge
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
    "as_code",
    "as_number",
    "gauge_in_words",
    "length_in_words",
    "most_per_step",
    "ranked_in_words",
    "span_in_words",
    "threshold_in_words",
    "view_in_words",
]

_NAMES = {
    "w": "week",
    "d": "day",
    "h": "hour",
    "m": "minute",
    "s": "second",
    "ms": "millisecond",
    "us": "microsecond",
}


def most_per_step(gauge: PlannedGauge) -> float:
    """Return the cap on a cell's total of one step, in its unit; of a mean, on its events."""
    most = gauge.mechanism.max_per_step
    if gauge.clip is not None:
        return float(most // UNIT)
    if gauge.kind == "mean":
        return float(most // gauge.bounds.reach)
    return float(most * gauge.round_to)


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


def as_number(value: Fraction) -> str:
    """Return a number as it is declared: whole, or to twelve digits."""
    value = Fraction(value)
    return f"{value.numerator:,}" if value.denominator == 1 else f"{float(value):,.12g}"


def as_code(text: str) -> str:
    """Return text of the config as it may stand in Markdown."""
    fence = "``" if "`" in text else "`"
    return f"{fence}{text}{fence}"
