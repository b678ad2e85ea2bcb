"""A strategy on its best lattice, with the noise that a cost pays for."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from math import ceil

from tidegauge.errors import InvalidParameter, UnsupportedCombination
from tidegauge.mechanisms.request import Request
from tidegauge.noise import gaussian, laplace
from tidegauge.noise.gaussian import RoundedGaussian
from tidegauge.noise.laplace import DiscreteLaplace
from tidegauge.noise.law import Law
from tidegauge.noise.response import BitFlips
from tidegauge.privacy.costs import Cost, GaussianCost, PureCost
from tidegauge.strategies.blt import Blt, Comb, NormalisedBlt
from tidegauge.strategies.decayed import DecayedTree
from tidegauge.strategies.dense import DenseToeplitz, square_root_strategy
from tidegauge.strategies.distinct import Shaped
from tidegauge.strategies.identity import Identity
from tidegauge.strategies.rescaled import EVENTS_ONCE, serves_rescaled
from tidegauge.strategies.responses import Responses
from tidegauge.strategies.strategy import Norm, Strategy

__all__ = ["DENSE_BITS", "funded"]

_FINEST, _COARSEST = 40, 20  # bits of the Gaussian lattice below the largest contribution
_SCALE_BITS = 20  # a noise scale is rounded up to a multiple of 2^-20 lattice units
_ROUNDING_ALLOWED = Fraction(1, 500)  # of the sensitivity, for a guarantee that never ends
DENSE_BITS = (30, 24, 20, 16, 12)  # of the largest coefficient
_TREE_BITS = (30, 28, 26, 24, 22, 20, 18, 16, 14)  # of the weights of a tree of decayed sums
_OVERFLOW = "its coordinates could overflow 64 bits, or its noise cannot be drawn exactly"
_ROUNDING = "its rounding for ever would cost more than 0.2 % of the noise, and no end is declared"


def funded(strategy: Strategy, request: Request, cost: Cost) -> tuple[Strategy, Law]:
    """Return the strategy on its best lattice, with the noise that the cost pays for.

    Raises:
        UnsupportedCombination: There is none; the message is the reason.
    """
    if isinstance(strategy, DecayedTree):
        return _tree(strategy, request, cost)
    if isinstance(cost, PureCost):
        return _laplace(strategy, request, cost)
    if isinstance(strategy, DenseToeplitz):
        return _dense(strategy, request, cost)
    if not isinstance(strategy, Blt | Comb | NormalisedBlt | Identity | Shaped):
        return _as_it_is(strategy, request, cost)
    found = _finest(strategy, request, cost)
    if isinstance(strategy, Identity | NormalisedBlt):
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


def _tree(strategy: DecayedTree, request: Request, cost: Cost) -> tuple[Strategy, Law]:
    """The finest weights that leave room for the declared totals and the noise."""
    for bits in _TREE_BITS:
        try:
            trial = replace(strategy, lattice_bits=bits)
        except InvalidParameter:  # not even a total of 1 fits so fine a lattice
            continue
        with suppress(UnsupportedCombination):
            if isinstance(cost, GaussianCost):
                return _as_it_is(trial, request, cost)
            return _laplace(trial, request, cost)
    raise UnsupportedCombination(_OVERFLOW)


def _flipped(strategy: Responses, request: Request, cost: PureCost) -> tuple[Strategy, Law]:
    """Bits whose flips cost 1/scale for each that can change."""
    scale = strategy.sensitivity(Norm.L1, request.neighbors) / cost.epsilon
    try:
        return Responses(scale), BitFlips(scale)
    except InvalidParameter:
        raise UnsupportedCombination(
            "its flips are pure, and take an epsilon of 2^-20 to 32 for each bit that can change"
        ) from None


def _laplace(strategy: Strategy, request: Request, cost: PureCost) -> tuple[Strategy, Law]:
    """Discrete Laplace noise on the lattice that the strategy has; of responses, their flips."""
    if isinstance(strategy, Responses):
        return _flipped(strategy, request, cost)
    scale = _rounded_up(strategy.sensitivity(Norm.L1, request.neighbors) / cost.epsilon)
    fits = laplace.LEAST_SCALE <= scale <= laplace.LARGEST_SCALE
    if not fits or strategy.largest_total < request.max_per_step:
        raise UnsupportedCombination(_OVERFLOW)
    return strategy, DiscreteLaplace(scale)


def _as_it_is(strategy: Strategy, request: Request, cost: GaussianCost) -> tuple[Strategy, Law]:
    """Rounded Gaussian noise on the lattice that the strategy's builder chose."""
    scale = _rounded_up(strategy.sensitivity(Norm.L2, request.neighbors) / cost.mu)
    fits = gaussian.LEAST_SCALE <= scale <= gaussian.LARGEST_SCALE
    if not fits or strategy.largest_total < request.max_per_step:
        raise UnsupportedCombination(_OVERFLOW)
    return strategy, RoundedGaussian(scale)


def _finest(
    strategy: Blt | Comb | NormalisedBlt | Identity | Shaped, request: Request, cost: GaussianCost
) -> tuple[Strategy, Law] | None:
    """The finest lattice that its integers allow, and rounded Gaussian noise on it."""
    growth = strategy.beta.denominator if isinstance(strategy, Comb) else 1
    coarse = (request.neighbors.largest * growth - 1).bit_length()
    for bits in range(_FINEST, _COARSEST - 1, -1):
        if bits < coarse and isinstance(strategy, Identity):
            break  # totals are whole grains: no coarser lattice holds them
        try:
            trial = replace(strategy, lattice_bits=bits - coarse)
        except InvalidParameter:  # not even a total of 1 fits so fine a lattice
            continue
        if trial.largest_total < request.max_per_step or not _has_room(trial, request):
            continue
        scale = _rounded_up(trial.sensitivity(Norm.L2, request.neighbors) / cost.mu)
        if gaussian.LEAST_SCALE <= scale <= gaussian.LARGEST_SCALE:
            return trial, RoundedGaussian(scale)
    return None


def _has_room(strategy: Strategy, request: Request) -> bool:
    """Whether what waits for a first factor can be counted at one step, if anything waits."""
    if not request.rescaled or not serves_rescaled(strategy):
        return True
    room = strategy.largest_once(request.max_per_step)
    return room >= EVENTS_ONCE * request.neighbors.largest


def _dense(strategy: DenseToeplitz, request: Request, cost: GaussianCost) -> tuple[Strategy, Law]:
    """The longest integers that leave room for the declared totals."""
    decay, end = request.views[0][1], len(strategy.coefficients)
    for bits in DENSE_BITS:
        trial = square_root_strategy(decay, end, bits)
        scale = _rounded_up(trial.sensitivity(Norm.L2, request.neighbors) / cost.mu)
        fits = gaussian.LEAST_SCALE <= scale <= gaussian.LARGEST_SCALE
        if fits and trial.largest_total >= request.max_per_step:
            return trial, RoundedGaussian(scale)
    raise UnsupportedCombination(_OVERFLOW)


def _rounding_share(strategy: Strategy, request: Request) -> Fraction:
    """Which part of the sensitivity pays for rounding over the charged steps."""
    if not isinstance(strategy, Blt | Comb | Shaped):
        return Fraction(0)
    whole = strategy.sensitivity(Norm.L2, request.neighbors)
    single = replace(strategy, charged_steps=1).sensitivity(Norm.L2, request.neighbors)
    return (whole - single) / single


def _rounded_up(scale: Fraction) -> Fraction:
    return Fraction(ceil(scale * (1 << _SCALE_BITS)), 1 << _SCALE_BITS)
