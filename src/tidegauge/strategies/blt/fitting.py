r"""The fit: a buffered Toeplitz matrix C for a set of views, as integers.

One measurement serves every view, so C is chosen for all of them: the largest ratio, over the
views, of the std at the view's worst step to that view's own lower bound is made as small as
possible. Buffers are added while one more gains at least 0.5 %, and a comb at the shortest window
if that gains as much. The numbers are then rounded to the integers that *define* C, and everything
reported is computed from those. Plans store them: a fit is made once.

Method: Dvijotham, McMahan, Pillutla, Steinke and Thakurta, Efficient and near-optimal noise
generation for streaming differential privacy (2404.16706), for the class of C; the set of views,
its closed forms and the start are ours (see :mod:`tidegauge.strategies.blt.search`).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np

from tidegauge.checks import exact, integer, shown
from tidegauge.errors import InvalidParameter
from tidegauge.strategies.blt.blt import Blt
from tidegauge.strategies.blt.buffers import UNIT, checked_buffers
from tidegauge.strategies.blt.comb import LONGEST_LAG, Comb
from tidegauge.strategies.blt.comb_patterns import comb_pattern_gain_squared
from tidegauge.strategies.blt.growth import FitTarget, demands_of, grow, memory, written_out
from tidegauge.strategies.blt.patterns import pattern_gain_squared
from tidegauge.strategies.blt.search import Solution, interlaced, residues
from tidegauge.strategies.blt.shipped import SHIPPED, SPREAD_OF_HORIZONS
from tidegauge.strategies.blt.variance import Teeth, variance_gain, variance_limit
from tidegauge.strategies.bounds import lower_bound, worst_step
from tidegauge.strategies.decay import Decay, Running, Window
from tidegauge.strategies.strategy import MOST_STEPS

__all__ = ["Fit", "fit"]

_MOST_VIEWS = 1 << 12
_MOST_COMBED = 12  # views; ten of a usual mix gain 0.1 %


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
        comb: ``(beta, lag)`` of a comb before C, if there is one.
    """

    gaps: tuple[int, ...]
    weights: tuple[int, ...]
    views: tuple[Decay, ...]
    ratios: tuple[float, ...]
    bounds: tuple[float, ...]
    comb: Teeth | None = None

    def strategy(self, lattice_bits: int, charged_steps: int = MOST_STEPS) -> Blt | Comb:
        """Return the strategy of the fitted C, on a lattice of so many bits."""
        if self.comb is None:
            return Blt(self.gaps, self.weights, lattice_bits, charged_steps)
        return Comb(self.gaps, self.weights, *self.comb, lattice_bits, charged_steps)

    @property
    def worst(self) -> float:
        """The largest ratio."""
        return max(self.ratios)

    @property
    def stds(self) -> tuple[float, ...]:
        """For each view, the std at its worst step, in grains at mu = 1 and one grain of change."""
        return tuple(r * b for r, b in zip(self.ratios, self.bounds, strict=True))


