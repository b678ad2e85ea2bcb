"""Runs as operators meet them: grown files, later views, plan files, standard input, sinks."""

import contextlib
import hashlib
import io
import json
import os
import shlex
import shutil
import sqlite3
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from terminals import environment
from terminals import in_process as tidegauge
from visits import CONFIG, rows_of_visits, write_visits

from tidegauge.mechanisms import candidates
from tidegauge.strategies.decay import Running

ROWS = rows_of_visits()


def done(*words, cwd, **changes):
    code, out, err = tidegauge(*words, cwd=cwd, **changes)
    assert 0 == code, err
    return out


def files(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_a_grown_file_adds_steps_and_changes_nothing_that_was_published(shop):
    done("run", "visits.yaml", "--until", "2025-01-09T00:00:00Z", cwd=shop)
    before = files(shop / "public")
    write_visits(shop, [*ROWS, *ROWS[:200]])  # more rows also for committed steps
    done("run", "visits.yaml", cwd=shop)
    after = files(shop / "public")
    assert before == {name: after[name] for name in before}
    assert len(before) < len(after)
    done("run", "visits.yaml", cwd=shop)
    assert after == files(shop / "public")


def test_a_view_that_is_added_later_is_free_and_covers_all_steps(shop):
    done("run", "visits.yaml", "--until", "2025-01-09T00:00:00Z", cwd=shop)
    before = files(shop / "public" / "measurements")
    ledger = (shop / "public" / "ledger.json").read_text()
    (shop / "visits.yaml").write_text(CONFIG.replace("1d]", "1d, 2d]"))
    done("run", "visits.yaml", cwd=shop)
    after = files(shop / "public" / "measurements")
    assert before == {name: after[name] for name in before}
    old, new = json.loads(ledger), json.loads((shop / "public" / "ledger.json").read_text())
    assert old["events"] == new["events"]
    folder = shop / "public" / "releases" / "visits" / "window_2d"
    table = pl.concat([pl.read_parquet(file) for file in sorted(folder.glob("*.parquet"))])
    assert list(range(1, 169)) == table["step"].unique(maintain_order=True).to_list()


def test_an_approved_plan_file_is_run_and_published_byte_for_byte(shop, tmp_path):
    (tmp_path / "plans").mkdir()
    out = done("plan", shop / "visits.yaml", "-o", "plans/plan.json", cwd=tmp_path)
    signed = (tmp_path / "plans" / "plan.json").read_bytes()
    digest = digest_of(signed)
    assert digest == out.split()[-1]
    done("run", shop / "visits.yaml", "--approved", "plans/plan.json", cwd=tmp_path)
    assert signed == (shop / "public" / "plan.json").read_bytes()
    done("run", shop / "visits.yaml", "--approved", digest, cwd=tmp_path)
    for file in ("plans/plan.json", shop / "public" / "plan.json"):
        assert out == done("plan", file, cwd=tmp_path)


def test_the_numbers_of_an_approved_file_are_used_whatever_would_be_fitted_now(shop, monkeypatch):
    text = (shop / "visits.yaml").read_text()
    (shop / "visits.yaml").write_text(text.replace("epsilon: 1.0, delta: 1.0e-9", "mu: 1"))
    done("plan", "visits.yaml", "-o", "plan.json", cwd=shop)
    signed = (shop / "plan.json").read_bytes()
    fitted = candidates._fitted

    def another(_, horizon, *rest):
        return fitted((Running(),), horizon, (1.0,), 0)

    monkeypatch.setattr(candidates, "_fitted", another)
    assert 78 == tidegauge("run", "visits.yaml", "--approved", digest_of(signed), cwd=shop)[0]
    done("run", "visits.yaml", "--approved", "plan.json", cwd=shop)
    assert signed == (shop / "public" / "plan.json").read_bytes()


def digest_of(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize(
    ("old", "new"),
    [('"neighboring_relation"', '"relation"'), ('"low":0', '"low":1'), ("{", "[")],
)
def test_a_plan_file_that_was_changed_is_refused(shop, old, new):
    done("plan", "visits.yaml", "-o", "plan.json", cwd=shop)
    text = (shop / "plan.json").read_text()
    changed = text.replace(old, new, 1)
    if changed == text:
        changed = text.replace('"relation"', '"relations"', 1)
    (shop / "plan.json").write_text(changed)
    code, out, err = tidegauge("run", "visits.yaml", "--approved", "plan.json", cwd=shop)
    assert (78, "") == (code, out)
    assert "Expected" in err
    assert not (shop / "public").exists()


@pytest.mark.parametrize("command", ["run", "plan"])
def test_a_plan_file_in_another_form_is_refused_for_its_sum_is_another(shop, command):
    done("plan", "visits.yaml", "-o", "plan.json", cwd=shop)
    data = (shop / "plan.json").read_bytes()
    words = {
        "run": ("run", "visits.yaml", "--approved", "plan.json"),
        "plan": ("plan", "plan.json"),
    }
    for other in (json.dumps(json.loads(data), indent=1).encode(), data + b"\n"):
        (shop / "plan.json").write_bytes(other)
        code, out, err = tidegauge(*words[command], cwd=shop)
        assert (78, "") == (code, out)
        assert "byte for byte" in err
        assert digest_of(data) in err
    assert not (shop / "public").exists()


def test_a_table_says_which_level_its_intervals_have(shop):
    (shop / "visits.yaml").write_text(CONFIG.replace("count: {}", "count: {}, level: 0.99"))
    out = done("run", "visits.yaml", cwd=shop)
    assert "with 99 % intervals (noise only)" in out
    assert "95 %" not in out.split("What is promised")[0]


def test_standard_input_is_read_as_json_lines(shop):
    (shop / "visits.yaml").write_text(CONFIG.replace("[visits.csv]", '["-"]'))
    lines = (dict(zip(("time", "shop"), row.split(","), strict=True)) for row in ROWS)
    text = "\n".join(map(json.dumps, lines)) + "\nnot json\n"
    out = done("run", "visits.yaml", "--json", cwd=shop, stdin=text)
    told = json.loads(out)
    assert (1, 168) == (told["first_step"], told["last_step"])
    assert 9 == len(told["latest"])
    status = json.loads(done("status", "visits.tidegauge", "--json", cwd=shop))
    assert len(ROWS) + 1 == status["operator_only"]["counters"]["records"]


def test_a_sink_on_standard_output_gets_json_lines_and_nothing_else(shop):
    sink = 'sinks: [{jsonl: {path: "-", views: [running]}}]\n'
    (shop / "visits.yaml").write_text(CONFIG + sink)
    rows = [json.loads(line) for line in done("run", "visits.yaml", cwd=shop).splitlines()]
    assert 168 * 3 == len(rows)
    assert {"running"} == {row["view"] for row in rows}
    assert "" == done("run", "visits.yaml", cwd=shop)


def test_a_run_whose_reader_had_enough_is_quiet_and_goes_on_with_the_next(shop):
    (shop / "visits.yaml").write_text(CONFIG + 'sinks: [{jsonl: {path: "-"}}]\n')
    process = subprocess.Popen(
        [sys.executable, "-m", "tidegauge", "run", "visits.yaml", "-q"],
        cwd=shop, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    process.stdout.close()
    with process.stderr:
        assert b"" == process.stderr.read()
    assert 74 == process.wait()
    assert 3 * 168 * 3 == len(done("run", "visits.yaml", cwd=shop).splitlines())


def test_a_sink_in_a_file_holds_what_was_published(shop):
    sinks = "sinks: [{csv: {path: all.csv}}, {parquet: {path: day.parquet, views: [window_1d]}}]\n"
    (shop / "visits.yaml").write_text(CONFIG + sinks)
    done("run", "visits.yaml", cwd=shop)
    assert 3 * 168 * 3 == len(pl.read_csv(shop / "all.csv"))
    day = pl.read_parquet(shop / "day.parquet")
    assert 168 * 3 == len(day)
    out = done("export", "public", "--view", "window_1d", "--format", "csv", cwd=shop)
    assert pl.read_csv(io.StringIO(out))["value"].to_list() == day["value"].to_list()


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_level_and_band_may_change_and_each_row_says_its_own(shop, kind):
    config = CONFIG + f"sinks: [{{{kind}: {{path: all.{kind}}}}}]\n"
    (shop / "visits.yaml").write_text(config)
    done("run", "visits.yaml", "--until", "2025-01-09T00:00:00Z", cwd=shop)
    before = files(shop / "public" / "releases")
    changed = config.replace("1d]}", "1d], level: 0.9, band: simultaneous}")
    (shop / "visits.yaml").write_text(changed)
    done("run", "visits.yaml", cwd=shop)
    assert before.items() <= files(shop / "public" / "releases").items()
    read = {"csv": pl.read_csv, "jsonl": pl.read_ndjson, "parquet": pl.read_parquet}[kind]
    public = pl.read_parquet(shop / "public" / "releases" / "visits" / "running" / "*.parquet")
    for table in (read(shop / f"all.{kind}").filter(pl.col("view") == "running"), public):
        early = table["step"] <= 72
        for rows, said in ((early, (0.95, "pointwise")), (~early, (0.9, "simultaneous"))):
            own = table.filter(rows).select("level", pl.col("band").cast(pl.String))
            assert [said] == own.unique().rows()


def test_a_view_does_not_change_under_its_name(shop):
    config = CONFIG.replace("[step, running, 1d]", "{recent: 1d, running: running}")
    (shop / "visits.yaml").write_text(config)
    done("run", "visits.yaml", "--until", "2025-01-09T00:00:00Z", cwd=shop)
    before = files(shop / "public")
    for view in ("2d", "{window: 1d, every: 12h}"):
        (shop / "visits.yaml").write_text(config.replace("recent: 1d", f"recent: {view}"))
        code, _, err = tidegauge("run", "visits.yaml", cwd=shop)
        assert 78 == code
        assert "a name of its own" in err
        assert before == files(shop / "public")
    (shop / "visits.yaml").write_text(config.replace("recent: 1d", "recent: 1d, later: 2d"))
    done("run", "visits.yaml", cwd=shop)


def test_nothing_is_published_before_it_is_over(shop):
    now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    start, end = now - timedelta(hours=5), now + timedelta(days=1)
    config = CONFIG.replace("2025-01-06T00:00:00Z", f"{start:%Y-%m-%dT%H:%M:%SZ}")
    config = config.replace("2025-01-13T00:00:00Z", f"{end:%Y-%m-%dT%H:%M:%SZ}")
    (shop / "visits.yaml").write_text(config)
    told = json.loads(done("run", "visits.yaml", "--json", cwd=shop))
    assert told["last_step"] in (5, 6)  # six if an hour ended meanwhile


@pytest.mark.parametrize("until", ["2025-01-08", "2025-01-08T00:00:00", "yesterday"])
def test_until_needs_a_zone(shop, until):
    code, out, err = tidegauge("run", "visits.yaml", "--until", until, cwd=shop)
    assert (2, "") == (code, out)
    assert "zone" in err


def test_a_missing_column_is_told_before_anything_is_published(shop):
    (shop / "visits.csv").write_text("when,shop\n2025-01-06T00:00:00Z,north\n")
    code, out, err = tidegauge("run", "visits.yaml", cwd=shop)
    assert (69, "") == (code, out)
    assert "time" in err
    assert "north" not in err
    assert not list((shop / "public").rglob("*.parquet"))


def test_an_empty_file_is_a_stream_of_empty_steps(shop):
    (shop / "visits.csv").write_text("")
    done("run", "visits.yaml", cwd=shop)
    table = done("export", "public", "--view", "running", "--format", "csv", cwd=shop)
    assert 168 * 3 + 1 == len(table.splitlines())


def test_names_are_completed_from_the_public_folder(shop):
    done("run", "visits.yaml", cwd=shop)

    def completed(line):
        out = done(
            cwd=shop,
            _TIDEGAUGE_COMPLETE="bash_complete",
            COMP_WORDS=line,
            COMP_CWORD=str(len(line.split(" ")) - 1),
        )
        return [one.partition(",")[2] for one in out.splitlines() if one]

    assert ["visits"] == completed("tidegauge export public --gauge ")
    assert ["running"] == completed("tidegauge export public --view r")
    assert ["status", "schema"] == [
        name for name in completed("tidegauge s") if name in ("status", "schema")
    ]
    assert [] == completed("tidegauge export nowhere --gauge ")


def test_a_store_that_cannot_be_read_hinders_no_plan_and_is_refused_by_a_run(shop):
    (shop / "visits.tidegauge").write_bytes(b"no store")
    done("plan", "visits.yaml", cwd=shop)
    code, out, err = tidegauge("run", "visits.yaml", cwd=shop)
    assert (78, "") == (code, out)
    assert "visits.tidegauge" in err
    assert b"no store" == (shop / "visits.tidegauge").read_bytes()


@pytest.mark.parametrize("writable", [True, False])
def test_status_leaves_the_folder_as_it_was(shop, monkeypatch, writable):
    done("run", "visits.yaml", cwd=shop)
    before = files(shop)
    (shop / "visits.tidegauge").chmod(0o600 if writable else 0o400)
    shop.chmod(0o700 if writable else 0o500)
    may = os.access  # root may write everywhere but on a read-only disk
    monkeypatch.setattr(
        os, "access", lambda path, mode, **_: may(path, mode) and (writable or mode != os.W_OK)
    )
    told = json.loads(done("status", "visits.tidegauge", "--json", cwd=shop))
    shop.chmod(0o700)
    assert 168 == told["steps"]
    assert before == files(shop)


def test_status_reads_the_log_of_a_writer_that_lives_or_was_killed(shop, tmp_path):
    done("run", "visits.yaml", "--until", "2025-01-09T00:00:00Z", cwd=shop)
    with contextlib.closing(sqlite3.connect(shop / "visits.tidegauge")) as writer:
        writer.execute("PRAGMA wal_autocheckpoint = 0")
        writer.execute("UPDATE plan SET step = 73")
        writer.commit()
        shutil.copytree(shop, tmp_path / "killed")
        before = files(tmp_path / "killed")
        assert before["visits.tidegauge-wal"]
        for folder in (shop, tmp_path / "killed"):
            told = json.loads(done("status", "visits.tidegauge", "--json", cwd=folder))
            assert 73 == told["steps"]
        after = files(tmp_path / "killed")
        for name in ("visits.tidegauge", "visits.tidegauge-wal"):
            assert before[name] == after[name]


def test_a_quoted_newline_belongs_to_a_field_where_the_config_says_so(shop):
    quoted = [row.replace("north", '"north\nwest"') for row in ROWS]
    there = sum("north" in row for row in ROWS)
    counted = {}
    for name, csv in (("split", ""), ("whole", "csv: {multiline: true}\n")):
        config = CONFIG.replace("[north, south]", "[south]") + csv  # the rest is "other"
        folder = write_visits(shop / name, quoted, config)
        done("run", "visits.yaml", cwd=folder)
        told = json.loads(done("status", "visits.tidegauge", "--json", cwd=folder))
        counted[name] = told["operator_only"]["counters"]["records"]
        text = (folder / "public" / "PRIVACY.md").read_text()
        assert ("a row with an open quote can swallow" in text) == bool(csv)
    assert counted == {"split": len(ROWS) + there, "whole": len(ROWS)}
    config = (shop / "split" / "visits.yaml").read_text()
    (shop / "split" / "visits.yaml").write_text(config + "csv: {multiline: true}\n")
    assert 78 == tidegauge("run", "visits.yaml", cwd=shop / "split")[0]  # another reading


def test_a_statement_can_be_read_before_the_run_and_is_what_the_run_publishes(shop):
    before = files(shop)
    told = done("plan", "visits.yaml", "--statement", cwd=shop)
    data = done("plan", "visits.yaml", "--statement", "--json", cwd=shop)
    assert before == files(shop)
    done("run", "visits.yaml", cwd=shop)
    assert told == (shop / "public" / "PRIVACY.md").read_text()
    assert json.loads(data) == json.loads((shop / "public" / "privacy.json").read_text())
    (shop / "visits.tidegauge").unlink()
    done("run", "visits.yaml", "--accept-second-release", cwd=shop)
    told = done("plan", "visits.yaml", "--statement", cwd=shop)
    assert "ERRATUM, 2 releases" in told
    assert told == (shop / "public" / "PRIVACY.md").read_text()


def test_stamps_without_a_zone_are_warned_of_and_their_loss_is_told(shop):
    write_visits(shop, [row.replace("Z,", ",") for row in ROWS])
    code, _, warned = tidegauge("validate", "visits.yaml", cwd=shop)
    assert 0 == code
    assert "visits.yaml:2:1" in warned
    assert "Stamps without a zone are left out" in warned
    code, out, told = tidegauge("run", "visits.yaml", cwd=shop)
    assert 0 == code
    assert f"For the operator alone: {len(ROWS):,} rows read, {len(ROWS):,} of them left" in told
    assert "Warning: no row was counted" in told
    assert "For the operator" not in out
    zoned = CONFIG.replace("event_time: time\n", "event_time: time\ntimezone: UTC\n")
    zoned = zoned.replace("store: visits", "store: zoned").replace("mark: visits", "mark: zoned")
    (shop / "zoned.yaml").write_text(zoned.replace("public: public", "public: zoned"))
    assert "Stamps without" not in tidegauge("validate", "zoned.yaml", cwd=shop)[2]
    told = tidegauge("run", "zoned.yaml", cwd=shop)[2]
    assert f"{len(ROWS):,} rows read, 0 of them left out of all gauges." in told


def test_a_config_is_warned_of_when_it_is_checked_and_before_its_first_run(shop):
    warning = "Warning: visits.yaml:2:13: Stamps without a zone are left out"
    for word in ("validate", "validate"):
        assert warning in tidegauge(word, "visits.yaml", cwd=shop)[2]
    assert "Warning" not in tidegauge("plan", "visits.yaml", cwd=shop)[2]
    words = ("run", "visits.yaml", "--until", "2025-01-09T00:00:00Z")
    told = tidegauge(*words, cwd=shop)[2]
    assert -1 < told.index(warning) < told.index("steps measured")
    assert warning not in tidegauge("run", "visits.yaml", cwd=shop)[2]


def test_rows_of_published_steps_are_not_called_outside(shop):
    done("run", "visits.yaml", "--until", "2025-01-09T00:00:00Z", cwd=shop)
    told = tidegauge("run", "visits.yaml", cwd=shop)[2]
    early = sum(row < "2025-01-09" for row in ROWS)
    what = "are of steps published before (counted then, or too late)"
    assert f"For the operator alone: {early} {what}" in told
    assert "before the start" not in told
    assert "For the operator" not in tidegauge("run", "visits.yaml", cwd=shop)[2]  # nothing read


def test_what_a_run_prints_can_be_typed_where_it_was_printed(shop):
    beside = shop / "else where"
    shutil.copytree(shop, beside / "a shop")
    told = tidegauge("run", "a shop/visits.yaml", cwd=beside)[2]
    (line,) = [line for line in told.splitlines() if "tidegauge status" in line]
    words = shlex.split(line.split("tidegauge ")[1])
    assert "Steps: 168 of 168" in done(*words, cwd=beside)


def test_a_source_that_is_not_there_is_warned_of_without_being_read(shop):
    (shop / "visits.csv").unlink()
    code, _, err = tidegauge("validate", "visits.yaml", cwd=shop)
    assert 0 == code
    assert "Expected a file for the source visits.csv, got none yet" in err
    (shop / "visits.csv").write_text("")
    assert "got none yet" not in tidegauge("validate", "visits.yaml", cwd=shop)[2]
