r"""A power law as a sum of exponentials.

.. math:: (k + 1)^{-c} = \frac{1}{\Gamma(c)} \int_0^\infty x^{c-1} e^{-x (k + 1)} dx

so exponentials at nodes evenly spaced in log x come within any relative error on any range, and
their number grows with the logarithm of the range. The nodes stay on such a grid; the weights
are the least squares of the relative error: 14 exponentials for c = 1 and a million steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import final

import numpy as np

from tidegauge.checks import exact, integer, shown
from tidegauge.errors import InvalidParameter
from tidegauge.strategies.weights import LONGEST_REACH, Float64, fixed, lags, short

__all__ = ["Polynomial", "exponential_sum"]


_LARGEST_ERROR = 0.005
_PER_OCTAVE = 24  # sampled ages; the error oscillates about twice between two nodes
_VISIBLE_BITS = 53  # a weight below 2^-53 of the first is invisible in a float64 sum


@final
@dataclass(frozen=True)
class Polynomial:
    """g(k) = (k + 1)^-c, implemented as a sum of exponentials.

    The power law itself would need the whole stream in memory. The exponentials are within
    ``error`` (at most 0.5 %, relative) of it up to ``reach``, or up to where g falls below 2^-53;
    beyond, they fall faster. Every std and interval is of these implemented weights.

    Args:
        c: Exponent, in [0.01, 16].
        reach: Largest age in steps at which the weights are right; at most 2^40.

    Raises:
        InvalidParameter: A parameter is out of range.

    Examples:
        >>> abs(Polynomial(1).weights(10)[9] - 0.1) < 0.005 * 0.1
        np.True_
    """

    c: float
    reach: int = 1 << 20

    def __post_init__(self) -> None:
        why = "Use Running() for no decay, Step() or Exponential() for a steeper one."
        c = exact("c", self.c, above=0, why=why)
        if not Fraction(1, 100) <= c <= 16:
            raise InvalidParameter(f"Expected c in [0.01, 16], got c={shown(self.c)}. {why}")
        object.__setattr__(self, "c", float(c))
        reach = integer(
            "reach",
            self.reach,
            low=1,
            high=LONGEST_REACH,
            why="The weights are fitted up to it. Give the horizon, in steps.",
        )
        object.__setattr__(self, "reach", reach)

    @property
    def name(self) -> str:
        """The name of a view of this decay where none is given."""
        return f"polynomial_{short(self.c)}"

    @cached_property
    def poles(self) -> tuple[Float64, Float64]:
        """``(gaps, weights)`` of the exponentials; computed at first use."""
        gaps, weights, _ = self._terms
        return fixed(gaps.copy()), fixed(weights.copy())

    @property
    def error(self) -> float:
        """Largest relative error of the implemented weights up to the reach, as measured."""
        return self._terms[2]

    @cached_property
    def _terms(self) -> tuple[Float64, Float64, float]:
        return exponential_sum(self.c, self.reach)

    def weights(self, n: int) -> Float64:
        """Return the implemented g(0..n-1)."""
        gaps, weights, _ = self._terms
        k = np.arange(lags(n), dtype=np.float64)
        total = np.zeros(len(k))
        for gap, weight in zip(gaps, weights, strict=True):
            total += weight * np.exp(k * math.log1p(-gap))
        return total


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
    while error > _LARGEST_ERROR:  # an even grid of nodes converges geometrically
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
