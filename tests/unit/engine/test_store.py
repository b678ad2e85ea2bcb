"""The store: one transaction a block, rows that never change, one writer."""

import copy
import json
import multiprocessing
import os
import pickle
import sqlite3
import subprocess
import sys
import time

import numpy as np
import pytest

from tidegauge.engine import lock
from tidegauge.engine.lock import Owner, this_process
from tidegauge.engine.spends import Spend
from tidegauge.engine.status import status_of
from tidegauge.engine.store import Store
from tidegauge.errors import LiveState, Locked, StoreBehind, StoreMismatch

GAUGES = ["a", "b"]


def opened(path, **options):
    return Store(path, **{"fingerprint": "f", "canonical": b"plan", "gauges": GAUGES, **options})


@pytest.fixture
def path(tmp_path):
    return tmp_path / "s.tidegauge"


def block(first, steps=1):
    rows = np.arange(steps * 3, dtype=np.int64).reshape(steps, 3) + first
    return {"a": rows, "b": -rows}


def states(number):
    return {name: {"encoder": {"x": np.full(4, number, np.int64)}} for name in GAUGES}


def edit(path, statement, *values):
    """Change a file behind the store's back."""
    connection = sqlite3.connect(path)
    for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'"):
        connection.execute(f"DROP TRIGGER {name}")
    connection.execute(statement, values)
    connection.commit()
    connection.close()


def test_a_store_with_two_names_is_refused(path, tmp_path):
    opened(path).close()
    os.link(path, tmp_path / "other")
    for name in (path, tmp_path / "other"):
        with pytest.raises(StoreMismatch, match="2 hard links"):
            opened(name)
    (tmp_path / "other").unlink()
    opened(path).close()


def test_what_was_committed_is_read_back(path):
    with opened(path) as store:
        store.commit(0, 2, block(0, 2), states(1), counters={"dropped": 3})
        store.commit(2, 1, block(2), states(2), bounding={"ids": np.arange(3)})
    with opened(path) as store:
        assert (3, [(0, 2), (2, 1)]) == (store.step, store.spans())
        assert block(0, 2)["b"].tolist() == store.block("b", 0).measured.tolist()
        assert [2] * 4 == store.states()["a"]["encoder"]["x"].tolist()
        assert [0, 1, 2] == store.bounding()["ids"].tolist()
        assert {"dropped": 3} == store.counters()
        assert 32 == len(store.unit_key)


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_a_block_takes_the_fewest_bytes_a_number_and_comes_back_whole(path, size):
    most = 1 << (8 * size - 1)
    rows = {"a": np.array([[most - 1, 0]]), "b": np.array([[-most, 1]])}
    beyond = {"a": np.array([[most, 0]]) if size < 8 else rows["a"], "b": np.zeros((0, 2), int)}
    with opened(path) as store:
        store.commit(0, 1, rows, states(1))
        store.commit(1, 1, beyond, states(2))
        for first, blocks in enumerate((rows, beyond)):
            for name in GAUGES:
                back = store.block(name, first).measured
                assert (np.int64, blocks[name].tolist()) == (back.dtype, back.tolist())
                assert back.flags.writeable
        found = store._connection.execute("SELECT size FROM block ORDER BY first, gauge").fetchall()
        assert [(size,), (size,), (min(2 * size, 8),), (1,)] == found


def test_only_the_next_block_is_taken(path):
    with opened(path) as store:
        store.commit(0, 2, block(0, 2), states(1))
    for first in (0, 1, 3):
        with opened(path) as store, pytest.raises(StoreMismatch, match="begins with step 3"):
            store.commit(first, 1, block(first), states(1))
    with opened(path) as store:
        assert [(0, 2)] == store.spans()


def test_no_statement_changes_what_was_measured(path):
    with opened(path) as store:
        store.commit(0, 1, block(0), states(1))
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA recursive_triggers = ON")
    for statement in (
        "UPDATE block SET v = x''",
        "DELETE FROM block",
        "DELETE FROM span",
        "INSERT OR REPLACE INTO block SELECT * FROM block",
        "DELETE FROM spend WHERE number > -1",
    ):
        rows = connection.execute("SELECT count(*) FROM spend").fetchone()[0]
        if "spend" in statement and not rows:
            connection.execute("INSERT INTO spend (entry) VALUES ('x')")
        with pytest.raises(sqlite3.IntegrityError, match="what was measured is final"):
            connection.execute(statement)
    connection.close()


