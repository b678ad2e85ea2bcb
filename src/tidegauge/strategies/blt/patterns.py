r"""How far a filter's output moves when one unit contributes several times.

For :math:`c_0 = 1, c_k = \sum_j w_j \theta_j^{k-1}` with positive :math:`w_j`, the autocorrelation
:math:`R(n) = \sum_k c_k c_{k+n}` is positive and falls with n, so the worst pattern of k events at
distance at least b is the closest one:

.. math::
    \Bigl\| \sum_{i<k} C e_{ib} \Bigr\|^2 = k R(0) + 2 \sum_{m=1}^{k-1} (k - m) R(m b), \quad
    R(n) = \sum_j \rho_j \theta_j^{n-1} \; (n \ge 1), \quad
    \rho_j = w_j \Bigl(1 + \theta_j \sum_i \frac{w_i}{1 - \theta_i \theta_j}\Bigr)

Every sum here has positive terms only; each is computed in integers over 2^192, rounded up.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from tidegauge.strategies.blt.buffers import UNIT

__all__ = [
    "ONE",
    "column_gain_squared",
    "geometric_ramp",
    "pattern_gain_squared",
    "power_up",
    "times_up",
]

_BITS = 192

ONE = 1 << _BITS
"""Numbers here are integers over this."""


def pattern_gain_squared(
    gaps: Sequence[int], weights: Sequence[int], events: int, separation: int
) -> Fraction:
    """Return an upper bound on the squared L2 norm of the worst pattern's output.

    Guarantee:
        Never below the truth, for ever, and above it by less than 2^-64 of it.

    Args:
        gaps: Integers g_j over 2^64, in (0, 2^64).
        weights: Integers w_j over 2^64, positive.
        events: Number of events, at least 1; each adds one grain to the same cell.
        separation: Least distance between two events in steps; 0: they may coincide.

    Returns:
        In grains squared. Cost: O(buffers^2 (log events + log separation)).

    Examples:
        >>> half = 1 << 63
        >>> round(float(pattern_gain_squared([half], [half], 1, 0)), 12)  # 1 + 1/4 + 1/16 + ...
        1.333333333333
        >>> float(pattern_gain_squared([half], [half], 3, 0)) / 9 == 4 / 3
        True
    """
    poles = [Fraction(UNIT - gap, UNIT) for gap in gaps]
    gains = [Fraction(weight, UNIT) for weight in weights]
    tails = [  # sum_i w_i / (1 - th_i th_j)
        sum(_up(w / (1 - p * q)) for w, p in zip(gains, poles, strict=True)) for q in poles
    ]
    alone = ONE + sum(times_up(_up(w), tail) for w, tail in zip(gains, tails, strict=True))
    if separation == 0:
        return Fraction(events**2 * alone, ONE)
    total = events * alone
    for w, q, tail in zip(gains, poles, tails, strict=True):
        lagged = times_up(_up(w), ONE + times_up(_up(q), tail))
        first = power_up(_up(q), separation - 1)
        total += 2 * times_up(
            times_up(lagged, first), geometric_ramp(times_up(first, _up(q)), events - 1)
        )
    return Fraction(total, ONE)


def column_gain_squared(gaps: Sequence[int], weights: Sequence[int], steps: int) -> Fraction:
    """Return an upper bound on ``sum_(n < steps) c_n^2``: what one event does in its last steps.

    Guarantee, arguments and units are those of :func:`pattern_gain_squared`; ``steps`` >= 1.

    Examples:
        >>> half = 1 << 63
        >>> float(column_gain_squared([half], [half], 2))  # 1 + 1/4
        1.25
    """
    poles = [Fraction(UNIT - gap, UNIT) for gap in gaps]
    gains = [_up(Fraction(weight, UNIT)) for weight in weights]
    total = ONE
    for w, p in zip(gains, poles, strict=True):
        for v, q in zip(gains, poles, strict=True):
            total += times_up(times_up(w, v), _geometric(_up(p * q), steps - 1))
    return Fraction(total, ONE)


def _up(value: Fraction) -> int:
    """The value as an integer over 2^192, rounded up."""
    return -((-value.numerator << _BITS) // value.denominator)


def times_up(a: int, b: int) -> int:
    """``a b``, rounded up."""
    return -((-a * b) >> _BITS)


def power_up(base: int, exponent: int) -> int:
    """``base^exponent``, rounded up."""
    result = ONE
    while exponent:
        if exponent & 1:
            result = times_up(result, base)
        base = times_up(base, base)
        exponent >>= 1
    return result


def _geometric(q: int, n: int) -> int:
    """``sum_(m < n) q^m`` over 2^192, rounded up, by doubling: no difference is taken."""
    power, total = ONE, 0  # q^count, the sum of count terms
    for bit in bin(n)[2:]:
        total += times_up(power, total)
        power = times_up(power, power)
        if bit == "1":
            total += power
            power = times_up(power, q)
    return total


def geometric_ramp(q: int, n: int) -> int:
    """``sum_(m < n) (n - m) q^m`` over 2^192, rounded up, by doubling: no difference is taken.

    With G(n) = sum_(m < n) q^m and S(n) = G(1) + ... + G(n): G(n + 1) = G(n) + q^n,
    G(2n) = G(n) + q^n G(n), S(2n) = S(n) + n G(n) + q^n S(n).
    """
    power, geometric, ramp, count = ONE, 0, 0, 0  # q^count, G(count), S(count)
    for bit in bin(n)[2:]:
        ramp = ramp + count * geometric + times_up(power, ramp)
        geometric += times_up(power, geometric)
        power, count = times_up(power, power), 2 * count
        if bit == "1":
            geometric += power
            ramp += geometric
            power, count = times_up(power, q), count + 1
    return ramp
