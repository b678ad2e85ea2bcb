"""The bound of a view that is read at every so many steps only.

Take streams with events at every n-th step alone: for those, only every n-th weight of the decay
counts, and what they need, every stream needs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tidegauge.strategies.decay import (
    Custom,
    Decay,
    Difference,
    Exponential,
    Polynomial,
    Running,
    Step,
    Window,
)
from tidegauge.strategies.symbols import (
    exponential,
    geometric,
    pole_change,
    pole_mean,
    tap_mean,
    window,
    window_change,
)

__all__ = ["read_every", "thinned"]

Float64 = NDArray[np.float64]

_MOST_THINNED = 1 << 18


def read_every(decay: Decay, last: int | None, every: int) -> float:
    """Return the bound for reading at t = every, 2 every, ...: that of g(0), g(every), ...

    Args:
        decay: Of the view.
        last: The step at which its noise is judged; None: the limit.
        every: It is read at every so many steps.
    """
    match decay:
        case Running() | Window() if last is not None:
            return geometric(0.0, max(1, last // every))
        case Window(steps=steps):
            return window(-(-steps // every))
        case Exponential(scale=scale):
            gap = thinned(decay.gap, every)
            if last is not None:
                return scale * geometric(gap, max(1, last // every))
            return scale * exponential(gap)
        case Polynomial():
            gaps, weights = decay.poles
            return pole_mean(_thinned(gaps, every), weights)
        case Custom():
            return _thinned_taps(decay.taps, every)
        case Difference():
            return _change_every(decay, every)
        case _:
            return 1.0


def _change_every(decay: Difference, every: int) -> float:
    """The same of a difference, whose lag may fall between two readings."""
    lag, aligned = decay.lag, decay.lag % every == 0
    match decay.view:
        case Step() | Custom():
            return _thinned_taps(decay.taps, every)
        case Window(steps=steps) if aligned:
            return window_change(-(-steps // every), lag // every)
        case Window(steps=steps) if steps + lag <= _MOST_THINNED:
            return _thinned_taps(decay.weights(steps + lag), every)
        case Exponential() | Polynomial() as of if aligned:
            gaps, weights = of.poles
            return pole_change(_thinned(gaps, every), weights, lag // every)
        case _:
            return float(decay.weights(1)[0])  # a release has the noise of its own step at least


def thinned(gap: float, every: int) -> float:
    """Return the gap of every n-th weight of one pole."""
    return gap if every == 1 else float(-np.expm1(every * np.log1p(-gap)))


def _thinned(gaps: Float64, every: int) -> Float64:
    """Return the gaps of every n-th weight."""
    return np.asarray(-np.expm1(every * np.log1p(-gaps)))


def _thinned_taps(taps: Float64, every: int) -> float:
    """Return the bound of every n-th weight."""
    return tap_mean(_heaviest(taps, every))


def _heaviest(taps: Float64, every: int) -> Float64:
    """Return every n-th weight, from where their squares add up to most."""
    energy = np.zeros(-(-len(taps) // every) * every)
    energy[: len(taps)] = taps**2
    return taps[int(energy.reshape(-1, every).sum(axis=0).argmax()) :: every]
