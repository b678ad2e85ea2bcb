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

__all__ = ["laplace_widths", "ratio_interval", "widest_half"]

_TINY = 1e-300
_CERTAIN = 0.93  # from this level on the straight line of laplace_widths is safe
_LOOKED = 65  # ratios at which an interval is looked at, beside those where an end is met
_HALVINGS = 50
_MOST_MORE = 1 / 3  # by so much it falls short for the least levels


def laplace_widths(
    one: Float64, two: Float64, tail: Float64, lattice: float
) -> tuple[Float64, Float64, Float64]:
    r"""Return ``(s, c, t)`` for numerators and denominators with independent Laplace noise alike.

    The squared half-width of :math:`Z_1 - \rho Z_2` is taken as a straight line in
    :math:`\rho^2` between those of one and of two draws. Of low levels it would be too narrow: for
    one draw by 4/3 where the level is near 0, by 1.10 at 0.5, not at all from 0.92 on; no other
    weights of draws need more. So it is widened by 4/3 at level 0, falling to 1 at 0.93. On top
    comes half a lattice for each draw, since half-widths jump from one lattice point to the next.

    Args:
        one: Half-widths of the noise of a view, shape (n,).
        two: Those of the sum of two such noises.
        tail: The chance that a noise is beyond them.
        lattice: What one grain of noise changes the view by at most.

    Examples:
        >>> s, _, t = laplace_widths(np.array([3.0]), np.array([4.5]), np.array([0.05]), 0.0)
        >>> s, t
        (array([9.]), array([11.25]))
    """
    more = 1 + _MOST_MORE * np.maximum(0.0, 1 - (1 - tail) / _CERTAIN)
    s, both = more * (one + lattice / 2) ** 2, more * (two + lattice) ** 2
    return s, np.zeros_like(s), both - s


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


def widest_half(
    b: Float64, widths: tuple[float, float, float], ends: tuple[float, float]
) -> Float64:
    """Return half of the width of the widest interval of any ratio, of denominators ``b``.

    Both ends of an interval grow with the ratio. Up to where one of them meets an end of what can
    be true it is the wider the further the ratio is from 0, and from there on the narrower: so it
    is widest there, or at an end. Other ratios are looked at as well, for small denominators.

    Args:
        b: Denominators, shape (n,), without noise, like the numerators.
        widths: As for :func:`ratio_interval`, one for all.
        ends: Least and largest ratio that can be true.

    Examples:
        >>> widest_half(np.array([0.1, 10.0, 1000.0]), (1.0, 0.0, 1.0), (-1.0, 1.0)).round(4)
        array([1.    , 0.1327, 0.0014])
    """
    shape = _LOOKED, len(b)
    s, c, t = (np.full((1, 1), width) for width in widths)

    def interval(ratios: Float64) -> tuple[Float64, Float64]:
        wide = np.broadcast_to(b, ratios.shape)
        _, lower, upper, _ = ratio_interval(ratios * wide, wide, (s, c, t), ends)
        return lower, upper

    candidates = [np.broadcast_to(np.linspace(*ends, _LOOKED)[:, None], shape)]
    for side in (0, 1):
        low, high = np.full((1, len(b)), ends[0]), np.full((1, len(b)), ends[1])
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            found = interval(middle)[side]
            beyond = found > ends[0] if side == 0 else found >= ends[1]
            low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
        candidates += [low, high]
    lower, upper = interval(np.concatenate(candidates))
    return np.asarray((upper - lower).max(axis=0) / 2)
