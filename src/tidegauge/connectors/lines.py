r"""Records of text files: split by newline, in blocks of bounded size, each judged by itself.

A record ends with ``\n``; each ``\r`` before it is left out. A record is unreadable, and its row
one of nulls, if

* it is an empty line: where each record is a step, the records behind it keep their places,
* it is longer than 1 MiB,
* it is not UTF-8, or holds U+FFFD, which decoders write where bytes were not UTF-8,
* it is the last of a CSV file and has no newline: it may be half written, and counting it once now
  and once when it is whole would count one event twice. (In a ``.zst`` file that cannot be seen; so
  it has to be whole when it is read.)

Whatever stands behind the last newline is a record, if only a ``\r``. A byte order mark belongs to
the record that begins with it; the readers of CSV and of JSON lines say what it is there. (A file
that is nothing but one has no record.) A compressed file that ends too early, or is not what its
name says, is an unavailable source.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from tidegauge.errors import SourceUnavailable

__all__ = ["LONGEST", "MARK", "Block", "Bytes", "blocks", "blocks_of"]

LONGEST = 1 << 20
"""Most bytes of a record."""
MARK = b"\xef\xbb\xbf"
"""A byte order mark in UTF-8."""

_SIZE = 1 << 21  # bytes read at once
_LINES = 1 << 15  # lines of a zst file taken at once
_BAD = b"\xff"  # stands for a record that cannot be read: no UTF-8 begins with it
_REPLACED = b"\xef\xbf\xbd"
_RETURNS = re.compile(rb"(?<!\r)\r+\n")
_NEWLINE, _RETURN, _QUOTE = 10, 13, 34
_ZST = b"\x28\xb5\x2f\xfd"  # how a frame of zstd begins (RFC 8878)
_ZST_SKIPPABLE = b"\x2a\x4d\x18"  # how one of other data does, behind its first byte, 0x50 to 0x5f


class Bytes(Protocol):
    """Anything that bytes can be read from."""

    def read(self, size: int, /) -> bytes:
        """Return at most ``size`` bytes, none at the end."""


@dataclass(frozen=True)
class Block:
    """Some whole records.

    Attributes:
        data: Their bytes; each record ends with a newline.
        starts: Where each record begins; int64[records].
        ends: Where its newline stands; int64[records].
        readable: Whether it is text that may be parsed; bool[records].
    """

    data: bytes
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    readable: NDArray[np.bool_]

    def record(self, number: int) -> bytes:
        """Return the bytes of one record without its newline."""
        return self.data[int(self.starts[number]) : int(self.ends[number])]


def blocks(path: Path, *, half: bool, quotes: bool = False) -> Iterator[Block]:
    """Yield the records of a file; the end of its name tells how it is compressed.

    Args:
        path: The file, plain or ``.gz``, ``.bz2``, ``.xz`` or ``.zst``.
        half: Whether a last record without newline is unreadable.
        quotes: Whether a newline between double quotes belongs to the record.

    Raises:
        SourceUnavailable: The file is away or cannot be decompressed.
    """
    try:
        packed = path.suffix.lower()
        if packed == ".zst":
            yield from _cut(_zst(path), half=False, quotes=quotes)
            return
        with _OPENED.get(packed, _plain)(path) as stream:
            yield from _cut(_chunks(stream), half=half, quotes=quotes)
    except (OSError, EOFError, zlib.error, lzma.LZMAError):
        raise SourceUnavailable(
            f"Expected a readable file, got {path.name}, which is away or damaged. Nothing was "
            "measured. Bring it back whole, with permission to read it."
        ) from None


def blocks_of(stream: Bytes, *, half: bool, quotes: bool = False) -> Iterator[Block]:
    """Yield the records of a stream of bytes; the arguments are those of :func:`blocks`.

    Raises:
        SourceUnavailable: The stream cannot be read.
    """
    try:
        yield from _cut(_chunks(stream), half=half, quotes=quotes)
    except OSError:
        raise SourceUnavailable(
            "Expected a stream that can be read, got one that cannot. Nothing was measured. Open "
            "standard input for reading: a pipe, or a file behind <."
        ) from None


def _chunks(stream: Bytes) -> Iterator[bytes]:
    return iter(lambda: stream.read(_SIZE), b"")


def _plain(path: Path) -> BinaryIO:
    return path.open("rb")


_OPENED: dict[str, Callable[[Path], Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}


def _zst(path: Path) -> Iterator[bytes]:
    r"""Yield the lines of a zst file as bytes; polars has the decompressor.

    polars takes one ``\r`` off the end of each line and a byte order mark off the beginning of the
    file, of which a record may hold any number: all of them are left out.
    """
    import polars as pl

    with path.open("rb") as file:
        begin = file.read(4)
    if not begin:
        return
    if begin[1:] == _ZST_SKIPPABLE and begin[0] >> 4 == 5:
        raise SourceUnavailable(
            f"Expected {path.name} to begin with compressed data, got a skippable frame. polars "
            "does not look behind it. Compress the file anew, with zstd."
        )
    if begin != _ZST:  # polars would read it as it is
        raise EOFError
    lines = pl.scan_csv(
        path,
        has_header=False,
        separator="\n",
        quote_char=None,
        schema={"line": pl.String},
        encoding="utf8-lossy",
        glob=False,
    )
    try:
        for batch in lines.collect_batches(chunk_size=_LINES):
            yield "\n".join([*batch["line"].fill_null("").to_list(), ""]).encode()
    except pl.exceptions.PolarsError:
        raise EOFError from None


def _cut(chunks: Iterator[bytes], *, half: bool, quotes: bool) -> Iterator[Block]:
    """Cut chunks of bytes at the ends of records; a record over the limit becomes a bad one."""
    rest = b""
    began = False
    skipping = odd = False  # a record is being dropped; so far it has an odd number of quotes
    for chunk in chunks:
        if skipping:
            ends = _ends(chunk, quotes, odd=odd)
            if not len(ends):
                odd ^= _odd(chunk, quotes)
                continue
            chunk, skipping = _BAD + chunk[ends[0] :], False  # noqa: PLW2901  # its end is found
        data = rest + chunk
        cut = _last_end(data, quotes)
        rest = data[cut:]
        if len(rest) > LONGEST + 1:
            odd, skipping = _odd(rest, quotes), True
            rest = b""
        began |= cut > 0 or skipping
        if cut:
            yield _block(data[:cut], quotes)
    if rest == MARK and not began:
        return
    if skipping or (rest and half):
        rest = _BAD
    if rest:
        yield _block(rest + b"\n", quotes)


def _last_end(data: bytes, quotes: bool) -> int:
    """Where the last whole record of the data ends, behind its newline."""
    if not quotes or b'"' not in data:
        return data.rfind(b"\n") + 1
    ends = _ends(data, quotes)
    return int(ends[-1]) + 1 if len(ends) else 0


def _odd(data: bytes, quotes: bool) -> bool:
    """Whether data have an odd number of double quotes that matter."""
    return quotes and data.count(b'"') % 2 == 1


def _ends(data: bytes, quotes: bool, *, odd: bool = False) -> NDArray[np.int64]:
    """Where records end: at every newline, or at those with an even number of quotes before.

    Args:
        data: Bytes.
        quotes: Whether quotes matter.
        odd: Whether the number of quotes before the data is odd.
    """
    array = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(array == _NEWLINE)
    if odd or (quotes and b'"' in data):
        marks = np.flatnonzero(array == _QUOTE)
        ends = ends[np.searchsorted(marks, ends) % 2 == odd]
    return ends


def _block(raw: bytes, quotes: bool) -> Block:
    data, more = raw, False
    if b"\r\n" in raw:
        data = raw.replace(b"\r\n", b"\n")
        more = b"\r\n" in data
        if more:
            data = _RETURNS.sub(b"\n", data)
    ends = _ends_of_all(data, quotes)
    starts = np.concatenate([[0], ends[:-1] + 1])
    sizes = ends - starts
    if more or (quotes and len(data) < len(raw)):  # the limit is about what was read, as in _cut
        ends_read = _ends_of_all(raw, quotes)
        sizes = np.diff(ends_read, prepend=-1) - 1
        sizes -= np.frombuffer(raw, np.uint8)[ends_read - 1] == _RETURN
    readable = (ends > starts) & (sizes <= LONGEST)
    block = Block(data, starts, ends, readable)
    if not data.isascii() and not _is_text(data):
        for number in range(len(starts)):
            readable[number] &= _is_text(block.record(number))
    return block


def _ends_of_all(data: bytes, quotes: bool) -> NDArray[np.int64]:
    """Where records end in data that end with a record, perhaps within an open quote."""
    ends = _ends(data, quotes)
    if not len(ends) or ends[-1] != len(data) - 1:
        ends = np.append(ends, len(data) - 1)
    return ends


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return _REPLACED not in data
