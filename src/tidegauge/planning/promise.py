"""The promise of a plan: for whom, in a sentence, and as the odds that a reader finds one out.

After a further release of the same plan every sentence is about all releases together.
"""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import NormalDist

from tidegauge.planning.durations import instant_text
from tidegauge.planning.plan import Plan
from tidegauge.planning.spending import delta_of, epsilon_of
from tidegauge.planning.words import length_in_words
from tidegauge.privacy.conversion import epsilon_from_rho, mu_from_pure, rho_from_pure
from tidegauge.privacy.guarantee import ZCDP, ApproxDP, GaussianDP, Guarantee, PureDP
from tidegauge.privacy.protected import Protected
from tidegauge.privacy.rounding import sqrt_up

__all__ = ["guarantee_of_all", "odds", "promise", "protected_of"]

_ALARM = 0.05
_DELTAS = tuple(10.0**-n for n in range(1, 13))


def protected_of(plan: Plan) -> Protected:
    """Return who is protected by a plan."""
    unit, clock = plan.unit, plan.clock
    period = None
    if unit is not None and unit.per != "lifetime":
        length = length_in_words(unit.per, clock.step_us)
        start = "the first" if clock.step_us is None else instant_text(clock.start_us)
        period = f"the periods of {length} counted from {start}"
    return Protected(
        plan.privacy_unit,
        plan.relation,
        period,
        records=clock.step_us is None,
        bounded=True,
        event=_event(plan),
    )


def _event(plan: Plan) -> str | None:
    """What makes rows one event, in words; None: each row is one."""
    if plan.event is None:
        return None
    return f"one {plan.event}" if plan.unit is None else f"one {plan.unit.column} and {plan.event}"


def promise(plan: Plan, releases: int = 1) -> str:
    """Return the guarantee of all releases in one sentence, for what this plan protects."""
    return guarantee_of_all(plan, releases).in_words(protected_of(plan).question)


def guarantee_of_all(plan: Plan, releases: int) -> Guarantee:
    """Return what holds for all releases of a plan together, of the kind that was promised.

    Pure and zero-concentrated guarantees add up, mu grows as the root, (epsilon, delta) is read
    from what was spent.
    """
    promised = plan.guarantee
    if releases == 1:
        return promised
    match promised:
        case PureDP(epsilon=epsilon):
            return PureDP(releases * epsilon)
        case ZCDP(rho=rho):
            return ZCDP(releases * rho)
        case GaussianDP(mu=mu):
            return GaussianDP(sqrt_up(releases * mu**2))
        case ApproxDP(epsilon=epsilon):
            return ApproxDP(max(epsilon, epsilon_of(plan, releases)), delta_of(plan, releases))


def odds(plan: Plan, releases: int = 1) -> str:
    """Return the promise as odds that a reader finds one unit out: for people, and exact.

    From the trade-off of what was spent: the most that any test with 5 % of false alarms finds.
    """
    spent, more = plan.spent_on_noise(releases), releases * plan.delta_for_names
    drawn = plan.spent_on_thresholds(releases)
    if drawn is not None:  # up to its delta a threshold tells what a Gaussian one of this mu does
        more += drawn.delta
        spent = _beside(spent, drawn.epsilon)
    if isinstance(spent, GaussianDP):
        normal = NormalDist()
        found = normal.cdf(normal.inv_cdf(_ALARM) + float(spent.mu)) + float(more)
    elif isinstance(spent, PureDP):
        found = _found(float(spent.epsilon), 0.0)
    else:
        found = min(_found(float(epsilon_from_rho(spent.rho, d)), d) for d in _DELTAS)
        found += float(more)
    percent = min(100.0, math.ceil(1000 * found * (1 + 1e-12)) / 10)
    return (
        f"Somebody who wants to find out {protected_of(plan).question}, and accepts to be wrong 5 "
        f"times in 100 when it is not so, will be right at most {percent:g} times in 100 when it "
        "is (guessing blindly: 5)."
    )


def _beside(spent: PureDP | ZCDP | GaussianDP, epsilon: Fraction) -> GaussianDP | ZCDP:
    """What noise and something epsilon-DP spend together."""
    if isinstance(spent, ZCDP):
        return ZCDP(spent.rho + rho_from_pure(epsilon))
    assert isinstance(spent, GaussianDP), "a clip of first values has Gaussian noise"
    return GaussianDP(sqrt_up(spent.mu**2 + mu_from_pure(epsilon) ** 2))


def _found(epsilon: float, delta: float) -> float:
    """The most that a test with that share of false alarms finds under (epsilon, delta)-DP."""
    return min(
        math.exp(min(epsilon, 700.0)) * _ALARM + delta,
        1 - (1 - _ALARM - delta) * math.exp(-epsilon),
    )
