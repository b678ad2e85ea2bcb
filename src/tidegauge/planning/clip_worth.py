"""When learning a clip pays: against the plan that the same budget would buy without one."""

from __future__ import annotations

from tidegauge.mechanisms.design import design
from tidegauge.mechanisms.plan_in_words import NOISE_IN_WORDS
from tidegauge.mechanisms.request import Request
from tidegauge.planning.parts import PlannedGauge
from tidegauge.planning.plan import Plan
from tidegauge.planning.widest import worst_half_width
from tidegauge.privacy.costs import PureCost
from tidegauge.privacy.guarantee import ApproxDP

__all__ = ["clip_worth"]


def clip_worth(plan: Plan, gauge: PlannedGauge) -> tuple[float, str]:
    """Return in parts of the bound how small the best clip has to be, and that in a sentence.

    A clip that is found takes Gaussian noise. Where delta is small and views are short, the bound
    itself may have less with discrete Laplace noise, which a gauge without a clip could have. Of
    several gauges that depends on the others, and is not told.

    Args:
        plan: The whole plan.
        gauge: One of its gauges, whose clip is found.

    Returns:
        The part, and the sentence; it names other noise where that decides.

    Cost: no data is read; a plan, 10 to 500 ms.
    """
    below = gauge.clipped.pays_below()
    if len(plan.gauges) > 1 or not isinstance(plan.guarantee, ApproxDP):
        return below, _sentence(below)
    found = gauge.mechanism
    fixed = design(
        Request(
            views=found.views,
            cells=None,
            scalar=False,
            guarantee=plan.guarantee,
            neighbors=found.neighbors,
            max_per_step=found.max_per_step,
            horizon=found.horizon,
            end=found.end,
            level=found.level,
            band=found.band,
            anticipate=gauge.anticipate,
            every=gauge.every,
        )
    )
    if not isinstance(fixed.cost, PureCost):
        return below, _sentence(below)
    parts = []
    for name, decay in found.views:
        every = gauge.every_of(name)
        bound, clip = (worst_half_width(of, decay, every)[0] for of in (fixed, found))
        parts.append(bound / clip)
    part = min(below, max(parts))
    noise = NOISE_IN_WORDS[PureCost]
    return part, f"Without a clip this gauge would have {noise} noise. {_sentence(part)}"


def _sentence(part: float) -> str:
    return (
        f"Learning the clip pays if the best one lies below {part:.2f} of the declared bound; if "
        "you know that it does not, leave out clip."
    )
