"""A public folder is of one store, also where two begin at once; its ledger charges all in it."""

import errno
import hashlib
import json
import os
import shutil
import sqlite3
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest
import stand

from tidegauge.engine import claim, publisher
from tidegauge.engine import run as running
from tidegauge.engine.files import _prefix, put
from tidegauge.errors import Locked, StoreBehind, StoreMismatch
from tidegauge.strategies.decay import Window

PLAN = stand.plan_of(end=30)
ROWS = stand.rows()


@pytest.fixture
def place(memory_path, monkeypatch):
    monkeypatch.setattr(running, "_LANES", 40)  # three blocks
    return stand.Place(memory_path)


@pytest.fixture
def unlocked(monkeypatch):
    """As on a file system without locks."""

    def none(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(claim.fcntl, "flock", none)


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
            blocks = connection.execute("SELECT first, size, v FROM block").fetchall()
        connection.close()
        rows = {first: np.frombuffer(data, f"<i{size}") for first, size, data in blocks}
        sums[name] = {
            first: hashlib.sha256(row.astype("<i8")).hexdigest() for first, row in rows.items()
        }
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


def test_of_two_stores_that_begin_at_once_one_publishes(place, monkeypatch, unlocked):
    assert "does not know 1 of the 1" in overtaken(place, monkeypatch, claim.put_new)
    check_one_store(place)


def test_a_ledger_that_is_looked_for_and_then_written_would_be_caught(place, monkeypatch, unlocked):
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


def test_a_store_whose_folder_is_taken_over_publishes_nothing_more(place, unlocked):
    with pytest.raises(StoreBehind, match="another store publishes into the folder"):
        taken_over(place)
    check_one_store(place)


def test_a_ledger_that_is_looked_at_once_would_be_caught(place, monkeypatch, unlocked):
    def over(path, data, *, named):
        put(path, data, named=named)
        return True

    monkeypatch.setattr(claim.Claim, "refuse_taken", lambda _: None)
    monkeypatch.setattr(publisher, "put_new", over)
    taken_over(place)
    with pytest.raises(AssertionError):
        check_one_store(place)


def test_while_a_run_is_open_no_other_one_touches_its_folder(place, monkeypatch):
    def meanwhile(done, _):
        before = place.files()
        with pytest.raises(Locked, match="another run that publishes into it"):
            run_other(place, accept_second_release=True)
        assert before == place.files()
        seen.append(done)

    seen = []
    assert 30 == place.run(PLAN, ROWS, progress=meanwhile).last
    assert [10, 20, 30] == seen
    with pytest.raises(StoreBehind, match="publish into another folder"):  # it was given back
        run_other(place)


def other_views(views, every=()):
    gauge = PLAN.gauges[0]
    mechanism = replace(gauge.mechanism, views=views)
    return replace(PLAN, gauges=(replace(gauge, views=views, every=every, mechanism=mechanism),))


DAILY = (("daily", 24),)


@pytest.mark.parametrize(
    ("views", "every"),
    [
        ((*stand.VIEWS[:2], ("day", Window(12)), *stand.VIEWS[3:]), DAILY),
        (stand.VIEWS, (("daily", 12),)),
        (stand.VIEWS, ()),
        (stand.VIEWS, (*DAILY, ("day", 2))),
    ],
)
def test_a_name_is_of_one_view(place, views, every):
    early = datetime(2013, 1, 1, tzinfo=UTC) + timedelta(hours=25)
    place.run(PLAN, ROWS, until=early)
    before = place.files()
    other = other_views(views, every)
    assert other.fingerprint == PLAN.fingerprint
    with pytest.raises(StoreMismatch, match="Give the new one a name of its own"):
        place.run(other, ROWS)
    assert before == place.files()
    without = other_views(tuple(pair for pair in stand.VIEWS if pair[0] not in ("day", "daily")))
    place.run(without, ROWS, until=early)  # to leave it out for a while does not free its name
    with pytest.raises(StoreMismatch, match="two views would stand under one name"):
        place.run(other, ROWS)
    assert 30 == place.run(PLAN, ROWS).last


class Killed(BaseException):
    """Nothing catches it."""


def copied(place):
    """Two copies of a store of no steps: both have the name and the charge that the ledger has."""
    place.run(PLAN, ROWS, until=datetime(2013, 1, 1, tzinfo=UTC))
    shutil.copy(place.store, place.root / "other.tidegauge")


def other_until_file(place, monkeypatch, files):
    """Run the other copy until it has put so many files; return the numbers that are public."""

    def counted(path, data, *, named):
        done = put_new(path, data, named=named)
        left.pop()
        if not left:
            raise Killed
        return done

    left = [None] * files
    with monkeypatch.context() as patched:
        put_new = publisher.put_new
        patched.setattr(publisher, "put_new", counted)
        with pytest.raises(Killed):
            run_other(place)
    assert files == len(place.numbers())
    return place.numbers()


def behind_a_copy(place, monkeypatch, files):
    """Go on with a copy that was killed between a commit and its first file.

    Meanwhile the other copy has drawn other noise for that block, and put some of its files.
    """
    copied(place)
    with monkeypatch.context() as patched:
        patched.setattr(publisher.Publisher, "publish", lambda *_: (_ for _ in ()).throw(Killed))
        with pytest.raises(Killed):
            place.run(PLAN, ROWS)
    before = other_until_file(place, monkeypatch, files)
    try:
        place.run(PLAN, ROWS)
    finally:
        assert before == place.numbers()  # whatever is public is of one draw


def beside_a_copy(place, monkeypatch, files):
    """Let the other copy put some files after this one's look at the folder."""

    def later(self, store):
        patched.undo()
        before.update(other_until_file(place, monkeypatch, files))
        return resume(self, store)

    copied(place)
    before = {}
    resume = publisher.Publisher.resume
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(publisher.Publisher, "resume", later)
        try:
            place.run(PLAN, ROWS)
        finally:
            assert before == place.numbers()


FIRST = range(1, 6)  # files of the first block: a measurement, and four views of it


@pytest.mark.parametrize("files", FIRST)
def test_two_draws_of_a_step_are_never_public_wherever_a_copy_was_killed(place, monkeypatch, files):
    with pytest.raises(StoreBehind, match="a second release"):
        behind_a_copy(place, monkeypatch, files)


@pytest.mark.parametrize("files", [*FIRST, 6, 11, 15])
def test_nor_where_no_lock_holds_a_copy_off(place, monkeypatch, unlocked, files):
    with pytest.raises(StoreBehind, match="a second release"):
        beside_a_copy(place, monkeypatch, files)


def test_a_lock_holds_a_copy_off(place, monkeypatch):
    with pytest.raises(Locked):
        beside_a_copy(place, monkeypatch, 1)


def test_a_release_that_is_trusted_unread_would_be_caught(place, monkeypatch):
    def trusted(path, *_):
        os.stat(path)
        return True

    monkeypatch.setattr(publisher, "has_origin", trusted)
    with pytest.raises(AssertionError):
        behind_a_copy(place, monkeypatch, 1)


def test_a_release_of_other_numbers_is_noticed_and_never_replaced(place):
    place.run(PLAN, ROWS)
    before = place.numbers()
    path = place.public / "releases/flights/day/000000000011.parquet"
    whole = path.read_bytes()
    another_view = (place.public / "releases/flights/step/000000000011.parquet").read_bytes()
    another_block = path.with_name("000000000021.parquet").read_bytes()
    for other in (
        another_view,
        another_block,
        b"damaged",
        b"",
        whole[:-1],
        b"\xff\xff\xff\x7fPAR1",
    ):
        path.write_bytes(other)
        with pytest.raises(StoreBehind, match=f"Expected at {path}"):
            place.run(PLAN, ROWS)
        assert other == path.read_bytes()
    path.unlink()  # the remedy
    assert 1 == place.run(PLAN, ROWS).published
    assert before == place.numbers()


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


def begin_after_a_killed_takeover(place, monkeypatch, call):
    """Kill a takeover before its n-th change of the folder; let a new store begin there.

    Returns whether there were so many. The new store knows nothing of the releases.
    """
    place.run(PLAN, ROWS)
    shutil.rmtree(place.root / "private")

    def counted(change):
        def changed(*args, **options):
            left.pop()
            if not left:
                monkeypatch.undo()  # nothing is tidied up after a kill, but for what is not linked
                raise Killed
            return change(*args, **options)

        return changed

    def watched(self, *args):
        for name in ("replace", "link", "unlink", "mkdir"):
            monkeypatch.setattr(os, name, counted(getattr(os, name)))
        take(self, *args)
        monkeypatch.undo()

    left, take = [None] * call, claim.Claim.take
    monkeypatch.setattr(claim.Claim, "take", watched)
    try:
        place.run(PLAN, ROWS, accept_second_release=True)
    except Killed:
        with pytest.raises((StoreBehind, StoreMismatch)):
            run_other(place)
        assert 2 == place.run(PLAN, ROWS).releases  # and the one that was killed goes on
        return True
    return False


def kill_a_takeover_at_every_call(memory_path, monkeypatch):
    calls = 0
    while begin_after_a_killed_takeover(
        stand.Place(memory_path / str(calls)), monkeypatch, calls + 1
    ):
        calls += 1
    return calls


def test_a_killed_takeover_forgets_no_release(memory_path, monkeypatch):
    assert kill_a_takeover_at_every_call(memory_path, monkeypatch) > 3


def test_a_takeover_between_two_ledgers_would_be_caught(memory_path, monkeypatch):
    def unlinked(self, before):
        supersede(self, before)
        os.unlink(self._ledger)

    supersede = claim.Claim._supersede
    spends = claim.Claim.spends
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(claim.Claim, "_supersede", unlinked)
        patched.setattr(
            claim.Claim, "spends", lambda self: spends(self) if self._ledger.exists() else []
        )
        with pytest.raises(pytest.fail.Exception):
            kill_a_takeover_at_every_call(memory_path, monkeypatch)


def test_a_folder_that_was_superseded_and_has_no_ledger_is_refused(place):
    place.run(PLAN, ROWS)
    (place.public / "superseded").mkdir()
    for name in ("releases", "measurements", "ledger.json"):
        (place.public / name).rename(place.public / "superseded" / name)
    with pytest.raises(StoreMismatch, match="Bring that file back"):
        run_other(place)


def test_releases_without_a_ledger_are_refused(place):
    place.run(PLAN, ROWS)
    (place.public / "ledger.json").unlink()
    os.rename(place.public / "measurements", place.root / "aside")
    with pytest.raises(StoreMismatch, match="Bring that file back"):
        run_other(place)


def test_a_file_that_others_are_writing_beside_ours_is_left_alone(place):
    place.run(PLAN, ROWS, until=datetime(2013, 1, 1, tzinfo=UTC))
    names = ("copy.csv", "plan.json", "ledger.json", "PRIVACY.md", "privacy.json")
    parts = {name: place.public / f"{_prefix(name)}abcd.part" for name in names}
    for part in parts.values():
        part.write_bytes(b"half")
    place.run(PLAN, ROWS)
    assert ["copy.csv"] == [name for name, part in parts.items() if part.exists()]
