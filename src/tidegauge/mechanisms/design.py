"""From what a user asks to the plan of one gauge; reads no data.

Every strategy that is proved private for the views, the unit and the guarantee is a candidate; the
one whose worst view lies least above its own lower bound is taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from math import ceil, sqrt

from tidegauge.errors import UnsupportedCombination
from tidegauge.mechanisms.plan import GaugePlan
from tidegauge.mechanisms.request import Request
from tidegauge.noise.gaussian import LARGEST_SCALE, LEAST_SCALE, RoundedGaussian
from tidegauge.noise.laplace import DiscreteLaplace
from tidegauge.noise.law import Law
from tidegauge.privacy.costs import Cost, GaussianCost, PureCost
from tidegauge.privacy.guarantee import ApproxDP, PureDP
from tidegauge.privacy.ledger import Ledger
from tidegauge.strategies.blocks import best_levels
from tidegauge.strategies.blt import Blt
from tidegauge.strategies.bounds import lower_bound
from tidegauge.strategies.decay import Step
from tidegauge.strategies.fit import fit
from tidegauge.strategies.identity import Identity
from tidegauge.strategies.strategy import Norm, Strategy

__all__ = ["design"]

_FINEST, _COARSEST = 40, 20  # bits of the Gaussian lattice below the largest contribution
_SCALE_BITS = 20  # a noise scale is rounded up to a multiple of 2^-20 lattice units
_ROUNDING_ALLOWED = Fraction(1, 500)  # of the sensitivity, for a guarantee that never ends
_UNKNOWN_HORIZON = 1 << 20  # where a running sum is judged if nobody says how long it runs

Candidate = tuple[Strategy, Law, Cost]


def design(request: Request) -> GaugePlan:
    """Return the plan with the least noise, relative to what any factorization could reach.

    Args:
        request: What is asked, checked.

    Raises:
        UnsupportedCombination: No candidate is proved for the request, or its declared numbers
            could overflow.

    Cost: no data is read and nothing is spent; 10 to 500 ms, most of it the fit.
    """
    horizon = request.horizon or _UNKNOWN_HORIZON
    bounds = [lower_bound(decay, horizon) for _, decay in request.views]
    best: tuple[float, Candidate] | None = None
    for strategy, law, cost in _candidates(request, bounds):
        ratio = max(
            sqrt(strategy.worst_variance_gain(decay, horizon)) * law.std / bound
            for (_, decay), bound in zip(request.views, bounds, strict=True)
        )
        if best is None or ratio < best[0]:
            best = ratio, (strategy, law, cost)
    if best is None:
        raise UnsupportedCombination(
            f"Expected numbers that fit 64-bit integers, got max_per_step={request.max_per_step} "
            f"with max_change={request.neighbors.largest}. Coordinates could overflow. "
            "Lower max_per_step, measure in coarser grains, or declare an end."
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
    )


def _candidates(request: Request, bounds: list[float]) -> Iterator[Candidate]:
    """Every proved combination of strategy and noise: all Gaussian, or all pure; never mixed."""
    ledger = Ledger(request.guarantee)
    if not isinstance(request.guarantee, PureDP):
        (gaussian,) = ledger.split([1], GaussianCost)
        found = _gaussian(request, gaussian)
        if found is not None:
            yield found
    if isinstance(request.guarantee, PureDP | ApproxDP):
        (pure,) = ledger.split([1], PureCost)
        yield from _pure(request, pure, bounds)


def _gaussian(request: Request, cost: GaussianCost) -> Candidate | None:
    """The fitted correlated noise, on the finest lattice that its integers allow."""
    if all(isinstance(decay, Step) for _, decay in request.views):
        return _finest(Identity(0), request, cost)
    decays = list(dict.fromkeys(decay for _, decay in request.views))
    fitted = fit(decays, request.horizon)
    blt = Blt(fitted.gaps, fitted.weights, lattice_bits=0, charged_steps=1 << 40)
    candidate = _finest(blt, request, cost)
    if candidate is not None and _rounding_share(candidate[0], request) > _ROUNDING_ALLOWED:
        candidate = None  # the rounding of 2^40 steps would cost too much on so coarse a lattice
    if candidate is None and request.end is not None:
        candidate = _finest(replace(blt, charged_steps=request.end), request, cost)
    return candidate


def _finest(strategy: Blt | Identity, request: Request, cost: GaussianCost) -> Candidate | None:
    coarse = (request.neighbors.largest - 1).bit_length()
    for bits in range(_FINEST, _COARSEST - 1, -1):
        trial = replace(strategy, lattice_bits=bits - coarse)
        if trial.largest_total < request.max_per_step:
            continue
        scale = _rounded_up(trial.sensitivity(Norm.L2, request.neighbors) / cost.mu)
        if LEAST_SCALE <= scale <= LARGEST_SCALE:
            return trial, RoundedGaussian(scale), cost
    return None


def _rounding_share(strategy: Strategy, request: Request) -> Fraction:
    """Which part of the sensitivity pays for rounding over the charged steps."""
    if not isinstance(strategy, Blt):
        return Fraction(0)
    whole = strategy.sensitivity(Norm.L2, request.neighbors)
    single = replace(strategy, charged_steps=1).sensitivity(Norm.L2, request.neighbors)
    return (whole - single) / single


def _pure(request: Request, cost: PureCost, bounds: list[float]) -> Iterator[Candidate]:
    """Noise on each step, and the best blocks, with and without open ones."""
    decays = [decay for _, decay in request.views]
    strategies: list[Strategy] = [Identity(0)]
    strategies += [
        best_levels(decays, bounds, request.horizon, opened=opened) for opened in (True, False)
    ]
    for strategy in strategies:
        if strategy.largest_total >= request.max_per_step:
            scale = strategy.sensitivity(Norm.L1, request.neighbors) / cost.epsilon
            yield strategy, DiscreteLaplace(_rounded_up(scale)), cost


def _rounded_up(scale: Fraction) -> Fraction:
    return Fraction(ceil(scale * (1 << _SCALE_BITS)), 1 << _SCALE_BITS)
