r"""Certified brackets in plain integers: the only arithmetic that decides a law's tables.

A bracket of a real number ``t >= 0`` at ``bits`` is two integers ``low <= 2**bits t <= high``.
Every function rounds the lower end down and the upper end up: a bracket is a proof, and more bits
make it narrower. No float and no library of special functions is involved.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

__all__ = ["Brackets", "ceil_shift", "exp_bracket", "floors", "log_bracket"]

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


def log_bracket(x: Fraction, bits: int) -> tuple[int, int]:
    r"""Return a bracket of :math:`\ln x`, at most two units wide.

    With :math:`x = 2^e m`, m in [1, 2), and :math:`s = (m - 1) / (m + 1) < 1/3` it is
    :math:`2 e \operatorname{artanh} (1/3) + 2 \operatorname{artanh} s`. The terms of the series are
    positive: cutting and rounding each down bounds it below; above, they are rounded up until one
    is at most 1, and all later ones sum to less than 1/8.

    Args:
        x: At least 1.
        bits: Position of the last bit.

    Examples:
        >>> log_bracket(Fraction(2), 16)  # 65536 ln 2 = 45426.1
        (45426, 45427)
    """
    exponent = (x.numerator // x.denominator).bit_length() - 1
    unit = bits + exponent.bit_length() + 12
    rest = x / (1 << exponent)
    low, high = _artanh_series((rest - 1) / (rest + 1), unit)
    if exponent:
        two_low, two_high = _artanh_series(Fraction(1, 3), unit)
        low, high = low + exponent * two_low, high + exponent * two_high
    return low >> (unit - bits - 1), ceil_shift(high, unit - bits - 1)


def _artanh_series(s: Fraction, unit: int) -> tuple[int, int]:
    """Bracket ``artanh s`` in units of ``2**-unit`` for ``s`` in [0, 1/3]."""
    top = s.numerator << unit
    low, high = top // s.denominator, -(-top // s.denominator)
    low_square, high_square = low * low >> unit, ceil_shift(high * high, unit)
    below = above = 0
    term, n = low, 1
    while term:
        below += term // n
        term = term * low_square >> unit
        n += 2
    term, n = high, 1
    while term > 1:
        above += -(-term // n)
        term = ceil_shift(term * high_square, unit)
        n += 2
    return below, above + 2 * (high > 0)
