"""Settings: paths and sinks, everything that cannot affect a release's distribution."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidegauge.mechanisms.stored import Reader

__all__ = ["Settings", "Sink"]


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
        base: The folder that relative paths start from: that of the config or plan file.
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

    def data(self, base: str | Path | None = None) -> dict[str, Any]:
        """Return the ``settings`` of a plan file that lies in the folder ``base``."""

        def moved(text: str) -> str:
            if base is None or text == "-" or Path(text).is_absolute():
                return text
            path = os.path.relpath(self.path(text), base)
            return path + "/" * text.endswith("/")

        return {
            "sources": [moved(source) for source in self.sources],
            "store": moved(self.store),
            "public": moved(self.public),
            "mark": None if self.mark is None else moved(self.mark),
            "sinks": [
                {
                    "kind": sink.kind,
                    "path": moved(sink.path),
                    "views": None if sink.views is None else list(sink.views),
                }
                for sink in self.sinks
            ],
        }

    @staticmethod
    def of(data: Any, base: str | Path) -> Settings:
        """Return the settings that :meth:`data` wrote into a plan file in the folder ``base``.

        Raises:
            InvalidParameter: They are not of that form.
        """
        reader = Reader(data, "settings")
        settings = Settings(
            base=str(base),
            sources=tuple(str(source) for source in reader.items("sources")),
            store=reader.text("store"),
            public=reader.text("public"),
            mark=reader.optional_text("mark"),
            sinks=tuple(_sink(Reader(item, "a sink")) for item in reader.items("sinks")),
        )
        reader.done()
        return settings


def _sink(reader: Reader) -> Sink:
    kind, path, views = reader.text("kind"), reader.text("path"), reader.take("views")
    reader.done()
    return Sink(kind, path, None if views is None else tuple(str(view) for view in views))
