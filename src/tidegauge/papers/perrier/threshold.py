"""The private threshold of the first readings, and the smooth sensitivity behind it."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tidegauge.checks import exact, integer
from tidegauge.errors import InvalidInput, InvalidParameter
from tidegauge.mechanisms.measure import measure_threshold
from tidegauge.mechanisms.smooth import smooth_bound
from tidegauge.mechanisms.threshold_rule import ThresholdRule
from tidegauge.mechanisms.totals import array_of
from tidegauge.papers.perrier.ranges import range_of
from tidegauge.papers.system import grains_of

__all__ = ["BETA_LT", "LAM", "P", "private_threshold", "rule_of", "smooth_sensitivity"]

P, LAM, BETA_LT = 0.005, 0.85, 0.006
"""The published defaults: quantile, caution, and how often a threshold may be too low."""

_LEAST, _LARGEST = Fraction(1, 10**100), Fraction(10**100)


def private_threshold(
    first_m: ArrayLike,
    upper: float | Fraction,
    epsilon: float | Fraction,
    delta: float | Fraction,
    *,
    p: float | Fraction = P,
    lam: float | Fraction = LAM,
    beta_lt: float | Fraction = BETA_LT,
    grain: float | Fraction | None = None,
) -> float:
    r"""Return a threshold that a share p of all readings exceeds, or fewer.

    The empirical upper quantile of lambda p, moved up by as much as its noise may move it down,
    with noise of its smooth sensitivity times kappa, rounded once to the grain and clamped to
    [0, upper].

    Guarantee:
        (epsilon, delta)-DP when one reading is replaced by any other in [0, upper]. Proof:
        ``docs/proofs/perrier.md``.

    Args:
        first_m: The first readings, m of them, in any order: reals in [0, upper], shape (m,).
        upper: The largest reading there can be, B.
        epsilon: What the threshold spends; the paper's epsilon_1.
        delta: Far below 1 / m, such as 1 / n^2.
        p: The share of readings to cut.
        lam: The quantile of ``lam * p`` is estimated, so that it is seldom below that of p.
        beta_lt: How often noise may move the threshold below the quantile of ``lam * p``.
        grain: Readings and threshold are rounded to it; None: upper / 2^20.

    Raises:
        InvalidParameter: A parameter is out of range.
        UnsupportedCombination: epsilon is too large or too small for delta, or beta_lt too small.
        InvalidInput: Not readings of this range; nothing was spent, and no value is shown.

    Cost:
        Privacy: epsilon and delta at each call. Time: O(m log m), some 30 ms at m = 65,536.

    Examples:
        With few readings the threshold is anything up to upper; 50,000 are needed:

        >>> trips = np.arange(60_000) % 150
        >>> 100 < private_threshold(trips, 1440, epsilon=1, delta=1e-12, grain=1) <= 1440
        True

    References:
        Perrier, Asghar and Kaafar 2019, with kappa and exact noise: ``docs/errata.md``.
    """
    rule = rule_of(epsilon, delta, p, lam, beta_lt)
    unit, most = range_of(upper, grain)
    grains = grains_of(_flat(first_m), unit, most / unit)
    return float(measure_threshold(rule, grains, most) / unit)


def rule_of(epsilon: Any, delta: Any, p: Any, lam: Any, beta_lt: Any) -> ThresholdRule:
    """Return the rule of a threshold in the words of the paper.

    Raises:
        InvalidParameter: A parameter is out of range.
        UnsupportedCombination: See :class:`~tidegauge.mechanisms.threshold_rule.ThresholdRule`.
    """
    why = "It is the share of readings above the threshold. Use 0.005."
    share = exact("p", p, above=0, below=1, why=why)
    why = "The threshold is the quantile of lam * p. Use 0.85."
    caution = exact("lam", lam, above=0, below=1, why=why)
    return ThresholdRule(epsilon, delta, caution * share, beta_lt)


def smooth_sensitivity(
    values: ArrayLike, rank: int, b: float | Fraction, upper: float | Fraction
) -> float:
    r"""Return the b-smooth sensitivity of the rank-th smallest of values in [0, upper], rounded up.

    .. math:: \max_{0 \le k \le m} e^{-bk} \max_{0 \le t \le k+1} (s_{P+t} - s_{P+t-k-1})

    with 0 before the first value and upper after the last. It depends on the data and is private:
    noise may be scaled by it, but it may not be shown.

    Args:
        values: Reals in [0, upper], shape (m,), in any order.
        rank: P, from 1 (the smallest) to m.
        b: At least 2^-30; the smaller, the smoother.
        upper: The largest value there can be, in [1e-100, 1e100].

    Returns:
        At least the true one, and itself b-smooth; above the true one by a factor 1 + 2^-41 at
        most, and by what 2^-42 less b makes; never below 2^-100 of upper.

    Raises:
        InvalidParameter: A parameter is out of range.
        InvalidInput: Not values of this range; none is shown.
        UnsupportedCombination: b is below 2^-30, or there are more than 2^26 values.

    Cost: O(m log m): some 20 ms at m = 65,536. The paper's way takes O(m^2).

    Examples:
        >>> data = [1, 2, 4, 7, 11, 16, 22, 29, 37, 46]
        >>> round(smooth_sensitivity(data, rank=5, b=0.5, upper=100), 9)
        7.305564878

    References:
        Nissim, Raskhodnikova and Smith 2007, section 3.1; divide and conquer in place of O(m^2).
    """
    why = "Values lie between 0 and upper. Declare the largest there can be."
    top = exact("upper", upper, above=0, why=why)
    if not _LEAST <= top <= _LARGEST:
        raise InvalidParameter(
            "Expected upper in [1e-100, 1e100], got one outside. Floats would underflow. Use "
            "another unit."
        )
    smoothness = exact("b", b, above=0, why="It is epsilon / (2 ln(2/delta)).")
    array = _flat(values)
    why = "It is counted from 1, the smallest, to the number of values."
    place = integer("rank", rank, low=1, high=len(array), why=why)
    grains_of(array, 1, top)  # refuses what is no value in [0, upper]
    largest = _float_up(top)
    exactly = smooth_bound(array.astype(np.float64), place, smoothness, largest)
    return _float_up(exactly)


def _flat(readings: ArrayLike) -> NDArray[Any]:
    """Readings as an array of shape (m,), m >= 1."""
    array = array_of(readings, "readings")
    if array.ndim != 1 or not len(array):
        raise InvalidInput(
            f"Expected readings of shape (m,), at least one, got shape {array.shape}. A threshold "
            "is a quantile of them. Give them as one flat list."
        )
    if array.dtype.kind == "b":
        raise InvalidInput(
            "Expected readings to be numbers, got booleans. A threshold of them says nothing. "
            "Count what is true with a gauge."
        )
    return array


def _float_up(value: Fraction) -> float:
    """The least float that is not below."""
    near = float(value)
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)
