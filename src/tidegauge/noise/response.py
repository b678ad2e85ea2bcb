r"""Randomised response: bits flipped with probability :math:`1 / (1 + e^\epsilon)`, exactly.

The threshold is the one of a discrete Laplace draw below zero, :math:`q / (1 + q)` with
:math:`q = e^{-1/t}`: on the two values 0 and 1 that law, cut off at both, is randomised response.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from tidegauge.errors import InvalidParameter
from tidegauge.noise import thresholds
from tidegauge.noise.intervals import floors
from tidegauge.noise.law import Law, check_scale
from tidegauge.noise.randomness import Words
from tidegauge.noise.resolver import Tape, Uniform

__all__ = ["BitFlips", "response_half_width"]

Float64 = NDArray[np.float64]
UInt64 = NDArray[np.uint64]
Int64 = NDArray[np.int64]

_BITS = 64
_ROUNDS = 60  # of golden sections: the bracket shrinks by 10^-12


@final
@dataclass(frozen=True)
class BitFlips(Law):
    r"""Flips each of a stream of bits with probability :math:`1 / (1 + e^{1/t})`, exactly.

    Guarantee:
        A bit and its opposite give each result with odds within :math:`e^{1/t}`, so a stream of
        bits of which one changes is (1 / scale)-DP, on every path of an adaptive adversary. Proof:
        ``docs/proofs/bolot.md``.

    Args:
        scale: t, one over epsilon, a Fraction in [1/32, 2**20].

    Raises:
        InvalidParameter: The scale is no Fraction or int, or out of range.

    Examples:
        >>> round(BitFlips(Fraction(1)).chance, 6), round(BitFlips(Fraction(1)).variance, 4)
        (0.268941, 0.9207)

    References:
        Warner 1965.
    """

    scale: Fraction

    def __post_init__(self) -> None:
        check_scale(self.scale, Fraction(1, 32), Fraction(1 << 20), "1/32", "2**20")
        object.__setattr__(self, "scale", Fraction(self.scale))

    @property
    def chance(self) -> float:
        """How often a bit is flipped."""
        return 1 / (1 + math.exp(1 / self.scale))

    @property
    def variance(self) -> float:
        r"""Of a bit with its bias taken out, :math:`e^\epsilon / (e^\epsilon - 1)^2`, 0 or 1."""
        return 0.25 / math.sinh(float(1 / (2 * self.scale))) ** 2

    @property
    def words_each(self) -> int:
        """1: how many 128-bit words one bit takes."""
        return 1

    def add(
        self, words: Words, values: Int64, coordinates: Int64, numbers: Int64 | None = None
    ) -> None:
        """Flip every bit or leave it, in place; see :meth:`Law.add`.

        Raises:
            InvalidParameter: A value is no bit; nothing was flipped.
        """
        if isinstance(values, np.ndarray) and not ((values == 0) | (values == 1)).all():
            raise InvalidParameter(
                "Expected bits, got another value. Its flip would not hide it. Measure predicates "
                "that are 0 or 1."
            )
        super().add(words, values, coordinates, numbers)

    def attempt(
        self, words: UInt64, values: Int64, start: int, lanes: Int64, pending: Int64
    ) -> int:
        """Flip the decided bits; list the undecided lanes in ``pending``."""
        known = words[:, 0]
        if not len(lanes):
            lanes = np.arange(start, start + len(known))
        values[lanes[known < self._threshold]] ^= 1
        unsure = lanes[known == self._threshold]
        pending[: len(unsure)] = -1 - unsure
        return -len(unsure)

    def resolve(self, tape: Tape) -> int:
        """Return 1 where the bit of one lane is flipped, exactly."""
        flipped = Uniform(tape.block(0)[0], _BITS, tape).rank(thresholds.negative(self.scale)) == 0
        return int(flipped)

    def meet(self, value: int, draw: int) -> int:
        """Return the bit, flipped where the draw is 1."""
        return value ^ draw

    @cached_property
    def _threshold(self) -> Any:
        """floor(2**64 chance): words below are flips, words above are none."""
        return np.uint64(floors(thresholds.negative(self.scale), _BITS)[0])


def response_half_width(scale: float, weights: Float64, counts: Int64, tail: float) -> float:
    r"""Return a bound that a weighted sum of errors exceeds with probability at most ``tail``.

    An error is that of a bit with its bias taken out. Its law depends on the bit, which the bound
    must not: it is the least of :math:`(\ln(2/\gamma) + \sum_k \ln \max_x E e^{\lambda g_k e_x}) /
    \lambda` over lambda. Terms are at least 0, so that a longer sum has no smaller bound.

    Args:
        scale: Of the flips.
        weights: The different weights g of errors, shape (n,).
        counts: How many errors have each, shape (n,).
        tail: gamma, above 0 and below 1.
    """
    p, rate = 1 / (1 + math.exp(1 / scale)), math.tanh(0.5 / scale)
    norm = float(np.sqrt(counts @ weights**2))
    if norm == 0:
        return 0.0

    def bound(log_slope: float) -> float:
        moved = math.exp(log_slope) * weights / rate
        flipped = np.logaddexp(math.log(p) + (1 - p) * moved, math.log1p(-p) - p * moved)
        mirrored = np.logaddexp(math.log(p) - (1 - p) * moved, math.log1p(-p) + p * moved)
        moments = float(counts @ np.maximum(flipped, mirrored))
        return (math.log(2 / tail) + moments) / math.exp(log_slope)

    return _least(bound, -math.log(norm) - 12, -math.log(norm) + 12)


def _least(function: Callable[[float], float], low: float, high: float) -> float:
    """The least value of a function with one minimum, by golden sections; every value bounds."""
    golden = (math.sqrt(5) - 1) / 2
    for _ in range(_ROUNDS):
        left, right = high - golden * (high - low), low + golden * (high - low)
        if function(left) < function(right):
            high = right
        else:
            low = left
    return function((low + high) / 2)
