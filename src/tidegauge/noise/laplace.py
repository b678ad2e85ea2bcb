r"""The discrete Laplace law, :math:`P(k) \propto e^{-|k|/t}`, exactly.

With :math:`q = e^{-1/t}`: a sign that is negative with probability q / (1 + q), and a geometric G,
:math:`P(G = g) = (1 - q) q^g`; the draw is -1 - G or G. So no value occurs twice and nothing is
rejected. The base-256 digits of G are independent, as :math:`q^{\sum d_j 256^j}` factorizes: digit
j is a geometric of rate 256^j / t cut off at 256, the top is a geometric of rate 256^n / t.
Sign, digits and top take 32 bits each, four from one 128-bit word.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import NDArray

from tidegauge.compiled import lazy_module
from tidegauge.noise import resolver, thresholds
from tidegauge.noise.intervals import floors
from tidegauge.noise.law import Law, check_scale
from tidegauge.noise.resolver import Tape

if TYPE_CHECKING:
    from tidegauge.noise import _kernels
else:
    _kernels = lazy_module("tidegauge.noise._kernels")

__all__ = ["LARGEST_SCALE", "LEAST_SCALE", "DiscreteLaplace"]

LEAST_SCALE, LARGEST_SCALE = Fraction(1, 512), Fraction(1 << 50)
_BITS = 32
_GUIDE_BITS = 10
_NEAR = 1 << 20  # of 2**24: one word in 16 is looked up

UInt64 = NDArray[np.uint64]
Int64 = NDArray[np.int64]
Tables = tuple[np.uint32, NDArray[np.uint32], NDArray[np.uint16]]


@final
@dataclass(frozen=True)
class DiscreteLaplace(Law):
    r"""The law :math:`P(k) = \frac{1-q}{1+q} q^{|k|}`, :math:`q = e^{-1/t}`, exact for rational t.

    Guarantee:
        Added to integers whose neighbors differ by at most ``d`` in L1, on every path of an
        adaptive adversary: (d / scale)-DP. Proof: ``docs/proofs/discrete_laplace.md``.

    Args:
        scale: t in lattice units, a Fraction in [1/512, 2**50].

    Raises:
        InvalidParameter: The scale is no Fraction or int, or out of range.

    Examples:
        >>> round(DiscreteLaplace(Fraction(1)).variance, 6)  # 1 / (2 sinh(1/2)^2)
        1.841347

    Cost:
        Privacy: epsilon = sensitivity / scale a gauge. Time: 10 to 25 ns a draw in large blocks,
        one 128-bit word up to scale 2**21, two beyond; tables take 0.1 to 3 ms, once a scale.
        Memory: below 1 MB of scratch, whatever the block.

    References:
        Ghosh, Roughgarden and Sundararajan 2009 (the law).
    """

    scale: Fraction

    def __post_init__(self) -> None:
        check_scale(self.scale, LEAST_SCALE, LARGEST_SCALE, "1/512", "2**50")
        object.__setattr__(self, "scale", Fraction(self.scale))

    @property
    def variance(self) -> float:
        """The variance of the implemented law, in squared lattice units."""
        return 0.5 / math.sinh(float(1 / (2 * self.scale))) ** 2

    @property
    def words_each(self) -> int:
        """How many 128-bit words one draw takes."""
        return (self.digits + 5) // 4

    @cached_property
    def digits(self) -> int:
        """Base-256 digits below the top: the least number that leaves the top at most 32 scales."""
        digits = 0
        while 256 ** (digits + 1) < 8 * self.scale:
            digits += 1
        return digits

    def attempt(
        self, words: UInt64, values: Int64, start: int, lanes: Int64, pending: Int64
    ) -> int:
        """Add the decided draws; list the undecided lanes in ``pending``."""
        parts = words.view(np.uint32)
        return int(
            _kernels.discrete_laplace(
                parts, values, start, lanes, pending, *self._tables, self._margins, self.digits
            )
        )

    def resolve(self, tape: Tape) -> int:
        """Return the draw of one lane exactly."""
        return resolver.discrete_laplace(tape, self.scale, self.digits)

    @cached_property
    def _tables(self) -> Tables:
        return _tables(self.scale, self.digits)

    @cached_property
    def _margins(self) -> NDArray[np.uint32]:
        return _margins(self._tables[1], self.digits)


@lru_cache(maxsize=64)
def _tables(scale: Fraction, digits: int) -> Tables:
    """Return the threshold of the sign, floor(2**32 F) of digits and top, and their guides."""
    full = (1 << _BITS) - 1
    parts = [thresholds.geometric_digit(256**digit / scale) for digit in range(digits)]
    lists = [[*floors(part, _BITS), full] for part in parts]
    lists.append(floors(thresholds.geometric(256**digits / scale), _BITS))
    tables = np.full((digits + 1, max(256, *map(len, lists))), full, dtype=np.uint32)
    guides = np.empty((digits + 1, 1 << _GUIDE_BITS), dtype=np.uint16)
    starts = np.arange(1 << _GUIDE_BITS, dtype=np.uint32) << np.uint32(_BITS - _GUIDE_BITS)
    for row, entries in enumerate(lists):
        tables[row, : len(entries)] = entries
        guides[row] = np.searchsorted(tables[row], starts)
    return np.uint32(floors(thresholds.negative(scale), _BITS)[0]), tables, guides


def _margins(tables: NDArray[np.uint32], digits: int) -> NDArray[np.uint32]:
    """Return the 24 bits from which on, exclusively, the first 8 bits of a word are the digit.

    Small digits are nearly uniform: their thresholds lie at or just above the multiples of 2**24.
    Where one lies below, or so far above that a table is as fast, and at the top: all of them.
    """
    margins = np.full(digits + 1, (1 << 24) - 1, np.uint32)
    over = tables[:digits, :255].astype(np.int64) - (np.arange(1, 256) << 24)
    for digit, (least, most) in enumerate(zip(over.min(1), over.max(1), strict=True)):
        if least >= 0 and most <= _NEAR:
            margins[digit] = most
    return margins
