r"""A power law as a sum of exponentials.

.. math:: (k + 1)^{-c} = \frac{1}{\Gamma(c)} \int_0^\infty x^{c-1} e^{-x (k + 1)} dx

so exponentials at nodes evenly spaced in log x come within any relative error on any range, and
their number grows with the logarithm of the range. The nodes stay on such a grid; the weights
are the least squares of the relative error: 14 exponentials for c = 1 and a million steps.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["LARGEST_ERROR", "exponential_sum"]

Float64 = NDArray[np.float64]

LARGEST_ERROR = 0.005
_PER_OCTAVE = 24  # sampled ages; the error oscillates about twice between two nodes
_VISIBLE_BITS = 53  # a weight below 2^-53 of the first is invisible in a float64 sum


def exponential_sum(c: float, reach: int) -> tuple[Float64, Float64, float]:
    """Return ``(gaps, weights, error)`` with sum_j weights[j] (1 - gaps[j])^k near (k + 1)^-c.

    Args:
        c: Exponent, positive.
        reach: Largest k at which the relative error is at most 0.5 %, unless (k + 1)^-c is below
            2^-53 there.

    Returns:
        Gaps, increasing; their weights; the largest relative error met.

    Examples:
        >>> gaps, weights, error = exponential_sum(1.0, 1 << 20)
        >>> len(gaps) < 20, error < 0.005
        (True, True)
    """
    octaves = min(math.log2(reach + 1), _VISIBLE_BITS / c)
    last = math.floor(2**octaves + 1e-9) - 1
    k = np.unique(np.round(np.geomspace(1, last + 1, math.ceil(_PER_OCTAVE * octaves) + 2)) - 1)
    terms, error = 0, math.inf
    while error > LARGEST_ERROR:  # an even grid of nodes converges geometrically
        terms += 1
        gaps, weights, error = _least_squares(c, k, terms)
    return gaps, weights, error


def _least_squares(c: float, k: Float64, terms: int) -> tuple[Float64, Float64, float]:
    rates = np.geomspace(0.4 * min(1.0, c) / (k[-1] + 1), 1 + c, terms)
    gaps = -np.expm1(-rates)
    columns = np.exp(np.outer(k, np.log1p(-gaps)) + c * np.log1p(k)[:, None])
    scale = np.sqrt((columns**2).sum(axis=0))
    weights = np.linalg.lstsq(columns / scale, np.ones(len(k)), rcond=None)[0] / scale
    error = float(np.abs(columns @ weights - 1).max())
    return gaps, weights, error
