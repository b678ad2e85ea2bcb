"""Ranges of real readings, kept as whole grains."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from tidegauge.checks import exact, shown
from tidegauge.errors import InvalidParameter
from tidegauge.papers.system import GRAINS

__all__ = ["range_of"]

_MOST_GRAINS = 1 << 40


def range_of(upper: Any, grain: Any = None) -> tuple[Fraction, int]:
    """Return the grains in 1, exactly, and the grains in ``upper``.

    Args:
        upper: The largest reading; 0 is the least.
        grain: What readings are rounded to, such as 0.01; None: upper / 2^20.

    Raises:
        InvalidParameter: upper is not above 0, or no whole number of grains up to 2^40.

    Examples:
        >>> range_of(5000, 0.01)
        (Fraction(100, 1), 500000)
    """
    why = "Readings lie between 0 and upper, and at 0 there would be nothing to measure."
    top = exact("upper", upper, above=0, why=why)
    why = "Readings are rounded to it. Use 0.01 for money, or leave it out."
    step = top / GRAINS if grain is None else exact("grain", grain, above=0, why=why)
    count = top / step
    if count.denominator != 1 or count > _MOST_GRAINS:
        raise InvalidParameter(
            f"Expected upper to be a whole number of grains, at most 2^40, got upper="
            f"{shown(upper)} with grain={shown(grain)}. The largest reading would be rounded "
            "beyond what noise is made for. Round upper to the grain."
        )
    return 1 / step, int(count)
