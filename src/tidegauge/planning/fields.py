"""What the scalars of a config mean: exact numbers, durations, moments, names, values of cells."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Callable
from datetime import datetime
from fractions import Fraction
from typing import Any

from tidegauge.checks import LARGEST, shown
from tidegauge.errors import InvalidParameter
from tidegauge.planning import durations
from tidegauge.planning.document import Scalar
from tidegauge.strategies.decay import Decay, Exponential, Polynomial, Running, Step, Window

__all__ = [
    "AVERAGED",
    "CLIPPED",
    "DISCOVER",
    "MEASURED",
    "RANKED",
    "RESERVED",
    "amount",
    "cell_value",
    "is_line",
    "length",
    "line",
    "moment",
    "name",
    "seen",
    "text",
    "twins",
    "whole",
    "zone",
]

DISCOVER = "discover"
"""Stands in place of the values of a ``by`` column that are not known in advance."""
RANKED = frozenset(["rank", "close", "switches_left"])
"""Columns that releases of ranked cells have beside the others."""

RESERVED = frozenset(
    [
        "gauge",
        "view",
        "cell",
        "step",
        "step_start",
        "step_end",
        "value",
        "noise_std",
        "lower",
        "upper",
        "level",
        "band",
        "complete",
        "reason",
    ]
)
"""Columns of a release; a ``by`` column stands beside them under its own name."""

AVERAGED = frozenset(["count", "count_std"])
"""Columns that releases of means have beside the others."""

CLIPPED = frozenset(["clip_low", "clip_high"])
"""Columns that releases under a clip that is found have beside the others."""

MEASURED = frozenset(["first_step", "visible_from", "measured"])
"""Columns of a measurement of discovered cells, beside which their names stand."""

_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?", re.ASCII)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,62}", re.ASCII)
_MOMENT = re.compile(
    r"(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[Tt ](?P<time>[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?))?"
    r"(?P<zone> ?[Zz]|[+-][0-9]{2}:[0-9]{2})?",
    re.ASCII,
)
_TRAPS = re.compile(
    r"~|null|true|false|yes|no|on|off|[-+]?[0-9][0-9_]*|0[xob][0-9a-f_]+|[-+]?[0-9:.]*[0-9][0-9:.]*"
    r"|[-+]?\.?(inf|nan)|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}.*",
    re.ASCII | re.IGNORECASE,
)
_UNSHOWN = frozenset(["Cc", "Cs", "Cn", "Zl", "Zp"])
_LONGEST_NUMBER = 60


def _refused(expected: str, got: object, rest: str) -> InvalidParameter:
    return InvalidParameter(f"Expected {expected}, got {seen(got)}. {rest}")


def seen(value: object) -> str:
    """Return a value of a config as it may stand in a message."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, Scalar):
        return "nothing" if value.empty else shown(str(value))
    return shown(value)


def text(value: Any) -> str:
    """Return text that is not empty, as it was written."""
    if not isinstance(value, Scalar) or value.empty or not value.strip():
        raise _refused("text", value, "Nothing can be found by it. Write a word, or quote it.")
    return str(value)


def is_line(value: str) -> bool:
    """Whether a text is one line without control characters."""
    return not any(unicodedata.category(sign) in _UNSHOWN for sign in value)


def line(value: Any) -> str:
    """Return text of one line, which stands in published documents as it is."""
    found = text(value)
    if not is_line(found):
        raise _refused(
            "one line of printable text",
            value,
            "Published documents would show something else than was signed. Write it in one line.",
        )
    return found


def amount(value: Any) -> Fraction:
    """Return a number as the exact decimal that was written; ``1e-9`` needs no dot."""
    if isinstance(value, Scalar) and value.quoted and _NUMBER.fullmatch(value):
        raise _refused("a number", value, "It is text, because of its quotes. Remove them.")
    if not isinstance(value, Scalar) or value.quoted or not _NUMBER.fullmatch(value):
        raise _refused(
            "a number", value, "Write digits, such as 20, 0.5 or 1e-9, without _ or units."
        )
    digits = value.lstrip("+-")
    if len(digits) > 1 and digits[0] == "0" and digits[1].isdigit():
        raise _refused(
            "a number without a leading zero",
            value,
            f"Some YAML readers would take it as octal. Write {digits.lstrip('0') or '0'}.",
        )
    if len(value) > _LONGEST_NUMBER:
        raise _refused("a number of few digits", value, "Nobody could compare it. Round it.")
    number = Fraction(value)
    if abs(number) >= LARGEST:
        raise _refused(
            "a number below 1e300", value, "No computer's numbers go on there. Correct it."
        )
    return number


def whole(value: Any, low: int = 1, high: int = 1 << 40) -> int:
    """Return an integer in ``[low, high]``."""
    number = amount(value)
    if number.denominator != 1 or not low <= number <= high:
        raise _refused(f"a whole number from {low} to {high}", value, "Write digits, such as 20.")
    return number.numerator


