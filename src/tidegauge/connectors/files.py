"""Files and standard input as one source: what the ``sources:`` of a config name."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

from tidegauge.connectors import csv, jsonl, parquet
from tidegauge.engine.source import Source
from tidegauge.errors import InvalidParameter, SourceUnavailable
from tidegauge.planning.sources import KINDS, kind_of, unknown_kind

if TYPE_CHECKING:
    import polars as pl

__all__ = ["KINDS", "STANDARD_INPUT", "Files", "kind_of"]

STANDARD_INPUT = "-"


class Files(Source):
    """The records of files, file by file in the order of their paths' bytes.

    Which files there are is public: a name tells of its file, whatever its rows. A file that two
    patterns match counts once, and so does one with two names (links). An empty file has no rows.

    Args:
        patterns: Paths and globs (``**`` for any depth) of ``.csv``, ``.jsonl`` and ``.parquet``
            files, the first two perhaps compressed (``.gz``, ``.bz2``, ``.xz``, ``.zst``); or
            ``"-"`` alone for JSON lines on standard input, which can be read once.
        folder: What relative patterns start from.
        multiline: Whether newlines between quotes belong to a CSV field.
        stdin: What ``"-"`` reads; None: the standard input of the process.

    Raises:
        InvalidParameter: A pattern names no known kind of file.

    Examples:
        >>> Files(["flights/*.parquet"]).describe()
        'flights/*.parquet'
    """

    def __init__(
        self,
        patterns: Sequence[str],
        *,
        folder: Path | None = None,
        multiline: bool = False,
        stdin: IO[bytes] | None = None,
    ) -> None:
        self._patterns = tuple(patterns)
        self._folder = Path() if folder is None else folder
        self._multiline = multiline
        self._stdin = stdin
        self._used = False
        if not self._patterns or (STANDARD_INPUT in patterns and len(patterns) > 1):
            raise InvalidParameter(
                'Expected sources to be files or "-" alone, got none or both. Their rows would '
                "have no order. Name the files, or write them all to standard input."
            )
        for pattern in self._patterns:
            if pattern != STANDARD_INPUT and kind_of(pattern) is None:
                raise InvalidParameter(unknown_kind(pattern))

    def describe(self) -> str:
        """Return the patterns."""
        return ", ".join("standard input" if p == STANDARD_INPUT else p for p in self._patterns)

    def paths(self) -> list[Path]:
        """Return the files that the patterns name, each once, sorted by the bytes of their paths.

        Raises:
            SourceUnavailable: A pattern names no file.
        """
        found: dict[tuple[int, int], Path] = {}
        for pattern in self._patterns:
            matches = [
                self._folder / match
                for match in glob.glob(pattern, root_dir=self._folder, recursive=True)
            ]
            if not glob.has_magic(pattern):
                matches = [self._folder / pattern]
            matches = sorted((path for path in matches if path.is_file()), key=os.fsencode)
            if not matches:
                raise SourceUnavailable(
                    f"Expected files named {pattern!r}, got none in {str(self._folder)!r}. "
                    "There is nothing to count. Bring them back, or correct sources in the config."
                )
            for path in matches:
                status = path.stat()
                found.setdefault((status.st_dev, status.st_ino), path)
        return sorted(found.values(), key=os.fsencode)

    def types(self, columns: Sequence[str]) -> list[tuple[str, dict[str, pl.DataType]]]:
        """Return the types of the columns of each Parquet file; CSV files are checked for columns.

        Raises:
            SourceUnavailable: A file is away, cannot be read or lacks a column.
        """
        types = []
        if self._patterns != (STANDARD_INPUT,):
            for path in self.paths():
                kind = kind_of(path.name)
                if kind == "parquet":
                    types.append((path.name, parquet.types_of(path, columns)))
                elif kind == "csv":
                    header = csv.columns_of(path, multiline=self._multiline)
                    if header is not None:
                        csv.places(path, header, columns)
        return types

    def batches(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield all rows, file by file.

        Raises:
            SourceUnavailable: A file is away, damaged or lacks a column; standard input is used up.
        """
        if self._patterns == (STANDARD_INPUT,):
            yield from self._standard_input(columns)
            return
        for path in self.paths():
            match kind_of(path.name):
                case "csv":
                    yield from csv.read(path, columns, multiline=self._multiline)
                case "jsonl":
                    yield from jsonl.read(path, columns)
                case _:
                    yield from parquet.read(path, columns)

    def _standard_input(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        import sys

        if self._used:
            raise SourceUnavailable(
                "Expected standard input to be read once, got a second reading. Its rows are gone. "
                "Write them to a file."
            )
        if self._stdin is None and sys.stdin is None:
            raise SourceUnavailable(
                "Expected events on standard input, got a closed one. A run without them would "
                "publish that there were none. Open it, or name a file."
            )
        self._used = True
        yield from jsonl.read_stream(self._stdin or sys.stdin.buffer, columns)
