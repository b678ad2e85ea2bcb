r"""The rounded Gaussian: round(N(0, scale^2)) on the integers, exactly.

For an integer ``m``, ``m + round(N) = round(m + N)``: adding this noise to integers is a
post-processing of the real Gaussian mechanism, so it is exactly mu-GDP, mu = sensitivity / scale.

Every scale is :math:`2^k s_0` with s0 in [64, 128). ``x`` comes from the table of a half Gaussian
of scale s0 on 0, 1, 2, ..; ``y`` is uniform in [0, 1); the pair is accepted with probability
:math:`e^{-y (y + 2x) / 2 s_0^2}` (at least 0.99 on average). Then x + y has the half Gaussian
density of scale s0, and the draw is :math:`\pm\lfloor 2^k (x + y) + 1/2 \rfloor` with a sign bit of
its own. Both signs of 0 are kept: they are the two halves of the cell [-1/2, 1/2).
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
from tidegauge.noise.law import Law, check_scale, guided
from tidegauge.noise.resolver import Tape

if TYPE_CHECKING:
    from tidegauge.noise import _kernels
else:
    _kernels = lazy_module("tidegauge.noise._kernels")

__all__ = ["LARGEST_SCALE", "LEAST_SCALE", "RoundedGaussian"]

LEAST_SCALE, LARGEST_SCALE = Fraction(1, 16), Fraction(1 << 55)
_TABLE_BITS = 48
_GUIDE_BITS = 11

UInt64 = NDArray[np.uint64]
Int64 = NDArray[np.int64]
Tables = tuple[UInt64, NDArray[np.int16]]


@final
@dataclass(frozen=True)
class RoundedGaussian(Law):
    r"""The law of :math:`\mathrm{round}(N(0, s^2))`, exact for every rational scale.

    Guarantee:
        Added to integers whose neighbors differ by at most ``d`` in L2, on every path of an
        adaptive adversary: exactly mu-GDP, mu = d / scale. Proof: ``docs/proofs/
        rounded_gaussian.md``.

    Args:
        scale: s in lattice units, a Fraction in [1/16, 2**55].

    Raises:
        InvalidParameter: The scale is no Fraction or int, or out of range.

    Examples:
        >>> RoundedGaussian(Fraction(1000)).std  # sqrt(1000^2 + 1/12)
        1000.0000416666658

    Cost:
        Privacy: mu = sensitivity / scale a gauge. Time: about 10 ns a draw in large blocks, one
        128-bit word (two from scale 2**46 on); tables take 1 to 3 ms, once a scale. Memory: below
        1 MB of scratch, whatever the block.

    References:
        Canonne, Kamath and Steinke 2020 for the discrete sibling.
    """

    scale: Fraction

    def __post_init__(self) -> None:
        check_scale(self.scale, LEAST_SCALE, LARGEST_SCALE, "1/16", "2**55")
        object.__setattr__(self, "scale", Fraction(self.scale))

    @property
    def variance(self) -> float:
        """The variance of the implemented law, in squared lattice units."""
        if self.scale >= 4:  # the other terms are below 1e-130 (Poisson summation)
            return float(self.scale * self.scale + Fraction(1, 12))
        root = float(self.scale) * math.sqrt(2)
        return math.fsum(
            (2 * j - 1) * math.erfc((j - 0.5) / root) for j in range(1, int(28 * root) + 3)
        )

    @property
    def words_each(self) -> int:
        """How many 128-bit words one attempt of one lane takes."""
        return 2 if self._shift >= 40 else 1

    def attempt(
        self, words: UInt64, values: Int64, start: int, lanes: Int64, pending: Int64
    ) -> int:
        """Add the decided draws of one attempt; list the other lanes in ``pending``."""
        table, guide = self._tables
        return int(
            _kernels.rounded_gaussian(
                words, values, start, lanes, pending, table, guide, self._shift, self._inverse
            )
        )

    def resolve(self, tape: Tape) -> int | None:
        """Return the draw of one attempt exactly, None if it is rejected."""
        return resolver.rounded_gaussian(tape, self._shift, self.base)

    @cached_property
    def _shift(self) -> int:
        """The k of scale = 2**k s0; negative for scales below 64."""
        whole = (self.scale * 16).__floor__()  # at least 1
        return whole.bit_length() - 11

    @cached_property
    def base(self) -> Fraction:
        """The s0 of scale = 2**k s0, in [64, 128)."""
        return self.scale / Fraction(2) ** self._shift

    @cached_property
    def _inverse(self) -> np.uint64:
        """floor(2**77 / (2 s0^2)), at most 2**64 - 1."""
        return np.uint64(min((1 << 64) - 1, (1 << 76) // (self.base * self.base)))

    @cached_property
    def _tables(self) -> Tables:
        return _tables(self.base)


@lru_cache(maxsize=64)
def _tables(base: Fraction) -> Tables:
    """Return floor(2**48 F) up to its largest value, and where to start, by leading bits."""
    entries = floors(thresholds.half_gaussian(base), _TABLE_BITS)
    table, guide = guided(entries, _TABLE_BITS, _GUIDE_BITS)
    assert 7 * len(table) < base * base  # exponents of acceptance stay below 1/7, as proved
    return table, guide
