"""What all decays share: how many weights are asked, and how arrays and numbers are shown."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegauge.checks import integer

__all__ = ["LONGEST_REACH", "Float64", "fixed", "lags", "padded", "plain", "short"]

Float64 = NDArray[np.float64]

LONGEST_REACH = 1 << 40
"""No decay looks further back, in steps: beyond it, a window or half-life is a running sum."""


def fixed(array: Float64) -> Float64:
    """The array, which nobody can change any more."""
    array.flags.writeable = False
    return array


def lags(n: int) -> int:
    """The number of weights that are asked, or refuse it."""
    why = "So many weights are computed. Ask for none or more."
    return integer("n", n, low=0, high=LONGEST_REACH, why=why)


def padded(taps: Float64, n: int) -> Float64:
    """The first n weights of a finite decay, filled up with zeros."""
    out = np.zeros(n)
    out[: min(n, len(taps))] = taps[:n]
    return out


def short(value: Any) -> str:
    """Return a number as it stands in a name: 24, 0.5, 1e-06."""
    number = float(value)
    return str(int(number)) if number.is_integer() and abs(number) < 1e16 else repr(number)


def plain(value: Any) -> Any:
    """Return a NumPy scalar as the Python number it holds, and everything else as it is."""
    return value.item() if isinstance(value, np.generic) else value
