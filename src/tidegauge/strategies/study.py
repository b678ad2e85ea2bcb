"""Strategies under the microscope: their matrices, their errors and the law of their noise.

Everything here runs a strategy's own streaming code or its closed forms; nothing is assumed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tidegauge.checks import integer
from tidegauge.privacy.unit import Event, NeighboringRelation, Neighbors
from tidegauge.strategies.decay import Decay
from tidegauge.strategies.strategy import Float64, Int64, Norm, Strategy

__all__ = [
    "decoder_matrix",
    "encoder_matrix",
    "max_error",
    "mean_squared_error",
    "noise_groups",
]

_MOST_DENSE = 1 << 12
_MOST_STEPS = 1 << 28
_CHUNK = 1 << 20
_SINGLE_LAGS = 1024
_GROUP_GROWTH = 256  # later lags stand in groups of 1/256 of their age
_NEGLIGIBLE = 1e-12
_EQUAL = 1e-9


def encoder_matrix(strategy: Strategy, steps: int) -> Float64:
    """Return C, shape (rows, steps), in grains a grain: impulse ``s`` runs through cell ``s``.

    Impulses have the largest magnitude that the strategy takes, so that its roundings vanish.

    Raises:
        InvalidParameter: ``steps`` is not in [1, 4096].

    Examples:
        >>> from tidegauge.strategies.identity import Identity
        >>> encoder_matrix(Identity(0), 2)
        array([[1., 0.],
               [0., 1.]])
    """
    integer("steps", steps, low=1, high=_MOST_DENSE, why="The matrix would be too large.")
    size = strategy.largest_total
    impulses = size * np.eye(steps, dtype=np.int64)
    coordinates = strategy.encode(strategy.init_encoder(steps), impulses, 0)
    unit: float = 2.0**-strategy.lattice_bits
    matrix: Float64 = coordinates.astype(np.float64) * (unit / size)
    return matrix


def decoder_matrix(strategy: Strategy, view: Decay, steps: int) -> Float64:
    """Return B of one view, shape (steps, rows), in grains a grain of measurement.

    Raises:
        InvalidParameter: ``steps`` is not in [1, 4096].

    Examples:
        >>> from tidegauge.strategies.decay import Running
        >>> from tidegauge.strategies.identity import Identity
        >>> decoder_matrix(Identity(0), Running(), 2)
        array([[1., 0.],
               [1., 1.]])
    """
    integer("steps", steps, low=1, high=_MOST_DENSE, why="The matrix would be too large.")
    rows = len(strategy.coordinates(0, steps))
    scale = 1 << max(0, strategy.lattice_bits)  # impulses of one grain, or of one lattice step
    impulses = scale * np.eye(rows, dtype=np.int64)
    out = np.empty((1, steps, rows))
    strategy.decode(strategy.init_decoder([view], rows), [view], impulses, 0, out)
    unit: float = 2.0**-strategy.lattice_bits
    matrix: Float64 = out[0] / (scale * unit)
    return matrix


def max_error(strategy: Strategy, view: Decay, steps: int, norm: Norm = Norm.L2) -> float:
    """Return the largest std of a view over the first ``steps`` steps, in grains.

    One event adds at most one grain to one cell; the guarantee is mu = 1 (L2) or epsilon = 1 (L1).
    Cost: O(steps) time.

    Raises:
        InvalidParameter: ``steps`` is not in [1, 2^28].

    Examples:
        >>> from tidegauge.strategies.decay import Running
        >>> from tidegauge.strategies.identity import Identity
        >>> max_error(Identity(0), Running(), 16)
        4.0
    """
    return _unit_std(strategy, norm) * max(
        float(np.sqrt(gains.max())) for gains in _gains(strategy, view, steps)
    )


def mean_squared_error(strategy: Strategy, view: Decay, steps: int, norm: Norm = Norm.L2) -> float:
    """Return the mean variance of a view over the first ``steps`` steps, in grains squared.

    One event adds at most one grain to one cell; the guarantee is mu = 1 (L2) or epsilon = 1 (L1).
    Cost: O(steps) time.

    Raises:
        InvalidParameter: ``steps`` is not in [1, 2^28].

    Examples:
        >>> from tidegauge.strategies.decay import Running
        >>> from tidegauge.strategies.identity import Identity
        >>> mean_squared_error(Identity(0), Running(), 3)
        2.0
    """
    total = sum(float(gains.sum()) for gains in _gains(strategy, view, steps))
    return _unit_std(strategy, norm) ** 2 * total / steps


def _unit_std(strategy: Strategy, norm: Norm) -> float:
    """The noise's std in lattice units at mu = 1, or epsilon = 1, for one event of one grain."""
    one = Neighbors(Event(), NeighboringRelation.ADD_OR_REMOVE_ONE, 0, 1, 1, 1)
    sensitivity = float(strategy.sensitivity(norm, one))
    return sensitivity if norm is Norm.L2 else sensitivity * 2**0.5


def _gains(strategy: Strategy, view: Decay, steps: int) -> list[Float64]:
    integer("steps", steps, low=1, high=_MOST_STEPS, why="Every step is computed.")
    return [
        strategy.variance_gain(view, np.arange(start + 1, min(start + _CHUNK, steps) + 1))
        for start in range(0, steps, _CHUNK)
    ]


def noise_groups(gain: Callable[[Int64], Float64], step: int) -> tuple[Float64, Int64]:
    """Return the weights of a time-invariant view's noise at ``step``, and how often each occurs.

    ``gain(t)`` is the sum of the first t squared weights, so differences of it are squares. The
    first 1024 lags stand alone; older ones share the root mean square of a group of 1/256 of their
    age, which keeps the variance and moves a quantile by less than 1e-5 of itself.

    Args:
        gain: The view's variance gain at steps counted from 1, shape (n,) to shape (n,).
        step: The step, from 1; its noise has ``step`` terms.

    Examples:
        >>> noise_groups(lambda t: np.minimum(t, 3.0), 10**9)
        (array([1.]), array([3]))
    """
    edges = list(range(min(step, _SINGLE_LAGS) + 1))
    while edges[-1] < step:
        edges.append(min(step, edges[-1] + edges[-1] // _GROUP_GROWTH))
    cumulated = np.concatenate([[0.0], gain(np.array(edges[1:], dtype=np.int64))])
    counts = np.diff(np.array(edges, dtype=np.int64))
    weights = np.sqrt(np.maximum(np.diff(cumulated), 0.0) / counts)
    kept = weights > _NEGLIGIBLE * weights.max()
    weights, counts = weights[kept], counts[kept]
    new = np.abs(np.diff(weights, prepend=-1.0)) > _EQUAL * weights
    starts = np.flatnonzero(new)
    return weights[starts], np.add.reduceat(counts, starts)
