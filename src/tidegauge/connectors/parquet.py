"""Parquet: columns in the normal form of their types, in slices of rows, the next one read ahead.

The footer is read before anything is counted. A file that is cut off or whose pages cannot be
decoded is an unavailable source: the run ends before its first release, for finite sources are
counted completely before. Text that is not UTF-8 is null, row by row: some writers let it through,
although the format forbids it. To read it, such a file is held in memory whole, without the types
that only its writer's library knows. Both ways give every column the same normal form; a type for
which they could not is refused before any row is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from tidegauge.connectors.csv import places
from tidegauge.connectors.footer import as_bytes, footer_of, without_offsets
from tidegauge.connectors.normal import normal_type, normalized, reads_alike
from tidegauge.errors import SourceUnavailable

if TYPE_CHECKING:
    import polars as pl

__all__ = ["read", "types_of"]

_ROWS = 1 << 17  # of a slice: a few megabytes for each column


def types_of(path: Path, columns: Sequence[str]) -> dict[str, pl.DataType]:
    """Return the types that these columns are read as.

    Raises:
        SourceUnavailable: The file is away, has no footer, lacks a column, or a column has a type
            that is not read.
    """
    types = {}
    for column, kind in _declared(path, columns).items():
        normal = normal_type(kind)
        assert normal is not None
        types[column] = normal
    return types


def _declared(path: Path, columns: Sequence[str]) -> dict[str, pl.DataType]:
    """Return the writer's types of these columns, each of which has a normal form."""
    import polars as pl

    footer = _footer(path)
    try:
        plain_footer = as_bytes(footer)
        if plain_footer is None:
            raise _unreadable(path) from None
        plain = pl.scan_parquet(plain_footer).collect_schema()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        raise _unreadable(path) from None
    try:
        schema = pl.scan_parquet(without_offsets(footer) or footer).collect_schema()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        raise SourceUnavailable(
            f"Expected types that polars knows in {path.name}, got others, such as a time zone "
            "that is in no list. No column can be read. Write times in UTC, and other columns as "
            "text or numbers."
        ) from None
    places(path, list(schema), columns)
    for column in columns:
        kind = schema[column]
        if normal_type(kind) is None or not reads_alike(kind, plain.get(column, pl.Unknown())):
            raise SourceUnavailable(
                f"Expected text, numbers, truth values or times in {column!r} of {path.name}, got "
                f"type {kind.base_type()}. It has no form that every way of reading shares. Write "
                "the column as text, as an integer or as a float."
            )
    return {column: schema[column] for column in columns}


def _footer(path: Path) -> bytes:
    try:
        return footer_of(path)
    except OSError:
        raise _unreadable(path) from None


def read(path: Path, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
    """Yield the rows of a file, only these columns.

    Raises:
        SourceUnavailable: The file is away, damaged, or lacks a column.
    """
    slices = _Slices(path, _declared(path, columns))
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

    def __init__(self, path: Path, types: dict[str, pl.DataType]) -> None:
        import polars as pl

        self._path, self._types, self._columns = path, types, list(types)
        self._declared = without_offsets(_footer(path)) is None  # the writer's types are read
        self._rows = pl.scan_parquet(path, glob=False) if self._declared else self._as_bytes()
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
        return pl.DataFrame(normalized(frame[name], kind) for name, kind in self._types.items())

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


def _unreadable(path: Path) -> SourceUnavailable:
    return SourceUnavailable(
        f"Expected a whole Parquet file, got {path.name}, which is away or damaged. Nothing was "
        "measured. Bring it back whole, with permission to read it."
    )
