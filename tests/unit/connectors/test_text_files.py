"""CSV and JSON lines: the fast path agrees with plain Python, and no byte harms another record."""

import bz2
import gzip
import io
import lzma
import tempfile
import tracemalloc
from pathlib import Path

import polars as pl
import pytest
from dirty import csv_rows, jsonl_rows
from hypothesis import given
from hypothesis import strategies as st

from tidegauge.connectors import lines
from tidegauge.connectors.files import Files
from tidegauge.engine.source import UNREADABLE
from tidegauge.errors import SourceUnavailable


def rows_of(source, columns):
    """Rows as dicts, None for an unreadable record."""
    rows = []
    for frame in source.batches(columns):
        bad = frame[UNREADABLE] if UNREADABLE in frame.columns else [False] * frame.height
        for row, unreadable in zip(frame.select(columns).to_dicts(), bad, strict=True):
            rows.append(None if unreadable else row)
            assert not unreadable or set(row.values()) == {None}
    return rows


def written(folder, name, data):
    path = folder / name
    path.write_bytes(data)
    return Files([name], folder=folder)


def picked(rows, columns):
    return [None if row is None else {c: row.get(c) for c in columns} for row in rows]


GOOD = b"2013-01-01T00:00:00Z,UA,5\n"
HEADER = b"time,carrier,v\n"

CSV_CASES = {
    "plain": (GOOD, [("2013-01-01T00:00:00Z", "UA", "5")]),
    "carriage returns": (b"a,b,c\r\n", [("a", "b", "c")]),
    "quoted": (b'"a,1","b ""x""",""\n', [("a,1", 'b "x"', None)]),
    "empty fields": (b",,\n", [(None, None, None)]),
    "unbalanced quote": (b'a,"b,c\n', [None]),
    "unbalanced last quote": (b'a,b,"c\n', [None]),
    "balanced across lines": (b'a,"b\nc",d,e\n', [None, None]),
    "quote inside": (b'a,5" nail,c\n', [None]),
    "two quotes inside": (b'a,x"y"z,c\n', [None]),
    "text behind a quote": (b'a,"b"x,c\n', [None]),
    "odd pair": (b'a",b,"c\n', [None]),
    "too few fields": (b"a,b\n", [None]),
    "too many fields": (b"a,b,c,d\n", [None]),
    "comma at the end": (b"a,b,c,\n", [None]),
    "invalid UTF-8": (b"a\xff,b,c\n", [None]),
    "half a character": (b"\xc3,b,c\n", [None]),
    "replacement character": ("a\ufffd,b,c\n".encode(), [None]),
    "NUL": (b"a\x00,b,\x00\n", [("a\x00", "b", "\x00")]),
    "blank lines": (b"\n\r\n\na,b,c\n\n", [None, None, None, ("a", "b", "c"), None]),
    "blanks are kept": (b" a,\tb , c\n", [(" a", "\tb ", " c")]),
    "comment sign": (b"#a,b,c\n", [("#a", "b", "c")]),
    "header again": (HEADER, [("time", "carrier", "v")]),
    "half-written": (b"a,b,c\nd,e,f", [("a", "b", "c"), None]),
    "half-written blank": (b"a,b,c\n\r", [("a", "b", "c"), None]),
    "byte order mark": (b"\xef\xbb\xbfa,b,c\n", [("\ufeffa", "b", "c")]),
    "carriage returns at the ends of fields": (
        b'a\r,\r,"c\r"\na\r\r,b,"c"\n',
        [("a", None, "c\r"), ("a\r", "b", "c")],
    ),
    "three carriage returns": (b"a,b,c\r\r\r\n", [("a", "b", "c")]),
    "what compression looks like": (
        b"x^,x\x01,c\nx\x01,b,c\n",
        [("x^", "x\x01", "c"), ("x\x01", "b", "c")],
    ),
    "long line": (b"x" * (lines.LONGEST + 1) + b",b,c\n", [None]),
    "longest line": (
        b"x" * (lines.LONGEST - 4) + b",b,c\n",
        [("x" * (lines.LONGEST - 4), "b", "c")],
    ),
    "very long line": (b"x" * (5 * lines.LONGEST) + b"\na,b,c\n", [None, ("a", "b", "c")]),
    "separators of other alphabets": (
        "a\u2028b,\x85,\x0c\n".encode(),
        [("a\u2028b", "\x85", "\x0c")],
    ),
    "composed and decomposed": (
        "\u00e9,e\u0301,c\n".encode(),
        [("\u00e9", "e\u0301", "c")],
    ),
    "carriage return inside": (b"a\rb,c,d\n", [("a\rb", "c", "d")]),
    "nothing": (b"", []),
}


