"""One test for each exit code; what is printed says what to do, and shows no data."""

import json
import shutil
import signal
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner
from terminals import environment
from terminals import in_process as tidegauge
from visits import CONFIG, STEPS_ALONE, rows_of_visits, write_visits

from tidegauge.cli.main import program


def run(shop, *words, **changes):
    return tidegauge("run", "visits.yaml", *words, cwd=shop, **changes)


def test_0_done(shop):
    code, _, err = run(shop)
    assert 0 == code, err
    assert 0 == run(shop)[0]


def test_1_unexpected_shows_neither_a_traceback_nor_data(shop, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("row 17: 4 bananas")

    monkeypatch.setattr("tidegauge.engine.run.run", fail)
    for words in ([], ["-v"]):
        ended = CliRunner().invoke(program, ["run", str(shop / "visits.yaml"), *words])
        assert 1 == ended.exit_code
        assert "RuntimeError" in ended.stderr
        assert "bananas" not in ended.output
        assert "Traceback" not in ended.output
    assert "test_exit_codes.py" in ended.stderr  # with -v: the places


def test_2_usage(shop):
    code, out, err = tidegauge("run", cwd=shop)
    assert (2, "") == (code, out)
    assert "CONFIG" in err


@pytest.mark.parametrize("until", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "now"])
def test_2_a_moment_that_no_calendar_has(shop, until):
    code, out, err = run(shop, "--until", until)
    assert (2, "") == (code, out)
    assert "Expected a moment with its zone" in err
    assert "Traceback" not in err


def test_3_a_plan_whose_gauges_cost_more_than_its_guarantee(shop):
    assert 0 == tidegauge("plan", "visits.yaml", "-o", "plan.json", cwd=shop)[0]
    plan = json.loads((shop / "plan.json").read_text())
    plan["gauges"].append(plan["gauges"][0] | {"name": "again"})
    (shop / "plan.json").write_text(json.dumps(plan))
    code, out, err = run(shop, "--approved", "plan.json")
    assert (3, "") == (code, out), err
    assert "Together they would exceed what was promised." in err
    assert not (shop / "public").exists()
    assert not (shop / "visits.tidegauge").exists()


def test_5_a_store_behind_its_mark(shop):
    assert 0 == run(shop, "--until", "2025-01-08T00:00:00Z")[0]
    shutil.copy(shop / "visits.tidegauge", shop / "backup")
    assert 0 == run(shop)[0]
    before = contents(shop / "public")
    for extra in shop.glob("visits.tidegauge*"):
        extra.unlink()
    shutil.copy(shop / "backup", shop / "visits.tidegauge")
    for _ in range(2):  # never a retry
        code, out, err = run(shop)
        assert (5, "") == (code, out)
        assert "--accept-second-release" in err
    assert before == contents(shop / "public")


def test_69_a_source_that_is_away(shop):
    (shop / "visits.csv").unlink()
    code, out, err = run(shop)
    assert (69, "") == (code, out)
    assert "visits.csv" in err
    write_visits(shop, rows_of_visits())
    assert 0 == run(shop)[0]


