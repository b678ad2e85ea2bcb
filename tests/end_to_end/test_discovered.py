"""A gauge that discovers its cells, from files to releases: nothing tells of what is hidden.

T3 and T10: without noise, what is named are the cells above the threshold. Then a hidden item more
or less, or another order of first sight, changes nothing that a reader sees: files, names, sizes,
order, output, exit codes.
"""

import json
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from terminals import on_a_terminal
from test_neighbours import assert_look_the_same, seen
from visits import CONFIG, START, rows_of_visits, write_visits

import tidegauge as tg
from tidegauge.cli.accepted import accepted
from tidegauge.cli.main import program
from tidegauge.engine import found
from tidegauge.engine.store import Store
from tidegauge.planning.verified import plan_from_bytes

DISCOVER = "{shop: discover}, discover: {view: running, expected_items: 64}"
UNKNOWN = (
    CONFIG.replace("{shop: [north, south]}", DISCOVER).replace("1.0e-9", "1.0e-6")
    + "sinks: [{csv: {path: copy.csv}}]\n"
)
ROWS = rows_of_visits()
HIDDEN = [f"2025-01-0{6 + i % 6}T0{i % 9}:00:00Z,rare {i}" for i in range(30)]
NEIGHBOURS = {
    "a hidden item more": [*ROWS, *HIDDEN, "2025-01-06T00:00:00Z,a name of its own"],
    "a hidden item less": [*ROWS, *HIDDEN[1:]],
    "no hidden items": ROWS,
    "a hidden item that comes first": ["2025-01-06T00:00:00Z,0", *ROWS, *HIDDEN],
    "hidden items in another order": [*HIDDEN[::-1], *ROWS],
    "a hidden item that drives a terminal": [*ROWS, *HIDDEN, "2025-01-07T10:00:00Z,\x1b[31m\x07"],
    "a long one": [*ROWS, *HIDDEN, "2025-01-07T10:00:00Z," + "x" * 100_000],
    "none": [*ROWS, *HIDDEN, "2025-01-07T10:00:00Z,"],
}


def without_noise(measure):
    """A measurement that is exact: what is named depends on the counts alone."""

    def exactly(strategy, state, law, words, exact, first, *numbers):
        return strategy.encode(state["encoder"], exact, first)

    return exactly


@pytest.fixture
def no_noise(plain_names, monkeypatch):
    from tidegauge.mechanisms import finder, meter

    for module in (finder, meter):
        monkeypatch.setattr(module, "measure", without_noise(module.measure))


@pytest.fixture(scope="module")
def _kept():
    return {}


@pytest.fixture
def expected(_kept, no_noise, tmp_path):
    if not _kept:
        _kept["seen"] = seen(write_visits(tmp_path / "first", [*ROWS, *HIDDEN], UNKNOWN))
    return _kept["seen"]


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_a_hidden_item_leaves_no_trace(name, expected, tmp_path):
    assert_look_the_same(expected, seen(write_visits(tmp_path / "two", NEIGHBOURS[name], UNKNOWN)))
    assert b"north" in expected[1]["copy.csv"]
    assert not any(b"rare" in data for data in expected[1].values())


def test_a_hidden_item_leaves_no_trace_with_the_values_hidden_too(no_noise, tmp_path, monkeypatch):
    """Numbers that depend on the place alone: the shape of what is published is left to compare."""
    from tidegauge.engine import measuring

    def hide(first, steps, names, what):
        what.measured[:] = np.arange(what.measured.size).reshape(what.measured.shape)
        what.past[:] = 7
        return found.block_of(first, steps, names, what)

    monkeypatch.setattr(measuring, "block_of", hide)
    one, other = (
        seen(write_visits(tmp_path / str(i), NEIGHBOURS[name], UNKNOWN))
        for i, name in enumerate(("a hidden item more", "no hidden items"))
    )
    assert_look_the_same(one, other)


