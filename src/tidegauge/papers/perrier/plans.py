"""The two plans of a truncated sum: of the first readings at once, and of the rest."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from tidegauge.mechanisms.plan import GaugePlan
from tidegauge.papers.system import plan_of
from tidegauge.privacy.guarantee import ApproxDP, PureDP
from tidegauge.strategies.decay import Running
from tidegauge.strategies.named import ByName, by_name

__all__ = ["TREE", "plans_of"]

TREE = "BinaryTree"
"""The paper's strategy, which is pure."""


@lru_cache(maxsize=64)
def plans_of(
    cost: ApproxDP, left: Fraction, first: int, end: int | None, strategy: ByName | None, most: int
) -> tuple[GaugePlan, GaugePlan | None]:
    """Return the plans for a threshold of ``most`` grains, which is public.

    Args:
        cost: Of the whole, and so of each reading of the rest.
        left: The part of epsilon that the threshold left for the first sum.
        first: How many readings it sums up.
        end: The last step; at ``first`` there is no rest.
        strategy: Of the rest; None: the best there is.
        most: Above 0.

    Raises:
        UnsupportedCombination: The strategy does not serve the running sum of such readings.
    """
    at_once = plan_of(
        Running(),
        epsilon=left,
        guarantee=None,
        cells=1,
        strategy=by_name("InputPerturbation"),
        largest=most,
        max_per_step=most * first,
        end=1,
    )
    if end == first:
        return at_once, None
    tree = strategy is not None and strategy.name == TREE
    rest = plan_of(
        Running(),
        epsilon=None,
        guarantee=PureDP(cost.epsilon) if tree else cost,
        cells=1,
        strategy=strategy,
        largest=most,
        end=None if end is None else end - first,
    )
    return at_once, rest
