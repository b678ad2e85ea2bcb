"""Reading and counting 3 million flights, hourly by 229 airports, beside polars' own group-by.

Needs npm to fetch vega-datasets 3.2.1 (17 MB, once, into the cache folder); skips without it.
``--times N`` also writes a file of N times the rows and reads it, to show that memory stays.
"""

import argparse
import subprocess
import sys
import tarfile
import tempfile
from fractions import Fraction
from pathlib import Path

import platformdirs
import polars as pl
from timing import least

from tidegauge.connectors.files import Files
from tidegauge.engine.totals import totals
from tidegauge.planning.plan import Clock, PlannedGauge, TimeColumn

HOUR = 3_600_000_000
START, STEPS = 978_307_200_000_000, 4345  # from 2001-01-01T00:00:00Z to the last flight
PACKAGE, FILE = "vega-datasets@3.2.1", "package/data/flights-3m.parquet"


class Reading:
    """What reading needs of a plan: departures by origin, of which the delayed ones' minutes."""

    def __init__(self, airports):
        self.clock = Clock(START, HOUR, STEPS)
        self.time = TimeColumn("date", "UTC", "iso")
        self.unit = None
        self.gauges = (gauge_of(airports),)
        self.columns = ("date", "origin")


def gauge_of(airports):
    return PlannedGauge(
        name="departures",
        kind="count",
        column=None,
        low=0,
        high=1,
        round_to=Fraction(1),
        where=None,
        by=(("origin", airports),),
        other=None,
        views=(),
        every=(),
        anticipate=(),
        budget_weight=Fraction(1),
        mechanism=None,
    )


def flights():
    """Return the path of the Parquet file, fetched by npm if need be, or None."""
    kept = platformdirs.user_cache_path("tidegauge") / "flights-3m.parquet"
    if kept.exists():
        return kept
    with tempfile.TemporaryDirectory() as folder:
        command = ["npm", "pack", "--silent", PACKAGE]
        try:
            subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=120)
        except (OSError, subprocess.SubprocessError):
            return None
        (archive,) = Path(folder).glob("*.tgz")
        with tarfile.open(archive) as package:
            content = package.extractfile(FILE).read()
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.with_suffix(".part").write_bytes(content)
    kept.with_suffix(".part").replace(kept)
    return kept


def made_up(folder):
    """Return a small file of the same form, for a quick look."""
    rows = 20_000
    minutes = pl.int_range(rows, eager=True) * (STEPS * 60 // rows)
    stamps = (START + minutes * 60_000_000).cast(pl.Datetime("us"))
    origins = pl.Series([f"A{i * 7 % 23:02d}" for i in range(rows)])
    path = Path(folder) / "made_up.parquet"
    pl.DataFrame({"date": stamps, "origin": origins}).write_parquet(path)
    return path


def airports_of(path):
    return tuple(
        sorted(pl.scan_parquet(path).select(pl.col("origin").unique()).collect()["origin"])
    )


def counted(path, airports):
    return totals(Reading(airports), Files([str(path)]), 0, STEPS)


def grouped(path):
    hour = (pl.col("date").dt.epoch("us") - START) // HOUR
    return pl.scan_parquet(path).group_by(hour.alias("hour"), "origin").len().collect()


def memory(path, airports):
    """Return how far the resident memory of a fresh process grew, in MB: peak, and anonymous."""
    out = subprocess.run(
        [sys.executable, __file__, "--child", str(path), ",".join(airports)],
        check=True,
        capture_output=True,
        text=True,
    )
    return out.stdout.strip()


def child(path, airports):
    """Read one file and print the growth of memory above what a small read leaves behind."""
    import threading
    import time

    def status(name):
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(name))

    def anonymous():
        return status("RssAnon")

    with tempfile.TemporaryDirectory() as folder:
        small = Path(folder) / "small.parquet"
        pl.scan_parquet(path).head(1000).collect().write_parquet(small)
        counted(small, airports)  # load what is loaded once
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins here
    before = status("VmRSS")
    least_anonymous = highest = anonymous()
    done = threading.Event()

    def watch():
        nonlocal highest
        while not done.is_set():
            highest = max(highest, anonymous())
            time.sleep(0.002)

    watcher = threading.Thread(target=watch)
    watcher.start()
    result = counted(path, airports)
    done.set()
    watcher.join()
    peak = status("VmHWM")
    size = sum(array.nbytes for array in result.arrays.values()) / 2**20
    print(
        f"{result.records} rows: peak +{peak - before:.0f} MB with {size:.0f} MB of totals and the "
        f"mapped file; anonymous +{highest - least_anonymous - size:.0f} MB beyond the totals"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="a small file, made up")
    parser.add_argument("--child", nargs=2, metavar=("FILE", "AIRPORTS"))
    options = parser.parse_args()
    if options.child:
        child(Path(options.child[0]), tuple(options.child[1].split(",")))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = made_up(folder) if options.quick else flights()
        if path is None:
            print(f"reading: skipped, npm could not fetch {PACKAGE}")
            return
        compare(path, Path(folder), options)


def compare(path, folder, options):
    airports = airports_of(path)
    ours, theirs = counted(path, airports), grouped(path)
    cells = {name: i for i, name in enumerate(airports)}
    for hour, airport, count in theirs.iter_rows():
        assert ours.arrays["departures"][hour, cells[airport]] == count
    rows = (
        pl.scan_parquet(path)
        .head(500_000)
        .with_columns(pl.col("date").dt.strftime("%Y-%m-%dT%H:%M:%SZ"))
        .collect()
    )
    short, lines = folder / "flights.csv", folder / "flights.jsonl"
    rows.write_csv(short)
    rows.write_ndjson(lines)
    stamp = pl.col("date").str.to_datetime("%Y-%m-%dT%H:%M:%SZ").dt.truncate("1h")
    calls = {
        "group-by": lambda: grouped(path),
        "totals": lambda: counted(path, airports),
        "csv": lambda: counted(short, airports),
        "jsonl": lambda: counted(lines, airports),
        "csv, polars": lambda: pl.scan_csv(short).group_by(stamp, "origin").len().collect(),
    }
    seconds = least(calls, repeats=1 if options.quick else 5)
    print(
        f"Parquet, {ours.records} rows: {seconds['totals']:.3f} s, polars' group-by "
        f"{seconds['group-by']:.3f} s, ratio {seconds['totals'] / seconds['group-by']:.2f}"
    )
    each = 1e6 / len(rows)
    print(
        f"CSV: {seconds['csv'] * each:.2f} us a row, polars' group-by "
        f"{seconds['csv, polars'] * each:.2f}; JSON lines {seconds['jsonl'] * each:.2f}"
    )
    print(memory(path, airports))
    if options.times > 1:
        large = folder / "large.parquet"
        pl.concat([pl.scan_parquet(path)] * options.times).sink_parquet(large)
        print(memory(large, airports))


if __name__ == "__main__":
    main()
