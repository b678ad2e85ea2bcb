"""What was considered for a gauge, what was chosen, and why everything else was not."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import final

import numpy as np

from tidegauge.mechanisms.plan import GaugePlan
from tidegauge.privacy.costs import Cost, GaussianCost
from tidegauge.privacy.unit import Neighbors
from tidegauge.strategies.blocks import Blocks, OpenBlocks
from tidegauge.strategies.blt import Blt, Comb, NormalisedBlt
from tidegauge.strategies.bounds import UNKNOWN_HORIZON, lower_bound, worst_step
from tidegauge.strategies.decay import Decay, Difference, Running, Window
from tidegauge.strategies.dense import DenseToeplitz
from tidegauge.strategies.distinct import Shaped
from tidegauge.strategies.identity import Identity
from tidegauge.strategies.responses import Responses
from tidegauge.strategies.strategy import Strategy

__all__ = ["Candidate", "Comparison", "Prediction", "bound_of", "least_std", "worst_gain"]

_MOST_READ = 1 << 16  # readings that are looked at, one by one
_MOST_SUMS = 1 << 12  # of a sum read at every step, whose worst a strategy tells by itself
_MOST_ROWS = 1 << 10  # of them, where each is computed by itself


@lru_cache(maxsize=4096)
def bound_of(decay: Decay, horizon: int | None, end: int | None, every: int = 1) -> float:
    """Return the lower bound that a view is judged against, for one grain at mu = 1."""
    last = end or horizon or UNKNOWN_HORIZON
    return lower_bound(_seen(decay, last), last, end, every=every)


@lru_cache(maxsize=4096)
def worst_gain(
    strategy: Strategy, decay: Decay, horizon: int | None, end: int | None, every: int = 1
) -> float:
    """Return the largest variance gain of a view at the steps at which it is read.

    Those up to the end; without one, up to the horizon or for ever, as the bound is judged. Where
    noise goes up and down, as that of blocks does, 65,536 readings are looked at one by one; where
    there are more, every step of them all, or if not all are read, the first ones and the last. The
    worst step of a sum that is read at more than 4,096 is told by the strategy.
    """
    last = end or horizon or UNKNOWN_HORIZON
    decay, every = _seen(decay, last), min(every, last)
    read = last // every
    if _rises(strategy, decay):
        if end is None and worst_step(decay, last) is None:
            return strategy.worst_variance_gain(decay, last)
        return float(strategy.variance_gain(decay, np.array([read * every]))[0])
    if isinstance(strategy, NormalisedBlt) and (every == 1 or read > _MOST_ROWS):
        return strategy.worst_variance_gain(decay, read * every)
    most = _MOST_READ if isinstance(decay, Difference) else _MOST_SUMS
    if every == 1 and (end is None or read > most):
        return strategy.worst_variance_gain(decay, last)
    looked = np.append(np.arange(1, min(read, _MOST_READ) + 1), read)
    return float(strategy.variance_gain(decay, looked * every).max())


def _seen(decay: Decay, last: int) -> Decay:
    """A change that is judged before its lag is the view itself, of which nothing is taken away."""
    if isinstance(decay, Difference) and decay.lag >= last and worst_step(decay.view, last):
        return decay.view
    return decay


def _rises(strategy: Strategy, decay: Decay) -> bool:
    """Whether a view's noise never falls from step to step: each has the noise of all before."""
    base = decay.view if isinstance(decay, Difference) else decay
    if isinstance(strategy, Blocks | OpenBlocks):
        return not isinstance(base, Running | Window)
    return isinstance(strategy, Blt | Comb | DenseToeplitz | Identity | Responses | Shaped)


