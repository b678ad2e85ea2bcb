"""T10 at the engine: with values hidden, all that a reader sees is equal on neighbouring inputs."""

import json
import time
from dataclasses import replace

import polars as pl
import pytest
import stand

from tidegauge.engine import documents, measuring
from tidegauge.engine import run as running
from tidegauge.engine import store as storing
from tidegauge.engine.source import Source
from tidegauge.errors import SourceUnavailable, TidegaugeError
from tidegauge.testing import seeded_meter

HIDDEN = ["value", "lower", "upper"]
ROWS = stand.rows()


@pytest.fixture(autouse=True)
def names(monkeypatch):
    """Names of stores and ids of releases are random; here they are functions of their purpose."""
    for module in (storing, documents):
        monkeypatch.setattr(module, "store_secret", lambda text: text.encode().ljust(32, b"-"))


def far(year):
    return pl.datetime(year, 6, 1, time_unit="us", time_zone="UTC")


NEIGHBOURS = {
    "one row fewer": ROWS[1:],
    "one row more": pl.concat([ROWS, ROWS[:1]]),
    "no row": ROWS[:0],
    "another kind": ROWS.with_columns(
        kind=pl.when(pl.int_range(len(ROWS)) == 5).then(pl.lit("ZZ")).otherwise("kind")
    ),
    "a null": ROWS.with_columns(
        at=pl.when(pl.int_range(len(ROWS)) == 5).then(None).otherwise("at")
    ),
    "in 2099": ROWS.with_columns(
        at=pl.when(pl.int_range(len(ROWS)) == 5).then(far(2099)).otherwise("at")
    ),
    "before 1970": ROWS.with_columns(
        at=pl.when(pl.int_range(len(ROWS)) == 5).then(far(1969)).otherwise("at")
    ),
    "another order": ROWS[::-1],
}


def seen(place, monkeypatch):
    """What a reader sees, with the numbers that carry noise hidden."""
    files = {}
    for name, data in place.files().items():
        path = place.public / name
        if name.startswith("releases"):
            table = pl.read_parquet(path)
            files[name] = (table.drop(HIDDEN).write_csv(), str(table.schema), about(path))
        elif name.startswith("measurements"):
            table = pl.read_parquet(path)
            files[name] = (table.drop("measured").write_csv(), str(table.schema), about(path))
        else:
            files[name] = data
    return list(files.items())  # their order, too


def about(path):
    metadata = pl.read_parquet_metadata(path)
    metadata.pop("ARROW:schema", None)
    metadata.pop("sha256", None)  # of the noisy numbers
    return sorted(metadata.items())


@pytest.mark.parametrize("change", NEIGHBOURS)
def test_a_reader_sees_the_same_but_for_the_values(memory_path, monkeypatch, change):
    monkeypatch.setattr(running, "_LANES", 40)
    plan, views = stand.plan_of(), []
    for name, frame in (("a", ROWS), ("b", NEIGHBOURS[change])):
        place = stand.Place(memory_path / name)
        outcome = place.run(plan, frame)
        views.append((seen(place, monkeypatch), replace(outcome, counters={})))
    assert views[0] == views[1]


def seeded(plan, *, state, step):
    """A meter whose noise is a function of the coordinate alone."""
    return seeded_meter(3, plan, state, step)


def test_equal_totals_and_equal_noise_give_equal_bytes_whatever_the_rows(memory_path, monkeypatch):
    """Rows that count for nothing leave no trace, in any byte."""
    monkeypatch.setattr(measuring, "Meter", seeded)
    published = []
    for name, frame in (("a", ROWS), ("b", pl.concat([ROWS, ROWS.with_columns(at=far(2099))]))):
        place = stand.Place(memory_path / name)
        place.run(stand.plan_of(), frame)
        published.append(place.files())
    assert published[0] == published[1]


class Failing(Source):
    def batches(self, columns):
        yield ROWS.select(columns)
        raise SourceUnavailable("Expected a source, got none. Nothing was counted. Bring it back.")

    def describe(self):
        return "a source that goes away"


def test_a_source_that_goes_away_has_published_nothing(memory_path):
    place = stand.Place(memory_path)
    with pytest.raises(SourceUnavailable):
        running.run(stand.plan_of(), Failing(), place.settings)
    assert {} == place.numbers()
    place.run(stand.plan_of(), ROWS)
    assert 1 == json.loads(place.files()["ledger.json"])["releases"]


class Unread(Source):
    def batches(self, columns):
        raise AssertionError

    def describe(self):
        return "a source that must not be read"


def test_a_run_with_nothing_to_measure_reads_nothing(memory_path):
    place = stand.Place(memory_path)
    place.run(stand.plan_of(), ROWS)
    outcome = running.run(stand.plan_of(), Unread(), place.settings)
    assert (48, 48, 0) == (outcome.first, outcome.last, outcome.published)


def test_rows_of_committed_steps_are_ignored_however_many_come_later(memory_path):
    from datetime import UTC, datetime

    place, plan = stand.Place(memory_path), stand.plan_of()
    place.run(plan, ROWS, until=datetime(2013, 1, 2, tzinfo=UTC))
    before = place.numbers()
    place.run(plan, pl.concat([ROWS, stand.rows(seed=1, hours=24)]))
    assert before.items() <= place.numbers().items()


def test_the_wall_clock_ends_a_run_and_no_row_does(memory_path):
    start = (time.time_ns() // 1000 // stand.HOUR - 24) * stand.HOUR
    later = stand.pl.duration(microseconds=start - stand.START)
    rows = ROWS.with_columns(stand.pl.col("at") + later)  # of two days, one of them still to come
    plan = stand.plan_of(start=start)
    assert stand.Place(memory_path).run(plan, rows).last in (24, 25)


def test_no_end_and_no_until_is_refused(memory_path):
    plan = replace(stand.plan_of(), clock=replace(stand.plan_of().clock, end=None))
    with pytest.raises(TidegaugeError, match="--until"):
        stand.Place(memory_path).run(plan, ROWS)
