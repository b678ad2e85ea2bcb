"""The paper's strategy for counts of different values, by name."""

from __future__ import annotations

from tidegauge.errors import UnsupportedCombination
from tidegauge.strategies.asked import Asked
from tidegauge.strategies.blocks import Blocks
from tidegauge.strategies.bounds import UNKNOWN_HORIZON
from tidegauge.strategies.decay import Running
from tidegauge.strategies.strategy import Norm

__all__ = ["build_first_occurrences"]

_GAUSSIAN_BITS = 20  # of the lattice: rounded Gaussian noise needs one finer than whole values


def build_first_occurrences(asked: Asked) -> Blocks:
    """Return the binary tree of the paper for everything since the start.

    Raises:
        UnsupportedCombination: The views are others.
    """
    if asked.views != (Running(),):
        raise UnsupportedCombination("it counts different values since the start only")
    bits = 0 if asked.norm is Norm.L1 else _GAUSSIAN_BITS
    return Blocks.base(2, asked.end or asked.horizon or UNKNOWN_HORIZON, bits)
