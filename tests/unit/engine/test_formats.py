"""Golden files: every format that a reader, another program or a later version has to read."""

import json
import sqlite3
import tempfile
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import polars as pl
import pytest
from recovery import stand

from tidegauge.engine.documents import documents, spend_of, spends_in
from tidegauge.engine.files import _prefix, put, put_by, put_new, safe_name, sweep
from tidegauge.engine.mark import Mark, MarkFile
from tidegauge.engine.packing import pack, unpack
from tidegauge.engine.public import PublicFolder
from tidegauge.engine.releases import Published, published_views
from tidegauge.engine.sinks import as_text
from tidegauge.engine.spends import Spend
from tidegauge.errors import InvalidInput, InvalidParameter, StoreBehind, WriteFailed
from tidegauge.planning.settings import Sink
from tidegauge.strategies.decay import Window

PLAN = stand.plan_of(end=30)
GAUGE = PLAN.gauges[0]
COLUMNS = [
    "gauge", "view", "kind", "step", "step_start", "step_end", "value", "noise_std", "lower",
    "upper", "level", "band", "complete", "reason",
]  # fmt: skip


def view_of(name):
    return next(view for view in published_views(PLAN.clock, GAUGE) if view.name == name)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = stand.Place(tmp_path_factory.mktemp("formats"))
    place.run(PLAN, stand.rows())
    return place


def test_the_columns_of_a_release():
    table = view_of("day").table(23, np.arange(8.0).reshape(2, 4))
    assert COLUMNS == table.columns
    first = table.row(5, named=True)
    std, half = (float(x) for x in (first["noise_std"], first["upper"] - first["value"]))
    assert {
        "gauge": "flights", "view": "day", "kind": "B6", "step": 25, "value": 5.0, "level": 0.95,
        "band": "pointwise",
        "complete": True, "reason": None, "lower": 5.0 - half, "upper": 5.0 + half,
        "noise_std": std, "step_start": stand.datetime(2013, 1, 2, 0),
        "step_end": stand.datetime(2013, 1, 2, 1),
    } == first  # fmt: skip
    assert std == GAUGE.mechanism.noise_std(Window(24), [25])[0]
    assert half == pytest.approx(1.959964 * std, rel=1e-6)
    assert ["AA", "B6", "UA", "other"] == table["kind"][:4].to_list()


def test_a_window_is_complete_once_it_is_full():
    table = view_of("day").table(0, np.zeros((30, 4)))
    assert 24 == table.filter("complete")["step"].min()


def test_a_view_that_is_read_every_day_has_a_row_at_the_end_of_each():
    table = view_of("daily").table(20, np.arange(40.0).reshape(10, 4))
    assert [24] * 4 == table["step"].to_list()
    assert [12.0, 13.0, 14.0, 15.0] == table["value"].to_list()


def test_values_are_in_the_units_of_the_column():
    gauge = replace(GAUGE, round_to=Fraction(1, 4))
    table = Published(PLAN.clock, gauge, "day", Window(24)).table(0, np.full((1, 4), 6.0))
    assert {1.5} == set(table["value"])
    assert table["noise_std"][0] == GAUGE.mechanism.noise_std(Window(24), [1])[0] / 4


def test_records_have_steps_and_no_times():
    clock = replace(PLAN.clock, step_us=None)
    table = Published(clock, GAUGE, "day", Window(24)).table(0, np.zeros((2, 4)))
    assert [None] * 8 == table["step_start"].to_list()
    assert COLUMNS == table.columns


def test_a_line_of_text():
    table = view_of("step").table(0, np.array([[1.5, 0.0, -2.0, 3.0]])).head(1)
    line = json.loads(as_text(table).write_ndjson())
    std = line.pop("noise_std"), line.pop("lower"), line.pop("upper")
    assert {
        "gauge": "flights", "view": "step", "kind": "AA", "step": 1,
        "step_start": "2013-01-01T00:00:00Z", "step_end": "2013-01-01T01:00:00Z", "value": 1.5,
        "level": 0.95, "band": "pointwise", "complete": True, "reason": None,
    } == line  # fmt: skip
    assert all(isinstance(number, float) for number in std)


