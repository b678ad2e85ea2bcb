"""From what a user asks to the plan of one gauge; reads no data.

Every strategy that is proved private for the views, the unit and the guarantee is a candidate; the
one whose worst view lies least above its own lower bound is taken. A view's importance counts its
ratio so many times.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from math import ceil, sqrt

import numpy as np

from tidegauge.errors import InvalidParameter, UnsupportedCombination
from tidegauge.mechanisms.plan import GaugePlan
from tidegauge.mechanisms.request import Request
from tidegauge.noise import gaussian, laplace
from tidegauge.noise.gaussian import RoundedGaussian
from tidegauge.noise.laplace import DiscreteLaplace
from tidegauge.noise.law import Law
from tidegauge.privacy.costs import Cost, GaussianCost, PureCost
from tidegauge.privacy.guarantee import ApproxDP, PureDP
from tidegauge.privacy.ledger import Ledger
from tidegauge.strategies.blocks import best_levels
from tidegauge.strategies.blt import Blt, Comb, Fit, fit
from tidegauge.strategies.bounds import UNKNOWN_HORIZON, lower_bound
from tidegauge.strategies.decay import Decay, Step
from tidegauge.strategies.identity import Identity
from tidegauge.strategies.strategy import Norm, Strategy

__all__ = ["design", "worst_ratio"]

_FINEST, _COARSEST = 40, 20  # bits of the Gaussian lattice below the largest contribution
_SCALE_BITS = 20  # a noise scale is rounded up to a multiple of 2^-20 lattice units
_ROUNDING_ALLOWED = Fraction(1, 500)  # of the sensitivity, for a guarantee that never ends
_LONGEST_LAG = 2048  # of a comb, in steps
_COMB_MEMORY = 1 << 28  # bytes of all its totals and increments: 16 a cell and step of its lag

Candidate = tuple[Strategy, Law, Cost]


def design(request: Request) -> GaugePlan:
    """Return the plan with the least noise, relative to what any factorization could reach.

    Args:
        request: What is asked, checked.

    Raises:
        UnsupportedCombination: No candidate is proved for the request, or its declared numbers
            could overflow.

    Cost: no data is read and nothing is spent; 10 ms to 1 s, most of it the fit.
    """
    bounds = _bounds(request)
    best: tuple[float, Candidate] | None = None
    for strategy, law, cost in _candidates(request, bounds):
        stds = _worst_stds(request, strategy, law)
        if any(
            _blurred(std, decay, request) for std, decay in zip(stds, _decays(request), strict=True)
        ):
            continue
        ratio = max(std / bound for std, bound in zip(stds, bounds, strict=True))
        if best is None or ratio < best[0]:
            best = ratio, (strategy, law, cost)
    if best is None:
        raise UnsupportedCombination(
            f"Expected numbers that 64 bits can hold, got max_per_step={request.max_per_step}, "
            f"max_change={request.neighbors.largest}, horizon={request.horizon}, "
            f"end={request.end}. Coordinates could overflow, or their rounding for ever would cost "
            "more than 0.2 % of the noise. Lower max_per_step, measure in coarser grains, design "
            "for a shorter horizon, or declare an end."
        )
    strategy, law, cost = best[1]
    Ledger(request.guarantee).charge({"gauge": cost})
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


def worst_ratio(request: Request, plan: GaugePlan) -> float:
    """Return the largest noise_std over its view's lower bound at mu = 1, in events of one grain.

    Each ratio is multiplied by the view's importance.
    It compares plans of one request, whatever their noise and their share of the guarantee.
    """
    stds = _worst_stds(request, plan.strategy, plan.law)
    return max(std / bound for std, bound in zip(stds, _bounds(request), strict=True))


def _decays(request: Request) -> list[Decay]:
    """What is designed for: the views and what is anticipated, each once."""
    decays = [decay for _, decay in request.views]
    return list(dict.fromkeys([*decays, *request.anticipate]))


def _importance(request: Request) -> list[float]:
    """How many times the ratio of each decay counts: as that of its most important view."""
    given = dict(request.importance)
    counted = dict.fromkeys(_decays(request), 0.0)
    for name, decay in request.views:
        counted[decay] = max(counted[decay], given.get(name, 1.0))
    return [count or 1.0 for count in counted.values()]


def _bounds(request: Request) -> list[float]:
    """The lower bound of each decay over its importance."""
    horizon = request.horizon or UNKNOWN_HORIZON
    pairs = zip(_decays(request), _importance(request), strict=True)
    return [lower_bound(decay, horizon) / times for decay, times in pairs]


def _worst_stds(request: Request, strategy: Strategy, law: Law) -> list[float]:
    """The std of each decay at its worst step."""
    horizon = request.horizon or UNKNOWN_HORIZON
    gains = [strategy.worst_variance_gain(decay, horizon) for decay in _decays(request)]
    return [sqrt(gain) * law.std for gain in gains]


def _blurred(std: float, decay: Decay, request: Request) -> bool:
    """Whether double precision of the largest possible value is not small beside the noise."""
    steps = min(request.horizon or UNKNOWN_HORIZON, UNKNOWN_HORIZON)
    largest = request.max_per_step * float(np.abs(decay.weights(steps)).sum())
    return largest * 2.0**-53 > std / 100


def _candidates(request: Request, bounds: list[float]) -> Iterator[Candidate]:
    """Every proved combination of strategy and noise: all Gaussian, or all pure; never mixed."""
    for cost in _costs(request):
        if isinstance(cost, PureCost):
            yield from _pure(request, cost, bounds)
        else:
            yield from _gaussian(request, cost)


def _costs(request: Request) -> Iterator[Cost]:
    """What may be spent: the share, or the whole guarantee by noise of each kind."""
    if request.share is not None:
        yield request.share
        return
    ledger = Ledger(request.guarantee)
    if not isinstance(request.guarantee, PureDP):
        yield from ledger.split([1], GaussianCost)
    if isinstance(request.guarantee, PureDP | ApproxDP):
        yield from ledger.split([1], PureCost)


def _gaussian(request: Request, cost: GaussianCost) -> Iterator[Candidate]:
    """The fitted correlated noise, on the finest lattice that its integers allow."""
    if all(isinstance(decay, Step) for decay in _decays(request)):
        candidate = _finest(Identity(0), request, cost)
        if candidate is not None:
            yield candidate
        return
    for fitted in _fits(request):
        strategy = fitted.strategy(lattice_bits=0)
        candidate = _finest(strategy, request, cost)
        if candidate is not None and _rounding_share(candidate[0], request) > _ROUNDING_ALLOWED:
            candidate = (
                None  # the rounding of 2^38 steps would cost too much on so coarse a lattice
            )
        if candidate is None and request.end is not None:
            candidate = _finest(replace(strategy, charged_steps=request.end), request, cost)
        if candidate is not None:
            yield candidate
            unit = request.neighbors.unit
            if unit.max_events == 1 or unit.min_separation == 0:
                return  # a comb lowers the noise of these as it does in the fit


def _fits(request: Request) -> Iterator[Fit]:
    """The fit, with a comb if that pays and its memory fits; then, if there is one, without."""
    importance = _importance(request)
    longest = min(_LONGEST_LAG, _COMB_MEMORY // (16 * request.neighbors.cells))
    for longest_lag in (longest, 0):
        fitted = fit(
            _decays(request),
            request.horizon,
            importance=None if set(importance) == {1.0} else importance,
            longest_lag=longest_lag,
        )
        yield fitted
        if fitted.comb is None:
            return


def _finest(
    strategy: Blt | Comb | Identity, request: Request, cost: GaussianCost
) -> Candidate | None:
    growth = strategy.beta.denominator if isinstance(strategy, Comb) else 1
    coarse = (request.neighbors.largest * growth - 1).bit_length()
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
            return trial, RoundedGaussian(scale), cost
    return None


def _rounding_share(strategy: Strategy, request: Request) -> Fraction:
    """Which part of the sensitivity pays for rounding over the charged steps."""
    if not isinstance(strategy, Blt | Comb):
        return Fraction(0)
    whole = strategy.sensitivity(Norm.L2, request.neighbors)
    single = replace(strategy, charged_steps=1).sensitivity(Norm.L2, request.neighbors)
    return (whole - single) / single


def _pure(request: Request, cost: PureCost, bounds: list[float]) -> Iterator[Candidate]:
    """Noise on each step, and the best blocks, with and without open ones."""
    decays = _decays(request)
    strategies: list[Strategy] = [Identity(0)]
    horizon = request.horizon or UNKNOWN_HORIZON
    strategies += [best_levels(decays, bounds, horizon, opened=opened) for opened in (True, False)]
    for strategy in strategies:
        scale = _rounded_up(strategy.sensitivity(Norm.L1, request.neighbors) / cost.epsilon)
        fits = laplace.LEAST_SCALE <= scale <= laplace.LARGEST_SCALE
        if fits and strategy.largest_total >= request.max_per_step:
            yield strategy, DiscreteLaplace(scale), cost


def _rounded_up(scale: Fraction) -> Fraction:
    return Fraction(ceil(scale * (1 << _SCALE_BITS)), 1 << _SCALE_BITS)
