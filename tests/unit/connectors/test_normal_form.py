"""Parquet: one bad text in a column changes nothing about any other column, whatever its type."""

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import polars as pl
import pytest
from plans import START, gauge, plan

from tidegauge.connectors import normal, parquet
from tidegauge.connectors.files import Files
from tidegauge.engine.totals import totals
from tidegauge.errors import SourceUnavailable

INTEGERS = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64)
TIMES = [datetime(2013, 1, 1, 1, tzinfo=UTC), None, datetime(1969, 1, 1, 0, 0, 0, 1, tzinfo=UTC)]
LOCAL = [None if t is None else t.replace(tzinfo=None) for t in TIMES]
KEPT = {
    **{str(kind): pl.Series([1, None, 2], dtype=kind) for kind in INTEGERS},
    "Float32": pl.Series([1.5, None, 2.0], dtype=pl.Float32),
    "Float64": pl.Series([0.1, None, float("nan")], dtype=pl.Float64),
    "Boolean": pl.Series([True, None, False]),
    "Date": pl.Series([date(2013, 1, 1), None, date(1969, 1, 1)]),
    "String": pl.Series(["1", None, "\u00e9"]),
    "Binary": pl.Series([b"1", None, "\u00e9".encode()]),
    "Categorical": pl.Series(["1", None, "b"], dtype=pl.Categorical),
    "Enum": pl.Series(["1", None, "b"], dtype=pl.Enum(["b", "1"])),
    "Null": pl.Series([None, None, None], dtype=pl.Null),
    **{f"local {u}": pl.Series(LOCAL, dtype=pl.Datetime(u)) for u in ("ms", "us", "ns")},
    **{
        f"{zone} {u}": pl.Series(TIMES).dt.convert_time_zone(zone).dt.cast_time_unit(u)
        for u in ("ms", "us", "ns")
        for zone in ("UTC", "Europe/Berlin")
    },
}
REFUSED = {
    "Time": pl.Series([time(1), None, time(2)]),
    "Duration": pl.Series([timedelta(1), None, timedelta(2)]),
    "Int128": pl.Series([1, None, 2], dtype=pl.Int128),
    "UInt128": pl.Series([1, None, 2], dtype=pl.UInt128),
    "Float16": pl.Series([1, None, 2], dtype=pl.Float16),
    "Decimal": pl.Series([Decimal("1.5"), None, Decimal(2)]),
    "List": pl.Series([[1], None, [2]]),
    "Array": pl.Series([[1], None, [2]], dtype=pl.Array(pl.Int64, 1)),
    "Struct": pl.Series([{"x": 1}, None, {"x": 2}]),
}


def both_ways(folder, column):
    """A file with this column, and the same file with one text that is no UTF-8 beside it."""
    frame = pl.DataFrame({"c": column, "w": ["good", "QQQQ", "good"]})
    frame = frame.with_columns(time=pl.lit("2013-01-01T00:00:00Z"))
    frame.write_parquet(folder / "whole.parquet", compression="uncompressed")
    data = (folder / "whole.parquet").read_bytes()
    assert b"QQQQ" in data
    (folder / "spoilt.parquet").write_bytes(data.replace(b"QQQQ", b"\xffQQQ"))
    return [Files([f"{name}.parquet"], folder=folder) for name in ("whole", "spoilt")]


def seen(source, reading, gauge):
    """What a plan counts, or that its types are refused."""
    try:
        return totals(reading, source, 0, 4).arrays[gauge.name].tolist()
    except SourceUnavailable as error:
        return str(error).split(" of ")[0]


def compare(folder, column):
    """Types, rows and totals of both files agree, and the types are those that were told."""
    whole, spoilt = both_ways(folder, column)
    names = ("c", "w")
    (one,), (other,) = whole.batches(names), spoilt.batches(names)
    assert ["good", None, "good"] == other["w"].to_list()
    told = [dict(source.types(names)[0][1]) for source in (whole, spoilt)]
    assert told[0] == told[1] == dict(one.schema) == dict(other.schema)
    assert one["c"].equals(other["c"], null_equal=True)
    judged = gauge("judged", where='"w" IS NULL OR "w" IS NOT NULL')
    shapes = [
        gauge("known", where='("w" <> \'x\' OR "w" IS NULL) AND "c" IS NOT NULL'),
        gauge("text", where='("w" <> \'x\' OR "w" IS NULL) AND "c" < \'2012\''),
        gauge("cells", by=(("c", ("1", "b", "true")), ("w", ("good",))), other="other"),
        gauge("sums", kind="sum", column="c", low=-9, high=9, where=judged.where),
    ]
    for shape in shapes:
        found = [seen(source, plan(shape), shape) for source in (whole, spoilt)]
        assert found[0] == found[1] or shape.name == "cells"
        if shape.name == "cells" and not isinstance(found[0], str):
            (a,), (b,) = ([row for row in f if any(row)] for f in found)
            assert sum(a) == sum(b) == 3
            assert a[0::2] == b[0::2]  # the rows with a good text
    for form, zone in (("iso", None), ("iso", "Europe/Berlin"), ("epoch_s", None)):
        reading = plan(judged, time="c", form=form, timezone=zone)
        assert seen(whole, reading, judged) == seen(spoilt, reading, judged)


@pytest.mark.parametrize("kind", KEPT)
def test_a_bad_text_changes_how_no_other_column_is_read(tmp_path, kind):
    compare(tmp_path, KEPT[kind])


@pytest.mark.parametrize("kind", REFUSED)
def test_types_without_one_form_are_refused_before_any_row(tmp_path, kind):
    for source in both_ways(tmp_path, REFUSED[kind]):
        for ask in (source.types, lambda names, s=source: next(iter(s.batches(names)))):
            with pytest.raises(SourceUnavailable, match=f"'c' of .*got type {kind}"):
                ask(("c", "w"))
        assert 1 == len(source.types(("w",)))


@pytest.mark.parametrize("kind", ["Categorical", "Enum", "Binary", "Null", "Europe/Berlin ns"])
def test_reading_types_as_they_come_is_caught(tmp_path, monkeypatch, kind):
    compare(tmp_path, KEPT[kind])

    def as_it_comes(column, _):
        return normal._text(column) if column.dtype == pl.Binary and kind != "Binary" else column

    monkeypatch.setattr(parquet, "normalized", as_it_comes)
    with pytest.raises(AssertionError):
        compare(tmp_path, KEPT[kind])


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_date_times_that_fit_no_microseconds_are_null_and_nanoseconds_are_cut_off(unit):
    ticks = pl.Series([-1, 0, (1 << 63) - 1, None]).cast(pl.Datetime(unit))
    got = normal.normalized(ticks, ticks.dtype).to_physical().to_list()
    most = (1 << 63) - 1
    expected = {"ms": [-1000, 0, None, None], "us": [-1, 0, most, None]}
    assert expected.get(unit, [-1, 0, most // 1000, None]) == got
    assert START == pl.Series([datetime(2013, 1, 1)]).to_physical().item()
