r"""Values of events as whole grains, exactly.

A value :math:`v` at a grain of :math:`g` contributes
:math:`\min(\max(\mathrm{round}(v / g), l), h)` grains: rounded half to even, then cut off at the
declared range. Text is read as the decimal that
it writes, a float as its shortest decimal form, so that 0.1 is one tenth in every format. Doubles
decide all but the values near a tie; those are decided by rational arithmetic.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import polars as pl

__all__ = ["grains"]

Int64 = NDArray[np.int64]
Bool = NDArray[np.bool_]

_NUMBER = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,6})?$"
_LONGEST = 64  # characters of a number; longer ones are no numbers
_NEAR = 2.0**-50  # three roundings of a double, and the reading of the decimal, stay below it
_BLANKS = " \t"


def grains(column: pl.Series, grain: Fraction, low: int, high: int) -> tuple[Int64, Bool]:
    """Return contributions in grains, and which rows have a finite number.

    Args:
        column: Numbers of any type, or text.
        grain: The value of one grain, above 0.
        low: Least contribution, in grains; at least -2^40.
        high: Largest contribution, in grains; at most 2^40.

    Returns:
        int64 of shape (rows,), 0 where there is no number, and Booleans of the same shape.

    Examples:
        >>> import polars as pl
        >>> text = pl.Series(["0.1", "0.125", "1e9", "NaN", ""])
        >>> grains(text, Fraction(1, 100), 0, 100)[0].tolist()
        [10, 12, 100, 0, 0]
    """
    import polars as pl

    kind = column.dtype
    if kind.is_integer() and grain == 1 and kind not in (pl.Int128, pl.UInt128):
        return _whole(column, low, high)
    if kind == pl.Float64:
        values = column.fill_null(np.nan).to_numpy()
        known: Bool = np.isfinite(values)
    elif kind == pl.Null or kind == pl.Boolean:
        return np.zeros(len(column), np.int64), np.zeros(len(column), np.bool_)
    else:
        column = column.cast(pl.String, strict=False).str.strip_chars(_BLANKS)
        number = column.str.contains(_NUMBER) & (column.str.len_bytes() <= _LONGEST)
        known = number.fill_null(False).to_numpy()
        values = column.cast(pl.Float64, strict=False).fill_null(0.0).to_numpy()
    with np.errstate(over="ignore"):
        scaled = np.where(known, values, 0.0) * grain.denominator / grain.numerator
    scaled = np.clip(scaled, low - 1, high + 1)
    result = np.clip(np.rint(scaled).astype(np.int64), low, high)
    ties = known & (np.abs(scaled - np.floor(scaled) - 0.5) <= np.abs(scaled) * _NEAR)
    if ties.any():
        result[ties] = _decided(column.filter(pl.Series(ties)), grain, low, high)
    result[~known] = 0
    return result, known


def _whole(column: pl.Series, low: int, high: int) -> tuple[Int64, Bool]:
    known: Bool = column.is_not_null().to_numpy()
    values = column.fill_null(0).to_numpy()
    if values.dtype == np.uint64:  # what int64 does not hold is above every bound
        values = np.minimum(values, np.uint64(max(high, 0)))
    clipped = np.clip(values.astype(np.int64), low, high)
    clipped[~known] = 0
    return clipped, known


def _decided(column: pl.Series, grain: Fraction, low: int, high: int) -> Int64:
    """Round the values near a tie exactly; each distinct one once."""
    import polars as pl

    texts = column.cast(pl.String).to_list()
    rounded = {
        text: min(max(round(Fraction(text) / grain), low), high) for text in dict.fromkeys(texts)
    }
    return np.array([rounded[text] for text in texts], np.int64)