def test_what_lies_in_the_public_folder(place):
    names = {name for name in place.files() if "/" not in name}
    assert {"plan.json", "PRIVACY.md", "privacy.json", "ledger.json"} == names
    assert {
        f"{folder}/000000000001.parquet"
        for folder in ("measurements/flights", *(f"releases/flights/{v}" for v, _ in stand.VIEWS))
    } == set(place.numbers())
    assert PLAN.canonical() == place.files()["plan.json"]


def test_the_schema_and_metadata_of_a_release_file(place):
    path = place.public / "releases/flights/day/000000000001.parquet"
    assert COLUMNS == pl.read_parquet_schema(path).names()
    about = pl.read_parquet_metadata(path)
    assert PLAN.fingerprint == about["fingerprint"]
    assert ("0.95", "one event (add_or_remove_one)") == (about["level"], about["unit"])
    assert about["version"]


def test_another_reader_of_parquet_sees_the_same(place):
    parquet = pytest.importorskip("pyarrow.parquet")
    path = place.public / "releases/flights/day/000000000001.parquet"
    table = parquet.read_table(path)
    assert COLUMNS == table.column_names
    assert "timestamp[us, tz=UTC]" == str(table.schema.field("step_start").type)
    rows = parquet.read_table(place.public / "measurements/flights/000000000001.parquet")
    assert ["step", "row", "measured"] == rows.column_names
    assert "int64" == str(rows.schema.field("measured").type.value_type)
    assert PLAN.fingerprint == parquet.read_metadata(path).metadata[b"fingerprint"].decode()


def test_a_stranger_recomputes_epsilon_from_the_ledger(place):
    accounting = pytest.importorskip("dp_accounting")
    content = json.loads(place.files()["ledger.json"])
    (charge,) = content["events"]["events"]
    assert "GaussianDpEvent" == charge["class_name"]
    event = accounting.GaussianDpEvent(charge["noise_multiplier"])
    accountant = accounting.pld.PLDAccountant(accounting.NeighboringRelation.ADD_OR_REMOVE_ONE)
    epsilon = accountant.compose(event).get_epsilon(1e-9)
    assert float(json.loads(place.files()["privacy.json"])["guarantee"]["epsilon"]) == (
        pytest.approx(epsilon, rel=1e-3)
    )


def test_a_ledger_of_two_releases_adds_them_up():
    spends = [spend_of(PLAN, "s", step, "2013-01-31") for step in (0, 10)]
    texts = documents(PLAN, spends)
    content = json.loads(texts["ledger.json"])
    assert (2, 2) == (content["releases"], len(content["events"]["events"]))
    assert not content["within_guarantee"]
    assert b"2013-01-31: a further release" in texts["PRIVACY.md"]
    assert b"None so far" in documents(PLAN, spends[:1])["PRIVACY.md"]


def test_the_bytes_of_a_state():
    state = {"encoder": {"s": np.array([[1, -2]])}, "empty": {}}
    data = pack(state)
    assert bytes.fromhex(
        "54475331" "02000000"
        "0600" "656d7074792f" "6231" "01" "0000000000000000"
        "0900" "656e636f6465722f73" "6938" "02" "0100000000000000" "0200000000000000"
        "00000000000000"
        "0100000000000000" "feffffffffffffff"
    ) == data  # fmt: skip
    back = unpack(data)
    assert {} == back["empty"]
    assert [[1, -2]] == back["encoder"]["s"].tolist()
    back["encoder"]["s"][0, 0] = 5  # the caller's own


def test_states_of_every_kind_come_back():
    rng = np.random.default_rng(0)
    state = {
        "u": rng.integers(0, 2**64, (3, 2, 5), np.uint64), "f": rng.normal(size=(0, 4)),
        "b": np.array([True, False]), "i": np.array(-(2**63)), "nan": np.array([np.nan, -0.0]),
    }  # fmt: skip
    back = unpack(pack({"x": state}))["x"]
    for name, array in state.items():
        assert (array.dtype, array.shape, array.tobytes()) == (
            back[name].dtype, back[name].shape, back[name].tobytes(),
        )  # fmt: skip


@pytest.mark.parametrize("cut", [0, 3, 8, 20, -1])
def test_bytes_that_are_no_state_are_refused(cut):
    with pytest.raises(StoreBehind, match="damaged"):
        unpack(pack({"x": {"s": np.arange(9)}})[:cut])


