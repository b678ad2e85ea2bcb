"""Every benchmark script runs, with the smallest sizes, and prints figures."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
SCRIPTS = sorted(file.name for file in FOLDER.glob("*.py") if file.name != "timing.py")
MORE = {"accuracy.py": ["--stream", "--starts", "1"]}


def run(script, *options):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.run(
        [sys.executable, "-W", "error", FOLDER / script, *options],
        capture_output=True, text=True, env=environment, timeout=120,
    )  # fmt: skip


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_benchmark_runs_and_prints_figures(script):
    if script == "noise.py":
        pytest.importorskip("opendp")
    done = run(script, "--quick", *MORE.get(script, []))
    assert (0, "") == (done.returncode, done.stderr)
    assert len(re.findall(r"\d+\.\d+", done.stdout)) >= 4


def test_every_benchmark_is_on_the_page_and_in_make_bench():
    page, make = (FOLDER / "README.md").read_text(), (FOLDER.parent / "Makefile").read_text()
    (listed,) = re.findall(r"for script in ([\w ]+); do \$\(BIN\)/python benchmarks/", make)
    assert SCRIPTS == sorted(f"{name}.py" for name in listed.split())
    assert SCRIPTS == sorted(re.findall(r"^\| `(\w+\.py)`", page, flags=re.MULTILINE))
