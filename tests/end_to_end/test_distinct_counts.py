"""Counts of different values by the program: exit codes, odd values, what a reader sees."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from terminals import in_process as tidegauge
from test_neighbours import assert_look_the_same, for_readers, without_the_operators
from visits import CONFIG, rows_of_visits, write_visits

from tidegauge.cli.main import program

GAUGES = """\
  kinds: {count_distinct: {column: shop, window: 1d}}
  ever: {count_distinct: {column: shop, window: running}, by: {shop: [north, south]}}
"""
DISTINCT = CONFIG.replace(
    "  visits: {count: {}, by: {shop: [north, south]}, views: [step, running, 1d]}\n", GAUGES
)
ROWS = rows_of_visits()
ODD = {
    "one row less": ROWS[1:],
    "a value of its own": [*ROWS, "2025-01-07T10:00:00Z,Zo\u00eb \u202e\x1b[31m"],
    "decomposed": [*ROWS, "2025-01-07T10:00:00Z,Zoe\u0308"],
    "a thousand values": [*ROWS, *(f"2025-01-07T10:00:00Z,{n}" for n in range(1000))],
    "no value": [*ROWS, "2025-01-07T10:00:00Z,"],
    "quoted emptiness": [*ROWS, '2025-01-07T10:00:00Z,""'],
    "a long value": [*ROWS, "2025-01-07T10:00:00Z," + "x" * 1_000_000],
    "binary": [*ROWS, "2025-01-07T10:00:00Z,\x00\x01\x7f"],
    "after the end": [*ROWS, "2025-01-13T00:00:00Z,south"],
    "no rows": [],
    "another order": sorted(ROWS),
}


def seen(folder):
    """Exit codes, output and every published byte."""
    public, config = str(folder / "public"), str(folder / "visits.yaml")
    talks = []
    for words in (
        ["validate", config],
        ["plan", config, "--compare"],
        ["run", config, "--until", "2025-01-09T00:00:00Z"],
        ["run", config],
        ["export", public, "--gauge", "kinds", "--view", "window_1d", "--format", "csv"],
        ["export", public, "--gauge", "ever", "--view", "running", "--format", "jsonl"],
        ["export", public, "--gauge", "kinds", "--view", "2d", "--format", "csv"],
        ["status", str(folder / "visits.tidegauge")],
    ):
        ended = CliRunner().invoke(program, words)
        assert ended.exception is None or isinstance(ended.exception, SystemExit)
        out = without_the_operators(ended.stdout) if words[0] == "status" else ended.stdout
        talks.append(
            json.dumps((ended.exit_code, out, for_readers(ended.stderr))).replace(
                str(folder), "FOLDER"
            )
        )
    files = {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted((folder / "public").rglob("*"))
        if file.is_file()
    }
    return talks, files


@pytest.mark.slow
def test_streams_with_other_values_look_the_same(hidden_values, tmp_path):
    """T10: nothing but the measurement tells a reader which values there were, or how many."""
    first = seen(write_visits(tmp_path / "first", ROWS, DISTINCT))
    codes = [json.loads(talk)[0] for talk in first[0]]
    assert [0, 0, 0, 0, 0, 0, 78, 0] == codes  # another window is no view
    assert {"plan.json", "PRIVACY.md"} < {name.split("/")[1] for name in first[1]}
    for number, (name, rows) in enumerate(ODD.items()):
        other = seen(write_visits(tmp_path / str(number), rows, DISTINCT))
        assert first[0] == other[0], name
        assert_look_the_same(first, other)


def test_the_comparison_sees_a_number_of_values_that_leaks(monkeypatch, tmp_path):
    """The broken twin: a measurement that lets a count through."""
    from tidegauge.mechanisms import meter

    def leaking(strategy, state, law, words, exact, first):
        rows = np.zeros((len(exact), exact.shape[1]), np.int64)
        rows[0, 0] = exact.sum()
        return rows

    monkeypatch.setattr(meter, "measure", leaking)
    one = seen(write_visits(tmp_path / "one", ROWS, DISTINCT))
    other = seen(write_visits(tmp_path / "other", ODD["a thousand values"], DISTINCT))
    assert one[1] != other[1]


def test_0_a_run_publishes_the_counts_and_78_another_window_is_refused(tmp_path):
    shop = write_visits(tmp_path / "shop", ROWS, DISTINCT)
    code, out, err = tidegauge("run", "visits.yaml", cwd=shop)
    assert 0 == code, err
    assert "window_1d" in out
    code, out, err = tidegauge("export", "public", "--gauge", "kinds", "--view", "2d", cwd=shop)
    assert (78, "") == (code, out)
    assert "gauge of their own" in err


def test_78_a_window_with_views(tmp_path):
    config = DISTINCT.replace("window: 1d}}", "window: 1d}, views: [7d]}")
    shop = write_visits(tmp_path / "shop", ROWS, config)
    code, _, err = tidegauge("run", "visits.yaml", cwd=shop)
    assert 78 == code
    assert "each window is a gauge of its own" in err
    assert not (shop / "public").exists()


def test_78_the_window_of_a_store_cannot_be_changed(tmp_path):
    shop = write_visits(tmp_path / "shop", ROWS, DISTINCT)
    assert 0 == tidegauge("run", "visits.yaml", "--until", "2025-01-07T00:00:00Z", cwd=shop)[0]
    (shop / "visits.yaml").write_text(DISTINCT.replace("window: 1d", "window: 2d"))
    code, _, err = tidegauge("run", "visits.yaml", cwd=shop)
    assert 78 == code
    assert "fingerprint" in err or "declares another" in err


def test_69_a_column_of_lists_has_no_values(tmp_path):
    import polars as pl

    shop = write_visits(tmp_path / "shop", ROWS, DISTINCT.replace("visits.csv", "v.parquet"))
    frame = pl.DataFrame({"time": ["2025-01-07T10:00:00Z"], "shop": [1.5]})
    frame.write_parquet(shop / "v.parquet")
    code, _, err = tidegauge("run", "visits.yaml", cwd=shop)
    assert 69 == code
    assert "1.5" not in err
    assert not (shop / "visits.tidegauge").exists()


def test_a_picture_says_what_it_counts(tmp_path):
    pytest.importorskip("matplotlib")
    shop = write_visits(tmp_path / "shop", ROWS, DISTINCT)
    assert 0 == tidegauge("run", "visits.yaml", cwd=shop)[0]
    words = ["plot", "public", "--gauge", "kinds", "-o", "kinds.svg"]
    assert 0 == tidegauge(*words, cwd=shop)[0]
    assert "number of different values of shop in 1 day" in (shop / "kinds.svg").read_text()
