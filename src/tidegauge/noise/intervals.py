r"""Certified brackets in plain integers: the only arithmetic that decides a law's tables.

A bracket of a real number ``t >= 0`` at ``bits`` is two integers ``low <= 2**bits t <= high``.
Every function rounds the lower end down and the upper end up: a bracket is a proof, and more bits
make it narrower. No float and no library of special functions is involved.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

__all__ = ["Brackets", "ceil_shift", "exp_bracket", "floors"]

Brackets = Callable[[int], tuple[list[int], list[int]]]
"""Increasing thresholds in [0, 1]: bits -> (lower ends, upper ends)."""


def ceil_shift(value: int, bits: int) -> int:
    """Return ``value / 2**bits`` rounded up."""
    return -(-value >> bits)


def exp_bracket(x: Fraction, bits: int) -> tuple[int, int]:
    r"""Return a bracket of :math:`e^{-x}`, at most two units wide.

    The series of :math:`e^{a}`, :math:`a = x / 2^m < 2^{-8}`, has positive terms: cutting and
    rounding each term down bounds it below. Above, terms are rounded up until one is at most 1;
    all later ones sum to less than 1. Then ``m`` squarings and one division, each rounded outward.

    Args:
        x: The exponent, at least 0.
        bits: Position of the last bit.

    Examples:
        >>> exp_bracket(Fraction(1), 16)  # 65536 / e = 24109.3
        (24109, 24110)
    """
    if x == 0:
        return 1 << bits, 1 << bits
    halvings = max(0, x.__ceil__().bit_length() + 8)
    unit = bits + halvings + 12
    top, bottom = x.numerator << unit, x.denominator << halvings
    low, high = _exp_series(top // bottom, -(-top // bottom), unit)
    for _ in range(halvings):
        low, high = low * low >> unit, ceil_shift(high * high, unit)
    one = 1 << (unit + bits)
    return one // high, -(-one // low)


def _exp_series(low: int, high: int, unit: int) -> tuple[int, int]:
    """Bracket ``exp(a)`` in units of ``2**-unit`` for ``a`` in ``[low, high] / 2**unit``."""
    below = above = 0
    term, n = 1 << unit, 0
    while term:
        below += term
        n += 1
        term = (term * low >> unit) // n
    term, n = 1 << unit, 0
    while term > 1:
        above += term
        n += 1
        term = -(-ceil_shift(term * high, unit) // n)
    return below, above + 3


def floors(brackets: Brackets, bits: int) -> list[int]:
    r"""Return :math:`\lfloor 2^{bits} t \rfloor` of every threshold, each one certain.

    All thresholds are below 1, so no floor is above ``2**bits - 1``. The precision grows until both
    ends of every bracket have the same floor; it ends, as all our thresholds are irrational.
    """
    guard, largest = 16, (1 << bits) - 1
    while True:
        low, high = brackets(bits + guard)
        result = [end >> guard for end in low]
        if result == [min(end >> guard, largest) for end in high]:
            return result
        guard *= 2
