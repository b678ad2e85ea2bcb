"""States whose cells come and go: parts of them, and several as one.

In a strategy's state the cells are the last axis of every array, but for the encoder of a filter,
where they are the first, and for an identity, which keeps their number alone. Rings grow with the
steps; rows that one does not have yet are zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegauge.strategies.strategy import Int64, State

__all__ = ["joined", "put", "taken"]

Array = NDArray[Any]
_CELLS_FIRST = "encoder"
_ONLY_NUMBER = "cells"


def taken(state: State, cells: slice | Int64) -> State:
    """Return a copy of the state of some cells, C-contiguous.

    Examples:
        >>> taken({"sum": np.array([1.0, 2.0, 3.0])}, slice(1, 3))
        {'sum': array([2., 3.])}
    """
    part: State = {}
    for name, array in state.items():
        if name == _ONLY_NUMBER:
            part[name] = np.array([len(np.arange(int(array[0]))[cells])])
        else:
            part[name] = np.array(array[cells] if name == _CELLS_FIRST else array[..., cells])
    return part


def put(state: State, cells: slice | Int64, part: State) -> None:
    """Write the state of some cells back, in place; a ring that grew meanwhile grows."""
    for name, array in part.items():
        if name == _ONLY_NUMBER:
            continue
        if name == _CELLS_FIRST:
            state[name][cells] = array
            continue
        if array.ndim == 2 and len(array) > len(state[name]):
            state[name] = _with_rows(state[name], len(array))
        state[name][..., cells] = array


def joined(states: Sequence[State]) -> State:
    """Return the states of several sets of cells as one, in their order.

    Examples:
        >>> joined([{"sum": np.array([1.0])}, {"sum": np.array([2.0, 3.0])}])
        {'sum': array([1., 2., 3.])}
    """
    whole: State = {}
    for name in states[0]:
        parts = [state[name] for state in states]
        if name == _ONLY_NUMBER:
            whole[name] = np.sum(parts, axis=0)
        elif name == _CELLS_FIRST:
            whole[name] = np.concatenate(parts)
        else:
            rows = max(len(part) for part in parts)
            if parts[0].ndim == 2:
                parts = [_with_rows(part, rows) for part in parts]
            whole[name] = np.concatenate(parts, axis=-1)
    return whole


def _with_rows(array: Array, rows: int) -> Array:
    """The array with so many rows at least; new ones are zero."""
    if len(array) >= rows:
        return array
    longer = np.zeros((rows, array.shape[1]), array.dtype)
    longer[: len(array)] = array
    return longer
