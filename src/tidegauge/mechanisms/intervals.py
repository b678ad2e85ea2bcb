r"""Which intervals stand beside the values: at each step alone, or a band around the whole curve.

* ``pointwise``: at each step the interval covers the true value with probability ``level``. Of 1000
  steps at 0.95, about 50 are not covered.
* ``simultaneous``: with probability ``level`` every interval of one view and cell covers its true
  value, at all steps at once. By Boole's inequality, whatever the steps have to do with one
  another: the chance of a miss, ``1 - level``, is shared out over the steps. With an end, each of
  them gets the same share. Without one, the steps :math:`2^j, ..., 2^{j+1} - 1` share
  :math:`(1 - level) / ((j + 1) (j + 2))`, which adds up to all of it over a stream without end.

Both speak of the noise alone.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Final, Literal

import numpy as np

from tidegauge.checks import exact, shown
from tidegauge.errors import InvalidParameter
from tidegauge.strategies.strategy import Float64, Int64

__all__ = ["BANDS", "Band", "band_of", "level_of", "tails"]

Band = Literal["pointwise", "simultaneous"]

BANDS: Final[tuple[Band, ...]] = ("pointwise", "simultaneous")


def level_of(level: Any) -> float:
    """Return the coverage of intervals, strictly between 0 and 1.

    Raises:
        InvalidParameter: It is not.
    """
    why = "It is the chance that an interval covers the true value. Write 0.95."
    number = exact("level", level, above=0, below=1, why=why)
    if not Fraction(1, 10**9) <= number <= 1 - Fraction(1, 10**9):
        raise InvalidParameter(
            f"Expected level in [1e-9, 1 - 1e-9], got level={shown(level)}. Further out, double "
            f"precision cannot tell tails apart. {why}"
        )
    return float(number)


def band_of(band: Any) -> Band:
    """Return what the level is the coverage of.

    Raises:
        InvalidParameter: It is none of the two.
    """
    for known in BANDS:
        if band == known:
            return known
    raise InvalidParameter(
        f"Expected band to be one of {shown(list(BANDS))}, got {shown(band)}. It says whether the "
        "level holds at each step alone or for a whole curve. Write 'pointwise'."
    )


def tails(level: float, band: Band, steps: Int64, end: int | None) -> Float64:
    """Return the chance of a miss that each of ``steps`` may have.

    Args:
        level: The coverage.
        band: Of one interval, or of all together.
        steps: Step numbers, from 1; shape (n,).
        end: The last step that is ever published; None: there is no end.

    Examples:
        >>> steps = np.array([1, 2, 3, 1000])
        >>> tails(0.9, "pointwise", steps, None).round(6)
        array([0.1, 0.1, 0.1, 0.1])
        >>> tails(0.9, "simultaneous", steps, 1000).round(6)
        array([0.0001, 0.0001, 0.0001, 0.0001])
        >>> tails(0.9, "simultaneous", steps, None)[:3].round(4)
        array([0.05  , 0.0083, 0.0083])
    """
    miss = float(1 - Fraction(repr(level)))
    if band == "pointwise":
        return np.full(len(steps), miss)
    if end is not None:
        return np.full(len(steps), miss / end)
    epoch = np.frexp(steps.astype(np.float64))[1] - 1  # the j with 2^j <= step < 2^(j + 1)
    shares: Float64 = miss / ((epoch + 1.0) * (epoch + 2.0) * np.exp2(epoch))
    return shares
