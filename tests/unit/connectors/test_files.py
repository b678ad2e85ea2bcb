"""Files: found by pattern, each once, in the order of their paths; Parquet with its own types."""

import io
import os
import sys

import polars as pl
import pytest

from tidegauge.connectors import footer
from tidegauge.connectors.files import Files, kind_of
from tidegauge.connectors.footer import as_bytes
from tidegauge.errors import InvalidParameter, SourceUnavailable


def values(source, column="v"):
    return [value for frame in source.batches((column,)) for value in frame[column].to_list()]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.csv", "csv"), ("a.csv.gz", "csv"), ("a.jsonl.zst", "jsonl"), ("a.parquet", "parquet"),
        ("a.parquet.gz", None), ("csv", None), ("a.json", None), ("a.gz", None), ("a.CSV", "csv"),
        ("a.csv.gz.zst", None), ("*/a-??.jsonl", "jsonl"), ("a.ndjson.xz", "jsonl"), ("a.", None),
    ],
)  # fmt: skip
def test_the_end_of_a_name_tells_the_kind(name, kind):
    assert kind == kind_of(name)


def test_files_come_in_the_order_of_their_paths_bytes_and_each_once(tmp_path):
    for name in ("10", "9", "é", "b", "B"):
        (tmp_path / f"{name}.csv").write_text(f"v\n{name}\n", encoding="utf-8")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "1.csv").write_text("v\nsub\n")
    os.symlink(tmp_path / "9.csv", tmp_path / "zz.csv")
    (tmp_path / "folder.csv").mkdir()
    source = Files(["*.csv", "9.csv", "**/*.csv"], folder=tmp_path)
    assert ["10", "9", "B", "b", "sub", "é"] == values(source)
    names = [path.relative_to(tmp_path).as_posix() for path in source.paths()]
    assert ["10.csv", "9.csv", "B.csv", "b.csv", "sub/1.csv", "é.csv"] == names


def test_a_file_with_two_names_counts_once(tmp_path):
    (tmp_path / "a.csv").write_text("v\n1\n")
    os.link(tmp_path / "a.csv", tmp_path / "b.csv")
    (tmp_path / "sub").mkdir()
    os.symlink(tmp_path, tmp_path / "sub" / "again")
    for patterns in (["*.csv"], ["a.csv", "a.csv", "b.csv"], ["sub/again/*.csv", "b.csv"]):
        assert ["1"] == values(Files(patterns, folder=tmp_path))


def test_the_order_of_patterns_is_of_no_account(tmp_path):
    for name in "cab":
        (tmp_path / f"{name}.csv").write_text(f"v\n{name}\n")
    for patterns in (["c.csv", "a.csv", "b.csv"], ["*.csv", "a.csv"], ["[bc].csv", "a.csv"]):
        assert ["a", "b", "c"] == values(Files(patterns, folder=tmp_path))


def test_names_with_signs_of_patterns_are_found_as_they_are(tmp_path):
    (tmp_path / "a[1].csv").write_text("v\n1\n")
    with pytest.raises(SourceUnavailable, match="a"):
        Files(["a[1].csv"], folder=tmp_path).paths()
    assert ["1"] == values(Files(["a[[]1].csv"], folder=tmp_path))
    pl.DataFrame({"v": [1]}).write_parquet(tmp_path / "b[1].parquet")
    assert [1] == values(Files(["b[[]1].parquet"], folder=tmp_path))


@pytest.mark.parametrize("names", [[], ["-", "a.csv"], ["a.xlsx"], ["a"]])
def test_sources_that_are_none_are_refused(names):
    with pytest.raises(InvalidParameter, match="Expected"):
        Files(names)


def test_a_missing_file_is_an_unavailable_source(tmp_path):
    for names in (["a.csv"], ["*.parquet"]):
        with pytest.raises(SourceUnavailable, match="Expected files"):
            Files(names, folder=tmp_path).types(("v",))


def test_standard_input_is_read_once():
    source = Files(["-"], stdin=io.BytesIO(b'{"v":1}\n{"v":2}\n'))
    assert "standard input" == source.describe()
    assert [] == source.types(("v",))
    assert ["1", "2"] == values(source)
    with pytest.raises(SourceUnavailable, match="once"):
        values(source)


def test_standard_input_that_cannot_be_read_is_an_unavailable_source(tmp_path, monkeypatch):
    with (tmp_path / "written").open("wb") as stream, pytest.raises(SourceUnavailable) as caught:
        values(Files(["-"], stdin=stream))
    assert "standard input for reading" in str(caught.value)
    assert caught.value.__suppress_context__
    monkeypatch.setattr(sys, "stdin", None)  # as Python sets it where it is closed
    with pytest.raises(SourceUnavailable, match="got a closed one"):
        values(Files(["-"]))


def test_parquet_keeps_its_types_and_only_needed_columns_are_read(tmp_path):
    frame = pl.DataFrame({"v": [1, None], "w": ["a", "b"], "x": [[1], [2]]})
    frame.write_parquet(tmp_path / "a.parquet")
    source = Files(["a.parquet"], folder=tmp_path)
    assert [("a.parquet", {"w": pl.String(), "v": pl.Int64()})] == source.types(("w", "v"))
    (batch,) = source.batches(("w", "v"))
    assert frame.select("w", "v").equals(batch)


