"""Sinks: copies of releases for others. Standard output gets them as they are published."""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from tidegauge.engine.files import folder, put_by, safe_name, sweep
from tidegauge.engine.releases import TOTALS
from tidegauge.planning.plan import Plan

if TYPE_CHECKING:
    import polars as pl

    from tidegauge.planning.settings import Settings

__all__ = ["Sinks", "as_text"]

_STDOUT = "-"
_NUMBER = re.compile(r"os error ([0-9]{1,4})")  # how Rust tells what the system said


@final
class Sinks:
    """The sinks of a run.

    Rows on standard output come at least once: those of a block whose publication was interrupted
    come again, byte for byte, in the next run. A file is made anew from the public folder at the
    end of a run and put whole.

    Args:
        settings: Which sinks, and where.
    """

    def __init__(self, settings: Settings) -> None:
        self._streamed = [sink for sink in settings.sinks if sink.path == _STDOUT]
        self._files = [
            (settings.path(sink.path), sink) for sink in settings.sinks if sink.path != _STDOUT
        ]

    def emit(self, table: pl.DataFrame) -> None:
        """Write a new table of releases to standard output, if a sink asks for it."""
        for sink in self._streamed:
            if len(table) and _wanted(sink.views, table["view"][0]):
                text = as_text(table).write_ndjson()  # a closed pipe is not for polars to tell
                sys.stdout.buffer.write(text.encode())
                sys.stdout.buffer.flush()

    def finish(self, public: Path, plan: Plan) -> None:
        """Make every file anew from the public folder, in the memory of one block.

        Raises:
            WriteFailed: The disk does not take it.
        """
        for path, sink in self._files:
            sweep(folder(path.parent), path.name)
            frame = _all_releases(public, plan, sink.views)
            if frame is not None:
                put_by(path, partial(_write, frame, sink.kind))


def as_text(table: Any) -> Any:
    """Return a frame with its times as ISO 8601 in UTC and its names as text."""
    import polars as pl
    import polars.selectors as cs

    return table.with_columns(
        cs.datetime().dt.strftime("%Y-%m-%dT%H:%M:%S%.fZ"), cs.enum().cast(pl.String)
    )


def _all_releases(public: Path, plan: Plan, views: Sequence[str] | None) -> pl.LazyFrame | None:
    """All releases of the wanted views, gauge by gauge; columns that a gauge lacks are null."""
    import polars as pl
    import polars.selectors as cs

    frames = []
    for gauge in plan.gauges:
        for view, _ in gauge.views:
            own = public / "releases" / safe_name(gauge.name) / safe_name(view)
            for files in (own, own / TOTALS) if gauge.totals else (own,):
                if _wanted(views, view) and any(files.glob("*.parquet")):
                    frame = pl.scan_parquet(files / "*.parquet")
                    frames.append(frame.with_columns(cs.enum().cast(pl.String)))
    return pl.concat(frames, how="diagonal") if frames else None


def _wanted(views: Sequence[str] | None, view: str) -> bool:
    return views is None or view in views


def _write(frame: pl.LazyFrame, form: str, path: Path) -> None:
    """Write one format, block by block; what polars says of a full disk is an ``OSError`` again."""
    import polars as pl

    try:
        match form:
            case "parquet":
                frame.sink_parquet(path, compression="snappy", maintain_order=True)
            case "csv":
                as_text(frame).sink_csv(path, maintain_order=True)
            case _:
                as_text(frame).sink_ndjson(path, maintain_order=True)
    except pl.exceptions.SchemaError:
        raise  # nothing that a disk could say
    except (OSError, pl.exceptions.PolarsError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        told = _NUMBER.search(str(error))
        number = errno.EIO if told is None else int(told[1])
        raise OSError(number, os.strerror(number)) from error
