"""Readers that break the bound, as many do, and the tests that see it."""

import csv
import io

import numpy as np
import polars as pl
import pytest
from plans import gauge, plan
from test_neighbors import REPLACE, SPARSE, csv_bytes, moved, read, within, within_replacing
from test_totals import KEY, Frames, at

from tidegauge.engine import bounding, totals
from tidegauge.planning.plan import IdUnit

ROWS = [(at(hour), unit, "UA", "1") for hour in range(5) for unit in "uv"]


def counts(times):
    result = np.zeros((24, 1), np.int64)
    for time in times:
        result[int(time[11:13])] += 1
    return {"known": result}


def test_a_quote_that_swallows_lines_is_caught():
    def lenient(data):
        rows = list(csv.reader(io.StringIO(data.decode())))
        return counts(row[0] for row in rows[1:])

    lines = csv_bytes(ROWS).splitlines(keepends=True)
    one_more = [*lines[:3], b'2013-01-01T00:00:00Z,u,"UA,1\n', *lines[3:]]
    with pytest.raises(AssertionError):
        within(moved(lenient(b"".join(lines)), lenient(b"".join(one_more))), steps=1, cells=1)
    wrong = [b'2013-01-01T00:00:00Z,u,"UA,1']
    within(moved(read("csv", ROWS), read("csv", ROWS, bad=wrong)), steps=1, cells=1)


def test_a_type_guessed_from_the_rows_is_caught():
    def guessed(rows):
        frame = pl.read_csv(io.BytesIO(csv_bytes(rows)), infer_schema_length=None)
        numbers = frame["v"].dtype.is_numeric()
        return counts(frame["time"] if numbers else [])

    more = [*ROWS, (at(0), "u", "UA", "ten")]
    with pytest.raises(AssertionError):
        within(moved(guessed(ROWS), guessed(more)), steps=1, cells=1)
    within(moved(read("csv", ROWS), read("csv", more)), steps=1, cells=1)


class SharedCap(bounding.Bounding):
    """Two events of each step over all ids, one of each id: a cap that ids share."""

    def _merge(self):
        if self._pending:
            table = np.concatenate([self._kept, *self._pending], axis=1)
            self._pending, self._waiting = [], 0
            keep, per_step, seen = [], {}, set()
            for row in np.argsort(table[bounding._STAMP], kind="stable"):
                step, unit = int(table[bounding._STAMP, row]), int(table[bounding._LOW, row])
                if unit not in seen and per_step.get(step, 0) < 1:
                    seen.add(unit)
                    per_step[step] = per_step.get(step, 0) + 1
                    keep.append(row)
            self._kept = table[:, keep]


class Unbounded(bounding.Bounding):
    """Counts every event of an id."""

    def _merge(self):
        if self._pending:
            self._kept = np.concatenate([self._kept, *self._pending], axis=1)
            self._pending, self._waiting = [], 0


class ForgetsRuns(bounding.Bounding):
    """Begins to count anew at every run."""

    def _used(self, state):
        return super()._used(None)


class RowsThatAdd(bounding.Bounding):
    """Counts rows that add alone, whatever the relation."""

    def __init__(self, *args, every_row):
        super().__init__(*args)


def bounded(rows, *, first=0, last=24, state=None):
    frame = pl.DataFrame(rows, schema={"time": pl.String, "id": pl.String}, orient="row")
    frame = frame.with_columns(x=pl.col("id").str.tail(1))
    cells = gauge("known", by=(("x", tuple("0123456789u")),))
    reading = plan(cells, unit=IdUnit("id", 1, "lifetime"))
    return totals.totals(reading, Frames(frame), first, last, unit_key=KEY, unit_state=state)


def removal(rows):
    """How far the removal of one id moves totals, at most over all ids."""
    whole = bounded(rows).arrays
    for leaving in {unit for _, unit in rows}:
        rest = bounded([row for row in rows if row[1] != leaving]).arrays
        within(moved(whole, rest), steps=1, cells=1)


CHAIN = [(at(hour), unit) for hour in range(12) for unit in (f"id {hour}", f"id {hour + 1}")]


@pytest.mark.parametrize(
    ("twin", "rows"), [(SharedCap, CHAIN), (Unbounded, [(at(hour), "u") for hour in range(3)])]
)
def test_a_cap_that_ids_share_and_a_missing_one_are_caught(monkeypatch, twin, rows):
    removal(rows)
    monkeypatch.setattr(totals, "Bounding", twin)
    with pytest.raises(AssertionError):
        removal(rows)


def test_counts_that_are_forgotten_between_runs_are_caught(monkeypatch):
    rows = [(at(1), "u"), (at(13), "u")]

    def in_two_runs():
        begun = bounded(rows, last=12)
        resumed = bounded(rows, first=12, state=begun.unit_state_at(12))
        return int(begun.arrays["known"].sum() + resumed.arrays["known"].sum())

    assert 1 == in_two_runs()
    monkeypatch.setattr(totals, "Bounding", ForgetsRuns)
    assert 2 == in_two_runs()


def test_rows_that_let_others_in_once_they_add_nothing_are_caught(monkeypatch):
    """Three events of an id: as their cells change to none, three of other steps would come in."""
    unit = IdUnit("id", 3, "lifetime")

    def replacing():
        rows = [(at(hour), "u", "UA", "1") for hour in range(6)]
        replaced = [(*row[:2], None, None) for row in rows[:3]] + rows[3:]
        pair = [
            read("csv", given, unit=unit, relation=REPLACE, gauges=SPARSE)
            for given in (rows, replaced)
        ]
        within_replacing(*pair, 3)
        return pair

    one, other = replacing()
    assert [1, 1, 1, 0, 0, 0] == one["present"].ravel().tolist()
    assert [0, 0, 0, 0, 0, 0] == other["present"].ravel().tolist()
    monkeypatch.setattr(totals, "Bounding", RowsThatAdd)
    with pytest.raises(AssertionError):
        replacing()
