r"""The integer weights of an exponential decay: :math:`w_d \approx 2^F \alpha^d`, never increasing.

An age is two digits, :math:`d = n L + m`, and its weight one product of two table entries:

.. math:: w_d = round(h_n l_m / 2^{62 - F}), \quad l_m = round(2^{31} \alpha^m), \quad
    h_{n+1} = \min(round(2^{31} \alpha^{(n+1) L}), \lfloor h_n l_{L-1} / 2^{31} \rfloor).

So the tables grow with the root of the decay's memory, not with it; where the memory is short,
``l`` is the whole table. The minimum makes the weights fall across the digits as well: the worst
event of a tree is then known (``docs/proofs/bolot.md``). All of it is integer arithmetic: every
machine makes the same table.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tidegauge.strategies.strategy import MOST_STEPS, Int64

__all__ = ["UNIT_BITS", "Table", "powers", "table_of"]

UNIT_BITS = 64
"""A gap, one minus the factor, is an integer over 2^64."""

_PRECISE = 192  # bits of the powers: after 2^38 products their error is below 2^-150
_ENTRY = 31  # bits of an entry: a product fits 64
_SHORT = 1 << 12  # ages that one table lists


@dataclass(frozen=True)
class Table:
    """The weights of all ages.

    Attributes:
        high: h, shape (digits,); 0 follows.
        low: l, shape (L,), L a power of two.
    """

    high: Int64
    low: Int64

    @property
    def shift(self) -> int:
        """log2 L."""
        return len(self.low).bit_length() - 1

    def weight(self, age: int, bits: int) -> int:
        """Return w at one age, for F = bits."""
        digit = age >> self.shift
        if digit >= len(self.high):
            return 0
        product = int(self.high[digit]) * int(self.low[age & (len(self.low) - 1)])
        return (product + (1 << 61 - bits)) >> 62 - bits

    def total(self, bits: int) -> int:
        """The sum of all weights, or just above: each is rounded up by at most a half."""
        products: int = sum(self.high.tolist()) * sum(self.low.tolist())
        return -(-products >> 62 - bits) + (len(self.high) * len(self.low) + 1) // 2


@lru_cache(maxsize=64)
def table_of(gap: int) -> Table:
    """Return the weights for the factor ``1 - gap / 2^64``."""
    factor = (1 << _PRECISE) - (gap << (_PRECISE - UNIT_BITS))
    reach = _reach(factor)
    shift = reach.bit_length() if reach <= _SHORT else (reach.bit_length() + 1) // 2
    low = _rounded(factor, 1 << shift)
    block = _power(factor, 1 << shift)
    high, exact = [1 << _ENTRY], block
    while high[-1] and len(high) << shift < 2 * MOST_STEPS:
        high.append(min(_round(exact), high[-1] * low[-1] >> _ENTRY))
        exact = exact * block >> _PRECISE
    return Table(_fixed(high), _fixed(low))


def powers(gap: int, count: int) -> list[float]:
    """Return the factor to the powers 1, 2, 4, 8, ..., each correctly rounded."""
    exact = (1 << _PRECISE) - (gap << (_PRECISE - UNIT_BITS))
    found = []
    for _ in range(count):
        found.append(exact / (1 << _PRECISE))
        exact = exact * exact >> _PRECISE
    return found


def _reach(factor: int) -> int:
    """A power of two of ages, at which nothing is left of the weight, or that no stream has."""
    reach, exact = 1, factor
    while reach < MOST_STEPS and _round(exact):
        reach, exact = 2 * reach, exact * exact >> _PRECISE
    return reach


def _rounded(factor: int, count: int) -> list[int]:
    found, exact = [], 1 << _PRECISE
    for _ in range(count):
        found.append(_round(exact))
        exact = exact * factor >> _PRECISE
    return found


def _power(factor: int, exponent: int) -> int:
    """The factor to a power of two."""
    for _ in range(exponent.bit_length() - 1):
        factor = factor * factor >> _PRECISE
    return factor


def _round(exact: int) -> int:
    return (exact + (1 << (_PRECISE - _ENTRY - 1))) >> (_PRECISE - _ENTRY)


def _fixed(values: list[int]) -> Int64:
    array = np.array(values, np.int64)
    array.setflags(write=False)
    return array
