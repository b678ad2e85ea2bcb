"""Three million flights, hourly by 229 airports: a whole private run beside polars' own group-by.

Both sides start from the same Parquet file and end with Parquet files on the disk of the temporary
folder: three views (each hour, running, 7 days) of every hour and airport, empty ones included,
3 million rows of the same 14 columns. That the rows are the same is checked, and that the values
differ by noise of the announced size.

* **tidegauge**: what ``tidegauge run`` calls, after planning: reading, counting, one gauge under
  (1, 1e-9)-DP, each block of steps measured, committed to the store, read back, decoded and
  published, store, mark and files synced. Beyond the rows it writes the store and the measurement.
* **polars**: group-by, the missing hours filled in, a running and a rolling sum over each airport,
  one file a view, nothing synced. There is no noise, so its intervals are points; those columns
  compress to almost nothing, which is in its favor.

Memory is that of a run in a fresh process: the growth of the peak of its resident memory, mapped
files included, above what it was after a run over a few rows, which loads what is loaded once.
Outputs, which are subtracted, are the exact totals: 8 bytes an hour and airport. ``--times N`` does
the same with the file listed N times under names of its own.

Needs npm to fetch vega-datasets 3.2.1 (17 MB, once, into the cache folder); skips without it.
"""

import argparse
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from functools import partial
from pathlib import Path
from statistics import median

import platformdirs
import polars as pl

from tidegauge.cli.accepted import accepted
from tidegauge.connectors.files import Files
from tidegauge.engine.run import run
from tidegauge.engine.totals import totals
from tidegauge.mechanisms.intervals import BANDS

PACKAGE, FILE = "vega-datasets@3.2.1", "package/data/flights-3m.parquet"
HOUR = 3_600_000_000
START, STEPS = 978_307_200_000_000, 4345  # from 2001-01-01T00:00:00Z to the last flight
VIEWS = ("step", "running", "window_7d")
CONFIG = """\
sources: ["{sources}"]
event_time: date
timezone: UTC
step: 1h
start: 2001-01-01T00:00:00Z
end: 2001-07-01T01:00:00Z
privacy: {{unit: event, epsilon: 1.0, delta: 1.0e-9}}
gauges:
  departures:
    count: {{}}
    by: {{origin: {{file: airports.csv}}}}
    other: drop
    views: [step, running, 7d]
store: flights.tidegauge
public: public
mark: flights.mark
"""


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
    path = folder / "made_up.parquet"
    pl.DataFrame({"date": stamps, "origin": origins}).write_parquet(path)
    return path


def airports_of(path):
    return sorted(pl.read_parquet(path, columns=["origin"])["origin"].unique())


def planned(folder, sources, airports):
    """Write a config into a new folder and plan it; return what a run needs."""
    folder.mkdir()
    (folder / "airports.csv").write_text("\n".join(airports) + "\n")
    (folder / "flights.yaml").write_text(CONFIG.format(sources=sources))
    plan, settings, _ = accepted(folder / "flights.yaml", None)
    return plan, Files(settings.sources, folder=folder), settings


def polars_run(path, airports, folder):
    """Group, fill up, sum and write, as fast as polars alone is known to do it."""
    names = pl.Enum(airports)
    hour = (pl.col("date").dt.epoch("us") - START) // HOUR + 1
    counts = (
        pl.scan_parquet(path)
        .group_by(hour.alias("step"), pl.col("origin").cast(names))
        .len("value")
        .collect()
    )
    steps = pl.DataFrame({"step": pl.int_range(1, STEPS + 1, eager=True)})
    grid = steps.join(pl.DataFrame({"origin": pl.Series(airports, dtype=names)}), how="cross")
    grid = grid.join(counts, on=["step", "origin"], how="left", maintain_order="left")
    value = pl.col("value").fill_null(0).cast(pl.Float64)
    sums = grid.select(
        "origin",
        "step",
        ((pl.col("step") - 1) * HOUR + START).cast(pl.Datetime("us", "UTC")).alias("step_start"),
        (pl.col("step") * HOUR + START).cast(pl.Datetime("us", "UTC")).alias("step_end"),
        value.alias("step_value"),
        value.cum_sum().over("origin").alias("running_value"),
        value.rolling_sum(168, min_samples=1).over("origin").alias("window_7d_value"),
    )
    for view in VIEWS:
        value = pl.col(f"{view}_value")
        sums.select(
            pl.lit("departures", dtype=pl.Enum(["departures"])).alias("gauge"),
            pl.lit(view, dtype=pl.Enum([view])).alias("view"),
            "origin",
            "step",
            "step_start",
            "step_end",
            value.alias("value"),
            pl.lit(0.0).alias("noise_std"),
            value.alias("lower"),
            value.alias("upper"),
            pl.lit(1.0).alias("level"),
            pl.lit("pointwise", dtype=pl.Enum(BANDS)).alias("band"),
            (pl.col("step") >= 168 if view == "window_7d" else pl.lit(True)).alias("complete"),
            pl.lit(None, dtype=pl.String).alias("reason"),
        ).write_parquet(folder / f"{view}.parquet", compression="snappy")