def test_parquet_without_the_column_or_cut_off_is_unavailable(tmp_path):
    path = tmp_path / "a.parquet"
    pl.DataFrame({"v": range(5000)}).write_parquet(path)
    whole = path.read_bytes()
    source = Files(["a.parquet"], folder=tmp_path)
    with pytest.raises(SourceUnavailable, match="'u'"):
        source.types(("u",))
    for data in (whole[:-1], whole[:100], b"", b"v\n1\n"):
        path.write_bytes(data)
        with pytest.raises(SourceUnavailable, match="whole Parquet"):
            source.types(("v",))
        with pytest.raises(SourceUnavailable, match="whole Parquet"):
            values(source)
    path.write_bytes(whole[:50] + b"\xff" * 200 + whole[250:])
    assert 1 == len(source.types(("v",)))
    with pytest.raises(SourceUnavailable, match="whole Parquet") as caught:
        values(source)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_parquet_of_any_number_of_rows_is_read_whole(tmp_path):
    for rows in (0, 1, (1 << 17) - 1, 1 << 17, (1 << 17) + 1):
        pl.DataFrame({"v": pl.int_range(rows, eager=True)}).write_parquet(tmp_path / "a.parquet")
        assert list(range(rows)) == values(Files(["a.parquet"], folder=tmp_path))


def not_utf8(path, texts, **options):
    """Write a text column with bytes that are no UTF-8, as some writers do."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    buffers = pa.array(texts, pa.binary()).buffers()
    column = pa.Array.from_buffers(pa.string(), len(texts), buffers)
    times = pa.array(range(len(texts)), pa.timestamp("us", "UTC"))
    table = pa.table({"v": column, "n": range(len(texts)), "t": times})
    parquet.write_table(table, path, **options)


@pytest.mark.parametrize("options", [{}, {"store_schema": False}, {"use_dictionary": False}])
def test_parquet_text_that_is_not_utf8_is_null_and_spoils_no_other_row(tmp_path, options):
    texts = [b"a", b"b\xff", None, "\u00e9".encode()] * 50_000
    not_utf8(tmp_path / "a.parquet", texts, row_group_size=60_000, **options)
    source = Files(["a.parquet"], folder=tmp_path)
    assert ["a", None, None, "\u00e9"] * 50_000 == values(source)
    frames = list(source.batches(("n", "t")))
    assert list(range(200_000)) == pl.concat(frames)["n"].to_list()
    frames = list(source.batches(("n", "t", "v")))
    assert pl.Datetime("us", "UTC") == frames[-1].schema["t"]
    assert list(range(200_000)) == pl.concat(frames)["t"].to_physical().to_list()


def test_a_bad_text_behind_many_good_rows_spoils_no_other(tmp_path):
    texts = [b"a"] * 300_000
    texts[299_990], texts[140_000] = b"\xc3", b"\xff"
    not_utf8(tmp_path / "a.parquet", texts, row_group_size=50_000)
    frames = list(Files(["a.parquet"], folder=tmp_path).batches(("n", "t", "v")))
    rows = pl.concat(frames)
    assert list(range(300_000)) == rows["n"].to_list()
    assert [140_000, 299_990] == rows["v"].is_null().arg_true().to_list()
    assert {"a", None} == set(rows["v"])


def test_a_row_group_that_is_damaged_makes_the_file_unavailable(tmp_path):
    path = tmp_path / "a.parquet"
    frame = pl.DataFrame({"v": pl.int_range(400_000, eager=True).shuffle(seed=1)})
    frame.write_parquet(path, row_group_size=100_000)
    whole = path.read_bytes()
    third = len(whole) // 2, len(whole) * 3 // 4  # nearly: the footer is short
    path.write_bytes(whole[: third[0]] + bytes(third[1] - third[0]) + whole[third[1] :])
    source = Files(["a.parquet"], folder=tmp_path)
    assert 1 == len(source.types(("v",)))
    with pytest.raises(SourceUnavailable, match="whole Parquet") as caught:
        values(source)
    assert caught.value.__suppress_context__


def test_parquet_bytes_are_text(tmp_path):
    pl.DataFrame({"v": [b"a", b"\xff", None]}).write_parquet(tmp_path / "a.parquet")
    source = Files(["a.parquet"], folder=tmp_path)
    assert [("a.parquet", {"v": pl.String()})] == source.types(("v",))
    assert ["a", None, None] == values(source)


@pytest.mark.parametrize("cut", [0, 1, 4, 8, 12, 30, 200])
def test_a_footer_that_is_none_is_not_rewritten(tmp_path, cut):
    path = tmp_path / "a.parquet"
    pl.DataFrame({"v": ["a"] * 100}).write_parquet(path)
    data = path.read_bytes()
    assert as_bytes(data[:cut]) is None
    assert as_bytes(data[:-100] + b"\xff" * 92 + (92).to_bytes(4, "little") + b"PAR1") is None
    path.write_bytes(as_bytes(data))
    assert ["a"] * 100 == values(Files(["a.parquet"], folder=tmp_path))
    assert pl.Binary == pl.read_parquet(path).schema["v"]


@pytest.mark.parametrize(
    ("claims", "text"),
    [
        ([(6, 5, 0)], True),
        ([(10, 12, [(1, 12, [])])], True),
        ([(6, 5, 19), (10, 12, [(12, 12, [])])], True),
        ([(6, 5, 5), (7, 5, 2), (8, 5, 9)], False),  # a decimal
        ([(10, 12, [(5, 12, [])])], False),
        ([], False),
    ],
)
def test_a_column_loses_its_claim_to_be_text_and_no_other(claims, text):
    named = [(1, 5, 6), (3, 5, 1), (4, 8, b"v")]
    assert (named if text else named + claims) == footer._plain(named + claims)
    numbers = [(1, 5, 2), (4, 8, b"n"), (6, 5, 0)]
    assert numbers == footer._plain(numbers)
