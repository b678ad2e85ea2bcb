"""Every strategy that may measure a gauge, on its best lattice, with the noise that its cost pays.

Candidates are proved private for the views, the unit and the guarantee; the one is best whose worst
view lies least above its own lower bound. A view's importance counts its ratio so many times.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from math import ceil, sqrt

import numpy as np

from tidegauge.errors import InvalidParameter, UnsupportedCombination
from tidegauge.mechanisms.comparison import Candidate, Prediction, bound_of, least_std, worst_gain
from tidegauge.mechanisms.plan import NOISE_IN_WORDS, GaugePlan
from tidegauge.mechanisms.request import Request
from tidegauge.noise import gaussian, laplace
from tidegauge.noise.gaussian import RoundedGaussian
from tidegauge.noise.laplace import DiscreteLaplace
from tidegauge.noise.law import Law
from tidegauge.privacy.costs import Cost, GaussianCost, PureCost
from tidegauge.strategies import dense
from tidegauge.strategies.blocks import Blocks, OpenBlocks, best_levels, best_shares
from tidegauge.strategies.blt import Blt, Comb, Fit, NormalisedBlt, fit, fit_normalised, normalised
from tidegauge.strategies.blt.shipped import SPREAD_OF_HORIZONS
from tidegauge.strategies.bounds import UNKNOWN_HORIZON, worst_step
from tidegauge.strategies.decay import Decay, Difference, Running, Step, Window
from tidegauge.strategies.dense import DenseToeplitz, square_root_strategy
from tidegauge.strategies.identity import Identity
from tidegauge.strategies.named import NAMED, Asked, ByName, named_strategy
from tidegauge.strategies.strategy import Norm, Strategy

__all__ = ["candidates"]

_FINEST, _COARSEST = 40, 20  # bits of the Gaussian lattice below the largest contribution
_SCALE_BITS = 20  # a noise scale is rounded up to a multiple of 2^-20 lattice units
_ROUNDING_ALLOWED = Fraction(1, 500)  # of the sensitivity, for a guarantee that never ends
_DENSE_HANDICAP = 1 / 0.99  # a dense strategy keeps the whole stream in memory: for 1 % or more
_DENSE_BITS = (30, 24, 20, 16, 12)  # of the largest coefficient
_LONGEST_LAG = 2048  # of a comb, in steps
_COMB_MEMORY = 1 << 28  # bytes of all its totals and increments: 16 a cell and step of its lag
_OVERFLOW = "its coordinates could overflow 64 bits, or its noise cannot be drawn exactly"
_ROUNDING = "its rounding for ever would cost more than 0.2 % of the noise, and no end is declared"


def _strategies(request: Request, kind: type[Cost]) -> Iterator[tuple[str, Strategy]]:
    """Every strategy that is tried, with its name in words: a new one is added here.

    Each is proved private under noise of this kind; its lattice is chosen afterwards.
    """
    decays = tuple(_decays(request))
    norm = Norm.L2 if kind is GaussianCost else Norm.L1
    asked = Asked(decays, norm, request.max_per_step, request.horizon, request.end)
    if request.strategy is not None:
        yield NAMED[request.strategy.name].words, named_strategy(request.strategy, asked)
        return
    yield "the stream itself", Identity(0)
    yield from _of_papers(asked)
    if kind is GaussianCost:
        if not all(isinstance(decay, Step) for decay in decays):
            for found in _fits(request, decays):
                comb = f" behind a comb of {found.comb[1]} steps" if found.comb else ""
                name = f"{len(found.gaps)} buffers fitted to the views{comb}"
                yield name, found.strategy(lattice_bits=0)
        yield from _short(request, decays)
        return
    bounds, horizon = tuple(_bounds(request)), request.horizon or UNKNOWN_HORIZON
    designs = [_blocks(decays, bounds, horizon, opened) for opened in (True, False)]
    for blocks in dict.fromkeys(designs):
        if len(blocks.levels) > 1:
            opened = ", open ones included" if isinstance(blocks, OpenBlocks) else ""
            *smaller, largest = map(str, blocks.levels)
            yield f"blocks of {', '.join(smaller)} and {largest} steps{opened}", blocks
    targets = tuple((decay, *at) for decay in decays for at in _judged_at(request, decay, kind))
    if len(targets) > len(decays):
        shared = _shared(decays, targets)
        *smaller, largest = map(str, shared.levels)
        yield f"blocks of {', '.join(smaller)} and {largest} steps, for any length", shared


def _judged_at(request: Request, decay: Decay, kind: type[Cost]) -> Iterator[tuple[int, float]]:
    """The numbers of steps that a view is judged at, with the bound on its worst std up to there.

    One, but where the length is unknown and the view never forgets, under pure epsilon: blocks of
    so many levels serve one length best. Their error grows as log^1.5 of it and the bound as log,
    so that bound alone would judge by the longest stream.
    """
    horizon, spread = request.horizon or UNKNOWN_HORIZON, SPREAD_OF_HORIZONS
    known = request.horizon is not None or request.end is not None
    if known or kind is not PureCost or worst_step(decay, spread[-1]) is None:
        yield horizon, bound_of(decay, request.horizon, request.end)
        return
    for steps in spread:
        slower = sqrt(math.log(steps) / math.log(UNKNOWN_HORIZON))
        yield steps, bound_of(decay, steps, None) * slower


def _of_papers(asked: Asked) -> Iterator[tuple[str, Strategy]]:
    """The papers' own strategies that serve what is asked."""
    for name, entry in NAMED.items():
        if entry.offered:
            with suppress(UnsupportedCombination):  # asked for by nobody: passed over in silence
                yield entry.words, named_strategy(ByName(name), asked)


