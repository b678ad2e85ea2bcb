"""Blank lines keep their places; ids and cells are text; a predicate fits the types it reads."""

import bz2
import gzip

import numpy as np
import polars as pl
import pytest
from plans import gauge, plan
from test_totals import KEY, Frames

from tidegauge.connectors import lines
from tidegauge.connectors.files import Files
from tidegauge.engine import hashed
from tidegauge.engine.totals import totals
from tidegauge.errors import SourceUnavailable
from tidegauge.planning.plan import IdUnit
from tidegauge.planning.where import PredicateError, checked, expression


def steps_of(folder, name, records, packed=bytes):
    """What each record adds, where each record is a step."""
    (folder / name).write_bytes(packed(b"".join(record + b"\n" for record in records)))
    cells = gauge(by=(("v", ("1", "2", "3")),), other="other")
    got = totals(plan(cells, step=None, end=None), Files([name], folder=folder), 0, None)
    return got.arrays["departures"]


def blanked(folder, kind, packed=bytes):
    """A record that is blanked out adds nothing, and every other one stays in its step."""
    head = [b"v"] if kind.startswith("csv") else []
    records = [b"%d" % (n % 4) for n in range(40)]
    if not head:
        records = [b'{"v":%s}' % record for record in records]
    before = steps_of(folder, f"a.{kind}", head + records, packed)
    assert (40, 4) == before.shape
    for place in (0, 1, 17, 38, 39):
        for blank in (b"", b"\r"):
            changed = [*records[:place], blank, *records[place + 1 :]]
            after = steps_of(folder, f"b.{kind}", head + changed, packed)
            assert before.shape == after.shape
            assert [place] == np.flatnonzero((before != after).any(axis=1)).tolist()
            assert [0] * 4 == after[place].tolist()


@pytest.mark.parametrize(
    ("kind", "packed"),
    [
        ("csv", bytes), ("jsonl", bytes), ("csv.gz", gzip.compress), ("jsonl.bz2", bz2.compress),
    ],
)  # fmt: skip
def test_a_blank_line_keeps_its_place_and_adds_nothing(tmp_path, kind, packed):
    blanked(tmp_path, kind, packed)


@pytest.mark.parametrize("kind", ["csv.zst", "jsonl.zst"])
def test_a_blank_line_of_a_zst_file_keeps_its_place(tmp_path, kind):
    pa = pytest.importorskip("pyarrow")
    blanked(tmp_path, kind, lambda data: pa.compress(data, "zstd", asbytes=True))


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_leaving_blank_lines_out_is_caught(tmp_path, monkeypatch, kind):
    block_of = lines._block

    def forgetful(*given):
        block = block_of(*given)
        kept = block.ends > block.starts
        return lines.Block(block.data, block.starts[kept], block.ends[kept], block.readable[kept])

    blanked(tmp_path, kind)
    monkeypatch.setattr(lines, "_block", forgetful)
    with pytest.raises(AssertionError):
        blanked(tmp_path, kind)


def test_blank_lines_before_the_header_are_no_records_wherever_blocks_end(tmp_path, monkeypatch):
    for size in (1, 2, 3, 1000):
        monkeypatch.setattr(lines, "_SIZE", size)
        got = steps_of(tmp_path, "a.csv", [b"", b"\r", b"v", b"", b"1"])
        assert [[0, 0, 0, 0], [1, 0, 0, 0]] == got.tolist()


def kept_of(*frames, most=1):
    """How many events of all ids are counted."""
    reading = plan(unit=IdUnit("id", most, "lifetime"))
    return int(totals(reading, Frames(*frames), 0, 24, unit_key=KEY).arrays["departures"].sum())


def frame_of(ids, **types):
    return pl.DataFrame({"time": ["2013-01-01T00:00:00Z"] * len(ids), "id": ids}, **types)


SPELLINGS = ["1", "1.0", "1.", "1.00", "1.0e0", "1e+0", "1.0e+0"]


def one_id_counts_once(spellings):
    assert 1 == kept_of(frame_of(spellings))


def test_a_whole_number_spelled_as_a_float_is_no_id(monkeypatch):
    one_id_counts_once(SPELLINGS)
    one_id_counts_once(SPELLINGS[::-1])
    assert 5 == kept_of(frame_of(["12e3456", "1.5", "v1.0", "1.0.0", "1-e+3"]))
    assert 1 == kept_of(frame_of([1, 2]).head(1), frame_of([1.0, None, 1e16]))
    monkeypatch.setattr(hashed, "_FLOAT", "^$")
    with pytest.raises(AssertionError):
        one_id_counts_once(SPELLINGS)


def test_json_numbers_are_ids_by_their_spelling(tmp_path):
    ids = [b"1", b'"1"', b"1.0", b"1.50e1", b"1e+3", b"2"]
    record = b'{"time":"2013-01-01T00:00:00Z","id":%s}\n'
    (tmp_path / "a.jsonl").write_bytes(b"".join(record % unit for unit in ids))
    reading = plan(unit=IdUnit("id", 1, "lifetime"))
    got = totals(reading, Files(["a.jsonl"], folder=tmp_path), 0, 24, unit_key=KEY)
    assert 2 == got.arrays["departures"].sum()
    assert (3, 1) == (got.counters["no_id"], got.counters["beyond_bound"])


