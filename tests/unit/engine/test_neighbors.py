"""T3: one row more, less or other moves totals within the bound, from every kind of source."""

import csv
import gzip
import io
import json
import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from dirty import csv_rows, jsonl_rows, slow_totals
from hypothesis import given, settings
from hypothesis import strategies as st
from plans import gauge, plan
from test_totals import KEY

from tidegauge.connectors.files import Files
from tidegauge.engine.totals import totals
from tidegauge.planning.plan import IdUnit
from tidegauge.privacy.unit import Contributions, NeighboringRelation, Neighbors

ADD, REPLACE = NeighboringRelation
COLUMNS = ("time", "id", "carrier", "v")
TIMES = st.sampled_from(
    [
        "2013-01-01T00:00:00Z", "2013-01-01T01:59:59+01:00", "2013-01-01T02:00:00Z",
        "2013-01-01T03:30:00-01:00", "2013-01-01T05:59:59Z", "2013-01-01T06:00:00Z",
        "2012-12-31T23:59:59Z", "1969-07-20T20:17:00Z", "2099-01-01T00:00:00Z",
        "9999-12-31T23:59:59Z", "2013-01-01T00:00:00", "2013-02-30T00:00:00Z", "soon", "", None,
    ]
)  # fmt: skip
CARRIERS = st.sampled_from(["UA", "B6", "XX", "", None, "\u00e9", "e\u0301", 'U"A', "U,A", " UA"])
VALUES = st.sampled_from(
    ["1", "-3", "0.125", "0.1", "1e9", "-1e400", "NaN", "inf", "ten", "", None, " 2 ", "0x1"]
)
ROW = st.tuples(TIMES, st.sampled_from(["u", "v", "w", None]), CARRIERS, VALUES)
ROWS = st.lists(ROW, max_size=25)
BAD = st.sampled_from(
    [b"\xff\xfe", b'a,"b', b"1,2", b"1,2,3,4,5", b'{"time":', b"[1]", b"NaN", b"\x00", b'"', b"{}"]
)
LOW, HIGH, LAST = -200, 500, 6  # HIGH is the larger in size
GAUGES = (
    gauge("known", by=(("carrier", ("UA", "\u00e9")),), other="other"),
    gauge("dropped", by=(("carrier", ("UA", "e\u0301")), ("v", ("1", "-3")))),
    gauge("present", where='("v" IS NOT NULL)'),
    gauge("sums", kind="sum", column="v", low=LOW, high=HIGH, round_to=Fraction(1, 100)),
)


def csv_bytes(rows, bad=()):
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(rows)
    return text.getvalue().encode() + b"".join(line + b"\n" for line in bad)


def jsonl_bytes(rows, bad=()):
    lines = [json.dumps(dict(zip(COLUMNS, row, strict=True))).encode() for row in rows]
    return b"".join(line + b"\n" for line in [*bad, *lines])


def source_of(kind, rows, folder, bad=()):
    """A source of one kind with these rows."""
    name = f"a.{kind}"
    match kind:
        case "csv":
            (folder / name).write_bytes(csv_bytes(rows, bad))
        case "csv.gz":
            (folder / name).write_bytes(gzip.compress(csv_bytes(rows, bad)))
        case "jsonl":
            (folder / name).write_bytes(jsonl_bytes(rows, bad))
        case "-":
            return Files(["-"], stdin=io.BytesIO(jsonl_bytes(rows, bad)))
        case "parquet":
            frame = pl.DataFrame(
                rows, schema=dict.fromkeys(COLUMNS, pl.String), orient="row", strict=False
            )
            frame.write_parquet(folder / name)
        case "split":  # each row into a file of its own choice
            (folder / "b.csv").write_bytes(csv_bytes([r for r in rows if r[1] != "u"], bad))
            (folder / "a.jsonl").write_bytes(jsonl_bytes([r for r in rows if r[1] == "u"]))
            return Files(["*.jsonl", "*.csv"], folder=folder)
    return Files([name], folder=folder)


def read(kind, rows, *, unit=None, bad=(), relation=ADD, gauges=GAUGES):
    with tempfile.TemporaryDirectory() as name:
        source = source_of(kind, rows, Path(name), bad)
        reading = plan(*gauges, unit=unit, end=LAST, relation=relation)
        return totals(reading, source, 0, LAST, unit_key=KEY).arrays


def moved(one, other):
    """Per gauge: steps and cells that differ, and the largest difference."""
    result = {}
    for name, array in one.items():
        assert array.shape == other[name].shape
        assert array.dtype == other[name].dtype == np.int64
        difference = array - other[name]
        places = np.argwhere(difference)
        result[name] = (len({s for s, _ in places}), len(places), int(abs(difference).max()))
    return result


def within(moves, *, steps, cells, count=1, amount=HIGH):
    for name, (in_steps, in_cells, size) in moves.items():
        assert in_steps <= steps
        assert in_cells <= cells
        assert size <= (amount if name == "sums" else count)


KINDS = ["csv", "csv.gz", "jsonl", "-", "parquet", "split"]
ANY_KIND = st.sampled_from(KINDS)  # that all kinds read alike is shown for each of them below


@settings(max_examples=90)
@given(ANY_KIND, ROWS, ROW, st.integers(0, 25))
def test_a_row_more_or_less_moves_one_cell_of_one_step(kind, rows, row, place):
    more = [*rows[:place], row, *rows[place:]]
    within(moved(read(kind, rows), read(kind, more)), steps=1, cells=1)


