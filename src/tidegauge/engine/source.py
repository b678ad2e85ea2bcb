"""Where events come from: batches of rows, each of which stands for itself.

A source turns every record into one row, from the record's own bytes alone: what the reader makes
of a row never depends on another row. A record that cannot be read is a row of nulls, marked in
the column :data:`UNREADABLE`, so that it takes its step where each record is a step and takes part
in nothing else. No row stops a source, and no message tells of one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

__all__ = ["UNREADABLE", "Source"]

UNREADABLE = "tidegauge: unreadable"
"""Name of the Boolean column that a batch has if a record of it could not be read."""


class Source(ABC):
    """A finite source of events."""

    def types(self, columns: Sequence[str]) -> list[tuple[str, dict[str, pl.DataType]]]:
        """Return what the source says of its columns before any row is read.

        Args:
            columns: Names of the columns that are needed.

        Returns:
            For each part with types of its own (a Parquet file): its name and its columns' types.

        Raises:
            SourceUnavailable: A part is away, cannot be read or lacks a column.
        """
        return []

    @abstractmethod
    def batches(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield all rows in the order of the source, in batches of bounded size.

        Args:
            columns: Names of the columns that are needed; the others are not read.

        Yields:
            Frames with these columns, as text or of the source's own types, and perhaps
            :data:`UNREADABLE`.

        Raises:
            SourceUnavailable: A part is away, cannot be read or lacks a column.
        """

    @abstractmethod
    def describe(self) -> str:
        """Return what the source is, in words fit for a message; no row shows in it."""
