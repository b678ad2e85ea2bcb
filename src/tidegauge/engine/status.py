"""What an operator may know of a store, without opening it for writing."""

from __future__ import annotations

import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path

from tidegauge.engine.lock import Owner
from tidegauge.engine.schema import check_format, speaking
from tidegauge.engine.store import Spend
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
        raise StoreMismatch(
            f"Expected a store at {path}, got no file. There is nothing to tell. Name the file "
            "that `store:` of the config names."
        )
    with speaking(path):
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
        try:
            check_format(connection, path)
            return _read(connection, path)
        finally:
            connection.close()


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
