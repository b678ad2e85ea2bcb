"""Numbers of a filter from their definitions: exact rationals, or 120 digits."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import mpmath

UNIT = 1 << 64
DIGITS = 120


def coefficients(gaps: Sequence[int], weights: Sequence[int], count: int) -> list[Fraction]:
    """c_0, c_1, ... as exact fractions."""
    c = [Fraction(1)]
    state = [Fraction(w, UNIT) for w in weights]
    for _ in range(count - 1):
        c.append(sum(state, Fraction(0)))
        state = [s * Fraction(UNIT - g, UNIT) for s, g in zip(state, gaps, strict=True)]
    return c


def column_norm_squared(gaps: Sequence[int], weights: Sequence[int]) -> Fraction:
    """The exact sum of c_k^2 over all k: 1 + sum_ij w_i w_j / (1 - theta_i theta_j)."""
    buffers = list(zip(gaps, weights, strict=True))
    return 1 + sum(
        (Fraction(w * v, (g + h) * UNIT - g * h) for g, w in buffers for h, v in buffers),
        Fraction(0),
    )


def autocorrelation(gaps: Sequence[int], weights: Sequence[int], lag: int) -> mpmath.mpf:
    """The sum of c_n c_(n+lag) over all n, lag at least 1, in 120 digits."""
    with mpmath.workdps(DIGITS):
        theta = [mpmath.mpf(UNIT - g) / UNIT for g in gaps]
        w = [mpmath.mpf(v) / UNIT for v in weights]
        total = mpmath.mpf(0)
        for a, u in zip(theta, w, strict=True):
            inner = sum(v / (1 - a * b) for b, v in zip(theta, w, strict=True))
            total += u * a ** (lag - 1) * (1 + a * inner)
        return total
