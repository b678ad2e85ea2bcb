r"""The strategy's private half: a recursion in 128-bit fixed point, and what its roundings cost.

The filter has impulse response :math:`c_0 = 1, c_k = \sum_j w_j \theta_j^{k-1}` with
:math:`\theta_j = 1 - g_j`; gaps :math:`g_j` and weights :math:`w_j` are integers over 2^64 and
*define* C. States :math:`u_j` are integers over 2^64 grains:

.. math::
    m &= x + \sum_j u_j, \qquad \text{coordinate} = \lfloor m / h \rfloor, \quad h = 2^{-F} \\
    u_j &\leftarrow u_j - \lfloor g_j u_j \rfloor + w_j x

Only the two floors round; :math:`w_j x` is exact. Coordinates of two streams then differ by
:math:`C (x - x')` within :func:`rounding_error` each: proof in ``docs/proofs/blt.md``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from tidegauge.compiled import lazy_module
from tidegauge.errors import InvalidInput
from tidegauge.strategies.strategy import Int64, State, UInt64

if TYPE_CHECKING:
    from tidegauge.strategies.blt import _kernels
else:
    _kernels = lazy_module("tidegauge.strategies.blt._kernels")

__all__ = [
    "add_once", "checked", "comb", "encode", "init_encoder", "largest_once", "largest_total",
    "rounding_error",
]  # fmt: skip

_SPACE = 1 << 62  # of 2^63: the upper half of int64 belongs to the noise


def rounding_error(gaps: Sequence[int], lattice_bits: int) -> Fraction:
    r"""Return e = h + sum_j 1/g_j (g_j as an integer): how far one rounded coordinate can move.

    Two streams' coordinates differ from the difference of the unrounded ones by less than e grains,
    at every step and on every path.

    Examples:
        >>> rounding_error([1 << 32], 20) == Fraction(1, 1 << 20) + Fraction(1, 1 << 32)
        True
    """
    return Fraction(2) ** -lattice_bits + sum(Fraction(1, gap) for gap in gaps)


def largest_total(absolute_gain: Fraction, gaps: Sequence[int], lattice_bits: int) -> int:
    """Return the largest |x| for which no state and no coordinate can leave its integers.

    Coordinates stay within 2^62, so the noise has as much again; states stay within 2^62 grains.

    Examples:
        >>> largest_total(Fraction(1), [], 20) == (1 << 42) - 1
        True
    """
    h = Fraction(2) ** -lattice_bits
    room = _SPACE * min(h, Fraction(1)) - rounding_error(gaps, lattice_bits)
    return max(0, math.floor(room / absolute_gain))


def largest_once(absolute_gain: Fraction, gaps: Sequence[int], lattice_bits: int, most: int) -> int:
    """Return the largest |x| that one step may hold beside its total, if none is beyond ``most``.

    No coefficient is larger than 1: it takes its own room once, not :math:`sum_k c_k` times.

    Examples:
        >>> largest_once(Fraction(8), [], 20, 1 << 30) == (1 << 42) - (1 << 33) - 1
        True
    """
    h = Fraction(2) ** -lattice_bits
    room = _SPACE * min(h, Fraction(1)) - rounding_error(gaps, lattice_bits) - most * absolute_gain
    return max(0, math.floor(room))


def init_encoder(buffers: int, cells: int) -> State:
    """The states before the first step: halves of 128-bit integers, shape (cells, buffers, 2)."""
    return {"encoder": np.zeros((cells, buffers, 2), dtype=np.uint64)}


def encode(
    state: State, x: Int64, gaps: UInt64, weights: UInt64, largest: int, lattice_bits: int
) -> Int64:
    """Return the coordinates of a block of totals, and advance the states.

    Totals are clamped to ``[-largest, largest]``: states can then never wrap, whatever comes in,
    and clamping moves no two streams apart.

    Raises:
        InvalidInput: The array is not int64, C-contiguous, (steps, cells) of this state.
    """
    states = state["encoder"]
    checked(state, x)
    out = np.empty_like(x)
    _kernels.encode(x, states, gaps, weights, largest, 64 - lattice_bits, out)
    return out


def add_once(state: State, more: Int64, gaps: UInt64, weights: UInt64, lattice_bits: int) -> Int64:
    """Add to the totals of the step that was encoded last; return what its coordinates grow by.

    What is added is rounded down to whole lattice units, so the coordinates and the states are to
    the bit what :func:`encode` makes of the sum.
    """
    unit = 1 << max(0, -lattice_bits)
    alone = {"encoder": np.zeros_like(state["encoder"])}
    whole = np.ascontiguousarray(more[None] // unit * unit)
    row = encode(alone, whole, gaps, weights, _SPACE, lattice_bits)
    mine, other = state["encoder"], alone["encoder"]
    low = mine[..., 1] + other[..., 1]
    mine[..., 0] += other[..., 0] + (low < other[..., 1])
    mine[..., 1] = low
    return row


def comb(state: State, x: Int64, first: int, beta: Fraction, largest: int) -> Int64:
    """Return ``cd x_t - cn x_(t - lag)``, beta = cn / cd, and keep the last ``lag`` totals.

    Totals are clamped to ``[-largest, largest]``. ``state["ring"]``, shape (lag, cells), holds the
    total of step s at ``s % lag``; zeros before the first step.
    """
    out, ring = np.empty_like(x), state["ring"]
    _kernels.comb(x, ring, first % len(ring), *beta.as_integer_ratio(), largest, out)
    return out


def checked(state: State, x: Int64) -> None:
    """Refuse totals that are not of the form that the kernels read.

    Raises:
        InvalidInput: The array is not int64, C-contiguous, (steps, cells) of this state.
    """
    cells = len(state["encoder"])
    if x.dtype != np.int64 or x.ndim != 2 or x.shape[1] != cells or not x.flags.c_contiguous:
        raise InvalidInput(
            f"Expected totals of dtype int64 and shape (steps, {cells}), C-contiguous, got "
            f"{x.dtype} of shape {x.shape}. Other bytes would be read as counts. "
            "Convert them first."
        )
