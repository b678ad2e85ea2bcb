"""JSON lines: each record is one object, and each field that is needed becomes text.

Numbers keep the digits that were written, so that decimals stay exact; truth values become
``true`` and ``false``; a missing field, ``null``, a list or an object is null. A record is
unreadable if it is no JSON object (an empty line is none), uses ``NaN`` or ``Infinity``, or has a
needed text that no UTF-8 can hold (half of a surrogate pair). Of a field that stands twice the last
one counts. A last record without newline counts if it is whole: an object shows its own end. Ids
and cells are compared as they are written: 1 is "1", and 1.0 is no id and another cell.

Records of one form, as programs write them, are read together by regular expressions; all others
one by one. Both ways agree to the byte. Byte order marks before a record are left out: what a
record is does not depend on whether it is the first one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from tidegauge.connectors.lines import MARK, Block, Bytes, blocks, blocks_of
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
    """Yield the rows of a stream of bytes, only these fields, as text.

    Raises:
        SourceUnavailable: The stream cannot be read.
    """
    for block in blocks_of(stream, half=False):
        yield from _frames(block, columns)


def _refused(_: str) -> NoReturn:
    raise ValueError


_FEW = 16  # records that are read one by one
_PLAIN = re.compile(r"[A-Za-z0-9_ .-]{1,64}")
_VALUE = r'"[^"\\\x00-\x1f]*"|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null'
_MARK = MARK.decode()
_DECODER = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=_refused)


def _frames(block: Block, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
    import polars as pl

    if not len(block.starts):
        return
    readable = block.readable.copy()
    taken = np.flatnonzero(readable)
    texts = _texts(block, taken)
    fields, fits = _alike(texts, columns)
    slow = np.flatnonzero(~fits)
    rows = [_row(texts[place], columns) for place in slow.tolist()]
    for number, column in enumerate(columns if rows else ()):
        values = [None if row is None else row[number] for row in rows]
        fields[number] = fields[number].scatter(slow, pl.Series(column, values, dtype=pl.String))
    bad = taken[slow[[row is None for row in rows]]] if rows else taken[:0]
    kept = np.ones(len(taken), np.bool_)
    kept[slow] = [row is not None for row in rows]
    readable[bad] = False
    frame = pl.DataFrame(fields or [pl.Series("", [None] * len(taken), dtype=pl.String)])
    yield with_unreadable(frame if kept.all() else frame.filter(pl.Series(kept)), readable)


def _texts(block: Block, taken: NDArray[np.int64]) -> list[str]:
    """Return the text of some records, without byte order marks before it."""
    texts = _decoded(block, taken)
    marked = not block.data.isascii() and MARK in block.data
    return [text.lstrip(_MARK) for text in texts] if marked else texts


def _decoded(block: Block, taken: NDArray[np.int64]) -> list[str]:
    size = int((block.ends[taken] - block.starts[taken] + 1).sum())
    if size == len(block.data):
        texts = block.data.decode().split("\n")
        texts.pop()
        return texts
    return [block.record(number).decode() for number in taken.tolist()]


def _alike(texts: list[str], columns: Sequence[str]) -> tuple[list[pl.Series], NDArray[np.bool_]]:
    """Read the records that have the first one's fields in its order, and plain values alone.

    Returns:
        For each column its text, null where a record is of another form; and which records fit.
    """
    import polars as pl

    names = _names(texts[0]) if len(texts) >= _FEW else None
    if names is None or not columns:
        nothing = pl.Series([None] * len(texts), dtype=pl.String)
        return [nothing.alias(name) for name in columns], np.zeros(len(texts), np.bool_)
    parts = (f'"{re.escape(name)}": ?(?:{_VALUE})' for name in names)
    lines = pl.Series(texts, dtype=pl.String)
    fits = lines.str.contains(r"^\{" + ", ?".join(parts) + r"\}$")
    lines = lines.set(~fits, None)
    fields = []
    for column in columns:
        if column not in names:  # else its name could be found where no field begins
            fields.append(pl.Series(column, [None] * len(texts), dtype=pl.String))
            continue
        value = lines.str.extract(f'"{re.escape(column)}": ?({_VALUE})').alias(column)
        if value.str.starts_with('"').any():
            value = pl.select(
                pl.when(value.str.starts_with('"'))
                .then(value.str.strip_chars('"'))
                .when(value != "null")
                .then(value)
                .alias(column)
            ).to_series()
        else:
            value = value.set(value == "null", None)
        fields.append(value)
    return fields, fits.to_numpy()


def _names(text: str) -> list[str] | None:
    """Return the names of the fields of a record, if they are plain."""
    try:
        parsed = _DECODER.decode(text)
    except (ValueError, RecursionError):
        return None
    if type(parsed) is not dict or not all(map(_PLAIN.fullmatch, parsed)):
        return None
    return list(parsed)


def _row(text: str, columns: Sequence[str]) -> list[str | None] | None:
    """Return the fields of one record, or None if it is unreadable."""
    try:
        parsed = _DECODER.decode(text)
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
