r"""How far a filter behind a comb moves when one unit contributes several times.

The coefficients of :math:`C_0(z) (1 - \beta z^W)` are neither positive nor falling, and

.. math::
    R(n) = (1 + \beta^2) R_0(n) - \beta R_0(n + W) - \beta R_0(|n - W|)

is negative around n = W. The closest pattern need not be the worst one. But events at
:math:`s_1 \le \dots \le s_k`, at distance at least b, lie :math:`|s_i - s_l| \ge |i - l| b` apart,
so with the falling envelope :math:`\bar R(m) = \sup_{n \ge m} |R(n)|`

.. math::
    \Bigl\| \sum_i v_i \, C e_{s_i} \Bigr\|^2 \le k R(0) + 2 \sum_{m=1}^{k-1} (k - m) \bar R(m b)

for all :math:`v_i` of norm 1, whatever their signs. Up to n = 2 W the envelope is taken over
every R(n); beyond, over the sum of absolute values of its exponentials, which falls. Everything is
computed in integers over 2^192, between a lower and an upper bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache

from tidegauge.strategies.blt.buffers import UNIT
from tidegauge.strategies.blt.patterns import ONE, geometric_ramp, power_up, times_up

__all__ = ["comb_pattern_gain_squared"]

_Bounds = tuple[int, int]


@lru_cache(maxsize=64)
def comb_pattern_gain_squared(
    gaps: tuple[int, ...],
    weights: tuple[int, ...],
    beta: Fraction,
    lag: int,
    events: int,
    separation: int,
) -> Fraction:
    """Return an upper bound on the squared L2 norm of the worst pattern's output.

    Guarantee:
        Never below the truth, for ever, for changes of any sign; for one event, and for events
        that may coincide, above it by less than 2^-64 of it.

    Args:
        gaps: Integers g_j over 2^64, in (0, 2^64).
        weights: Integers w_j over 2^64, positive.
        beta: Between 0 and 1.
        lag: W, at least 1.
        events: Number of events, at least 1; each changes one step by at most one grain in L2.
        separation: Least distance between two events in steps; 0: they may coincide.

    Returns:
        In grains squared, of C_0 (1 - beta z^W). Cost: O(buffers lag) time.

    Examples:
        >>> half = 1 << 63
        >>> gain = comb_pattern_gain_squared((half,), (half,), Fraction(1, 2), 1, 1, 0)
        >>> float(gain)  # 1, 0, 0, ...: the comb cancels this filter
        1.0
    """
    numerator, denominator = beta.as_integer_ratio()
    own, other = numerator**2 + denominator**2, numerator * denominator

    def combined(at: _Bounds, later: _Bounds, earlier: _Bounds) -> _Bounds:
        """Bounds on denominator^2 R(n) from those of R_0 at n, n + W and n - W."""
        low = own * at[0] - other * (later[1] + earlier[1])
        high = own * at[1] - other * (later[0] + earlier[0])
        return low, high

    lags = _autocorrelation(gaps, weights)
    apart = events > 1 and separation > 0
    table = [next(lags) for _ in range(3 * lag + 2 if apart else lag + 1)]
    alone = combined(_total(table[0]), _total(table[lag]), _total(table[lag]))[1]
    scale = ONE * denominator**2
    together = Fraction(events**2 * alone, scale)
    if not apart:
        return together
    last = 2 * lag
    sums = [_total(terms) for terms in table]
    envelope = [
        _largest(combined(sums[n], sums[n + lag], sums[abs(n - lag)])) for n in range(last + 1)
    ]
    beyond = [  # of each exponential at n = last + 1
        _largest(combined(*bounds))
        for bounds in zip(
            table[last + 1], table[last + 1 + lag], table[last + 1 - lag], strict=True
        )
    ]
    above = sum(beyond)
    for n in range(last, -1, -1):
        envelope[n] = above = max(above, envelope[n])
    total, early = events * alone, min(last // separation, events - 1)
    for m in range(1, early + 1):
        total += 2 * (events - m) * envelope[m * separation]
    for gap, size in zip(gaps, beyond, strict=True):
        pole = (UNIT - gap) * (ONE // UNIT)
        first = power_up(pole, max(0, (early + 1) * separation - last - 1))
        ramp = geometric_ramp(power_up(pole, separation), events - 1 - early)
        total += 2 * times_up(times_up(size, first), ramp)
    return min(together, Fraction(total, scale))


def _autocorrelation(gaps: tuple[int, ...], weights: tuple[int, ...]) -> Iterator[list[_Bounds]]:
    """Bounds on each exponential of R_0(0), R_0(1), ...; R_0(0) stands alone.

    For n >= 1 they are rho_j theta_j^(n-1), rho_j = w_j (1 + theta_j sum_i w_i / (1 - th_i th_j)).
    """
    poles = [Fraction(UNIT - gap, UNIT) for gap in gaps]
    gains = [Fraction(weight, UNIT) for weight in weights]
    tails = [
        sum((w / (1 - p * q) for w, p in zip(gains, poles, strict=True)), Fraction(0))
        for q in poles
    ]
    alone = 1 + sum((w * tail for w, tail in zip(gains, tails, strict=True)), Fraction(0))
    yield [_around(alone)]
    terms = [_around(w * (1 + q * tail)) for w, q, tail in zip(gains, poles, tails, strict=True)]
    while True:
        yield terms
        terms = [
            (low * (UNIT - gap) // UNIT, -(-high * (UNIT - gap) // UNIT))
            for (low, high), gap in zip(terms, gaps, strict=True)
        ]


def _around(value: Fraction) -> _Bounds:
    """The integers over 2^192 around a value."""
    top, bottom = value.numerator * ONE, value.denominator
    return top // bottom, -(-top // bottom)


def _total(terms: list[_Bounds]) -> _Bounds:
    return sum(low for low, _ in terms), sum(high for _, high in terms)


def _largest(bounds: _Bounds) -> int:
    return max(-bounds[0], bounds[1])