def least_std(
    decay: Decay,
    horizon: int | None,
    end: int | None,
    cost: Cost,
    neighbors: Neighbors,
    every: int = 1,
    *,
    flips: bool = False,
) -> float:
    r"""Return the least std, at a view's worst step, of any factorization mechanism; in grains.

    The bound is on mechanisms of the form "encode, add noise of one kind to every coordinate,
    decode", at equal privacy and for the same unit, and on no algorithms of another form.
    :func:`bound_of` is the least of max ||row of B|| max ||column of C|| where one cell is encoded,
    and the unit can change that cell alone by c grains: ``cell_change`` times its events of one
    step. What a mechanism that mixes cells does for that cell is such a factorization, too. With
    Gaussian noise the bound is multiplied by c over mu. With discrete Laplace noise, by the std
    f(b) of that noise at the scale b = c / epsilon: columns of C have whole numbers of grains, so
    their L1 norm n is at least 1 and at least their L2 norm, the scale is n b or more, and
    f(n b) >= n f(b), as f(b) = 1 / (sqrt(2) sinh(1 / (2 b))) grows faster than b.

    With ``flips``, of bits by randomised response, the same holds with the std of a flipped bit
    without its bias, :math:`1 / (2 \sinh(1 / (2 b)))`: f(b) over the root of 2.

    A count of different values is bounded like the sum over the same steps: an event whose value
    nobody else brings changes it by that column of the decay.
    """
    events = neighbors.unit.max_events if neighbors.unit.min_separation == 0 else 1
    change = events * neighbors.cell_change
    if isinstance(cost, GaussianCost):
        least = change / float(cost.mu)
    else:
        rate = float(cost.epsilon / change)
        least = (1 if flips else math.sqrt(2)) * math.exp(-rate / 2) / -math.expm1(-rate)
    return bound_of(decay, horizon, end, every) * least


@final
@dataclass(frozen=True)
class Prediction:
    """What one view would get.

    Attributes:
        view: Its name.
        decay: Its weights.
        published: False for a view that is only anticipated.
        worst_std: Standard deviation of its noise at its worst step, in grains.
        lower_bound: The least that any factorization mechanism could have there, with noise of
            this kind at this cost, in grains.
    """

    view: str
    decay: Decay
    published: bool
    worst_std: float
    lower_bound: float

    @property
    def ratio(self) -> float:
        """Worst std over lower bound: 1 is the best there can be."""
        return self.worst_std / self.lower_bound if self.lower_bound else math.inf


@final
@dataclass(frozen=True)
class Candidate:
    """One way to measure a gauge.

    Attributes:
        strategy: What would be measured, in words.
        noise: The kind of the noise, in words.
        cost: What the gauge would spend.
        views: What each view would get, anticipated ones last; empty where refused.
        score: The largest noise of a view over its lower bound for one grain at mu = 1, with the
            gauge's weight taken out: it compares all candidates of a plan, whatever their noise.
        plan: The gauge's plan; None where refused.
        verdict: ``"chosen"``, or why not.
        handicap: How many times its score counts in the choice: above 1 for a strategy that keeps
            the whole stream in memory, which has to be worth it.
    """

    strategy: str
    noise: str
    cost: Cost
    views: tuple[Prediction, ...]
    score: float
    plan: GaugePlan | None
    verdict: str = ""
    handicap: float = 1.0

    @property
    def rank(self) -> float:
        """What the choice goes by: the score, with the handicap; least is best."""
        return self.score * self.handicap

    @property
    def chosen(self) -> bool:
        """Whether this is what the gauge will measure."""
        return self.verdict == "chosen"

    @property
    def worst(self) -> Prediction | None:
        """The view that lies highest above its lower bound; None where refused."""
        return max(self.views, key=lambda view: view.ratio, default=None)

    @property
    def worst_ratio(self) -> float:
        """The largest ratio of a view; infinite where refused."""
        return self.worst.ratio if self.worst else math.inf


@final
@dataclass(frozen=True)
class Comparison:
    """Every candidate of one gauge, with the reason why each was chosen or not.

    Attributes:
        gauge: Its name.
        candidates: In the order in which they were tried.
    """

    gauge: str
    candidates: tuple[Candidate, ...]

    @property
    def chosen(self) -> Candidate:
        """What the gauge will measure."""
        return next(candidate for candidate in self.candidates if candidate.chosen)

    @property
    def plan(self) -> GaugePlan:
        """The plan of the chosen candidate."""
        plan = self.chosen.plan
        assert plan is not None
        return plan

    def explain(self) -> str:
        """Return the choice in one sentence."""
        chosen, worst = self.chosen, self.chosen.worst
        assert worst is not None
        others = [c for c in self.candidates if not c.chosen and c.plan is not None]
        second = min(others, key=lambda c: c.rank, default=None)
        text = (
            f"{chosen.noise} noise on {chosen.strategy}: its worst view, {worst.view}, has "
            f"{worst.ratio:.2f} times the least of any factorization mechanism with noise of this "
            "kind at this cost"
        )
        if second is None:
            return f"{text}; nothing else can be used."
        return (
            f"{text}; the next best, {second.noise} noise on {second.strategy}, {second.verdict}."
        )