@pytest.mark.parametrize("broken", [1, 2])
def test_69_a_row_group_that_is_damaged_once_others_have_been_read(shop, broken):
    """The footer is whole, so the damage shows in the middle of reading: nothing is measured."""
    pl = pytest.importorskip("polars")
    path = shop / "visits.parquet"
    size = 1 << 17
    start = pl.datetime(2025, 1, 6, time_zone="UTC")
    rows = pl.select(time=start + pl.duration(seconds=pl.int_range(3 * size)), shop=pl.lit("north"))
    rows.write_parquet(path, row_group_size=size, compression="zstd")
    (shop / "visits.yaml").write_text(CONFIG.replace("visits.csv", "visits.parquet"))
    whole = path.read_bytes()
    begin, end = (len(whole) * place // 3 for place in (broken, broken + 1))
    middle = (begin + end) // 2
    path.write_bytes(whole[:begin] + b"\xff" * (middle - begin) + whole[middle:])
    before = run(shop, "--until", "2025-01-07T00:00:00Z")
    assert (69, "") == before[:2], before
    assert "whole Parquet file" in before[2]
    assert {} == {name: data for name, data in contents(shop).items() if "0000" in name}
    path.write_bytes(whole)
    code, _, err = run(shop)
    assert 0 == code, err
    counted = json.loads(tidegauge("status", "visits.tidegauge", "--json", cwd=shop)[1])
    assert 3 * size == counted["operator_only"]["counters"]["records"]
    assert 1 == counted["releases_charged"]


def test_74_a_folder_that_cannot_be_written(shop):
    (shop / "visits.yaml").write_text(CONFIG.replace("public: public", "public: file/public"))
    (shop / "file").write_text("in the way")
    code, out, err = run(shop)
    assert (74, "") == (code, out), err
    assert "file" in err


def test_75_locked_by_another_process(shop):
    (shop / "visits.yaml").write_text(STEPS_ALONE.replace("[visits.csv]", '["-"]'))
    first = subprocess.Popen(
        [sys.executable, "-m", "tidegauge", "run", "visits.yaml"],
        cwd=shop, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        while first.poll() is None and not (shop / "visits.mark").exists():
            time.sleep(0.01)  # the mark is written under the lock, before the source is read
        code, out, err = run(shop, stdin="")
        assert (75, "") == (code, out)
        assert str(first.pid) in err
    finally:
        first.stdin.close()
    assert 0 == first.wait()
    assert 0 == run(shop, stdin="")[0]


def test_78_a_wrong_config(shop):
    (shop / "visits.yaml").write_text(CONFIG.replace("epsilon", "epsilonn"))
    for words in (["validate"], ["plan"], ["run"]):
        code, out, err = tidegauge(*words, "visits.yaml", cwd=shop)
        assert (78, "") == (code, out)
        assert "visits.yaml:6:" in err
        assert "epsilon" in err


def test_78_a_store_that_is_a_folder(shop):
    (shop / "visits.tidegauge").mkdir(mode=0o755)
    for word in ("validate", "plan", "run"):
        code, out, err = tidegauge(word, "visits.yaml", cwd=shop)
        assert (78, "") == (code, out), err
        assert "visits.yaml:9:8" in err
        assert "folder" in err
    assert 0o755 == (shop / "visits.tidegauge").stat().st_mode & 0o777


def test_78_a_kind_of_source_that_run_cannot_read(shop):
    (shop / "visits.yaml").write_text(CONFIG.replace("[visits.csv]", "[v.parquet.gz]"))
    said = set()
    for word in ("validate", "plan", "run"):
        code, out, err = tidegauge(word, "visits.yaml", cwd=shop)
        assert (78, "") == (code, out), err
        said.add(err)
    assert 1 == len(said)
    assert "v.parquet.gz" in said.pop()


@pytest.mark.parametrize(
    "output", ["visits.csv", "visits.yaml", "visits.tidegauge", "visits.mark", "public/plan.json"]
)
def test_2_a_plan_file_that_would_overwrite_something(shop, output):
    before = contents(shop)
    assert 2 == tidegauge("plan", "visits.yaml", "-o", output, cwd=shop)[0]
    assert before == contents(shop)


def test_78_a_plan_that_is_not_the_approved_one(shop):
    code, out, _ = run(shop, "--approved", "sha256:" + "0" * 64)
    assert (78, "") == (code, out)
    assert not (shop / "public").exists()
    assert not (shop / "visits.tidegauge").exists()
    digest = json.loads(tidegauge("plan", "visits.yaml", "--json", cwd=shop)[1])["sha256"]
    assert 0 == run(shop, "--approved", digest)[0]


@pytest.mark.parametrize(
    ("old", "new"),
    [("epsilon: 1.0", "epsilon: 2.0"), ("1d]", "2d]"), ("public: public", "about: {title: x}")],
)
def test_78_a_config_that_is_not_that_of_the_approved_file(shop, old, new):
    assert 0 == tidegauge("plan", "visits.yaml", "-o", "plan.json", cwd=shop)[0]
    (shop / "visits.yaml").write_text(CONFIG.replace(old, new))
    code, out, err = run(shop, "--approved", "plan.json")
    assert (78, "") == (code, out), err
    assert "Expected the approved plan" in err
    assert not (shop / "visits.tidegauge").exists()


@pytest.mark.parametrize("file", ["missing.json", "visits.csv", ".", "visits.yaml"])
def test_78_an_approved_file_that_is_none(shop, file):
    code, out, err = run(shop, "--approved", file)
    assert (78, "") == (code, out), err
    assert "Expected a plan file" in err


def test_78_a_plan_file_says_not_where_things_are(shop):
    assert 0 == tidegauge("plan", "visits.yaml", "-o", "plan.json", cwd=shop)[0]
    code, out, err = tidegauge("run", "plan.json", cwd=shop)
    assert (78, "") == (code, out)
    assert "Run the config, with --approved plan.json." in err


def test_78_a_store_of_another_plan(shop):
    assert 0 == run(shop)[0]
    before = contents(shop / "public")
    (shop / "visits.yaml").write_text(CONFIG.replace("epsilon: 1.0", "epsilon: 2.0"))
    code, out, _ = run(shop)
    assert (78, "") == (code, out)
    assert before == contents(shop / "public")


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_130_interrupted_and_run_again(shop, sign):
    config = STEPS_ALONE.replace("step: 1h", "step: 1s")
    config = config.replace("end: 2025-01-13", "end: 2025-01-09")
    (shop / "visits.yaml").write_text(config)
    process = subprocess.Popen(
        [sys.executable, "-m", "tidegauge", "run", "visits.yaml"],
        cwd=shop, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    measured = shop / "public" / "measurements" / "visits"
    while process.poll() is None and not any(measured.glob("*.parquet")):
        time.sleep(0.001)
    process.send_signal(sign)
    out, err = process.communicate()
    assert (130, "") == (process.returncode, out)
    assert "again" in err
    assert "Traceback" not in err
    published = {file.name: file.read_bytes() for file in measured.glob("*.parquet")}
    code, _, err = run(shop)
    assert 0 == code, err
    assert published == {name: (measured / name).read_bytes() for name in published}
    assert len(published) < len(list(measured.glob("*.parquet")))


def contents(folder):
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


def test_5_a_run_that_meets_a_damaged_file_of_its_own_says_how_it_is_mended(shop):
    assert 0 == run(shop)[0]
    path = shop / "public" / "measurements" / "visits" / "000000000001.parquet"
    before = path.read_bytes()
    path.write_bytes(b"damaged")
    code, _, err = run(shop)
    assert 5 == code
    assert "remove it and run again" in err
    path.unlink()
    assert 0 == run(shop)[0]
    assert before == path.read_bytes()
