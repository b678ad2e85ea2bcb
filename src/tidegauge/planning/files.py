"""The files of a config: sources, store, mark, and copies of releases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tidegauge.checks import shown
from tidegauge.planning.document import Document
from tidegauge.planning.form import ConfigForm, SinkForm
from tidegauge.planning.problems import did_you_mean
from tidegauge.planning.settings import Settings, Sink
from tidegauge.planning.sources import kind_of, unknown_kind

__all__ = ["settings_of"]

_PLACES = frozenset({"sources", "store", "public", "mark", "sinks"})


def settings_of(
    document: Document, read: ConfigForm, wrong: frozenset[str], names: set[str]
) -> Settings:
    """Return where everything is; problems are noted.

    Args:
        document: Where problems are noted.
        read: The config.
        wrong: Fields that were refused already.
        names: Of all views; empty: some are not known, so that none can be refused.
    """
    if not read.sources:
        document.refuse(("sources",), "Expected at least one source, got none. Name a file.")
    for i, source in enumerate(read.sources):
        path = ("sources", i) if isinstance(document.root.get("sources"), list) else ("sources",)
        if source == "-" and len(read.sources) > 1:
            document.refuse(path, "Expected standard input alone, got it beside others. Split.")
        elif source != "-" and kind_of(source) is None:
            document.refuse(path, unknown_kind(source))
    store = read.store or f"{Path(document.file).stem}.tidegauge"
    sinks = tuple(
        sink for i, given in enumerate(read.sinks) for sink in _sink_of(document, i, given, names)
    )
    settings = Settings(
        base=str(Path(document.file).parent),
        sources=tuple(read.sources),
        store=store,
        public=read.public,
        mark=read.mark,
        sinks=sinks,
    )
    if not wrong & _PLACES and len(sinks) == len(read.sinks):
        for conflict in settings.check(Path(document.file)):
            told = conflict.field if conflict.field[0] in document.root else ("public",)
            document.refuse(told, conflict.message)
    return settings


def _sink_of(document: Document, i: int, given: SinkForm, names: set[str]) -> Iterator[Sink]:
    files = [(kind, getattr(given, kind)) for kind in ("parquet", "jsonl", "csv")]
    chosen = [(kind, file) for kind, file in files if file is not None]
    if len(chosen) != 1:
        document.refuse(
            ("sinks", i),
            f"Expected one of parquet, jsonl and csv, got {len(chosen)}. Each sink is one "
            "file. Write {parquet: {path: releases.parquet}}.",
        )
        return
    kind, file = chosen[0]
    for k, view in enumerate(file.views or ()):
        if names and view not in names:
            document.refuse(
                ("sinks", i, kind, "views", k),
                f"Expected the name of a view, got {shown(view)}. "
                f"{did_you_mean(view, sorted(names))}".replace("fields here", "views"),
            )
    yield Sink(kind, file.path, None if file.views is None else tuple(file.views))