def fit(
    views: Sequence[Decay],
    horizon: int | None = None,
    *,
    importance: Sequence[float] | None = None,
    longest_lag: int = 2048,
) -> Fit:
    r"""Return the C that serves all views as evenly, relative to their lower bounds, as can be.

    Args:
        views: One or more decays; a decay may come twice.
        horizon: Steps for which accuracy is designed; None: unknown, and a running sum is read at
            2^10, 2^14, 2^17, 2^20 and 2^24 steps. It does not touch the guarantee.
        importance: One positive number a view; a view of importance 2 has its ratio counted
            twice. Default: all 1.
        longest_lag: A comb keeps so many steps at most, 16 bytes a cell each; 0: no comb.

    Returns:
        The integers that define C, with ratios and bounds computed from them.

    Raises:
        InvalidParameter: No view, something that is not a decay, or a parameter out of range.

    Examples:
        >>> from tidegauge.strategies.decay import Exponential
        >>> result = fit([Exponential(half_life=24)])
        >>> len(result.gaps), round(result.worst, 3)
        (2, 1.001)
        >>> fit([Window(24)]).comb
        (Fraction(13, 32), 24)

    References:
        Cost: 10 ms to 1 s for up to five views, plus half a second once for importing scipy; no
        scipy for the shipped sets. Deterministic on one machine; round-off may differ elsewhere,
        so store the result.
    """
    asked = _checked_views(views)
    if horizon is not None:
        why = "Accuracy is designed for it. Give the length of the stream, in steps."
        integer("horizon", horizon, low=1, high=MOST_STEPS, why=why)
    shares = _checked_importance(importance, len(asked))
    targets = [_targets(view, horizon) for view in asked]
    why = "A comb keeps so many totals a cell. Give 0 for none."
    longest_lag = integer("longest_lag", longest_lag, low=0, high=LONGEST_LAG, why=why)
    shipped = SHIPPED.get(frozenset(asked))
    comb: Teeth | None = None
    if horizon is None and shipped and importance is None:
        gaps, weights = shipped
    else:
        merged: dict[FitTarget, float] = {}
        for group, share in zip(targets, shares, strict=True):
            for target in group:
                merged[target] = max(share, merged.get(target, 0.0))
        lag = _shortest_window(merged, longest_lag)
        demands = demands_of(list(merged), list(merged.values()))
        found = grow(demands, max(4.0, *map(memory, merged)), lag)
        gaps, weights = _rounded(found)
        comb = (Fraction(found.beta), lag) if found.beta else None
    judged = [_judge(gaps, weights, comb, group) for group in targets]
    return Fit(gaps, weights, asked, tuple(r for r, _ in judged), tuple(b for _, b in judged), comb)


def _shortest_window(targets: Collection[FitTarget], longest: int) -> int:
    """Return the lag of a comb worth trying; 0: none.

    Written-out weights have to end within the lag. A comb at a single step gains nothing, nor
    does one for many views, where it would take seconds to find that out.
    """
    targets = list(targets)
    if len({target.decay for target in targets}) > _MOST_COMBED:
        return 0
    windows = [t.decay.steps for t in targets if isinstance(t.decay, Window) and t.step is None]
    lag = min((steps for steps in windows if steps > 1), default=0)
    return lag if lag <= longest and max(map(written_out, targets)) <= lag else 0


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


def _targets(view: Decay, horizon: int | None) -> tuple[FitTarget, ...]:
    if isinstance(view, Running) and horizon is None:
        return tuple(FitTarget(view, t, lower_bound(view, t)) for t in SPREAD_OF_HORIZONS)
    return (FitTarget(view, worst_step(view, horizon), lower_bound(view, horizon)),)


def _judge(
    gaps: tuple[int, ...],
    weights: tuple[int, ...],
    comb: Teeth | None,
    targets: Sequence[FitTarget],
) -> tuple[float, float]:
    """Return the worst ratio over the targets of one view, and the bound there (ties: the last)."""
    if comb is None:
        column = float(pattern_gain_squared(gaps, weights, events=1, separation=0))
    else:
        column = float(comb_pattern_gain_squared(gaps, weights, *comb, events=1, separation=0))
    judged = []
    for target in targets:
        if target.step is None:
            gain = variance_limit(gaps, weights, target.decay, comb)
        else:
            at = np.array(target.step)
            gain = float(variance_gain(gaps, weights, target.decay, at, comb))
        judged.append((math.sqrt(column * gain) / target.bound, target.bound))
    return max(judged, key=lambda entry: (round(entry[0], 3), entry[1]))


def _rounded(solution: Solution) -> tuple[tuple[int, ...], tuple[int, ...]]:
    poles, ends = interlaced(solution.logits)
    gaps = tuple(max(1, round(float(g) * UNIT)) for g in poles)
    weights = tuple(max(1, round(float(w) * UNIT)) for w in residues(poles, ends))
    assert math.isfinite(solution.worst), "the geometric start is feasible"
    return checked_buffers(gaps, weights)
