"""Files that are there whole or not at all: written beside, synced, renamed, the folder synced."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from tidegauge.errors import WriteFailed

__all__ = ["folder", "private_folder", "put", "put_by", "safe_name", "writing"]

_PART = ".part"  # ends the name of a file that is being written; nobody reads such files


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

    def write(handle: int, _: Path) -> None:
        with os.fdopen(handle, "wb", closefd=False) as file:
            file.write(data)

    _put(path, write, mode=mode, named=named)


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


def _put(path: Path, write: Callable[[int, Path], object], *, mode: int, named: bool) -> None:
    part = path.with_name(path.name + _PART)
    with writing(path):
        try:
            part.unlink(missing_ok=True)  # what lies there may be a link to another file
            # made with its final rights before anything is in it
            handle = os.open(part, os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_WRONLY, mode)
            try:
                os.fchmod(handle, mode)
                write(handle, part)
            finally:
                os.close(handle)
            _sync(part)
            os.replace(part, path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        if named:
            _sync(path.parent)


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
        raise WriteFailed(
            f"Expected to write {path}, got: {error.strerror or type(error).__name__}. What was "
            "committed and published before stays as it was. Make room or give the right to "
            "write, then run again: it resumes."
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
