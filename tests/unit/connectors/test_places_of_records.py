"""A record means the same wherever it stands: first, in between or last, in a file or a block."""

import gzip
import io

import numpy as np
import polars as pl
import pytest

from tidegauge.connectors import csv, jsonl, lines
from tidegauge.connectors.files import Files
from tidegauge.engine.source import UNREADABLE

COLUMNS = ("a", "b")
MARK = b"\xef\xbb\xbf"
BEGINNINGS = [
    b"", b"a", MARK, MARK * 2, b"x^", b"x\x01", b"x\xc2\x9c", b"\x1f\xc2\x8b", b'"', b'"x^', b"#",
    b" ", b"\t", b"\r", b"\x00", b"BZh9", b"PK\x03\x04", b"PAR1", b"(\xc2\xb5/\xc3\xbd", b"0,1",
    b"\xff",
]  # fmt: skip
CSV = [begin + b",1" for begin in BEGINNINGS] + [
    b'"' + begin.replace(b'"', b'""') + b'","2"' for begin in BEGINNINGS
]
JSON = [begin + b'{"a":"u","b":1}' for begin in BEGINNINGS] + [
    b'{"a":"' + begin + b'","b":2}' for begin in BEGINNINGS
]


def rows_of(source):
    """Rows as tuples, None for an unreadable record."""
    rows = []
    for frame in source.batches(COLUMNS):
        bad = frame[UNREADABLE] if UNREADABLE in frame.columns else [False] * frame.height
        rows += [None if b else r for r, b in zip(frame.select(COLUMNS).rows(), bad, strict=True)]
    return rows


def read(folder, kind, records, **options):
    """The rows of a file of these records, each with its newline."""
    data = b"".join(record + b"\n" for record in records)
    if kind == "-":
        return rows_of(Files(["-"], stdin=io.BytesIO(data)))
    if kind.startswith("csv"):
        data = b"a,b\n" + data
    if kind.endswith(".gz"):
        data = gzip.compress(data)
    if kind.endswith(".zst"):
        data = pytest.importorskip("pyarrow").compress(data, "zstd", asbytes=True)
    (folder / f"a.{kind}").write_bytes(data)
    return rows_of(Files([f"a.{kind}"], folder=folder, **options))


def the_same_everywhere(folder, kind, records):
    """Each record alone, first, last and among all others, in blocks of any size."""
    alone = [read(folder, kind, [record]) for record in records]
    assert [1] * len(records) == [len(rows) for rows in alone]
    alone = [rows[0] for rows in alone]
    whole, turned = read(folder, kind, records), read(folder, kind, records[::-1])
    assert alone == whole == turned[::-1]
    for place, record in enumerate(records):
        other = records[place - 1]
        assert [alone[place], alone[place - 1]] * 8 == read(folder, kind, [record, other] * 8)


SIZES = {kind: [1, 5, 1 << 21] for kind in ("csv", "jsonl", "-")}
SIZES |= {kind: [5, 1 << 21] for kind in ("csv.gz", "csv.zst", "jsonl.zst")}  # of the same blocks


@pytest.mark.parametrize(
    ("size", "kind"), [(size, kind) for kind, sizes in SIZES.items() for size in sizes]
)
def test_a_record_means_the_same_wherever_it_stands(tmp_path, monkeypatch, kind, size):
    monkeypatch.setattr(lines, "_SIZE", size)
    monkeypatch.setattr(lines, "_LINES", 1 + size % 4)
    the_same_everywhere(tmp_path, kind, CSV if kind.startswith("csv") else JSON)


def test_a_mark_is_text_in_a_field_of_csv_and_left_out_before_an_object(tmp_path):
    assert [("\ufeffa", "1")] * 2 == read(tmp_path, "csv", [MARK + b"a,1"] * 2)
    assert [("a", "1")] * 2 == read(tmp_path, "jsonl", [MARK * 2 + b'{"a":"a","b":1}'] * 2)
    for head in (MARK + b"a,b\n", MARK * 2 + b'"a",b\n', b"\r\n" + MARK + b"\na,b\n"):
        (tmp_path / "b.csv").write_bytes(head + b"1,2\n")
        assert [("1", "2")] == rows_of(Files(["b.csv"], folder=tmp_path))


def test_a_parser_that_judges_a_buffer_by_its_first_bytes_is_caught(tmp_path, monkeypatch):
    """Without a header of our own before each block, polars takes the first record for more."""
    the_same_everywhere(tmp_path, "csv", CSV)
    read_csv = pl.read_csv

    def headless(data, **options):
        return read_csv(data[data.index(b"\n") + 1 :], has_header=False, **options)

    monkeypatch.setattr(pl, "read_csv", headless)
    with pytest.raises(AssertionError):
        the_same_everywhere(tmp_path, "csv", [MARK + b"north,1", b"south,2"])
    with pytest.raises((AssertionError, OSError)):
        the_same_everywhere(tmp_path, "csv", [b"x^,1", b"south,2"])


