"""Compiled loops: inputs of AES, key ranges, and one attempt of each law for a block of lanes.

A lane is one draw: lane ``row * cells + cell``. Each attempt of a lane has its own AES inputs
``(cell, coordinate << 20 | attempt << 4 | block)`` and takes a constant number of them. A kernel
adds decided draws to ``values`` and lists the other lanes in ``pending``: ``lane`` if the attempt
is certainly rejected, ``-1 - lane`` if these words cannot decide it (the exact resolver then does).
It returns how many it listed, negated if any is undecided. The i-th words belong to lane
``lanes[i]``, or to lane ``start + i`` if ``lanes`` is empty.

Every product of 64-bit words is written with explicit uint64: Numba turns a mixture of int64 and
uint64 into float64. The margins are proved in ``docs/proofs/rounded_gaussian.md``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]
Int16 = NDArray[np.int16]
UInt16 = NDArray[np.uint16]
UInt32 = NDArray[np.uint32]
UInt64 = NDArray[np.uint64]

U = np.uint64
BELOW = U((1 << 25) + (1 << 22))
"""Accept if the word plus this is at most the computed probability: 2**25 for its unknown tail."""
ABOVE = U(1 << 22)
"""Reject if the word exceeds the computed probability by this; errors together stay below 2**22."""
FACTORIAL = np.array(
    [(1 << 64) - 1, (1 << 64) - 1]
    + [(1 << 64) // f for f in (2, 6, 24, 120, 720, 5040, 40320, 362880)],
    dtype=np.uint64,
)
"""floor(2**64 / n!), n = 0 .. 9 (the first two are one unit short, to fit)."""


def _high_product(typing_context: Any, a: Any, b: Any) -> Any:
    """floor(a b / 2**64) of two uint64: one multiplication."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        wide = ir.IntType(128)
        left, right = (builder.zext(argument, wide) for argument in arguments)
        product = builder.lshr(builder.mul(left, right), ir.Constant(wide, 64))
        return builder.trunc(product, ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), generate


high_product: Any = intrinsic(_high_product)


@njit(nogil=True, cache=True, error_model="numpy")
def rise(numbers: Int64) -> bool:
    """Whether each number is larger than the one before."""
    falls = 0
    for i in range(1, numbers.shape[0]):
        falls += numbers[i] <= numbers[i - 1]
    return falls == 0


@njit(nogil=True, cache=True, error_model="numpy")
def number_range(
    coordinates: Int64, numbers: Int64, start: int, stop: int, blocks: int, out: UInt64
) -> None:
    """Write the AES inputs of the first attempt of lanes ``start .. stop - 1``.

    ``numbers``: that of each cell of a row.
    """
    cells = numbers.shape[0]
    row = start // cells
    cell = start - row * cells
    if blocks == 2:
        _number_pairs(coordinates, numbers, U(row), U(cell), stop - start, out.reshape(-1))
        return
    n = 0
    while start < stop:
        take = min(cells - cell, stop - start)
        high = U(coordinates[row]) << U(20)
        for i in range(take):
            for block in range(blocks):
                out[n + i * blocks + block, 0] = U(numbers[cell + i])
                out[n + i * blocks + block, 1] = high | U(block)
        n += take * blocks
        start += take
        cell = 0
        row += 1


@njit(nogil=True, cache=True, error_model="numpy")
def _number_pairs(
    coordinates: Int64, numbers: Int64, row: np.uint64, cell: np.uint64, lanes: int, flat: UInt64
) -> None:
    """Two inputs a lane, into flat numbers: one loop, however few cells a row has."""
    n = U(0)
    for _ in range(lanes):
        number, high = U(numbers[cell]), U(coordinates[row]) << U(20)
        flat[n] = number
        flat[n + U(1)] = high
        flat[n + U(2)] = number
        flat[n + U(3)] = high | U(1)
        n += U(4)
        cell += U(1)
        if cell == U(numbers.shape[0]):
            cell = U(0)
            row += U(1)


