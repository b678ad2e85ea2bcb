"""The inverse of a buffered Toeplitz matrix: its poles are the zeros of C, found in integers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import final

import numpy as np

from tidegauge.strategies.blt.buffers import UNIT
from tidegauge.strategies.weights import Float64

__all__ = ["Inverse", "zeros"]


_FINE = 1 << 64  # zeros are found in units of 2^-128


@lru_cache(maxsize=256)
def zeros(gaps: tuple[int, ...], weights: tuple[int, ...]) -> tuple[int, ...]:
    """Return one minus each zero of C, in units of 2^-128: one after each gap.

    They solve ``1 + sum_j w_j / (gaps_j - y) = 0``, which rises from minus to plus infinity
    between two neighbours, and is positive at 1 if C is interlaced; found by bisection in integers.

    Examples:
        >>> zeros((1 << 63,), (1 << 62,))[0] / 2**128
        0.75
    """
    ends = (*gaps, UNIT)

    def above(y: int) -> bool:
        return sum((w << 256) // (g * _FINE - y) for g, w in zip(gaps, weights, strict=True)) > -(
            1 << 192
        )

    found = []
    for start, end in zip(gaps, ends[1:], strict=True):
        low, high = start * _FINE, end * _FINE
        while high - low > 1:
            middle = (low + high) >> 1
            low, high = (low, middle) if above(middle) else (middle, high)
        found.append(low if low > start * _FINE else high)
    return tuple(found)


@final
@dataclass(frozen=True, eq=False)
class Inverse:
    """1 / C = 1 - sum_i omega_i z / (1 - zh_i z), with y_i = 1 - zh_i; omega_i > 0."""

    poles: Float64  # 1 - theta_j
    y: Float64
    omega: Float64

    @classmethod
    def of(cls, gaps: tuple[int, ...], weights: tuple[int, ...]) -> Inverse:
        """Return the inverse of the filter with these integers."""
        roots = zeros(gaps, weights)
        omega = []
        for i, root in enumerate(roots):
            value = Fraction(root - gaps[i] * _FINE, UNIT * _FINE)
            for j, other in enumerate(roots):
                if j != i:
                    value *= Fraction(gaps[j] * _FINE - root, other - root)
            omega.append(float(value))
        y = np.array([min(root / (UNIT * _FINE), 1 - 2.0**-53) for root in roots])
        return cls(np.array([g / UNIT for g in gaps]), y, np.array(omega))

    def at(self, gap: Float64) -> Float64:
        """Return 1 / C at z = 1 / (1 - gap)."""
        ratios = (self.poles - gap[:, None]) / (self.y - gap[:, None])
        return np.asarray(ratios.prod(axis=1))

    def impulse(self, n: int) -> Float64:
        """Return the first n coefficients of 1 / C."""
        k = np.arange(n - 1, dtype=np.float64)
        tail = np.zeros(n - 1)
        for y, omega in zip(self.y, self.omega, strict=True):
            tail -= omega * np.exp(k * math.log1p(-y))
        return np.concatenate([np.ones(1), tail])
