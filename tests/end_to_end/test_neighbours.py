"""T10: with the values of the measurement hidden, nothing that a reader sees tells inputs apart.

Every stream below differs from the first of its kind in one row, or in rows that are dropped: CSV
here, JSON lines, Parquet and standard input in ``streams.py``. The measurement is replaced by
numbers that do not depend on the data; then names, order, counts, sizes and bytes of all files,
pictures, exit codes and standard output must be equal, and so must all of ``status`` but what it
marks as the operator's.
"""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from streams import FIRST, NEIGHBOURS_OF, not_utf8, write_stream
from visits import CONFIG, START, rows_of_visits, write_visits

from tidegauge.cli.counts import OPERATOR
from tidegauge.cli.main import program

ROWS = rows_of_visits()
MADE = ("copy.csv", "day.parquet")
COPIED = CONFIG + "sinks: [{csv: {path: copy.csv}}]\n"
NEIGHBOURS = {
    "one row less": ROWS[1:],
    "one row more": [*ROWS, "2025-01-07T10:00:00Z,north"],
    "the last row in another cell": [*ROWS[:-1], ROWS[-1].split(",")[0] + ",nowhere"],
    "a name of its own": [*ROWS, "2025-01-07T10:00:00Z,Zo\u00eb \u202e\x1b[31m"],
    "no name": [*ROWS, "2025-01-07T10:00:00Z,"],
    "only in 2099": [*ROWS, "2099-01-01T00:00:00Z,north"],
    "before the start": [*ROWS, "1969-12-31T23:59:59Z,north"],
    "after the end": [*ROWS, "2025-01-13T00:00:00Z,south"],
    "no time": [*ROWS, ",north"],
    "no time at all": [*ROWS, "not a time,north"],
    "a naive time": [*ROWS, "2025-01-07T10:00:00,north"],
    "too many fields": [*ROWS, "2025-01-07T10:00:00Z,north,1,2,3"],
    "too few fields": [*ROWS, "2025-01-07T10:00:00Z"],
    "an open quote": [*ROWS, '2025-01-07T10:00:00Z,"north'],
    "an open quote in front": ['2025-01-07T10:00:00Z,"north', *ROWS],
    "an empty line": [*ROWS[:5], "", *ROWS[5:]],
    "a long line": [*ROWS, "2025-01-07T10:00:00Z," + "x" * 1_000_000],
    "a binary line": [*ROWS, "\x00\x01\x02,\x7f"],
    "no rows": [],
    "another order": sorted(ROWS),
}


def for_readers(talk):
    """Standard error without the lines that say of themselves that they are the operator's."""
    return [line for line in talk.splitlines() if not line.startswith(OPERATOR)]


def seen(folder, stdin=None):
    """All that can be seen of a run: exit codes, output, every byte of what is published."""
    runner = CliRunner()
    public = str(folder / "public")
    config, store = str(folder / "visits.yaml"), str(folder / "visits.tidegauge")
    talks = []
    for words in (
        ["validate", config],
        ["plan", config],
        ["run", config, "--until", "2025-01-09T00:00:00Z"],
        ["run", config],
        ["run", config],
        ["export", public, "--gauge", "visits", "--view", "running", "--format", "csv"],
        ["export", public, "--gauge", "visits", "--view", "2d", "--format", "jsonl"],
        ["export", public, "--gauge", "visits", "--view", "1d", "-o", f"{folder}/day.parquet"],
        ["status", store],
        ["status", store, "--json"],
    ):
        ended = runner.invoke(program, words, input=stdin if words[0] == "run" else None)
        assert ended.exception is None or isinstance(ended.exception, SystemExit)
        out = without_the_operators(ended.stdout) if words[0] == "status" else ended.stdout
        talk = (ended.exit_code, out, for_readers(ended.stderr))
        talks.append(json.dumps(talk).replace(str(folder), "FOLDER"))
    files = {
        str(file.relative_to(folder)): file.read_bytes()
        for file in [*sorted((folder / "public").rglob("*")), *(folder / name for name in MADE)]
        if file.is_file()
    }
    return talks, files


def drawn(folder):
    """The picture of what a run has published, and what was said about it."""
    pytest.importorskip("matplotlib")
    words = ["plot", str(folder / "public"), "-o", str(folder / "visits.svg")]
    ended = CliRunner().invoke(program, words)
    picture = (folder / "visits.svg").read_bytes()
    assert (0, True) == (ended.exit_code, b"<svg" in picture)
    return picture, (ended.stdout + ended.stderr).replace(str(folder), "FOLDER")


