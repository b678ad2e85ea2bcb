r"""Records of text files: split by newline, in blocks of bounded size, each judged by itself.

A record ends with ``\n`` or ``\r\n``. A record is unreadable, and its row one of nulls, if

* it is an empty line: where each record is a step, the records behind it keep their places,
* it is longer than 1 MiB,
* it is not UTF-8, or holds U+FFFD, which decoders write where bytes were not UTF-8,
* it is the last of a CSV file and has no newline: it may be half written, and counting it once now
  and once when it is whole would count one event twice. (In a ``.zst`` file that cannot be seen; so
  it has to be whole when it is read.)

Behind the last newline there is no record. A byte order mark at the beginning is left out. A
compressed file that ends too early, or is not what its name says, is an unavailable source.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from tidegauge.errors import SourceUnavailable

__all__ = ["LONGEST", "Block", "Bytes", "blocks", "blocks_of"]

LONGEST = 1 << 20
"""Most bytes of a record."""

_SIZE = 1 << 21  # bytes read at once
_LINES = 1 << 15  # lines of a zst file taken at once
_BAD = b"\xff"  # stands for a record that cannot be read: no UTF-8 begins with it
_REPLACED = b"\xef\xbf\xbd"
_MARK = b"\xef\xbb\xbf"
_NEWLINE, _QUOTE = 10, 34


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
            yield from blocks_of(stream, half=half, quotes=quotes)
    except (OSError, EOFError, zlib.error, lzma.LZMAError):
        raise SourceUnavailable(
            f"Expected a readable file, got {path.name}, which is away or damaged. Nothing was "
            "measured. Bring it back whole, with permission to read it."
        ) from None


def blocks_of(stream: Bytes, *, half: bool, quotes: bool = False) -> Iterator[Block]:
    """Yield the records of a stream of bytes; the arguments are those of :func:`blocks`."""
    yield from _cut(iter(lambda: stream.read(_SIZE), b""), half=half, quotes=quotes)


def _plain(path: Path) -> BinaryIO:
    return path.open("rb")


_OPENED: dict[str, Callable[[Path], Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}


def _zst(path: Path) -> Iterator[bytes]:
    """Yield the lines of a zst file as bytes; polars has the decompressor."""
    import polars as pl

    if path.stat().st_size == 0:
        return
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
    skipping = False
    began = False
    for chunk in chunks:
        if not began:
            began, chunk = True, chunk.removeprefix(_MARK)  # noqa: PLW2901  # the first one only
        if skipping:
            cut = chunk.find(b"\n")
            if cut < 0:
                continue
            chunk, skipping = _BAD + chunk[cut:], False  # noqa: PLW2901  # its end is found
        data = rest + chunk
        cut = _last_end(data, quotes)
        rest = data[cut:]
        if len(rest) > LONGEST + 1:
            rest, skipping = b"", True
        if cut:
            yield _block(data[:cut], quotes)
    if rest == b"\r":
        rest = b""
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


def _ends(data: bytes, quotes: bool) -> NDArray[np.int64]:
    """Where records end: at every newline, or at those with an even number of quotes before."""
    array = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(array == _NEWLINE)
    if quotes and b'"' in data:
        marks = np.flatnonzero(array == _QUOTE)
        ends = ends[np.searchsorted(marks, ends) % 2 == 0]
    return ends


def _block(data: bytes, quotes: bool) -> Block:
    if b"\r\n" in data:
        data = data.replace(b"\r\n", b"\n")
    ends = _ends(data, quotes)
    if not len(ends) or ends[-1] != len(data) - 1:  # an open quote at the end of the file
        ends = np.append(ends, len(data) - 1)
    starts = np.concatenate([[0], ends[:-1] + 1])
    readable = (ends > starts) & (ends - starts <= LONGEST)
    block = Block(data, starts, ends, readable)
    if not data.isascii() and not _is_text(data):
        for number in range(len(starts)):
            readable[number] &= _is_text(block.record(number))
    return block


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return _REPLACED not in data