def test_a_commit_that_fails_leaves_nothing_and_ends_the_store(path):
    with opened(path) as store:
        with pytest.raises(KeyError):
            store.commit(0, 1, {"a": block(0)["a"]}, states(1))
        with pytest.raises(LiveState, match="failed one"):
            store.commit(0, 1, block(0), states(1))
    with opened(path) as store:
        assert (0, []) == (store.step, store.spans())


@pytest.mark.parametrize(
    "damage",
    ["UPDATE block SET v = zeroblob(24) WHERE gauge = 1", "UPDATE block SET steps = 2"],
)
def test_a_changed_block_is_noticed(path, damage):
    with opened(path) as store:
        store.commit(0, 1, block(0), states(1))
    edit(path, damage)
    with opened(path) as store, pytest.raises(StoreBehind, match="damaged"):
        store.block("b", 0)


def test_a_changed_state_is_noticed(path):
    with opened(path) as store:
        store.commit(0, 1, block(0), states(1))
    edit(path, "UPDATE state SET data = zeroblob(10) WHERE gauge = 0")
    with opened(path) as store, pytest.raises(StoreBehind, match="damaged"):
        store.states()


def test_a_file_of_another_kind_is_left_as_it_is(path):
    path.write_text("my thesis, the only copy\n" * 100)
    with pytest.raises(StoreMismatch, match="another kind of file"):
        opened(path)
    assert path.read_text().startswith("my thesis")


def test_another_database_and_another_format_are_refused(path):
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t (x)")
    connection.commit()
    connection.close()
    with pytest.raises(StoreMismatch, match="another kind of database"):
        opened(path)
    path.unlink()
    opened(path).close()
    edit(path, "PRAGMA user_version = 99")
    with pytest.raises(StoreMismatch, match="format 99"):
        opened(path)


def test_a_large_state_is_written_where_it_changed(path):
    ring = np.zeros((64, 4096), np.int64)  # 2 MB
    with opened(path, gauges=["a"]) as store:
        store.commit(0, 1, {"a": block(0)["a"]}, {"a": {"noise": {"ring": ring}}})
        before = store._connection.total_changes
        ring[17, 5] = 1
        store.commit(1, 1, {"a": block(1)["a"]}, {"a": {"noise": {"ring": ring}}})
        assert store._connection.total_changes - before < 8
    with opened(path, gauges=["a"]) as store:
        assert (ring == store.states()["a"]["noise"]["ring"]).all()


def test_a_state_that_becomes_shorter_leaves_nothing_behind(path):
    with opened(path) as store:
        for step, size in enumerate((20_000, 10, 20_000)):
            state = {"encoder": {"x": np.full(size, step, np.int64)}}
            store.commit(step, 1, block(step), {"a": state, "b": state})
            assert [step] * size == store.states()["a"]["encoder"]["x"].tolist()


def test_readings_are_found_by_step(path):
    with opened(path) as store:
        for step in range(4):
            reading = {"a": {"sum": np.full(2, float(step))}} if step % 2 else None
            store.commit(step, 1, block(step), states(step), readings=reading)
        assert store.reading("a", 0) is None
        assert store.reading("b", 9) is None
        assert [1.0, 1.0] == store.reading("a", 2)[1]["sum"].tolist()
        assert 3 == store.reading("a", 9)[0]


def test_spends_are_kept_in_order(path):
    spends = [Spend("s", "f", step, "2013-01-31", {"a": {"x": 1.5}}, f"e{step}") for step in (0, 5)]
    with opened(path) as store:
        store.charge(spends[:1])
        store.charge(spends[1:])
        assert spends == store.spends()


def test_an_open_store_cannot_be_copied(path):
    with opened(path) as store:
        for copied in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(LiveState, match="copy or pickle"):
                copied(store)


def test_a_second_writer_is_refused_and_told_who_holds_it(path):
    with opened(path), pytest.raises(Locked, match=rf"process {os.getpid()} on .* 0 minutes"):
        opened(path)
    opened(path).close()


HOLD = """
import sys, time; from pathlib import Path; from tidegauge.engine.store import Store
store = Store(Path(sys.argv[1]), fingerprint="f", canonical=b"plan", gauges=["a", "b"])
print("held", flush=True); time.sleep(60)
"""


