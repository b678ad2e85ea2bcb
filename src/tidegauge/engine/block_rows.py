"""Measured blocks as rows of the store: inserted once, and never changed."""

from __future__ import annotations

import hashlib
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegauge.engine.blocks import Block
from tidegauge.engine.found import FoundBlock
from tidegauge.engine.schema import damaged, digest
from tidegauge.strategies.strategy import Int64

__all__ = ["insert_block", "read_block"]

_FOUND = 0  # in place of the number of cells of a block whose cells were discovered
_PIECE = 1 << 26  # bytes of a block of discovered cells in one row


def insert_block(
    connection: sqlite3.Connection, first: int, steps: int, number: int, block: Int64 | FoundBlock
) -> None:
    """Insert the measurement of one gauge, which has this number in the store."""
    if isinstance(block, FoundBlock):
        row = first, number, steps, _FOUND, 1, hashlib.sha256(block.packed).digest()
        _insert_pieces(connection, first, number, block.packed)
    else:
        narrow = _narrow(block)
        size = narrow.itemsize
        row = first, number, steps, narrow.shape[1], size, narrow.tobytes()
    connection.execute("INSERT INTO block VALUES (?, ?, ?, ?, ?, ?, ?)", (*row, digest(*row)))


def read_block(
    connection: sqlite3.Connection, path: Path, first: int, number: int
) -> Block | FoundBlock:
    """Read one block of a gauge back.

    Args:
        connection: To the store.
        path: Its file, for messages.
        first: The block's first step, from 0.
        number: The gauge's in the store.

    Raises:
        StoreBehind: It is not as it was written.
    """
    row = connection.execute(
        "SELECT steps, cells, size, v, digest FROM block WHERE first = ? AND gauge = ?",
        (first, number),
    ).fetchone()
    if row is None or row[4] != digest(first, number, *row[:4]):
        raise damaged(path)
    steps, cells, size, data, _ = row
    if cells == _FOUND:
        return FoundBlock.unpacked(first, steps, _pieces(connection, path, first, number))
    measured = np.frombuffer(data, f"<i{size}").reshape(-1, cells).astype(np.int64)
    return Block(first, steps, measured)


def _insert_pieces(connection: sqlite3.Connection, first: int, number: int, data: bytes) -> None:
    for part, start in enumerate(range(0, len(data), _PIECE)):
        piece = data[start : start + _PIECE]
        check = digest(first, number, part, piece)
        connection.execute(
            "INSERT INTO piece VALUES (?, ?, ?, ?, ?)", (first, number, part, piece, check)
        )


def _pieces(connection: sqlite3.Connection, path: Path, first: int, number: int) -> bytes:
    rows = connection.execute(
        "SELECT part, data, digest FROM piece WHERE first = ? AND gauge = ? ORDER BY part",
        (first, number),
    ).fetchall()
    for expected, (part, data, check) in enumerate(rows):
        if part != expected or check != digest(first, number, part, data):
            raise damaged(path)
    return b"".join(data for _, data, _ in rows)


def _narrow(rows: Int64) -> NDArray[np.signedinteger[Any]]:
    """Return integers in the fewest bytes each that hold them all: rarely more than two."""
    low, high = rows.min(initial=0), rows.max(initial=0)
    sizes = (size for size in (1, 2, 4) if -(1 << 8 * size - 1) <= low <= high < 1 << 8 * size - 1)
    return rows.astype(f"<i{next(sizes, 8)}", copy=False)
