"""How wide intervals are, from the exact tails of the noise that a view's number has in it."""

from __future__ import annotations

from functools import lru_cache
from math import sqrt

import numpy as np

from tidegauge.noise.gaussian import RoundedGaussian
from tidegauge.noise.law import Law
from tidegauge.noise.quantile import gaussian_half_width, laplace_half_width
from tidegauge.noise.response import BitFlips, response_half_width
from tidegauge.strategies.decay import Decay
from tidegauge.strategies.strategy import Float64, Int64, Strategy

__all__ = ["half_widths"]

_CLOSE = 0.998  # stds this close share one half-width


def half_widths(
    strategy: Strategy, law: Law, decay: Decay, steps: Int64, tail: Float64, summed: int = 1
) -> Float64:
    """Return half the width of a view's interval at each of ``steps``, in grains.

    Args:
        strategy: Which combines the draws.
        law: Of each of them, in lattice units of the strategy.
        decay: The view.
        steps: Step numbers, counted from 1 and growing; shape (n,).
        tail: The chance of a miss at each of them, which never grows; shape (n,).
        summed: How many cells are added up; their noises are independent.

    Returns:
        float64 of shape (n,); never narrower than the noise needs.
    """
    std = np.sqrt(strategy.variance_gain(decay, steps)) * law.std
    std *= sqrt(summed)
    if isinstance(law, RoundedGaussian):
        return gaussian_half_width(std, tail)
    alike = strategy.gain_tells_terms(decay)
    growing = alike and bool((np.diff(std) >= 0).all())
    found = dict[tuple[float, float], float]()
    result, used = np.empty(len(steps)), -1
    for i in range(len(steps) - 1, -1, -1):
        # a sum of more draws spreads wider (Anderson), and tails never grow: the width of a
        # slightly later step is safe
        if not growing or used < 0 or std[i] < std[used] * _CLOSE:
            # steps of one variance weigh draws alike: longer rows differ by weights of 0 alone
            key = float(std[i] if alike else i), float(tail[i])
            if key not in found:
                weights, counts = strategy.noise_terms(decay, int(steps[i]))
                terms = weights.tobytes(), (counts * summed).tobytes()
                flips = isinstance(law, BitFlips)
                found[key] = _summed_half_width(flips, float(law.scale), *terms, key[1])
            used, width = i, found[key]
        result[i] = width
    return result


@lru_cache(maxsize=4096)
def _summed_half_width(
    flips: bool, scale: float, weights: bytes, counts: bytes, tail: float
) -> float:
    """The half-width of a sum of draws; few sums serve many steps."""
    half_width = response_half_width if flips else laplace_half_width
    return half_width(scale, np.frombuffer(weights), np.frombuffer(counts, np.int64), tail)
