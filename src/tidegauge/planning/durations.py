"""Lengths of time as people write them, as exact numbers of microseconds and of steps.

``30m``, ``1h``, ``7d``, ``1d12h``: a day is 24 hours and a week 7 days, always. Months, quarters
and years have no fixed length and are refused.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import pairwise

from tidegauge.checks import shown
from tidegauge.errors import InvalidParameter

__all__ = ["UNITS", "instant_text", "microseconds", "microseconds_of", "steps_in", "written"]

UNITS = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "m": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
    "w": 604_800_000_000,
}
"""Microseconds in each unit."""

_PART = re.compile(r"([0-9]{1,19})(us|ms|s|m|h|d|w)")
_DURATION = re.compile(rf"(?:{_PART.pattern})+", re.ASCII)
_CALENDAR = re.compile(r"[0-9]+\s*(mo|q|y|months?|quarters?|years?)", re.ASCII)
_ONE = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOST = 1 << 62


def microseconds(text: str) -> int:
    """Return the length of a duration in microseconds; above 0.

    Raises:
        InvalidParameter: It is not a duration.

    Examples:
        >>> microseconds("1d12h") // 3_600_000_000
        36
    """
    if _CALENDAR.fullmatch(text):
        raise InvalidParameter(
            f"Expected a duration of fixed length, got {shown(text)}. Months and years differ in "
            "length, so that no number of steps would be right. Write days, such as 30d."
        )
    if not _DURATION.fullmatch(text):
        raise InvalidParameter(
            f"Expected a duration such as 30m, 1h, 7d or 1d12h, got {shown(text)}. Its length is "
            "not known. Write whole numbers followed by us, ms, s, m, h, d or w."
        )
    sizes = [UNITS[unit] for _, unit in _PART.findall(text)]
    if any(later >= size for size, later in pairwise(sizes)):
        raise InvalidParameter(
            f"Expected a duration from its largest unit to its smallest, got {shown(text)}. One of "
            "its units may be a slip: m is a minute. Write it such as 1d12h30m."
        )
    total = sum(int(number) * UNITS[unit] for number, unit in _PART.findall(text))
    if not 0 < total < _MOST:
        raise InvalidParameter(
            f"Expected a duration above 0 and below 146,000 years, got {shown(text)}. "
            "No stream has such a step. Write another."
        )
    return total


def steps_in(text: str, step_us: int) -> int:
    """Return how many steps a duration is.

    Raises:
        InvalidParameter: It is not a duration, or not a whole number of steps.

    Examples:
        >>> steps_in("7d", UNITS["h"])
        168
    """
    steps = Fraction(microseconds(text), step_us)
    if steps.denominator != 1:
        raise InvalidParameter(
            f"Expected a whole number of steps of {written(step_us)}, got {text} = "
            f"{float(steps):.6g} steps. A part of a step is measured by nothing. "
            f"Write a multiple of {written(step_us)}."
        )
    return steps.numerator


def written(length_us: int) -> str:
    """Return a length in the largest unit that divides it.

    Examples:
        >>> written(7 * UNITS["d"]), written(90 * UNITS["m"])
        ('1w', '90m')
    """
    unit = next(u for u in reversed(UNITS) if length_us % UNITS[u] == 0)
    return f"{length_us // UNITS[unit]}{unit}"


def microseconds_of(moment: datetime) -> int:
    """Return the microseconds from 1970-01-01T00:00:00Z, exactly; negative before."""
    return (moment - _EPOCH) // _ONE


def instant_text(moment_us: int) -> str:
    """Return a moment in UTC as text.

    Examples:
        >>> instant_text(0)
        '1970-01-01T00:00:00Z'
    """
    try:
        text = (_EPOCH + timedelta(microseconds=moment_us)).isoformat()
    except OverflowError:
        return f"{moment_us} us from 1970-01-01T00:00:00Z"
    return text.removesuffix("+00:00") + "Z"