def without_the_operators(status):
    """What ``status`` says of the plan and the steps; exact counts of rows follow it."""
    if status.startswith("{"):
        document = json.loads(status)
        assert document.pop("operator_only")["counters"]
        return document
    told, operators = status.split("For the operator alone: exact, and not private")
    assert "clamped" in operators
    return told


@pytest.fixture(scope="module")
def _kept():
    return {}


@pytest.fixture
def expected(_kept, hidden_values, tmp_path):
    if not _kept:
        _kept["seen"] = seen(write_visits(tmp_path / "first", ROWS, COPIED))
    return _kept["seen"]


def assert_look_the_same(one, other):
    assert one[0] == other[0]
    assert list(one[1]) == list(other[1])
    for file in one[1]:
        assert one[1][file] == other[1][file], file


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_neighbouring_streams_look_the_same(name, expected, tmp_path):
    other = seen(write_visits(tmp_path / "other", NEIGHBOURS[name], COPIED))
    assert_look_the_same(expected, other)


@pytest.mark.parametrize("kind", NEIGHBOURS_OF)
def test_neighbouring_streams_of_other_kinds_look_the_same(kind, hidden_values, tmp_path):
    """All neighbors of a kind in one test: one run of the first stream serves them."""
    first = seen(*write_stream(tmp_path / "first", kind, FIRST[kind], COPIED))
    assert [0] * len(first[0]) == [json.loads(talk)[0] for talk in first[0]]
    assert {"day.parquet", "copy.csv"} <= set(first[1])
    for number, (name, stream) in enumerate(NEIGHBOURS_OF[kind].items()):
        other = seen(*write_stream(tmp_path / str(number), kind, stream, COPIED))
        for one, two in zip(first[0], other[0], strict=True):
            assert one == two, name
        assert_look_the_same(first, other)
        if name == "one row more":
            assert drawn(tmp_path / "first") == drawn(tmp_path / str(number))


def test_pictures_of_neighbouring_streams_are_the_same(hidden_values, tmp_path):
    """Of CSV; of the other kinds the test above draws the streams that it has run."""
    folders = [write_visits(tmp_path / name, rows, COPIED) for name, rows in
               (("one", ROWS), ("two", NEIGHBOURS["a name of its own"]))]  # fmt: skip
    one, other = (seen(folder) for folder in folders)
    assert_look_the_same(one, other)
    assert drawn(folders[0]) == drawn(folders[1])


def test_what_is_set_aside_as_the_operators_tells_streams_apart(hidden_values, tmp_path):
    """The counts that ``status`` shows are exact: that is why they are no reader's."""
    counts = []
    for name, rows in (("one", ROWS), ("other", ROWS[1:])):
        folder = write_visits(tmp_path / name, rows)
        for words in (["run", str(folder / "visits.yaml")],
                      ["status", str(folder / "visits.tidegauge"), "--json"]):  # fmt: skip
            ended = CliRunner().invoke(program, words)
        counts.append(json.loads(ended.stdout)["operator_only"]["counters"]["records"])
    assert [len(ROWS), len(ROWS) - 1] == counts


def test_the_comparison_sees_values_that_are_not_hidden(tmp_path, expected, monkeypatch):
    """The broken twin: a measurement that lets one total through."""
    from tidegauge.mechanisms import meter

    def leaking(strategy, state, law, words, exact, first):
        rows = np.zeros((len(exact), exact.shape[1]), np.int64)
        rows[0, 0] = exact.sum()
        return rows

    monkeypatch.setattr(meter, "measure", leaking)
    one = seen(write_visits(tmp_path / "one", ROWS, COPIED))
    other = seen(write_visits(tmp_path / "other", NEIGHBOURS["one row less"], COPIED))
    assert list(one[1]) == list(other[1])
    assert one[1] != other[1]


def test_the_streams_are_the_year_that_the_config_declares():
    assert f"start: {START:%Y-%m-%dT%H:%M:%SZ}" in CONFIG
    assert len(ROWS) > 500


def test_text_that_is_no_utf8_in_a_parquet_file_looks_the_same(hidden_values, tmp_path):
    pytest.importorskip("pyarrow")
    one = seen(*write_stream(tmp_path / "one", "parquet", FIRST["parquet"], COPIED))
    assert_look_the_same(one, seen(*write_stream(tmp_path / "two", "parquet", not_utf8(), COPIED)))