@pytest.mark.parametrize("name", CSV_CASES)
def test_csv_records_stand_alone(tmp_path, name):
    data, expected = CSV_CASES[name]
    columns = ("time", "carrier", "v")
    expected = [None if row is None else dict(zip(columns, row, strict=True)) for row in expected]
    good = dict(zip(columns, ("2013-01-01T00:00:00Z", "UA", "5"), strict=True))
    assert expected == rows_of(written(tmp_path, "a.csv", HEADER + data), columns)
    before = rows_of(written(tmp_path, "b.csv", HEADER + GOOD + data), columns)
    assert [good, *expected] == before
    assert [None if r is None else {"v": r["v"]} for r in expected] == rows_of(
        written(tmp_path, "c.csv", HEADER + data), ("v",)
    )
    marked = written(tmp_path, "d.csv", b"\xef\xbb\xbf" + HEADER + data)
    assert expected == rows_of(marked, columns)
    whole = data if data.endswith(b"\n") else data + b"\n"
    around = rows_of(written(tmp_path, "e.csv", HEADER + whole + GOOD), columns)
    assert good == around[-1]
    assert expected == csv_picked(HEADER + data, columns)


def csv_picked(data, columns):
    if len(data) > lines.LONGEST:
        data = b"\n".join(
            line if len(line) <= lines.LONGEST else b"\xff" for line in data.split(b"\n")
        )
    return picked(csv_rows(data), columns)


