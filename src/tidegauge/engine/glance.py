"""A glance at a store without its lock: for the operator, while a run may be writing."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path

from tidegauge.engine.lock import Owner
from tidegauge.engine.schema import check_format, speaking
from tidegauge.engine.store import Spend
from tidegauge.errors import SourceUnavailable
from tidegauge.plan.plan import Plan

__all__ = ["Glance", "glance"]


@dataclass(frozen=True)
class Glance:
    """What an operator may ask of a store.

    Attributes:
        plan: The accepted plan.
        step: Steps that are committed.
        spends: Releases of the stream that were charged.
        counters: Rows dropped and totals clamped: the operator's alone.
        owner: Who writes at the moment; None: nobody.
    """

    plan: Plan
    step: int
    spends: tuple[Spend, ...]
    counters: dict[str, int]
    owner: str | None


def glance(path: Path) -> Glance | None:
    """Return what a store says; None: nothing was ever accepted in it.

    It takes no lock, writes nothing and reads neither measurement nor private state.

    Raises:
        SourceUnavailable: There is no such file.
        StoreMismatch: It is no store of this format.
        StoreBehind: It is damaged.
    """
    if not path.is_file():
        raise SourceUnavailable(
            f"Expected a store at {path}, got no such file. There is nothing to tell. Name the "
            "file that `store:` of the config names."
        )
    with speaking(path):
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
        try:
            check_format(connection, path)
            if not connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
                return None
            connection.execute("BEGIN")  # one moment for all that is read
            row = connection.execute("SELECT canonical, step FROM plan").fetchone()
            spends = connection.execute("SELECT entry FROM spend ORDER BY number").fetchall()
            counters = connection.execute("SELECT name, value FROM counter").fetchall()
            owner = connection.execute("SELECT owner FROM lock").fetchone()
        finally:
            connection.close()
    if row is None:
        return None
    return Glance(
        plan=Plan.from_bytes(row[0]),
        step=int(row[1]),
        spends=tuple(Spend.from_text(entry) for (entry,) in spends),
        counters=dict(counters),
        owner=None if owner is None else Owner.from_text(owner[0]).in_words(),
    )
