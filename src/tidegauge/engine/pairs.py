"""Exact sums and counts of the values of a mean: what is measured in place of it."""

from __future__ import annotations

from typing import final

import numpy as np
from numpy.typing import NDArray

from tidegauge.mechanisms.accumulator import MOST, Accumulator
from tidegauge.mechanisms.mean import Bounds

__all__ = ["Pairs"]

Int64 = NDArray[np.int64]


@final
class Pairs:
    """Adds up values around the middle of their bounds, and counts them, each as ``reach`` grains.

    Memory: 16 bytes a cell and step.

    Args:
        bounds: What a value may be, in grains.
        cells: How many cells there are.

    Examples:
        >>> pairs = Pairs(Bounds(0, 10), 1)
        >>> pairs.grow(2)
        >>> pairs.add(np.array([0, 0, -1]), np.array([9, 4, 7]))
        >>> pairs.result().tolist()
        [[3, 10], [0, 0]]
    """

    def __init__(self, bounds: Bounds, cells: int) -> None:
        self._bounds, self._cells = bounds, cells
        self._sums, self._counts = Accumulator(bounds.reach), Accumulator(1)

    def grow(self, size: int) -> None:
        """Make room for ``size`` pairs, steps times cells."""
        self._sums.grow(size)
        self._counts.grow(size)

    def add(self, keys: Int64, values: Int64) -> None:
        """Add values within the bounds to the pairs at ``keys``; negative keys are left out."""
        self._sums.add(keys, values - self._bounds.centre)
        self._counts.add(keys, None)

    def result(self) -> Int64:
        """Return the sums, then the counts, of each step; shape (steps, 2 cells), in grains."""
        reach = self._bounds.reach
        counts = np.minimum(self._counts.result(), MOST // reach) * reach
        both = (self._sums.result(), counts)
        return np.concatenate([array.reshape(-1, self._cells) for array in both], axis=1)
