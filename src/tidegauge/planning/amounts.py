"""How much a row adds to a gauge, and how much a cell takes in one step: numbers of grains."""

from __future__ import annotations

from fractions import Fraction

from tidegauge.mechanisms.clip_plan import UNIT
from tidegauge.mechanisms.first_values import FirstValues
from tidegauge.mechanisms.mean import Bounds
from tidegauge.mechanisms.request import EVENTS_PER_STEP
from tidegauge.planning.averages import MOST_REACH
from tidegauge.planning.document import Document, Path_
from tidegauge.planning.gauge_form import GaugeForm

__all__ = ["grains_of", "most_of"]

_MOST_GRAINS = 1 << 40
_MOST_TOTAL = 1 << 62


def grains_of(document: Document, path: Path_, read: GaugeForm) -> tuple[int, int, Fraction] | None:
    """Return the least and the most that a row adds, in grains, and the value of a grain.

    None: a problem is noted.
    """
    kind = "sum" if read.mean is None else "mean"
    asked = read.sum if read.mean is None else read.mean
    if asked is None:
        return 0, 1, Fraction(1)
    (low, high), round_to = asked.bounds, asked.round_to
    place: Path_ = (*path, kind, "bounds")
    if round_to <= 0:
        document.refuse(
            (*path, kind, "round_to"), "Expected a number above 0, got another. Write 0.01."
        )
        return None
    if kind == "mean" and low == high:
        document.refuse(
            place,
            "Expected [lowest, highest] with values between, got one value. Every value would "
            "count as the same. Write what values can be.",
        )
        return None
    if low > high or low == high == 0:
        document.refuse(
            place, "Expected [lowest, highest] with a value between, got others. Swap them."
        )
        return None
    if (low / round_to).denominator != 1 or (high / round_to).denominator != 1:
        document.refuse(
            place,
            f"Expected multiples of round_to = {_plain(round_to)}, got others. Sums are exact "
            "in multiples of it. Choose a finer round_to, or other bounds.",
        )
        return None
    grains = int(low / round_to), int(high / round_to)
    most = _MOST_GRAINS if kind == "sum" else MOST_REACH
    if max(map(abs, grains)) > most:
        document.refuse(
            place,
            f"Expected bounds of at most 2^{most.bit_length() - 1} times round_to, got more. "
            "Sums could overflow. Choose a coarser round_to.",
        )
        return None
    return *grains, round_to


def most_of(
    document: Document,
    path: Path_,
    read: GaugeForm,
    grains: tuple[int, int, Fraction],
    clip: Fraction | FirstValues | None,
) -> int:
    """Return the cap on one cell's total in one step, in grains; under a clip, in its units.

    What waits for a first clip counts beside it: it has room of its own.
    """
    low, high, round_to = grains
    if clip is not None:
        return _most_events(document, path, read, UNIT)
    if read.mean is not None:
        return _most_events(document, path, read, Bounds(low, high).reach)
    largest = max(abs(low), abs(high))
    if read.max_per_step is None:
        return EVENTS_PER_STEP * largest
    most = read.max_per_step / round_to
    if most.denominator != 1 or not 1 <= most <= _MOST_TOTAL:
        document.refuse(
            (*path, "max_per_step"),
            f"Expected a multiple of {_plain(round_to)} above 0, got another. It is the "
            "largest total of one cell and step, in the column's own unit. Write one.",
        )
    return max(1, int(most))


def _most_events(document: Document, path: Path_, read: GaugeForm, reach: int) -> int:
    """The cap on a mean's events in one cell and step, in the grains that they are counted."""
    events = Fraction(EVENTS_PER_STEP) if read.max_per_step is None else read.max_per_step
    if events.denominator != 1 or not 1 <= events <= 4 * EVENTS_PER_STEP:
        document.refuse(
            (*path, "max_per_step"),
            "Expected a whole number from 1 to 2^22, got another. Here it is the most "
            "events of one cell and step. Write 1000, say.",
        )
    return max(1, min(int(events), 4 * EVENTS_PER_STEP)) * reach


def _plain(value: Fraction) -> str:
    """A decimal as it was written."""
    return str(value.numerator) if value.denominator == 1 else f"{float(value):g}"
