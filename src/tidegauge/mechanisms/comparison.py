"""What was considered for a gauge, what was chosen, and why everything else was not."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import final

from tidegauge.mechanisms.plan import GaugePlan
from tidegauge.privacy.costs import Cost, GaussianCost
from tidegauge.privacy.unit import Neighbors
from tidegauge.strategies.bounds import UNKNOWN_HORIZON, lower_bound
from tidegauge.strategies.decay import Decay

__all__ = ["Candidate", "Comparison", "Prediction", "bound_of", "least_std"]


@lru_cache(maxsize=4096)
def bound_of(decay: Decay, horizon: int | None, end: int | None, every: int = 1) -> float:
    """Return the lower bound that a view is judged against, for one grain at mu = 1."""
    return lower_bound(decay, horizon or UNKNOWN_HORIZON, end, every=every)


def least_std(
    decay: Decay,
    horizon: int | None,
    end: int | None,
    cost: Cost,
    neighbors: Neighbors,
    every: int = 1,
) -> float:
    r"""Return the least std, at a view's worst step, of any factorization mechanism; in grains.

    The bound is on mechanisms of the form "encode, add noise of one kind to every coordinate,
    decode", at equal privacy and for the same unit, and on no algorithms of another form.
    :func:`bound_of` is the least of max ||row of B|| max ||column of C||. With Gaussian noise it is
    multiplied by the L2 norm of the unit's change over mu. With discrete Laplace noise, by the std
    f(b) of that noise at the scale b = (L1 norm of the unit's change) / epsilon: columns of C have
    whole numbers of grains, so their L1 norm n is at least 1 and at least their L2 norm, the scale
    is n b, and f(n b) >= n f(b), as f(b) = 1 / (sqrt(2) sinh(1 / (2 b))) grows faster than b.

    A count of different values is bounded like the sum over the same steps: an event whose value
    nobody else brings changes it by that column of the decay.
    """
    events = neighbors.unit.max_events if neighbors.unit.min_separation == 0 else 1
    if neighbors.distinct is None:
        l1, l2_squared = neighbors.event_l1, neighbors.event_l2_squared
    else:
        l1 = neighbors.high * neighbors.moved_cells
        l2_squared = neighbors.high * l1
    if isinstance(cost, GaussianCost):
        least = events * math.sqrt(l2_squared) / float(cost.mu)
    else:
        rate = float(cost.epsilon / (events * l1))
        least = math.sqrt(2) * math.exp(-rate / 2) / -math.expm1(-rate)
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
    """

    strategy: str
    noise: str
    cost: Cost
    views: tuple[Prediction, ...]
    score: float
    plan: GaugePlan | None
    verdict: str = ""

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
        second = min(others, key=lambda c: c.score, default=None)
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
