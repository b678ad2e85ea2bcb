"""Numbers as people read them."""

from __future__ import annotations

from math import floor, log10

__all__ = ["significant"]


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
