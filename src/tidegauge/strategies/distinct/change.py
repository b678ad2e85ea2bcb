"""What a protected unit can change in a count of the different values of a window."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TypeVar

from tidegauge.checks import integer, shown
from tidegauge.errors import InvalidParameter, UnsupportedCombination
from tidegauge.privacy.unit import LONGEST_WINDOW, NeighboringRelation, Neighbors
from tidegauge.strategies.decay import Decay, Window
from tidegauge.strategies.strategy import Norm, Strategy

__all__ = ["check_norm", "check_views", "window_of", "worst_change"]

Number = TypeVar("Number", int, Fraction)


def worst_change(neighbors: Neighbors, window: int, one: Number, two: Number) -> Number:
    """Return how far one event with one value can move the coordinates of all cells together.

    Args:
        neighbors: What may differ.
        window: The strategy's.
        one: How far one interval of at most W steps moves a cell: an L1 norm or a squared L2 norm.
        two: The same for two intervals of opposite signs inside one window: the event brings a
            value to a cell and takes another one away.

    Raises:
        UnsupportedCombination: x counts other values.
    """
    if neighbors.distinct != window:
        raise UnsupportedCombination(
            f"Expected a count of the different values of the last {window} steps, got another "
            "stream. An event would move it otherwise. Use a strategy for this stream."
        )
    if neighbors.relation is NeighboringRelation.ADD_OR_REMOVE_ONE:
        return neighbors.max_cells * one
    ways = [
        kept * two + 2 * (neighbors.max_cells - kept) * one
        for kept in (neighbors.shared_cells, neighbors.max_cells)
    ]
    return max(ways)


def check_norm(strategy: Strategy, norm: Norm) -> None:
    """Refuse a norm under which a strategy is not proved.

    Raises:
        UnsupportedCombination: It is not.
    """
    if norm not in strategy.norms:
        known = " or ".join(known.value for known in strategy.norms)
        raise UnsupportedCombination(
            f"Expected the {known} norm, got {shown(norm)}. The other would be much larger. Use "
            "the strategy for noise of the other kind."
        )


def check_views(views: Sequence[Decay], window: int) -> None:
    """Refuse views of a count of different values: it is not a sum of its steps.

    Raises:
        InvalidParameter: A view is not the count itself, ``Window(W)``.
    """
    for view in views:
        if view != Window(window):
            raise InvalidParameter(
                f"Expected the count of the last {window} steps itself, got the view "
                f"{shown(view.name)}. Different values of another window are no function of it. "
                "Measure them in a gauge of their own."
            )


def window_of(window: int) -> int:
    """Return the checked length of a window in steps.

    Raises:
        InvalidParameter: Not an integer in [1, 2^20].
    """
    why = "Each length up to it is looked at. Use a shorter window, or longer steps."
    return integer("window", window, low=1, high=LONGEST_WINDOW, why=why)
