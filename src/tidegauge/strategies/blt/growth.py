r"""How many buffers a fit takes, and whether a comb: each has to gain 0.5 %."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from tidegauge.strategies.blt.comb_search import CombDemands
from tidegauge.strategies.blt.search import Demands, Solution, geometric_start, solve
from tidegauge.strategies.bounds import lower_bound
from tidegauge.strategies.decay import (
    Custom,
    Decay,
    Difference,
    Exponential,
    FiniteDecay,
    Polynomial,
    Step,
    Window,
)
from tidegauge.strategies.weights import Float64

__all__ = ["FitTarget", "demands_of", "grow", "memory", "written_out"]


_WORTH = math.log(1.005)  # what one more buffer, or a comb, has to gain
_MOST_BUFFERS = 7  # of 8; the eighth would pay only beyond 2^30 steps
_MOST_WEIGHTS = 1 << 13  # of a difference that the search sees as it is
_FIRST_BETA = 0.25
_STEEPNESS = 32  # beta is a number of 32nds


@final
@dataclass(frozen=True)
class FitTarget:
    """A view read at one step; None: in the limit."""

    decay: Decay
    step: int | None
    bound: float


def grow(demands: Demands, memory: float, lag: int = 0) -> Solution:
    """Return the solution with as many buffers as pay, and with a comb if it pays.

    Args:
        demands: The views.
        memory: The longest memory of them, in steps.
        lag: Of the comb; 0: none is tried.
    """
    alone = _alone(demands, memory)
    best = _best(alone)
    if lag:
        combed = _combed(demands, memory, lag, alone)
        if combed.worst < best.worst - _WORTH:
            return combed
    return best


def _alone(demands: Demands, memory: float) -> list[Solution]:
    """Solutions of 1, 2, ... buffers, up to the first that does not pay."""
    found: list[Solution] = []
    for buffers in range(1, _MOST_BUFFERS + 1):
        tried = [
            solve(demands, geometric_start(buffers, memory, top, low))
            for top, low in ((0.0, 1.0), (2.0, 0.5))
        ]
        found.append(min(tried, key=lambda solution: solution.worst))
        if buffers > 1 and not _pays(found[-1], found[-2]):
            break
    return found


def _pays(later: Solution, earlier: Solution) -> bool:
    return later.worst < earlier.worst - _WORTH


def _best(found: list[Solution]) -> Solution:
    """The last that pays."""
    return found[-1] if len(found) < 2 or _pays(found[-1], found[-2]) else found[-2]


def _combed(demands: Demands, memory: float, lag: int, alone: list[Solution]) -> Solution:
    """The same with a comb, from the solutions without; then with its beta rounded."""
    found: list[Solution] = []
    buffers = len(_best(alone).logits) // 2
    while buffers <= _MOST_BUFFERS and (len(found) < 2 or _pays(found[-1], found[-2])):
        if buffers <= len(alone):
            start = alone[buffers - 1].logits
        else:
            start = geometric_start(buffers, memory, 0.0, 1.0)
        found.append(solve(CombDemands(demands, lag), np.r_[start, _FIRST_BETA]))
        buffers += 1
    best = _best(found)
    beta = max(1, round(best.beta * _STEEPNESS)) / _STEEPNESS
    rounded = solve(CombDemands(demands, lag, beta), best.logits)
    return Solution(rounded.logits, rounded.worst, beta)


def memory(target: FitTarget) -> float:
    """Return how many steps a target remembers."""
    if target.step is not None:
        return float(target.step)
    decay = target.decay
    if isinstance(decay, Difference):
        return decay.lag + memory(FitTarget(decay.view, None, 1.0))
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


def written_out(target: FitTarget) -> int:
    """Return the length of a decay that the search takes as a list of weights; 0: it does not."""
    match target.decay:
        case Difference():
            length = math.ceil(4 * memory(target))
            return length if length <= _MOST_WEIGHTS else 0
        case Step() | Custom() as decay:
            return len(decay.taps)
        case _:
            return 0


def demands_of(targets: list[FitTarget], shares: list[float]) -> Demands:
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
            length = written_out(target)
            if length:
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