def length(value: Any, step_us: int | None) -> int:
    """Return how many steps a duration is; where each record is a step, it is a number."""
    if step_us is None:
        if isinstance(value, Scalar) and not _NUMBER.fullmatch(value):
            raise _refused(
                "a number of records",
                value,
                "With step: record, each record is a step and none has a length. Write 1000.",
            )
        return whole(value)
    if not isinstance(value, Scalar) or value.empty:
        raise _refused("a duration", value, "Write one such as 7d.")
    if _NUMBER.fullmatch(value):
        raise _refused(
            "a duration with its unit",
            value,
            f"It could be steps, hours or days. Write it such as {durations.written(step_us)}.",
        )
    return durations.steps_in(str(value), step_us)


def lasting(value: Any, step_us: int | None) -> Fraction:
    """Return how many steps a duration is, also with a fraction."""
    if step_us is None:
        number = amount(value)
        if number <= 0:
            raise _refused("a number of records above 0", value, "Write 1000.")
        return number
    if not isinstance(value, Scalar) or _NUMBER.fullmatch(value):
        raise _refused("a duration with its unit", value, "Write one such as 1d.")
    return Fraction(durations.microseconds(str(value)), step_us)


def moment(value: Any) -> int:
    """Return a moment with its zone in microseconds since 1970 in UTC."""
    found = _MOMENT.fullmatch(value) if isinstance(value, Scalar) else None
    if found is None:
        raise _refused(
            "a date and time with its zone", value, "Write it such as 2013-01-01T05:00:00Z."
        )
    if found["time"] is None or found["zone"] is None:
        full = f"{found['day']}T{found['time'] or '00:00:00'}Z"
        raise _refused(
            "a time with its zone",
            value,
            f"Without a zone it could be any of 26 hours. Write {full}, or an offset such as "
            "-05:00 in place of Z.",
        )
    zone = found["zone"].strip().upper().replace("Z", "+00:00")
    try:
        parsed = datetime.fromisoformat(f"{found['day']}T{found['time']}{zone}")
    except ValueError:
        raise _refused(
            "a moment that exists", value, "There is no such day or time. Correct it."
        ) from None
    return durations.microseconds_of(parsed)


def zone(value: str) -> str:
    """Return the name of a time zone, which has to be known here."""
    from zoneinfo import ZoneInfo

    try:
        ZoneInfo(value)
    except (OSError, ValueError, KeyError):  # also for what is no name at all
        raise _refused(
            "the name of a time zone",
            value,
            "Stamps could not be read. Write one such as UTC or America/New_York.",
        ) from None
    return value


def name(value: Any) -> str:
    """Return the name of a gauge or view: it becomes the name of a folder."""
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise _refused(
            "a name of letters, digits, _ and -, from a letter on",
            value,
            "Folders and columns are named by it. Write such as departures.",
        )
    return str(value)


def cell_value(value: Any) -> str:
    """Return a known value of a ``by`` column, which has to be text for every YAML reader."""
    if not isinstance(value, Scalar):
        raise _refused("text", value, "Each known value is one text. Write a flat list.")
    if not value.quoted and (value.empty or _TRAPS.fullmatch(value)):
        raise _refused(
            "text in quotes",
            value,
            "Some YAML readers take it for a number, a date, a truth value or nothing, and the "
            f'cell would count nothing. Write "{value}".',
        )
    if not is_line(value):
        raise _refused(
            "one line of printable text",
            value,
            "Published documents would show something else than was signed. Correct it.",
        )
    return str(value)


def twins(values: list[str]) -> list[tuple[int, str]]:
    """Return the positions of values that look like an earlier one, with what they look like.

    Examples:
        >>> [position for position, _ in twins(["é", "e\u0301"])]
        [1]
    """
    seen: dict[str, str] = {}
    found = []
    for position, value in enumerate(values):
        normal = unicodedata.normalize("NFC", value)
        if normal in seen and seen[normal] != value:
            found.append((position, normal))
        seen.setdefault(normal, value)
    return found


def simple_decay(value: Scalar, step_us: int | None) -> tuple[str, Decay]:
    """Return the default name and the decay of a view written in one word."""
    if value == "step":
        return "step", Step()
    if value == "running":
        return "running", Running()
    if value.empty or re.fullmatch(r"[a-zA-Z_ -]*", value):
        close = difflib.get_close_matches(str(value).lower(), ["step", "running"], 1)
        meant = f"Did you mean {close[0]!r}?" if close else ""
        remedy = meant or "Write step, running, a window such as 7d, or {half_life: 1d}."
        raise _refused("a view", value, remedy)
    return f"window_{value}", Window(length(value, step_us))


def decay_of(
    kind: str, value: Scalar, step_us: int | None, horizon: int | None, average: bool = False
) -> Decay:
    """Return the decay of a view that is written with its kind."""
    kinds: dict[str, Callable[[], Decay]] = {
        "window": lambda: Window(length(value, step_us)),
        "half_life": lambda: Exponential(half_life=lasting(value, step_us), average=average),
        "factor": lambda: Exponential(factor=amount(value), average=average),
        "polynomial": lambda: Polynomial(float(amount(value)), horizon or 1 << 20),
    }
    return kinds[kind]()
