"""No place of a config overwrites another, and nothing private lies in the public folder."""

import json
import os

import pytest
from unit.planning.configs import SMALL

from tidegauge.planning.config import config_of
from tidegauge.planning.places import place_of
from tidegauge.planning.problems import ConfigError
from tidegauge.planning.settings import Settings, Sink

RIGHT = {
    "sources": ["in/a.csv"],
    "store": "state/s.tidegauge",
    "public": "public/",
    "mark": "state/s.mark",
    "sinks": [{"kind": "csv", "path": "out/a.csv", "views": None}],
}


def sinks(*paths):
    return [{"kind": "csv", "path": path, "views": None} for path in paths]


def settings_of(data, base):
    copies = tuple(Sink(sink["kind"], sink["path"], sink["views"]) for sink in data["sinks"])
    fields = data | {"sources": tuple(data["sources"]), "sinks": copies}
    return Settings(base=str(base), **fields)


@pytest.fixture
def work(tmp_path):
    """A folder with files, and links to them from elsewhere."""
    for name in ("in", "state", "public", "out", "home"):
        (tmp_path / name).mkdir()
    for name in ("in/a.csv", "in/b.csv", "state/s.tidegauge", "state/s.mark", "c.yaml"):
        (tmp_path / name).write_text(name)
    (tmp_path / "link").symlink_to("public")
    (tmp_path / "to_a.csv").symlink_to("in/a.csv")
    (tmp_path / "public" / "to_store").symlink_to("../state/s.tidegauge")
    os.link(tmp_path / "in" / "a.csv", tmp_path / "same.csv")
    return tmp_path


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))


WRONG = {
    "sink is source": ({"sinks": sinks("in/a.csv")}, "a sink"),
    "sink is source, by dots": ({"sinks": sinks("out/../in/a.csv")}, "a sink"),
    "sink is source, absolute": ({"sinks": sinks("{}/in/a.csv")}, "a sink"),
    "sink is source, by a link": ({"sinks": sinks("to_a.csv")}, "a sink"),
    "sink is source, by a hard link": ({"sinks": sinks("same.csv")}, "a sink"),
    "sink is matched": ({"sources": ["in/*.csv"], "sinks": sinks("in/b.csv")}, "a sink"),
    "sink would be matched": ({"sources": ["in/*.csv"], "sinks": sinks("in/new.csv")}, "a sink"),
    "sink would be matched deep": (
        {"sources": ["**/*.csv"], "sinks": sinks("x.csv")},
        "a sink",
    ),
    "sink is store": ({"sinks": sinks("state/s.tidegauge")}, "a sink"),
    "sink is wal": ({"sinks": sinks("state/s.tidegauge-wal")}, "a sink"),
    "sink is shm": ({"sinks": sinks("state/s.tidegauge-shm")}, "a sink"),
    "sink is mark": ({"sinks": sinks("state/s.mark")}, "a sink"),
    "sink is config": ({"sinks": sinks("c.yaml")}, "a sink"),
    "two sinks": ({"sinks": sinks("out/a.csv", "out/../out/a.csv")}, "a sink"),
    "sink is a folder": ({"sinks": sinks("out")}, "a sink"),
    "sink in public": ({"sinks": sinks("public/a.csv")}, "a sink"),
    "sink in public by a link": ({"sinks": sinks("link/a.csv")}, "a sink"),
    "store in public by a link": ({"store": "link/deep/s"}, "the store"),
    "store in public, absolute": ({"store": "{}/public/s"}, "the store"),
    "store in public by dots": ({"store": "public/../public/s"}, "the store"),
    "link to the store in public": ({"store": "public/to_store"}, "the store"),
    "store below public": ({"public": ".."}, "a source"),
    "store is source": ({"store": "in/a.csv"}, "the store"),
    "store is config": ({"store": "c.yaml"}, "the store"),
    "store is a folder": ({"store": "state"}, "the store"),
    "mark is store": ({"mark": "state/s.tidegauge"}, "the mark"),
    "mark is wal": ({"mark": "state/s.tidegauge-wal"}, "the mark"),
    "mark is source": ({"mark": "in/a.csv"}, "the mark"),
    "mark in public": ({"mark": "public/m"}, "the mark"),
    "default mark in public": ({"mark": None, "public": "home"}, "the mark"),
    "source in public": ({"sources": ["public/a.csv"]}, "a source"),
    "sources reach into public": ({"sources": ["**/*.parquet"]}, "a source"),
    "two sinks on standard output": ({"sinks": sinks("-", "-")}, "one sink on standard output"),
}


@pytest.mark.parametrize(("change", "said"), WRONG.values(), ids=WRONG)
def test_places_that_meet_are_told(work, change, said):
    data = json.loads(json.dumps(RIGHT | change).replace("{}", str(work)))
    before = {path: path.read_bytes() for path in work.rglob("*") if path.is_file()}
    conflicts = settings_of(data, work).check(work / "c.yaml")
    assert any(conflict.message.startswith(f"Expected {said}") for conflict in conflicts)
    assert before == {path: path.read_bytes() for path in work.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"mark": None},
        {"sources": ["-"], "sinks": sinks("-", "out/a.csv")},
        {"sources": ["in/*.csv", "in/a.csv"], "sinks": sinks("a.csv", "b.csv")},
        {"public": "state/public", "sources": ["*/*.csv"], "sinks": []},
        {"public": "public-of-2013", "store": "public-of-2013.tidegauge"},
    ],
)
def test_places_that_do_not_meet_are_taken(work, change):
    assert [] == settings_of(RIGHT | change, work).check(work / "c.yaml")


@pytest.mark.parametrize(
    ("lines", "field"),
    [
        ("store: ./flights.parquet", "store"),
        ("sinks: [{csv: {path: c.yaml}}]", "csv"),
        ("sinks: [{csv: {path: a.csv}}, {jsonl: {path: ./a.csv}}]", "jsonl"),
        ("store: s\nmark: s-wal", "s-wal"),
        ("mark: public/../public/m", "public/"),
    ],
)
def test_a_config_is_refused_at_the_field(tmp_path, monkeypatch, lines, field):
    monkeypatch.chdir(tmp_path)
    text = "\n".join(line for line in SMALL.splitlines() if line[:5] not in ("store", "mark:"))
    (tmp_path / "c.yaml").write_text(f"{text}\n{lines}\n")
    with pytest.raises(ConfigError) as caught:
        config_of("c.yaml")
    (problem,) = caught.value.problems
    assert field in problem.source_line


def test_a_default_store_inside_public_is_told_at_public(tmp_path, monkeypatch):
    (tmp_path / "deep").mkdir()
    monkeypatch.chdir(tmp_path / "deep")
    text = "\n".join(line for line in SMALL.splitlines() if line[:6] not in ("store:", "public"))
    (tmp_path / "deep" / "c.yaml").write_text(f"{text}\npublic: ..\n")
    with pytest.raises(ConfigError) as caught:
        config_of("c.yaml")
    assert any(
        "the store outside" in problem.message and problem.source_line == "public: .."
        for problem in caught.value.problems
    )


def test_a_link_that_leads_in_a_circle_is_a_place(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert place_of(tmp_path / "a").file is None
