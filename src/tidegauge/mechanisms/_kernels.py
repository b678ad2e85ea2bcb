"""Compiled loops: smooth sensitivity, and which items pass a threshold; twins in the tests."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Float64 = NDArray[np.float64]


@njit(nogil=True, cache=True, error_model="numpy")
def largest_gap(ordered: Float64, weights: Float64, rank: int) -> float:
    """Return the largest ``(s_j - s_i) w_(j - i - 1)`` over i <= rank <= j.

    The first best j never falls as i grows: the middle row is searched whole, and cuts the
    columns of the rows on either side (divide and conquer).

    Args:
        ordered: s_0 .. s_(m+1), never falling.
        weights: w_0 .. w_m, geometric, never rising; w_-1 counts as w_0.
        rank: In [1, m].
    """
    stack = np.empty((128, 4), np.int64)  # two parts a halving of at most 2^62 rows
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = 0, rank, rank, len(ordered) - 1
    depth, best = 1, 0.0
    while depth:
        depth -= 1
        first, last, left, right = stack[depth]
        i = (first + last) // 2
        found, place = -1.0, left
        for j in range(left, right + 1):
            value = (ordered[j] - ordered[i]) * weights[max(j - i - 1, 0)]
            if value > found:
                found, place = value, j
        best = max(best, found)
        if first < i:
            stack[depth, 0], stack[depth, 1] = first, i - 1
            stack[depth, 2], stack[depth, 3] = left, place
            depth += 1
        if i < last:
            stack[depth, 0], stack[depth, 1] = i + 1, last
            stack[depth, 2], stack[depth, 3] = place, right
            depth += 1
    return best


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
