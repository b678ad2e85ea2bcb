"""Compiled loops that strategies share: from the measurement to increments, and their filters.

Every cell takes exactly the operations, in exactly the order, that are written here; neither the
order in which cells are visited nor the length of a block changes a byte. ``fastmath`` stays off
so that no multiplication and addition are fused.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

_TILE = 512  # cells of one vectorised run; their float states fit into the first cache
_FEW = 8  # below this many cells, loops over cells are too short to be worth their set-up


@njit(nogil=True, cache=True, error_model="numpy")
def decode(
    measured: NDArray[np.int64],
    states: NDArray[np.float64],
    gaps: NDArray[np.float64],
    weights: NDArray[np.float64],
    unit: float,
    out: NDArray[np.float64],
) -> None:
    """Write the increments ``y = v unit - sum_j w_j q_j`` and advance the states (buffers, cells).

    Then ``q_j = (q_j - g_j q_j) + y``: the gap, not the pole, so that poles near 1 stay exact.
    """
    if measured.shape[1] < _FEW:
        _decode_cells(measured, states, gaps, weights, unit, out)
    else:
        _decode_rows(measured, states, gaps, weights, unit, out)


@njit(nogil=True, cache=True, error_model="numpy")
def _decode_cells(
    measured: NDArray[np.int64],
    states: NDArray[np.float64],
    gaps: NDArray[np.float64],
    weights: NDArray[np.float64],
    unit: float,
    out: NDArray[np.float64],
) -> None:
    """Cell by cell, for few cells."""
    steps, cells = measured.shape
    buffers = gaps.shape[0]
    for i in range(cells):
        for t in range(steps):
            y = measured[t, i] * unit
            for j in range(buffers):
                y -= weights[j] * states[j, i]
            for j in range(buffers):
                states[j, i] = (states[j, i] - gaps[j] * states[j, i]) + y
            out[t, i] = y


@njit(nogil=True, cache=True, error_model="numpy")
def _decode_rows(
    measured: NDArray[np.int64],
    states: NDArray[np.float64],
    gaps: NDArray[np.float64],
    weights: NDArray[np.float64],
    unit: float,
    out: NDArray[np.float64],
) -> None:
    """The same operations, row by row, so that the loops over cells are vectorised."""
    steps, cells = measured.shape
    buffers = gaps.shape[0]
    for start in range(0, cells, _TILE):
        length = min(_TILE, cells - start)
        for t in range(steps):
            v, y = measured[t, start : start + length], out[t, start : start + length]
            for i in range(length):
                y[i] = v[i] * unit
            for j in range(buffers):
                weight, q = weights[j], states[j, start : start + length]
                for i in range(length):
                    y[i] -= weight * q[i]
            for j in range(buffers):
                gap, q = gaps[j], states[j, start : start + length]
                for i in range(length):
                    q[i] = (q[i] - gap * q[i]) + y[i]


@njit(nogil=True, cache=True, error_model="numpy")
def echoes(
    increments: NDArray[np.float64],
    ring: NDArray[np.float64],
    beta: float,
    lag: int,
    position: int,
) -> None:
    """Add ``beta`` times the increment of ``lag`` steps ago to each, in place.

    ``ring[s % lag]`` holds increment s, with its echoes.
    """
    steps, cells = increments.shape
    for t in range(steps):
        y, past = increments[t], ring[position]
        for i in range(cells):
            y[i] += beta * past[i]
            past[i] = y[i]
        position += 1
        if position == lag:
            position = 0


@njit(nogil=True, cache=True, error_model="numpy")
def running(
    increments: NDArray[np.float64], state: NDArray[np.float64], out: NDArray[np.float64]
) -> None:
    """Write the running sums; ``state``: shape (cells,)."""
    steps, cells = increments.shape
    for t in range(steps):
        for i in range(cells):
            state[i] += increments[t, i]
            out[t, i] = state[i]


@njit(nogil=True, cache=True, error_model="numpy")
def poles(
    increments: NDArray[np.float64],
    states: NDArray[np.float64],
    gaps: NDArray[np.float64],
    weights: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """Write ``sum_j a_j E_j`` after ``E_j = (E_j - g_j E_j) + y``; states: (terms, cells)."""
    steps, cells = increments.shape
    terms = gaps.shape[0]
    for t in range(steps):
        row, y = out[t], increments[t]
        for j in range(terms):
            gap, weight, state = gaps[j], weights[j], states[j]
            if j == 0:
                for i in range(cells):
                    state[i] = (state[i] - gap * state[i]) + y[i]
                    row[i] = weight * state[i]
            else:
                for i in range(cells):
                    state[i] = (state[i] - gap * state[i]) + y[i]
                    row[i] += weight * state[i]


@njit(nogil=True, cache=True, error_model="numpy")
def window(
    increments: NDArray[np.float64],
    ring: NDArray[np.float64],
    sums: NDArray[np.float64],
    length: int,
    position: int,
    out: NDArray[np.float64],
) -> None:
    """Write sums of the last ``length`` increments.

    ``ring[s % length]`` holds increment s; ``sums[0]`` is the window and ``sums[1]`` the sum since
    the ring began anew, which replaces the window at each end of the ring: errors of the
    subtractions live at most ``length`` steps.
    """
    steps, cells = increments.shape
    total, fresh = sums[0], sums[1]
    for t in range(steps):
        row, y, old = out[t], increments[t], ring[position]
        position += 1
        if position == length:
            position = 0
            for i in range(cells):
                total[i] = fresh[i] + y[i]
                fresh[i] = 0.0
                old[i] = y[i]
                row[i] = total[i]
        else:
            for i in range(cells):
                total[i] = (total[i] - old[i]) + y[i]
                fresh[i] += y[i]
                old[i] = y[i]
                row[i] = total[i]


@njit(nogil=True, cache=True, error_model="numpy")
def finite(
    increments: NDArray[np.float64],
    ring: NDArray[np.float64],
    weights: NDArray[np.float64],
    position: int,
    out: NDArray[np.float64],
) -> None:
    """Write ``sum_k g(k) y(t - k)``, newest first; ``ring[s % length]`` holds increment s."""
    steps, cells = increments.shape
    length = weights.shape[0]
    for t in range(steps):
        row, newest = out[t], ring[position]
        for i in range(cells):
            newest[i] = increments[t, i]
            row[i] = weights[0] * newest[i]
        at = position
        for k in range(1, length):
            at = length - 1 if at == 0 else at - 1
            past, weight = ring[at], weights[k]
            for i in range(cells):
                row[i] += weight * past[i]
        position += 1
        if position == length:
            position = 0


@njit(nogil=True, cache=True, error_model="numpy")
def take_off(past: NDArray[np.float64], lag: int, position: int, out: NDArray[np.float64]) -> None:
    """Replace each value by itself minus the one ``lag`` steps earlier, 0 before the first.

    ``past[s % lag]`` holds the value of step s.
    """
    steps, cells = out.shape
    for t in range(steps):
        row, old = out[t], past[position]
        for i in range(cells):
            now = row[i]
            row[i] = now - old[i]
            old[i] = now
        position += 1
        if position == lag:
            position = 0
