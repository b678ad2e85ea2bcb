r"""A ratio of two noisy totals, with an interval that is honest for small totals, too.

Fieller's argument (1954). With A and B the noisy totals and :math:`\rho` the true ratio,
:math:`A - \rho B` is noise alone, whatever the totals are; so the :math:`\rho` with

.. math:: (A - \rho B)^2 \le q(\rho)^2 = s - 2 \rho c + \rho^2 t

contain the true one with probability ``level``, q being a half-width of that noise. No variance is
estimated from the data and nothing is linearised. Where B is small they may be two rays; the ratio
is known to lie in [low, high], so that what is cut to it is always an interval.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tidegauge.strategies.weights import Float64

__all__ = ["ratio_interval"]

_TINY = 1e-300


def ratio_interval(
    a: Float64,
    b: Float64,
    widths: tuple[Float64, Float64, Float64],
    ends: tuple[Float64 | float, Float64 | float],
) -> tuple[Float64, Float64, Float64, NDArray[np.bool_]]:
    """Return the ratio, its interval and where the noisy denominator is too small for a ratio.

    Args:
        a: Noisy numerators, any shape.
        b: Noisy denominators, the same shape.
        widths: ``(s, c, t)``: q(rho)^2 = s - 2 rho c + rho^2 t; broadcast to that shape. s and t
            are the squared half-widths of numerators and denominators.
        ends: Least and largest ratio that can be true.

    Returns:
        ``(value, lower, upper, small)``, of the shape of ``a``. ``value`` is cut to the ends, and
        NaN where ``small``: where b is not above its own half-width. ``lower`` and ``upper``
        are numbers everywhere, within the ends.

    Examples:
        >>> one = np.array(1.0)
        >>> value, lower, upper, small = ratio_interval(
        ...     np.array([50.0, 5.0]), np.array([100.0, 0.5]), (one, 0 * one, one), (-1.0, 1.0))
        >>> value, small
        (array([0.5, nan]), array([False,  True]))
        >>> lower.round(3), upper.round(3)
        (array([0.489, 1.   ]), array([0.511, 1.   ]))
    """
    s, c, t = (np.broadcast_to(width, a.shape) for width in widths)
    low, high = (np.broadcast_to(np.asarray(end, dtype=np.float64), a.shape) for end in ends)
    leading, middle, last = b * b - t, a * b - c, a * a - s
    small = (leading <= 0) | (b <= 0)
    leading = np.where(leading == 0, -_TINY, leading)
    with np.errstate(all="ignore"):
        apart = middle * middle - leading * last
        root = np.sqrt(np.maximum(apart, 0.0))
        # the root without cancellation first, the other one by Vieta's formula
        far = np.where(middle >= 0, middle + root, middle - root)
        first, second = far / leading, last / far
        value = np.where(small, np.nan, np.clip(a / b, low, high))
    left, right = np.fmin(first, second), np.fmax(first, second)
    below, above = left >= low, right <= high  # what is left of the two rays
    neither, nearer = ~below & ~above, right - high < low - left
    from_low = below | (neither & ~nearer) | (apart <= 0)
    to_high = above | (neither & nearer) | (apart <= 0)
    outside = leading < 0
    lower = np.where(outside & from_low, low, np.clip(np.where(outside, right, left), low, high))
    upper = np.where(outside & to_high, high, np.clip(np.where(outside, left, right), low, high))
    return value, lower, upper, small
