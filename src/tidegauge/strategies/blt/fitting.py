r"""The fit: a buffered Toeplitz matrix C for a set of views, as integers.

One measurement serves every view, so C is chosen for all of them: the largest ratio, over the
views, of the std at the view's worst step to that view's own lower bound is made as small as
possible. Buffers are added while one more gains at least 0.5 %. The numbers are then rounded to
the integers that *define* C, and everything reported is computed from those. Plans store them:
a fit is made once.

Method: Dvijotham, McMahan, Pillutla, Steinke and Thakurta, Efficient and near-optimal noise
generation for streaming differential privacy (2404.16706), for the class of C; the set of views,
its closed forms and the start are ours (see :mod:`tidegauge.strategies.blt.search`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from tidegauge.checks import exact, integer, shown
from tidegauge.errors import InvalidParameter
from tidegauge.strategies.blt.buffers import UNIT, checked_buffers
from tidegauge.strategies.blt.patterns import pattern_gain_squared
from tidegauge.strategies.blt.search import (
    Demands,
    Solution,
    geometric_start,
    interlaced,
    residues,
    solve,
)
from tidegauge.strategies.blt.shipped import SHIPPED, SPREAD_OF_HORIZONS
from tidegauge.strategies.blt.variance import variance_gain, variance_limit
from tidegauge.strategies.bounds import lower_bound, worst_step
from tidegauge.strategies.decay import (
    Custom,
    Decay,
    Difference,
    Exponential,
    FiniteDecay,
    Polynomial,
    Running,
    Window,
)
from tidegauge.strategies.strategy import MOST_STEPS

__all__ = ["Fit", "fit"]

Float64 = NDArray[np.float64]

_WORTH = math.log(1.005)  # what one more buffer has to gain
_MOST_BUFFERS = 7  # of 8; the eighth would pay only beyond 2^30 steps
_MOST_VIEWS = 1 << 12
_MOST_WEIGHTS = 1 << 13  # of a difference that the search sees as it is


@final
@dataclass(frozen=True)
class Fit:
    """A fitted C and what it gives to the views that it was fitted for.

    Args:
        gaps: 1 - theta_j, in units of 2^-64, increasing.
        weights: w_j, in units of 2^-64, positive.
        views: The decays, as asked.
        ratios: For each view, the std at its worst step over its lower bound.
        bounds: Those lower bounds, in grains at mu = 1 and one grain of change.
    """

    gaps: tuple[int, ...]
    weights: tuple[int, ...]
    views: tuple[Decay, ...]
    ratios: tuple[float, ...]
    bounds: tuple[float, ...]

    @property
    def worst(self) -> float:
        """The largest ratio."""
        return max(self.ratios)

    @property
    def stds(self) -> tuple[float, ...]:
        """For each view, the std at its worst step, in grains at mu = 1 and one grain of change."""
        return tuple(r * b for r, b in zip(self.ratios, self.bounds, strict=True))


@final
@dataclass(frozen=True)
class _Target:
    """A view read at one step; None: in the limit."""

    decay: Decay
    step: int | None
    bound: float


def fit(
    views: Sequence[Decay],
    horizon: int | None = None,
    *,
    importance: Sequence[float] | None = None,
) -> Fit:
    r"""Return the C that serves all views as evenly, relative to their lower bounds, as can be.

    Args:
        views: One or more decays; a decay may come twice.
        horizon: Steps for which accuracy is designed; None: unknown, and a running sum is read at
            2^10, 2^14, 2^17, 2^20 and 2^24 steps. It does not touch the guarantee.
        importance: One positive number a view; a view of importance 2 has its ratio counted
            twice. Default: all 1.

    Returns:
        The integers that define C, with ratios and bounds computed from them.

    Raises:
        InvalidParameter: No view, something that is not a decay, or a parameter out of range.

    Examples:
        >>> result = fit([Exponential(half_life=24)])
        >>> len(result.gaps), round(result.worst, 3)
        (2, 1.001)

    References:
        Cost: 10-300 ms for up to five views, plus half a second once for importing scipy; no
        scipy for the shipped sets. Deterministic on one machine; round-off may differ elsewhere,
        so store the result.
    """
    asked = _checked_views(views)
    if horizon is not None:
        why = "Accuracy is designed for it. Give the length of the stream, in steps."
        integer("horizon", horizon, low=1, high=MOST_STEPS, why=why)
    shares = _checked_importance(importance, len(asked))
    targets = [_targets(view, horizon) for view in asked]
    shipped = SHIPPED.get(frozenset(asked))
    if horizon is None and shipped and importance is None:
        gaps, weights = shipped
    else:
        merged: dict[_Target, float] = {}
        for group, share in zip(targets, shares, strict=True):
            for target in group:
                merged[target] = max(share, merged.get(target, 0.0))
        gaps, weights = _rounded(_grow(list(merged), list(merged.values())))
    judged = [_judge(gaps, weights, group) for group in targets]
    return Fit(gaps, weights, asked, tuple(r for r, _ in judged), tuple(b for _, b in judged))


def _checked_views(views: Sequence[Decay]) -> tuple[Decay, ...]:
    asked = tuple(views)
    if not 1 <= len(asked) <= _MOST_VIEWS:
        raise InvalidParameter(
            f"Expected 1 to {_MOST_VIEWS} views, got {len(asked)}. A fit serves the views that "
            "it is given. Name the views that will be published."
        )
    for view in asked:
        if not isinstance(view, Decay):
            raise InvalidParameter(
                f"Expected each view to be a decay, got {shown(view)}. It says what is summed. "
                "Use Step(), Running(), Window, Exponential, Polynomial, Custom or Difference."
            )
    return asked


def _checked_importance(importance: Sequence[float] | None, views: int) -> list[float]:
    if importance is None:
        return [1.0] * views
    if len(importance) != views:
        raise InvalidParameter(
            f"Expected one importance a view, got {len(importance)} for {views} views. "
            "They are matched by position. Give one number for each."
        )
    why = "The view's ratio counts that many times. Leave a view out if it does not matter."
    return [float(exact(f"importance[{v}]", i, above=0, why=why)) for v, i in enumerate(importance)]


def _targets(view: Decay, horizon: int | None) -> tuple[_Target, ...]:
    if isinstance(view, Running) and horizon is None:
        return tuple(_Target(view, t, lower_bound(view, t)) for t in SPREAD_OF_HORIZONS)
    return (_Target(view, worst_step(view, horizon), lower_bound(view, horizon)),)


def _judge(
    gaps: tuple[int, ...], weights: tuple[int, ...], targets: Sequence[_Target]
) -> tuple[float, float]:
    """Return the worst ratio over the targets of one view, and the bound there (ties: the last)."""
    column = float(pattern_gain_squared(gaps, weights, events=1, separation=0))
    judged = []
    for target in targets:
        if target.step is None:
            gain = variance_limit(gaps, weights, target.decay)
        else:
            gain = float(variance_gain(gaps, weights, target.decay, np.array(target.step)))
        judged.append((math.sqrt(column * gain) / target.bound, target.bound))
    return max(judged, key=lambda entry: (round(entry[0], 3), entry[1]))


def _grow(targets: list[_Target], shares: list[float]) -> Solution:
    """Add buffers while one more gains at least 0.5 %."""
    demands = _demands(targets, shares)
    memory = max(4.0, *(_memory(target) for target in targets))
    best = Solution(np.zeros(0), math.inf)
    for buffers in range(1, _MOST_BUFFERS + 1):
        tried = [
            solve(demands, geometric_start(buffers, memory, top, low))
            for top, low in ((0.0, 1.0), (2.0, 0.5))
        ]
        better = min(tried, key=lambda solution: solution.worst)
        if buffers > 1 and not better.worst < best.worst - _WORTH:
            break
        best = better
    return best


def _memory(target: _Target) -> float:
    if target.step is not None:
        return float(target.step)
    decay = target.decay
    if isinstance(decay, Difference):
        return decay.lag + _memory(_Target(decay.view, None, 1.0))
    match decay:
        case Window(steps=steps):
            return float(steps)
        case Exponential(gap=gap):
            return 1 / gap
        case Polynomial(c=c, reach=reach):
            return float(reach) if c < 1 else min(float(reach), 64.0)
        case Custom(values=values):
            return float(len(values))
        case _:
            return 1.0


def _demands(targets: list[_Target], shares: list[float]) -> Demands:
    """Sort the targets by the form of their decay.

    A target read at a horizon within its memory is a running sum to the search: exactly so for
    windows, nearly for exponentials (their ratio is still judged exactly). A difference is a short
    list of weights; one too long for that is left to the view that it is of.
    """
    running: list[tuple[float, float]] = []
    windows: list[tuple[float, float]] = []
    poles: list[tuple[Float64, Float64, float]] = []
    finite: list[tuple[Float64, float]] = []
    for target, share in zip(targets, shares, strict=True):
        log_bound = math.log(target.bound / share)
        decay = target.decay
        if isinstance(decay, Difference):
            length = math.ceil(4 * _memory(target))
            if length <= _MOST_WEIGHTS:
                finite.append((_autocorrelation(decay.weights(length)), log_bound))
                continue
            decay = decay.view
            log_bound = math.log(lower_bound(decay) / share)
        if target.step is not None:
            scale = decay.scale if isinstance(decay, Exponential) else 1.0
            running.append((float(target.step), log_bound - math.log(scale)))
        elif isinstance(decay, Window):
            windows.append((float(decay.steps), log_bound))
        elif isinstance(decay, Exponential | Polynomial):
            poles.append((*_shares_of_power(*decay.poles), log_bound))
        else:
            assert isinstance(decay, FiniteDecay), "a running sum has a last step"
            finite.append((_autocorrelation(decay.taps), log_bound))
    lengths = [len(gaps) for gaps, _, _ in poles]
    return Demands(
        running=np.array([steps for steps, _ in running]),
        windows=np.array([steps for steps, _ in windows]),
        gaps=np.concatenate([np.zeros(0), *(gaps for gaps, _, _ in poles)]),
        phi=np.concatenate([np.zeros(0), *(phi for _, phi, _ in poles)]),
        starts=np.cumsum([0, *lengths], dtype=np.int64)[: len(poles)],
        taps=tuple(r for r, _ in finite),
        log_bounds=np.array([entry[-1] for entry in (*running, *windows, *poles, *finite)]),
    )


def _shares_of_power(gaps: Float64, weights: Float64) -> tuple[Float64, Float64]:
    """Return gaps and phi with R_F(n) = sum_i phi_i (1 - gaps_i)^n."""
    pair = gaps[:, None] + gaps - gaps[:, None] * gaps
    return gaps, weights * (weights / pair).sum(axis=1)


def _autocorrelation(taps: Float64) -> Float64:
    n = len(taps)
    power = np.abs(np.fft.rfft(taps, 2 * n)) ** 2
    return np.fft.irfft(power, 2 * n)[:n]


def _rounded(solution: Solution) -> tuple[tuple[int, ...], tuple[int, ...]]:
    poles, ends = interlaced(solution.logits)
    gaps = tuple(max(1, round(float(g) * UNIT)) for g in poles)
    weights = tuple(max(1, round(float(w) * UNIT)) for w in residues(poles, ends))
    assert math.isfinite(solution.worst), "the geometric start is feasible"
    return checked_buffers(gaps, weights)