def _short(request: Request, decays: tuple[Decay, ...]) -> Iterator[tuple[str, Strategy]]:
    """Strategies for the one view of a stream with an end, made for just so many steps."""
    end = request.end
    if end is None or len(decays) > 1 or isinstance(decays[0], Step):
        return
    if not isinstance(decays[0], Running):
        if end <= dense.LONGEST:
            name = f"a dense Toeplitz encoding of {end} steps, all kept in memory"
            yield name, square_root_strategy(decays[0], end, _DENSE_BITS[0])
    elif end <= normalised.LONGEST:
        made = fit_normalised(end)
        yield f"{len(made.gaps)} buffers with multipliers for {end} steps", made


def candidates(request: Request, cost: Cost) -> Iterator[Candidate]:
    """Yield every strategy with the noise that its cost pays for, or with what is against it.

    Args:
        request: What is asked, checked.
        cost: What the gauge may spend, which also tells the kind of its noise.

    Cost: no data is read and nothing is spent; 10 to 500 ms, most of it the fit.
    """
    kind = type(cost)
    noise = NOISE_IN_WORDS[kind]
    try:
        tried = list(_strategies(request, kind))
    except UnsupportedCombination as reason:  # of the one that was asked for by name
        assert request.strategy is not None, "no other builder refuses"
        name = NAMED[request.strategy.name].words
        yield Candidate(name, noise, cost, (), math.inf, None, f"refused: {reason}")
        return
    for name, strategy in tried:
        try:
            funded, law = _funded(strategy, request, cost)
            views = tuple(_predicted(request, funded, law, cost))
            _refuse_blurred(request, views)
        except UnsupportedCombination as reason:
            yield Candidate(name, noise, cost, (), math.inf, None, f"refused: {reason}")
            continue
        made = _plan(request, funded, law, cost)
        handicap = _DENSE_HANDICAP if isinstance(funded, DenseToeplitz) else 1.0
        score = _score(request, made)
        yield Candidate(name, noise, cost, views, score, made, handicap=handicap)


