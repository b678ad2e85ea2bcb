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


DAY = 86_400_000_000
FIRST, LAST = -719_162 * DAY, 2_932_897 * DAY - 1  # years 1 to 9999, in microseconds


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_other_years_than_1_to_9999_are_null_and_nanoseconds_are_cut_off(unit):
    most = (1 << 63) - 1
    size = {"ms": 1000, "us": 1}.get(unit)
    values = [-1, 0, most, None, -most]
    expected = [-1, 0, most // 1000, None, -most // 1000]
    if size is not None:
        values += [FIRST // size, FIRST // size - 1, LAST // size, LAST // size + 1]
        expected = [-size, 0, None, None, None, FIRST, None, LAST // size * size, None]
    ticks = pl.Series(values).cast(pl.Datetime(unit))
    got = normal.normalized(ticks, ticks.dtype)
    assert expected == got.to_physical().to_list()
    assert [None if v is None else True for v in expected] == got.cast(pl.String).str.contains(
        "^[0-9]{4}-"
    ).to_list()
    assert START == pl.Series([datetime(2013, 1, 1)]).to_physical().item()


def test_dates_of_other_years_than_1_to_9999_are_null():
    days = [-719_163, -719_162, 0, None, 2_932_896, 2_932_897, (1 << 31) - 1, -(1 << 31)]
    column = pl.Series(days, dtype=pl.Int32).cast(pl.Date)
    got = normal.normalized(column, column.dtype)
    assert [None, "0001-01-01", "1970-01-01", None, "9999-12-31", None, None, None] == got.cast(
        pl.String
    ).to_list()


@pytest.mark.parametrize("far", [(1 << 63) - 1, 1 - (1 << 63)])
def test_a_time_that_polars_cannot_write_is_judged_in_silence(tmp_path, capfd, far):
    """polars panics at such a text and prints that it does: a row would show on the terminal."""
    times = pl.Series([START, far, START + 1]).cast(pl.Datetime("us", "UTC"))
    frame = pl.DataFrame({"c": times, "time": ["2013-01-01T00:00:00Z"] * 3})
    frame.write_parquet(tmp_path / "a.parquet")
    reading = plan(gauge("late", where="(\"c\" > '2012')"))
    got = totals(reading, Files(["a.parquet"], folder=tmp_path), 0, 4)
    assert 2 == got.arrays["late"].sum()
    assert ("", "") == tuple(capfd.readouterr())


@pytest.mark.parametrize("column", ["v", "c"])
@pytest.mark.parametrize("descending", [False, True])
def test_a_claim_that_rows_are_sorted_is_not_believed(tmp_path, column, descending):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet as writer

    rows = {"v": [5, 1, None, 4, 2, 3, 9, 0], "time": ["2013-01-01T00:00:00Z"] * 8}
    table = pa.table({**rows, "c": pa.array(rows["v"], pa.timestamp("us"))})
    claims = [writer.SortingColumn(table.column_names.index(column), descending)]
    writer.write_table(table, tmp_path / "a.parquet", sorting_columns=claims)
    assert any(pl.read_parquet(tmp_path / "a.parquet")["v"].flags.values()) or column == "c"
    (frame,) = Files(["a.parquet"], folder=tmp_path).batches(("c", "v"))
    assert rows["v"] == frame["v"].to_list() == frame["c"].to_physical().to_list()
    assert not any(any(series.flags.values()) for series in frame)


def offsets(folder, zone, **more):
    """A file whose stamps have this zone, as Arrow writes it."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet as writer

    times = pa.array([START, None, START + 3_600_000_000], pa.timestamp("us", zone))
    writer.write_table(pa.table({"c": times, **more}), folder / "a.parquet")
    return Files(["a.parquet"], folder=folder)


@pytest.mark.parametrize("zone", ["+05:30", "-11:00", "+00:00", "Asia/Kolkata"])
def test_stamps_with_a_fixed_offset_are_read_in_utc(tmp_path, capfd, zone):
    source = offsets(tmp_path, zone, w=["a", "b", "c"], d=[timedelta(1)] * 3)
    assert {"c": pl.Datetime("us", "UTC"), "w": pl.String()} == source.types(("c", "w"))[0][1]
    (frame,) = source.batches(("w", "c"))
    assert [START, None, START + 3_600_000_000] == frame["c"].to_physical().to_list()
    assert ["a", "b", "c"] == frame["w"].to_list()
    got = totals(plan(gauge("all"), time="c"), source, 0, 4)
    assert [1, 1, 0, 0] == got.arrays["all"].ravel().tolist()
    with pytest.raises(SourceUnavailable, match="got type Duration"):
        source.types(("d",))
    assert ("", "") == tuple(capfd.readouterr())


def test_a_zone_that_is_none_is_told_from_a_damaged_file(tmp_path):
    for source in (
        offsets(tmp_path, "Nowhere/X"),
        offsets(tmp_path, "+05:30", **{"+05:30": [1] * 3}),
    ):
        with pytest.raises(SourceUnavailable, match="Write times in UTC"):
            source.types(("c",))
