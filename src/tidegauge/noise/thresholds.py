r"""The distribution functions behind both laws, as certified brackets (see ``intervals``).

Each function of this module returns ``Brackets``: called with ``bits`` it gives the lower and the
upper ends of an increasing list of thresholds. The lists end where the rest of the law has less
than ``2**-bits``; they are longer at more bits. Results are cached: the parameters are public.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import isqrt

from tidegauge.noise.intervals import Brackets, ceil_shift, exp_bracket

__all__ = ["geometric", "geometric_digit", "half_gaussian", "negative"]

BASE = 256


@lru_cache(maxsize=256)
def half_gaussian(scale: Fraction) -> Brackets:
    r"""Thresholds :math:`F(x) = \sum_{i \le x} w_i / \sum_i w_i`, :math:`w_i = e^{-i^2/2s^2}`.

    With :math:`q = e^{-1/2s^2}`: :math:`w_{i+1} = w_i q^{2i+1}`. Beyond the last term ``n >= s``
    the weights sum to at most :math:`w_n / (1 - e^{-n/s^2}) \le w_n (1 + s^2/n) \le w_n (1 + s)`.
    """

    @lru_cache(maxsize=8)
    def brackets(bits: int) -> tuple[list[int], list[int]]:
        unit = bits + 32
        n = isqrt((scale * scale * 7 * (bits + 32) / 5).__ceil__()) + 2  # w_n < 2^-(bits + 32)
        low, high = _weights(scale, n, unit)
        rest = high.pop() * (2 + scale.__ceil__())
        low.pop()
        total_low, total_high = sum(low), sum(high) + rest
        sum_low = sum_high = 0
        lows, highs = [], []
        for a, b in zip(low, high, strict=True):
            sum_low, sum_high = sum_low + a, sum_high + b
            lows.append((sum_low << bits) // total_high)
            highs.append(min(1 << bits, -(-(sum_high << bits) // total_low)))
        return lows, highs

    return brackets


def _weights(scale: Fraction, n: int, unit: int) -> tuple[list[int], list[int]]:
    """Bracket ``w_0 .. w_n`` of a half Gaussian in units of ``2**-unit``."""
    inverse = 1 / (2 * scale * scale)
    weight_low = weight_high = 1 << unit
    ratio_low, ratio_high = exp_bracket(inverse, unit)
    square_low, square_high = exp_bracket(2 * inverse, unit)
    low, high = [], []
    for _ in range(n + 1):
        low.append(weight_low)
        high.append(weight_high)
        weight_low = weight_low * ratio_low >> unit
        weight_high = ceil_shift(weight_high * ratio_high, unit)
        ratio_low = ratio_low * square_low >> unit
        ratio_high = ceil_shift(ratio_high * square_high, unit)
    return low, high


@lru_cache(maxsize=256)
def negative(scale: Fraction) -> Brackets:
    r"""The one threshold :math:`q / (1 + q)`, :math:`q = e^{-1/t}`: how often a draw is below 0."""

    @lru_cache(maxsize=8)
    def brackets(bits: int) -> tuple[list[int], list[int]]:
        unit = bits + 8
        low, high = exp_bracket(1 / scale, unit)
        one = 1 << unit
        return [(low << bits) // (one + low)], [-(-(high << bits) // (one + high))]

    return brackets


@lru_cache(maxsize=1024)
def geometric_digit(rate: Fraction) -> Brackets:
    r"""Thresholds :math:`(1 - r^{k+1}) / (1 - r^{256})`, k = 0 .. 254, :math:`r = e^{-rate}`."""

    @lru_cache(maxsize=8)
    def brackets(bits: int) -> tuple[list[int], list[int]]:
        unit = bits + 32 + max(0, (1 / rate).__ceil__().bit_length())
        one = 1 << unit
        low, high = _powers(rate, BASE, unit)
        whole_low, whole_high = one - high[-1], one - low[-1]
        lows = [((one - top) << bits) // whole_high for top in high[:-1]]
        highs = [min(1 << bits, -(-((one - end) << bits) // whole_low)) for end in low[:-1]]
        return lows, highs

    return brackets


@lru_cache(maxsize=256)
def geometric(rate: Fraction) -> Brackets:
    r"""Thresholds :math:`1 - r^{k+1}`, k = 0, 1, .., :math:`r = e^{-rate}`."""

    @lru_cache(maxsize=8)
    def brackets(bits: int) -> tuple[list[int], list[int]]:
        unit = bits + 32
        one = 1 << unit
        n = (Fraction(7 * bits, 10) / rate).__ceil__() + 1  # r^n < 2^-bits
        low, high = _powers(rate, n, unit)
        return [(one - top) >> 32 for top in high], [ceil_shift(one - end, 32) for end in low]

    return brackets


def _powers(rate: Fraction, n: int, unit: int) -> tuple[list[int], list[int]]:
    """Bracket ``r, r^2, .., r^n`` in units of ``2**-unit``."""
    ratio_low, ratio_high = exp_bracket(rate, unit)
    low, high = [ratio_low], [ratio_high]
    for _ in range(n - 1):
        low.append(low[-1] * ratio_low >> unit)
        high.append(ceil_shift(high[-1] * ratio_high, unit))
    return low, high
