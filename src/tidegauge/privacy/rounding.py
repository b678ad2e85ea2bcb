"""Roots, decimals and searches that end on the side they are told to."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from tidegauge.errors import InvalidParameter

__all__ = [
    "ceil_decimal",
    "floor_decimal",
    "largest",
    "least",
    "log_fraction",
    "minimiser",
    "sqrt_down",
    "sqrt_up",
]

_DIGITS = 12


def sqrt_down(value: Fraction) -> Fraction:
    """Return the square root: exact if it is rational, else below it by a factor under 1 + 2^-65.

    Examples:
        >>> sqrt_down(Fraction(9, 4)), 2 - sqrt_down(Fraction(2)) ** 2 > 0
        (Fraction(3, 2), True)
    """
    return _root(value, 0)


def sqrt_up(value: Fraction) -> Fraction:
    """Return the square root: exact if it is rational, else above it by a factor under 1 + 2^-65.

    Examples:
        >>> sqrt_up(Fraction(9, 4)), sqrt_up(Fraction(2)) ** 2 - 2 > 0
        (Fraction(3, 2), True)
    """
    return _root(value, 1)


def _root(value: Fraction, up: int) -> Fraction:
    """Integer square root of a scaled fraction, plus ``up`` units if it is not exact."""
    if value < 0:
        raise InvalidParameter(
            f"Expected a number >= 0, got {float(value):.3g}. It has no square root. Check how it "
            "was computed: squares and variances are never negative."
        )
    top, bottom = math.isqrt(value.numerator), math.isqrt(value.denominator)
    if top**2 == value.numerator and bottom**2 == value.denominator:
        return Fraction(top, bottom)
    bits = value.denominator.bit_length() - value.numerator.bit_length()
    shift = max(0, 67 + bits // 2)
    return Fraction(
        math.isqrt((value.numerator << 2 * shift) // value.denominator) + up, 1 << shift
    )


def log_fraction(value: Fraction) -> float:
    """Natural logarithm of a positive fraction of any size, near 1 too."""
    if Fraction(1, 2) < value < 2:
        return math.log1p(value - 1)
    return math.log(value.numerator) - math.log(value.denominator)


def largest(holds: Callable[[float], bool]) -> float:
    """The largest x > 0 that holds, for a property that holds up to a point; the safe end."""
    low = 1.0
    while not holds(low):
        low /= 2
    high = 2 * low
    while holds(high):
        low, high = high, 2 * high
    while high - low > 1e-14 * low and low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def least(holds: Callable[[float], bool]) -> float:
    """The least x > 0 that holds, for a property that holds from a point on; the safe end."""
    high = 1.0
    while not holds(high):
        high *= 2
    low = high / 2
    while low > 0 and holds(low):
        low, high = low / 2, low
    while high - low > 1e-14 * high and low < (middle := (low + high) / 2) < high:
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def minimiser(function: Callable[[float], float], low: float, high: float) -> float:
    """A point near the minimum of a unimodal function, by golden section."""
    ratio = (math.sqrt(5) - 1) / 2
    for _ in range(80):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, right) if function(left) <= function(right) else (left, high)
    return (low + high) / 2


def floor_decimal(value: float) -> Fraction:
    """The largest decimal of twelve digits that is not above the value."""
    return Fraction(Context(prec=_DIGITS, rounding=ROUND_FLOOR).create_decimal(Decimal(value)))


def ceil_decimal(value: float) -> Fraction:
    """The least decimal of twelve digits that is not below the value."""
    return Fraction(Context(prec=_DIGITS, rounding=ROUND_CEILING).create_decimal(Decimal(value)))
