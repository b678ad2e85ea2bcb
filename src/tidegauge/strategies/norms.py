r"""Exact norms of a buffered Toeplitz matrix C, in the rationals.

C is given by integers in units of 2^-64: c_0 = 1 and c_k = sum_j w_j theta_j^(k-1) with
theta_j = 1 - gaps[j] / 2^64 and w_j = weights[j] / 2^64. Everything here is a geometric sum over
infinitely many steps, so a sensitivity built from it holds for ever. A result is exact, or, where
its name ends in ``_up``, never below the truth.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from tidegauge.checks import integer
from tidegauge.errors import InvalidParameter

__all__ = ["UNIT", "autocorrelation_up", "checked_buffers", "column_norm_squared", "total_gain"]

UNIT = 1 << 64
_FRACTION_BITS = 256
_MOST_STEPS = 1 << 40


def checked_buffers(
    gaps: Sequence[int], weights: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the two as tuples, or refuse them.

    Raises:
        InvalidParameter: The lengths differ, a gap is not inside (0, 1) or a weight not positive.

    Examples:
        >>> checked_buffers([1 << 62], [1 << 61]) == ((1 << 62,), (1 << 61,))
        True
    """
    if len(gaps) != len(weights):
        raise InvalidParameter(
            f"Expected as many weights as gaps, got {len(weights)} and {len(gaps)}. "
            "Each buffer has one of both. Give both from the same fit."
        )
    why = "Gaps and weights are in units of 2**-64 and strictly between 0 and 1."
    return (
        tuple(integer(f"gaps[{j}]", g, low=1, high=UNIT - 1, why=why) for j, g in enumerate(gaps)),
        tuple(
            integer(f"weights[{j}]", w, low=1, high=UNIT - 1, why=why)
            for j, w in enumerate(weights)
        ),
    )


def _pair(a: int, b: int) -> int:
    """Return 1 - theta_a theta_b in units of 2^-128."""
    return (a + b) * UNIT - a * b


def column_norm_squared(gaps: Sequence[int], weights: Sequence[int]) -> Fraction:
    r"""Return the exact sum of c_k^2 over all k, for ever.

    .. math:: \sum_k c_k^2 = 1 + \sum_{ij} \frac{w_i w_j}{1 - \theta_i \theta_j}

    Guarantee:
        Exact. It bounds the squared norm of every column of every finite C.

    Args:
        gaps: 1 - theta_j, in units of 2^-64.
        weights: w_j, in units of 2^-64.

    Raises:
        InvalidParameter: A gap is not inside (0, 1), or a weight not positive.

    Examples:
        >>> column_norm_squared([1 << 63], [1 << 62])  # c = 1, 1/4, 1/8, 1/16, ...
        Fraction(13, 12)
    """
    gaps, weights = checked_buffers(gaps, weights)
    total = Fraction(1)
    for j, (gap, weight) in enumerate(zip(gaps, weights, strict=True)):
        total += Fraction(weight * weight, _pair(gap, gap))
        for i in range(j):
            total += Fraction(2 * weight * weights[i], _pair(gap, gaps[i]))
    return total


def autocorrelation_up(gaps: Sequence[int], weights: Sequence[int], lag: int) -> Fraction:
    r"""Return an upper bound on the sum of c_n c_(n+lag) over all n.

    .. math::
        R(m) = \sum_j w_j \theta_j^{m-1}
               \Bigl(1 + \theta_j \sum_i \frac{w_i}{1 - \theta_i \theta_j}\Bigr)

    Guarantee:
        Never below the truth: all terms are positive and each power is rounded up, in 256-bit
        fixed point. Exact at lag 0.

    Args:
        gaps: 1 - theta_j, in units of 2^-64.
        weights: w_j, in units of 2^-64.
        lag: Distance of two columns in steps, 0 to 2^40.

    Raises:
        InvalidParameter: The buffers or the lag are out of range.

    Examples:
        >>> float(autocorrelation_up([1 << 63], [1 << 62], 1))  # 1/4 + 1/32 (1 + 1/4 + ...)
        0.2916666666666667
    """
    gaps, weights = checked_buffers(gaps, weights)
    lag = integer("lag", lag, low=0, high=_MOST_STEPS)
    if lag == 0:
        return column_norm_squared(gaps, weights)
    total = Fraction(0)
    for gap, weight in zip(gaps, weights, strict=True):
        inner = sum(
            (Fraction(w * UNIT, _pair(gap, g)) for g, w in zip(gaps, weights, strict=True)),
            Fraction(0),
        )
        power = Fraction(_power_up(UNIT - gap, lag - 1), 1 << _FRACTION_BITS)
        total += Fraction(weight, UNIT) * power * (1 + Fraction(UNIT - gap, UNIT) * inner)
    return total


def _power_up(pole: int, exponent: int) -> int:
    """Return (pole / 2^64)^exponent in units of 2^-256, rounded up."""
    square = pole << (_FRACTION_BITS - 64)
    result = 1 << _FRACTION_BITS
    while exponent:
        if exponent & 1:
            result = -(-result * square >> _FRACTION_BITS)
        square = -(-square * square >> _FRACTION_BITS)
        exponent >>= 1
    return result


def total_gain(gaps: Sequence[int], weights: Sequence[int]) -> Fraction:
    """Return the exact C(1), the sum of c_k over all k: how far C x can grow beyond x.

    Raises:
        InvalidParameter: A gap is not inside (0, 1), or a weight not positive.

    Examples:
        >>> total_gain([1 << 63], [1 << 62])
        Fraction(3, 2)
    """
    gaps, weights = checked_buffers(gaps, weights)
    return 1 + sum((Fraction(w, g) for g, w in zip(gaps, weights, strict=True)), Fraction(0))