def test_blocks_in_the_order_of_first_sight_would_be_noticed(no_noise, tmp_path, monkeypatch):
    """The broken twin: cells by their private numbers, so that an early event moves a cell."""
    monkeypatch.setattr(found, "ordered", lambda names: np.arange(names.height))
    early = ["2025-01-06T00:00:00Z,south", *(row for row in ROWS if not row.startswith(
        "2025-01-06T00"))]  # fmt: skip
    runs = []
    for number, shop in enumerate(("south", "north")):
        rows = [row.replace("00Z,south", f"00Z,{shop}") if i == 0 else row
                for i, row in enumerate(early)]  # fmt: skip
        folder = write_visits(tmp_path / str(number), rows, UNKNOWN)
        assert CliRunner().invoke(program, ["run", str(folder / "visits.yaml")]).exit_code == 0
        path = sorted((folder / "public/measurements/visits").glob("*"))[0]
        runs.append(pl.read_parquet(path)["shop"].to_list())
    assert runs[0] != sorted(runs[0]) or runs[1] != sorted(runs[1])


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """A run in two parts, with noise, and names that are hard to bear."""
    folder = write_visits(tmp_path_factory.mktemp("discovered"), [], UNKNOWN)
    odd = ["a,b", 'say "no"', "two\nlines", "\x1b[31mred\x07", "e\u0301", "\u00e9", "nul\0", "1"]
    at = [f"{START + timedelta(hours=i % 160):%Y-%m-%dT%H:%M:%SZ}" for i in range(3200)]
    frame = pl.DataFrame({"time": at, "shop": [odd[i % 8] for i in range(3200)]})
    frame.vstack(pl.DataFrame({"time": at[:9], "shop": [f"rare {i}" for i in range(9)]})).write_csv(
        folder / "visits.csv"
    )
    config = UNKNOWN + "csv: {multiline: true}\n"
    (folder / "visits.yaml").write_text(config)
    for words in (["--until", "2025-01-09T00:00:00Z"], []):
        ended = CliRunner().invoke(program, ["run", str(folder / "visits.yaml"), *words])
        assert ended.exit_code == 0, ended.stderr
        assert not set("\x1b\x07\0") & set(ended.stdout + ended.stderr)
    return folder, odd


def test_releases_begin_where_a_cell_is_named_and_stand_by_step_and_bytes(published):
    folder, odd = published
    table = pl.read_parquet(folder / "public/releases/visits/running/*.parquet")
    assert set(odd) == set(table["shop"])
    keys = [(step, shop.encode()) for step, shop in table.select("step", "shop").iter_rows()]
    assert sorted(keys) == keys
    assert len(set(keys)) == len(keys)
    files = pl.read_parquet(folder / "public/measurements/visits/*.parquet")
    named = dict(files.select("shop", "visible_from").iter_rows())
    first = table.group_by("shop").agg(pl.col("step").min(), pl.len())
    assert named == dict(first.select("shop", "step").iter_rows())
    assert all(count == 168 - step + 1 for _, step, count in first.iter_rows())
    plan = plan_from_bytes((folder / "public/plan.json").read_bytes())
    threshold = float(plan.gauges[0].mechanism.discovery.threshold)
    begun = table.join(first, on=["shop", "step"], how="semi")
    assert (begun["value"] > threshold).all()


def test_any_view_has_the_past_of_what_is_named(published):
    folder, odd = published
    public = tg.open(folder / "public")
    for view in ("running", tg.Window(48), tg.Exponential(half_life=12)):
        opened = public.view("visits", view)
        assert (168, len(odd)) == opened.value.shape
        assert sorted((name,) for name in odd) == list(opened.cells)
    running = public.view("visits", "running").table()
    files = pl.read_parquet(folder / "public/releases/visits/running/*.parquet")
    assert running.join(files, on=["step", "shop"], how="semi").equals(files)
    truth = 400
    last = running.filter(pl.col("step") == 168)
    assert ((last["value"] - truth).abs() <= 6 * last["noise_std"]).all()


