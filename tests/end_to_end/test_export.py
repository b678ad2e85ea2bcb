"""Export and plot: all formats, views thought of later, and what is refused."""

import io
import json
import os
import subprocess
import sys
from datetime import datetime, timedelta

import numpy as np
import polars as pl
import pytest
from terminals import environment, on_a_terminal
from terminals import in_process as tidegauge
from visits import CONFIG, START, rows_of_visits, write_visits

import tidegauge as tg

COLUMNS = [
    "gauge", "view", "shop", "step", "step_start", "step_end", "value", "noise_std", "lower",
    "upper", "level", "band", "complete", "reason",
]  # fmt: skip


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    shop = write_visits(tmp_path_factory.mktemp("published"), rows_of_visits())
    code, _, err = tidegauge("run", "visits.yaml", cwd=shop)
    assert 0 == code, err
    return shop


def export(folder, *words):
    code, out, err = tidegauge("export", "public", *words, cwd=folder)
    assert 0 == code, err
    return out, err


def read(path):
    match path.suffix:
        case ".csv":
            return pl.read_csv(path, try_parse_dates=True)
        case ".jsonl":
            return pl.read_ndjson(path)
        case ".parquet":
            return pl.read_parquet(path)
        case _:
            return pl.read_ipc(path)


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet", "arrow"])
def test_all_formats_hold_the_same_releases(published, ending):
    export(published, "--view", "running", "-o", f"running.{ending}")
    table = read(published / f"running.{ending}")
    assert COLUMNS == table.columns
    assert 7 * 24 * 3 == len(table)
    folder = published / "public" / "releases" / "visits" / "running"
    stored = pl.concat([pl.read_parquet(file) for file in sorted(folder.glob("*.parquet"))])
    np.testing.assert_array_equal(stored["value"], table["value"])
    assert stored["shop"].cast(pl.String).to_list() == table["shop"].cast(pl.String).to_list()
    ends = table["step_end"].cast(pl.String).str.slice(0, 13).str.replace(" ", "T").to_list()
    assert "2025-01-06T01" == ends[0]
    assert "2025-01-13T00" == ends[-1]


def test_standard_output_gets_data_and_nothing_else(published):
    out, err = export(published, "--view", "running", "--format", "csv")
    assert COLUMNS == pl.read_csv(io.StringIO(out)).columns
    assert "" == err
    out, err = export(published, "--view", "running", "--json")
    rows = [json.loads(line) for line in out.splitlines()]
    assert COLUMNS == list(rows[0])
    assert "2025-01-06T00:00:00Z" == rows[0]["step_start"]


@pytest.mark.parametrize("form", ["csv", "jsonl", "arrow"])
def test_a_reader_that_had_enough_is_no_fault(published, form):
    words = [sys.executable, "-m", "tidegauge", "export", "public", "--view", "running"]
    process = subprocess.Popen(
        [*words, "--format", form],
        cwd=published, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    process.stdout.close()  # before anything is written
    with process.stderr:
        assert b"" == process.stderr.read()
    assert 74 == process.wait()


def test_a_table_is_text(published):
    out, _ = export(published, "--view", "1d", "--format", "table")
    head = out.splitlines()[1].split()
    assert ["shop", "step", "step_start"] == head[:3]


def test_a_view_thought_of_later_tells_its_ratio(published):
    _, err = export(published, "--view", "2d", "-o", "later.csv")
    assert "was not planned" in err
    assert "ratio" in err
    later = read(published / "later.csv")
    assert ["window_2d"] == later["view"].unique().to_list()
    exact = np.cumsum(exact_counts(), axis=0)
    exact[48:] -= exact[:-48].copy()
    error = later["value"].to_numpy().reshape(-1, 3) - exact
    stds = later["noise_std"].to_numpy().reshape(-1, 3)
    assert np.abs(error / stds).max() < 6
    assert 0.5 < np.sqrt(np.mean((error / stds) ** 2)) < 1.5


def exact_counts():
    """Visits of every hour at north, south and elsewhere."""
    counts = np.zeros((168, 3))
    for row in rows_of_visits():
        time, shop = row.split(",")
        hour = (datetime.fromisoformat(time) - START) // timedelta(hours=1)
        counts[hour, {"north": 0, "south": 1}.get(shop, 2)] += 1
    return counts


@pytest.mark.parametrize(
    "view", ["{half_life: 12h}", "{window: 1d, every: 1d}", "running", "step", "36h"]
)
def test_views_are_written_as_in_a_config(published, view):
    export(published, "--view", view, "-o", "view.csv", "--force")
    steps = read(published / "view.csv")["step"].unique().sort().to_list()
    assert (list(range(24, 169, 24)) if "every" in view else list(range(1, 169))) == steps


def test_nonnegative_is_a_column_of_its_own_and_marked(published):
    export(published, "--view", "step", "--nonnegative", "-o", "step.csv")
    table = read(published / "step.csv")
    assert [*COLUMNS, "value_nonnegative"] == table.columns
    assert table["value"].min() < 0
    expected = np.maximum(table["value"].to_numpy(), 0)
    np.testing.assert_array_equal(expected, table["value_nonnegative"])


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["public", "--view", "9q", "-o", "x.csv"], 2, "9q"),
        (["public", "--view", "90m", "-o", "x.csv"], 2, "whole number of steps"),
        (["public", "--view", "running", "--gauge", "visit", "-o", "x.csv"], 2, "visits"),
        (["public", "--view", "running", "-o", "x.xlsx"], 2, ".parquet"),
        (["nowhere", "--view", "running", "-o", "x.csv"], 69, "plan.json"),
        (["public", "--view", "running", "-o", "no/such/folder/x.csv"], 74, "x.csv"),
    ],
)
def test_what_cannot_be_exported_is_refused_and_nothing_is_written(published, words, code, said):
    ended, out, err = tidegauge("export", *words, cwd=published)
    assert (code, "") == (ended, out), err
    assert said in err
    assert not list(published.glob("x.*"))


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_a_picture_of_all_views(published, ending):
    code, _, err = tidegauge("plot", "public", "-o", f"all.{ending}", cwd=published)
    assert 0 == code, err
    assert (published / f"all.{ending}").stat().st_size > 10_000


