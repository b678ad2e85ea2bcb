"""What an operator may know of a store, without opening it for writing."""

from __future__ import annotations

import os
import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path

from tidegauge.engine.lock import Owner
from tidegauge.engine.schema import check_format, speaking
from tidegauge.engine.spends import Spend
from tidegauge.errors import StoreMismatch

__all__ = ["Status", "status_of"]


@dataclass(frozen=True)
class Status:
    """The state of a store. The counters are the operator's alone: the guarantee leaves them out.

    Attributes:
        path: The store.
        plan: The canonical bytes of its plan.
        step: How many steps are committed.
        blocks: In how many blocks.
        openings: How often the store was opened.
        spends: Every release that was charged.
        counters: How many rows were dropped and totals clamped, by reason.
        owner: Who writes it at the moment; None: nobody, or somebody who is gone.
    """

    path: Path
    plan: bytes
    step: int
    blocks: int
    openings: int
    spends: tuple[Spend, ...]
    counters: dict[str, int]
    owner: Owner | None


def status_of(path: Path) -> Status:
    """Read what can be said of a store, also while another process writes it.

    Raises:
        StoreMismatch: There is no store.
        StoreBehind: It is damaged.
    """
    if not path.is_file():
        raise _no_store(path, "something that is no file" if path.exists() else "nothing")
    with speaking(path):
        connection = _opened(path.resolve())
        try:
            connection.execute("PRAGMA query_only = ON")
            check_format(connection, path)
            if not connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
                raise _no_store(path, "an empty file")
            return _read(connection, path)
        finally:
            connection.close()


def _no_store(path: Path, got: str) -> StoreMismatch:
    return StoreMismatch(
        f"Expected a store at {path}, got {got}. There is nothing to tell. Name the file that "
        "`store:` of the config names."
    )


def _opened(path: Path) -> sqlite3.Connection:
    """Open a store so that its folder is afterwards as it was.

    With a log beside it, a writer lives or was killed: the log is read and left as it is. Without
    one SQLite makes it, and removes it only if it may write; on a read-only disk there is nothing
    to make, as nobody can write meanwhile.
    """
    if path.with_name(path.name + "-wal").exists():
        how = "mode=ro"
    elif os.access(path, os.W_OK) and os.access(path.parent, os.W_OK):
        how = "mode=rw"
    else:
        how = "mode=ro&immutable=1"
    return sqlite3.connect(f"{path.as_uri()}?{how}", uri=True)


def _read(connection: sqlite3.Connection, path: Path) -> Status:
    accepted = connection.execute("SELECT canonical, step FROM plan").fetchone()
    if accepted is None:
        raise StoreMismatch(
            f"Expected a store with an accepted plan at {path}, got one without: its making was "
            "interrupted. There is nothing to tell. Run its config."
        )
    plan, step = accepted
    (blocks,) = connection.execute("SELECT count(*) FROM span").fetchone()
    (openings,) = connection.execute("SELECT max(number) FROM incarnation").fetchone()
    spends = connection.execute("SELECT entry FROM spend ORDER BY number").fetchall()
    counters = dict(connection.execute("SELECT * FROM counter ORDER BY name").fetchall())
    row = connection.execute("SELECT owner, renewed FROM lock").fetchone()
    owner = Owner.from_text(row[0]) if row is not None else None
    if owner is not None and not owner.lives(time.time() - row[1]):
        owner = None
    return Status(
        path, bytes(plan), step, blocks, openings,
        tuple(Spend.from_text(entry) for (entry,) in spends), counters, owner,
    )  # fmt: skip