def test_a_mark_comes_back_and_says_nothing_of_data(tmp_path):
    spend = Spend("name", "sha256:f", 0, "2013-01-31", {"a": {"class_name": "X"}}, "e0")
    file = MarkFile(tmp_path / "marks" / "m", tmp_path / "s")
    mark = Mark("name", str(tmp_path / "s"), "sha256:f", 17, (spend,))
    file.write(mark)
    assert [mark] == file.read("name")
    content = json.loads(file.path.read_text().rsplit("\n", 2)[0])
    assert {"store", "path", "fingerprint", "step", "spends", "format"} == set(content)


def test_a_file_is_whole_or_not_there(tmp_path, monkeypatch):
    path = tmp_path / "f"
    put(path, b"old")

    def full(_):
        raise OSError(28, "No space left")

    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", full)
        with pytest.raises(WriteFailed, match="as it was"):
            put(path, b"new")
    assert b"old" == path.read_bytes()
    assert [path] == list(tmp_path.iterdir())


@pytest.mark.parametrize("write", [put, lambda path, data: put_by(path, partial(_write, data))])
def test_a_link_where_a_file_is_being_written_is_not_followed(tmp_path, monkeypatch, write):
    other = tmp_path / "other"
    other.write_bytes(b"kept")
    other.chmod(0o600)
    monkeypatch.setattr(tempfile, "_get_candidate_names", lambda: iter(["taken", "free"]))
    (tmp_path / f"{_prefix('f')}taken.part").symlink_to(other)
    write(tmp_path / "f", b"new")
    assert (b"kept", 0o600) == (other.read_bytes(), other.stat().st_mode & 0o777)
    assert (b"new", False) == ((tmp_path / "f").read_bytes(), (tmp_path / "f").is_symlink())
    assert 0o644 == (tmp_path / "f").stat().st_mode & 0o777


@pytest.mark.parametrize("write", [put, lambda path, data: put_by(path, partial(_write, data))])
def test_no_name_beside_a_file_is_written_over(tmp_path, write):
    path = tmp_path / "all.csv"
    for beside in ("all.csv.part", ".tidegauge-all.csv.part", "all.csv.tmp"):
        (tmp_path / beside).write_bytes(b"a store, a source, or anything")
    write(path, b"new")
    sweep(tmp_path, "all.csv")
    assert 4 == len(list(tmp_path.iterdir()))
    assert b"new" == path.read_bytes()


def test_a_database_is_never_written_over(tmp_path):
    """A sink, a plan file or a mark that names the store of another plan."""
    path = tmp_path / "s.tidegauge"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE plan (step INTEGER)")
    connection.close()
    before = path.read_bytes()
    for write in (put, put_new, lambda path, data: put_by(path, partial(_write, data))):
        with pytest.raises(WriteFailed, match="got a database"):
            write(path, b"new")
    assert before == path.read_bytes()
    assert [path] == list(tmp_path.iterdir())


def test_a_file_is_made_by_one_of_two(tmp_path):
    path = tmp_path / "f"
    assert put_new(path, b"first")
    assert not put_new(path, b"second")
    assert (b"first", 0o644) == (path.read_bytes(), path.stat().st_mode & 0o777)
    assert [path] == list(tmp_path.iterdir())


def test_what_a_killed_process_left_is_removed_with_its_own_file_alone(tmp_path):
    left = {name: tmp_path / f"{_prefix(name)}abcd.part" for name in "ab"}
    for part in left.values():
        part.write_bytes(b"half")
    sweep(tmp_path, "a")
    assert [left["b"]] == list(tmp_path.iterdir())
    sweep(tmp_path)
    assert [] == list(tmp_path.iterdir())


def _write(data, part):
    part.write_bytes(data)


@pytest.mark.parametrize(
    "damage",
    [b"", b"[]", b"{}", b'{"releases": 1, "charges": []}', b'{"releases": 0, "charges": [3]}'],
)
def test_a_ledger_that_was_not_written_here_is_no_ledger(damage):
    with pytest.raises(ValueError, match="no ledger"):
        spends_in(damage)


