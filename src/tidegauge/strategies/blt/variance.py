r"""How much noise of a buffered Toeplitz matrix C reaches a view: closed forms at any step.

A view of decay F adds up measurement noise with the impulse response b = F / C. Its covariance
with itself ``lag`` steps earlier is, at step t, ``sum_(k < t - lag) b_k b_(k + lag)`` times the
variance of a lattice draw; with lag 0, its variance. The sums are those of
:mod:`tidegauge.strategies.blt.response`.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tidegauge.checks import integer, shown
from tidegauge.errors import InvalidParameter
from tidegauge.strategies.blt.inverse import Inverse
from tidegauge.strategies.blt.response import Products, combed, responses
from tidegauge.strategies.decay import Decay, Running
from tidegauge.strategies.weights import Float64

__all__ = ["covariance_gain", "covariance_limit", "variance_gain", "variance_limit"]

Int64 = NDArray[np.int64]
Teeth = tuple[Fraction, int]


def variance_gain(
    gaps: tuple[int, ...],
    weights: tuple[int, ...],
    decay: Decay,
    steps: Int64,
    comb: Teeth | None = None,
) -> Float64:
    """Return the variance of a view at each of ``steps`` over the variance of the noise.

    Args:
        gaps: 1 - theta_j of C, in units of 2^-64; interlaced with the weights, as
            :func:`~tidegauge.strategies.blt.buffers.checked_buffers` returns them.
        weights: w_j of C, in units of 2^-64.
        decay: The decay of the view.
        steps: Steps counted from 1, any shape.
        comb: ``(beta, W)``, if the matrix is C (1 - beta z^W).

    Returns:
        ``sum_(n<t) b_n^2``, the shape of ``steps``; relative error below 1e-6. The residues of a
        decay are kept; then 256 steps take about 0.1 ms.

    Raises:
        InvalidParameter: A step is below 1.

    Examples:
        >>> from tidegauge.strategies.decay import Step
        >>> variance_gain((1 << 63,), (1 << 62,), Step(), np.array([1, 2]))
        array([1.    , 1.0625])
    """
    return covariance_gain(gaps, weights, decay, steps, 0, comb)


def variance_limit(
    gaps: tuple[int, ...], weights: tuple[int, ...], decay: Decay, comb: Teeth | None = None
) -> float:
    """Return the limit of :func:`variance_gain` as the step grows; infinite for a running sum.

    Examples:
        >>> from tidegauge.strategies.decay import Step
        >>> round(variance_limit((1 << 63,), (1 << 62,), Step()), 6)
        1.066667
    """
    return covariance_limit(gaps, weights, decay, 0, comb)


def covariance_gain(
    gaps: tuple[int, ...],
    weights: tuple[int, ...],
    decay: Decay,
    steps: Int64,
    lag: int,
    comb: Teeth | None = None,
) -> Float64:
    """Return the covariance of a view's noise at t with that at t - lag, for each t of ``steps``.

    Args:
        gaps: See :func:`variance_gain`.
        weights: See :func:`variance_gain`.
        decay: The decay of the view.
        steps: The later step t, counted from 1, any shape.
        lag: How many steps earlier the other one is; at least 0.
        comb: See :func:`variance_gain`.

    Returns:
        ``sum_(k < t - lag) b_k b_(k + lag)``, over the variance of the noise; the shape of
        ``steps``; 0 where t - lag is no step. Error below 1e-6 of the variance at t.

    Raises:
        InvalidParameter: A step is below 1, or the lag below 0.

    Examples:
        >>> from tidegauge.strategies.decay import Step
        >>> covariance_gain((1 << 63,), (1 << 62,), Step(), np.array([1, 2, 3]), 1)
        array([ 0.      , -0.25    , -0.234375])
    """
    t = np.asarray(steps, dtype=np.float64)
    if t.size and t.min() < 1:
        raise InvalidParameter(
            f"Expected steps of at least 1, got {shown(int(t.min()))}. Before the first step "
            "there is nothing to release. Count steps from 1."
        )
    return _sums(gaps, weights, decay, lag, comb, np.maximum(t - lag, 0.0))


def covariance_limit(
    gaps: tuple[int, ...],
    weights: tuple[int, ...],
    decay: Decay,
    lag: int,
    comb: Teeth | None = None,
) -> float:
    """Return the limit of :func:`covariance_gain` as t grows; infinite for a running sum.

    Examples:
        >>> from tidegauge.strategies.decay import Step
        >>> round(covariance_limit((1 << 63,), (1 << 62,), Step(), 1), 6)
        -0.233333
    """
    if isinstance(decay, Running):
        return math.inf
    return float(_sums(gaps, weights, decay, lag, comb, np.array(math.inf)))


def _sums(
    gaps: tuple[int, ...],
    weights: tuple[int, ...],
    decay: Decay,
    lag: int,
    comb: Teeth | None,
    n: Float64,
) -> Float64:
    why = "It counts steps back from a step. Give 0 for the variance."
    lag = integer("lag", lag, low=0, high=1 << 62, why=why)
    total = np.zeros(n.shape)
    for share, products in _products(gaps, weights, decay, lag, comb):
        total = total + share * products.sums(n)
    return np.asarray(total)


@lru_cache(maxsize=128)
def _products(
    gaps: tuple[int, ...], weights: tuple[int, ...], decay: Decay, lag: int, comb: Teeth | None
) -> tuple[tuple[float, Products], ...]:
    parts = responses(Inverse.of(gaps, weights), decay)
    if comb is not None:
        parts = [(share, combed(response, float(comb[0]), comb[1])) for share, response in parts]
    return tuple((share, Products(response, lag)) for share, response in parts)