def test_a_mark_that_belongs_to_the_file_is_caught(tmp_path, monkeypatch):
    def only_the_first(block, taken):
        texts = jsonl._decoded(block, taken)
        return [text.lstrip("\ufeff") if n == 0 else text for n, text in enumerate(texts)]

    monkeypatch.setattr(jsonl, "_texts", only_the_first)
    for kind in ("jsonl", "-"):
        with pytest.raises(AssertionError):
            the_same_everywhere(tmp_path, kind, [b'{"a":"u","b":1}', MARK + b'{"a":"u","b":1}'])


def slow_records(data):
    """Records with newlines between quotes, byte by byte: None where longer than the limit."""
    records, record, quotes = [], b"", 0
    for byte in data:
        quotes += byte == 34
        if byte == 10 and quotes % 2 == 0:
            records.append(record)
            record = b""
        else:
            record += bytes([byte])
    kept = [r if 0 < len(r.removesuffix(b"\r")) <= lines.LONGEST else None for r in records]
    return [None if r is None else r.rstrip(b"\r").replace(b"\r\n", b"\n") for r in kept]


def long_records_are_dropped_whole(monkeypatch, data):
    for size in range(1, 40):
        monkeypatch.setattr(lines, "_SIZE", size)
        found = [
            block.record(number) if block.readable[number] else None
            for block in lines.blocks_of(io.BytesIO(data), half=False, quotes=True)
            for number in range(len(block.starts))
        ]
        assert slow_records(data) == found


LONG = [
    b'a,"' + b"y\n" * 12 + b'"\n', b'a,"' + b"y\n" * 7 + b'""\n"",\n' + b"\n" * 9 + b'"\n',
    b"x" * 25 + b"\n", b'"' + b"\n" * 30 + b'"\n', b'"' * 22 + b'\n', b'"' + b"\r\n" * 6 + b'"\n',
    b'"' + b"\r\n" * 20 + b'"\r\n', b"x" * 10 + b"\r\n", b"x" * 11 + b"\r\n", b"x" * 9 + b"\r\r\n",
    b"x" * 10 + b"\r\r\n",
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(LONG)))
def test_a_record_over_the_limit_keeps_its_quotes_wherever_blocks_end(monkeypatch, number):
    monkeypatch.setattr(lines, "LONGEST", 10)
    ok = b'A,"no\nte"\nB,1\n'
    for before in (b"", b"p\n", b"pqr\n", ok):
        long_records_are_dropped_whole(monkeypatch, before + LONG[number] + ok * 3)
        long_records_are_dropped_whole(monkeypatch, before + LONG[number] * 2 + ok)


def test_forgetting_the_quotes_of_what_is_dropped_is_caught(monkeypatch):
    monkeypatch.setattr(lines, "LONGEST", 10)
    monkeypatch.setattr(lines, "_odd", lambda data, quotes: False)
    with pytest.raises(AssertionError):
        long_records_are_dropped_whole(monkeypatch, LONG[0] + b'A,"no\nte"\nB,1\n' * 3)


def test_a_balanced_record_over_a_mebibyte_moves_no_other(tmp_path):
    ok = [b'A,"no\nte"'] * 3000
    for size in (1_100_000, 3_000_000):
        long = b'A,"' + b"y\n" * (size // 2) + b'"'
        for before in (10, 2000):
            records = [*ok[:before], long, *ok[before:]]
            rows = read(tmp_path, "csv", records, multiline=True)
            assert rows.pop(before) is None
            assert [("A", "no\nte")] * len(ok) == rows


def test_many_carriage_returns_are_read_in_linear_time(tmp_path):
    run = b"\r" * (lines.LONGEST - 10)
    rows = read(tmp_path, "csv", [b"a,1" + run, b"b" + run + b"b,2", b"\r\r", b"c,3\r"])
    assert [("a", "1"), ("b" + run.decode() + "b", "2"), None, ("c", "3")] == rows


def test_a_name_is_looked_for_among_the_fields_alone(tmp_path):
    data = [b'{"a":":","b":","}'] * 20
    for name in (":", ",", ", ", "a,", "\\"):
        (tmp_path / "a.jsonl").write_bytes(b"".join(record + b"\n" for record in data))
        (frame,) = Files(["a.jsonl"], folder=tmp_path).batches((name, "b"))
        assert [None] * 20 == frame[name].to_list()
        assert [","] * 20 == frame["b"].to_list()


def test_a_header_of_the_widest_kind_is_parsed(tmp_path):
    names = [f"c{n}" for n in range(csv._MOST_COLUMNS)]
    (tmp_path / "a.csv").write_text(",".join(names) + "\n" + ",".join("x" for _ in names) + "\n")
    (frame,) = Files(["a.csv"], folder=tmp_path).batches(("c0", names[-1]))
    assert [("x", "x")] == frame.rows()
    assert np.dtype("int64") == np.asarray(csv.places(tmp_path, names, ("c0",))).dtype
