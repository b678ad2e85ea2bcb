r"""The store: everything private, in one file, for one writer.

Theory of operation. One transaction commits a block of steps for all gauges: the measurement, the
private state behind it, the position. Nothing of a block is published before that transaction is
durable, and what is published is read back from it. So a crash leaves either no trace of a block
(it is measured anew, and nobody has seen the first draw) or all of it. Rows of the measurement are
inserted and never changed; the file itself refuses it. If a commit fails in a way that leaves open
whether it stands, the store takes nothing more: the next opening looks.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, final

import numpy as np

from tidegauge.engine.block_rows import insert_block, read_block
from tidegauge.engine.blocks import Block
from tidegauge.engine.found import FoundBlock
from tidegauge.engine.lock import check_lock, give_lock_back, renew_lock, take_lock
from tidegauge.engine.packing import pack, unpack
from tidegauge.engine.schema import connect, damaged, digest, speaking, transaction
from tidegauge.engine.spends import Spend
from tidegauge.engine.states import States
from tidegauge.errors import LiveState, StoreMismatch
from tidegauge.mechanisms.secret import store_secret
from tidegauge.strategies.strategy import Int64, State

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Store"]

_BOUNDING = -1  # the number under which the state of the contribution bound is kept
_UNIT_KEY = -2  # and the key of the hashes of its ids
_NOISE = -3  # and the keys of the noise of discovered cells
_ITEMS = -16  # minus the number of a gauge: and what that has discovered, a part for each block


@final
class Store:
    """An open store; it holds the lock until it is closed.

    Args:
        path: The file; made, with mode 0600, if there is none.
        fingerprint: Of the plan, without its published views.
        canonical: The plan itself; a plan with other views takes its place.
        gauges: The names of its gauges.

    Raises:
        Locked: Another process writes.
        StoreMismatch: The store belongs to another plan.
        StoreBehind: The store is damaged.
        WriteFailed: The disk does not take it.
    """

    def __init__(
        self, path: Path, *, fingerprint: str, canonical: bytes, gauges: Sequence[str]
    ) -> None:
        self.path = path.resolve()
        self._gauges = {name: number for number, name in enumerate(gauges)}
        self._pid = os.getpid()
        self._usable = True
        self._connection = connect(self.path)
        self._states = States(self._connection, self.path)
        try:
            with speaking(self.path):
                with transaction(self._connection):
                    self._incarnation = take_lock(self._connection, self.path)
                    self._bind(fingerprint, canonical)
                row = self._connection.execute("SELECT store, step FROM plan").fetchone()
        except BaseException:
            self._connection.close()
            raise
        self.name, self._step = str(row[0]), int(row[1])

    @property
    def step(self) -> int:
        """How many steps are committed."""
        return self._step

    @property
    def incarnation(self) -> int:
        """How often the store was opened, this time included."""
        return self._incarnation

    def commit(
        self,
        first: int,
        steps: int,
        blocks: Mapping[str, Int64 | FoundBlock],
        states: Mapping[str, Mapping[str, State]],
        *,
        items: Mapping[str, pl.DataFrame] | None = None,
        readings: Mapping[str, State] | None = None,
        bounding: State | None = None,
        counters: Mapping[str, int] | None = None,
        ended: bool = False,
    ) -> None:
        """Commit a block of steps of all gauges, durably, in one transaction.

        Args:
            first: The first step, from 0; it must be the first that is not committed.
            steps: How many.
            blocks: The measurement of each gauge, int64 of shape (rows, cells); of one that
                discovers its cells, a found block.
            states: The private state of each gauge after the block.
            items: Of gauges that discover their cells, those that were seen in the block for the
                first time, in the order of their numbers.
            readings: Public states of the decoders *before* the block, to resume from; optional.
            bounding: The state of the contribution bound after the block.
            counters: The operator's counts, by name; they replace earlier ones.
            ended: This was the last block: private states are erased.

        Raises:
            LiveState: This is a fork, or an earlier commit failed.
            Locked: The lock is another process's.
            StoreMismatch: The block is not the next one.
            WriteFailed: The disk does not take it; whether the block stands, the next opening sees.
        """
        self._refuse_unless_usable()
        self._usable = False
        with speaking(self.path), transaction(self._connection):
            self._check_turn(first)
            self._connection.execute("INSERT INTO span VALUES (?, ?)", (first, steps))
            for name, number in self._gauges.items():
                insert_block(self._connection, first, steps, number, blocks[name])
            for name, reading in (readings or {}).items():
                data = pack({"reading": reading})
                key = first, self._gauges[name]
                row = (*key, data, digest(*key, data))
                self._connection.execute("INSERT INTO reading VALUES (?, ?, ?, ?)", row)
            if ended:
                self._states.erase()
            else:
                for name, state in states.items():
                    self._states.write(self._gauges[name], pack(state))
                for name, seen in (items or {}).items():
                    self._states.append(_ITEMS - self._gauges[name], seen)
                if bounding is not None:
                    self._states.write(_BOUNDING, pack({"bounding": bounding}))
            self._connection.executemany(
                "INSERT OR REPLACE INTO counter VALUES (?, ?)", (counters or {}).items()
            )
            self._connection.execute("UPDATE plan SET step = ?", (first + steps,))
        self._step = first + steps
        self._usable = True
        if ended:  # older versions of the states are in the log
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def states(self) -> dict[str, dict[str, State]]:
        """Return the private state of each gauge after the last committed step; none before it.

        Raises:
            StoreBehind: The store is damaged.
        """
        found = {}
        for name, number in self._gauges.items():
            data = self._states.read(number)
            if data:
                found[name] = unpack(data)
        return found

    def bounding(self) -> State | None:
        """Return the state of the contribution bound, if there is one."""
        data = self._states.read(_BOUNDING)
        return unpack(data)["bounding"] if data else None

    @property
    def unit_key(self) -> bytes:
        """The secret under which ids are hashed: one a store, erased with the states."""
        return self._states.read(_UNIT_KEY)

    def begin_noise(self, key: bytes) -> None:
        """Commit the key of the noise of this opening's steps, durably, before its first draw.

        It is the key of all steps from the first uncommitted one up to that of the next key, for
        ever: a cell that becomes visible later has its past measured anew under the same keys.

        Args:
            key: 32 secret bytes.
        """
        keys = dict(self.noise_keys())
        keys[self._step] = key  # of an earlier opening that committed nothing: nobody saw a draw
        state = {
            "first": np.array(sorted(keys), np.int64),
            "key": np.frombuffer(b"".join(keys[first] for first in sorted(keys)), "<u8"),
        }
        self._refuse_unless_usable()
        self._usable = False
        with speaking(self.path), transaction(self._connection):
            self._check_turn(self._step)
            self._states.write(_NOISE, pack({"keys": state}))
        self._usable = True

    def noise_keys(self) -> list[tuple[int, bytes]]:
        """Return the first step and the key of every opening that committed any; in order."""
        data = self._states.read(_NOISE)
        if not data:
            return []
        state = unpack(data)["keys"]
        keys = state["key"].reshape(-1, 4)
        return [
            (first, key.tobytes()) for first, key in zip(state["first"].tolist(), keys, strict=True)
        ]

    def items(self, gauge: str) -> pl.DataFrame | None:
        """Return every item of a gauge in the order of their numbers; None: none was seen."""
        import polars as pl

        parts = self._states.parts(_ITEMS - self._gauges[gauge])
        return pl.concat([pl.read_parquet(BytesIO(data)) for data in parts]) if parts else None

    def spans(self) -> list[tuple[int, int]]:
        """Return first step and number of steps of every committed block, in order."""
        with speaking(self.path):
            return self._connection.execute("SELECT * FROM span ORDER BY first").fetchall()

    def block(self, gauge: str, first: int) -> Block | FoundBlock:
        """Read a committed block back.

        Raises:
            StoreBehind: It is not as it was written.
        """
        with speaking(self.path):
            return read_block(self._connection, self.path, first, self._gauges[gauge])

    def reading(self, gauge: str, first: int) -> tuple[int, State] | None:
        """Return the latest stored state of a decoder that is not after ``first``, and its step."""
        with speaking(self.path):
            row = self._connection.execute(
                "SELECT first, gauge, data, digest FROM reading WHERE gauge = ? AND first <= ? "
                "ORDER BY first DESC LIMIT 1",
                (self._gauges[gauge], first),
            ).fetchone()
        if row is None:
            return None
        if row[3] != digest(*row[:3]):
            raise damaged(self.path)
        return int(row[0]), unpack(row[2])["reading"]

    def spends(self) -> list[Spend]:
        """Return every release that was charged, in order.

        Raises:
            StoreBehind: The store is damaged.
        """
        with speaking(self.path):
            rows = self._connection.execute("SELECT entry FROM spend ORDER BY number").fetchall()
        try:
            return [Spend.from_text(entry) for (entry,) in rows]
        except (ValueError, TypeError):
            raise damaged(self.path) from None

    def charge(self, spends: Sequence[Spend]) -> None:
        """Charge releases, durably; they are never taken back."""
        self._refuse_unless_usable()
        with speaking(self.path), transaction(self._connection):
            self._check_turn(self._step)
            self._connection.executemany(
                "INSERT INTO spend (entry) VALUES (?)", [(spend.to_text(),) for spend in spends]
            )

    def counters(self) -> dict[str, int]:
        """Return the operator's counts: not for readers."""
        with speaking(self.path):
            return dict(self._connection.execute("SELECT * FROM counter").fetchall())

    def close(self) -> None:
        """Give the lock back and close the file; closing twice is harmless."""
        if os.getpid() != self._pid:
            return  # the file is the parent's
        try:
            give_lock_back(self._connection, self._incarnation)
        except sqlite3.Error:
            pass  # the next opening sees that this process is gone
        finally:
            self._connection.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r}, step={self._step})"

    def _refuse_copy(self, *_: object) -> NoReturn:
        raise LiveState(
            "Expected one open store, got an attempt to copy or pickle it. Two writers would "
            "publish two releases of one step. Open it where it is used."
        )

    __copy__ = __deepcopy__ = __reduce__ = __reduce_ex__ = __getstate__ = _refuse_copy

    def _bind(self, fingerprint: str, canonical: bytes) -> None:
        """Write the plan into an empty store; refuse a store of another one."""
        row = self._connection.execute("SELECT fingerprint FROM plan").fetchone()
        if row is None:
            self._connection.execute(
                "INSERT INTO plan VALUES (1, ?, ?, ?, 0)",
                (store_secret("name").hex()[:32], fingerprint, canonical),
            )
            self._states.write(_UNIT_KEY, store_secret("unit ids"))
            self._connection.executemany(
                "INSERT INTO gauge VALUES (?, ?)",
                [(number, name) for name, number in self._gauges.items()],
            )
        elif row[0] != fingerprint:
            raise StoreMismatch(
                f"Expected the plan of {self.path}, whose fingerprint is {row[0]}, got one with "
                f"{fingerprint}. What one plan measured means nothing under another, and the "
                "budget of both adds up. Use the accepted plan, or another store at its own cost."
            )
        else:
            self._connection.execute("UPDATE plan SET canonical = ?", (canonical,))

    def _refuse_unless_usable(self) -> None:
        if os.getpid() != self._pid or not self._usable:
            raise LiveState(
                "Expected the process that opened the store, after commits that all succeeded; got "
                "a fork, or a commit after a failed one. What is committed is not known here. Open "
                "the store again."
            )

    def _check_turn(self, first: int) -> None:
        """Refuse to write without the lock, or anything but the next block."""
        check_lock(self._connection, self.path, self._incarnation)
        step = self._connection.execute("SELECT step FROM plan").fetchone()[0]
        if step != first:
            raise StoreMismatch(
                f"Expected the block that begins with step {step + 1}, got one that begins with "
                f"step {first + 1}. A step is measured once. Continue where the store stands."
            )
        renew_lock(self._connection)
