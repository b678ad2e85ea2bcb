"""JSON lines: each record is one object, and each field that is needed becomes text.

Numbers keep the digits that were written, so that decimals stay exact; truth values become
``true`` and ``false``; a missing field, ``null``, a list or an object is null. A record is
unreadable if it is no JSON object, uses ``NaN`` or ``Infinity``, or has a needed text that no UTF-8
can hold (half of a surrogate pair). Of a field that stands twice the last one counts. A last record
without newline counts if it is whole: an object shows its own end.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from tidegauge.connectors.lines import Block, Bytes, blocks, blocks_of
from tidegauge.connectors.rows import with_unreadable

if TYPE_CHECKING:
    import polars as pl

__all__ = ["read", "read_stream"]


def read(path: Path, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
    """Yield the rows of a file, only these fields, as text.

    Raises:
        SourceUnavailable: The file is away or damaged.
    """
    for block in blocks(path, half=False):
        yield from _frames(block, columns)


def read_stream(stream: Bytes, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
    """Yield the rows of a stream of bytes, only these fields, as text."""
    for block in blocks_of(stream, half=False):
        yield from _frames(block, columns)


def _refused(_: str) -> NoReturn:
    raise ValueError


_DECODER = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=_refused)


def _frames(block: Block, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
    import polars as pl

    if not len(block.starts):
        return
    readable = block.readable.copy()
    values: list[list[str | None]] = [[] for _ in columns]
    for number in np.flatnonzero(readable).tolist():
        row = _row(block.record(number), columns)
        if row is None:
            readable[number] = False
            continue
        for field, value in zip(values, row, strict=True):
            field.append(value)
    if columns:
        fields = [
            pl.Series(name, field, dtype=pl.String)
            for name, field in zip(columns, values, strict=True)
        ]
    else:
        fields = [pl.Series("", [None] * int(readable.sum()), dtype=pl.String)]
    yield with_unreadable(pl.DataFrame(fields), readable)


def _row(record: bytes, columns: Sequence[str]) -> list[str | None] | None:
    """Return the fields of one record, or None if it is unreadable."""
    try:
        parsed = _DECODER.decode(record.decode())
    except (ValueError, RecursionError):
        return None
    if type(parsed) is not dict:
        return None
    row = [_text(parsed.get(column)) for column in columns]
    for value in row:
        if value is not None and not value.isascii() and not _encodes(value):
            return None
    return row


def _text(value: Any) -> str | None:
    if type(value) is str:
        return value
    if value is True:
        return "true"
    return "false" if value is False else None


def _encodes(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