class Typed(Frames):
    """Batches with types that are told, and no row before they are."""

    def types(self, columns):
        return [("a part", {name: self.frames[0].schema[name] for name in columns})]

    def batches(self, columns):
        raise AssertionError("a row was read")


@pytest.mark.parametrize("kind", [pl.Float32, pl.Float64, pl.Decimal(10, 2)])
def test_floats_are_neither_ids_nor_cells(kind):
    frame = frame_of([1, None], schema_overrides={"id": kind})
    by_float = gauge(by=(("id", ("1", "2")),), other="other")
    for reading in (plan(unit=IdUnit("id", 1, "lifetime")), plan(by_float)):
        with pytest.raises(SourceUnavailable, match="to integers or to text"):
            totals(reading, Typed(frame), 0, 24, unit_key=KEY)


JUDGED_BY_NONE = [
    (pl.Series("c", ["1"], dtype=pl.Categorical), "c = 1"),
    (pl.Series("c", ["1"], dtype=pl.Enum(["1"])), "c IN (1, 2)"),
    (pl.Series("c", [b"1"]), "c = 1"),
    (pl.Series("c", [1]).cast(pl.Duration("us")), "c = 'a'"),
]


@pytest.mark.parametrize(("column", "where"), JUDGED_BY_NONE)
def test_a_predicate_that_cannot_judge_the_types_is_refused_before_any_row(column, where):
    frame, reading = frame_of(["u"]).with_columns(column), plan(gauge(where=checked(where)))
    with pytest.raises(SourceUnavailable, match="'c' of a part, got type"):
        totals(reading, Typed(frame), 0, 24)
    assert 0 == totals(reading, Frames(frame), 0, 24).arrays["departures"].sum()  # why


JUDGED = [
    pl.Series(["1"]), pl.Series([None]), pl.Series([True]), pl.Series([1], dtype=pl.Int128),
    pl.Series([1.0]), pl.Series([1]).cast(pl.Date), pl.Series([1]).cast(pl.Time),
    pl.Series([1]).cast(pl.Datetime("ns")),
]  # fmt: skip


@pytest.mark.parametrize("column", JUDGED)
def test_no_predicate_raises_on_the_other_types(column):
    frame = pl.DataFrame({"c": column})
    for where in ("c = 1", "c = 'a'", "c", "c IN (1, 2)", "LENGTH(c) > 1", "COALESCE(c, 1) = 1"):
        held = frame.select(held=expression(where))["held"]
        assert pl.Boolean == held.dtype


@pytest.mark.parametrize("kind", [pl.Categorical, pl.Enum(["a", "b"])])
def test_categories_of_a_file_are_judged_as_text(tmp_path, kind):
    frame = frame_of(["u"] * 3).with_columns(c=pl.Series(["a", "b", None], dtype=kind))
    frame.write_parquet(tmp_path / "a.parquet")
    source = Files(["a.parquet"], folder=tmp_path)
    for where, expected in (("c = 'a'", 1), ("c IN ('a', 'b')", 2), ("c LIKE '%b'", 1)):
        got = totals(plan(gauge(where=checked(where))), source, 0, 24)
        assert expected == got.arrays["departures"].sum()


@pytest.mark.parametrize("kind", [pl.Categorical(), pl.Enum(["z", "b", "y", "a", "x"])])
@pytest.mark.parametrize(("other", "expected"), [("other", [2, 1, 4]), (None, [2, 1])])
def test_categories_that_the_config_does_not_declare_are_other(tmp_path, kind, other, expected):
    """A file's own numbers of its categories mean nothing; rows beside have other categories."""
    texts = ["a", "z", "b", None, "a", "x", "y"]
    frame = frame_of(["u"] * len(texts)).with_columns(c=pl.Series(texts, dtype=kind))
    frame.write_parquet(tmp_path / "a.parquet")
    cells = gauge(by=(("c", ("a", "b")),), other=other)
    got = totals(plan(cells), Files(["a.parquet"], folder=tmp_path), 0, 24)
    assert expected == got.arrays["departures"].sum(axis=0).tolist()
    assert {4} == {count for name, count in got.counters.items() if "other" in name} or other
    as_text = totals(plan(cells), Frames(frame.cast({"c": pl.String})), 0, 24)
    assert (as_text.arrays["departures"] == got.arrays["departures"]).all()


@pytest.mark.parametrize("name", ["*", "^a.*$", "^$"])
def test_a_column_whose_name_polars_reads_as_a_pattern_is_refused(tmp_path, name):
    with pytest.raises(PredicateError, match="Rename the column"):
        checked(f'"{name}" > 1')
    pl.DataFrame({name: [1], "other": [2]}).write_parquet(tmp_path / "a.parquet")
    (tmp_path / "a.csv").write_text(f"{name},other\n1,2\n")
    for file in ("a.parquet", "a.csv"):
        with pytest.raises(SourceUnavailable, match="Rename the column"):
            Files([file], folder=tmp_path).types((name,))
    assert '("^a" > 1.0)' == checked('"^a" > 1')
