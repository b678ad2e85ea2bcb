"""Compiled loops of the filter's private half: a recursion in 128 bits, and the comb before it.

Every cell takes exactly the operations, in exactly the order, that are written here; neither the
order in which cells are visited nor the length of a block changes a byte.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

_LANES = 16384  # cell-steps of one turn; longer strides down the steps would miss every page
_TILE = 64  # cells whose 128-bit states stay in the first cache while the steps go by

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
        for start in range(0, cells, _TILE):
            block = slice(first, first + rows), slice(start, start + _TILE)
            tile = states[start : start + _TILE]
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
    """One tile of :func:`encode`; neighbouring cells hide each other's latency."""
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
def comb(
    x: NDArray[np.int64],
    ring: NDArray[np.int64],
    position: int,
    numerator: int,
    denominator: int,
    largest: int,
    out: NDArray[np.int64],
) -> None:
    """Write ``denominator x_t - numerator x_(t - lag)`` and keep the last ``lag`` totals.

    ``x`` is clamped to ``[-largest, largest]``; ``ring[s % lag]`` holds total s.
    """
    steps, cells = x.shape
    for t in range(steps):
        for i in range(cells):
            total = min(max(x[t, i], -largest), largest)
            out[t, i] = denominator * total - numerator * ring[position, i]
            ring[position, i] = total
        position += 1
        if position == ring.shape[0]:
            position = 0
