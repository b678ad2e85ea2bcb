"""Places on the disk: which paths are one file, and which lie inside a folder.

Compared as the system would open them, with links followed, so that no spelling of a path gets
through. Names and links are looked at; nothing is opened.
"""

from __future__ import annotations

import glob
import os
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

__all__ = ["Place", "matches", "place_of"]


@dataclass(frozen=True)
class Place:
    """Where a path leads.

    Attributes:
        paths: Where its entry is, which a rename replaces; and what it leads to, if it is a link.
        file: Device and number of the file that is there; None: there is none.
    """

    paths: frozenset[Path]
    file: tuple[int, int] | None

    def same(self, other: Place) -> bool:
        """Whether writing one would change the other."""
        one_file = self.file is not None and self.file == other.file
        return one_file or not self.paths.isdisjoint(other.paths)

    def inside(self, folder: Path) -> bool:
        """Whether it is, or lies anywhere in, a folder."""
        real = Path(os.path.realpath(folder))
        return any(path.is_relative_to(real) for path in self.paths)

    def matched_by(self, pattern: Path) -> bool:
        """Whether a source's glob takes it, or would as soon as it is there."""
        fixed, moving = _split(pattern)
        return any(
            path.is_relative_to(fixed) and _match(path.relative_to(fixed).parts, moving)
            for path in self.paths
        )


def place_of(path: Path) -> Place:
    """Return where a path leads; the file need not be there."""
    entry = Path(os.path.realpath(path.parent)) / path.name
    real = Path(os.path.realpath(path))
    try:
        found = real.stat()
    except OSError:
        return Place(frozenset({entry, real}), None)
    return Place(frozenset({entry, real}), (found.st_dev, found.st_ino))


def matches(pattern: Path) -> list[Place]:
    """Return the files that a source names, by a path or by a glob."""
    if not glob.has_magic(str(pattern)):
        return [place_of(pattern)]
    return [place_of(Path(path)) for path in glob.iglob(str(pattern), recursive=True)]


def _split(pattern: Path) -> tuple[Path, tuple[str, ...]]:
    """The folder that a glob starts from, with links followed, and the rest of it."""
    parts = pattern.parts
    fixed = next((i for i, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    return Path(os.path.realpath(Path(*parts[:fixed]))), parts[fixed:]


def _match(parts: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return any(_match(parts[i:], pattern[1:]) for i in range(len(parts) + 1))
    return bool(parts) and fnmatchcase(parts[0], pattern[0]) and _match(parts[1:], pattern[1:])
