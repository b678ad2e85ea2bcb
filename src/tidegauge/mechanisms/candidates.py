"""Every strategy that may measure a gauge, on its best lattice, with the noise that its cost pays.

Candidates are proved private for the views, the unit and the guarantee; the one is best whose worst
view lies least above its own lower bound. A view's importance counts its ratio so many times.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import lru_cache
from math import sqrt

import numpy as np

from tidegauge.errors import UnsupportedCombination
from tidegauge.mechanisms.comparison import Candidate, Prediction, bound_of, least_std, worst_gain
from tidegauge.mechanisms.discovery import discovery_of
from tidegauge.mechanisms.funding import DENSE_BITS, funded
from tidegauge.mechanisms.plan import GaugePlan
from tidegauge.mechanisms.plan_in_words import NOISE_IN_WORDS, strategy_in_words
from tidegauge.mechanisms.request import Request
from tidegauge.noise.law import Law
from tidegauge.noise.response import BitFlips
from tidegauge.privacy.costs import Cost, GaussianCost, PureCost
from tidegauge.strategies import dense
from tidegauge.strategies.asked import Asked
from tidegauge.strategies.blocks import Blocks, OpenBlocks, best_levels, best_shares
from tidegauge.strategies.blt import Fit, NormalisedBlt, fit, fit_normalised, normalised
from tidegauge.strategies.blt.shipped import SPREAD_OF_HORIZONS
from tidegauge.strategies.bounds import UNKNOWN_HORIZON, worst_step
from tidegauge.strategies.decay import Decay, Difference, Running, Step, Window
from tidegauge.strategies.dense import DenseToeplitz, square_root_strategy
from tidegauge.strategies.distinct import Anchored, anchored, shaped
from tidegauge.strategies.distinct.first_seen import check_distinct
from tidegauge.strategies.identity import Identity
from tidegauge.strategies.named import NAMED, ByName, named_strategy
from tidegauge.strategies.rescaled import serves_rescaled
from tidegauge.strategies.strategy import Norm, Strategy

__all__ = ["candidates"]

_DENSE_HANDICAP = 1 / 0.99  # a dense strategy keeps the whole stream in memory: for 1 % or more
_LONGEST_LAG = 2048  # of a comb, in steps
_COMB_MEMORY = 1 << 28  # bytes of all its totals and increments: 16 a cell and step of its lag


def _strategies(request: Request, kind: type[Cost]) -> Iterator[tuple[str, Strategy]]:
    """Every strategy that is tried, with its name in words: a new one is added here.

    Each is proved private under noise of this kind; its lattice is chosen afterwards.
    """
    window, decays = request.neighbors.lasting, tuple(_decays(request))
    norm = Norm.L2 if kind is GaussianCost else Norm.L1
    asked = Asked(decays, norm, request.max_per_step, request.horizon, request.end)
    name = None if request.strategy is None else request.strategy.name
    if request.discover is not None and name is not None:
        raise UnsupportedCombination("it serves cells that are known, not items to be discovered")
    if window is not None and name not in (None, "DistinctCount"):
        raise UnsupportedCombination("it serves sums, not counts of different values")
    if name == "DistinctCount" and request.neighbors.distinct is None:
        raise UnsupportedCombination("it serves counts of different values, not sums")
    if window is not None:
        yield from _of_windows(window, kind)
    elif request.strategy is not None:
        yield NAMED[request.strategy.name].words, named_strategy(request.strategy, asked)
    else:
        yield from _of_sums(request, kind, asked)


def _of_sums(request: Request, kind: type[Cost], asked: Asked) -> Iterator[tuple[str, Strategy]]:
    """Strategies for sums of steps, and of values that are seen for the first time."""
    decays = asked.views
    yield "the stream itself", Identity(0)
    if request.neighbors.distinct is None and request.discover is None:
        yield from _of_papers(asked)
    yield from (_of_filters if kind is GaussianCost else _of_blocks)(request, decays)


def _of_filters(request: Request, decays: tuple[Decay, ...]) -> Iterator[tuple[str, Strategy]]:
    """Under Gaussian noise: what is fitted to the views, and what is made for so many steps."""
    if not all(isinstance(decay, Step) for decay in decays):
        for found in _fits(request, decays):
            comb = f" behind a comb of {found.comb[1]} steps" if found.comb else ""
            buffers = f"{len(found.gaps)} buffer{'s' * (len(found.gaps) != 1)}"
            yield f"{buffers} fitted to the views{comb}", found.strategy(lattice_bits=0)
    if request.discover is None:  # the others are not proved for items that nobody knows
        yield from _short(request, decays)


def _of_blocks(request: Request, decays: tuple[Decay, ...]) -> Iterator[tuple[str, Strategy]]:
    """Under Laplace noise: blocks, open ones included or not, for one length or for any."""
    bounds, horizon = tuple(_bounds(request)), request.horizon or UNKNOWN_HORIZON
    designs = [_blocks(decays, bounds, horizon, opened) for opened in (True, False)]
    for blocks in dict.fromkeys(designs):
        if len(blocks.levels) > 1:
            yield strategy_in_words(blocks), blocks
    targets = tuple((decay, *at) for decay in decays for at in _judged_at(request, decay, PureCost))
    if len(targets) > len(decays):
        shared = _shared(decays, targets)
        yield f"{strategy_in_words(shared)}, for any length", shared


def _judged_at(request: Request, decay: Decay, kind: type[Cost]) -> Iterator[tuple[int, float]]:
    """The numbers of steps that a view is judged at, with the bound on its worst std up to there.

    One, but where the length is unknown and the sum never forgets, under pure epsilon: blocks of
    so many levels serve one length best. Their error grows as log^1.5 of it and the bound as log,
    so that bound alone would judge by the longest stream.
    """
    horizon, spread = request.horizon or UNKNOWN_HORIZON, SPREAD_OF_HORIZONS
    known = request.horizon is not None or request.end is not None
    endless = isinstance(decay, Running | Window) and worst_step(decay, spread[-1]) is not None
    if known or kind is not PureCost or not endless:
        yield horizon, bound_of(decay, request.horizon, request.end)
        return
    for steps in spread:
        slower = sqrt(math.log(steps) / math.log(UNKNOWN_HORIZON))
        yield steps, bound_of(decay, steps, None) * slower


def _of_windows(window: int, kind: type[Cost]) -> Iterator[tuple[str, Strategy]]:
    """Strategies for a count of the different values of a window, which is no sum of steps."""
    if kind is GaussianCost:
        made = shaped(window)
        yield f"the count itself under {len(made.gaps)} buffers of shaped noise", made
        return
    yield "the count at each step", Anchored((1,), window)
    best = anchored(window)
    if len(best.periods) > 1:
        *smaller, largest = map(str, best.periods)
        between = f"its changes over {', '.join(smaller)} in between"
        yield f"the count every {largest} steps, and {between}", best


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
            yield name, square_root_strategy(decays[0], end, DENSE_BITS[0])
    elif end <= normalised.LONGEST:
        made = _normalised(end)
        yield f"{len(made.gaps)} buffers with multipliers for {end} steps", made


def candidates(request: Request, cost: Cost, names: Fraction = Fraction(0)) -> Iterator[Candidate]:
    """Yield every strategy with the noise that its cost pays for, or with what is against it.

    Args:
        request: What is asked, checked.
        cost: What the gauge may spend, which also tells the kind of its noise.
        names: What it may spend of delta on names, if it discovers items.

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
            if request.rescaled and not (serves_rescaled(strategy) and kind is GaussianCost):
                raise UnsupportedCombination("its noise under a clip that is found is not known")
            check_distinct(strategy, request.neighbors)
            best, law = funded(strategy, request, cost)
            views = tuple(_predicted(request, best, law, cost))
            _refuse_blurred(request, views)
            made = _plan(request, best, law, cost, names)
        except UnsupportedCombination as reason:
            yield Candidate(name, noise, cost, (), math.inf, None, f"refused: {reason}")
            continue
        handicap = _DENSE_HANDICAP if isinstance(best, DenseToeplitz) else 1.0
        score = _score(request, made)
        yield Candidate(name, made.noise, cost, views, score, made, handicap=handicap)


