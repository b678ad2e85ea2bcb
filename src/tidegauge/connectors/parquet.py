"""Parquet: columns of the file's own types, in slices of rows.

The footer is read before anything is counted. A file that is cut off or whose pages cannot be
decoded is an unavailable source: the run ends before its first release, for finite sources are
counted completely before. The format demands text in UTF-8; a writer that lets other bytes through
makes such a file, and no guarantee covers that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tidegauge.connectors.csv import places
from tidegauge.errors import SourceUnavailable

if TYPE_CHECKING:
    import polars as pl

__all__ = ["read", "types_of"]

_ROWS = 1 << 17


def types_of(path: Path, columns: Sequence[str]) -> dict[str, pl.DataType]:
    """Return the types of these columns.

    Raises:
        SourceUnavailable: The file is away, has no footer, or lacks a column.
    """
    import polars as pl

    try:
        schema = pl.scan_parquet(path, glob=False).collect_schema()
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException):
        raise _unreadable(path) from None
    names = list(schema)
    places(path, names, columns)
    return {column: schema[column] for column in columns}


def read(path: Path, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
    """Yield the rows of a file, only these columns.

    Raises:
        SourceUnavailable: The file is away, damaged, or lacks a column.
    """
    import polars as pl

    types_of(path, columns)
    try:
        rows = pl.scan_parquet(path, glob=False)
        count = rows.select(pl.len()).collect().item()
        for start in range(0, count, _ROWS):
            if columns:
                yield rows.select(columns).slice(start, _ROWS).collect()
            else:
                height = min(_ROWS, count - start)
                yield pl.DataFrame({"": pl.Series([None] * height, dtype=pl.String)})
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException):
        raise _unreadable(path) from None


def _unreadable(path: Path) -> SourceUnavailable:
    return SourceUnavailable(
        f"Expected a whole Parquet file, got {path.name}, which is away or damaged. Nothing was "
        "measured. Bring it back whole, with permission to read it."
    )