def test_a_dead_owners_lock_is_taken_over_at_once(path):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True
    )
    holder.stdout.readline()
    with pytest.raises(Locked, match=str(holder.pid)):
        opened(path)
    assert holder.pid == status_of(path).owner.pid
    holder.kill()
    holder.wait()
    holder.stdout.close()
    assert status_of(path).owner is None
    start = time.monotonic()
    with opened(path) as store:
        assert time.monotonic() - start < 1
        assert 2 == store.incarnation


def owner_of(path, owner, renewed):
    edit(
        path,
        "INSERT OR REPLACE INTO lock VALUES (1, 1, ?, ?, ?)",
        owner.to_text(), renewed, renewed,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("change", "silent", "refused"),
    [
        ({}, 10**6, True),  # this process lives, however long it was silent
        ({"boot": "another"}, 0, False),
        ({"started": "another"}, 0, False),  # the number is another process's by now
        ({"pid": 2**22 + 5, "started": ""}, 0, False),
        ({"host": "elsewhere"}, 0, True),
        ({"host": "elsewhere"}, lock.LEASE_SECONDS + 1, False),
    ],
)
def test_who_counts_as_alive(path, change, silent, refused):
    opened(path).close()
    owner_of(path, Owner(**{**vars(this_process()), **change}), time.time() - silent)
    if refused:
        with pytest.raises(Locked):
            opened(path)
    else:
        opened(path).close()


def test_a_writer_that_was_taken_over_commits_nothing_more(path):
    first = opened(path)
    first.commit(0, 1, block(0), states(1))
    owner_of(path, Owner(1, "elsewhere", "", ""), 0)
    with opened(path) as second:
        with pytest.raises(Locked, match="taken over"):
            first.commit(1, 1, block(1), states(2))
        second.commit(1, 1, block(1), states(3))
    first.close()
    with opened(path) as store:
        assert [3] * 4 == store.states()["a"]["encoder"]["x"].tolist()


def race(path, ready, results, over):
    ready.wait()
    try:
        store = opened(path)
    except Locked:
        results.put("locked")
    else:
        results.put("opened")
        over.wait()
        store.close()


def test_of_many_that_open_at_once_one_gets_it(path):
    context = multiprocessing.get_context("spawn")
    ready, over, results = context.Event(), context.Event(), context.Queue()
    racers = [context.Process(target=race, args=(path, ready, results, over)) for _ in range(4)]
    for racer in racers:
        racer.start()
    time.sleep(1)
    ready.set()
    found = sorted(results.get(timeout=60) for _ in racers)
    over.set()
    for racer in racers:
        racer.join()
    assert ["locked"] * 3 + ["opened"] == found


def test_a_fork_can_neither_commit_nor_close_the_store(path):
    store = opened(path)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            store.commit(0, 1, block(0), states(1))
        except LiveState:
            store.close()
            code = 0
        os._exit(code)
    assert 0 == os.waitpid(child, 0)[1]
    store.commit(0, 1, block(0), states(1))
    store.close()


def test_status_tells_without_writing(path):
    with opened(path) as store:
        store.commit(0, 2, block(0, 2), states(1), counters={"dropped": 3})
        found = status_of(path)
        assert (b"plan", 2, 1, 1) == (found.plan, found.step, found.blocks, found.openings)
        assert {"dropped": 3} == found.counters
        assert os.getpid() == found.owner.pid
    assert status_of(path).owner is None
    with pytest.raises(StoreMismatch, match="got nothing"):
        status_of(path.with_name("none"))


def test_no_repr_shows_what_is_private(path):
    with opened(path) as store:
        store.commit(0, 1, block(7), states(1))
        assert f"Store({str(path)!r}, step=1)" == repr(store)
    assert json.loads(this_process().to_text())["pid"] == os.getpid()


@pytest.mark.slow
def test_a_hundred_thousand_blocks_are_opened_at_once(path):
    with opened(path, gauges=["a"]) as store:
        store._connection.execute("PRAGMA synchronous = OFF")  # the order is tested elsewhere
        for step in range(100_000):
            store.commit(step, 1, {"a": block(step)["a"]}, {"a": states(1)["a"]})
    start = time.monotonic()
    with opened(path, gauges=["a"]) as store:
        assert 100_000 == len(store.spans())
        assert 99_999 == store.block("a", 99_999).measured[0, 0]
    assert time.monotonic() - start < 5