def _fits(request: Request, decays: tuple[Decay, ...]) -> Iterator[Fit]:
    """The fit, with a comb if that pays and its memory fits; then, if there is one, without."""
    longest = min(_LONGEST_LAG, _COMB_MEMORY // (16 * request.planned_cells))
    longest *= not request.rescaled
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


@lru_cache(maxsize=256)
def _fitted(
    decays: tuple[Decay, ...], horizon: int | None, importance: tuple[float, ...], longest_lag: int
) -> Fit:
    """The fit, which depends neither on the budget nor on the unit."""
    counted = None if set(importance) == {1.0} else importance
    return fit(decays, horizon, importance=counted, longest_lag=longest_lag)


@lru_cache(maxsize=256)
def _normalised(end: int) -> NormalisedBlt:
    return fit_normalised(end)


@lru_cache(maxsize=256)
def _blocks(
    decays: tuple[Decay, ...], bounds: tuple[float, ...], horizon: int, opened: bool
) -> Blocks | OpenBlocks:
    return best_levels(decays, bounds, horizon, opened=opened)


@lru_cache(maxsize=256)
def _shared(decays: tuple[Decay, ...], targets: tuple[tuple[Decay, int, float], ...]) -> OpenBlocks:
    return best_shares(decays, targets)


def _plan(request: Request, strategy: Strategy, law: Law, cost: Cost, names: Fraction) -> GaugePlan:
    """The plan of a candidate.

    Raises:
        UnsupportedCombination: Items cannot be discovered under it.
    """
    discovery = None
    if request.discover is not None:
        discovery = discovery_of(
            request.discover, request.views, strategy, law, request.neighbors, request.end, names
        )
    selection = None
    if request.select is not None:
        assert isinstance(cost, GaussianCost), "choices go with Gaussian noise"
        selection = request.select.bought(cost, request.neighbors, request.end)
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
        selection=selection,
        discovery=discovery,
    )


def _predicted(request: Request, strategy: Strategy, law: Law, cost: Cost) -> Iterator[Prediction]:
    """The std of each view at its worst step, published views first, and its lower bound."""
    views = list(_views(request))
    for number, (name, decay, every, _) in enumerate(views):
        published = number < len(request.views)
        std = sqrt(worst_gain(strategy, decay, request.horizon, request.end, every)) * law.std
        least = least_std(
            decay,
            request.horizon,
            request.end,
            cost,
            request.neighbors,
            every,
            flips=isinstance(law, BitFlips),
        )
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
    for decay in dict.fromkeys(request.foreseen):
        if decay not in published:
            yield decay.name, decay, 1, 1.0


def _decays(request: Request) -> list[Decay]:
    """What is designed for: the views and what is anticipated, each once."""
    decays = [decay for _, decay in request.views]
    return list(dict.fromkeys([*decays, *request.foreseen]))


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
        times = 1.0 if request.neighbors.lasting else np.abs(view.decay.weights(steps)).sum()
        largest = request.max_per_step * float(times)
        if largest * 2.0**-53 > view.worst_std / 100:
            raise UnsupportedCombination("double precision could not hold its largest values")
