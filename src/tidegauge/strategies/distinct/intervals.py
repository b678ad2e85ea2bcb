r"""How far a filter's output moves when a count changes by one over an interval.

For :math:`c_0 = 1, c_k = -\sum_j w_j \theta_j^{k-1}` with positive :math:`w_j` and
:math:`\sum_k |c_k| < 2`, the autocorrelation :math:`r(n)` is negative for :math:`n \ge 1`: the tail
:math:`a_k = -c_k` falls and sums to less than 1, so

.. math:: r(n) = -a_n + \sum_{k \ge 1} a_k a_{k+n} \le -a_n + a_n \sum_k a_k < 0.

With :math:`V(l) = \| C 1_{[0, l)} \|^2` and :math:`V(l+1) - V(l) = \sum_{|j| \le l} r(j)`:

* one interval of at most W steps moves the output by at most :math:`\max_{l \le W} V(l)^{1/2}`;
* of two intervals with opposite signs inside one window of W steps the worst stand side by side and
  fill it: :math:`\max_l 2 V(l) + 2 V(W-l) - V(W)` (two that overlap leave two that do not, and
  those of one sign move less than each for itself).

Both maxima are taken over every l; proof in ``docs/proofs/distinct.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

from tidegauge.strategies.blt.buffers import UNIT

__all__ = ["interval_gains", "worst_intervals"]

_BITS = 192
_ONE = 1 << _BITS  # numbers here are integers over this
_SLACK = 1 << (_BITS - 96)  # above 8 (W + 2)^3 roundings of one each, W <= 2^20


@lru_cache(maxsize=64)
def interval_gains(
    gaps: tuple[int, ...], weights: tuple[int, ...], window: int
) -> tuple[Fraction, Fraction]:
    """Return upper bounds on the squared L2 norms for one interval and for two opposite ones.

    Guarantee:
        Never below the truth, for ever, and above it by less than 2^-90.

    Args:
        gaps: Integers 1 - theta_j over 2^64, in (0, 2^64).
        weights: Integers w_j over 2^64, positive, with ``sum_j w_j / gaps_j < 1``.
        window: The longest interval, W; at most 2^20 steps.

    Cost: O(W buffers) operations on integers of 200 bits: 4 s at W = 2^20.

    Examples:
        >>> one, two = interval_gains((1 << 63,), (1 << 62,), 1)  # c = 1, -1/4, -1/8, ...
        >>> round(float(one), 9), round(float(two), 9)
        (1.083333333, 1.083333333)
    """
    own, tail = _autocorrelation(gaps, weights)
    powers = [_ONE] * len(gaps)

    def negatives() -> Sequence[int]:
        """-r(1), -r(2), ... rounded down, as far as they are asked for."""
        found = []
        for _ in range(window - 1):
            found.append(sum(rho * power >> _BITS for rho, power in zip(tail, powers, strict=True)))
            for j, gap in enumerate(gaps):
                powers[j] = powers[j] * (UNIT - gap) >> 64
        return found

    single, pair = worst_intervals([own, *(-value for value in negatives())], window)
    return Fraction(single, _ONE), Fraction(pair + _SLACK, _ONE)


def worst_intervals(autocorrelation: Sequence[int], window: int) -> tuple[int, int]:
    """Return the largest V(l), and the largest of two adjacent intervals with opposite signs.

    Args:
        autocorrelation: r(0) ... r(W - 1) of any filter; numbers of one scale.
        window: W.

    Returns:
        The second value is the worst of *all* pairs if r(n) <= 0 for n >= 1.

    Examples:
        The worst interval need not be the longest:

        >>> worst_intervals([2, 0, -2], 3)
        (4, 10)
    """
    lengths, rise = [0], autocorrelation[0]
    for lag in range(1, window + 1):
        lengths.append(lengths[-1] + rise)
        if lag < window:
            rise += 2 * autocorrelation[lag]
    single = max(lengths)
    pair = max(
        2 * lengths[at] + 2 * lengths[window - at] - lengths[window] for at in range(window + 1)
    )
    return single, pair


def _autocorrelation(
    gaps: tuple[int, ...], weights: tuple[int, ...]
) -> tuple[int, tuple[int, ...]]:
    """r(0), rounded up, and rho_j, rounded down: ``r(n) = -sum_j rho_j theta_j^(n-1)``."""

    def overlap(i: int, j: int) -> Fraction:
        """1 / (1 - theta_i theta_j)."""
        return Fraction(UNIT**2, UNIT * (gaps[i] + gaps[j]) - gaps[i] * gaps[j])

    each = range(len(gaps))
    shares = [Fraction(weight, UNIT) for weight in weights]
    own = 1 + sum(shares[i] * shares[j] * overlap(i, j) for i in each for j in each)
    tail = []
    for j in each:
        theta = Fraction(UNIT - gaps[j], UNIT)
        rho = shares[j] * (1 - theta * sum(shares[i] * overlap(i, j) for i in each))
        tail.append(rho.numerator * _ONE // rho.denominator)
    return -(-own.numerator * _ONE // own.denominator), tuple(tail)
