"""T10: with the values of the measurement hidden, nothing that a reader sees tells inputs apart.

Every stream below differs from the first in one row, or in rows that are dropped. The measurement
is replaced by numbers that do not depend on the data; then names, order, counts, sizes and bytes of
all files, exit codes and standard output must be equal.
"""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from visits import CONFIG, START, rows_of_visits, write_visits

from tidegauge.cli.counts import OPERATOR
from tidegauge.cli.main import program

ROWS = rows_of_visits()
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


def hide(measure):
    """A measurement that depends on the plan and the step, and on nothing else."""

    def hidden(strategy, state, law, words, exact, first):
        rows = measure(strategy, state, law, words, exact, first)
        return np.arange(rows.size, dtype=np.int64).reshape(rows.shape) + first

    return hidden


def for_readers(talk):
    """Standard error without the lines that say of themselves that they are the operator's."""
    return [line for line in talk.splitlines() if not line.startswith(OPERATOR)]


def seen(folder):
    """All that can be seen of a run: exit codes, output, every byte of the public folder."""
    runner = CliRunner()
    public = folder / "public"
    config = str(folder / "visits.yaml")
    talks = []
    for words in (
        ["validate", config],
        ["plan", config],
        ["run", config, "--until", "2025-01-09T00:00:00Z"],
        ["run", config],
        ["run", config],
        ["export", str(public), "--gauge", "visits", "--view", "running", "--format", "csv"],
        ["export", str(public), "--gauge", "visits", "--view", "2d", "--format", "jsonl"],
    ):
        ended = runner.invoke(program, words)
        assert ended.exception is None or isinstance(ended.exception, SystemExit)
        talk = (ended.exit_code, ended.stdout, for_readers(ended.stderr))
        talks.append(json.dumps(talk).replace(str(folder), "FOLDER"))
    files = {
        str(file.relative_to(public)): file.read_bytes()
        for file in sorted(public.rglob("*"))
        if file.is_file()
    }
    return talks, files


@pytest.fixture
def hidden_values(monkeypatch):
    from tidegauge.engine import documents, store
    from tidegauge.mechanisms import meter

    monkeypatch.setattr(meter, "measure", hide(meter.measure))
    for module in (documents, store):  # random names are functions of their purpose here
        monkeypatch.setattr(module, "store_secret", lambda text: text.encode().ljust(32, b"-"))


@pytest.fixture(scope="module")
def _kept():
    return {}


@pytest.fixture
def expected(_kept, hidden_values, tmp_path):
    if not _kept:
        _kept["seen"] = seen(write_visits(tmp_path / "first", ROWS))
    return _kept["seen"]


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_neighbouring_streams_look_the_same(name, expected, tmp_path):
    talks, files = seen(write_visits(tmp_path / "other", NEIGHBOURS[name]))
    assert expected[0] == talks
    assert list(expected[1]) == list(files)
    for file in files:
        assert expected[1][file] == files[file], file


def test_the_comparison_sees_values_that_are_not_hidden(tmp_path, expected, monkeypatch):
    """The broken twin: a measurement that lets one total through."""
    from tidegauge.mechanisms import meter

    def leaking(strategy, state, law, words, exact, first):
        rows = np.zeros((len(exact), exact.shape[1]), np.int64)
        rows[0, 0] = exact.sum()
        return rows

    monkeypatch.setattr(meter, "measure", leaking)
    one = seen(write_visits(tmp_path / "one", ROWS))
    other = seen(write_visits(tmp_path / "other", NEIGHBOURS["one row less"]))
    assert list(one[1]) == list(other[1])
    assert one[1] != other[1]


def test_the_streams_are_the_year_that_the_config_declares():
    assert f"start: {START:%Y-%m-%dT%H:%M:%SZ}" in CONFIG
    assert len(ROWS) > 500
