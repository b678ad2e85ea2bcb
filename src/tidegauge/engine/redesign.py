"""What planning for a view would have given."""

from __future__ import annotations

from tidegauge.mechanisms.plan import GaugePlan
from tidegauge.privacy.costs import GaussianCost
from tidegauge.privacy.guarantee import GaussianDP, PureDP
from tidegauge.strategies.decay import Decay

__all__ = ["designed_for"]


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
        band=plan.band,
    )
    return design(request)
