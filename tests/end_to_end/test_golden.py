"""What users and programs read, byte for byte: change `tests/golden` only with a changelog entry.

The measurement is replaced by numbers that depend on nothing, so that releases are always the same.
To write the files anew: ``TIDEGAUGE_GOLDEN=write pytest tests/end_to_end/test_golden.py``.
"""

import os
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from visits import CONFIG, rows_of_visits, write_visits

from tidegauge.cli.main import program

GOLDEN = Path(__file__).parents[1] / "golden"
FITTED = re.compile(r"\d+\.\d{5,}")
LONG = re.compile(r"\d+\.\d{7,}")
WRONG = """\
sources: [visits.csv]
event_tim: time
step: 1h
start: 2025-01-06
end: 2025-01-13T00:00:00Z
privacy: {epsilon: 1e-0, delta: 1_000}
gauges:
  visits: {count: {where: "sum(x) > 3"}, by: {shop: [NO, north]}, views: [90m]}
"""


def fixed(strategy, state, law, words, exact, first):
    """A measurement of nothing: the cell's number, in grains."""
    rows = strategy.encode(state["encoder"], np.zeros_like(exact), first)
    rows[:] = np.arange(exact.shape[1]) << strategy.lattice_bits
    return rows


@pytest.fixture
def published(tmp_path, monkeypatch):
    monkeypatch.setattr("tidegauge.mechanisms.meter.measure", fixed)
    monkeypatch.chdir(tmp_path)
    config = CONFIG.replace("1d]", "2h, {window: 2h, every: 2h}]")
    write_visits(tmp_path, rows_of_visits(), config)
    quiet = run("run", "visits.yaml", "--until", "2025-01-06T04:00:00Z", "-q")
    assert "What is promised" not in quiet.stdout  # PRIVACY.md has it
    return tmp_path


def run(*words, code=0):
    ended = CliRunner().invoke(program, list(words))
    assert code == ended.exit_code, ended.output
    return ended


def compare(name, text):
    path = GOLDEN / name
    text = LONG.sub(lambda number: f"{float(number[0]):.6f}", text)  # the last digits are libm's
    if os.environ.get("TIDEGAUGE_GOLDEN") == "write":
        path.write_text(text)
    assert path.read_text() == text


@pytest.mark.parametrize("form", ["csv", "jsonl", "table"])
def test_exported_text(published, form):
    ended = run("export", "public", "--view", "window_2h", "--format", form)
    compare(f"export.{'txt' if form == 'table' else form}", ended.stdout)


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_exported_columns_and_their_types(published, form):
    run("export", "public", "--view", "window_2h", "-o", f"export.{form}")
    read = pl.read_parquet if form == "parquet" else pl.read_ipc
    table = read(published / f"export.{form}")
    schema = "\n".join(f"{name}: {kind}" for name, kind in table.schema.items())
    compare("export_types.txt", f"{schema}\n")


def test_names_in_the_public_folder(published):
    public = published / "public"
    names = sorted(str(file.relative_to(public)) for file in public.rglob("*") if file.is_file())
    compare("public_folder.txt", "\n".join(names) + "\n")


def test_problems_of_a_config(published):
    (published / "wrong.yaml").write_text(WRONG)
    ended = run("validate", "wrong.yaml", "visits.yaml", code=78)
    assert "" == ended.stdout
    compare("problems.txt", ended.stderr)


def test_problems_for_programs(published):
    (published / "wrong.yaml").write_text(WRONG)
    ended = run("validate", "wrong.yaml", "--json", code=78)
    compare("problems.json", ended.stdout)


def test_the_status_of_a_store(published):
    ended = run("status", "visits.tidegauge", "--json")
    lines = [line for line in ended.stdout.splitlines() if "sha256" not in line]
    compare("status.json", "\n".join(lines) + "\n")


@pytest.mark.parametrize("form", ["txt", "json"])
def test_the_candidates_of_a_plan(published, form):
    ended = run("plan", "visits.yaml", "--compare", *["--json"] * (form == "json"))
    compare(f"candidates.{form}", without_fit(ended.stdout))


@pytest.mark.parametrize("form", ["txt", "json"])
def test_the_budget_for_an_error(published, form):
    asked = ("--for-error", "running=40", "--for-error", "step=20")
    ended = run("plan", "visits.yaml", *asked, *["--json"] * (form == "json"))
    compare(f"for_error.{form}", without_fit(ended.stdout))


# --- a gauge that discovers its cells


@pytest.fixture
def discovered(tmp_path, monkeypatch):
    """A run without noise, in two blocks, in the second of which a cell is named."""

    def exactly(strategy, state, law, words, exact, first, *numbers):
        return strategy.encode(state["encoder"], exact, first)

    monkeypatch.setattr("tidegauge.mechanisms.finder.measure", exactly)
    monkeypatch.chdir(tmp_path)
    how = "{shop: discover}, discover: {view: running, expected_items: 100}"
    config = CONFIG.replace("{shop: [north, south]}", how).replace("1.0e-9", "1.0e-3")
    early = [f"2025-01-06T0{i % 3}:00:00Z,{shop}" for i in range(300) for shop in ("a,b", "z")]
    late = [f"2025-01-06T0{3 + i % 3}:30:00Z,Zo\u00eb" for i in range(120)]
    quoted = [row if row[-1] != "b" else row.replace("a,b", '"a,b"') for row in early]
    write_visits(tmp_path, [*quoted, *late, "2025-01-06T00:00:00Z,rare"], config)
    for hour in (3, 6):
        run("run", "visits.yaml", "--until", f"2025-01-06T0{hour}:00:00Z", "-q")
    return tmp_path


@pytest.mark.parametrize("form", ["csv", "jsonl", "table"])
def test_exported_text_of_discovered_cells(discovered, form):
    ended = run("export", "public", "--view", "window_1d", "--format", form)
    compare(f"discovered.{'txt' if form == 'table' else form}", ended.stdout)


def test_files_of_discovered_cells_and_their_types(discovered):
    told = []
    for kind in ("measurements/visits", "releases/visits/running"):
        for path in sorted((discovered / "public" / kind).glob("*")):
            table = pl.read_parquet(path)
            told += [f"{kind}/{path.name}: {len(table)} rows"]
            told += [f"  {name}: {kind}" for name, kind in table.schema.items()]
            told += [f"  named: {', '.join(dict.fromkeys(table['shop']))}"]
    compare("discovered_files.txt", "\n".join(told) + "\n")


@pytest.mark.parametrize("form", ["txt", "json"])
def test_the_plan_of_discovered_cells(discovered, form):
    ended = run("plan", "visits.yaml", *["--json"] * (form == "json"))
    compare(f"discovered_plan.{form}", without_fit(ended.stdout))


def without_fit(text):
    """What does not hang on the last digits of a fit, which may differ from machine to machine."""
    lines = [line for line in text.splitlines() if "sha256" not in line]
    return FITTED.sub(lambda number: f"{float(number[0]):.3g}", "\n".join(lines) + "\n")