def _fits(request: Request, decays: tuple[Decay, ...]) -> Iterator[Fit]:
    """The fit, with a comb if that pays and its memory fits; then, if there is one, without."""
    longest = min(_LONGEST_LAG, _COMB_MEMORY // (16 * request.neighbors.cells))
    in_sight = tuple(_in_sight(decay, request.horizon) for decay in decays)
    found = _fitted(in_sight, request.horizon, _importance(request), longest)
    yield found
    if found.comb is not None:
        yield _fitted(in_sight, request.horizon, _importance(request), 0)


def _in_sight(decay: Decay, horizon: int | None) -> Decay:
    """Take a memory beyond every horizon that is designed for as what it is there: endless.

    Fitted as it is, it would need gaps so small that their rounding could not be paid for. The
    change of what is endless there is a window, and before its lag the view itself.
    """
    longest = horizon or SPREAD_OF_HORIZONS[-1]
    match decay:
        case Difference(view=view, lag=lag) if worst_step(view, longest):
            return Window(lag) if lag < longest else _in_sight(view, horizon)
        case _:
            return Running() if horizon is None and worst_step(decay, longest) else decay


@lru_cache(maxsize=64)
def _fitted(
    decays: tuple[Decay, ...], horizon: int | None, importance: tuple[float, ...], longest_lag: int
) -> Fit:
    """The fit, which depends neither on the budget nor on the unit."""
    counted = None if set(importance) == {1.0} else importance
    return fit(decays, horizon, importance=counted, longest_lag=longest_lag)


@lru_cache(maxsize=64)
def _blocks(
    decays: tuple[Decay, ...], bounds: tuple[float, ...], horizon: int, opened: bool
) -> Blocks | OpenBlocks:
    return best_levels(decays, bounds, horizon, opened=opened)


@lru_cache(maxsize=64)
def _shared(decays: tuple[Decay, ...], targets: tuple[tuple[Decay, int, float], ...]) -> OpenBlocks:
    return best_shares(decays, targets)


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
    views = list(_views(request))
    for number, (name, decay, every, _) in enumerate(views):
        published = number < len(request.views)
        std = sqrt(worst_gain(strategy, decay, request.horizon, request.end, every)) * law.std
        least = least_std(decay, request.horizon, request.end, cost, request.neighbors, every)
        yield Prediction(name, decay, published, std, least)


def _score(request: Request, made: GaugePlan) -> float:
    """The largest noise over its bound with the weight taken out: noise falls as its root.

    Of each step, also where a view is read at some of them: accuracy does not depend on when.
    """
    ratio = max(
        importance * sqrt(worst_gain(made.strategy, decay, steps, request.end)) / bound
        for _, decay, _, importance in _views(request)
        for steps, bound in _judged_at(request, decay, type(made.cost))
    )
    return ratio * made.law.std * sqrt(request.budget_weight) / request.neighbors.largest


def _views(request: Request) -> Iterator[tuple[str, Decay, int, float]]:
    """Name, decay, every how many steps and importance: the views, then what is anticipated."""
    every, given = dict(request.every), dict(request.importance)
    for name, decay in request.views:
        yield name, decay, every.get(name, 1), given.get(name, 1.0)
    published = {decay for _, decay in request.views}
    for decay in dict.fromkeys(request.anticipate):
        if decay not in published:
            yield decay.name, decay, 1, 1.0


def _decays(request: Request) -> list[Decay]:
    """What is designed for: the views and what is anticipated, each once."""
    decays = [decay for _, decay in request.views]
    return list(dict.fromkeys([*decays, *request.anticipate]))


def _importance(request: Request) -> tuple[float, ...]:
    """How many times the ratio of each decay counts: as that of its most important view."""
    given = dict(request.importance)
    counted = dict.fromkeys(_decays(request), 0.0)
    for name, decay in request.views:
        counted[decay] = max(counted[decay], given.get(name, 1.0))
    return tuple(count or 1.0 for count in counted.values())


def _bounds(request: Request) -> list[float]:
    """The lower bound of each decay over its importance."""
    pairs = zip(_decays(request), _importance(request), strict=True)
    return [bound_of(decay, request.horizon, request.end) / times for decay, times in pairs]


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
    if isinstance(strategy, DenseToeplitz):
        return _dense(strategy, request, cost)
    if not isinstance(strategy, Blt | Comb | NormalisedBlt | Identity):
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


def _as_it_is(strategy: Strategy, request: Request, cost: GaussianCost) -> tuple[Strategy, Law]:
    """Rounded Gaussian noise on the lattice that the strategy's builder chose."""
    scale = _rounded_up(strategy.sensitivity(Norm.L2, request.neighbors) / cost.mu)
    fits = gaussian.LEAST_SCALE <= scale <= gaussian.LARGEST_SCALE
    if not fits or strategy.largest_total < request.max_per_step:
        raise UnsupportedCombination(_OVERFLOW)
    return strategy, RoundedGaussian(scale)


def _finest(
    strategy: Blt | Comb | NormalisedBlt | Identity, request: Request, cost: GaussianCost
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
        if trial.largest_total < request.max_per_step:
            continue
        scale = _rounded_up(trial.sensitivity(Norm.L2, request.neighbors) / cost.mu)
        if gaussian.LEAST_SCALE <= scale <= gaussian.LARGEST_SCALE:
            return trial, RoundedGaussian(scale)
    return None


def _dense(strategy: DenseToeplitz, request: Request, cost: GaussianCost) -> tuple[Strategy, Law]:
    """The longest integers that leave room for the declared totals."""
    decay, end = request.views[0][1], len(strategy.coefficients)
    for bits in _DENSE_BITS:
        trial = square_root_strategy(decay, end, bits)
        scale = _rounded_up(trial.sensitivity(Norm.L2, request.neighbors) / cost.mu)
        fits = gaussian.LEAST_SCALE <= scale <= gaussian.LARGEST_SCALE
        if fits and trial.largest_total >= request.max_per_step:
            return trial, RoundedGaussian(scale)
    raise UnsupportedCombination(_OVERFLOW)


def _rounding_share(strategy: Strategy, request: Request) -> Fraction:
    """Which part of the sensitivity pays for rounding over the charged steps."""
    if not isinstance(strategy, Blt | Comb):
        return Fraction(0)
    whole = strategy.sensitivity(Norm.L2, request.neighbors)
    single = replace(strategy, charged_steps=1).sensitivity(Norm.L2, request.neighbors)
    return (whole - single) / single


def _rounded_up(scale: Fraction) -> Fraction:
    return Fraction(ceil(scale * (1 << _SCALE_BITS)), 1 << _SCALE_BITS)
