"""The store's private states, each in parts under a number, with a digest for each part."""

from __future__ import annotations

import sqlite3
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, final

from tidegauge.engine.schema import damaged, digest, speaking

if TYPE_CHECKING:
    import polars as pl

__all__ = ["States"]

_PART = 1 << 15  # bytes of a state that are written together, if they changed
_ITEMS_A_PART = 1 << 17


@final
class States:
    """The table of states; what is written becomes durable with the transaction around it.

    Args:
        connection: To the store.
        path: Its file, for messages.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection, self._path = connection, path
        self._parts: dict[tuple[int, int], bytes] = {}  # what the file holds of the states

    def write(self, number: int, data: bytes) -> None:
        """Write the parts that changed: a ring of a long window changes in one row a step."""
        count = -(-len(data) // _PART)
        for part in range(count):
            piece = data[part * _PART : (part + 1) * _PART]
            if self._parts.get((number, part)) != piece:
                check = digest(number, part, piece)
                self._connection.execute(
                    "INSERT INTO state VALUES (?, ?, ?, ?) ON CONFLICT (gauge, part) "
                    "DO UPDATE SET data = excluded.data, digest = excluded.digest",
                    (number, part, piece, check),
                )
                self._parts[number, part] = piece
        self._connection.execute("DELETE FROM state WHERE gauge = ? AND part >= ?", (number, count))
        for key in [key for key in self._parts if key[0] == number and key[1] >= count]:
            del self._parts[key]

    def append(self, number: int, items: pl.DataFrame) -> None:
        """Write items that came; those that were there stay as they are."""
        (part,) = self._connection.execute(
            "SELECT count(*) FROM state WHERE gauge = ?", (number,)
        ).fetchone()
        for rows in items.iter_slices(_ITEMS_A_PART):
            buffer = BytesIO()
            rows.write_parquet(buffer, compression="zstd")
            data = buffer.getvalue()
            check = digest(number, part, data)
            row = (number, part, data, check)
            self._connection.execute("INSERT INTO state VALUES (?, ?, ?, ?)", row)
            part += 1

    def read(self, number: int) -> bytes:
        """Return a state; nothing where there is none.

        Raises:
            StoreBehind: The store is damaged.
        """
        parts = self.parts(number)
        self._parts.update(((number, part), data) for part, data in enumerate(parts))
        return b"".join(parts)

    def parts(self, number: int) -> list[bytes]:
        """Return the parts of a state, in order.

        Raises:
            StoreBehind: The store is damaged.
        """
        with speaking(self._path):
            rows = self._connection.execute(
                "SELECT part, data, digest FROM state WHERE gauge = ? ORDER BY part", (number,)
            ).fetchall()
        for expected, (part, data, check) in enumerate(rows):
            if part != expected or check != digest(number, part, data):
                raise damaged(self._path)
        return [data for _, data, _ in rows]

    def erase(self) -> None:
        """Erase every state."""
        self._connection.execute("DELETE FROM state")
        self._parts.clear()
