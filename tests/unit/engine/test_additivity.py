"""Totals of a file are the sum of the totals of its records, each in a file of its own."""

import gzip
import io
import json
import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plans import gauge, plan
from test_totals import KEY

from tidegauge.connectors import jsonl, lines
from tidegauge.connectors.files import Files
from tidegauge.engine.totals import totals
from tidegauge.planning.plan import IdUnit
from tidegauge.planning.where import checked

COLUMNS = ("carrier", "time", "v", "b")
MARK = "\ufeff"
BEGINNINGS = ["", MARK, "x^", "x\x01", "x\x9c", "\x1f", '"', "#", " ", "\r", "\x00", "UA"]
TEXTS = [
    "UA", "B6", "", "\u00e9", "e\u0301", MARK + "UA", MARK, "U,A", 'U"A', '"', "x^", "x\x01",
    "null", "true", "1", "1.0", "\r", "UA\r", "#", "U\nA", "\u2028", "\ufffd", "a" * 300,
]  # fmt: skip
TIMES = [
    "2013-01-01T00:00:00Z", "2013-01-01T01:59:59.999999999+01:00", "2013-01-01", "soon", "",
    "2013-01-01T05:59:60Z", "9999-12-31T23:59:60-23:59", MARK + "2013-01-01T02:00:00Z",
    "1357005600", " 2013-01-01T02:00:00Z\t",
]  # fmt: skip
NUMBERS = [
    "1", "-3", "0.125", "0.005", "1e9", "-1e400", "NaN", "inf", "ten", "", " 2 ", "+5", "5.",
    "9" * 65, "1e999999", MARK + "1",
]  # fmt: skip
TEXT_ROW = st.tuples(
    st.builds(str.__add__, st.sampled_from(BEGINNINGS), st.sampled_from(TEXTS)),
    st.sampled_from(TIMES) | st.just("2013-01-01T02:00:00Z"),
    st.sampled_from(NUMBERS),
    st.sampled_from(["true", "FALSE", "x", ""]),
)
RECORDS = st.sampled_from(
    [b"\xff", b"\xef\xbb\xbf", b"", b"\r", b'"', b"x^", b'UA,"', b"{", b"[1]", b"{}", b"UA,,,,"]
)  # fmt: skip
WHERES = [
    "v > 0", "carrier LIKE 'U%'", "v IN (1, 2, -3, NULL) OR b", "COALESCE(carrier, 'x') <> 'UA'",
    "LENGTH(carrier) BETWEEN 1 AND 3", "\"time\" > '2013'", "1 / v > 0 OR b = (v > 0)",
    "TRIM(carrier) = 'UA' OR v IS NULL",
]  # fmt: skip
GAUGES = (
    gauge("all"),
    gauge("known", by=(("carrier", ("UA", "\u00e9", "1", "x^", MARK)),), other="other"),
    gauge("crossed", by=(("carrier", ("UA", "B6")), ("b", ("true", "FALSE")))),
    gauge("sums", kind="sum", column="v", low=-200, high=500, round_to=Fraction(1, 100)),
    gauge("whole", kind="sum", column="v", low=200, high=300),
    *(gauge(f"where {n}", where=checked(where)) for n, where in enumerate(WHERES)),
)
STEPS = 6
PLAN = plan(*GAUGES, end=STEPS, timezone="Europe/Berlin")


def csv_record(row, multiline):
    fields = [
        '"' + field.replace('"', '""') + '"' if set(',"\n') & set(field) else field
        for field in (field if multiline else field.replace("\n", " ") for field in row)
    ]
    return ",".join(fields).encode()


def json_record(row):
    values = (float(v) if v in ("1", "-3", "0.125") else v for v in row)
    return json.dumps(dict(zip(COLUMNS, values, strict=True)), ensure_ascii="x" in row[0]).encode()


