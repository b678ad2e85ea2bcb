"""The high-water mark: how far a store has got, kept away from it.

A store that was restored from a backup looks like any other, but going on with it would draw new
noise for steps that are published: a second release. The mark remembers. It is written durably
after each commit and before anything is published; a store that is behind its mark, or that has
measurements and no mark at all, is refused. The mark holds nothing about data.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import final

from tidegauge.engine.files import private_folder, put, sweep
from tidegauge.engine.spends import Spend
from tidegauge.errors import StoreBehind
from tidegauge.planning.settings import default_mark

__all__ = ["Mark", "MarkFile"]

_FORMAT = 1
_WAYS = (
    "Bring back the store that is not older than what was published, or accept a second release "
    "(--accept-second-release): it is charged to the ledger in full, once more."
)


@dataclass(frozen=True)
class Mark:
    """What is remembered of a store.

    Attributes:
        store: The store's name.
        path: Where it lay.
        fingerprint: Of its plan.
        step: How many steps it had committed.
        spends: Every release that was charged.
    """

    store: str
    path: str
    fingerprint: str
    step: int
    spends: tuple[Spend, ...]


@final
class MarkFile:
    """The file of a mark.

    Args:
        path: The file; None: one in the user's state directory, named after the store's path.
        store_path: Where the store lies.
    """

    def __init__(self, path: Path | None, store_path: Path) -> None:
        self._given = path is not None
        self._store_path = store_path.resolve()
        if path is None:
            path = default_mark(self._store_path)
        self.path = path.resolve()
        private_folder(self.path.parent)

    def sweep(self) -> None:
        """Remove what killed runs left beside the mark; for whoever holds its store."""
        sweep(self.path.parent, self.path.name)

    @property
    def warning(self) -> str | None:
        """What to say if store and mark lie in one folder and would be restored together."""
        if self.path.parent != self._store_path.parent:
            return None
        return (
            f"The mark {self.path} lies beside its store. A backup that restores the folder turns "
            "both back, and a second release goes unnoticed. Keep it elsewhere: leave `mark:` out, "
            "or name another folder."
        )

    def read(self, store: str) -> list[Mark]:
        """Return the mark of this place and those that the store has left under other names.

        A mark of another store that never measured is none: nothing was published under it.

        Raises:
            StoreBehind: The file of this place is no mark.
        """
        own = _read(self.path)
        marks = [] if own is None or _is_void(own, store) else [own]
        if not self._given:
            marks += _marks_of(store, self.path)
        return marks

    def check(self, marks: Sequence[Mark], store: str, step: int, spends: Sequence[Spend]) -> None:
        """Refuse a store that is not what its marks remember.

        A release that the store has charged and a mark does not know of was accepted after that
        mark, which it supersedes. So a mark's step counts among marks of as many releases.

        Args:
            marks: From :meth:`read`.
            store: The store's name.
            step: How many steps it has committed.
            spends: Every release that it has charged.

        Raises:
            StoreBehind: It is behind, was lost, was copied, or has measurements and no mark.
        """
        if step and not marks:
            raise StoreBehind(
                f"Expected the mark of {self._store_path} at {self.path}, got none, though "
                f"{step} steps are measured. It may be an old copy, and more may have been "
                f"published. Put the mark back (`mark:`). {_WAYS}"
            )
        charged = _ids(spends)
        for mark in sorted(marks, key=lambda mark: (len(mark.spends), mark.step), reverse=True):
            superseded = _ids(mark.spends) < charged
            if mark.store != store and not superseded:
                raise self._lost(mark, "another one" if step else "a new one")
            if mark.step > step and not superseded:
                raise StoreBehind(
                    f"Expected {mark.step} steps in {self._store_path}, as its mark {self.path} "
                    f"says, got {step}. Going on would publish other numbers for the same steps. "
                    f"{_WAYS}"
                )
            if not _ids(mark.spends) <= charged:
                raise StoreBehind(
                    f"Expected {len(mark.spends)} releases charged in {self._store_path}, as its "
                    f"mark {self.path} says, got {len(spends)} or others. It is an old copy, and "
                    f"a release would be forgotten. {_WAYS}"
                )
            if mark.step >= step and not superseded and self._is_copy(mark):
                ways = _WAYS if step else "It has published nothing."
                raise StoreBehind(
                    f"Expected one store, got two copies: {mark.path} and {self._store_path}. Both "
                    f"would publish. Go on with the first and delete this one. {ways}"
                )

    def refuse_lost(self) -> None:
        """Refuse to begin a store anew where its mark remembers one; for a place without a store.

        Raises:
            StoreBehind: Something was published from here.
        """
        mark = _read(self.path)
        if mark is not None and not _is_void(mark, ""):
            raise self._lost(mark, "none")

    def _lost(self, mark: Mark, got: str) -> StoreBehind:
        return StoreBehind(
            f"Expected at {self._store_path} the store that published {mark.step} steps, as its "
            f"mark {self.path} says, got {got}. Measuring these steps again is a second release. "
            f"{_WAYS}"
        )

    def write(self, mark: Mark) -> None:
        """Write the mark durably; its place is this file, its store lies here.

        Raises:
            StoreBehind: The file knows of more than the mark: another store is at work under it.
            WriteFailed: The disk does not take it.
        """
        before = _read(self.path)
        if before is not None and not _is_void(before, mark.store):
            known, charged = _ids(before.spends), _ids(mark.spends)
            if not known <= charged or (known == charged and before.step > mark.step):
                raise StoreBehind(
                    f"Expected {self.path} to be the mark of {self._store_path} alone, got one "
                    "that knows of more. Another store or copy publishes under it, and would be "
                    f"forgotten. Stop it, or name another file as `mark:`. {_WAYS}"
                )
        content = vars(replace(mark, path=str(self._store_path))) | {
            "format": _FORMAT,
            "spends": [vars(spend) for spend in mark.spends],
        }
        text = json.dumps(content, sort_keys=True, indent=1)
        put(self.path, f"{text}\n{_check(text)}\n".encode(), mode=0o600)

    def _is_copy(self, mark: Mark) -> bool:
        other = Path(mark.path)
        return other != self._store_path and other.exists()


def _ids(spends: Sequence[Spend]) -> set[str]:
    return {spend.id for spend in spends}


def _is_void(mark: Mark, store: str) -> bool:
    """Whether this is another store's mark that remembers no release of which a step was seen."""
    return mark.store != store and not mark.step and len(mark.spends) <= 1


def _marks_of(store: str, own: Path) -> Iterator[Mark]:
    """A store's marks beside its own; those of others, readable or not, do not concern it."""
    for path in sorted(own.parent.glob("*.mark")):
        if path == own:
            continue
        with suppress(StoreBehind):
            mark = _read(path)
            if mark is not None and mark.store == store:
                yield mark


def _read(path: Path) -> Mark | None:
    """Return the mark in a file; None if there is no file."""
    try:
        text, check = path.read_text().rstrip("\n").rsplit("\n", 1)
        content = json.loads(text)
        if check != _check(text) or content.pop("format") != _FORMAT:
            raise ValueError
        spends = tuple(Spend(**spend) for spend in content.pop("spends"))
        return Mark(spends=spends, **content)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        raise StoreBehind(
            f"Expected a mark at {path}, got something else. How far the store has published is "
            "not known, nor what was charged. Bring the mark back as it was. If it is lost, name "
            "another file as `mark:` and accept a second release (--accept-second-release): it is "
            "charged to the ledger in full, once more."
        ) from None


def _check(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
