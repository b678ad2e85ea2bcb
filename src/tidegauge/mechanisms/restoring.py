"""A gauge's plan, read back: the stored numbers are used, and none of them is believed."""

from __future__ import annotations

from typing import Any

from tidegauge.checks import shown
from tidegauge.errors import InvalidParameter, UnsupportedCombination
from tidegauge.mechanisms.discovery import Discovery
from tidegauge.mechanisms.intervals import band_of, level_of
from tidegauge.mechanisms.plain_data import Reader
from tidegauge.mechanisms.plan import GaugePlan
from tidegauge.mechanisms.plan_in_words import STRATEGIES
from tidegauge.mechanisms.request import cells_of, steps_of, views_of
from tidegauge.mechanisms.selection import Selection, shown_cells
from tidegauge.mechanisms.stored import VERSION, read_as
from tidegauge.noise.gaussian import RoundedGaussian
from tidegauge.noise.laplace import DiscreteLaplace
from tidegauge.noise.response import BitFlips
from tidegauge.privacy.costs import GaussianCost, PureCost
from tidegauge.privacy.guarantee import ZCDP, ApproxDP, GaussianDP, PureDP
from tidegauge.privacy.unit import Neighbors
from tidegauge.strategies.decay import (
    Custom,
    Decay,
    Difference,
    Exponential,
    Polynomial,
    Running,
    Step,
    Window,
)
from tidegauge.strategies.distinct.first_seen import check_distinct
from tidegauge.strategies.responses import Responses
from tidegauge.strategies.strategy import Norm

__all__ = ["restore_gauge", "verify_gauge", "views_read"]


def restore_gauge(data: Any) -> GaugePlan:
    """Return the plan that :meth:`GaugePlan.stored` wrote, number by number; nothing is fitted.

    Raises:
        InvalidParameter: Another version wrote it, a name is unknown, a field is missing or
            left over, or its noise is too small for its cost.
        BudgetExceeded: Its cost exceeds its guarantee.
    """
    reader = Reader(data, "the plan of a gauge")
    version = reader.integer("version")
    if version != VERSION:
        raise InvalidParameter(
            f"Expected the plan of a gauge in version {VERSION}, got version {version}. "
            "Its numbers may mean something else. Use the version of tidegauge that wrote it."
        )
    views = views_read(reader.items("views"))
    cells = reader.take("cells")
    plan = GaugePlan(
        views=views,
        cells=None if cells is None else cells_of(cells)[1],
        scalar=reader.flag("scalar"),
        guarantee=read_as(reader.take("guarantee"), PureDP, ZCDP, GaussianDP, ApproxDP),
        cost=read_as(reader.take("cost"), GaussianCost, PureCost),
        neighbors=read_as(reader.take("neighbors"), Neighbors),
        strategy=read_as(reader.take("strategy"), *STRATEGIES),
        law=read_as(reader.take("law"), RoundedGaussian, DiscreteLaplace, BitFlips),
        max_per_step=reader.integer("max_per_step"),
        horizon=reader.optional_integer("horizon"),
        end=reader.optional_integer("end"),
        level=level_of(reader.fraction("level")),
        band=band_of(reader.text("band")),
        selection=read_as(reader.take("selection"), Selection)
        if "selection" in reader.names
        else None,
        discovery=read_as(reader.take("discovery"), Discovery)
        if "discovery" in reader.names
        else None,
    )
    reader.done()
    verify_gauge(plan)
    return plan


def verify_gauge(plan: GaugePlan) -> None:
    """Refuse a plan whose noise does not pay for what it claims.

    Raises:
        InvalidParameter: The noise is smaller than sensitivity over cost, of another kind than
            the cost, or totals, cells or steps do not fit the strategy.
        BudgetExceeded: The cost exceeds the guarantee.
    """
    gaussian = isinstance(plan.law, RoundedGaussian)
    if gaussian != isinstance(plan.cost, GaussianCost):
        raise _unpaid("noise of the kind that is charged", "another kind")
    norm = Norm.L2 if gaussian else Norm.L1
    if norm not in plan.strategy.norms:
        raise _unpaid(f"a strategy that is proved for {norm.value} noise", "one that is not")
    amount = plan.cost.mu if isinstance(plan.cost, GaussianCost) else plan.cost.epsilon
    try:
        check_distinct(plan.strategy, plan.neighbors)
        moved = plan.strategy.sensitivity(norm, plan.neighbors)
    except UnsupportedCombination:
        raise _unpaid("a strategy that is proved for what is counted", "another") from None
    if plan.law.scale * amount < moved:
        raise _unpaid("a noise scale of sensitivity over cost or more", "a smaller one")
    if not 1 <= plan.max_per_step <= plan.strategy.largest_total:
        raise _unpaid("max_per_step within what the strategy can hold", "more")
    if plan.cells is not None and len(plan.cells) != plan.neighbors.cells:
        raise _unpaid("as many names as cells", "another number")
    if plan.scalar and plan.neighbors.cells != 1:
        raise _unpaid("one cell in a scalar gauge", "more")
    horizon, end = steps_of(plan.horizon, plan.end)
    if (horizon, end) != (plan.horizon, plan.end):
        raise _unpaid("a horizon within the end", "another")
    _verify_distinct(plan)
    _verify_responses(plan)
    _verify_selection(plan)
    _verify_discovery(plan)
    plan.charged()


