"""How good a view is: its noise over the least that any factorization mechanism could have."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt

from tidegauge.mechanisms.plan import GaugePlan
from tidegauge.privacy.guarantee import GaussianDP, PureDP
from tidegauge.privacy.ledger import GaussianCost
from tidegauge.privacy.unit import Contributions
from tidegauge.strategies.decay import Decay

__all__ = ["designed_for", "ratio_to_bound"]

_UNKNOWN_HORIZON = 1 << 20  # where a running sum is judged if nobody says how long it runs


def ratio_to_bound(plan: GaugePlan, decay: Decay) -> float:
    r"""Return a view's worst noise over the lower bound of any factorization mechanism.

    The bound holds for a unit that contributes all it may to one step, with the same kind of noise
    and the same share of the budget; Laplace noise is bounded through the L2 norm of a column,
    which is at most its L1 norm.

    Args:
        plan: What measures.
        decay: The view, planned or not.
    """
    from tidegauge.strategies.bounds import lower_bound

    horizon = plan.horizon or _UNKNOWN_HORIZON
    unit = plan.neighbors.unit
    together = isinstance(unit, Contributions) and not unit.min_separation
    events = unit.max_events if isinstance(unit, Contributions) and together else 1
    if isinstance(plan.cost, GaussianCost):
        needed = events * sqrt(plan.neighbors.event_l2_squared) / float(plan.cost.mu)
    else:
        needed = events * float(plan.neighbors.event_l1 / plan.cost.epsilon)
    gain = sqrt(plan.strategy.worst_variance_gain(decay, horizon))  # grains a lattice unit
    return gain * float(plan.law.scale) / (needed * lower_bound(decay, horizon))


def designed_for(plan: GaugePlan, decay: Decay) -> GaugePlan:
    """Return the mechanism that the same budget would have bought for one view alone.

    Args:
        plan: The gauge as it is.
        decay: The view. No data is read and nothing is spent; 10 to 500 ms.
    """
    from tidegauge.mechanisms.design import design
    from tidegauge.mechanisms.request import Request

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
    )
    return replace(design(request), level=plan.level)
