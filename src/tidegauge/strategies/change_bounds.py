"""Bounds of differences, and of views that are read at every n-th step only."""

from __future__ import annotations

import math

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
    odd_harmonic,
    panels,
    pole_mean,
    pole_symbol,
    tap_mean,
    window,
)

__all__ = ["change_bound", "read_every_bound"]

Float64 = NDArray[np.float64]

_DOUBLE_SERIES = 256
_PERIODS = 2048
_FAR_APART = 100
_MOST_THINNED = 1 << 18


def read_every_bound(decay: Decay, last: int | None, every: int) -> float:
    """Return the bound for reading at t = every, 2 every, ...: that of g(0), g(every), ..."""
    match decay:
        case Running() | Window() if last is not None:
            return geometric(0.0, max(1, last // every))
        case Window(steps=steps):
            return window(-(-steps // every))
        case Exponential(scale=scale):
            gap = float(_thinned(decay.poles[0], every)[0])
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
            return _window_change(-(-steps // every), lag // every)
        case Window(steps=steps) if steps + lag <= _MOST_THINNED:
            return _thinned_taps(decay.weights(steps + lag), every)
        case Exponential() | Polynomial() as of if aligned:
            gaps, weights = of.poles
            return _pole_change(_thinned(gaps, every), weights, lag // every)
        case _:
            return float(decay.weights(1)[0])  # a release has the noise of its own step at least


def _thinned(gaps: Float64, every: int) -> Float64:
    """Return the gaps of every n-th weight."""
    return np.asarray(-np.expm1(every * np.log1p(-gaps)))


def _thinned_taps(taps: Float64, every: int) -> float:
    """Return the bound of every n-th weight, from where their squares add up to most."""
    energy = np.zeros(-(-len(taps) // every) * every)
    energy[: len(taps)] = taps**2
    return tap_mean(taps[int(energy.reshape(-1, every).sum(axis=0).argmax()) :: every])


def change_bound(decay: Difference) -> float:
    """Return the mean of |1 - z^lag| |f| over the circle, f the symbol of the view that changes."""
    match decay.view:
        case Step():
            return 4 / math.pi
        case Window(steps=steps):
            return _window_change(steps, decay.lag)
        case Custom():
            return tap_mean(decay.taps)
        case of:
            return _pole_change(*of.poles, decay.lag)


def _window_change(steps: int, lag: int) -> float:
    r"""Return the mean of 2 |sin(L t / 2) sin(W t / 2) / sin(t / 2)| by a double series.

    Both factors by the Fourier series of |sin|, with coefficients a_j, term by term as a window's
    bound: ``-(4 / pi) sum_jk a_j a_k (H(jL + kW) + H(|jL - kW|))``. What is left out falls with
    the square of the number of terms; half of them take its leading part away. If one length is a
    hundred times the other, the faster factor counts with its mean.
    """
    shorter, longer = sorted((steps, lag))
    if longer >= _FAR_APART * shorter:
        return 4 / math.pi * window(shorter)
    j = np.arange(_DOUBLE_SERIES + 1.0)
    a = np.where(j == 0, 2 / math.pi, -4 / (math.pi * (4 * j * j - 1)))
    one, other = j[:, None] * lag, j * steps
    terms = np.outer(a, a) * (odd_harmonic(one + other) + odd_harmonic(np.abs(one - other)))
    half = _DOUBLE_SERIES // 2 + 1
    return -4 / math.pi * float(4 * terms.sum() - terms[:half, :half].sum()) / 3


def _pole_change(gaps: Float64, weights: Float64, lag: int) -> float:
    """Return the mean of 2 |sin(lag t / 2)| |f|, f smooth.

    Period by period near 0, where f is steep; from there with the mean of |sin| over a period.
    """
    near = np.arange(0.0, min(lag // 2, _PERIODS) + 1) * (2 * math.pi / lag)
    edge = near[-1] if lag // 2 > _PERIODS else math.pi
    steep = np.geomspace(1e-3 * gaps.min(), math.pi, 160)
    theta, measure = panels(np.unique(np.r_[near, steep[steep < edge], edge]))
    wave = 2 * np.abs(np.sin(lag * theta / 2))
    total = float((wave * np.abs(pole_symbol(gaps, weights, theta))) @ measure)
    if edge < math.pi:
        theta, measure = panels(np.geomspace(edge, math.pi, 40))
        total += 4 / math.pi * float(np.abs(pole_symbol(gaps, weights, theta)) @ measure)
    return total / math.pi
