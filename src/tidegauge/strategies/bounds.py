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

from tidegauge.checks import integer
from tidegauge.errors import InvalidParameter
from tidegauge.strategies.change_bounds import change_bound, read_every_bound
from tidegauge.strategies.decay import (
    Custom,
    Decay,
    Difference,
    Exponential,
    Polynomial,
    Running,
    Window,
)
from tidegauge.strategies.strategy import MOST_STEPS
from tidegauge.strategies.symbols import exponential, geometric, pole_mean, tap_mean, window

__all__ = ["UNKNOWN_HORIZON", "lower_bound", "worst_step"]

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


def lower_bound(decay: Decay, horizon: int | None = None, *, every: int = 1) -> float:
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
        every = integer("every", every, low=1, high=MOST_STEPS, why=why)
        return read_every_bound(decay, last, every)
    if last is not None:
        if isinstance(decay, Exponential):
            return decay.scale * geometric(decay.gap, last)
        return geometric(0.0, last)
    match decay:
        case Difference():
            return change_bound(decay)
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
