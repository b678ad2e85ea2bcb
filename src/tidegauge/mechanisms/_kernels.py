"""Compiled loops of the mechanisms: which items pass the threshold, and when."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(nogil=True, cache=True, error_model="numpy")
def passes(
    values: NDArray[np.float64],
    seen: NDArray[np.uint8],
    threshold: float,
    window: int,
    first: int,
    last: NDArray[np.int64],
    visible_from: NDArray[np.int64],
) -> None:
    """Write at which step each hidden item passes, and when its last event was.

    An item passes at a step if an event of it lies within the last ``window`` steps, its own event
    included, and its value exceeds the threshold. ``last`` and ``visible_from`` are -1 where there
    is no such step yet; ``values`` and ``seen`` have the shape (steps, items).
    """
    steps, items = values.shape
    for t in range(steps):
        step = first + t
        for i in range(items):
            if seen[t, i]:
                last[i] = step
            if (
                values[t, i] > threshold
                and visible_from[i] < 0
                and last[i] >= 0
                and step - last[i] < window
            ):
                visible_from[i] = step
