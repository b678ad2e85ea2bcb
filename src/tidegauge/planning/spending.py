"""What a plan spends: the parts of its gauges, and the whole as epsilon, delta and for k events."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from tidegauge.mechanisms.first_values import Threshold
from tidegauge.planning.plan import Plan, PlannedGauge
from tidegauge.privacy.guarantee import ApproxDP, PureDP, rounded_up
from tidegauge.privacy.k_events import K_EVENTS, KEvents, k_event_table
from tidegauge.privacy.statement import named

__all__ = [
    "budget_share",
    "delta_in_words",
    "delta_of",
    "epsilon_of",
    "k_events",
    "noise_delta_of",
    "thresholds_in_words",
]

_DELTA = Fraction(1, 10**9)


def budget_share(plan: Plan, gauge: PlannedGauge) -> float:
    """Return the part of the declared weights that is this gauge's."""
    return float(gauge.budget_weight / sum(other.budget_weight for other in plan.gauges))


def delta_of(plan: Plan, releases: int = 1) -> Fraction:
    """Return the delta at which the promise is read: the plan's own, 0 for pure, else 1e-9.

    Names of discovered cells and clips of first values cost their part with every release.
    """
    if isinstance(plan.guarantee, ApproxDP):
        return plan.guarantee.delta + (releases - 1) * _delta_apart(plan)
    return Fraction(0) if isinstance(plan.guarantee, PureDP) else _DELTA


def epsilon_of(plan: Plan, releases: int = 1) -> Fraction:
    """Return the epsilon that all gauges together spend at :func:`noise_delta_of`, rounded up.

    Args:
        plan: Whose gauges.
        releases: How often the whole plan was released; each time costs it again.
    """
    return _for_units(plan, (1,), releases)[0].epsilon


def noise_delta_of(plan: Plan) -> Fraction:
    """Return the delta at which the noise is read; names or clips of first values have a part."""
    return (delta_of(plan) or _DELTA) - _delta_apart(plan)


def _delta_apart(plan: Plan) -> Fraction:
    """What is set apart of delta, for names or for clips of first values; no plan has both."""
    return plan.delta_for_names if plan.thresholds is None else plan.thresholds.delta


def delta_in_words(plan: Plan, releases: int = 1) -> str:
    """Return what delta is spent on where cells are discovered: a sentence without a full stop.

    Args:
        plan: With a gauge that discovers its cells.
        releases: How often the whole plan was released; names cost their part each time.
    """
    parts = ", ".join(
        f"{gauge.name} {rounded_up(releases * gauge.mechanism.discovery.delta)}"
        for gauge in plan.gauges
        if gauge.mechanism.discovery is not None
    )
    whole, noise = rounded_up(delta_of(plan, releases)), rounded_up(noise_delta_of(plan))
    return f"Of delta = {whole}: {noise} for noise; names: {parts}"


def thresholds_in_words(plan: Plan, releases: int = 1) -> str:
    """Return what clips of first values and noise spend: a sentence without a full stop.

    Args:
        plan: With a clip that is drawn from first values.
        releases: How often the whole plan was released; clips cost their part each time.
    """
    spent = plan.spent_on_thresholds(releases)
    assert spent is not None
    drawn = ", ".join(gauge.name for gauge in plan.gauges if isinstance(gauge.clip, Threshold))
    rest = ApproxDP(epsilon_of(plan, releases) - spent.epsilon, noise_delta_of(plan))
    return (
        f"Of (epsilon, delta) the clip of {drawn}, drawn from first values, spends "
        f"({rounded_up(spent.epsilon)}, {rounded_up(spent.delta)}), and noise, of "
        f"{named(plan.spent_on_noise(releases))}, ({rounded_up(rest.epsilon)}, "
        f"{rounded_up(rest.delta)}): both add up"
    )


def k_events(plan: Plan, releases: int = 1) -> tuple[KEvents, ...]:
    """Return what is spent for one unit, read for k of them; see :func:`epsilon_of`."""
    return _for_units(plan, K_EVENTS, releases)


def _for_units(plan: Plan, ks: Sequence[int], releases: int) -> tuple[KEvents, ...]:
    spent = plan.spent_on_noise(releases)
    names, thresholds = releases * plan.delta_for_names, plan.spent_on_thresholds(releases)
    return k_event_table(spent, noise_delta_of(plan), ks, names, thresholds)
