r"""Lower bounds: what no factorization mechanism can beat for one decay.

Any factorization ``A = B C`` of the T x T matrix of a decay has
``max_t ||row_t(B)|| max_s ||column_s(C)|| >= ||A||_* / T``, with the nuclear norm (the sum of the
singular values). The bound is the least std of a release, at its worst step, for noise that
protects a change of one unit of one step at mu = 1.

For a decay whose memory ends within the stream, T grows without end and the bound tends to the
mean of ``|f|`` over the unit circle, f the symbol of the decay (Avram and Parter). A running sum,
and every decay whose memory is longer than the horizon, is bounded at the horizon. A stream with a
declared end is bounded there.

Three bounds, each of any factorization mechanism:

=============================  ============================================================
:func:`lower_bound`            one decay, at the step where its view is judged: the end, the
                               horizon, or the limit for ever
:func:`nuclear_bound`          one decay, in a stream that ends after so many steps
:func:`asymptotic_set_bound`   several decays of one measurement, as the stream grows: not a
                               proof for streams shorter than about 100 windows
=============================  ============================================================
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tidegauge.checks import integer
from tidegauge.errors import InvalidParameter
from tidegauge.strategies.decay import (
    Custom,
    Decay,
    Difference,
    Exponential,
    FiniteDecay,
    Polynomial,
    Running,
    Step,
    Window,
)
from tidegauge.strategies.strategy import MOST_STEPS
from tidegauge.strategies.symbols import (
    exponential,
    geometric,
    modes,
    modulus,
    pole_change,
    pole_mean,
    pole_symbol,
    tap_mean,
    window,
    window_change,
)
from tidegauge.strategies.thinned import read_every, thinned

__all__ = [
    "UNKNOWN_HORIZON",
    "asymptotic_set_bound",
    "lower_bound",
    "nuclear_bound",
    "worst_step",
]

Float64 = NDArray[np.float64]

_EXACT_STEPS = 256
_MOST_PHASES = 1 << 17
_PHASES = 4  # of a view that is read at every so many steps, at most
_ROUNDS = 100
_NEAR = 1e-4
_END = "It is the last step of the stream. Give its number, counted from 1."
_HORIZON = "It is the number of steps that accuracy is designed for. Give the stream's length."

UNKNOWN_HORIZON = 1 << 20
"""Steps that accuracy is judged over where nobody says how long a stream runs."""


def worst_step(decay: Decay, horizon: int | None) -> int | None:
    """Return the step, from 1, at which a view's std is judged; None: the limit for ever.

    The std of a view grows with the step. A view whose memory is longer than the horizon is
    judged at the horizon, as a running sum is; every other in the limit.

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


def lower_bound(
    decay: Decay, horizon: int | None = None, end: int | None = None, *, every: int = 1
) -> float:
    r"""Return the least std that any factorization mechanism can reach for one decay, at mu = 1.

    Args:
        decay: The decay of the view.
        horizon: Length of the stream in steps; needed for :class:`Running`, and used for a window
            or half-life that is longer; None: for ever.
        end: The last step of the stream, where one is declared: it is bounded there, whatever the
            horizon. The limit for ever would be no bound, as the noise of the last step has not
            reached its own limit, and a strategy may be made for just so many steps.
        every: The view is read at every n-th step only: the bound is then that of streams with
            events at every n-th step alone, for which only every n-th weight counts. Beyond the
            end, the end is read.

    Returns:
        The bound, in grains, for noise calibrated to one grain in L2 and mu = 1. Relative error
        below 1e-6 (1e-5 for :class:`Custom` and differences); with an end, at most the truth. At
        most a few milliseconds, but for long customs and lags, and up to 0.5 s with an end.

    Raises:
        InvalidParameter: ``decay`` is a running sum and there is neither horizon nor end.

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
    why = "The view is read at every so many steps. Give 1 for each of them."
    integer("every", every, low=1, high=MOST_STEPS, why=why)
    if end is not None:
        return _until(decay, integer("end", end, low=1, high=MOST_STEPS, why=_END), every)
    last = worst_step(decay, horizon)
    if every != 1:
        return read_every(decay, last, every)
    if last is not None:
        return _geometric(decay, last)
    match decay:
        case Difference():
            return _change(decay)
        case Window(steps=steps):
            return window(steps)
        case Exponential(gap=gap, scale=scale):
            return scale * exponential(gap)
        case Polynomial():
            return pole_mean(*decay.poles)
        case Custom():
            return tap_mean(decay.taps)
        case _:
            return 1.0  # a step; a running sum has a last step


def nuclear_bound(decay: Decay, steps: int) -> float:
    r"""Return the least std of any factorization mechanism in a stream of so many steps, mu = 1.

    ``||A||_* / steps``, A the steps x steps matrix of the decay: exact for running sums and
    exponentials, and for every decay up to 256 steps. Beyond, what one unitary matrix certifies,

    .. math:: \|A\|_* \ge \operatorname{tr}(U^T A) = \sum_k (T - k) \, g(k) \, u_k,

    U the Toeplitz matrix of :math:`f / |f|`: below the norm by about the share of the stream that
    the decay's memory takes, and equal to it in the limit.

    Args:
        decay: The decay of the view.
        steps: Length of the stream; 1 to 2^38. Beyond 2^17, what is certified for its first 2^17
            steps, or for as many as a window has: a longer stream has no less noise.

    Raises:
        InvalidParameter: ``steps`` is out of range.

    Cost: below 0.1 s.

    Examples:
        >>> round(nuclear_bound(Window(24), 64), 3), round(lower_bound(Window(24)), 3)
        (2.056, 2.277)
    """
    integer("steps", steps, low=1, high=MOST_STEPS, why="It is the length of the stream.")
    if isinstance(decay, Running) or (isinstance(decay, Window) and decay.steps >= steps):
        return geometric(0.0, steps)
    if isinstance(decay, Exponential):
        return _geometric(decay, steps)
    if steps <= _MOST_PHASES:
        return _nuclear(decay.weights(steps))
    return _leading(decay)


def _geometric(decay: Decay, steps: int) -> float:
    """The norm of an exponential's matrix over its size; of what is as long as that, of ones."""
    if isinstance(decay, Exponential):
        return decay.scale * geometric(decay.gap, steps)
    return geometric(0.0, steps)