def source_of(kind, records, folder):
    """A source of records, of bytes or (Parquet) a frame."""
    if kind == "parquet":
        records.write_parquet(folder / "a.parquet", row_group_size=3, compression="uncompressed")
        return Files(["a.parquet"], folder=folder)
    data = b"".join(record + b"\n" for record in records)
    if kind == "-":
        return Files(["-"], stdin=io.BytesIO(data))
    if "csv" in kind:
        data = ",".join(COLUMNS).encode() + b"\n" + data
    if kind.endswith(".gz"):
        data = gzip.compress(data, 1)
    if kind.endswith(".zst"):
        data = pytest.importorskip("pyarrow").compress(data, "zstd", asbytes=True)
    name = kind.removeprefix("multiline ")
    (folder / f"a.{name}").write_bytes(data)
    return Files([f"a.{name}"], folder=folder, multiline=name != kind)


def arrays(kind, records):
    with tempfile.TemporaryDirectory() as name:
        return totals(PLAN, source_of(kind, records, Path(name)), 0, STEPS).arrays


def adds_up(kind, records):
    """The whole is the sum of its parts, in any order of them."""
    if kind == "parquet":
        alone = [arrays(kind, records[at : at + 1]) for at in range(records.height)]
    else:
        once = {record: arrays(kind, [record]) for record in set(records)}
        alone = [once[record] for record in records]
    for whole in (records, records[::-1]):
        for name, array in arrays(kind, whole).items():
            assert array.tolist() == sum(part[name] for part in alone).tolist(), name


KINDS = ["csv", "csv.gz", "csv.zst", "multiline csv", "jsonl", "jsonl.gz", "jsonl.zst", "-"]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=10, deadline=None)
@given(st.lists(TEXT_ROW, min_size=2, max_size=7), st.lists(RECORDS, max_size=2), st.randoms())
def test_totals_of_text_are_the_sum_over_records(kind, rows, others, random):
    if "csv" in kind:
        records = [csv_record(row, "multiline" in kind) for row in rows]
    else:
        records = [random.choice([b"", b"\xef\xbb\xbf"]) + json_record(row) for row in rows]
    if kind == "multiline csv":  # the promise assumes that quotes are balanced
        others = [record for record in others if b'"' not in record]
    records += others
    random.shuffle(records)
    adds_up(kind, records)


@pytest.mark.parametrize("kind", ["jsonl", "-"])
@settings(max_examples=6, deadline=None)
@given(TEXT_ROW, st.lists(TEXT_ROW, max_size=4))
def test_totals_of_records_read_together_are_the_sum_over_records(kind, often, rows):
    records = [json_record(often)] * 16 + [json_record(row) for row in rows]
    adds_up(kind, records)


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "jsonl", "-"])
@settings(max_examples=8, deadline=None)
@given(rows=st.lists(TEXT_ROW, min_size=2, max_size=6), size=st.sampled_from([1, 3, 64]))
def test_totals_of_small_blocks_are_the_sum_over_records(kind, rows, size):
    records = [csv_record(row, False) if "csv" in kind else json_record(row) for row in rows]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "_SIZE", size)
        adds_up(kind, records)


TYPES = {
    "carrier": [pl.String, pl.Binary, pl.Categorical, pl.Int8, pl.UInt64, pl.Boolean, pl.Null],
    "time": [
        pl.String, pl.Datetime("us"), pl.Datetime("ms", "UTC"), pl.Datetime("ns", "Europe/Berlin"),
        pl.Date,
    ],
    "v": [pl.String, pl.Int8, pl.UInt8, pl.Int64, pl.UInt64, pl.Float32, pl.Float64, pl.Null],
    "b": [pl.Boolean, pl.String, pl.Int8],
}  # fmt: skip
MOST = (1 << 63) - 1
HOUR_US = 1_357_005_600 * 10**6


def values_of(kind, column):
    """Values of a column of one type, hostile ones among them."""
    texts = {"carrier": TEXTS, "time": TIMES, "v": NUMBERS, "b": ["true", "FALSE", "x"]}[column]
    if kind in (pl.String, pl.Categorical):
        return st.sampled_from(texts)
    if kind == pl.Binary:
        return st.sampled_from([*(text.encode() for text in texts), b"\xff", b"UA\xc3"])
    if kind == pl.Boolean:
        return st.booleans()
    if kind == pl.Null:
        return st.none()
    if kind.is_float():
        return st.sampled_from([0.1 + 0.2, float("nan"), float("inf"), -1e300, 1.0, 0.005, -0.0])
    if kind == pl.Date:
        return st.sampled_from([15705, 15706, 0, -719_163, (1 << 31) - 1, -(1 << 31)])
    if isinstance(kind, pl.Datetime):
        unit = {"ms": 1000, "us": 1, "ns": 0}[kind.time_unit]
        here = HOUR_US // unit if unit else HOUR_US * 1000
        return st.sampled_from([here, here - 1, 0, -1, 1 << 62, MOST, -MOST])
    least, most = pl.select(least=kind.min(), most=kind.max()).row(0)
    return st.sampled_from([least, most, 0, 1, 2, 100, max(least, -3)])


