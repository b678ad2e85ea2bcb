"""Compiled loops of the strategies: the 128-bit encoder, its decoder and the filters of the views.

Every cell takes exactly the operations, in exactly the order, that are written here; neither the
order in which cells are visited nor the length of a block changes a byte. ``fastmath`` stays off
so that no multiplication and addition are fused.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

_LANES = 16384  # cell-steps of one turn; longer strides down the steps would miss every page
_TILE_ENCODE = 64  # cells whose 128-bit states stay in the first cache while the steps go by
_TILE_DECODE = 512  # cells of one vectorised run; their float states fit into the first cache
_FEW = 8  # below this many cells, loops over cells are too short to be worth their set-up

_WORD, _WIDE = ir.IntType(64), ir.IntType(128)
_tuple: Any = types.Tuple
_PAIR = _tuple((types.uint64, types.uint64))


def _wide(builder: Any, high: Any, low: Any) -> Any:
    """The 128-bit integer with these two halves."""
    shifted = builder.shl(builder.zext(high, _WIDE), _WIDE(64))
    return builder.or_(shifted, builder.zext(low, _WIDE))


def _halves(context: Any, builder: Any, value: Any) -> Any:
    """A tuple (high, low) of the two halves of a 128-bit integer."""
    high = builder.trunc(builder.lshr(value, _WIDE(64)), _WORD)
    return context.make_tuple(builder, _PAIR, (high, builder.trunc(value, _WORD)))


def _times(builder: Any, signed: Any, unsigned: Any) -> Any:
    """The exact 128-bit product of a signed and an unsigned word."""
    product = builder.mul(builder.zext(signed, _WIDE), builder.zext(unsigned, _WIDE))
    borrowed = builder.and_(builder.ashr(signed, _WORD(63)), unsigned)  # unsigned if signed < 0
    return builder.sub(product, builder.shl(builder.zext(borrowed, _WIDE), _WIDE(64)))


def _add_code(typing: Any, a_high: Any, a_low: Any, b_high: Any, b_low: Any) -> Any:
    """``a + b`` in 128 bits."""

    def generate(context: Any, builder: Any, signature: Any, v: Any) -> Any:
        total = builder.add(_wide(builder, v[0], v[1]), _wide(builder, v[2], v[3]))
        return _halves(context, builder, total)

    return _PAIR(*[types.uint64] * 4), generate


def _advance_code(typing: Any, high: Any, low: Any, gap: Any, weight: Any, x: Any) -> Any:
    """``u - floor(u gap / 2^64) + weight x`` for the signed 128-bit ``u`` with these halves."""

    def generate(context: Any, builder: Any, signature: Any, v: Any) -> Any:
        low_product = builder.mul(builder.zext(v[1], _WIDE), builder.zext(v[2], _WIDE))
        carried = builder.lshr(low_product, _WIDE(64))
        loss = builder.add(_times(builder, v[0], v[2]), carried)
        kept = builder.sub(_wide(builder, v[0], v[1]), loss)
        return _halves(context, builder, builder.add(kept, _times(builder, v[4], v[3])))

    return _PAIR(*[types.uint64] * 5), generate


def _floor_shift_code(typing: Any, high: Any, low: Any, shift: Any) -> Any:
    """``floor(u / 2^shift)`` of a signed 128-bit ``u``, as a 64-bit word; ``shift`` < 128."""

    def generate(context: Any, builder: Any, signature: Any, v: Any) -> Any:
        shifted = builder.ashr(_wide(builder, v[0], v[1]), builder.zext(v[2], _WIDE))
        return builder.trunc(shifted, _WORD)

    return types.int64(types.uint64, types.uint64, types.uint64), generate


_add: Any = intrinsic(_add_code)
_advance: Any = intrinsic(_advance_code)
_floor_shift: Any = intrinsic(_floor_shift_code)


@njit(nogil=True, cache=True, error_model="numpy")
def encode(
    x: NDArray[np.int64],
    states: NDArray[np.uint64],
    gaps: NDArray[np.uint64],
    weights: NDArray[np.uint64],
    largest: int,
    shift: int,
    out: NDArray[np.int64],
) -> None:
    """Write ``floor((x + sum_j u_j) 2^(64 - shift))`` and advance the states (cells, buffers, 2).

    ``x`` is clamped to ``[-largest, largest]``, so that no state can leave its 128 bits.
    """
    steps, cells = x.shape
    rows = max(1, _LANES // cells)
    for first in range(0, steps, rows):
        for start in range(0, cells, _TILE_ENCODE):
            block = slice(first, first + rows), slice(start, start + _TILE_ENCODE)
            tile = states[start : start + _TILE_ENCODE]
            _encode_tile(x[block], tile, gaps, weights, largest, np.uint64(shift), out[block])


@njit(nogil=True, cache=True, error_model="numpy")
def _encode_tile(
    x: NDArray[np.int64],
    states: NDArray[np.uint64],
    gaps: NDArray[np.uint64],
    weights: NDArray[np.uint64],
    largest: int,
    shift: np.uint64,
    out: NDArray[np.int64],
) -> None:
    steps, cells = x.shape
    buffers = gaps.shape[0]
    for t in range(steps):
        for i in range(cells):
            total = np.uint64(min(max(x[t, i], -largest), largest))
            high, low = total, np.uint64(0)
            for j in range(buffers):
                u_high, u_low = states[i, j, 0], states[i, j, 1]
                high, low = _add(high, low, u_high, u_low)
                u_high, u_low = _advance(u_high, u_low, gaps[j], weights[j], total)
                states[i, j, 0], states[i, j, 1] = u_high, u_low
            out[t, i] = _floor_shift(high, low, shift)


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
    for start in range(0, cells, _TILE_DECODE):
        length = min(_TILE_DECODE, cells - start)
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
