r"""Lower bounds: what no factorization mechanism can beat for one decay.

Any factorization ``A = B C`` of the T x T matrix of a decay has
``max_t ||row_t(B)|| max_s ||column_s(C)|| >= ||A||_* / T``, with the nuclear norm (the sum of the
singular values). The bound is the least std of a release, at its worst step, for noise that
protects a change of one unit of one step at mu = 1.

For a decay whose memory ends within the stream, T grows without end and the bound tends to the
mean of ``|f|`` over the unit circle, f the symbol of the decay (Avram and Parter). A running sum,
and every decay whose memory is longer than the horizon, is bounded at the horizon.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tidegauge.checks import integer
from tidegauge.errors import InvalidParameter
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
from tidegauge.strategies.strategy import MOST_STEPS

__all__ = ["UNKNOWN_HORIZON", "lower_bound", "worst_step"]

Float64 = NDArray[np.float64]

_EXACT_MODES = 4096
_SERIES = 4096
_DOUBLE_SERIES = 256
_PERIODS = 2048
_FAR_APART = 100
_MOST_THINNED = 1 << 18
_HORIZON = "It is the number of steps that accuracy is designed for. Give the stream's length."

UNKNOWN_HORIZON = 1 << 20
"""Steps that accuracy is judged over where nobody says how long a stream runs."""


def worst_step(decay: Decay, horizon: int | None) -> int | None:
    """Return the step, from 1, at which a view's std is judged; None: the limit for ever.

    The std of a view grows with the step. A view whose memory is longer than the horizon is
    judged at the horizon, as a running sum is; every other, and every difference, in the limit.

    Raises:
        InvalidParameter: A running sum without a horizon has no limit.

    Examples:
        >>> worst_step(Window(24), 8760), worst_step(Window(10_000), 8760)
        (None, 8760)
    """
    if horizon is None:
        if isinstance(decay, Running):
            raise InvalidParameter(
                "Expected a horizon for Running(), got horizon=None. The noise of a running sum "
                "grows for ever and has no bound. Give the number of steps."
            )
        return None
    steps = integer("horizon", horizon, low=1, high=MOST_STEPS, why=_HORIZON)
    match decay:
        case Running():
            return steps
        case Window(steps=length):
            return steps if length >= steps else None
        case Exponential(gap=gap):
            return steps if gap * steps < 1 else None
        case _:
            return None


def lower_bound(decay: Decay, horizon: int | None = None, every: int = 1) -> float:
    r"""Return the least std that any factorization mechanism can reach for one decay, at mu = 1.

    Args:
        decay: The decay of the view.
        horizon: Length of the stream in steps; needed for :class:`Running`, and used for a window
            or half-life that is longer; None: for ever.
        every: The view is read at every n-th step only: the bound is then that of streams with
            events at every n-th step alone, for which only every n-th weight counts.

    Returns:
        The bound, in grains, for noise calibrated to one grain in L2 and mu = 1. Relative error
        below 1e-6 (1e-5 for :class:`Custom` and differences). At most a few milliseconds, but for
        long customs and lags.

    Raises:
        InvalidParameter: ``decay`` is a running sum and there is no horizon.

    Examples:
        >>> round(lower_bound(Running(), 1 << 16), 3)
        4.232
        >>> round(lower_bound(Window(256)), 3)
        3.237
        >>> round(lower_bound(Window(24), every=24), 6)  # each event is read once
        1.0

    References:
        Henzinger, Upadhyay and Upadhyay, A unifying framework for differentially private sums
        under continual observation; Avram (1988) and Parter (1986) on singular values.
    """
    last = worst_step(decay, horizon)
    if every != 1:
        why = "The view is read at every so many steps. Give 1 for each of them."
        return _read_every(decay, last, integer("every", every, low=1, high=MOST_STEPS, why=why))
    if last is not None:
        if isinstance(decay, Exponential):
            return decay.scale * _geometric(decay.gap, last)
        return _geometric(0.0, last)
    match decay:
        case Difference():
            return _change(decay)
        case Window(steps=steps):
            return _window(steps)
        case Exponential(gap=gap, scale=scale):
            return scale * _exponential(gap)
        case Polynomial():
            return _pole_mean(*decay.poles)
        case Custom():
            return _tap_mean(decay.taps)
        case _:
            return 1.0  # a step; a running sum has a last step


def _read_every(decay: Decay, last: int | None, every: int) -> float:
    """Return the bound for reading at t = every, 2 every, ...: that of g(0), g(every), ..."""
    match decay:
        case Running() | Window() if last is not None:
            return _geometric(0.0, max(1, last // every))
        case Window(steps=steps):
            return _window(-(-steps // every))
        case Exponential(scale=scale):
            gap = float(_thinned(decay.poles[0], every)[0])
            if last is not None:
                return scale * _geometric(gap, max(1, last // every))
            return scale * _exponential(gap)
        case Polynomial():
            gaps, weights = decay.poles
            return _pole_mean(_thinned(gaps, every), weights)
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
    return _tap_mean(taps[int(energy.reshape(-1, every).sum(axis=0).argmax()) :: every])


def _geometric(gap: float, steps: int) -> float:
    r"""Return ``||A||_* / steps`` for g(k) = a^k, a = 1 - gap, at a finite number of steps.

    A^{-1} = I - a Z has the singular values |e^{i theta_j} - a| where
    steps * theta_j + arg(e^{i theta_j} - a) = j pi, j = 1..steps. The first modes are summed;
    the rest, where neighbours hardly differ, is an integral over j.
    """
    first = min(steps, _EXACT_MODES)
    j = np.arange(1.0, first + 1)
    total = float((1 / _modulus(gap, _angles(gap, steps, j))).sum())
    if steps > first:
        low, high = _angles(gap, steps, np.array([first + 0.5, steps + 0.5]))
        theta, measure = _panels(np.geomspace(low, high, 40))
        size = _modulus(gap, theta)
        density = (steps + (gap + 2 * (1 - gap) * np.sin(theta / 2) ** 2) / size**2) / math.pi
        total += float((density / size) @ measure)
    return total / steps


def _modulus(gap: float, theta: Float64) -> Float64:
    return np.hypot(gap, 2 * math.sqrt(1 - gap) * np.sin(theta / 2))


def _angles(gap: float, steps: int, j: Float64) -> Float64:
    if gap == 0:
        return (2 * j - 1) * (math.pi / (2 * steps + 1))
    low, high = (j - 1) * (math.pi / steps), np.minimum(j * (math.pi / steps), math.pi)
    for _ in range(60):
        middle = (low + high) / 2
        phase = np.arctan2(np.sin(middle), gap - 2 * np.sin(middle / 2) ** 2)
        below = steps * middle + phase < j * math.pi
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return (low + high) / 2


def _exponential(gap: float) -> float:
    """Return (2 / pi) K(a^2) by the arithmetic-geometric mean: 1 / agm(1, sqrt(1 - a^2))."""
    a, b = 1.0, math.sqrt(gap * (2 - gap))
    while a - b > 1e-15 * a:
        a, b = (a + b) / 2, math.sqrt(a * b)
    return 1 / a


def _window(steps: int) -> float:
    r"""Return the mean of |sin(W t / 2) / sin(t / 2)| by a series without quadrature.

    (16 / pi^2) sum_k H(k W) / (4 k^2 - 1), H(m) = 1 + 1/3 + ... + 1/(2m-1): the Fourier series
    of |sin| integrated term by term. The tail is an integral.
    """
    k = np.arange(1.0, _SERIES + 1)
    edge = _SERIES + 0.5
    tail = (math.log(4 * edge * steps) + np.euler_gamma + 1) / (8 * edge)
    return 16 / math.pi**2 * (float((_odd_harmonic(k * steps) / (4 * k * k - 1)).sum()) + tail)


def _odd_harmonic(m: Float64) -> Float64:
    """Return 1 + 1/3 + ... + 1/(2m-1); beyond 64 by the expansion of digamma(m + 1/2)."""
    table = np.r_[0.0, np.cumsum(1 / np.arange(1.0, 128, 2))]
    far = np.maximum(m, 64.0)
    inverse = 1 / (far * far)
    series = inverse / 24 - 7 * inverse**2 / 960 + 31 * inverse**3 / 8064
    large = 0.5 * (np.log(4 * far) + np.euler_gamma + series)
    return np.asarray(np.where(m <= 64, table[np.minimum(m, 64).astype(np.int64)], large))


def _pole_mean(gaps: Float64, weights: Float64) -> float:
    """Return the mean of |sum_j weights_j / (1 - (1 - gaps_j) e^(i t))| over the circle."""
    theta, measure = _panels(np.r_[0.0, np.geomspace(1e-3 * gaps.min(), math.pi, 160)])
    return float(_pole_symbol(theta, gaps, weights) @ measure) / math.pi


def _pole_symbol(theta: Float64, gaps: Float64, weights: Float64) -> Float64:
    near = 2 * np.sin(theta / 2) ** 2 - 1j * np.sin(theta)  # 1 - e^(i t), without cancellation
    return np.asarray(np.abs((weights / (gaps + (1 - gaps) * near[:, None])).sum(axis=1)))


def _tap_mean(taps: Float64) -> float:
    """Return the mean of |sum_k taps_k e^(i k t)|, from a grid far finer than its oscillation.

    |f| has a kink at each zero on the circle, so the error falls with the square of the spacing;
    a second grid of double spacing takes its leading term away.
    """
    points = 1 << min(max((256 * len(taps) - 1).bit_length(), 16), 22)
    size = np.abs(np.fft.rfft(taps, points))
    fine = float(2 * size.sum() - size[0] - size[-1]) / points
    coarse = float(2 * size[::2].sum() - size[0] - size[-1]) / (points // 2)
    return (4 * fine - coarse) / 3


def _panels(edges: Float64) -> tuple[Float64, Float64]:
    """Return nodes and weights of Gauss-Legendre quadrature, 12 a panel."""
    x, weight = np.polynomial.legendre.leggauss(12)
    middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
    return (middle[:, None] + half[:, None] * x).ravel(), (half[:, None] * weight).ravel()


def _change(decay: Difference) -> float:
    """Return the mean of |1 - z^lag| |f| over the circle, f the symbol of the view that changes."""
    match decay.view:
        case Step():
            return 4 / math.pi
        case Window(steps=steps):
            return _window_change(steps, decay.lag)
        case Custom():
            return _tap_mean(decay.taps)
        case of:
            return _pole_change(*of.poles, decay.lag)


def _window_change(steps: int, lag: int) -> float:
    r"""Return the mean of 2 |sin(L t / 2) sin(W t / 2) / sin(t / 2)| by a double series.

    Both factors by the Fourier series of |sin|, with coefficients a_j, term by term as in
    :func:`_window`: ``-(4 / pi) sum_jk a_j a_k (H(jL + kW) + H(|jL - kW|))``. What is left out
    falls with the square of the number of terms; half of them take its leading part away. If one
    length is a hundred times the other, the faster factor counts with its mean.
    """
    shorter, longer = sorted((steps, lag))
    if longer >= _FAR_APART * shorter:
        return 4 / math.pi * _window(shorter)
    j = np.arange(_DOUBLE_SERIES + 1.0)
    a = np.where(j == 0, 2 / math.pi, -4 / (math.pi * (4 * j * j - 1)))
    one, other = j[:, None] * lag, j * steps
    terms = np.outer(a, a) * (_odd_harmonic(one + other) + _odd_harmonic(np.abs(one - other)))
    half = _DOUBLE_SERIES // 2 + 1
    return -4 / math.pi * float(4 * terms.sum() - terms[:half, :half].sum()) / 3


def _pole_change(gaps: Float64, weights: Float64, lag: int) -> float:
    """Return the mean of 2 |sin(lag t / 2)| |f|, f smooth.

    Period by period near 0, where f is steep; from there with the mean of |sin| over a period.
    """
    near = np.arange(0.0, min(lag // 2, _PERIODS) + 1) * (2 * math.pi / lag)
    edge = near[-1] if lag // 2 > _PERIODS else math.pi
    steep = np.geomspace(1e-3 * gaps.min(), math.pi, 160)
    theta, measure = _panels(np.unique(np.r_[near, steep[steep < edge], edge]))
    wave = 2 * np.abs(np.sin(lag * theta / 2))
    total = float((wave * _pole_symbol(theta, gaps, weights)) @ measure)
    if edge < math.pi:
        theta, measure = _panels(np.geomspace(edge, math.pi, 40))
        total += 4 / math.pi * float(_pole_symbol(theta, gaps, weights) @ measure)
    return total / math.pi