def test_named_cells_are_not_added_up(published):
    folder, _ = published
    words = ["export", str(folder / "public"), "--view", "running", "--totals"]
    ended = CliRunner().invoke(program, words)
    assert ended.exit_code == 2
    assert "none of all" in " ".join(ended.output.split())


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet", "arrow"])
def test_names_survive_every_format(form, published):
    folder, odd = published
    output = folder / f"export.{form}"
    words = ["export", str(folder / "public"), "--view", "2d", "-o", str(output), "--force"]
    assert CliRunner().invoke(program, words).exit_code == 0
    readers = {"csv": pl.read_csv, "jsonl": pl.read_ndjson, "parquet": pl.read_parquet,
               "arrow": pl.read_ipc}  # fmt: skip
    options = {"schema_overrides": {"shop": pl.String}} if form == "csv" else {}
    assert set(odd) == set(readers[form](output, **options)["shop"])


def test_a_table_and_a_picture_obey_no_name(published):
    folder, _ = published
    words = ["export", str(folder / "public"), "--view", "running", "--format", "table"]
    shown = CliRunner().invoke(program, words)
    assert shown.exit_code == 0
    assert not set("\x1b\x07\0") & set(shown.stdout)
    assert "two\\nlines" in shown.stdout
    assert not any(line.startswith("lines") for line in shown.stdout.splitlines())
    pytest.importorskip("matplotlib")
    words = ["plot", str(folder / "public"), "--view", "running", "-o", str(folder / "a.svg")]
    drawn = CliRunner().invoke(program, words)
    assert drawn.exit_code == 0, drawn.output
    assert not set("\x1b\x07\0") & set((folder / "a.svg").read_text())


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_terminal_obeys_no_name(form, published):
    folder, _ = published
    words = ("export", "public", "--view", "running", "--format", form)
    code, shown = on_a_terminal(*words, cwd=folder)
    assert code == 0
    assert "red" in shown
    assert "two\\nlines" in shown
    assert not set("\x1b\x07\0") & set(shown)


def test_while_nothing_is_named_every_command_ends_as_ever(tmp_path):
    folder = write_visits(tmp_path, ["2025-01-06T00:00:00Z,alone"], UNKNOWN)
    public, picture = str(folder / "public"), folder / "a.svg"
    run = CliRunner().invoke(program, ["run", str(folder / "visits.yaml")])
    assert run.exit_code == 0
    assert "nothing is named yet" in run.stdout
    for form in ("csv", "table", "jsonl"):
        words = ["export", public, "--view", "running", "--format", form]
        assert CliRunner().invoke(program, words).exit_code == 0
    pytest.importorskip("matplotlib")
    ended = CliRunner().invoke(program, ["plot", public, "-o", str(picture)])
    assert ended.exit_code == 0, ended.output
    assert picture.exists()


def test_only_the_operator_hears_how_many_items_there_were(published):
    folder, _ = published
    words = ["status", str(folder / "visits.tidegauge"), "--json"]
    told = json.loads(CliRunner().invoke(program, words).stdout)
    assert 17 == told["operator_only"]["counters"]["visits: items"]


def test_a_missing_file_is_written_anew_and_a_changed_one_refused(published):
    folder, _ = published
    public = folder / "public"
    gone = sorted((public / "releases/visits/running").glob("*"))[-1]
    before = gone.read_bytes()
    gone.unlink()
    assert CliRunner().invoke(program, ["run", str(folder / "visits.yaml")]).exit_code == 0
    assert before == gone.read_bytes()
    path = sorted((public / "measurements/visits").glob("*"))[-1]
    before = path.read_bytes()
    try:
        table = pl.read_parquet(path).with_columns(pl.col("visible_from") + 1)
        table.write_parquet(path, metadata=pl.read_parquet_metadata(path))
        ended = CliRunner().invoke(program, ["export", str(public), "--view", "running"])
        assert ended.exit_code == 65 or "as it was published" in ended.stderr, ended.stderr
    finally:
        path.write_bytes(before)