@njit(nogil=True, cache=True, error_model="numpy")
def number_lanes(
    coordinates: Int64, numbers: Int64, lanes: Int64, attempt: int, blocks: int, out: UInt64
) -> None:
    """Write the AES inputs of one attempt of the listed lanes."""
    cells = numbers.shape[0]
    n = 0
    for lane in lanes:
        row = lane // cells
        high = U(coordinates[row]) << U(20) | U(attempt) << U(4)
        for block in range(blocks):
            out[n, 0] = U(numbers[lane - row * cells])
            out[n, 1] = high | U(block)
            n += 1


@njit(nogil=True, cache=True, error_model="numpy")
def same_key_until(inputs: UInt64, start: int, cell_bits: int, coordinate_bits: int) -> int:
    """Return the end of the run of inputs that share the key range of input ``start``."""
    shift_cell, shift_coordinate = U(cell_bits), U(coordinate_bits + 20)
    cell, coordinate = inputs[start, 0], inputs[start, 1]
    flat = inputs.reshape(-1)  # of a width that is known, so that eight are compared together
    stop = len(inputs)
    for first in range(start, stop, 1024):
        last = min(first + 1024, stop)
        in_cell, in_coordinate = U(0), U(0)
        for i in range(U(first), U(last)):
            in_cell |= flat[U(2) * i] ^ cell
            in_coordinate |= flat[U(2) * i + U(1)] ^ coordinate
        if in_cell >> shift_cell | in_coordinate >> shift_coordinate != U(0):
            for i in range(first, last):
                if (
                    inputs[i, 0] >> shift_cell != cell >> shift_cell
                    or inputs[i, 1] >> shift_coordinate != coordinate >> shift_coordinate
                ):
                    return i
    return stop


@njit(nogil=True, cache=True, error_model="numpy")
def exp_minus(x: np.uint64) -> Any:
    """2**64 exp(-x / 2**64) for x < 2**64 / 7, off by less than 2**15."""
    r = FACTORIAL[9]
    for n in range(8, -1, -1):
        r = FACTORIAL[n] - high_product(x, r)
    return r


@njit(nogil=True, cache=True, error_model="numpy")
def rounded_gaussian(
    words: UInt64,
    values: Int64,
    start: int,
    lanes: Int64,
    pending: Int64,
    table: UInt64,
    guide: Int16,
    shift: int,
    inverse: np.uint64,
) -> int:
    """One attempt of round(+-2**shift (x + y)), x from the table, y uniform in [0, 1).

    First word: 48 bits for x, 16 for acceptance. Second: 40 for y, 1 sign, 23 for acceptance.
    From ``shift`` 40 on, y goes on in the third word. ``inverse`` is floor(2**77 / (2 s0^2)).
    """
    wide = shift >= 40
    # the first shift + 1 bits of y decide the rounding; a negative shift drops bits of x
    drop = U(0 if wide else 40 - shift)
    half = U(1) << U(0 if wide else 39 - shift)
    keep = U(shift - 39 if wide else 0)
    listed = lanes.shape[0] > 0
    n = 0
    unsure = False
    for i in range(words.shape[0]):
        lane = lanes[i] if listed else start + i
        a = words[i, 0]
        b = words[i, 1]
        u = a >> U(16)
        x = guide[np.int64(u >> U(37))]
        while u > table[x]:
            x += 1
        while x > 0 and u <= table[x - 1]:
            x -= 1
        undecided = u == table[x]
        rejected = False
        y = b >> U(24)
        f = y << U(24) | U(1 << 23)
        g = high_product(f, inverse)
        e = (high_product(f, g) >> U(13)) + high_product(U(2 * x) << U(51), g)
        w = (a & U(0xFFFF)) << U(48) | (b & U(0x7FFFFF)) << U(25)
        if w > ~e - BELOW:  # 1 - e <= exp(-e) accepts almost always
            p = exp_minus(e)
            if w > p - BELOW:
                if w >= p and w - p >= ABOVE:
                    rejected = True
                else:
                    undecided = True
        if undecided:
            pending[n] = -1 - lane
            n += 1
            unsure = True
        elif rejected:
            pending[n] = lane
            n += 1
        else:
            total = (U(x) << U(40)) + y
            if wide:
                total = (total << keep | words[i, 2] >> (U(64) - keep)) + U(1) >> U(1)
            else:
                total = total + half >> drop
            draw = np.int64(total)
            values[lane] += -draw if b & U(1 << 23) else draw
    return -n if unsure else n


