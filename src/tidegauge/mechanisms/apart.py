"""The systems of a paper that serve one view alone, for comparison: a gauge for each view.

Together they would be a whole plan of their own; none of them is ever chosen.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from tidegauge.mechanisms.candidates import candidates
from tidegauge.mechanisms.comparison import Candidate, Comparison, least_std
from tidegauge.mechanisms.request import Request
from tidegauge.privacy.costs import Cost, GaussianCost, PureCost
from tidegauge.strategies.decay import Decay, Exponential, Running, Window
from tidegauge.strategies.named import ByName

__all__ = ["with_views_apart"]


def with_views_apart(request: Request, found: Comparison) -> Comparison:
    """Return a comparison that ends with the paper's system of each view, measured apart.

    For each kind of noise that was tried, and each window, running sum and factor: the view gets an
    equal share of what the gauge may spend, of epsilon or of mu^2, and its noise is told beside the
    least that all of it could reach. Nothing is added for a single view, whose systems are
    candidates already, nor where a strategy was asked for by name or different values are counted.

    Args:
        request: What is asked of the gauge.
        found: Its candidates.

    Cost: no data is read and nothing is spent; some ms a view.
    """
    served = request.strategy is None and request.neighbors.distinct is None
    if not served or len(request.views) == 1:
        return found
    costs = dict.fromkeys(candidate.cost for candidate in found.candidates)
    more = [one for cost in costs for one in _apart(request, cost, found.chosen)]
    return replace(found, candidates=(*found.candidates, *more))


def _apart(request: Request, cost: Cost, chosen: Candidate) -> Iterator[Candidate]:
    """The paper's system of each view; without a plan and of infinite score, so never the best."""
    stds = {view.view: view.worst_std for view in chosen.views}
    count = len(request.views)
    for name, decay in request.views:
        system = _system(decay)
        if system is None:
            continue
        asked = replace(
            request,
            views=((name, decay),),
            anticipate=(),
            importance=tuple(pair for pair in request.importance if pair[0] == name),
            every=tuple(pair for pair in request.every if pair[0] == name),
            strategy=ByName(system),
        )
        (one,) = candidates(asked, _share(cost, count))
        words, verdict = f"{system} for {name} alone, with 1/{count} of the budget", one.verdict
        views = one.views
        if views:
            every = dict(request.every).get(name, 1)
            least = least_std(decay, request.horizon, request.end, cost, request.neighbors, every)
            views = (replace(views[0], lower_bound=least),)
            times = views[0].worst_std / stds[name]
            verdict = f"for comparison: {times:,.2f} times the noise of this view"
        yield replace(
            one,
            strategy=words,
            cost=cost,
            views=views,
            score=math.inf,
            plan=None,
            verdict=verdict,
        )


def _share(cost: Cost, count: int) -> Cost:
    """An equal part of the cost."""
    match cost:
        case GaussianCost():
            return GaussianCost(cost.mu_squared / count)
        case PureCost():
            return PureCost(cost.epsilon / count)


def _system(decay: Decay) -> str | None:
    """The paper's system for a view; its polynomials have other weights than the view's."""
    match decay:
        case Window():
            return "WindowSum"
        case Exponential():
            return "ExponentialSum"
        case Running():
            return "AllWindowSum"
        case _:
            return None
