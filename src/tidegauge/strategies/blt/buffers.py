"""The integers that define a filter, and which of them are one."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

from tidegauge.checks import integer, shown
from tidegauge.errors import InvalidParameter

__all__ = ["MOST_BUFFERS", "UNIT", "checked_buffers"]

MOST_BUFFERS = 8

UNIT = 1 << 64
"""Gaps, weights and states are integers over this."""


def checked_buffers(
    gaps: tuple[int, ...], weights: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return gaps and weights as exact integers, or refuse them.

    Increasing gaps, positive weights and ``sum_j w_j / (2^64 - g_j) < 1`` make c positive and
    falling, and put one zero of C after each of its poles, inside (0, 1).

    Raises:
        InvalidParameter: They are not tuples of 1 to 8 integers inside (0, 2^64), or do not
            interlace.

    Examples:
        >>> checked_buffers((1 << 62,), (1 << 61,)) == ((1 << 62,), (1 << 61,))
        True
    """
    gaps, weights = _checked("gaps", gaps), _checked("weights", weights)
    if len(gaps) != len(weights):
        raise InvalidParameter(
            f"Expected as many weights as gaps, got {len(weights)} and {len(gaps)}. "
            "Each buffer has one of each. Give both from the same fit."
        )
    if any(b <= a for a, b in pairwise(gaps)):
        raise InvalidParameter(
            "Expected gaps to increase, got two that do not. One filter would have several "
            "names, and equal buffers are one. Sort them, with their weights."
        )
    share = sum(Fraction(w, UNIT - g) for w, g in zip(weights, gaps, strict=True))
    if share >= 1:
        raise InvalidParameter(
            "Expected weights with sum_j w_j / (2^64 - g_j) < 1, got a sum of "
            f"{float(share):.6g}. The zeros of the filter would not interlace with its poles. "
            "Use smaller weights."
        )
    return gaps, weights


def _checked(name: str, given: tuple[int, ...]) -> tuple[int, ...]:
    if not isinstance(given, tuple) or not 1 <= len(given) <= MOST_BUFFERS:
        raise InvalidParameter(
            f"Expected {name} to be a tuple of 1 to {MOST_BUFFERS} integers, got "
            f"{shown(given)}. Each is one buffer of the filter. Fit fewer buffers."
        )
    why = "Each is an integer over 2**64, strictly between 0 and 1. Take the integers of a fit."
    return tuple(
        integer(f"{name}[{j}]", number, low=1, high=UNIT - 1, why=why)
        for j, number in enumerate(given)
    )
