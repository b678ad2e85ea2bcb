"""Settings: paths and sinks, everything that cannot affect a release's distribution."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from tidegauge.planning.places import Place, matches, place_of

__all__ = ["Conflict", "Settings", "Sink", "default_folder", "default_mark"]

_KINDS = ("parquet", "jsonl", "csv")
_BESIDE = ("-wal", "-shm", "-journal")  # what SQLite keeps beside a store
_RELEASES = Path("releases", "gauge", "view", "000000000001.parquet")  # shape of what is published


def default_folder() -> Path:
    """Where marks lie if the config does not say: the user's state directory."""
    from platformdirs import user_state_path

    return user_state_path("tidegauge", appauthor=False) / "marks"


def default_mark(store: Path) -> Path:
    """Return the mark of a store if the config names none."""
    name = hashlib.sha256(bytes(store.resolve())).hexdigest()[:32]
    return default_folder() / f"{name}.mark"


@dataclass(frozen=True)
class Conflict:
    """Two places that must not be one.

    Attributes:
        field: Which field to correct.
        message: What is wrong.
    """

    field: tuple[str | int, ...]
    message: str


@dataclass(frozen=True)
class Sink:
    """One copy of releases.

    Attributes:
        kind: ``parquet``, ``jsonl`` or ``csv``.
        path: Relative to the config.
        views: Names of views; None: all.
    """

    kind: str
    path: str
    views: tuple[str, ...] | None


@dataclass(frozen=True)
class Settings:
    """Where events come from, where state lives, what may leave.

    Attributes:
        base: The folder that relative paths start from: that of the config.
        sources: Files, globs, or ``-`` for standard input.
        store: Private state.
        public: Folder of what may leave.
        mark: High-water mark; None: in the user's state directory.
        sinks: Copies of releases.
    """

    base: str
    sources: tuple[str, ...]
    store: str
    public: str
    mark: str | None
    sinks: tuple[Sink, ...]

    def path(self, text: str) -> Path:
        """Return a path of these settings as the process can open it."""
        return Path(self.base) / text

    def missing(self) -> list[str]:
        """Return the sources that no file is there for; names are looked for, no file is opened."""
        return [
            source
            for source in self.sources
            if source != "-" and not any(place.file for place in matches(self.path(source)))
        ]

    def check(self, *files: Path) -> list[Conflict]:
        """Return which places would overwrite one another or let private state out.

        Store (with what SQLite keeps beside it), mark, sinks, sources and ``files`` must all
        differ, and all but the last must lie outside the public folder. Links are followed; names
        in folders are listed, no file is opened.

        Args:
            files: The config, and what else must not be overwritten.
        """
        store = self.path(self.store)
        mark = default_mark(store) if self.mark is None else self.path(self.mark)
        named = [
            ((), "the config", [place_of(file) for file in files]),
            *self._sources(),
            (("store",), "the store", [place_of(store), *map(place_of, _beside(store))]),
            (("mark",), "the mark", [place_of(mark)]),
            *(
                (("sinks", i), "a sink", [place_of(self.path(sink.path))])
                for i, sink in enumerate(self.sinks)
                if sink.path != "-"
            ),
        ]
        return [
            *self._folders(store, mark),
            *_clashes(named),
            *self._globs(),
            *self._open(named),
            *self._streams(),
        ]

    def _sources(self) -> list[_Named]:
        return [
            (("sources", i), "a source", matches(self.path(source)))
            for i, source in enumerate(self.sources)
            if source != "-"
        ]

    def _folders(self, store: Path, mark: Path) -> list[Conflict]:
        """What has to be a file and is a folder."""
        files: list[tuple[tuple[str | int, ...], str, Path]] = [
            (("store",), "the store", store),
            (("mark",), "the mark", mark),
        ]
        files += [
            (("sinks", i), "a sink", self.path(sink.path))
            for i, sink in enumerate(self.sinks)
            if sink.path != "-"
        ]
        return [
            Conflict(
                field,
                f"Expected {what} to be a file, or nothing yet, got the folder {path}. It could "
                "not be written. Name a file in it.",
            )
            for field, what, path in files
            if path.is_dir()
        ]

    def _globs(self) -> list[Conflict]:
        """Sinks that a glob of the sources would read in the next run."""
        return [
            Conflict(
                ("sinks", i),
                f"Expected a sink that no source matches, got one that {source} does. The next run "
                "would count releases as events. Write it elsewhere.",
            )
            for i, sink in enumerate(self.sinks)
            for source in self.sources
            if "-" not in (sink.path, source)
            and place_of(self.path(sink.path)).matched_by(self.path(source))
            and not any(place_of(self.path(sink.path)).same(p) for p in matches(self.path(source)))
        ]

    def _streams(self) -> list[Conflict]:
        """Sinks on standard output after the first."""
        return [
            Conflict(
                ("sinks", i),
                "Expected one sink on standard output, got another. Its rows would stand among "
                "those of the first. Name all views in one, or write to a file.",
            )
            for i, sink in enumerate(self.sinks)
            if sink.path == "-" and any(before.path == "-" for before in self.sinks[:i])
        ]

    def _open(self, named: list[_Named]) -> list[Conflict]:
        """What lies in the public folder, or, a source's glob, reaches into it."""
        public = self.path(self.public)
        release = place_of(public / _RELEASES)
        found = []
        for field, what, places in named:
            reaches = what == "a source" and release.matched_by(
                self.path(self.sources[int(field[1])])
            )
            if field and (reaches or any(place.inside(public) for place in places)):
                found.append(
                    Conflict(
                        field,
                        f"Expected {what} outside the public folder, got one inside. What lies "
                        "there may leave. Choose another place.",
                    )
                )
        return found


_Named = tuple[tuple[str | int, ...], str, list[Place]]


def _beside(store: Path) -> list[Path]:
    """The files of SQLite, beside the file that a link leads to."""
    real = Path(os.path.realpath(store))
    return [real.with_name(real.name + end) for end in _BESIDE]


def _clashes(named: list[_Named]) -> list[Conflict]:
    """Each thing that is, or would be written over, one before it."""
    found = []
    for i, (field, what, places) in enumerate(named):
        for _, other, others in named[:i]:
            both_read = what == other == "a source"
            if not both_read and any(a.same(b) for a in places for b in others):
                found.append(
                    Conflict(
                        field,
                        f"Expected {what} in a file of its own, got that of {other}. One would be "
                        "written over the other. Name another file.",
                    )
                )
    return found
