"""The noise that reaches a view: its energy where each step is measured, its law in groups."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tidegauge.strategies.bounds import worst_step
from tidegauge.strategies.decay import Custom, Decay, Step, Window
from tidegauge.strategies.strategy import MOST_STEPS, Float64, Int64

__all__ = ["energy", "noise_groups", "worst_energy"]

_SINGLE_LAGS = 1024
_GROUP_GROWTH = 256  # later lags stand in groups of 1/256 of their age
_NEGLIGIBLE = 1e-12
_EQUAL = 1e-9


def energy(view: Decay, steps: Int64) -> Float64:
    r"""Return :math:`\sum_{k < t} g(k)^2` at each t of ``steps``, shape (n,), counted from 1.

    Poles by geometric sums whose terms never cancel.

    Examples:
        >>> energy(Window(3), np.array([1, 2, 10**9]))
        array([1., 2., 3.])
    """
    if isinstance(view, Window):
        return np.minimum(steps, view.steps).astype(np.float64)
    if isinstance(view, Step | Custom):
        squares = np.cumsum(view.taps**2)
        result: Float64 = squares[np.minimum(steps, len(squares)) - 1]
        return result
    gaps, weights = view.poles
    rates = np.log1p(-gaps)
    total = np.zeros(len(steps))
    for i in range(len(gaps)):
        for j in range(len(gaps)):
            rate = rates[i] + rates[j]
            terms = steps if rate == 0 else np.expm1(rate * steps) / np.expm1(rate)
            total += weights[i] * weights[j] * terms
    return total


def worst_energy(view: Decay, horizon: int) -> float:
    """Return the energy that a view is judged by: at the horizon, or in the limit."""
    last = worst_step(view, horizon) or MOST_STEPS
    return float(energy(view, np.array([last]))[0])


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
