"""Files that are there whole or not at all: written beside, synced, renamed, the folder synced."""

from __future__ import annotations

import errno
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from tidegauge.errors import WriteFailed

__all__ = [
    "folder",
    "is_database",
    "private_folder",
    "put",
    "put_by",
    "put_new",
    "safe_name",
    "sweep",
    "writing",
]

_IN_THE_WAY = {
    errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENOENT, errno.ELOOP, errno.ENAMETOOLONG,
}  # fmt: skip
_DATABASE = b"SQLite format 3\0"  # begins every file of SQLite
_OURS, _PART = ".tidegauge-", ".part"  # around the name of a file that is being written


def put(path: Path, data: bytes, *, mode: int = 0o644, named: bool = True) -> None:
    """Write a file durably: after a crash it is the old one or this one, whole.

    Args:
        path: Where it goes; the folder must exist.
        data: All of it.
        mode: Permission bits, exactly, whatever the umask.
        named: Wait for the name, too. Without it, a power cut may take the whole file away again,
            which is enough for what is written anew if it is missing.

    Raises:
        WriteFailed: It could not be written; what was there is still there.
    """
    _put(path, _writer(data), mode=mode, named=named)


def put_new(path: Path, data: bytes, *, named: bool = True) -> bool:
    """Like :func:`put`, but only where no file is yet; return whether that was so.

    Of two processes that try at once one succeeds. Needs a file system with hard links.
    """
    return _put(path, _writer(data), mode=0o644, named=named, place=_placed_anew)


def put_by(
    path: Path, write: Callable[[Path], object], *, mode: int = 0o644, named: bool = True
) -> None:
    """Like :func:`put`, for a writer that wants a path; nobody else may write to the folder.

    Args:
        path: Where the file goes.
        write: Called with the path to write to.
        mode: Permission bits.
        named: See :func:`put`.
    """
    _put(path, lambda _, part: write(part), mode=mode, named=named)


def is_database(path: Path) -> bool:
    """Whether a file of SQLite lies there; no store is ever written over."""
    if not path.is_file():  # to open a pipe would wait for its writer
        return False
    with path.open("rb") as file:
        return file.read(len(_DATABASE)) == _DATABASE


def sweep(path: Path, name: str | None = None) -> None:
    """Remove from a folder what killed processes left of files that they were writing.

    Args:
        path: The folder.
        name: Of the one file that is meant; None: all, where nobody else writes to the folder.
    """
    with writing(path):
        for part in path.glob(f"{_OURS if name is None else _prefix(name)}*{_PART}"):
            part.unlink(missing_ok=True)


def _prefix(name: str) -> str:
    """Begins the temporary names of one file; names may be as long as the system allows."""
    return f"{_OURS}{hashlib.sha256(os.fsencode(name)).hexdigest()[:16]}-"


def _writer(data: bytes) -> Callable[[int, Path], None]:
    def write(handle: int, _: Path) -> None:
        with os.fdopen(handle, "wb", closefd=False) as file:
            file.write(data)

    return write


def _placed(part: Path, path: Path) -> bool:
    os.replace(part, path)
    return True


def _placed_anew(part: Path, path: Path) -> bool:
    try:
        os.link(part, path)
    except FileExistsError:
        return False
    finally:
        os.unlink(part)
    return True


def _put(
    path: Path,
    write: Callable[[int, Path], object],
    *,
    mode: int,
    named: bool,
    place: Callable[[Path, Path], bool] = _placed,
) -> bool:
    with writing(path):
        if is_database(path):
            raise WriteFailed(
                f"Expected a place for a file at {path}, got a database, as a store is. It is left "
                "as it was. Name another place."
            )
        # a new name, so that nobody's file is in the way, and for its owner alone until it is done
        handle, name = tempfile.mkstemp(_PART, _prefix(path.name), path.parent)
        part = Path(name)
        try:
            try:
                os.fchmod(handle, mode)
                write(handle, part)
            finally:
                os.close(handle)
            _sync(part)
            placed = place(part, path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        if named:
            _sync(path.parent)
    return placed


def folder(path: Path, *, mode: int = 0o755) -> Path:
    """Make a folder and those above it, durably; return it."""
    if not path.is_dir():
        with writing(path):
            folder(path.parent)
            path.mkdir(mode=mode, exist_ok=True)
            _sync(path.parent)
    return path


def private_folder(path: Path) -> Path:
    """Make a folder for its owner alone; return it."""
    return folder(path, mode=0o700)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn what the operating system says into ``WriteFailed``; it names the file, never data."""
    try:
        yield
    except OSError as error:
        remedy = "Make room, or give the right to write"
        if error.errno in _IN_THE_WAY:
            remedy = "Something else is in its place, or its folder is missing: correct the path"
        raise WriteFailed(
            f"Expected to write {path}, got: {error.strerror or type(error).__name__}. What was "
            f"committed and published before stays as it was. {remedy}, then give the same command "
            "again."
        ) from None


def safe_name(name: str) -> str:
    """Return a gauge's or view's name as one component of a path.

    Examples:
        >>> safe_name("window_7d"), safe_name("../a")
        ('window_7d', '%2E.%2Fa')
    """
    quoted = quote(name, safe="")
    return "%2E" + quoted[1:] if quoted.startswith(".") else quoted


def _sync(path: Path) -> None:
    """Wait until a file, or the entries of a folder, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
