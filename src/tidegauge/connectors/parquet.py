"""Parquet: columns of the file's own types, in slices of rows, the next one read ahead.

The footer is read before anything is counted. A file that is cut off or whose pages cannot be
decoded is an unavailable source: the run ends before its first release, for finite sources are
counted completely before. Text that is not UTF-8 is null, row by row: some writers let it through,
although the format forbids it. To read it, such a file is held in memory whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from tidegauge.connectors.csv import places
from tidegauge.connectors.footer import as_bytes
from tidegauge.errors import SourceUnavailable

if TYPE_CHECKING:
    import polars as pl

__all__ = ["read", "types_of"]

_ROWS = 1 << 17  # of a slice: a few megabytes for each column


def types_of(path: Path, columns: Sequence[str]) -> dict[str, pl.DataType]:
    """Return the types of these columns; bytes are read as text.

    Raises:
        SourceUnavailable: The file is away, has no footer, or lacks a column.
    """
    import polars as pl

    try:
        schema = pl.scan_parquet(path, glob=False).collect_schema()
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException):
        raise _unreadable(path) from None
    places(path, list(schema), columns)
    types = {column: schema[column] for column in columns}
    return {name: pl.String() if kind == pl.Binary else kind for name, kind in types.items()}


def read(path: Path, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
    """Yield the rows of a file, only these columns.

    Raises:
        SourceUnavailable: The file is away, damaged, or lacks a column.
    """
    types_of(path, columns)
    slices = _Slices(path, columns)
    starts = range(0, slices.count, _ROWS)
    if len(starts) < 2:
        yield from map(slices.at, starts)
        return
    with ThreadPoolExecutor(1) as ahead:
        waiting = ahead.submit(slices.at, starts[0])
        for start in starts[1:]:
            frame = waiting.result()
            waiting = ahead.submit(slices.at, start)
            yield frame
        yield waiting.result()


class _Slices:
    """The rows of a file by their places."""

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        import polars as pl

        self._path, self._columns = path, list(columns)
        self._rows = pl.scan_parquet(path, glob=False)
        self._declared = True  # text is read as text
        self.count = self._taken(self._rows.select(pl.len())).item()

    def at(self, start: int) -> pl.DataFrame:
        """Return the slice of rows that begins here."""
        import polars as pl

        if not self._columns:
            height = min(_ROWS, self.count - start)
            return pl.DataFrame({"": pl.Series([None] * height, dtype=pl.String)})
        if self._declared:
            try:
                return self._decoded(start)
            except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException):
                self._declared = False
                self._rows = self._as_bytes()
        return self._taken(None, start)

    def _decoded(self, start: int) -> pl.DataFrame:
        import polars as pl

        frame = self._rows.select(self._columns).slice(start, _ROWS).collect()
        binary = [s.name for s in frame.iter_columns() if s.dtype == pl.Binary]
        return frame.with_columns(_text(frame[name]) for name in binary) if binary else frame

    def _as_bytes(self) -> pl.LazyFrame:
        import polars as pl

        try:
            data = as_bytes(self._path.read_bytes())
        except OSError:
            data = None
        if data is None:
            raise _unreadable(self._path) from None
        return pl.scan_parquet(data)

    def _taken(self, rows: pl.LazyFrame | None, start: int = 0) -> pl.DataFrame:
        import polars as pl

        try:
            return self._decoded(start) if rows is None else rows.collect()
        except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException):
            raise _unreadable(self._path) from None


def _text(column: pl.Series) -> pl.Series:
    """Read bytes as UTF-8; what is none is null."""
    import polars as pl

    try:
        return column.cast(pl.String)
    except pl.exceptions.PolarsError:
        values = [None if value is None else _utf8(value) for value in column.to_list()]
        return pl.Series(column.name, values, dtype=pl.String)


def _utf8(value: bytes) -> str | None:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


def _unreadable(path: Path) -> SourceUnavailable:
    return SourceUnavailable(
        f"Expected a whole Parquet file, got {path.name}, which is away or damaged. Nothing was "
        "measured. Bring it back whole, with permission to read it."
    )
