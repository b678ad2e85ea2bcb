"""Every benchmark script runs, with the smallest sizes, and prints figures."""

import re
from pathlib import Path

import pytest
from scripts import run

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
SCRIPTS = sorted(file.name for file in FOLDER.glob("*.py") if file.name != "timing.py")
MORE = {"accuracy.py": ["--stream", "--starts", "1"]}


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_benchmark_runs_and_prints_figures(capfd, script):
    if script == "noise.py":
        pytest.importorskip("opendp")
    run(FOLDER / script, "--quick", *MORE.get(script, []))
    out, err = capfd.readouterr()
    assert "" == err
    assert len(re.findall(r"\d+\.\d+", out)) >= 4


def test_every_benchmark_is_on_the_page_and_in_make_bench():
    page, make = (FOLDER / "README.md").read_text(), (FOLDER.parent / "Makefile").read_text()
    (listed,) = re.findall(r"for script in ([\w ]+); do \$\(BIN\)/python benchmarks/", make)
    assert SCRIPTS == sorted(f"{name}.py" for name in listed.split())
    assert SCRIPTS == sorted(re.findall(r"^\| `(\w+\.py)`", page, flags=re.MULTILINE))
