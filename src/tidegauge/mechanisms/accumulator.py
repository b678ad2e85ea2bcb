"""Exact sums of any number of contributions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["MOST", "Accumulator"]

Int64 = NDArray[np.int64]

MOST = 1 << 62
"""A sum is cut off here in size; no gauge's max_per_step lies beyond."""

_DIGIT = 40  # bits of the lower half of a wide sum
_MOST_ROWS = 1 << 20  # added at once: with contributions up to 2^40, that is at most 2^60


class Accumulator:
    """Exact sums of any number of contributions: int64, with a second half once that could wrap.

    Args:
        largest: No contribution is larger in size.

    Examples:
        >>> total = Accumulator(1)
        >>> total.grow(2)
        >>> total.add(np.array([0, 1, 1]), None)
        >>> total.result().tolist()
        [1, 2]
    """

    def __init__(self, largest: int) -> None:
        self._largest = largest
        self._low = np.zeros(0, np.int64)
        self._high: Int64 | None = None
        self._size = 0
        self._reached = 0  # no entry of the lower half can be larger in size

    def grow(self, size: int) -> None:
        """Make room for ``size`` sums, the added ones 0."""
        if size > len(self._low):
            room = max(size, 2 * len(self._low) if len(self._low) else size)
            self._low = _longer(self._low, room)
            if self._high is not None:
                self._high = _longer(self._high, room)
        self._size = size

    def add(self, keys: Int64, amounts: Int64 | None) -> None:
        """Add amounts, or 1 if None, to the sums at ``keys``; negative keys are left out."""
        taking = keys >= 0
        if not taking.all():
            keys = keys[taking]
            amounts = None if amounts is None else amounts[taking]
        for start in range(0, len(keys), _MOST_ROWS):
            part = slice(start, start + _MOST_ROWS)
            reach = self._largest * len(keys[part])
            if self._reached + reach > MOST:
                self._carry()
            self._reached += reach
            np.add.at(self._low, keys[part], 1 if amounts is None else amounts[part])

    def _carry(self) -> None:
        if self._high is None:
            self._high = np.zeros_like(self._low)
        self._high += self._low >> _DIGIT
        self._low &= (1 << _DIGIT) - 1
        self._reached = 1 << _DIGIT

    def result(self) -> Int64:
        """Return the sums, cut off at 2^62 in size: a completed total may be clamped."""
        low = self._low[: self._size]
        if self._high is None:
            return np.clip(low, -MOST, MOST, out=low)
        self._carry()
        high, low = self._high[: self._size], self._low[: self._size]
        top = MOST >> _DIGIT
        inside = np.clip(high, -top, top) << _DIGIT
        return np.where(high >= top, MOST, np.where(high < -top, -MOST, inside + low))


def _longer(array: Int64, size: int) -> Int64:
    result = np.zeros(size, np.int64)
    result[: len(array)] = array
    return result
