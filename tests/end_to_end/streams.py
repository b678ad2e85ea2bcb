"""Neighbors of one stream as JSON lines, as Parquet and on standard input.

Each kind has a first stream and others that differ from it in one record, or in records that are
dropped. A stream of JSON lines is bytes, one of Parquet a frame, or bytes where polars writes none.
"""

import json
from datetime import UTC, datetime
from io import BytesIO

import polars as pl
from visits import rows_of_visits

ROWS = [row.split(",") for row in rows_of_visits(days=3)]
HOUR = b'"2025-01-07T10:00:00Z"'

LINES = [json.dumps({"time": time, "shop": shop}).encode() for time, shop in ROWS]


def lines(*more, first=LINES):
    return b"".join(line + b"\n" for line in [*first, *more])


JSON_LINES = {
    "one row less": lines(first=LINES[1:]),
    "one row more": lines(b'{"time":' + HOUR + b',"shop":"north"}'),
    "a name of its own": lines(b'{"time":' + HOUR + b',"shop":"Zo\\u00eb \\u202e\\u001b[31m"}'),
    "a number for a name": lines(b'{"time":' + HOUR + b',"shop":17}'),
    "a list for a name": lines(b'{"time":' + HOUR + b',"shop":["north"]}'),
    "no name": lines(b'{"time":' + HOUR + b"}"),
    "a field of its own": lines(b'{"time":' + HOUR + b',"shop":"north","card":"1234"}'),
    "no object": lines(b'["' + HOUR + b'"]', b"17", b"null"),
    "half a line": lines(first=LINES) + b'{"time":' + HOUR + b',"sh',
    "a last line without its end": lines(first=LINES[:-1]) + LINES[-1],
    "no time": lines(b'{"time":null,"shop":"north"}'),
    "only in 2099": lines(b'{"time":"2099-01-01T00:00:00Z","shop":"north"}'),
    "no UTF-8": lines(b'{"time":' + HOUR + b',"shop":"\xff\xfe"}'),
    "half a pair": lines(b'{"time":' + HOUR + b',"shop":"\\ud800"}'),
    "a field twice": lines(b'{"time":' + HOUR + b',"shop":"north","shop":"south"}'),
    "no number": lines(b'{"time":NaN,"shop":Infinity}'),
    "depth": lines(b"[" * 100_000),
    "a long line": lines(b'{"time":' + HOUR + b',"shop":"' + b"x" * 1_000_000 + b'"}'),
    "an empty line": lines(b""),
    "no rows": b"",
}
TIMES = [datetime.fromisoformat(time) for time, _ in ROWS]
TYPED = pl.DataFrame(
    {"time": TIMES, "shop": [shop for _, shop in ROWS]},
    schema_overrides={"time": pl.Datetime("us", "UTC")},
)


def typed(time, shop):
    """The first frame and one row more."""
    row = pl.DataFrame({"time": [time], "shop": [shop]}, schema=TYPED.schema)
    return pl.concat([TYPED, row])


def ticks(us):
    """The first frame and a row whose time no calendar has."""
    row = pl.DataFrame({"time": pl.Series([us]).cast(pl.Datetime("us", "UTC")), "shop": ["north"]})
    return pl.concat([TYPED, row])


def not_utf8():
    """The first frame and a row whose shop is text that is none: only other writers make it."""
    import pyarrow as pa
    from pyarrow import parquet

    texts = [*(shop.encode() for _, shop in ROWS), b"\xff\xfe"]
    shops = pa.Array.from_buffers(pa.string(), len(texts), pa.array(texts, pa.binary()).buffers())
    times = pa.array([*TIMES, TIMES[0]], pa.timestamp("us", "UTC"))
    file = BytesIO()
    parquet.write_table(pa.table({"time": times, "shop": shops}), file)
    return file.getvalue()


NOON = datetime(2025, 1, 7, 12, tzinfo=UTC)
PARQUET = {
    "one row less": TYPED[1:],
    "one row more": typed(NOON, "north"),
    "a name of its own": typed(NOON, "Zo\u00eb \u202e\x1b[31m"),
    "no name": typed(NOON, None),
    "no time": typed(None, "north"),
    "only in 2099": typed(datetime(2099, 1, 1, tzinfo=UTC), "north"),
    "at the end of all times": ticks((1 << 63) - 1),
    "at the beginning of all times": ticks(-(1 << 63)),
    "a long name": typed(NOON, "x" * 1_000_000),
    "another order": TYPED.sort("shop", "time"),
    "no rows": TYPED[:0],
}
# what a file may say in its schema is public; which of it a row says is not
CATEGORIES = pl.Enum(["north", "south", "east", "known to the file alone"])
LISTED = TYPED.with_columns(pl.col("shop").cast(CATEGORIES))
ENUM = {
    "one row less": LISTED[1:],
    "one row more": typed(NOON, "north").cast({"shop": CATEGORIES}),
    "outside what is declared": typed(NOON, "known to the file alone").cast({"shop": CATEGORIES}),
    "no name": typed(NOON, None).cast({"shop": CATEGORIES}),
    "no rows": LISTED[:0],
}

FIRST = {"jsonl": lines(), "stdin": lines(), "parquet": TYPED, "enum": LISTED}
FEW = ("one row less", "one row more", "no UTF-8", "half a line", "depth", "no rows")
NEIGHBOURS_OF = {
    "jsonl": JSON_LINES,
    "stdin": {name: JSON_LINES[name] for name in FEW},
    "parquet": PARQUET,
    "enum": ENUM,
}


def write_stream(folder, kind, stream, config):
    """Write a stream and its config into a folder; return it, and what goes to standard input."""
    folder.mkdir()
    name = {"jsonl": "visits.jsonl", "stdin": '"-"'}.get(kind, "visits.parquet")
    (folder / "visits.yaml").write_text(config.replace("visits.csv", name))
    if kind == "stdin":
        return folder, stream
    if isinstance(stream, pl.DataFrame):
        stream.write_parquet(folder / name)
    else:
        (folder / name).write_bytes(stream)
    return folder, None