JSON_CASES = {
    "plain": (b'{"time":"a","carrier":"UA","v":5}\n', [("a", "UA", "5")]),
    "numbers keep their digits": (
        b'{"time":0.10,"carrier":1e400,"v":123456789012345678901234567890}\n',
        [("0.10", "1e400", "123456789012345678901234567890")],
    ),
    "truth values and nulls": (
        b'{"time":true,"carrier":false,"v":null}\n', [("true", "false", None)],
    ),
    "missing fields": (b"{}\n", [(None, None, None)]),
    "nested": (b'{"time":{"a":[1]},"carrier":["UA"],"v":"5"}\n', [(None, None, "5")]),
    "twice": (b'{"time":"a","time":"b"}\n', [("b", None, None)]),
    "NaN": (b'{"v":NaN}\n', [None]),
    "infinity": (b'{"x":-Infinity}\n', [None]),
    "no object": (b'[1]\n"a"\n5\nnull\n', [None] * 4),
    "half-written": (b'{"time":"a"}\n{"time":"b', [("a", None, None), None]),
    "whole without newline": (
        b'{"time":"a"}\n{"time":"b"}', [("a", None, None), ("b", None, None)],
    ),
    "newline in text": (b'{"time":"a\\nb"}\n', [("a\nb", None, None)]),
    "raw newline in text": (b'{"time":"a\nb"}\n', [None, None]),
    "NUL": (b'{"time":"\\u0000"}\n{"time":"\x00"}\n', [("\x00", None, None), None]),
    "half a surrogate pair": (b'{"time":"\\ud800"}\n', [None]),
    "half a pair elsewhere": (b'{"other":"\\ud800"}\n', [(None, None, None)]),
    "pair": (b'{"time":"\\ud83d\\ude00"}\n', [("\U0001f600", None, None)]),
    "invalid UTF-8": (b'{"time":"\xff"}\n', [None]),
    "two objects": (b"{}{}\n", [None]),
    "deep": (b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n", [None]),
    "blanks": (b' {"time" : "a"} \r\n', [("a", None, None)]),
    "single quotes": (b"{'time':'a'}\n", [None]),
    "comma at the end": (b'{"time":"a",}\n', [None]),
    "leading zero": (b'{"v":01}\n', [None]),
    "long line": (b'{"time":"' + b"x" * lines.LONGEST + b'"}\n', [None]),
    "empty text": (b'{"time":""}\n', [("", None, None)]),
    "byte order mark": (b'\xef\xbb\xbf{"time":"\xef\xbb\xbf"}\n', [("\ufeff", None, None)]),
    "byte order marks": (b'\xef\xbb\xbf\xef\xbb\xbf{"time":"a"}\n', [("a", None, None)]),
    "byte order mark inside": (b'{\xef\xbb\xbf"time":"a"}\n', [None]),
    "carriage return at the end": (b'{"time":"a"}\n\r', [("a", None, None), None]),
}  # fmt: skip


@pytest.mark.parametrize("name", JSON_CASES)
def test_json_records_stand_alone(tmp_path, name):
    data, expected = JSON_CASES[name]
    columns = ("time", "carrier", "v")
    expected = [None if row is None else dict(zip(columns, row, strict=True)) for row in expected]
    good = {"time": "z", "carrier": None, "v": None}
    assert expected == rows_of(written(tmp_path, "a.jsonl", data), columns)
    whole = data if data.endswith(b"\n") else data + b"\n"
    around = b'{"time":"z"}\n' + whole + b'{"time":"z"}\n'
    assert [good, *expected, good] == rows_of(written(tmp_path, "b.jsonl", around), columns)
    assert expected == rows_of(Files(["-"], stdin=io.BytesIO(data)), columns)
    marked = written(tmp_path, "c.jsonl", b"\xef\xbb\xbf" + data)
    assert expected == rows_of(marked, columns)


PIECES = st.sampled_from(
    [b"a", b",", b'"', b'""', b"\n", b"\r\n", b"\r", b" ", b"\xff", b"\x00", "é".encode(), b"5",
     b"\xef\xbb\xbf", b"x^", b"x\x01", b"\x1f\x8b",
     b'{"a":1}', b'{"b":"x","a":', b"}", b"[", b"NaN", b"\\ud800", b"a,b,c\n", b'"x","y",""\n']
)  # fmt: skip


@given(st.lists(PIECES, max_size=40))
def test_random_bytes_are_read_as_plain_python_reads_them(pieces):
    data = b"".join(pieces)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = written(folder, "a.csv", b"a,b,c\n" + data)
        columns = ("c", "a")
        assert picked(csv_rows(b"a,b,c\n" + data), columns) == rows_of(source, columns)
        source = written(folder, "a.jsonl", data)
        columns = ("a", "b")
        assert picked(jsonl_rows(data), columns) == rows_of(source, columns)


@pytest.mark.parametrize("size", [1, 2, 7, 64])
def test_the_size_of_blocks_never_changes_rows(tmp_path, monkeypatch, size):
    data = HEADER + b"".join(d for d, _ in CSV_CASES.values() if len(d) < 100 and d[-1:] == b"\n")
    source = written(tmp_path, "a.csv", data)
    columns = ("time", "carrier", "v")
    expected = rows_of(source, columns)
    monkeypatch.setattr(lines, "_SIZE", size)
    monkeypatch.setattr(lines, "LONGEST", 100)
    assert expected == rows_of(source, columns)


def test_lines_over_the_limit_are_bad_wherever_blocks_end(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "LONGEST", 10)
    data = b"v\n" + b"".join(b"x" * n + b"\n" for n in (9, 10, 11, 12, 1, 30, 2))
    source = written(tmp_path, "a.csv", data)
    expected = [n <= 10 for n in (9, 10, 11, 12, 1, 30, 2)]
    for size in (1, 3, 10, 11, 12, 13, 1000):
        monkeypatch.setattr(lines, "_SIZE", size)
        assert expected == [row is not None for row in rows_of(source, ("v",))]


def test_compression_never_changes_rows(tmp_path):
    pa = pytest.importorskip("pyarrow")
    data = HEADER + b"".join(d for d, _ in CSV_CASES.values() if len(d) < 100 and d[-1:] == b"\n")
    for half in (data, data + b"half,writ"):
        expected = rows_of(written(tmp_path, "a.csv", half), ("time", "v"))
        for packed, how in (("gz", gzip), ("bz2", bz2), ("xz", lzma)):
            zipped = written(tmp_path, f"a.csv.{packed}", how.compress(half))
            assert expected == rows_of(zipped, ("time", "v"))
    expected = expected[:-1]
    with pa.CompressedOutputStream(str(tmp_path / "a.csv.zst"), "zstd") as stream:
        stream.write(data)
    zst = Files(["a.csv.zst"], folder=tmp_path)
    assert expected == rows_of(zst, ("time", "v"))
    assert [] == zst.types(("time",))


def test_a_damaged_compressed_file_is_an_unavailable_source(tmp_path):
    pa = pytest.importorskip("pyarrow")
    with pa.CompressedOutputStream(str(tmp_path / "whole.csv.zst"), "zstd") as stream:
        stream.write(HEADER + GOOD * 1000)
    zst = (tmp_path / "whole.csv.zst").read_bytes()
    whole = gzip.compress(HEADER + GOOD * 1000)
    for name, data in [
        ("a.csv.gz", whole[:-20]), ("b.csv.gz", GOOD), ("f.csv.xz", GOOD),
        ("g.csv.xz", lzma.compress(GOOD * 9)[:-9]), ("h.csv.bz2", GOOD),
        ("i.csv.bz2", bz2.compress(GOOD * 9)[:-9]), ("c.csv.gz", whole[:30] + b"x" * 30),
        ("d.csv.zst", zst[:-8]), ("e.csv.zst", HEADER + GOOD), ("j.csv.zst", whole),
        ("k.csv.zst", zst[:3]), ("l.csv.zst", b"\n" + HEADER + GOOD),
    ]:  # fmt: skip
        source = written(tmp_path, name, data)
        with pytest.raises(SourceUnavailable, match=f"{name}, which is away or damaged") as caught:
            rows_of(source, ("v",))
        assert "UA" not in str(caught.value)


def test_a_skippable_frame_before_a_zst_file_is_named(tmp_path):
    pa = pytest.importorskip("pyarrow")
    packed = pa.compress(HEADER + GOOD, "zstd", asbytes=True)
    for first in (0x50, 0x5F):
        skippable = bytes([first]) + b"\x2a\x4d\x18\x04\0\0\0abcd"
        source = written(tmp_path, "a.csv.zst", skippable + packed)
        with pytest.raises(SourceUnavailable, match="got a skippable frame"):
            rows_of(source, ("v",))
    assert [{"v": "5"}] * 2 == rows_of(
        written(tmp_path, "b.csv.zst", packed + pa.compress(GOOD, "zstd", asbytes=True)), ("v",)
    )


def test_newlines_between_quotes_belong_to_a_field_only_if_declared(tmp_path):
    data = HEADER + b'a,"b\nb\r\nb",c\n' + GOOD
    (tmp_path / "a.csv").write_bytes(data)
    one = Files(["a.csv"], folder=tmp_path, multiline=True)
    expected = [{"carrier": "b\nb\nb", "v": "c"}, {"carrier": "UA", "v": "5"}]
    assert expected == rows_of(one, ("carrier", "v"))
    two = Files(["a.csv"], folder=tmp_path)
    assert [None, None, None, {"v": "5"}] == rows_of(two, ("v",))
    (tmp_path / "b.csv").write_bytes(HEADER + b'a,"b,c\n' + GOOD)
    assert [None] == rows_of(Files(["b.csv"], folder=tmp_path, multiline=True), ("v",))


@pytest.mark.parametrize("data", [b"", b"\n\r\n", b"\xef\xbb\xbf", HEADER, HEADER[:-1]])
def test_a_file_without_rows_has_none(tmp_path, data):
    for name in ("a.csv", "a.jsonl"):
        if name == "a.jsonl" and data.startswith(b"t"):
            continue
        source = written(tmp_path, name, data)
        assert [] == source.types(("v",))
        blank = data.count(b"\n") if name == "a.jsonl" else 0  # a record that keeps its place
        assert [None] * blank == rows_of(source, ("v",))


@pytest.mark.parametrize("header", [b"time,w\n", b"v,v\n", b"\xff,v\n", b'"v\n', b"V\n", b"v;w\n"])
def test_a_missing_or_doubled_column_is_found_before_any_row(tmp_path, header):
    source = written(tmp_path, "a.csv", header + GOOD)
    with pytest.raises(SourceUnavailable, match=r"a\.csv"):
        source.types(("v",))
    with pytest.raises(SourceUnavailable, match=r"a\.csv"):
        rows_of(source, ("v",))


def test_records_are_counted_even_if_no_column_is_needed(tmp_path):
    pl.DataFrame({"a": range(1000)}).write_parquet(tmp_path / "a.parquet")
    (tmp_path / "b.csv").write_bytes(b"a,b\n1,2\n3\n4,5\n")
    (tmp_path / "c.jsonl").write_bytes(b"{}\n[]\n{}\n")
    counts = [
        sum(frame.height for frame in Files([name], folder=tmp_path).batches(()))
        for name in ("a.parquet", "b.csv", "c.jsonl")
    ]
    assert [1000, 3, 3] == counts


FORMS = st.sampled_from(
    [b'{"a":"x","b":-1.50e3}', b'{"a": "y", "b": 7}', b'{"a":null,"b":true}', b'{"a":"","b":false}',
     b'{"a":"\\u0041","b":"c,d"}', b'{"a":"{\\"b\\":1}","b":2}', b'{"a":"\xc3\xa9","b":" : "}',
     b'{"b":1,"a":2}', b'{"a":1,"a":2,"b":3}', b'{"a":"x","b":1,"c":2}', b'{"a":[1],"b":{"a":9}}',
     b'{"a":01,"b":1}', b'{"a":"x","b":NaN}', b'{"a":"x" ,"b":1}', b'{"a":"\t","b":1}',
     b'{"a":"x","b":-}', b'{"a":"\xff","b":1}', b'{"a":-0,"b":1E+5}', b'{"a":"a,","b":"}"}', b"",
     b'{"a":"x","b":1}\r', b'{"a":"b","b":"a"}', b'{"a":"\x7f","b":"\\""}', b'{"a":"x","b":.5}',
     b'{"a":"x"}']
)  # fmt: skip


@given(st.lists(FORMS, max_size=60), FORMS)
def test_records_read_together_are_what_they_are_alone(records, first):
    data = b"\n".join([first] * 16 + records) + b"\n"
    expected = jsonl_rows(data)
    for columns in (("a", "b"), ("b",), ("c", "a")):
        assert picked(expected, columns) == rows_of(Files(["-"], stdin=io.BytesIO(data)), columns)


@pytest.mark.parametrize("how", ["raises", "drops", "panics"])
def test_a_record_that_polars_refuses_is_unreadable_and_spoils_no_other(tmp_path, monkeypatch, how):
    read_csv = pl.read_csv

    def refusing(data, **options):
        if b"boom" not in data:
            return read_csv(data, **options)
        if how == "drops":
            return read_csv(data, **options).slice(1)
        raise {"raises": pl.exceptions.ComputeError, "panics": pl.exceptions.PanicException}[how](
            "the parser shows boom"
        )

    monkeypatch.setattr(pl, "read_csv", refusing)
    fields = ["a", "boom", "b", "c", "boom", "boom", "d"]
    data = HEADER + b"".join(b"t,u,%s\n" % field.encode() for field in fields)
    expected = [None if field == "boom" else {"v": field} for field in fields]
    assert expected == rows_of(written(tmp_path, "a.csv", data), ("v",))


class Endless:
    """A stream of one line of 100 MB, then a good one."""

    def __init__(self):
        self.left = 100

    def read(self, size):
        self.left -= 1
        if self.left >= 0:
            return b"x" * (1 << 20)
        return b"\n{}\n" if self.left == -1 else b""


def test_a_line_of_100_megabytes_is_never_held():
    tracemalloc.start()
    try:
        found = list(lines.blocks_of(Endless(), half=False))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [False, True] == [bool(r) for block in found for r in block.readable]
    assert peak < 16 << 20
