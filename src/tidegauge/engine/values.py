"""Values of events, kept exactly until their steps are measured: a clip that is found needs them.

Memory: 16 bytes an event of the steps of a run, as much again while they are sorted. Nothing of it
is stored: a step's values are in the sources until the step is measured, and in no file after it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

import numpy as np
from numpy.typing import NDArray

from tidegauge.mechanisms.mean import Values

__all__ = ["KeptValues", "ValueLists"]

Int64 = NDArray[np.int64]


@final
@dataclass(frozen=True)
class KeptValues:
    """The values of all steps of a run, in the order of their steps.

    Attributes:
        first: The first step.
        cells: How many cells there are.
        keys: Step * cells + cell of each value, counted from the first step, sorted.
        values: In grains.
    """

    first: int
    cells: int
    keys: Int64 = field(repr=False)
    values: Int64 = field(repr=False)

    def block(self, start: int, steps: int) -> Values:
        """Return the values of some steps."""
        edges = (np.array([start, start + steps]) - self.first) * self.cells
        begin, end = np.searchsorted(self.keys, edges)
        keys = self.keys[begin:end] - edges[0]
        values = self.values[begin:end]
        return Values(values, keys // self.cells, keys % self.cells, steps, self.cells)


@final
class ValueLists:
    """Gathers values from any batches in any order.

    Examples:
        >>> lists = ValueLists()
        >>> lists.add(np.array([3, -1, 0]), np.array([7, 8, 9]))
        >>> kept = lists.result(first=10, cells=2)
        >>> kept.block(11, 1).values, kept.block(11, 1).cells
        (array([7]), array([1]))
    """

    def __init__(self) -> None:
        self._keys: list[Int64] = []
        self._values: list[Int64] = []

    def add(self, keys: Int64, values: Int64) -> None:
        """Keep values at their ``keys``; negative keys are left out."""
        taking = keys >= 0
        self._keys.append(keys[taking])
        self._values.append(values[taking])

    def result(self, first: int, cells: int) -> KeptValues:
        """Return all of them, by step."""
        none = np.empty(0, np.int64)
        keys = np.concatenate([none, *self._keys])
        values = np.concatenate([none, *self._values])
        self._keys.clear()
        self._values.clear()
        order = np.argsort(keys, kind="stable")
        return KeptValues(first, cells, keys[order], values[order])
