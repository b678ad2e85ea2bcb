"""The noise that reaches a view: its energy where each step is measured, its law in groups."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from tidegauge.strategies.bounds import worst_step
from tidegauge.strategies.decay import Custom, Decay, Difference, Step, Window
from tidegauge.strategies.strategy import MOST_STEPS, Float64, Int64

__all__ = ["energy", "noise_groups", "noise_terms", "worst_energy"]

_SINGLE_LAGS = 1024
_GROUP_GROWTH = 256  # later lags stand in groups of 1/256 of their age
_NEGLIGIBLE = 1e-12
_EQUAL = 1e-9
_ENDLESS = 1 << 62

Energy = Callable[[Int64], Float64]
_Stretch = tuple[int, int, Energy | Float64]  # start, length, and what follows it: see below


def energy(view: Decay, steps: Int64) -> Float64:
    r"""Return :math:`\sum_{k < t} g(k)^2` at each t of ``steps``, shape (n,), counted from 1.

    Poles by geometric sums whose terms never cancel.

    Examples:
        >>> energy(Window(3), np.array([1, 2, 10**9]))
        array([1., 2., 3.])
        >>> energy(Difference(Window(3), 5), np.array([5, 6, 10**9]))
        array([3., 4., 6.])
    """
    total = np.zeros(len(steps))
    for start, length, inside in _stretches(view):
        ages = np.clip(steps - start, 0, length)
        if isinstance(inside, np.ndarray):
            total += np.concatenate([[0.0], np.cumsum(inside**2)])[ages]
        else:
            total += inside(ages)
    return total


def noise_terms(view: Decay, step: int) -> tuple[Float64, Int64]:
    """Return the weights that a view gives to independent noise on each step, and their counts.

    Short lists of weights stand as they are, long ones in the groups of :func:`noise_groups`.

    Args:
        view: The decay.
        step: The step, from 1; at most so many weights.

    Examples:
        >>> noise_terms(Difference(Step(), 5000), 10**6)
        (array([1.]), array([2]))
    """
    found: list[tuple[Float64, Int64]] = []
    for start, length, inside in _stretches(view):
        ages = min(step - start, length)
        if ages > 0 and isinstance(inside, np.ndarray):
            found.append(np.unique(np.abs(inside[:ages]), return_counts=True))
        elif ages > 0:
            assert not isinstance(inside, np.ndarray)
            found.append(noise_groups(inside, ages))
    weights, which = np.unique(np.concatenate([w for w, _ in found]), return_inverse=True)
    counts = np.zeros(len(weights), np.int64)
    np.add.at(counts, which, np.concatenate([c for _, c in found]))
    kept = weights > _NEGLIGIBLE * weights.max()
    return weights[kept], counts[kept]


@lru_cache(maxsize=256)
def _stretches(view: Decay) -> tuple[_Stretch, ...]:
    """Return the weights of a view in stretches: start, length, and weights or summed squares.

    ``(start, length, weights)`` of a short list, or ``(start, length, sum)`` where ``sum(n)`` adds
    the squares of the stretch's first n weights. Between stretches there is nothing.
    """
    match view:
        case Difference(view=Window(steps=steps), lag=lag):
            shorter, longer = sorted((steps, lag))  # beyond the lag, what overlaps is gone
            return (0, shorter, _ones), (longer, shorter, _ones)
        case Difference(view=Step() | Custom() as finite, lag=lag):
            n = len(finite.taps)
            if lag >= n:
                return (0, n, finite.taps), (lag, n, finite.taps)
            return ((0, n + lag, view.taps),)
        case Difference(view=of, lag=lag):
            assert not isinstance(of, Window | Step | Custom)
            gaps, weights = of.poles
            changes = weights * np.expm1(lag * np.log1p(-gaps))  # of each pole in the lag
            return (0, lag, _geometric(gaps, weights)), (lag, _ENDLESS, _geometric(gaps, changes))
        case Window(steps=steps):
            return ((0, steps, _ones),)
        case Step() | Custom():
            return ((0, len(view.taps), view.taps),)
        case _:
            return ((0, _ENDLESS, _geometric(*view.poles)),)


def _ones(ages: Int64) -> Float64:
    return ages.astype(np.float64)


def _geometric(gaps: Float64, weights: Float64) -> Energy:
    rates = np.log1p(-gaps)

    def summed(ages: Int64) -> Float64:
        total = np.zeros(len(ages))
        for i in range(len(gaps)):
            for j in range(len(gaps)):
                rate = rates[i] + rates[j]
                terms = ages if rate == 0 else np.expm1(rate * ages) / np.expm1(rate)
                total += weights[i] * weights[j] * terms
        return total

    return summed


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