def assert_same_rows(folder, public, noise=25):
    """The same rows on both sides, and values that differ by what the noise explains."""
    for view in VIEWS:
        theirs = pl.read_parquet(folder / f"{view}.parquet")
        ours = pl.read_parquet(public / "releases" / "departures" / view / "*.parquet")
        assert list(theirs.schema) == list(ours.schema)
        for column, kind in theirs.schema.items():
            assert kind == ours.schema[column], column
        other = ("value", "noise_std", "lower", "upper", "level")
        keys = pl.exclude(other)
        assert theirs.select(keys).sort("step", "origin").equals(ours.select(keys))
        apart = (theirs.sort("step", "origin")["value"] - ours["value"]).abs()
        assert (apart <= noise * ours["noise_std"]).all()
        assert (apart > 0).any()


def timed(call):
    """Return seconds, and seconds of all cores."""
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - wall, time.process_time() - cpu


def compare(path, folder, repeats):
    """Run both sides in turns, each time from nothing; print medians and their ratio."""
    airports = airports_of(path)
    taken = {"tidegauge": [], "polars": []}
    for turn in range(repeats + 1):  # the first fills the caches of compiled kernels
        place, plain = folder / f"run {turn}", folder / f"polars {turn}"
        plan, source, settings = planned(place, path, airports)
        plain.mkdir()
        sides = {
            "tidegauge": partial(run, plan, source, settings),
            "polars": partial(polars_run, path, airports, plain),
        }
        for side, call in sides.items():
            taken[side].append(timed(call))
    assert_same_rows(plain, place / "public")
    walls, cpus = ({s: [t[i] for t in times[1:]] for s, times in taken.items()} for i in (0, 1))
    for side in sides:
        print(
            f"{side}: median {median(walls[side]):.3f} s, least {min(walls[side]):.3f} s, "
            f"{median(cpus[side]):.3f} s of both cores"
        )
    ratios = [ours / theirs for ours, theirs in zip(*walls.values(), strict=True)]
    print(
        f"ratio: {median(walls['tidegauge']) / median(walls['polars']):.2f} of medians, "
        f"{min(walls['tidegauge']) / min(walls['polars']):.2f} of the least, "
        f"{min(ratios):.2f} to {max(ratios):.2f} turn by turn (promised: at most 1.3)"
    )


def reading(path, folder, repeats):
    """Time reading and counting alone, of Parquet and of text, per row."""
    airports = airports_of(path)
    rows = pl.scan_parquet(path).head(500_000).select("date", "origin").collect()
    text = rows.with_columns(pl.col("date").dt.strftime("%Y-%m-%dT%H:%M:%SZ"))
    text.write_csv(folder / "flights.csv")
    text.write_ndjson(folder / "flights.jsonl")
    rows.write_parquet(folder / "short.parquet")
    plan, _, _ = planned(folder / "reading", path, airports)
    stamp = pl.col("date").str.to_datetime("%Y-%m-%dT%H:%M:%SZ").dt.truncate("1h")
    calls = {
        name: partial(totals, plan, Files([str(folder / name)]), 0, STEPS)
        for name in ("short.parquet", "flights.csv", "flights.jsonl")
    }
    scan = pl.scan_csv(folder / "flights.csv").group_by(stamp, "origin").len()
    calls["flights.csv, polars' group-by"] = scan.collect
    least = {name: min(timed(call)[0] for _ in range(repeats)) for name, call in calls.items()}
    each = {name: f"{name} {seconds * 1e6 / len(rows):.2f}" for name, seconds in least.items()}
    print(f"reading and counting alone, us a row: {', '.join(each.values())}")


def memory(path, folder, times):
    """Print by how much a fresh process grew over a run of the file, listed ``times`` times."""
    many = folder / f"listed {times}"
    many.mkdir()
    for number in range(times):
        link = many / f"{number:03d}.parquet"
        try:
            os.link(path, link)
        except OSError:  # another file system
            link.write_bytes(path.read_bytes())
    command = [sys.executable, __file__, "--child", str(many)]
    print(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip())


def child(many):
    """Run over all files of a folder and print the growth of memory above that of a small run."""
    path = many / "000.parquet"
    airports = airports_of(path)
    small = many / "small.parquet"
    pl.scan_parquet(path).head(1000).collect().write_parquet(small)
    run(*planned(many / "small", small, airports))
    small.unlink()
    plan, source, settings = planned(many / "run", many / "*.parquet", airports)
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins here
    before = status("VmRSS")
    start = time.perf_counter()
    outcome = run(plan, source, settings)
    seconds = time.perf_counter() - start
    grown = status("VmHWM") - before
    outputs = STEPS * len(airports) * 8 / 2**20
    print(
        f"{outcome.counters['records']:,} rows in {seconds:.1f} s: peak +{grown:.1f} MB, "
        f"{grown - outputs:.1f} MB beyond {outputs:.1f} MB of totals (promised: under 60 MB)"
    )


def status(name):
    """Return a field of the process's own status in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(name))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=10, help="list the file so often")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="a small file, made up")
    parser.add_argument("--child", metavar="FOLDER")
    options = parser.parse_args()
    if options.child:
        child(Path(options.child))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = made_up(folder) if options.quick else flights()
        if path is None:
            print(f"flights: skipped, npm could not fetch {PACKAGE}")
            return
        repeats = 1 if options.quick else options.repeats
        compare(path, folder, repeats)
        reading(path, folder, repeats)
        for times in [2] if options.quick else sorted({1, options.times}):
            memory(path, folder, times)


if __name__ == "__main__":
    main()
