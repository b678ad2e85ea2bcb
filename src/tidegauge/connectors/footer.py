"""Parquet footers rewritten: text columns declared as plain bytes, zones that polars can read.

Parquet promises UTF-8, but some writers let other bytes through, and polars then refuses the whole
page: one row would decide about its neighbors. With this footer the same pages are read as bytes,
and each row is judged by itself. The footer is Thrift in the compact protocol: a tree of structs
that is read whole and written back without three kinds of fields.

Arrow allows zones of a fixed offset (``+05:30``), which polars does not. They are of no account,
for stamps with a zone are stored in UTC; so UTC is put in their place before polars sees them.
"""

from __future__ import annotations

import base64
import binascii
import re
from pathlib import Path
from typing import Any

__all__ = ["as_bytes", "footer_of", "without_offsets"]

_MAGIC = b"PAR1"
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 12
_STOP = 0
# fields of FileMetaData, of SchemaElement, and values of its types (apache/parquet-format)
_SCHEMA, _KEY_VALUES = 2, 5
_TYPE, _NAME, _CONVERTED, _LOGICAL = 1, 4, 6, 10
_ARROW = re.compile(rb"ARROW:schema\x18[\x80-\xff]*[\0-\x7f]([A-Za-z0-9+/]+=*)")  # key and value
_OFFSET = re.compile(rb"\x06\0\0\0([+-][0-9]{2}:[0-9]{2})\0")  # a string of a flatbuffer
_UTC = b"\x03\0\0\0UTC\0\0\0\0"
_BYTE_ARRAY = 6
_TEXTS = (0, 4, 19)  # converted types UTF8, ENUM, JSON
_LOGICAL_TEXTS = (1, 4, 12)  # logical types STRING, ENUM, JSON

Struct = list[tuple[int, int, Any]]


def as_bytes(data: bytes) -> bytes | None:
    """Return a Parquet file whose text columns are declared as bytes; None if that is impossible.

    Args:
        data: The whole file.
    """
    root = _root(data)
    if root is None:
        return None
    kept: Struct = []
    for number, kind, value in root:
        if number == _SCHEMA:
            element, items = value
            kept.append((number, kind, (element, [_plain(item) for item in items])))
        elif number != _KEY_VALUES:  # polars would find the text types there again
            kept.append((number, kind, value))
    return _with_root(data, kept)


def without_offsets(data: bytes) -> bytes | None:
    """Return a Parquet file with UTC in place of zones of a fixed offset; None if it has none.

    Args:
        data: The whole file, or what :func:`footer_of` returns.
    """
    written = _ARROW.search(data)
    if written is None or not _OFFSET.search(_decoded(written[1])):  # nearly always, and quick
        return None
    root = _root(data) or []
    fields = {number: value for number, _, value in root}
    _, elements = fields.get(_SCHEMA, (0, []))
    names = {value for item in elements for number, _, value in item if number == _NAME}
    _, pairs = fields.get(_KEY_VALUES, (0, []))
    for pair in pairs:
        for at, (number, kind, value) in enumerate(pair):
            schema = _decoded(value) if value == written[1] else b""
            if schema and not names.intersection(_OFFSET.findall(schema)):
                pair[at] = number, kind, base64.b64encode(_OFFSET.sub(_UTC, schema))
                return _with_root(data, root)
    return None


def _decoded(text: bytes) -> bytes:
    try:
        return base64.b64decode(text)
    except binascii.Error:
        return b""


def _root(data: bytes) -> Struct | None:
    """Read the footer of a Parquet file; None if there is none."""
    size = int.from_bytes(data[-8:-4], "little")
    if data[-4:] != _MAGIC or size > len(data) - 12:
        return None
    try:
        return _Reader(data[-8 - size : -8]).struct()
    except (IndexError, ValueError, RecursionError):
        return None


def _with_root(data: bytes, root: Struct) -> bytes:
    """Return a Parquet file with another footer."""
    size = int.from_bytes(data[-8:-4], "little")
    footer = bytearray()
    _write_struct(footer, root)
    return b"".join([data[: -8 - size], footer, len(footer).to_bytes(4, "little"), _MAGIC])


def _plain(element: Struct) -> Struct:
    """Return an element of the schema without its claim to be text."""
    fields = {number: value for number, _, value in element}
    logical = fields.get(_LOGICAL) or []
    text = fields.get(_CONVERTED) in _TEXTS or any(n in _LOGICAL_TEXTS for n, _, _ in logical)
    if fields.get(_TYPE) != _BYTE_ARRAY or not text:
        return element
    return [field for field in element if field[0] not in (_CONVERTED, _LOGICAL)]


def footer_of(path: Path) -> bytes:
    """Return the end of a Parquet file as a file of its own: its schema without its rows.

    Raises:
        OSError: The file is away.
    """
    with path.open("rb") as file:
        whole = file.seek(0, 2)
        file.seek(max(0, whole - 8))
        size = int.from_bytes(file.read(4), "little") + 8
        file.seek(max(0, whole - size))
        return _MAGIC + file.read()


class _Reader:
    """Reads Thrift's compact protocol."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def _bytes(self, size: int) -> bytes:
        if size < 0 or self._at + size > len(self._data):
            raise ValueError
        self._at += size
        return self._data[self._at - size : self._at]

    def _varint(self) -> int:
        result = shift = 0
        while True:
            byte = self._bytes(1)[0]
            result |= (byte & 127) << shift
            if byte < 128:
                return result
            shift += 7

    def _integer(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def struct(self) -> Struct:
        """Read the fields of a struct: number, kind and value of each."""
        fields: Struct = []
        number = 0
        while (head := self._bytes(1)[0]) != _STOP:
            kind = head & 15
            number = number + (head >> 4) if head >> 4 else self._integer()
            fields.append((number, kind, None if kind in (_TRUE, _FALSE) else self._value(kind)))
        return fields

    def _value(self, kind: int) -> Any:
        if kind in (_TRUE, _FALSE, _BYTE):
            return self._bytes(1)
        if kind == _DOUBLE:
            return self._bytes(8)
        if kind == _BINARY:
            return self._bytes(self._varint())
        if kind in (_LIST, _SET):
            head = self._bytes(1)[0]
            size = self._varint() if head >> 4 == 15 else head >> 4
            return head & 15, [self._value(head & 15) for _ in range(size)]
        if kind == _STRUCT:
            return self.struct()
        if kind < _DOUBLE:
            return self._integer()
        raise ValueError  # maps are not used by Parquet


def _write_varint(out: bytearray, value: int) -> None:
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)


def _write_integer(out: bytearray, value: int) -> None:
    _write_varint(out, value << 1 if value >= 0 else (~value << 1) | 1)


def _write_struct(out: bytearray, fields: Struct) -> None:
    before = 0
    for number, kind, value in fields:
        if 0 < number - before < 16:
            out.append((number - before) << 4 | kind)
        else:
            out.append(kind)
            _write_integer(out, number)
        before = number
        if kind not in (_TRUE, _FALSE):
            _write_value(out, kind, value)
    out.append(_STOP)


def _write_value(out: bytearray, kind: int, value: Any) -> None:
    if kind in (_TRUE, _FALSE, _BYTE, _DOUBLE):
        out += value
    elif kind == _BINARY:
        _write_varint(out, len(value))
        out += value
    elif kind in (_LIST, _SET):
        element, items = value
        out.append(min(len(items), 15) << 4 | element)
        if len(items) > 14:
            _write_varint(out, len(items))
        for item in items:
            _write_value(out, element, item)
    elif kind == _STRUCT:
        _write_struct(out, value)
    else:
        _write_integer(out, value)