@njit(nogil=True, error_model="numpy", forceinline=True)
def _discrete_laplace(
    digits: int,
    words: UInt32,
    values: Int64,
    start: int,
    lanes: Int64,
    pending: Int64,
    negative: np.uint32,
    tables: UInt32,
    guides: UInt16,
    margins: UInt32,
) -> int:
    """See :func:`discrete_laplace`."""
    listed = lanes.shape[0] > 0
    n = 0
    unsure = False
    for i in range(words.shape[0]):
        lane = lanes[i] if listed else start + i
        u = words[i, 0]
        undecided = u == negative
        flip = U(0) - U(u < negative)  # all bits, or none: -1 - G is G with all bits flipped
        total = U(0)
        for d in range(digits + 1):
            u = words[i, d + 1]
            k = U(u >> np.uint32(24))
            if u & np.uint32(0xFFFFFF) <= margins[d]:
                k = U(guides[d, u >> np.uint32(22)])
                k += U(u > tables[d, k])
                while u > tables[d, k]:
                    k += U(1)
                # the last symbol of a full digit takes all the rest: nothing to decide there
                undecided |= (u == tables[d, k]) & ((d == digits) | (k < U(255)))
            total += k << U(8 * d)
        if undecided:
            pending[n] = -1 - lane
            n += 1
            unsure = True
        else:
            values[lane] += np.int64(total ^ flip)
    return -n if unsure else n


@njit(nogil=True, cache=True, error_model="numpy")
def discrete_laplace(
    words: UInt32,
    values: Int64,
    start: int,
    lanes: Int64,
    pending: Int64,
    negative: np.uint32,
    tables: UInt32,
    guides: UInt16,
    margins: UInt32,
    digits: int,
) -> int:
    """-1 - G or G: a sign, ``digits`` base-256 digits of G and its top, 32 bits for each.

    ``guides[d, u >> 22]`` is the first symbol that is not certainly too small. A digit is the first
    8 bits of its word wherever the other 24 exceed ``margins[d]``: no threshold is near. Branches
    that random bits would decide are sums, which nothing has to predict. The numbers of digits that
    readings in grains of 2**-20 have are compiled apart, without loops.
    """
    given = words, values, start, lanes, pending, negative, tables, guides, margins
    if digits == 3:
        return _discrete_laplace(3, *given)
    if digits == 4:
        return _discrete_laplace(4, *given)
    if digits == 5:
        return _discrete_laplace(5, *given)
    return _discrete_laplace(digits, *given)


@njit(nogil=True, cache=True, error_model="numpy")
def natural_log(x: Any) -> Any:
    """Logarithm of a normal double by + - * / alone, off by less than 2**-47 of itself."""
    m, e = math.frexp(x)
    if m < 0.7071067811865476:
        m *= 2.0
        e -= 1
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    r = 1.0 / 25.0
    for n in range(23, 0, -2):
        r = r * z + 1.0 / n
    return 2.0 * s * r + e * 0.6931471805599453


@njit(nogil=True, cache=True, error_model="numpy")
def gumbel_keys(
    words: UInt64, scores: Int64, top: int, rate: float, low: Float64, high: Float64
) -> None:
    """Bracket ``(score - top) rate - ln(-ln(1 - V))``, V uniform with the first 64 bits given.

    Where these bits leave V within 2**-52 of 0 or 1 the bracket is everything.
    """
    for i in range(words.shape[0]):
        w = words[i, 0]
        u = ~w
        least = min(w, u)
        if least < U(4096):
            low[i] = -np.inf
            high[i] = np.inf
            continue
        if w < U(1) << U(62):  # V < 1/4: 2 artanh(V / (2 - V))
            v = (np.float64(w) + 0.5) * 2.0**-64
            s = v / (2.0 - v)
            z = s * s
            r = 1.0 / 25.0
            for n in range(23, 0, -2):
                r = r * z + 1.0 / n
            e = 2.0 * s * r
        else:
            e = -natural_log((np.float64(u) + 0.5) * 2.0**-64)
        x = np.float64(scores[i] - top) * rate
        g = -natural_log(e)
        half = (abs(x) + abs(g) + 1.0) * 2.0**-45 + 4.0 / np.float64(least)
        low[i] = x + g - half
        high[i] = x + g + half
