"""The store's tables, and its connection as everything else expects it."""

from __future__ import annotations

import errno
import hashlib
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tidegauge.engine.files import folder, writing
from tidegauge.errors import Locked, StoreBehind, StoreMismatch, WriteFailed

__all__ = [
    "FORMAT",
    "MODE",
    "check_format",
    "connect",
    "damaged",
    "digest",
    "speaking",
    "transaction",
]

FORMAT = 2
MODE = 0o600  # the store is private, and SQLite gives its other two files the same rights
_APPLICATION = 0x54494445  # "TIDE", in the header of the file
_PAGE = 16_384
_WAIT_SECONDS = 5.0

_TABLES = """
CREATE TABLE plan (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    store TEXT NOT NULL, fingerprint TEXT NOT NULL, canonical BLOB NOT NULL,
    step INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE gauge (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE span (first INTEGER PRIMARY KEY, steps INTEGER NOT NULL CHECK (steps > 0));
CREATE TABLE block (
    first INTEGER NOT NULL, gauge INTEGER NOT NULL,
    steps INTEGER NOT NULL, cells INTEGER NOT NULL, size INTEGER NOT NULL, v BLOB NOT NULL,
    digest BLOB NOT NULL, PRIMARY KEY (first, gauge)
);
CREATE TABLE reading (
    first INTEGER NOT NULL, gauge INTEGER NOT NULL, data BLOB NOT NULL, digest BLOB NOT NULL,
    PRIMARY KEY (first, gauge)
);
CREATE TABLE state (
    gauge INTEGER NOT NULL, part INTEGER NOT NULL, data BLOB NOT NULL, digest BLOB NOT NULL,
    PRIMARY KEY (gauge, part)
);
CREATE TABLE incarnation (number INTEGER PRIMARY KEY, first INTEGER NOT NULL, owner TEXT NOT NULL);
CREATE TABLE lock (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    incarnation INTEGER NOT NULL, owner TEXT NOT NULL, since REAL NOT NULL, renewed REAL NOT NULL
);
CREATE TABLE spend (number INTEGER PRIMARY KEY, entry TEXT NOT NULL);
CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
"""
# of gauges that discover their cells; stores of earlier versions have none
_LATER = """
CREATE TABLE IF NOT EXISTS piece (
    first INTEGER NOT NULL, gauge INTEGER NOT NULL, part INTEGER NOT NULL,
    data BLOB NOT NULL, digest BLOB NOT NULL,
    PRIMARY KEY (first, gauge, part)
);
"""
# what was measured stays: no statement of any program changes it
_FINAL = """
CREATE TRIGGER IF NOT EXISTS {table}_{verb} BEFORE {verb} ON {table}
BEGIN SELECT RAISE(ABORT, 'what was measured is final'); END;
"""


def connect(path: Path) -> sqlite3.Connection:
    """Open the file of a store for writing, with all tables; make it if there is none.

    Raises:
        StoreMismatch: Another file is there, or a store of another format.
        StoreBehind: The file is damaged.
        WriteFailed: It cannot be made or written.
    """
    folder(path.parent)
    with writing(path):
        if path.is_dir():  # before its rights are changed
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not path.exists():
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, MODE))
        if (names := path.stat().st_nlink) > 1:
            raise StoreMismatch(
                f"Expected one name of the file {path}, got {names} hard links to it. What was "
                "just committed lies beside one of its names, and another would not see it. Copy "
                "the file to a name of its own, and remove the others."
            )
        os.chmod(path, MODE)
        if not os.access(path, os.W_OK):
            raise PermissionError(13, "Permission denied")
    with speaking(path):
        connection = sqlite3.connect(path, timeout=_WAIT_SECONDS, isolation_level=None)
    try:
        with speaking(path):
            _prepare(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute(f"PRAGMA page_size = {_PAGE}")
    check_format(connection, path)
    # a lost commit after a published release would be a second draw: every commit is synced
    for setting in (
        "journal_mode = WAL", "synchronous = FULL", "secure_delete = ON",
        "recursive_triggers = ON", "trusted_schema = OFF",
    ):  # fmt: skip
        connection.execute(f"PRAGMA {setting}")
    with transaction(connection):
        connection.execute(_LATER)
        for verb in ("DELETE", "UPDATE"):
            connection.execute(_FINAL.format(table="piece", verb=verb))
        if _pragma(connection, "user_version"):
            return
        for statement in _TABLES.split(";"):
            connection.execute(statement)
        for table in ("plan", "span", "block", "reading", "incarnation", "spend"):
            connection.execute(_FINAL.format(table=table, verb="DELETE"))
            if table != "plan":
                connection.execute(_FINAL.format(table=table, verb="UPDATE"))
        connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        connection.execute(f"PRAGMA user_version = {FORMAT}")


def check_format(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse what is not an empty file or a store of this format."""
    application = _pragma(connection, "application_id")
    version = _pragma(connection, "user_version")
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if (application, version) == (_APPLICATION, FORMAT) or not tables:
        return
    is_store = application == _APPLICATION
    raise StoreMismatch(
        f"Expected a store of format {FORMAT} at {path}, got "
        f"{f'one of format {version}' if is_store else 'another kind of database'}. It cannot be "
        "read. Name another file, or use the version of tidegauge that wrote it."
    )


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All statements or none. If the commit itself fails, nobody knows: look, never overwrite."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def speaking(path: Path) -> Iterator[None]:
    """Turn what SQLite says into our errors; its messages may hold values and are not shown."""
    try:
        yield
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", "") or type(error).__name__
        raise _translated(path, name) from None


def _translated(path: Path, name: str) -> Locked | StoreBehind | StoreMismatch | WriteFailed:
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return Locked(
            f"Expected {path} to be free, got a database that another process holds. Two writers "
            "would publish two releases of one step. Wait until it is done."
        )
    if name.startswith("SQLITE_NOTADB"):
        return StoreMismatch(
            f"Expected a store at {path}, got another kind of file. It is left as it is. Name "
            "another file as the store."
        )
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_CONSTRAINT", "SQLITE_ERROR")):
        return damaged(path)
    return WriteFailed(
        f"Expected to write {path}, got {name}. What was committed and published before stays as "
        "it was. Make room or give the right to write, then run again: it resumes."
    )


def damaged(path: Path) -> StoreBehind:
    """Return the refusal of a store whose contents are not what was written."""
    return StoreBehind(
        f"Expected {path} as it was written, got other contents. The store is damaged. Bring back "
        "an undamaged copy that is not older than what was published."
    )


def digest(*parts: bytes | int) -> bytes:
    """Return 16 bytes that change when anything in ``parts`` does."""
    hashed = hashlib.blake2b(digest_size=16)
    for part in parts:
        data = part if isinstance(part, bytes) else part.to_bytes(8, "little", signed=True)
        hashed.update(len(data).to_bytes(8, "little"))
        hashed.update(data)
    return hashed.digest()