def test_a_picture_says_what_it_shows(published):
    code, _, err = tidegauge("plot", "public", "--view", "running", "-o", "one.svg", cwd=published)
    assert 0 == code, err
    text = (published / "one.svg").read_text()
    for word in ("count since the start", "north", "south", "other", "95 % interval"):
        assert word in text, word


def test_the_same_releases_give_the_same_picture(published):
    for name in ("a.svg", "b.svg"):
        assert 0 == tidegauge("plot", "public", "-o", name, cwd=published)[0]
    assert (published / "a.svg").read_bytes() == (published / "b.svg").read_bytes()


def test_a_picture_of_another_kind_is_refused(published):
    assert 2 == tidegauge("plot", "public", "-o", "x.gif", cwd=published)[0]


@pytest.mark.parametrize("words", [["export", "--view", "step", "-o"], ["plot", "-o"]])
def test_nothing_is_written_into_the_public_folder(published, words):
    if not (published / "way").exists():
        (published / "way").symlink_to("public")
    ending = "csv" if words[0] == "export" else "png"
    before = sorted(published.rglob("*"))
    for place in (f"public/x.{ending}", f"way/x.{ending}", f"public/releases/../x.{ending}"):
        code, out, err = tidegauge(words[0], "public", *words[1:], place, cwd=published)
        assert (2, "") == (code, out)
        assert "outside public" in err
    assert before == sorted(published.rglob("*"))


def test_a_title_cannot_forge_the_guarantee_of_a_picture(published, tmp_path, monkeypatch):
    forged = "about: {title: '# What is promised # What is promised Nothing can be learned.'}"
    shop = write_visits(tmp_path, rows_of_visits(), config=f"{CONFIG}{forged}\n")
    assert 0 == tidegauge("run", "visits.yaml", cwd=shop)[0]
    captions = []
    monkeypatch.setattr(
        "tidegauge.plots.releases_figure", lambda *_, **words: captions.append(words["caption"])
    )
    for folder in (shop, published):
        assert 0 == tidegauge("plot", "public", "-o", "x.png", cwd=folder)[0]
    assert captions[0] == captions[1]
    assert captions[0].startswith("Whatever a reader looks for")
    assert captions[0] in (published / "public" / "PRIVACY.md").read_text()


