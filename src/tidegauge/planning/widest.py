"""How much noise a view has over its steps, and how wide its intervals get at the worst."""

from __future__ import annotations

from functools import lru_cache
from math import inf, sqrt

import numpy as np

from tidegauge.mechanisms.comparison import least_std, worst_gain
from tidegauge.mechanisms.plan import GaugePlan
from tidegauge.strategies.bounds import UNKNOWN_HORIZON
from tidegauge.strategies.decay import Decay
from tidegauge.strategies.strategy import Float64, Int64, Strategy

__all__ = ["last_step", "noise_curve", "ratio_to_bound", "worst_half_width", "worst_std"]

_SCANNED = 1 << 16  # steps looked at one by one
_BINS, _LOOKED = 400, 256  # parts of a curve, and steps looked at in each


def last_step(mechanism: GaugePlan) -> int:
    """Return the step up to which a gauge is judged: the end, the horizon, or 2^20."""
    return mechanism.known_end or mechanism.horizon or UNKNOWN_HORIZON


def worst_half_width(
    mechanism: GaugePlan, decay: Decay, every: int = 1, summed: int = 1
) -> tuple[float, int]:
    """Return the largest half-width of a view's intervals, in grains, and its step, from 1.

    Looked at are the steps up to :func:`last_step` at which the view is published. Where noise
    goes up and down, as that of blocks does, 65,536 of them are looked at one by one; where there
    are more, the width is scaled up to the noise of the worst step.

    Args:
        mechanism: The gauge.
        decay: The view.
        every: It is published at every n-th step; not above the last step.
        summed: Of the sum of so many cells.
    """
    last = last_step(mechanism)
    every = min(every, last)
    step, factor = _worst_step(mechanism.strategy, decay, last, every)
    steps = [step, last // every * every]  # the last one, too: a band may widen with time
    widths = mechanism.half_width(decay, steps, summed)
    widest = int(np.argmax(widths))
    return float(widths[widest]) * factor, steps[widest]


def ratio_to_bound(mechanism: GaugePlan, decay: Decay, every: int = 1) -> float:
    """Return a view's noise at its worst step over the least of any factorization mechanism.

    The least is that of :func:`~tidegauge.mechanisms.comparison.least_std`. Of a view that is read
    at every so many steps, only those count, in the noise and in the bound.
    """
    horizon, end = mechanism.horizon, mechanism.end
    flips = mechanism.flips
    least = least_std(decay, horizon, end, mechanism.cost, mechanism.neighbors, every, flips=flips)
    return worst_std(mechanism, decay, every) / least if least else inf


def worst_std(mechanism: GaugePlan, decay: Decay, every: int) -> float:
    """Return the noise of a view at its worst step, in grains."""
    gain = worst_gain(mechanism.strategy, decay, mechanism.horizon, mechanism.end, every)
    return sqrt(gain) * mechanism.law.std


@lru_cache(maxsize=1024)
def _worst_step(strategy: Strategy, decay: Decay, last: int, every: int) -> tuple[int, float]:
    """The step of most noise, and how much more noise a step that was not looked at may have."""
    whole = last // every
    numbers = np.arange(1, min(whole, _SCANNED) + 1)
    if whole > _SCANNED:
        spread = np.geomspace(_SCANNED, whole, 4096).astype(np.int64)
        numbers = np.unique(np.concatenate([numbers, spread, [whole]]))
    gain = strategy.variance_gain(decay, numbers * every)
    worst = len(gain) - 1 - int(np.argmax(gain[::-1]))
    growing = bool((np.diff(gain) >= -1e-12 * gain[1:]).all())
    factor = 1.0
    if whole > _SCANNED and not growing:
        factor = max(1.0, sqrt(strategy.worst_variance_gain(decay, last) / gain[worst]))
    return int(numbers[worst] * every), factor


def noise_curve(
    mechanism: GaugePlan, decay: Decay, every: int = 1
) -> tuple[Int64, Float64, Float64]:
    """Return the noise of a view over the steps at which it is published.

    The steps up to :func:`last_step` are cut into at most 400 equal parts.

    Returns:
        The last step of each part, from 1, and the least and the largest std in it, in grains; of
        parts longer than 256 steps, of 256 steps: half of them its last.
    """
    last = last_step(mechanism)
    every = min(every, last)
    whole = last // every
    edges = np.unique(np.linspace(0, whole, min(whole, _BINS) + 1).astype(np.int64))
    parts = []
    for first, stop in zip(edges[:-1] + 1, edges[1:], strict=True):
        tail = max(first, stop - _LOOKED // 2 + 1)
        spread = np.linspace(first, tail, _LOOKED // 2).astype(np.int64)
        parts.append(np.unique(np.concatenate([spread, np.arange(tail, stop + 1)])))
    std = mechanism.strategy.noise_std(decay, np.concatenate(parts) * every, mechanism.law.std)
    starts = np.cumsum([0, *(len(part) for part in parts[:-1])])
    return edges[1:] * every, np.minimum.reduceat(std, starts), np.maximum.reduceat(std, starts)
