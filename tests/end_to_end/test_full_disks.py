"""Disks that are really full: files that may not grow, and a standard output that takes nothing."""

import json
import resource
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from terminals import environment
from terminals import in_process as tidegauge
from visits import STEPS_ALONE

FULL = Path("/dev/full")


@contextmanager
def files_up_to(size):
    """Let no file of this process grow beyond so many bytes; Python then gets EFBIG."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def contents(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*.parquet"))
    }


@pytest.mark.parametrize("size", [0, 1 << 10, 1 << 13, 1 << 14, 1 << 17])
def test_74_a_file_that_cannot_grow_and_the_next_run_goes_on(shop, size):
    assert 0 == tidegauge("run", "visits.yaml", "--until", "2025-01-07T00:00:00Z", cwd=shop)[0]
    before = contents(shop / "public")
    with files_up_to(size):
        code, out, err = tidegauge("run", "visits.yaml", cwd=shop)
    assert (74, "") == (code, out)
    assert "Expected to write" in err
    assert "run again" in err
    between = contents(shop / "public")
    assert before.items() <= between.items()
    assert [] == list(shop.rglob("*.part"))
    code, _, err = tidegauge("run", "visits.yaml", cwd=shop)
    assert 0 == code, err
    assert between.items() <= contents(shop / "public").items()
    told = json.loads(tidegauge("status", "visits.tidegauge", "--json", cwd=shop)[1])
    assert (168, 1) == (told["steps"], told["releases_charged"])


def test_74_a_first_run_on_a_full_disk_publishes_nothing(shop):
    with files_up_to(0):
        assert 74 == tidegauge("run", "visits.yaml", cwd=shop)[0]
    assert {} == contents(shop)
    assert 0 == tidegauge("run", "visits.yaml", cwd=shop)[0]


def to_full(shop, *words):
    """Run a command whose standard output takes nothing."""
    with FULL.open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "tidegauge", *words],
            cwd=shop, stdout=full, stderr=subprocess.PIPE, env=environment(), text=True,
        )  # fmt: skip
    return done.returncode, done.stderr


@pytest.mark.skipif(not FULL.exists(), reason="the system has no /dev/full")
def test_74_a_standard_output_that_takes_nothing(shop):
    sink = 'sinks: [{jsonl: {path: "-"}}]\n'
    (shop / "visits.yaml").write_text(STEPS_ALONE + sink)
    code, err = to_full(shop, "run", "visits.yaml", "-q")
    assert 74 == code, err
    assert "Traceback" not in err
    rows = tidegauge("run", "visits.yaml", "-q", cwd=shop)[1].splitlines()
    assert 168 * 3 == len(rows)  # every row comes once its reader has room
    wide = ["--gauge", "visits", "--view", "step", "--format", "csv"]
    for words in (["plan", "visits.yaml"], ["status", "visits.tidegauge"],
                  ["export", "public", *wide]):  # fmt: skip
        code, err = to_full(shop, *words)
        assert 74 == code, (words, err)
        assert "Traceback" not in err
        assert "Exception ignored" not in err