def test_a_reader_chooses_the_intervals(published):
    export(published, "--view", "running", "-o", "plain.parquet")
    export(published, "--view", "running", "--band", "simultaneous", "-o", "whole.parquet")
    export(published, "--view", "running", "--level", "0.5", "-o", "half.parquet")
    plain, whole, half = (
        pl.read_parquet(published / f"{name}.parquet") for name in ("plain", "whole", "half")
    )
    assert plain["value"].equals(whole["value"])
    assert plain["value"].equals(half["value"])
    assert (half["upper"] < plain["upper"]).all()
    assert (whole["upper"] > plain["upper"]).all()
    opened = tg.open(published / "public").view("visits", "running", level=0.5)
    assert opened.half_width[-1] == pytest.approx((half["upper"] - half["value"])[-1])
    assert {("simultaneous", 0.95)} == set(whole.select("band", "level").rows())
    assert {("pointwise", 0.5)} == set(half.select("band", "level").rows())
    about = pl.read_parquet_metadata(published / "whole.parquet")
    assert ("simultaneous", "0.95") == (about["band"], about["level"])


@pytest.mark.parametrize("level", ["1", "0", "95", "nan", "-0.1"])
def test_levels_that_no_interval_has_are_refused(published, level):
    code, out, err = tidegauge(
        "export", "public", "--view", "step", "--level", level, cwd=published
    )
    assert (2, "") == (code, out)
    assert "Expected" in err
    assert "level" in err


@pytest.mark.parametrize(
    "view", ["{polynomial: 1e400}", "{half_life: 1e999}", "{factor: 1e301}", "{window: 1e400}"]
)
def test_a_view_beyond_all_numbers_is_a_wrong_use(published, view):
    code, out, err = tidegauge("export", "public", "--view", view, cwd=published)
    assert (2, "") == (code, out)
    assert "Expected" in err


@pytest.mark.parametrize("command", [["export", "--view", "running"], ["plot"]])
@pytest.mark.parametrize("name", ["visits.tidegauge", "visits.csv", "visits.yaml", "visits.mark"])
def test_nothing_that_is_there_is_written_over_unasked(published, tmp_path, command, name):
    ending = ".csv" if command[0] == "export" else ".png"
    there = tmp_path / f"there{ending}"
    kept = (published / name).read_bytes()
    there.write_bytes(kept)
    words = [command[0], "public", *command[1:], "-o", str(there)]
    code, out, err = tidegauge(*words, cwd=published)
    assert (2, "") == (code, out)
    assert "--force" in err
    assert kept == there.read_bytes()
    code, out, err = tidegauge(*words, "--force", cwd=published)
    if name == "visits.tidegauge":  # a store stays whatever is asked for
        assert (2, kept) == (code, there.read_bytes())
    else:
        assert (0, True) == (code, kept != there.read_bytes()), err


def test_what_is_no_file_is_not_replaced_by_one(published, tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    for target in (tmp_path / "pipe.csv", tmp_path):
        words = ["--view", "running", "--format", "csv", "-o", str(target), "--force"]
        code, _, err = tidegauge("export", "public", *words, cwd=published)
        assert 2 == code
        assert "no file at all" in err


def test_a_pipe_gets_every_row_and_a_terminal_the_latest(published):
    out, _ = export(published, "--view", "step")
    rows = out.splitlines()
    assert rows[0] == ",".join(COLUMNS)
    assert len(rows) == 1 + 7 * 24 * 3
    code, shown = on_a_terminal("export", "public", "--view", "step", cwd=published, COLUMNS="200")
    assert 0 == code
    assert "The last 40 of 504 rows" in shown
    assert "2025-01-13T00:00:00Z" in shown
    assert "2025-01-06T00:00:00Z" not in shown
    assert "2025-01-06T00:00:00Z" in export(published, "--view", "step", "--format", "table")[0]


@pytest.mark.parametrize(
    ("cells", "views", "columns"), [(2, 2, 2), (3, 2, 3), (5, 2, 1), (3, 1, 2)]
)
def test_panels_of_one_view_share_rows_with_no_other(tmp_path, monkeypatch, cells, views, columns):
    shops = ", ".join(f"s{n}" for n in range(cells - 1))
    config = CONFIG.replace("north, south", shops)
    shop = write_visits(tmp_path, rows_of_visits(days=1), config)
    until = "2025-01-07T00:00:00Z"
    assert 0 == tidegauge("run", "visits.yaml", "--until", until, cwd=shop)[0]
    drawn = []
    monkeypatch.setattr("tidegauge.plots.releases_figure", lambda *_, **words: drawn.append(words))
    chosen = [word for view in ("step", "running")[:views] for word in ("--view", view)]
    assert 0 == tidegauge("plot", "public", *chosen, "-o", "x.png", cwd=shop)[0]
    assert columns == drawn[0]["columns"]
