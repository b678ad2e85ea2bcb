"""Argument checks that all speak in one form: Expected what, got what, why, what to do."""

from __future__ import annotations

import math
import numbers
import unicodedata
from fractions import Fraction
from typing import Any

from tidegauge.errors import InvalidParameter

__all__ = ["LARGEST", "exact", "integer", "one_line", "shown"]

LARGEST = 10**300
"""No parameter reaches it in size: doubles end at 1.8e308."""

_SHOWN = 60
_UNSEEN = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))  # categories of Unicode


def shown(value: object) -> str:
    """Return a parameter as it may appear in a message, shortened.

    Examples:
        >>> shown("1")
        "'1'"
    """
    try:
        text = str(value) if isinstance(value, Fraction) else repr(value)
    except ValueError:  # Python refuses to write integers of thousands of digits
        text = f"a {type(value).__name__} too long to show"
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def one_line(text: str) -> str:
    r"""Return a text of others as one line of what can be seen: the rest is escaped, as in JSON.

    Line breaks, controls, signs that turn the direction of writing or take no room, and what has no
    meaning: whoever chooses a name could forge a row with them. Letters that join by such signs
    are drawn apart.

    Examples:
        >>> print(one_line("a\nb\u202ec\x1b[31m"))
        a\nb\u202ec\u001b[31m
    """
    if text.isprintable():
        return text
    return "".join(_escaped(c) if unicodedata.category(c) in _UNSEEN else c for c in text)


def _escaped(sign: str) -> str:
    """One sign as JSON writes it."""
    if sign in "\n\r\t":
        return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}[sign]
    units = sign.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))


def integer(name: str, value: Any, *, low: int, high: int, why: str = "") -> int:
    """Return ``value`` as an int in ``[low, high]``, or refuse it.

    Args:
        name: The public name of the parameter, as the user typed it.
        value: Anything with ``__index__`` except a bool.
        low: Least value allowed.
        high: Largest value allowed.
        why: What goes wrong and what to do, one or two full sentences.

    Raises:
        InvalidParameter: ``value`` is not an integer in the range.

    Examples:
        >>> integer("cells", 16, low=1, high=1000)
        16
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise InvalidParameter(
            f"Expected {name} to be an integer, got {shown(value)}. {why}".strip()
        )
    number = int(value)
    if not low <= number <= high:
        raise InvalidParameter(
            f"Expected {name} in [{low}, {high}], got {name}={shown(number)}. {why}".strip()
        )
    return number


def exact(
    name: str, value: Any, *, above: int | None = None, below: int | None = None, why: str = ""
) -> Fraction:
    """Return a finite real parameter as the exact decimal that its author wrote.

    A float is read by its shortest decimal form, so that ``0.1`` is one tenth and ten shares
    of it are the whole.

    Args:
        name: The public name of the parameter, as the user typed it.
        value: An int, float, Fraction or Decimal; not a bool, not text.
        above: The value must be larger than this.
        below: The value must be smaller than this.
        why: What goes wrong and what to do.

    Raises:
        InvalidParameter: ``value`` is not a finite real number strictly inside the range.

    Examples:
        >>> exact("share", 0.1)
        Fraction(1, 10)
    """
    from decimal import Decimal

    if isinstance(value, bool) or not isinstance(value, (numbers.Real, Decimal)):
        raise InvalidParameter(f"Expected {name} to be a number, got {shown(value)}. {why}".strip())
    if isinstance(value, numbers.Rational):
        # a NumPy integer in a Fraction would wrap around at its own width
        number = Fraction(int(value.numerator), int(value.denominator))
    elif not (value.is_finite() if isinstance(value, Decimal) else math.isfinite(value)):
        raise InvalidParameter(
            f"Expected {name} to be finite, got {name}={shown(value)}. {why}".strip()
        )
    else:
        number = Fraction(value) if isinstance(value, Decimal) else Fraction(repr(float(value)))
    if abs(number) >= LARGEST:
        raise InvalidParameter(
            f"Expected {name} below 1e300 in size, got {name}={shown(value)}. {why}".strip()
        )
    if above is not None and number <= above:
        raise InvalidParameter(
            f"Expected {name} > {above}, got {name}={shown(value)}. {why}".strip()
        )
    if below is not None and number >= below:
        raise InvalidParameter(
            f"Expected {name} < {below}, got {name}={shown(value)}. {why}".strip()
        )
    return number
