"""When steps begin and end, and how a row's time is read."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from tidegauge.planning import durations
from tidegauge.planning.document import Document
from tidegauge.planning.form import ConfigForm
from tidegauge.planning.parts import Clock, TimeColumn
from tidegauge.planning.sources import kind_of

__all__ = ["clock_of", "time_of"]

_WHY_NOT_RECORDS = {
    **dict.fromkeys(
        ("event_time", "timezone", "time_format", "start"),
        "Records are counted, whenever they happened.",
    ),
    "event": "Rows of one event would be several steps, and it has one.",
}


def clock_of(document: Document, read: ConfigForm) -> Clock | None:
    """Return the steps of a config; None: a problem is noted."""
    if read.step is None:
        return Clock(read.start or 0, None, read.end)
    if read.start is None:
        document.refuse(
            (),
            "Expected start, got nothing of it. The first step cannot be learned from the data "
            "without giving an event away. Write start: 2013-01-01T00:00:00Z.",
        )
        return None
    if read.end is None:
        return Clock(read.start, read.step, None)
    steps = Fraction(read.end - read.start, read.step)
    if steps <= 0:
        document.refuse(("end",), "Expected end after start, got one that is not. Correct it.")
    elif steps.denominator != 1:
        near = durations.instant_text(read.start + int(steps + 1) * read.step)
        document.refuse(
            ("end",),
            f"Expected a whole number of steps of {durations.written(read.step)} from start to "
            f"end, got {float(steps):.6g}. The last step would be cut. Write {near}.",
        )
    elif steps >= 1 << 38:
        document.refuse(("end",), "Expected fewer than 2^38 steps, got more. Use longer steps.")
    return Clock(read.start, read.step, int(steps))


def time_of(document: Document, read: ConfigForm) -> TimeColumn | None:
    """Return how a row's time is read; None: each row is a step, or a problem is noted."""
    if read.step is None:
        for name in ("event_time", "timezone", "time_format", "start", "event"):
            if name in read.model_fields_set:
                document.refuse(
                    (name,),
                    f"Expected no {name} with step: record, got one. {_WHY_NOT_RECORDS[name]} "
                    "Remove it.",
                    key=True,
                )
        return None
    if read.event_time is None:
        document.refuse(
            (),
            "Expected event_time, got nothing of it. A row's step is told by its own time. "
            "Write event_time: COLUMN.",
        )
        return None
    if read.timezone is not None and read.time_format != "iso":
        document.refuse(
            ("timezone",),
            "Expected no timezone with an epoch, got one. Seconds since 1970 are in UTC. "
            "Remove it.",
            key=True,
        )
    if read.timezone is None and read.time_format == "iso" and _is_text(read.sources):
        document.warn(
            ("event_time",),
            "Stamps without a zone are left out, for no timezone is declared. If they all end "
            "in Z or an offset this is right; else write timezone: UTC, or the zone they are "
            "of.",
        )
    return TimeColumn(read.event_time, read.timezone, read.time_format)


def _is_text(sources: Sequence[str]) -> bool:
    """Whether a source has its stamps as text; Parquet tells whether its times have zones."""
    return any(source == "-" or kind_of(source) != "parquet" for source in sources)
