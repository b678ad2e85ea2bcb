r"""CSV: the first line that is not empty names the columns; each later record is a row of text.

Fields are separated by commas. A field is quoted if its first and last character is a double quote;
between them a double quote is written twice. A record whose quotes stand otherwise, or that has not
as many fields as the header, is unreadable. Empty fields, quoted or not, are null; one ``\r`` at
the end of a field that is not quoted is left out. A quote never swallows the lines behind it,
unless the file is declared to have newlines between quotes (``multiline``); then one unbalanced
quote changes how the records behind it are read, and the guarantee rests on there being none.

polars parses blocks of records that are already known to be well formed; if it fails or finds
another number of rows, the block is halved until the record in question stands alone. It judges a
buffer by its first bytes (a byte order mark is left out, what looks compressed is unpacked), so a
header of our own stands before the records: no record is ever the first one. Byte order marks are
left out before the file's header alone; in a record they are text.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tidegauge.connectors.lines import MARK, Block, blocks
from tidegauge.connectors.rows import with_unreadable
from tidegauge.errors import SourceUnavailable

if TYPE_CHECKING:
    import polars as pl

__all__ = ["columns_of", "places", "read"]

_FIELD = rb'(?:"[^"]*+(?:""[^"]*+)*+"|[^",]*+)'
_COMMA, _QUOTE = 44, 34
_MOST_COLUMNS = 1 << 14


def columns_of(path: Path, *, multiline: bool = False) -> list[str] | None:
    """Return the names of a file's columns, or None if the file is empty.

    Raises:
        SourceUnavailable: The file is away, or its first line is no header.
    """
    for block in blocks(path, half=False, quotes=multiline):
        number = _first(block)
        if number is not None:
            return _header(path, block, number)
    return None


def read(path: Path, columns: Sequence[str], *, multiline: bool = False) -> Iterator[pl.DataFrame]:
    """Yield the rows of a file, only these columns, as text.

    Raises:
        SourceUnavailable: The file is away, damaged, or lacks a column.
    """
    header = columns_of(path, multiline=multiline)
    if header is None:
        return
    parser = _Parser(header, columns, path)
    begun = False  # the header, and empty lines before it, are no rows
    for block in blocks(path, half=True, quotes=multiline):
        first = 0
        if not begun:
            number = _first(block)
            begun = number is not None
            first = len(block.starts) if number is None else number + 1
        if len(block.starts) > first:
            yield parser.rows(block, first)


def places(path: Path, header: Sequence[str], columns: Sequence[str]) -> list[int]:
    """Return where the columns stand.

    Raises:
        SourceUnavailable: One is missing, stands twice, or has a name that polars takes for many.
    """
    for column in columns:
        if column == "*" or (column.startswith("^") and column.endswith("$")):
            raise SourceUnavailable(
                f"Expected the name of one column of {path.name}, got {column!r}. Names of this "
                "form stand for many columns in polars. Rename the column."
            )
        found = header.count(column)
        if found != 1:
            raise SourceUnavailable(
                f"Expected a column {column!r} in {path.name}, got {found or 'none'}. Nothing can "
                "be counted by it. Correct the name in the config or in the file's first line."
            )
    return [header.index(column) for column in columns]


def _first(block: Block) -> int | None:
    """Which record of a block is the first that is not empty."""
    for number in np.flatnonzero(block.ends > block.starts).tolist():
        if _unmarked(block.record(number)):
            return int(number)
    return None


def _unmarked(record: bytes) -> bytes:
    while record.startswith(MARK):
        record = record.removeprefix(MARK)
    return record


def _header(path: Path, block: Block, number: int) -> list[str]:
    if block.readable[number]:
        try:
            fields = next(csv.reader([_unmarked(block.record(number)).decode()], strict=True))
        except csv.Error:
            fields = []
        if 0 < len(fields) <= _MOST_COLUMNS:
            return fields
    raise SourceUnavailable(
        f"Expected the first line of {path.name} to name the columns, got none that can be read. "
        "Nothing was counted. Write a header in UTF-8."
    )


class _Parser:
    """Parses records with one header."""

    def __init__(self, header: list[str], columns: Sequence[str], path: Path) -> None:
        self._columns = list(columns)
        self._places = places(path, header, columns)
        self._fields = len(header)
        self._names = [str(place) for place in range(len(header))]
        self._head = ",".join(self._names).encode() + b"\n"
        self._quoted = re.compile(_FIELD + rb"(?:," + _FIELD + rb"){%d}" % (len(header) - 1))

    def rows(self, block: Block, first: int) -> pl.DataFrame:
        """Return one row for each record from ``first`` on."""
        good = self._well_formed(block)
        good[:first] = False
        taken = np.flatnonzero(good)
        size = int((block.ends[taken] - block.starts[taken] + 1).sum())
        if size == len(block.data):
            data = block.data
        else:
            data = b"".join(
                block.data[start : end + 1]
                for start, end in zip(block.starts[taken], block.ends[taken], strict=True)
            )
        parsed, kept = self._parsed(data, block, taken)
        good[taken] = kept
        return with_unreadable(parsed, good[first:])

    def _well_formed(self, block: Block) -> NDArray[np.bool_]:
        """Which records have as many fields as the header, and quotes around whole fields only."""
        array = np.frombuffer(block.data, np.uint8)
        good: NDArray[np.bool_] = block.readable & (
            _within(array, _COMMA, block) == self._fields - 1
        )
        if b'"' in block.data:
            quoted = block.readable & (_within(array, _QUOTE, block) > 0)
            for number in np.flatnonzero(quoted).tolist():
                good[number] = self._quoted.fullmatch(block.record(number)) is not None
        return good

    def _parsed(
        self, data: bytes, block: Block, taken: NDArray[np.int64]
    ) -> tuple[pl.DataFrame, NDArray[np.bool_]]:
        """Return the rows of some records, and which of these records have one."""
        import polars as pl

        frame = self._parse(data, len(taken))
        if frame is not None:
            return frame, np.ones(len(taken), np.bool_)
        if len(taken) == 1:
            empty = pl.DataFrame(schema=dict.fromkeys(self._columns or [""], pl.String))
            return empty, np.zeros(1, np.bool_)
        half = len(taken) // 2
        frames, masks = [], []
        for part in (taken[:half], taken[half:]):
            text = b"".join(block.record(number) + b"\n" for number in part.tolist())
            frame, mask = self._parsed(text, block, part)
            frames.append(frame)
            masks.append(mask)
        return pl.concat(frames), np.concatenate(masks)

    def _parse(self, data: bytes, rows: int) -> pl.DataFrame | None:
        """Parse records; None if that is not one row for each."""
        import polars as pl

        if rows == 0 or not self._columns:
            names = self._columns or [""]
            nothing = {name: pl.Series([None] * rows, dtype=pl.String) for name in names}
            return pl.DataFrame(nothing)
        quoted = b'"' in data
        try:
            frame = pl.read_csv(
                self._head + data,
                schema=dict.fromkeys(self._names, pl.String),
                columns=sorted(set(self._places)),
                quote_char='"' if quoted else None,
            )
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
            return None
        if frame.height != rows:
            return None
        frame = frame.select(
            pl.col(str(place)).alias(name)
            for place, name in zip(self._places, self._columns, strict=True)
        )
        if quoted and b'""' in data:
            frame = frame.with_columns(
                pl.when(pl.col(name) != "").then(pl.col(name)) for name in self._columns
            )
        return frame


def _within(array: NDArray[np.uint8], byte: int, block: Block) -> NDArray[np.int64]:
    """How often a byte stands in each record."""
    found = np.flatnonzero(array == byte)
    return np.searchsorted(found, block.ends) - np.searchsorted(found, block.starts)
