"""Rows of a batch, with a row of nulls for every record that could not be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tidegauge.engine.source import UNREADABLE

if TYPE_CHECKING:
    import polars as pl

__all__ = ["with_unreadable"]


def with_unreadable(frame: pl.DataFrame, readable: NDArray[np.bool_]) -> pl.DataFrame:
    """Return one row for each record.

    Args:
        frame: The rows of the readable records, in their order.
        readable: Which records have a row in ``frame``; shape (records,).
    """
    import polars as pl

    if readable.all():
        return frame
    places = np.cumsum(readable) - 1
    spread = pl.Series(np.where(readable, places, -1))
    spread = spread.set(spread < 0, None).cast(pl.UInt32)
    rows = pl.DataFrame([series.gather(spread) for series in frame.iter_columns()])
    return rows.with_columns(pl.Series(UNREADABLE, ~readable))
