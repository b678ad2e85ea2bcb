"""Full disks, folders that cannot be written, interruptions: everything stays as it was."""

import errno
import os
import signal
import sqlite3
import subprocess
import sys
import threading

import pytest
import stand

from tidegauge.engine import publisher as publishing
from tidegauge.engine import run as running
from tidegauge.engine import schema
from tidegauge.engine.public import PublicFolder
from tidegauge.engine.publisher import Publisher
from tidegauge.engine.store import Store
from tidegauge.errors import WriteFailed

PLAN = stand.plan_of(end=30)
ROWS = stand.rows()


@pytest.fixture
def place(memory_path, monkeypatch):
    monkeypatch.setattr(running, "_LANES", 40)
    return stand.Place(memory_path)


def full(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def full_for_releases(path, data, **options):
    """No release file fits, everything else does."""
    raise WriteFailed(str(path))


def check_resumes(place, before):
    """What was published is still there, and a run with room goes on to the end."""
    assert before.items() <= place.numbers().items()
    outcome = place.run(PLAN, ROWS)
    assert (30, 1) == (outcome.last, outcome.releases)
    assert before.items() <= place.numbers().items()
    assert 30 == len(PublicFolder(place.public).view("flights", "step").value)


@pytest.mark.parametrize("calls", range(0, 40, 3))
def test_a_disk_that_fills_up_at_any_call_leaves_everything_as_it_was(place, monkeypatch, calls):
    with monkeypatch.context() as patched:
        left = iter(range(calls))
        sync, replace = os.fsync, os.replace

        def while_there_is_room(call):
            return lambda *args: call(*args) if next(left, None) is not None else full()

        patched.setattr(os, "fsync", while_there_is_room(sync))
        patched.setattr(os, "replace", while_there_is_room(replace))
        with pytest.raises(WriteFailed, match="No space left on device"):
            place.run(PLAN, ROWS)
    assert [] == list(place.root.rglob("*.part"))
    check_resumes(place, place.numbers())


def test_a_release_that_does_not_fit_is_published_by_the_next_run(place, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(publishing, "put_new", full_for_releases)
        with pytest.raises(WriteFailed):
            place.run(PLAN, ROWS)
    check_resumes(place, {})


def test_no_thread_outlives_a_run_whether_it_ends_or_fails(place, monkeypatch):
    before = set(threading.enumerate())
    with monkeypatch.context() as patched:
        patched.setattr(publishing, "put_new", full_for_releases)
        with pytest.raises(WriteFailed):
            place.run(PLAN, ROWS)
    assert before == set(threading.enumerate())
    place.run(PLAN, ROWS)
    assert before == set(threading.enumerate())


def test_a_store_that_does_not_fit_is_not_half_written(place, monkeypatch):
    plan = stand.plan_of(end=1000)
    place.run(plan, ROWS, until=stand_until(10))
    before, connect = place.numbers(), sqlite3.connect

    def small(*args, **options):
        connection = connect(*args, **options)
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")
        return connection

    with monkeypatch.context() as patched:
        patched.setattr(schema.sqlite3, "connect", small)
        patched.setattr(running, "_LANES", 1 << 17)
        with pytest.raises(WriteFailed, match="SQLITE_FULL"):
            place.run(plan, ROWS)
        assert before == place.numbers()
    assert 1000 == place.run(plan, ROWS).last
    assert before.items() <= place.numbers().items()


def stand_until(hours):
    from datetime import UTC, datetime, timedelta

    return datetime(2013, 1, 1, tzinfo=UTC) + timedelta(hours=hours)


@pytest.mark.parametrize("part", ["store", "public", "mark"])
def test_a_folder_that_cannot_be_made_is_refused(place, part):
    from dataclasses import replace

    (place.root / "file").write_text("")
    settings = replace(place.settings, **{part: "file/inside/name"})
    with pytest.raises(WriteFailed, match="Expected to write"):
        running.run(PLAN, stand.Rows(ROWS), settings)
    assert {} == place.numbers()


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only for root")
def test_a_read_only_folder_is_refused(place):
    (place.root / "private").mkdir(mode=0o500)
    with pytest.raises(WriteFailed):
        place.run(PLAN, ROWS)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_inside_a_block_lets_it_finish(place, monkeypatch, number):
    publish = Publisher.publish

    def interrupted(self, first, steps, blocks):
        os.kill(os.getpid(), number)
        publish(self, first, steps, blocks)

    handlers = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    with monkeypatch.context() as patched:
        patched.setattr(Publisher, "publish", interrupted)
        with pytest.raises(KeyboardInterrupt):
            place.run(PLAN, ROWS)
    assert handlers == (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT))
    assert 10 == len(PublicFolder(place.public).view("flights", "step").value)
    check_resumes(place, place.numbers())


def test_a_signal_while_the_source_is_read_stops_at_once(place, monkeypatch):
    class Slow(stand.Rows):
        def batches(self, columns):
            os.kill(os.getpid(), signal.SIGTERM)
            raise AssertionError

    with pytest.raises(KeyboardInterrupt):
        running.run(PLAN, Slow(ROWS), place.settings)
    assert {} == place.numbers()
    check_resumes(place, {})


def test_a_process_that_gets_sigterm_ends_between_two_blocks(memory_path):
    place = stand.Place(memory_path)
    script = f"""
import sys; sys.path.insert(0, {str(stand.__file__.rpartition("/")[0])!r})
import os, signal, stand
from tidegauge.engine import publisher as publishing
from tidegauge.engine import run as running
running._LANES = 40
class Slow(stand.Rows):
    def batches(self, columns):
        print("reading", flush=True)
        yield from super().batches(columns)
try:
    place = stand.Place(stand.Path({str(memory_path)!r}))
    running.run(stand.plan_of(end=30), Slow(stand.rows()), place.settings)
except KeyboardInterrupt:
    sys.exit(130)
"""
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    assert process.wait() in (0, 130)
    process.stdout.close()
    check_resumes(place, place.numbers())


def test_everything_private_is_for_its_owner_alone(place):
    previous = os.umask(0)
    try:
        seen = []

        class Looking(stand.Rows):
            def batches(self, columns):
                seen.extend(
                    (path.name, oct(path.stat().st_mode & 0o777))
                    for path in [*place.store.parent.iterdir(), place.mark]
                )
                yield from super().batches(columns)

        running.run(PLAN, Looking(ROWS), place.settings)
    finally:
        os.umask(previous)
    assert {
        ("a.tidegauge", "0o600"),
        ("a.tidegauge-wal", "0o600"),
        ("a.tidegauge-shm", "0o600"),
        ("a.mark", "0o600"),
    } == set(seen)
    assert {0o644} == {path.stat().st_mode & 0o777 for path in place.public.rglob("*.*")
                       if path.is_file()}  # fmt: skip


def test_private_state_is_erased_with_the_last_step(place):
    with Store(place.store, fingerprint=PLAN.fingerprint, canonical=b"", gauges=["flights"]) as one:
        key = one.unit_key
    place.run(PLAN, ROWS, until=stand_until(20))
    assert key in place.store.read_bytes()
    place.run(PLAN, ROWS)
    with Store(place.store, fingerprint=PLAN.fingerprint, canonical=b"", gauges=["flights"]) as one:
        assert ({}, None, b"") == (one.states(), one.bounding(), one.unit_key)
    for path in place.store.parent.iterdir():
        assert key not in path.read_bytes()


def test_a_full_disk_under_a_sink_is_told_as_such(place, monkeypatch):
    from dataclasses import replace

    from tidegauge.planning.settings import Sink

    def told(*_, **__):
        raise OSError("No space left on device (os error 28): a.csv")

    monkeypatch.setattr(stand.pl.LazyFrame, "sink_csv", told)
    settings = replace(place.settings, sinks=(Sink("csv", "a.csv", None),))
    with pytest.raises(WriteFailed, match=r"No space left on device\. What"):
        running.run(PLAN, stand.Rows(ROWS), settings)


def test_a_fault_of_ours_under_a_sink_is_not_told_as_one_of_the_disk(place, monkeypatch):
    from dataclasses import replace

    from tidegauge.planning.settings import Sink

    def told(*_, **__):
        raise stand.pl.exceptions.SchemaError("two schemas")

    monkeypatch.setattr(stand.pl.LazyFrame, "sink_csv", told)
    settings = replace(place.settings, sinks=(Sink("csv", "a.csv", None),))
    with pytest.raises(stand.pl.exceptions.SchemaError):
        running.run(PLAN, stand.Rows(ROWS), settings)
