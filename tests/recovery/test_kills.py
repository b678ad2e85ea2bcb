"""T7: kill -9 at every write; what was published stays, nothing is lost, doubled or drawn twice."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import stand

HERE = Path(__file__).parent
FILES = 16  # of three blocks: a measurement each, four views each, one view of one aligned step


def killed(memory_path, mode, stride):
    """Return what was seen at each point that was tried, and how many points there are."""
    script = [sys.executable, str(HERE / "killing.py"), str(memory_path), mode, str(stride)]
    done = subprocess.run(script, capture_output=True, text=True, check=True, timeout=900)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return lines[:-1], lines[-1]["points"]


def check_resumed(seen, files):
    assert [] == [one for one in seen if "failed" in one]
    assert [] == [one for one in seen if not one["kept"]]  # every published file is as it was
    assert {(30, 30, 1, True, files)} == {
        (one["steps"], one["last"], one["releases"], one["same"], one["files"]) for one in seen
    }
    assert len({one["published"] for one in seen}) > 3  # before, between and after the blocks


def test_after_a_kill_a_run_resumes_and_what_was_published_stays(memory_path):
    seen, points = killed(memory_path, "resume", 31)
    assert points > 200
    check_resumed(seen, FILES)


def test_noise_of_open_blocks_survives_a_kill(memory_path):
    seen, _ = killed(memory_path, "pure", 37)
    check_resumed(seen, FILES - 3)  # no decayed view


def test_the_values_that_were_seen_survive_a_kill(memory_path):
    seen, _ = killed(memory_path, "distinct", 29)
    check_resumed(seen, 12)  # of each gauge and block a measurement and a view


def test_means_survive_a_kill(memory_path):
    seen, _ = killed(memory_path, "mean", 29)
    check_resumed(seen, FILES)


def test_a_clip_that_moves_and_what_waits_for_it_survive_a_kill(memory_path):
    seen, _ = killed(memory_path, "clip", 29)
    check_resumed(seen, FILES)


def test_a_clip_of_first_values_and_what_waits_for_it_survive_a_kill(memory_path):
    seen, _ = killed(memory_path, "drawn", 29)
    check_resumed(seen, FILES)


def test_discovered_cells_and_their_noise_survive_a_kill(memory_path):
    seen, _ = killed(memory_path, "found", 23)
    check_resumed(seen, 12 - 2)  # the daily view has one aligned step


def test_chosen_cells_and_the_threshold_of_their_tests_survive_a_kill(memory_path):
    seen, _ = killed(memory_path, "chosen", 7)
    check_resumed(seen, 3 * 2)  # of each block a measurement and a view


@pytest.mark.slow
def test_a_mark_written_after_publishing_would_be_caught(memory_path):
    seen, _ = killed(memory_path, "mutant", 13)
    assert [one for one in seen if one["newer"] and not one["refused"]]


def check_accepted(seen):
    assert [] == [one for one in seen if "failed" in one or not one["kept"]]
    assert {(2, 2)} == {(one["releases"], one["ledger"]) for one in seen}
    # what was charged once goes on: no later kill makes an operator accept, and pay, again
    again = [one["again"] for one in seen]
    assert sorted(again, reverse=True) == again
    assert {True, False} == set(again)


@pytest.mark.slow
def test_a_second_release_is_paid_once_after_a_kill_at_every_single_write(memory_path):
    seen, points = killed(memory_path, "accept", 1)
    assert points == len(seen) > 200
    check_accepted(seen)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "files"), [("resume", FILES), ("pure", FILES - 3), ("distinct", 12), ("found", 10)]
)
def test_a_kill_at_every_single_write_loses_and_doubles_nothing(memory_path, mode, files):
    seen, points = killed(memory_path, mode, 1)
    assert points == len(seen)
    check_resumed(seen, files)


@pytest.mark.slow
def test_an_old_store_is_refused_after_a_kill_at_every_single_write(memory_path):
    seen, points = killed(memory_path, "restore", 1)
    newer = [one for one in seen if one["newer"]]
    assert points == len(seen)
    assert len(newer) > 20
    assert [] == [one for one in newer if not one["refused"]]


@pytest.mark.slow
def test_kills_at_random_moments_leave_a_run_that_ends_as_it_should(memory_path):
    place, rng = stand.Place(memory_path), stand.np.random.default_rng(0)
    command = [sys.executable, str(HERE / "stand.py"), str(memory_path)]
    before = {}
    for delay in rng.uniform(1.0, 4.0, 8):
        process = subprocess.Popen(command)
        time.sleep(delay)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        numbers = place.numbers()
        assert before.items() <= numbers.items()
        before = numbers
    subprocess.run(command, check=True)
    assert before.items() <= place.numbers().items()
    assert 1 == json.loads(place.files()["ledger.json"])["releases"]