@st.composite
def frames(draw):
    kinds = {name: draw(st.sampled_from(kinds)) for name, kinds in TYPES.items()}
    count = draw(st.integers(2, 6))
    columns = []
    for name, kind in kinds.items():
        kind = kind() if isinstance(kind, type) else kind
        values = st.lists(st.none() | values_of(kind, name), min_size=count, max_size=count)
        dtype = pl.Int64 if isinstance(kind, pl.Datetime) else kind
        dtype = pl.Int32 if kind == pl.Date else dtype
        columns.append(pl.Series(name, draw(values), dtype=dtype).cast(kind))
    return pl.DataFrame(columns)


@settings(max_examples=30, deadline=None)
@given(frames())
def test_totals_of_parquet_are_the_sum_over_rows(frame):
    adds_up("parquet", frame)


def test_what_breaks_a_row_apart_from_its_file_is_caught(monkeypatch):
    """A parser that takes the first record for more, and a mark that belongs to the file."""
    north = ["UA", "2013-01-01T02:00:00Z", "1", "true"]
    marked = [MARK + "UA", *north[1:]]
    records = [csv_record(row, False) for row in (north, marked)]
    objects = [b"\xef\xbb\xbf" + json_record(north), json_record(north)]
    adds_up("csv", records)
    adds_up("-", objects[::-1])
    read_csv = pl.read_csv

    def headless(data, **options):
        return read_csv(data[data.index(b"\n") + 1 :], has_header=False, **options)

    monkeypatch.setattr(pl, "read_csv", headless)
    with pytest.raises(AssertionError):
        adds_up("csv", records)

    def only_the_first(block, taken):
        texts = jsonl._decoded(block, taken)
        return [text.lstrip(MARK) if n == 0 else text for n, text in enumerate(texts)]

    monkeypatch.setattr(jsonl, "_texts", only_the_first)
    with pytest.raises(AssertionError):
        adds_up("-", objects[::-1])


IDS = st.sampled_from(["u", "v", "1", "1.0", " u", "", "\u00e9", MARK + "u"])


def by_records(folder, name, records, most):
    unit = IdUnit("id", most, "lifetime")
    reading = plan(gauge(by=(("c", ("A",)),), other="rest"), step=None, end=None, unit=unit)
    head = [b"id,c"] if name.startswith("csv") else []
    (folder / f"a.{name}").write_bytes(b"".join(record + b"\n" for record in head + records))
    source = Files([f"a.{name}"], folder=folder)
    return totals(reading, source, 0, None, unit_key=KEY).arrays["departures"]


@pytest.mark.parametrize("name", ["csv", "jsonl"])
@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(IDS, st.sampled_from("AB")), min_size=1, max_size=9), st.integers(1, 3))
def test_where_records_are_steps_blanking_an_id_moves_its_own_steps_alone(name, rows, most):
    if name == "csv":
        records = [f"{unit},{cell}".encode() for unit, cell in rows]
    else:
        records = [json.dumps({"id": unit, "c": cell}).encode() for unit, cell in rows]
    with tempfile.TemporaryDirectory() as folder:
        whole = by_records(Path(folder), name, records, most)
        assert (len(rows), 2) == whole.shape
        for leaving in {unit for unit, _ in rows}:
            its = np.array([unit == leaving for unit, _ in rows])
            rest = [b"" if own else record for own, record in zip(its, records, strict=True)]
            without = by_records(Path(folder), name, rest, most)
            assert whole.shape == without.shape
            assert (whole[~its] == without[~its]).all()
            assert 0 == without[its].sum()
            assert (0 if leaving in ("", "1.0") else min(most, its.sum())) == whole[its].sum()
