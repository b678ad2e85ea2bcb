"""Sizes of levels for given views: a short, deterministic search."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from tidegauge.checks import integer, shown
from tidegauge.errors import InvalidParameter
from tidegauge.strategies import study
from tidegauge.strategies.blocks.combinations import Paths, Way, base_of, sum_of
from tidegauge.strategies.blocks.completed import Blocks
from tidegauge.strategies.blocks.opened import OpenBlocks
from tidegauge.strategies.decay import Decay, Running, Window
from tidegauge.strategies.strategy import COORDINATES_PER_STEP, MOST_STEPS

__all__ = ["best_levels", "best_shares"]

_RATIOS = range(2, 34)
_TRIES = 1 << 15  # steps that a candidate is judged by, over all its sums
_MIXED_RATIOS = (3, 4, 5, 7, 8, 9, 11, 13, 15, 17, 19, 23)


def best_levels(
    views: Sequence[Decay],
    bounds: Sequence[float],
    horizon: int,
    *,
    opened: bool = True,
) -> Blocks | OpenBlocks:
    """Return the blocks under Laplace noise whose worst std over the bound, of all views, is least.

    Tried are levels ``1, a, a b, a b^2, ...`` for ratios 2 to 33 (a = b or one further level) and
    a grid of mixed ones; among equals the first, which has the fewest levels.

    Args:
        views: What is asked; sums are planned where ``opened``.
        bounds: For each view the std it is judged against, in any common unit; positive.
        horizon: Steps to design for. The guarantee holds for ever.
        opened: Noise of open blocks may be used: an :class:`OpenBlocks` where it helps.

    Raises:
        InvalidParameter: Views and bounds do not match, a bound is not positive, or the horizon
            is out of range.

    Cost: below a second.

    Examples:
        >>> best_levels([Running()], [1.0], 1 << 16).levels
        (1, 18, 324, 5832)
    """
    why = "Blocks are designed for a number of steps. Give the length of the stream."
    integer("horizon", horizon, low=1, high=MOST_STEPS, why=why)
    if not views or len(views) != len(bounds) or not all(0 < b < math.inf for b in bounds):
        raise InvalidParameter(
            f"Expected a positive bound for each of at least one view, got {len(views)} views and "
            f"bounds {shown(tuple(bounds))}. A design is judged by std over bound. Give for each "
            "view the std it is compared with."
        )
    demands = list(dict.fromkeys(zip(views, (float(bound) for bound in bounds), strict=True)))
    fixed = _filters_worst(demands, horizon)
    sums = [(*found, bound) for view, bound in demands if (found := sum_of(view)) is not None]
    planned = tuple(
        view
        for view in dict.fromkeys(map(base_of, views))
        if isinstance(view, Running | Window) and view != Window(1)
    )
    opened = opened and 0 < len(planned) < COORDINATES_PER_STEP
    room = COORDINATES_PER_STEP - len(planned) * opened
    best = math.inf
    levels: tuple[int, ...] = (1,)
    for candidate in _candidates(horizon):
        if len(candidate) > room:
            break
        cost = len(candidate)
        if cost * fixed < best:
            worst = _sums_worst(candidate, sums, horizon, opened, best / cost)
            ratio = cost * max(fixed, worst)
            if ratio < best * (1 - 1e-12):
                best, levels = ratio, candidate
    if opened and len(levels) > 1:
        return OpenBlocks(levels, planned)
    return Blocks(levels)


_FIRST_RATIOS, _NEXT_RATIOS = (9, 15, 27), (15, 17)
_SHARES = ((60, 40, 24, 20, 15, 15, 12, 12), (15, 10, 6, 5, 5, 3, 3, 3))
"""About (level + 1)^-0.8, of small least common multiple; found by search for a running sum."""


def best_shares(views: Sequence[Decay], targets: Sequence[tuple[Decay, int, float]]) -> OpenBlocks:
    """Return open blocks for a stream of unknown length: larger ones get less of the budget.

    Long sums pay for their own length then, and short ones hardly for the stream's: the shares
    fall with the level. The worst std over the bound, of all targets, is least. Tried are a few
    ratios and shares.

    Args:
        views: What is asked; sums are planned.
        targets: View, number of steps, and the std that its worst up to there is judged against.

    Cost: below a second.

    Examples:
        >>> found = best_shares([Running()], [(Running(), 1 << n, n**1.5) for n in (10, 17, 24)])
        >>> found.levels[:3], found.weights
        ((1, 27, 459), (60, 40, 24, 20, 15, 15))
    """
    longest = max(horizon for _, horizon, _ in targets)
    planned = tuple(
        view
        for view in dict.fromkeys(map(base_of, views))
        if isinstance(view, Running | Window) and view != Window(1)
    )
    best, found = math.inf, None
    for levels, weights in _shared_levels(longest):
        strategy = OpenBlocks(levels, planned[: COORDINATES_PER_STEP - len(levels)], 0, weights)
        worst, charged = 0.0, sum(weights)
        for view, horizon, bound in sorted(targets, key=lambda target: -target[1]):
            gain = strategy.worst_variance_gain(view, horizon)
            worst = max(worst, charged * math.sqrt(gain) / bound)
            if worst >= best:
                break
        if worst < best:
            best, found = worst, strategy
    assert found is not None, "the grid is not empty"
    return found


def _shared_levels(horizon: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Levels and weights to try."""
    for first in reversed(_FIRST_RATIOS):  # the fewest levels first
        for ratio in _NEXT_RATIOS:
            levels = [1, first]
            while levels[-1] * ratio <= 2 * horizon and len(levels) < len(_SHARES[0]):
                levels.append(levels[-1] * ratio)
            for shares in _SHARES:
                yield tuple(levels), shares[: len(levels)]


def _filters_worst(demands: list[tuple[Decay, float]], horizon: int) -> float:
    """Largest std over bound of the views that are no sums, for noise of std 1 a step."""
    last = np.array([horizon])
    filters = [(view, bound) for view, bound in demands if sum_of(view) is None]
    return max(
        (math.sqrt(float(study.energy(view, last)[0])) / bound for view, bound in filters),
        default=0.0,
    )


def _sums_worst(
    levels: tuple[int, ...],
    sums: list[tuple[int, int, float]],
    horizon: int,
    opened: bool,
    enough: float,
) -> float:
    """Largest std over bound of the sums; may stop once it is above ``enough``."""
    worst = 0.0
    for span, lag, bound in sorted(sums):  # the running sum first: its count needs no enumeration
        most = math.ceil((enough * bound) ** 2) if enough < math.inf else 1 << 60
        tries = max(1 << 8, _TRIES // len(sums))
        paths = Paths(levels, Way.OPENED if opened and span != 1 else Way.SIGNED)
        count = paths.worst_price(span, horizon, most, tries, lag)
        worst = max(worst, math.sqrt(count) / bound)
        if worst > enough:
            break
    return worst


def _candidates(horizon: int) -> Iterator[tuple[int, ...]]:
    """Levels to try, the fewest first."""
    found: set[tuple[int, ...]] = {(1,)}
    pairs = {(a, a) for a in _RATIOS} | {(a, b) for a in _MIXED_RATIOS for b in _MIXED_RATIOS}
    for a, b in pairs:
        levels: tuple[int, ...] = (1, a)
        while levels[-1] <= 2 * horizon:
            found.add(levels)
            levels = (*levels, levels[-1] * b)
    yield from sorted(found, key=lambda levels: (len(levels), levels))
