"""Compiled loops of the dense strategy: multiplication by C, and substitution.

Lags run upwards from 0 in every sum, cell by cell the same operations in the same order: neither
the length of a block nor the number of cells changes a byte. ``fastmath`` stays off.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(nogil=True, cache=True, error_model="numpy")
def encode(
    x: NDArray[np.int64],
    history: NDArray[np.int64],
    coefficients: NDArray[np.int64],
    largest: int,
    first: int,
    out: NDArray[np.int64],
) -> None:
    """Append the clamped totals to the history and write ``sum_k c_k x_(t-k)``; integers."""
    steps, cells = x.shape
    for t in range(steps):
        row, newest = out[t], history[first + t]
        for i in range(cells):
            newest[i] = min(max(x[t, i], -largest), largest)
            row[i] = 0
        for k in range(first + t + 1):
            weight, past = coefficients[k], history[first + t - k]
            for i in range(cells):
                row[i] += weight * past[i]


@njit(nogil=True, cache=True, error_model="numpy")
def decode(
    measured: NDArray[np.int64],
    history: NDArray[np.float64],
    coefficients: NDArray[np.float64],
    first: int,
    out: NDArray[np.float64],
) -> None:
    """Write the increments ``y_t = (v_t - sum_(k>0) c_k y_(t-k)) / c_0`` and append them."""
    steps, cells = measured.shape
    for t in range(steps):
        row, newest = out[t], history[first + t]
        for i in range(cells):
            row[i] = measured[t, i]
        for k in range(1, first + t + 1):
            weight, past = coefficients[k], history[first + t - k]
            for i in range(cells):
                row[i] -= weight * past[i]
        for i in range(cells):
            row[i] /= coefficients[0]
            newest[i] = row[i]