def test_a_ledger_gives_back_what_was_charged():
    spends = [spend_of(PLAN, "s", 5, "2013-01-31") for _ in range(2)]
    assert spends[0].id != spends[1].id
    assert spends == spends_in(documents(PLAN, spends)["ledger.json"])


@pytest.mark.parametrize("name", ["a/b", "..", ".", "a b", "größe", "%2E", "x\ny"])
def test_names_are_single_and_distinct_parts_of_a_path(name):
    safe = safe_name(name)
    assert "/" not in safe
    assert not safe.startswith(".")
    assert safe.isascii()
    assert safe_name("%2E") != safe_name(".")


def test_a_view_thought_of_later_equals_what_planning_it_would_have_published(place):
    folder = PublicFolder(place.public)
    released = pl.read_parquet(place.public / "releases/flights/day/*.parquet")
    assert released.equals(folder.view("flights", Window(24)).renamed("day").table())
    assert released.equals(folder.view("flights", "24h").renamed("day").table())
    assert released["value"].to_list() == folder.view("flights", "day").value.reshape(-1).tolist()
    later = folder.view("flights", Window(7), every=7)
    assert ([7, 14, 21, 28], False) == (later.steps.tolist(), later.is_planned)
    assert later.ratio() >= later.ratio_if_planned() >= 1
    assert "window_7" == later.name


def test_a_reader_needs_no_private_file(place, tmp_path):
    import shutil

    shutil.copytree(place.public, tmp_path / "public")
    folder = PublicFolder(tmp_path / "public")
    assert (("flights",), ("step", "running", "day", "daily", "recent")) == (
        folder.gauges, folder.views("flights"),
    )  # fmt: skip
    assert folder.statement().startswith("# Privacy of Flights of a test")
    assert (30, 4) == folder.view("flights", "step").value.shape


@pytest.mark.parametrize("change", ["cut", "other", "missing", "renamed"])
def test_a_changed_folder_is_refused(place, tmp_path, change):
    import shutil

    public = tmp_path / "public"
    shutil.copytree(place.public, public)
    path = public / "measurements/flights/000000000001.parquet"
    if change == "cut":
        path.write_bytes(path.read_bytes()[:-100])
    elif change == "other":
        table, about = pl.read_parquet(path), pl.read_parquet_metadata(path)
        about.pop("ARROW:schema")
        table.with_columns(pl.col("measured").reverse()).write_parquet(path, metadata=about)
    elif change == "missing":
        (public / "plan.json").unlink()
    else:
        path.rename(path.with_name("000000000002.parquet"))
    with pytest.raises(InvalidInput):
        PublicFolder(public).view("flights", "step")


def test_an_unknown_view_or_gauge_is_refused(place):
    folder = PublicFolder(place.public)
    with pytest.raises(InvalidParameter, match="name of a view"):
        folder.view("flights", "weekly")
    with pytest.raises(InvalidParameter, match="name of a gauge"):
        folder.view("trains", "day")


def test_sinks_are_copies_of_the_releases(tmp_path, capfdbinary):
    place = stand.Place(tmp_path)
    sinks = (
        Sink("jsonl", "-", ("daily",)), Sink("csv", "out/day.csv", ("day",)),
        Sink("parquet", "out/all.parquet", None), Sink("jsonl", "out/step.jsonl", ("step",)),
    )  # fmt: skip
    settings = replace(place.settings, sinks=sinks)
    from tidegauge.engine.run import run

    run(PLAN, stand.Rows(stand.rows()), settings)
    lines = capfdbinary.readouterr().out.splitlines()
    day = pl.read_parquet(place.public / "releases/flights/day/*.parquet")
    every = pl.read_parquet(place.public / "releases/flights/daily/*.parquet")
    assert every["value"].to_list() == [json.loads(line)["value"] for line in lines]
    assert day["value"].to_list() == pl.read_csv(tmp_path / "out/day.csv")["value"].to_list()
    whole = pl.read_parquet(tmp_path / "out/all.parquet")
    assert COLUMNS == whole.columns
    assert 30 * 4 * 4 + 4 == len(whole)
    assert 120 == len(pl.read_ndjson(tmp_path / "out/step.jsonl"))
    assert 0 == len(list((tmp_path / "out").glob("*.part")))
