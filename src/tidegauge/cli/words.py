"""Durations, decays and numbers as people say them."""

from __future__ import annotations

from math import floor, log10
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tidegauge.strategies.decay import Decay

__all__ = ["decay_in_words", "duration", "significant"]

_SECOND: Final = 1_000_000  # microseconds
_UNITS: Final = (
    (86_400 * _SECOND, "day"),
    (3_600 * _SECOND, "hour"),
    (60 * _SECOND, "minute"),
    (_SECOND, "second"),
)


def significant(value: float) -> str:
    """Return a number with three significant digits, never in powers of ten.

    Examples:
        >>> significant(0.01234), significant(12.34), significant(-12345.6), significant(6.0)
        ('0.0123', '12.3', '-12,346', '6')
    """
    if value % 1 == 0:
        return f"{value:,.0f}"
    digits = 2 - floor(log10(abs(value)))
    return f"{value:,.{max(digits, 0)}f}"


def duration(steps: float, step_us: int | None) -> str:
    """Return how long some steps are, in the largest unit that fits.

    Examples:
        >>> duration(168, 3_600_000_000), duration(1, 3_600_000_000), duration(3, None)
        ('7 days', '1 hour', '3 records')
    """
    if step_us is None:
        return _many(steps, "record")
    long = steps * step_us
    for size, unit in _UNITS:
        if long >= size and (long % size == 0 or size == _SECOND):
            return _many(long / size, unit)
    return _many(long / _SECOND, "second")


def decay_in_words(decay: Decay, what: str, step_us: int | None) -> str:
    """Return what a view of counts or sums shows.

    Args:
        decay: The view.
        what: "count" or "sum".
        step_us: The length of a step in microseconds; None: each record is a step.

    Examples:
        >>> from tidegauge.strategies.decay import Exponential, Running, Window
        >>> decay_in_words(Window(168), "count", 3_600_000_000)
        '7-day count'
        >>> decay_in_words(Running(), "sum", None)
        'running sum'
        >>> decay_in_words(Exponential(half_life=24), "count", 3_600_000_000)
        'count decayed with a half-life of 1 day'
    """
    from tidegauge.strategies import decay as decays

    match decay:
        case decays.Running():
            return f"running {what}"
        case decays.Step():
            return f"{_adjective(1, step_us)} {what}"
        case decays.Window(steps=steps):
            return f"{_adjective(steps, step_us)} {what}"
        case decays.Exponential(half_life=half_life) if half_life is not None:
            return f"{what} decayed with a half-life of {duration(float(half_life), step_us)}"
        case _:
            return f"decayed {what} ({decay.name})"


def _adjective(steps: float, step_us: int | None) -> str:
    """A duration before a noun: 7-day."""
    return duration(steps, step_us).removesuffix("s").replace(" ", "-")


def _many(number: float, unit: str) -> str:
    text = significant(number) if number % 1 else f"{number:,.0f}"
    return f"{text} {unit}" if text == "1" else f"{text} {unit}s"
