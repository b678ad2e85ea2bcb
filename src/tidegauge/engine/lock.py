"""One writer: who holds the store, whether it still lives, and what to say if it does.

The lock is a row of the store itself, so that taking it, checking it inside a commit and giving it
back are transactions of the same file. A lease counts openings; a writer whose lease is not the
last one commits nothing more.
"""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from tidegauge.errors import Locked

__all__ = [
    "LEASE_SECONDS",
    "Owner",
    "check_lock",
    "give_lock_back",
    "renew_lock",
    "take_lock",
    "this_process",
]

LEASE_SECONDS = 15 * 60
"""How long an owner on another machine counts as alive after its last sign of life."""


@dataclass(frozen=True)
class Owner:
    """A process, told apart from every other one that had or will have its number.

    Attributes:
        pid: Its number.
        host: Its machine's name.
        boot: Identifies the machine's run since it was switched on; empty where unknown.
        started: When the process was started, in ticks since then; empty where unknown.
    """

    pid: int
    host: str
    boot: str
    started: str

    def lives(self, silent_seconds: float) -> bool:
        """Return whether the process may still write.

        Args:
            silent_seconds: Time since its last sign of life; decides for other machines alone.
        """
        here = this_process()
        if self.host != here.host:
            return silent_seconds < LEASE_SECONDS
        if self.boot != here.boot or self.started != _started(self.pid):
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True  # it is there, and another user's
        return True

    def to_text(self) -> str:
        """Return the form that is stored."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_text(cls, text: str) -> Owner:
        """Return the owner of a stored form."""
        return cls(**json.loads(text))

    def refusal(self, store: Path, since: float) -> str:
        """Return the message for whoever comes second."""
        minutes = max(0, int(time.time() - since)) // 60
        return (
            f"Expected {store} to be free, got process {self.pid} on {self.host}, which has held "
            f"it for {minutes} minutes. Two writers would publish two releases of one step. Wait "
            "until it is done; if it is dead, its lock is taken over by itself."
        )


def this_process() -> Owner:
    """Return the process that asks."""
    pid = os.getpid()
    return Owner(pid, socket.gethostname(), _read("/proc/sys/kernel/random/boot_id"), _started(pid))


def take_lock(connection: sqlite3.Connection, path: Path) -> int:
    """Take the lock, over a dead owner if need be; return the number of this opening.

    Raises:
        Locked: Its owner lives.
    """
    row = connection.execute("SELECT owner, since, renewed FROM lock").fetchone()
    now = time.time()
    if row is not None:
        owner = Owner.from_text(row[0])
        if owner.lives(now - row[2]):
            raise Locked(owner.refusal(path, row[1]))
    owner = this_process()
    last = connection.execute("SELECT max(number) FROM incarnation").fetchone()[0]
    step = connection.execute("SELECT max(step) FROM plan").fetchone()[0]
    number = (last or 0) + 1
    connection.execute(
        "INSERT INTO incarnation VALUES (?, ?, ?)", (number, step or 0, owner.to_text())
    )
    connection.execute(
        "INSERT OR REPLACE INTO lock VALUES (1, ?, ?, ?, ?)", (number, owner.to_text(), now, now)
    )
    return number


def check_lock(connection: sqlite3.Connection, path: Path, number: int) -> None:
    """Refuse an opening that another one has taken the lock from.

    Raises:
        Locked: It has it no more.
    """
    row = connection.execute("SELECT incarnation FROM lock").fetchone()
    if row is None or row[0] != number:
        raise Locked(
            f"Expected this process to hold {path}, got another opening of it. It was "
            "taken over, and two writers would publish two releases of one step. Stop here."
        )


def renew_lock(connection: sqlite3.Connection) -> None:
    """Give a sign of life."""
    connection.execute("UPDATE lock SET renewed = ?", (time.time(),))


def give_lock_back(connection: sqlite3.Connection, number: int) -> None:
    """Give the lock back, if this opening has it."""
    connection.execute("DELETE FROM lock WHERE incarnation = ?", (number,))


def _started(pid: int) -> str:
    """The start of a process, field 22 of its status line; the name before it may hold spaces."""
    fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 else ""


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""
