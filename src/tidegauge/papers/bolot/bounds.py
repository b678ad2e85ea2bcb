"""Lower bounds on the error of any pure private algorithm: Theorem 7 and its corollaries."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from tidegauge.checks import exact, shown
from tidegauge.errors import InvalidParameter
from tidegauge.strategies.decay import Decay, Running, Window

__all__ = ["lower_bound", "std_bound"]

_MOST_STEPS = 1 << 22


def lower_bound(decay: Decay, epsilon: float | Fraction, gamma: float | Fraction) -> float:
    r"""Return what the error of any epsilon-DP algorithm exceeds with chance gamma or more.

    An algorithm that is within delta of every decayed sum with probability above 1 - gamma, at
    each step by itself, has

    .. math:: \delta \ge \tfrac12 \max_{d \le D} \Bigl| \sum_{k < d} g(k) \Bigr|, \quad
        D = \max \{ d : e^{\epsilon d} < (1 - \gamma) / \gamma \},

    whatever it does: factorization or not. For a window this is min(W, D) / 2 (Corollary 1), for a
    factor alpha :math:`(1 - \alpha^D) / (2 - 2 \alpha)` (Corollary 2), for a polynomial decay half
    a generalised harmonic number (Corollary 3). Randomised response meets it for single steps.

    Args:
        decay: The decay.
        epsilon: Of pure differential privacy, for one reading in [0, 1] that is replaced.
        gamma: In (0, 1/2); from 1/2 on nothing follows, and the bound is 0.

    Returns:
        delta, in units of a reading.

    Raises:
        InvalidParameter: No decay; or a number is out of range, or so small that 2^22 steps do
            not decide.

    Examples:
        >>> lower_bound(Window(256), 1, 0.01), lower_bound(Running(), 0.1, 0.01)
        (2.0, 22.5)

    References:
        Bolot et al. 2013, Lemma 4 and Theorem 7, with the constants that its proof gives: see
        ``docs/errata.md``.
    """
    _check(decay)
    rate = exact("epsilon", epsilon, above=0, why="It is the privacy that is promised. Write 1.")
    why = "It is the chance of a larger error. Write 0.05."
    chance = float(exact("gamma", gamma, above=0, below=1, why=why))
    reach = (math.log1p(-chance) - math.log(chance)) / float(rate)
    most = max(0, math.ceil(reach * (1 - 1e-12)) - 1)  # strictly below, also where it is a whole
    if most > _MOST_STEPS and not isinstance(decay, Running | Window):
        raise InvalidParameter(
            f"Expected epsilon and gamma for which at most 2^22 readings decide, got {most}. Each "
            "weight is added up. Use a larger epsilon or gamma."
        )
    return 0.5 * _moved(decay, most)


def std_bound(decay: Decay, epsilon: float | Fraction) -> float:
    r"""Return the least root mean square error of any epsilon-DP algorithm, at its worst stream.

    .. math:: \max_d \frac{|\sum_{k < d} g(k)|}{2 \sqrt{1 + e^{\epsilon d}}}

    Of two streams that differ in d readings, and so in this sum, one makes every algorithm err by
    half of it with probability at least :math:`1 / (1 + e^{\epsilon d})` (the proof of
    :func:`lower_bound`).

    Args:
        decay: The decay.
        epsilon: Of pure differential privacy; at least 0.0001.

    Raises:
        InvalidParameter: No decay, or epsilon is out of range.

    Examples:
        >>> round(std_bound(Running(), 1), 3)
        0.345
    """
    _check(decay)
    rate = float(exact("epsilon", epsilon, above=0, why="It is the promise. Write 1."))
    if rate < 1e-4:
        raise InvalidParameter(
            f"Expected epsilon of at least 0.0001, got {rate}. Too many readings decide. Scale the "
            "bound of a larger one."
        )
    counts = np.arange(1, math.ceil(60 / rate) + 1)
    sums = np.abs(np.cumsum(decay.weights(len(counts))))
    return float((0.5 * sums * np.exp(-0.5 * np.logaddexp(0, rate * counts))).max())


def _check(decay: object) -> None:
    if not isinstance(decay, Decay):
        raise InvalidParameter(
            f"Expected a decay, got {shown(decay)}. The bound is half of what its latest weights "
            "add up to. Use Running(), Window(7) or another of tidegauge.strategies.decay."
        )


def _moved(decay: Decay, most: int) -> float:
    """How far up to ``most`` latest readings can move the decayed sum."""
    match decay:
        case Running():
            return float(most)
        case Window(steps=steps):
            return float(min(steps, most))
        case _:
            return float(np.abs(np.cumsum(decay.weights(most))).max(initial=0.0))
