"""Every strategy that may measure a gauge, on its best lattice, with the noise that its cost pays.

Candidates are proved private for the views, the unit and the guarantee; the one is best whose worst
view lies least above its own lower bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from math import ceil, sqrt

import numpy as np

from tidegauge.errors import InvalidParameter, UnsupportedCombination
from tidegauge.mechanisms.comparison import Candidate, Prediction, bound_of, least_std
from tidegauge.mechanisms.plan import NOISE_IN_WORDS, GaugePlan
from tidegauge.mechanisms.request import Request
from tidegauge.noise import gaussian, laplace
from tidegauge.noise.gaussian import RoundedGaussian
from tidegauge.noise.laplace import DiscreteLaplace
from tidegauge.noise.law import Law
from tidegauge.privacy.costs import Cost, GaussianCost, PureCost
from tidegauge.strategies.blocks import Blocks, OpenBlocks, best_levels
from tidegauge.strategies.blt import Blt, Fit, fit
from tidegauge.strategies.bounds import UNKNOWN_HORIZON
from tidegauge.strategies.decay import Decay, Step
from tidegauge.strategies.identity import Identity
from tidegauge.strategies.strategy import Norm, Strategy

__all__ = ["candidates"]

_FINEST, _COARSEST = 40, 20  # bits of the Gaussian lattice below the largest contribution
_SCALE_BITS = 20  # a noise scale is rounded up to a multiple of 2^-20 lattice units
_ROUNDING_ALLOWED = Fraction(1, 500)  # of the sensitivity, for a guarantee that never ends
_OVERFLOW = "its coordinates could overflow 64 bits, or its noise cannot be drawn exactly"
_ROUNDING = "its rounding for ever would cost more than 0.2 % of the noise, and no end is declared"


def _strategies(request: Request, kind: type[Cost]) -> Iterator[tuple[str, Strategy]]:
    """Every strategy that is tried, with its name in words: a new one is added here.

    Each is proved private under noise of this kind; its lattice is chosen afterwards.
    """
    decays = tuple(_decays(request))
    yield "the stream itself", Identity(0)
    if kind is GaussianCost:
        if not all(isinstance(decay, Step) for decay in decays):
            found = _fitted(decays, request.horizon)
            name = f"{len(found.gaps)} buffers fitted to the views"
            yield name, Blt(found.gaps, found.weights, lattice_bits=0)
        return
    bounds, horizon = tuple(_bounds(request)), request.horizon or UNKNOWN_HORIZON
    designs = [_blocks(decays, bounds, horizon, opened) for opened in (True, False)]
    for blocks in dict.fromkeys(designs):
        if len(blocks.levels) > 1:
            opened = ", open ones included" if isinstance(blocks, OpenBlocks) else ""
            *smaller, largest = map(str, blocks.levels)
            yield f"blocks of {', '.join(smaller)} and {largest} steps{opened}", blocks


def candidates(request: Request, cost: Cost) -> Iterator[Candidate]:
    """Yield every strategy with the noise that its cost pays for, or with what is against it.

    Args:
        request: What is asked, checked.
        cost: What the gauge may spend, which also tells the kind of its noise.

    Cost: no data is read and nothing is spent; 10 to 500 ms, most of it the fit.
    """
    kind = type(cost)
    noise = NOISE_IN_WORDS[kind]
    for name, strategy in _strategies(request, kind):
        try:
            funded, law = _funded(strategy, request, cost)
            views = tuple(_predicted(request, funded, law, cost))
            _refuse_blurred(request, views)
        except UnsupportedCombination as reason:
            yield Candidate(name, noise, cost, (), math.inf, None, f"refused: {reason}")
            continue
        made = _plan(request, funded, law, cost)
        yield Candidate(name, noise, cost, views, _score(request, views), made)


@lru_cache(maxsize=64)
def _fitted(decays: tuple[Decay, ...], horizon: int | None) -> Fit:
    """The fit, which depends neither on the budget nor on the unit."""
    return fit(decays, horizon)


@lru_cache(maxsize=64)
def _blocks(
    decays: tuple[Decay, ...], bounds: tuple[float, ...], horizon: int, opened: bool
) -> Blocks | OpenBlocks:
    return best_levels(decays, bounds, horizon, opened=opened)


def _plan(request: Request, strategy: Strategy, law: Law, cost: Cost) -> GaugePlan:
    return GaugePlan(
        views=request.views,
        cells=request.cells,
        scalar=request.scalar,
        guarantee=request.guarantee,
        cost=cost,
        neighbors=request.neighbors,
        strategy=strategy,
        law=law,
        max_per_step=request.max_per_step,
        horizon=request.horizon,
        end=request.end,
        level=request.level,
        band=request.band,
    )


def _predicted(request: Request, strategy: Strategy, law: Law, cost: Cost) -> Iterator[Prediction]:
    """The std of each view at its worst step, published views first, and its lower bound."""
    horizon = request.horizon or UNKNOWN_HORIZON
    published = [decay for _, decay in request.views]
    later = [decay for decay in dict.fromkeys(request.anticipate) if decay not in published]
    named = [*request.views, *((decay.name, decay) for decay in later)]
    for number, (name, decay) in enumerate(named):
        std = sqrt(_worst_gain(strategy, decay, horizon)) * law.std
        least = least_std(decay, horizon, cost, request.neighbors)
        yield Prediction(name, decay, number < len(published), std, least)


@lru_cache(maxsize=1024)
def _worst_gain(strategy: Strategy, decay: Decay, horizon: int) -> float:
    return strategy.worst_variance_gain(decay, horizon)


def _score(request: Request, views: Sequence[Prediction]) -> float:
    """The largest noise over its bound with the weight taken out: noise falls as its root."""
    ratio = max(view.worst_std / bound_of(view.decay, request.horizon) for view in views)
    return ratio * sqrt(request.budget_weight) / request.neighbors.largest


def _decays(request: Request) -> list[Decay]:
    """What is designed for: the views and what is anticipated, each once."""
    decays = [decay for _, decay in request.views]
    return list(dict.fromkeys([*decays, *request.anticipate]))


def _bounds(request: Request) -> list[float]:
    return [bound_of(decay, request.horizon) for decay in _decays(request)]


def _refuse_blurred(request: Request, views: Sequence[Prediction]) -> None:
    """Refuse where double precision of the largest value is not small beside the noise."""
    steps = min(request.horizon or UNKNOWN_HORIZON, UNKNOWN_HORIZON)
    for view in views:
        largest = request.max_per_step * float(np.abs(view.decay.weights(steps)).sum())
        if largest * 2.0**-53 > view.worst_std / 100:
            raise UnsupportedCombination("double precision could not hold its largest values")


def _funded(strategy: Strategy, request: Request, cost: Cost) -> tuple[Strategy, Law]:
    """The strategy on its best lattice, with the noise that the cost pays for.

    Raises:
        UnsupportedCombination: There is none; the message is the reason.
    """
    if isinstance(cost, PureCost):
        scale = _rounded_up(strategy.sensitivity(Norm.L1, request.neighbors) / cost.epsilon)
        fits = laplace.LEAST_SCALE <= scale <= laplace.LARGEST_SCALE
        if not fits or strategy.largest_total < request.max_per_step:
            raise UnsupportedCombination(_OVERFLOW)
        return strategy, DiscreteLaplace(scale)
    assert isinstance(strategy, Blt | Identity)
    found = _finest(strategy, request, cost)
    if isinstance(strategy, Identity):
        if found is None:
            raise UnsupportedCombination(_OVERFLOW)
        return found
    if found is not None and _rounding_share(found[0], request) <= _ROUNDING_ALLOWED:
        return found
    if request.end is None:  # the rounding of 2^38 steps would cost too much on so coarse a lattice
        raise UnsupportedCombination(_OVERFLOW if found is None else _ROUNDING)
    found = _finest(replace(strategy, charged_steps=request.end), request, cost)
    if found is None:
        raise UnsupportedCombination(_OVERFLOW)
    return found


def _finest(
    strategy: Blt | Identity, request: Request, cost: GaussianCost
) -> tuple[Strategy, Law] | None:
    """The finest lattice that its integers allow, and rounded Gaussian noise on it."""
    coarse = (request.neighbors.largest - 1).bit_length()
    for bits in range(_FINEST, _COARSEST - 1, -1):
        if bits < coarse and isinstance(strategy, Identity):
            break  # totals are whole grains: no coarser lattice holds them
        try:
            trial = replace(strategy, lattice_bits=bits - coarse)
        except InvalidParameter:  # not even a total of 1 fits so fine a lattice
            continue
        if trial.largest_total < request.max_per_step:
            continue
        scale = _rounded_up(trial.sensitivity(Norm.L2, request.neighbors) / cost.mu)
        if gaussian.LEAST_SCALE <= scale <= gaussian.LARGEST_SCALE:
            return trial, RoundedGaussian(scale)
    return None


def _rounding_share(strategy: Strategy, request: Request) -> Fraction:
    """Which part of the sensitivity pays for rounding over the charged steps."""
    if not isinstance(strategy, Blt):
        return Fraction(0)
    whole = strategy.sensitivity(Norm.L2, request.neighbors)
    single = replace(strategy, charged_steps=1).sensitivity(Norm.L2, request.neighbors)
    return (whole - single) / single


def _rounded_up(scale: Fraction) -> Fraction:
    return Fraction(ceil(scale * (1 << _SCALE_BITS)), 1 << _SCALE_BITS)
