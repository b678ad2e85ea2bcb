"""Which strategies may measure values that are seen for the first time."""

from __future__ import annotations

from tidegauge.errors import UnsupportedCombination
from tidegauge.privacy.unit import Neighbors
from tidegauge.strategies.blocks import Blocks, OpenBlocks
from tidegauge.strategies.blt import Blt, NormalisedBlt
from tidegauge.strategies.dense import DenseToeplitz
from tidegauge.strategies.identity import Identity
from tidegauge.strategies.strategy import Strategy

__all__ = ["check_distinct"]


def check_distinct(strategy: Strategy, neighbors: Neighbors) -> None:
    """Refuse a strategy under which values that are seen for the first time could move too far.

    An event moves such a count at two steps, in opposite ways. Columns of C with inner products
    of at least 0 then differ by no more than the root of their two squares: that is charged.

    Raises:
        UnsupportedCombination: The strategy is not known to have such columns.
    """
    if neighbors.distinct in (None, neighbors.lasting):
        return
    alike = isinstance(strategy, Identity | Blt | NormalisedBlt | Blocks | OpenBlocks)
    if isinstance(strategy, DenseToeplitz):
        alike = min(strategy.coefficients) >= 0
    if not alike:
        raise UnsupportedCombination(
            "it is not proved for counts of different values, whose changes have both signs"
        )