def test_private_state_is_erased_with_the_last_step(published):
    folder, _ = published
    data = (folder / "visits.tidegauge").read_bytes()
    assert b"rare" not in data
    public = b"".join(p.read_bytes() for p in (folder / "public").rglob("*") if p.is_file())
    assert b"rare" not in public


def test_every_opening_has_a_key_of_its_own_and_old_steps_keep_theirs(tmp_path):
    """A cell named by the third opening has the noise of its past from the keys of all three."""
    folder = write_visits(tmp_path, rows_of_visits(), UNKNOWN.replace("sinks", "# sinks"))
    config = str(folder / "visits.yaml")
    for until in ("2025-01-06T12:00:00Z", "2025-01-07T00:00:00Z", "2025-01-09T00:00:00Z"):
        assert CliRunner().invoke(program, ["run", config, "--until", until]).exit_code == 0
    plan, settings, _ = accepted(Path(config), None)
    with Store(
        settings.path(settings.store), fingerprint=plan.fingerprint, canonical=plan.canonical(),
        gauges=["visits"],
    ) as store:  # fmt: skip
        keys = store.noise_keys()
        assert [0, 12, 24] == [first for first, _ in keys]
        assert 3 == len({key for _, key in keys})


@pytest.mark.parametrize("lost", ["number < -15", "number = -3"])
def test_a_store_that_lost_items_or_keys_is_refused(lost, tmp_path):
    """Another item would get the number, and the noise, of a lost one."""
    folder = write_visits(tmp_path, rows_of_visits(), UNKNOWN)
    config, store = str(folder / "visits.yaml"), folder / "visits.tidegauge"
    words = ["run", config, "--until", "2025-01-08T00:00:00Z"]
    assert CliRunner().invoke(program, words).exit_code == 0
    with closing(sqlite3.connect(store)) as connection, connection:
        gone = connection.execute(f"DELETE FROM state WHERE {lost.replace('number', 'gauge')}")
        assert gone.rowcount
    ended = CliRunner().invoke(program, ["run", config])
    assert ended.exit_code == 5
    assert "damaged" in ended.stderr


def test_a_view_asked_later_is_published_from_the_step_on_at_which_a_cell_was_named(tmp_path):
    folder = write_visits(tmp_path, [*rows_of_visits(), *HIDDEN], UNKNOWN)
    config = folder / "visits.yaml"
    words = ["run", str(config), "--until", "2025-01-10T00:00:00Z"]
    assert CliRunner().invoke(program, words).exit_code == 0
    before = {path: path.read_bytes() for path in folder.rglob("public/*/*/**/*.parquet")}
    config.write_text(config.read_text().replace("1d]", "1d, 12h]"))
    assert CliRunner().invoke(program, ["run", str(config)]).exit_code == 0
    assert before
    assert all(path.read_bytes() == data for path, data in before.items())
    tables = [pl.read_parquet(folder / f"public/releases/visits/{view}/*.parquet")
              for view in ("running", "window_12h")]  # fmt: skip
    assert tables[0].select("step", "shop").equals(tables[1].select("step", "shop"))
    assert len(tables[0])


def test_names_without_a_delta_end_as_a_config_that_is_wrong(tmp_path):
    pure = UNKNOWN.replace(", delta: 1.0e-6", "")
    folder = write_visits(tmp_path, ROWS, pure)
    for command in ("validate", "plan", "run"):
        ended = CliRunner().invoke(program, [command, str(folder / "visits.yaml")])
        assert ended.exit_code == 78
        assert "that chance is a delta" in ended.stderr


def test_a_window_that_discovers_says_for_whom_it_holds(tmp_path):
    window = UNKNOWN.replace("view: running", "view: 1d")
    folder = write_visits(tmp_path, ROWS, window)
    ended = CliRunner().invoke(program, ["plan", str(folder / "visits.yaml")])
    assert "for streams fixed in advance" in ended.stdout
    assert "in 1 day passes" in ended.stdout
    ended = CliRunner().invoke(program, ["run", str(folder / "visits.yaml")])
    assert ended.exit_code == 0
    assert "streams fixed in advance" in (folder / "public/PRIVACY.md").read_text()