@settings(max_examples=90)
@given(ANY_KIND, ROWS.filter(len), ROW, st.integers(0, 24))
def test_a_changed_row_moves_two_cells_and_two_steps_only_if_its_time_changed(
    kind, rows, row, place
):
    place %= len(rows)
    changed = [*rows[:place], row, *rows[place + 1 :]]
    within(moved(read(kind, rows), read(kind, changed)), steps=2, cells=2, amount=HIGH - LOW)
    same_time = [*rows[:place], (rows[place][0], *row[1:]), *rows[place + 1 :]]
    within(moved(read(kind, rows), read(kind, same_time)), steps=1, cells=2, amount=HIGH - LOW)


@settings(max_examples=90)
@given(ANY_KIND, ROWS, st.sampled_from("uvw"), st.integers(1, 3))
def test_an_id_moves_totals_by_its_bound(kind, rows, leaving, k):
    unit = IdUnit("id", k, "lifetime")
    with_it = read(kind, rows, unit=unit)
    without = read(kind, [row for row in rows if row[1] != leaving], unit=unit)
    within(moved(with_it, without), steps=k, cells=k, count=k, amount=k * HIGH)
    for name in ("known", "dropped", "present"):
        assert 0 <= int((with_it[name] - without[name]).sum()) <= k
        assert (with_it[name] >= without[name]).all()


SPARSE = GAUGES[1:]  # a gauge that counts every row would keep each of them an event


def within_replacing(one, other, k):
    """Each gauge moves by at most what the plan's noise is made for when k events are replaced."""
    for sparse in SPARSE:
        cells = len(sparse.cells)
        each = Neighbors(Contributions(k), REPLACE, sparse.low, sparse.high, 1, cells)
        change = np.abs(one[sparse.name] - other[sparse.name])
        assert int(change.sum()) <= k * each.event_l1
        assert np.count_nonzero(change.any(axis=1)) <= k


ADDS = st.sampled_from([("UA", "1"), ("B6", None), ("e\u0301", "-3"), (None, "ten"), ("", "")])


@settings(max_examples=90)
@given(
    ANY_KIND, st.lists(st.tuples(TIMES, ADDS, ADDS), min_size=4, max_size=12), ROWS,
    st.integers(1, 3),
)  # fmt: skip
def test_replaced_values_of_an_id_move_its_first_events_alone(kind, changing, rows, k):
    unit = IdUnit("id", k, "lifetime")
    one, other = (
        read(kind, [*rows, *given], unit=unit, relation=REPLACE, gauges=SPARSE)
        for given in (
            [(time, "changing", *before) for time, before, _ in changing],
            [(time, "changing", *after) for time, _, after in changing],
        )
    )
    within_replacing(one, other, k)


@settings(max_examples=90)
@given(ANY_KIND.filter(lambda kind: kind != "parquet"), ROWS, st.lists(BAD, min_size=1, max_size=5))
def test_records_that_are_none_move_nothing(kind, rows, bad):
    assert {(0, 0, 0)} == set(moved(read(kind, rows), read(kind, rows, bad=bad)).values())


@settings(max_examples=40)
@given(ROWS, st.randoms())
def test_order_format_and_split_never_change_totals(rows, random):
    rows = [tuple(value or None for value in row) for row in rows]  # CSV has no empty text
    expected = read("csv", rows)
    shuffled = rows.copy()
    random.shuffle(shuffled)
    for kind in KINDS:
        assert {(0, 0, 0)} == set(moved(expected, read(kind, shuffled)).values())


PIECES = st.sampled_from(
    [b",", b'"', b"\n", b"\r\n", b"\xff", b"UA", b"5", b"2013-01-01T01:00:00Z,u,UA,3\n",
     b'"2013-01-01T02:00:00Z",u,"UA",0.125\n', b'{"time":"2013-01-01T01:00:00Z","carrier":"UA"}\n',
     b'{"time":"2013-01-01T02:00:00Z","v":-7.005,"v":2.5}\n', b"{", b"}", b" ", b"\x00"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=40))
def test_dirty_files_add_up_as_a_slow_reader_says(pieces):
    data = b"".join(pieces)
    reading = plan(*GAUGES, end=LAST)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        head = ",".join(COLUMNS).encode() + b"\n"
        (folder / "a.csv").write_bytes(head + data)
        (folder / "a.jsonl").write_bytes(data)
        for file, rows in (("a.csv", csv_rows(head + data)), ("a.jsonl", jsonl_rows(data))):
            got = totals(reading, Files([file], folder=folder), 0, LAST)
            assert len(rows) == got.records
            for gauge_name, expected in slow_totals(rows, reading, 0, LAST).items():
                assert expected.tolist() == got.arrays[gauge_name].tolist()


def test_a_broken_clock_is_caught():
    """A clock that follows the latest stamp makes one row move all others: these tests see it."""
    rows = [(f"2013-01-01T0{hour}:00:00Z", "u", "UA", "1") for hour in range(5)]
    late = ("2099-01-01T00:00:00Z", "u", "UA", "1")

    def by_watermark(rows):
        latest, count = "", np.zeros((LAST, 1), np.int64)
        for time, *_ in rows:
            if time >= latest:
                latest = time
                if time[:4] == "2013":
                    count[int(time[11:13])] += 1
        return {"known": count}

    with pytest.raises(AssertionError):
        within(moved(by_watermark(rows), by_watermark([late, *rows])), steps=1, cells=1)
    within(moved(read("csv", rows), read("csv", [late, *rows])), steps=1, cells=1)