def _change(decay: Difference) -> float:
    """Return the mean of ``|1 - z^lag| |f|`` over the circle, f the symbol of what changes."""
    match decay.view:
        case Step():
            return 4 / math.pi
        case Window(steps=steps):
            return window_change(steps, decay.lag)
        case Custom():
            return tap_mean(decay.taps)
        case of:
            return pole_change(*of.poles, decay.lag)


def _nuclear(g: Float64) -> float:
    """The norm of the triangular Toeplitz matrix of weights g over its size, or just below."""
    steps = len(g)
    if steps <= _EXACT_STEPS:
        lags = np.subtract.outer(np.arange(steps), np.arange(steps))
        matrix = np.where(lags >= 0, g[np.abs(lags)], 0.0)
        return float(np.linalg.svd(matrix, compute_uv=False).sum()) / steps
    return _certified(g)


def _until(decay: Decay, end: int, every: int) -> float:
    """The bound in a stream of so many steps, of which every n-th is read.

    Every leading section is a shorter stream, encoded by a part of the columns and decoded by a
    part of the rows: its bound holds for the whole.
    """
    apart = min(every, end)
    read = end // apart
    match decay:
        case Running():
            return geometric(0.0, read)
        case Window(steps=steps):
            seen = -(-steps // apart)  # by the events of the readings' own steps
            full = geometric(0.0, min(seen, read))
            return full if seen >= read else max(full, nuclear_bound(Window(seen), read))
        case Exponential(gap=gap, scale=scale):
            return scale * geometric(thinned(gap, apart), read)
        case Difference(view=view, lag=lag) if apart <= lag < end:
            return max(_until(view, lag, apart), _read_until(decay, end, apart))
        case _:
            return _read_until(decay, end, apart)


def _read_until(decay: Decay, end: int, every: int) -> float:
    """The rows that are read, and the columns of one phase: the phase of the largest norm.

    The i-th reading weighs the j-th event of a phase by ``g(phase + (i - j) every)``; events after
    the last reading are in no row.
    """
    if every == 1:
        return nuclear_bound(decay, end)
    read = max(1, min(end, _MOST_PHASES) // every)
    apart = min(every, _MOST_PHASES)
    phases = np.unique(decay.weights(read * apart).reshape(read, apart).T, axis=0)
    heaviest = np.argsort((phases**2).sum(axis=1))[-_PHASES:]
    return max(_nuclear(phases[phase]) for phase in heaviest)


def _leading(decay: Decay) -> float:
    """The leading section that can be computed, or is a running sum."""
    shorter = _certified(decay.weights(_MOST_PHASES))
    return max(shorter, geometric(0.0, decay.steps)) if isinstance(decay, Window) else shorter


def _certified(g: Float64) -> float:
    """Return tr(U^T A) / steps; U is a section of a unitary circulant matrix, so ||U|| <= 1."""
    steps = len(g)
    symbol = np.fft.rfft(g, 4 * steps)
    modulus = np.abs(symbol)
    unit = np.where(modulus > 0, symbol, 1) / np.where(modulus > 0, modulus, 1)
    u = np.fft.irfft(unit, 4 * steps)[:steps]
    return float(((1 - np.arange(steps) / steps) * g) @ u)


def asymptotic_set_bound(
    views: Sequence[Decay],
    horizon: int | None = None,
    importance: Sequence[float] | None = None,
) -> tuple[float, tuple[float, ...]]:
    r"""Return what the largest ratio of a set of views cannot fall below, asymptotically.

    A view's ratio is its std at its worst step over its own :func:`lower_bound`.

    For shares l_v that sum to 1, every linear mechanism that serves all views by one measurement
    has, with the bound L_v of each view and T steps,

    .. math::
        \max_v \frac{\sigma_v}{L_v} \ge \frac1T \Bigl\| \bigl[\sqrt{l_v} A_v / L_v\bigr]_v
            \Bigr\|_* \to \frac{1}{2\pi} \int \Bigl( \sum_v l_v |f_v|^2 / L_v^2 \Bigr)^{1/2},

    maximised over the shares. A running sum stands for its singular values at the frequencies
    where they lie, which is right only as T grows: of any factorization mechanism, but no proof
    where a stream is shorter than about 100 times the other views' memory.

    Args:
        views: One or more decays.
        horizon: Steps that are designed for; needed for :class:`Running`.
        importance: A positive number a view that its ratio counts by; default: all 1.

    Returns:
        The bound, and the shares that give it: views with a share of 0 do not bind. Any shares
        would give a bound; after 100 rounds it is within about 1e-4 of the largest.

    Raises:
        InvalidParameter: No view, or a running sum without a horizon.

    Cost: 10 ms to 0.5 s.

    Examples:
        >>> bound, shares = asymptotic_set_bound([Running(), Window(24)], 8760)
        >>> round(bound, 2)
        1.14
    """
    asked = tuple(views)
    counts = np.ones(len(asked)) if importance is None else np.array(importance, dtype=float)
    if not asked or counts.shape != (len(asked),) or not (counts > 0).all():
        raise InvalidParameter(
            f"Expected at least one view and a positive importance for each, got {len(asked)} "
            f"views and importance {importance}. A bound is of what is asked. Name the views."
        )
    own = np.array([lower_bound(view, horizon) for view in asked]) / counts
    judged = [last for view in asked if (last := worst_step(view, horizon)) is not None]
    theta, measure = modes(max(judged or [_memory(view) for view in asked]))
    power = np.stack([_power(view, horizon, theta) for view in asked]) / own[:, None] ** 2
    shares = np.full(len(asked), 1 / len(asked))
    for _ in range(_ROUNDS):
        root = np.sqrt(shares @ power)
        bound = float(root @ measure)
        slope = (power / root) @ measure  # twice the gradient; shares @ slope = bound
        if slope.max() <= bound * (1 + 2 * _NEAR):
            break
        shares *= slope**1.5
        shares /= shares.sum()
    return bound, tuple(shares.tolist())


def _memory(decay: Decay) -> int:
    """Modes that a view needs whose bound is the limit: far more than it remembers."""
    match decay:
        case Difference(view=view, lag=lag):
            memory = float(lag + _memory(view) // 64)
        case Window(steps=steps):
            memory = float(steps)
        case Exponential(gap=gap):
            memory = 1 / gap
        case Polynomial():
            memory = 1 / float(decay.poles[0].min())
        case _:
            assert isinstance(decay, FiniteDecay), "a running sum has a last step"
            memory = float(len(decay.taps))
    return min(MOST_STEPS, max(1 << 14, math.ceil(64 * memory)))


def _power(decay: Decay, horizon: int | None, theta: Float64) -> Float64:
    r"""Return \|f\|^2 at each frequency."""
    if worst_step(decay, horizon) is not None and not isinstance(decay, Exponential):
        return 1 / modulus(0.0, theta) ** 2
    match decay:
        case Difference(view=view, lag=lag):
            return np.asarray(4 * np.sin(lag * theta / 2) ** 2 * _power(view, None, theta))
        case Window(steps=steps):
            return (np.sin(steps * theta / 2) / np.sin(theta / 2)) ** 2
        case Exponential(gap=gap, scale=scale):
            return np.asarray((scale / modulus(gap, theta)) ** 2)
        case Polynomial():
            return np.abs(pole_symbol(*decay.poles, theta)) ** 2
        case _:
            assert isinstance(decay, FiniteDecay), "a running sum has a last step"
            points = 1 << max(16, (16 * len(decay.taps) - 1).bit_length())
            grid = np.abs(np.fft.rfft(decay.taps, points)) ** 2
            return np.asarray(np.interp(theta, np.linspace(0, math.pi, len(grid)), grid))
