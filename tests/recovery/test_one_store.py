"""A public folder is of one store, also where two begin at once; its ledger charges all in it."""

import hashlib
import json
import os
import sqlite3
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
import stand

from tidegauge.engine import claim, publisher
from tidegauge.engine import run as running
from tidegauge.engine.files import put
from tidegauge.errors import StoreBehind, StoreMismatch

PLAN = stand.plan_of(end=30)
ROWS = stand.rows()


@pytest.fixture
def place(memory_path, monkeypatch):
    monkeypatch.setattr(running, "_LANES", 40)  # three blocks
    return stand.Place(memory_path)


def other_of(place):
    return replace(place.settings, store="other.tidegauge", mark="marks/other.mark")


def run_other(place, **options):
    return running.run(PLAN, stand.Rows(ROWS), other_of(place), **options)


def check_one_store(place):
    """Every measurement in the folder is of the store that its ledger names."""
    named = json.loads((place.public / "ledger.json").read_text())["store"]
    sums = {}
    for path in (place.store, place.root / "other.tidegauge"):
        with sqlite3.connect(path) as connection:
            (name,) = connection.execute("SELECT store FROM plan").fetchone()
            blocks = connection.execute("SELECT first, v FROM block").fetchall()
        connection.close()
        sums[name] = {first: hashlib.sha256(data).hexdigest() for first, data in blocks}
    for path in (place.public / "measurements" / "flights").iterdir():
        about = pl.read_parquet_metadata(path)
        assert sums[named].get(int(path.stem) - 1) == about["sha256"]


def overtaken(place, monkeypatch, make):
    """Let another store publish between this one's look at the folder and its first file."""

    def slower(path, data):
        monkeypatch.setattr(claim, "put_new", make)
        run_other(place)
        return make(path, data)

    monkeypatch.setattr(claim, "put_new", slower)
    with pytest.raises(StoreBehind) as caught:
        place.run(PLAN, ROWS)
    return str(caught.value)


def test_of_two_stores_that_begin_at_once_one_publishes(place, monkeypatch):
    assert "does not know 1 of the 1" in overtaken(place, monkeypatch, claim.put_new)
    check_one_store(place)


def test_a_ledger_that_is_looked_for_and_then_written_would_be_caught(place, monkeypatch):
    def make(path, data):
        put(path, data)
        return True

    overtaken(place, monkeypatch, make)
    with pytest.raises(AssertionError):
        check_one_store(place)


def taken_over(place):
    """Let another store take the folder over after this one's first block."""

    def progress(done, _):
        if done == 10:
            early = datetime(2013, 1, 1, tzinfo=UTC) + timedelta(hours=10)
            run_other(place, until=early, accept_second_release=True)

    place.run(PLAN, ROWS, progress=progress)


def test_a_store_whose_folder_is_taken_over_publishes_nothing_more(place):
    with pytest.raises(StoreBehind, match="another store publishes into the folder"):
        taken_over(place)
    check_one_store(place)


def test_a_ledger_that_is_looked_at_once_would_be_caught(place, monkeypatch):
    def over(path, data, *, named):
        put(path, data, named=named)
        return True

    monkeypatch.setattr(claim.Claim, "refuse_taken", lambda _: None)
    monkeypatch.setattr(publisher, "put_new", over)
    taken_over(place)
    with pytest.raises(AssertionError):
        check_one_store(place)


def test_a_measurement_with_other_numbers_is_never_replaced(place):
    place.run(PLAN, ROWS)
    (place.public / "releases/flights/step/000000000011.parquet").unlink()
    path = place.public / "measurements/flights/000000000011.parquet"
    for other in ((path.parent / "000000000021.parquet").read_bytes(), b"damaged"):
        path.write_bytes(other)
        with pytest.raises(StoreBehind, match="a second release"):
            place.run(PLAN, ROWS)
        assert other == path.read_bytes()
    path.unlink()  # the remedy
    assert 1 == place.run(PLAN, ROWS).published
    assert 1 == place.run(PLAN, ROWS).releases


def test_what_is_published_stays_though_a_file_beside_it_is_missing(place, monkeypatch):
    place.run(PLAN, ROWS)
    before = place.numbers()
    missing = "releases/flights/day/000000000011.parquet"
    (place.public / missing).unlink()
    monkeypatch.setattr(running, "version", lambda _: "999")
    assert 1 == place.run(PLAN, ROWS).published
    after = place.numbers()
    assert before.keys() == after.keys()
    assert {missing} == {name for name in before if before[name] != after[name]}


def test_releases_without_a_ledger_are_refused(place):
    place.run(PLAN, ROWS)
    (place.public / "ledger.json").unlink()
    os.rename(place.public / "measurements", place.root / "aside")
    with pytest.raises(StoreMismatch, match="Bring that file back"):
        run_other(place)
