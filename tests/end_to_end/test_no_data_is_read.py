"""`validate` and `plan` read no data; `export` and `plot` need neither store nor source."""

import os
import shutil
import subprocess
import sys

import pytest
from click.testing import CliRunner
from terminals import environment
from terminals import in_process as tidegauge
from visits import STEPS_ALONE, write_visits

from tidegauge.cli.main import program
from tidegauge.connectors.files import Files


class Read(AssertionError):
    """The spy was read."""


@pytest.fixture
def spied(monkeypatch):
    """Any reading of any source raises; so does looking for its files, types or columns."""

    def raises(*_, **__):
        raise Read

    for name in ("batches", "types", "paths"):
        monkeypatch.setattr(Files, name, raises)


PLANNING = [
    ["plan"],
    ["plan", "--json"],
    ["plan", "--statement"],
    ["plan", "--compare"],
    ["plan", "--for-error", "running=50"],
    ["plan", "--plot", "noise.svg"],
    ["plan", "--compare", "--for-error", "step=9", "--plot", "noise.png", "--json"],
]


@pytest.mark.parametrize("words", [["validate"], *PLANNING])
def test_the_spy_is_not_read(shop, spied, words, monkeypatch):
    monkeypatch.chdir(shop)
    ended = CliRunner().invoke(program, [*words, str(shop / "visits.yaml")])
    assert 0 == ended.exit_code, ended.output


def test_the_spy_would_be_noticed(shop, spied):
    ended = CliRunner().invoke(program, ["run", str(shop / "visits.yaml")])
    assert 1 == ended.exit_code
    assert "Read" in ended.stderr


def test_planning_in_python_draws_no_noise_and_opens_no_file(monkeypatch):
    import builtins

    from tidegauge.mechanisms.design import plan
    from tidegauge.strategies.decay import Running, Window

    asked = {"views": [Running(), Window(7)], "unit": "event", "end": 100, "epsilon": 1}
    plan(**asked)  # whatever is loaded once is loaded

    def raises(*_, **__):
        raise Read

    monkeypatch.setattr(builtins, "open", raises)
    monkeypatch.setattr("tidegauge.noise.randomness.AesWords.__init__", raises)
    assert plan(**asked).chosen.plan is not None


@pytest.mark.parametrize("words", [["validate"], ["plan", "-o", "plan.json"], PLANNING[-1]])
def test_a_source_that_would_block_for_ever_is_not_opened(shop, words):
    (shop / "visits.yaml").write_text(STEPS_ALONE)
    (shop / "visits.csv").unlink()
    os.mkfifo(shop / "visits.csv")
    done = subprocess.run(
        [sys.executable, "-m", "tidegauge", *words, "visits.yaml"],
        cwd=shop, env=environment(), capture_output=True, timeout=60,
    )  # fmt: skip
    assert 0 == done.returncode, done.stderr


def test_a_plan_does_not_depend_on_the_data(shop, tmp_path):
    other = write_visits(tmp_path / "other", ["not,even,rows"])
    without = write_visits(tmp_path / "without", [])
    (without / "visits.csv").unlink()
    for words in PLANNING[:4]:
        plans = [tidegauge(*words, "visits.yaml", cwd=at) for at in (shop, other, without)]
        assert plans[0] == plans[1] == plans[2]
        assert 0 == plans[0][0]


def test_readers_need_the_public_folder_alone(shop, tmp_path):
    assert 0 == tidegauge("run", "visits.yaml", cwd=shop)[0]
    shutil.move(shop / "public", tmp_path / "public")
    shutil.rmtree(shop)
    for words in (
        ["export", "public", "--gauge", "visits", "--view", "running", "-o", "running.csv"],
        ["export", "public", "--view", "2d", "-o", "later.parquet"],
        ["plot", "public", "-o", "visits.svg"],
    ):
        code, _, err = tidegauge(*words, cwd=tmp_path)
        assert 0 == code, err


@pytest.mark.parametrize("where", ["store", "mark"])
def test_what_is_private_is_its_owners_alone(shop, where):
    assert 0 == tidegauge("run", "visits.yaml", cwd=shop)[0]
    assert (
        0o600
        == (shop / f"visits.{'tidegauge' if where == 'store' else 'mark'}").stat().st_mode & 0o777
    )