def _verify_distinct(plan: GaugePlan) -> None:
    """Refuse a count of different values with other views than the count itself."""
    distinct = plan.neighbors.distinct
    if distinct is not None:
        view = Running() if distinct == "ever" else Window(distinct)
        if [decay for _, decay in plan.views] != [view]:
            raise _unpaid("the count of different values as the one view", "others")


def _verify_responses(plan: GaugePlan) -> None:
    """Refuse flips of anything but bits, and a bias that is not that of the flips."""
    law, strategy = plan.law, plan.strategy
    if not isinstance(law, BitFlips) and not isinstance(strategy, Responses):
        return
    alike = isinstance(law, BitFlips) and isinstance(strategy, Responses)
    if not alike or strategy != Responses(law.scale):
        raise _unpaid("flips of bits, with the bias that is taken out", "others")


def _verify_selection(plan: GaugePlan) -> None:
    """Refuse cells that are chosen where that is not what noise was made for."""
    selection, neighbors = plan.selection, plan.neighbors
    if selection is None:
        return
    cells = neighbors.cells
    if cells is None:
        raise _unpaid("known cells where some are chosen", "others")
    if [decay for _, decay in plan.views] != [Running()] or neighbors.low:
        raise _unpaid("running counts as the one view of cells that are chosen", "others")
    if not isinstance(plan.cost, GaussianCost) or neighbors.distinct or neighbors.paired:
        raise _unpaid("counts with Gaussian noise where cells are chosen", "others")
    k, switches = selection.k, selection.switches
    if k >= cells:
        raise _unpaid("fewer cells to be shown than there are", "all")
    if neighbors.max_cells != shown_cells(k, switches, cells, neighbors.relation):
        raise _unpaid("noise for all cells that may ever be shown", "less, or more")


def _verify_discovery(plan: GaugePlan) -> None:
    """Refuse items that nobody knows without a threshold that pays for their names."""
    discovery = plan.discovery
    if (discovery is None) != (plan.neighbors.cells is not None):
        raise _unpaid("either known cells or a discovery", "another plan")
    if discovery is None:
        return
    if plan.cells is not None or plan.scalar or plan.neighbors.distinct is not None:
        raise _unpaid("sums of items without names", "others")
    try:
        paid = discovery.paid(plan.strategy, plan.law, plan.neighbors, plan.end)
    except UnsupportedCombination:
        raise _unpaid("a strategy that is proved for unknown items", "another") from None
    if not paid:
        raise _unpaid("a threshold that pays for names", "a lower one")


def views_read(items: tuple[Any, ...]) -> tuple[tuple[str, Decay], ...]:
    """Return views that were stored as ``[name, decay]``.

    Raises:
        InvalidParameter: They are not views, or a name comes twice.
    """
    for item in items:
        if not isinstance(item, list) or len(item) != 2 or not isinstance(item[0], str):
            raise _unpaid("each view as a name and a decay", shown(item))
    kinds = (Step, Running, Window, Exponential, Polynomial, Custom, Difference)
    views = tuple((name, read_as(decay, *kinds)) for name, decay in items)
    if len(dict(views)) < len(views):
        raise _unpaid("each view once", "one twice")
    return views_of(dict(views))


def _unpaid(expected: str, got: str) -> InvalidParameter:
    return InvalidParameter(
        f"Expected {expected}, got {got}. The stored numbers were changed: what they claim to "
        "promise is not what they would give. Use the plan as it was written."
    )
