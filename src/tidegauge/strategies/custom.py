"""Decays of any shape, as far back as they are written out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from tidegauge.checks import LARGEST, exact, shown
from tidegauge.errors import InvalidParameter
from tidegauge.strategies.weights import Float64, fixed, lags, padded, plain

__all__ = ["Custom"]


_MOST_TAPS = 1 << 16
_TAP_RANGE = 1e100


@final
@dataclass(frozen=True)
class Custom:
    """Finite weights g(0), g(1), ..., g(n-1), and 0 beyond.

    Any signs, any order; the first may be zero (a delayed view).

    Args:
        values: The weights, newest step first; 1 to 65536 finite numbers, not all zero, the
            largest between 1e-100 and 1e100.

    Raises:
        InvalidParameter: The weights cannot make a view.

    Examples:
        >>> Custom([0.5, 0.25]).weights(3)
        array([0.5 , 0.25, 0.  ])
    """

    values: tuple[float, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", _checked_taps(self.values))

    @property
    def name(self) -> str:
        """The name of a view of this decay where none is given."""
        return f"custom_{len(self.values)}"

    @cached_property
    def taps(self) -> Float64:
        """g(0..n-1)."""
        return fixed(np.array(self.values))

    def weights(self, n: int) -> Float64:
        """Return g(0..n-1), filled up with zeros."""
        return padded(self.taps, lags(n))


def _checked_taps(given: Any) -> tuple[float, ...]:
    try:
        values = [plain(value) for value in given]
    except TypeError:
        raise InvalidParameter(
            f"Expected values to be a sequence of numbers, got {shown(given)}. "
            "They are the weights of this step, the one before it, and so on. Give a list."
        ) from None
    if not 1 <= len(values) <= _MOST_TAPS:
        raise InvalidParameter(
            f"Expected 1 to {_MOST_TAPS} values, got {len(values)}. Each costs a multiplication "
            "a cell and step. Use Window, Exponential or Polynomial for a longer memory."
        )
    why = "It is the weight of one step. Give a finite number."
    taps = tuple(
        value
        if type(value) is float and abs(value) < LARGEST
        else float(exact(f"values[{k}]", value, why=why))
        for k, value in enumerate(values)
    )
    largest = max(abs(tap) for tap in taps)
    if not 1 / _TAP_RANGE <= largest <= _TAP_RANGE:
        raise InvalidParameter(
            f"Expected the largest of the values in [1e-100, 1e100], got {largest}. Squares of "
            "weights would leave the range of a float. Scale the values."
        )
    return taps
