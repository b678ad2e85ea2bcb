r"""Smooth sensitivity of an order statistic, never below the truth (Nissim, Raskhodnikova, Smith).

For values in [0, U], sorted, with :math:`s_i = 0` before the first and U after the last,

.. math:: SS = \max_k e^{-bk} \max_{0 \le t \le k+1} (s_{P+t} - s_{P+t-k-1})
             = \max_{i \le P \le j} (s_j - s_i) e^{-b \max(j - i - 1, 0)}.

Floats find it within a factor 1 +- 2^-44; this factor is added to the result and taken from b, so
that what is returned is above the local sensitivity and b-smooth itself. Proof, with the errors of
every float: ``docs/proofs/perrier.md``.
"""

from __future__ import annotations

from fractions import Fraction
from math import isqrt
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tidegauge.compiled import lazy_module
from tidegauge.errors import UnsupportedCombination
from tidegauge.noise.intervals import exp_bracket
from tidegauge.strategies.strategy import Float64

if TYPE_CHECKING:
    from tidegauge.mechanisms import _kernels
else:
    _kernels = lazy_module("tidegauge.mechanisms._kernels")

__all__ = ["LEAST_B", "MOST_VALUES", "smooth_bound"]

LEAST_B = Fraction(1, 1 << 30)
MOST_VALUES = 1 << 40
_ERROR = Fraction(1, 1 << 44)  # relative, of the largest gap in floats
_FLOOR = Fraction(1, 1 << 100)  # of U: a constant, so that no weight needs to be smaller
_GONE = 140  # e^-140 < 2^-201: such weights count as 0
_BITS = 300


def smooth_bound(values: NDArray[np.float64], rank: int, b: Fraction, most: float) -> Fraction:
    """Return a b-smooth upper bound of how far one value moves the rank-th smallest.

    Within a factor 1 + 2^-42 of the smooth sensitivity for b - 2^-42, unless that is below
    2^-100 of ``most``. Private: it must not be shown.

    Args:
        values: In [0, most], float64 of shape (m,), m <= 2^40, in any order; exact.
        rank: In [1, m], counted from the smallest; 1 where there are none.
        b: At least 2^-30.
        most: U, the largest value there can be; in [1e-100, 1e100].

    Raises:
        UnsupportedCombination: b is below 2^-30, or there are too many values.

    Cost: O(m log m): 10 to 40 ms at m = 65,536.
    """
    if b < LEAST_B:
        raise UnsupportedCombination(
            "Expected a smoothness of at least 2^-30, got less: epsilon is too small for its "
            "delta. Rounding errors would not stay below it. Use a larger epsilon."
        )
    if len(values) > MOST_VALUES:
        raise UnsupportedCombination(
            f"Expected at most {MOST_VALUES} values, got {len(values)}. Rounding errors are "
            "bounded up to there. Take the threshold from fewer of them."
        )
    ordered = np.concatenate(([0.0], np.sort(values), [most]))
    weights = _weights(min(b, Fraction(_GONE)) - 4 * _ERROR, len(ordered) - 1)
    found = _kernels.largest_gap(ordered, weights, rank)
    return max(Fraction(float(found)), Fraction(most) * _FLOOR) * (1 + 2 * _ERROR)


def _weights(b: Fraction, count: int) -> Float64:
    """e^-bk for k below ``count``, each within a factor 1 +- 2^-51; 0 where bk is above 140."""
    kept = min(count, int(_GONE / b) + 1)
    step = isqrt(kept) + 1
    fine = np.array([_power(k * b) for k in range(step)])
    coarse = np.array([_power(k * step * b) for k in range(-(-kept // step))])
    weights = np.zeros(count)
    weights[:kept] = np.outer(coarse, fine).reshape(-1)[:kept]
    return weights


def _power(x: Fraction) -> float:
    """e^-x, rounded once."""
    return exp_bracket(x, _BITS)[0] / (1 << _BITS)
