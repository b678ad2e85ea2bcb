"""From what a user asks to plans of gauges; reads no data.

In a gauge the candidate is best whose worst view lies least above its own lower bound (see
:mod:`tidegauge.mechanisms.candidates`). Whole plans are compared: all gauges with Gaussian noise,
mu^2 shared by weight, or all with discrete Laplace noise, epsilon shared by weight and delta
unused. A mixture would have to be kept in zCDP, which charges both kinds more; it is not tried,
but beside a gauge that chooses which cells it shows: that has a price in zCDP alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from tidegauge.errors import UnsupportedCombination
from tidegauge.mechanisms.candidates import candidates
from tidegauge.mechanisms.comparison import Candidate, Comparison
from tidegauge.mechanisms.discovery import check_discoverable, deltas
from tidegauge.mechanisms.plan import GaugePlan
from tidegauge.mechanisms.request import Request, request_of
from tidegauge.privacy.costs import Cost, GaussianCost, PureCost, ZCDPCost
from tidegauge.privacy.guarantee import ApproxDP, GaussianDP, PureDP
from tidegauge.privacy.ledger import Ledger
from tidegauge.strategies.decay import Decay

__all__ = ["compare", "design", "designed_for", "plan"]

_USELESS = 10  # times the least noise: nobody who was told another way would take it


def plan(**asked: Any) -> Comparison:
    """Return every way to measure a gauge, and the one that :class:`tidegauge.Gauge` would choose.

    Reads no data and spends nothing: what each view would get is known from public numbers.

    Args:
        **asked: The arguments of :class:`tidegauge.Gauge`, but for ``keep``.

    Returns:
        ``candidates`` with the noise of each view, its lower bound and why they were not chosen;
        ``chosen``; ``plan``, which has ``noise_std(view, steps)``; and ``explain()``.

    Raises:
        InvalidParameter: A parameter is impossible; the message says which and what to do.
        UnsupportedCombination: No candidate is proved for the request, or its declared numbers
            could overflow.

    Cost:
        10 to 500 ms, most of it the fit.

    Examples:
        >>> import tidegauge as tg
        >>> found = tg.plan(views=[tg.Window(7)], epsilon=1, unit="event", horizon=365)
        >>> for candidate in found.candidates:
        ...     print(candidate.strategy, round(candidate.worst_ratio, 2), candidate.verdict)
        the stream itself 1.49 chosen
        WindowSum, binary trees without roots 3.03 would have 2.04 times the noise
        WindowSum as printed 5.73 would have 3.85 times the noise
        AllWindowSum, one tree for every window 8.05 would have 5.41 times the noise
    """
    return compare([request_of(**asked)])[0]


def design(request: Request) -> GaugePlan:
    """Return the plan with the least noise, relative to what any factorization could reach.

    Args:
        request: What is asked, checked.

    Raises:
        UnsupportedCombination: See :func:`compare`.

    Cost: no data is read and nothing is spent; 10 to 500 ms, most of it the fit.
    """
    return compare([request])[0].plan


def designed_for(plan: GaugePlan, decay: Decay) -> GaugePlan:
    """Return the mechanism that the same budget would have bought for one view alone.

    Args:
        plan: The gauge as it is.
        decay: The view. No data is read and nothing is spent; 10 to 500 ms.
    """
    cost = plan.cost
    share = GaussianDP(cost.mu) if isinstance(cost, GaussianCost) else PureDP(cost.epsilon)
    request = Request(
        views=((decay.name, decay),),
        cells=plan.cells,
        scalar=plan.scalar,
        guarantee=share,
        neighbors=plan.neighbors,
        max_per_step=plan.max_per_step,
        horizon=plan.horizon,
        end=plan.end,
        level=plan.level,
        band=plan.band,
    )
    return design(request)


def compare(
    requests: Sequence[Request], thresholds: ApproxDP | None = None
) -> tuple[Comparison, ...]:
    """Return all candidates of gauges that share one guarantee, with the best whole plan chosen.

    Args:
        requests: What is asked of each gauge, checked; all of one guarantee.
        thresholds: What is set apart of it for clips of first values; noise is Gaussian then.

    Raises:
        UnsupportedCombination: With noise of no kind every gauge has a candidate, or one is left
            with ten times the least noise because others are refused.

    Cost: no data is read and nothing is spent; 10 to 500 ms a gauge, most of it the fit.
    """
    for request in requests:
        if request.discover is not None:
            check_discoverable(request.discover, request.views, request.end)
    names = deltas(requests[0].guarantee, [request.discover for request in requests])
    wholes = [
        [list(candidates(*each)) for each in zip(requests, costs, names, strict=True)]
        for costs in _splits(requests, sum(names, Fraction(0)), thresholds)
    ]
    ranks = [max(_best(tried).rank for tried in whole) for whole in wholes]
    taken = ranks.index(min(ranks))
    if ranks[taken] == math.inf:
        gauge = next(i for i, tried in enumerate(wholes[0]) if _best(tried).plan is None)
        raise _unsupported(requests[gauge], wholes[0][gauge])
    for request, tried in zip(requests, wholes[taken], strict=True):
        several = math.sqrt(request.neighbors.max_cells)  # the least noise is of one cell alone
        if _best(tried).worst_ratio > _USELESS * several and any(c.plan is None for c in tried):
            # what would serve is refused, and what is left does not
            raise _unsupported(request, tried)
    judged: list[list[Candidate]] = [[] for _ in requests]
    for whole in wholes:
        why = ""
        if whole is not wholes[taken] and len(requests) > 1:
            noise = max(_best(tried).score for tried in wholes[taken])
            why = _why_not_all(requests, whole, noise)
        for mine, tried, chosen in zip(judged, whole, wholes[taken], strict=True):
            mine += [_judged(c, _best(tried), _best(chosen), why) for c in tried]
    return tuple(
        Comparison(request.name, tuple(tried))
        for request, tried in zip(requests, judged, strict=True)
    )


def _splits(
    requests: Sequence[Request], names: Fraction, thresholds: ApproxDP | None
) -> Iterator[Sequence[Cost]]:
    """The costs of all gauges, by noise of each kind that the guarantee allows.

    Where one of them chooses cells, all share rho: choices have no other price. ``names``: what is
    set apart of delta for names of items, ``thresholds`` of epsilon and delta for clips; then all
    noise is Gaussian.
    """
    guarantee = requests[0].guarantee
    ledger = Ledger(guarantee, delta_for_names=names, thresholds=thresholds)
    weights = [request.budget_weight for request in requests]
    if any(request.select for request in requests):
        shares = ledger.split(weights, ZCDPCost)
        counts = [r.select.counts_share if r.select else Fraction(1) for r in requests]
        yield [GaussianCost(2 * s.rho * part) for s, part in zip(shares, counts, strict=True)]
        return
    if not isinstance(guarantee, PureDP):
        yield ledger.split(weights, GaussianCost)
    if isinstance(guarantee, PureDP | ApproxDP) and not names and thresholds is None:
        yield ledger.split(weights, PureCost)


def _best(tried: Sequence[Candidate]) -> Candidate:
    """The first of least rank."""
    return min(tried, key=lambda candidate: candidate.rank)


def _judged(candidate: Candidate, best: Candidate, chosen: Candidate, why: str) -> Candidate:
    """The candidate with its verdict.

    Args:
        candidate: What was tried.
        best: The best with noise of the same kind.
        chosen: What the gauge will measure.
        why: What is wrong with noise of this kind on all gauges.
    """
    if candidate is chosen:
        return replace(candidate, verdict="chosen")
    if candidate.plan is None:
        return candidate
    if candidate is best and why:
        return replace(candidate, verdict=why)
    rival = best if why else chosen
    times = candidate.score / rival.score
    if candidate.handicap > 1 and times < 1:
        less = f"{100 * (1 - times):.2g} % less noise"
        return replace(candidate, verdict=f"would have {less}, but keeps all in memory")
    return replace(candidate, verdict=f"would have {_times(times)} the noise")


def _times(factor: float) -> str:
    return f"{factor:,.2f} times" if factor < 100 else f"{factor:,.0f} times"


def _why_not_all(
    requests: Sequence[Request], whole: Sequence[Sequence[Candidate]], score: float
) -> str:
    """Why a whole plan was not taken."""
    gauge, worst = max(
        ((request.name, _best(tried)) for request, tried in zip(requests, whole, strict=True)),
        key=lambda pair: pair[1].rank,
    )
    if worst.plan is None:
        return f"needs {worst.noise} noise on all gauges, with which {gauge} has no candidate"
    return (
        f"needs {worst.noise} noise on all gauges, with which {gauge} would have "
        f"{_times(worst.score / score)} the noise"
    )


def _unsupported(request: Request, tried: Sequence[Candidate]) -> UnsupportedCombination:
    """Why nothing serves a gauge: most often, numbers that are too large."""
    where = f"Gauge {request.name}: " if request.name else ""
    if request.strategy is not None:
        asked, remedy = request.strategy.name, "Leave the strategy out"
    elif request.select is not None:
        asked, remedy = "cells that are chosen", "Lower max_per_step, or declare a nearer end"
    elif request.discover is not None:
        asked, remedy = "items that are discovered", "Lower max_per_step, or declare a nearer end"
    else:
        asked, remedy = "a clip that is found" if request.rescaled else "", "Declare a nearer end"
    if asked:
        refused = next(candidate.verdict for candidate in tried if candidate.plan is None)
        reason = refused.removeprefix("refused: ").removesuffix(".")
        if not reason.startswith("Expected "):  # else it says all itself
            reason = f"Expected a gauge for {asked}, got one that has no proof: {reason}. {remedy}"
        return UnsupportedCombination(f"{where}{reason}.")
    return UnsupportedCombination(
        f"{where}Expected numbers that 64 bits can hold, got max_per_step={request.max_per_step}, "
        f"max_change={request.neighbors.largest}, horizon={request.horizon}, "
        f"end={request.end}. Coordinates could overflow, or their rounding for ever would cost "
        "more than 0.2 % of the noise. Lower max_per_step, measure in coarser grains, design "
        "for a shorter horizon, or declare an end."
    )
