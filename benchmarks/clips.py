"""Means of a year of baskets, by day, under every kind of clip: `tidegauge run`, from the file.

Root mean square errors of the running mean and of that of seven days, in dollars, over the steps
from day 211 on (the drawn clips' first values come on day 183) and over runs, against the exact
means of the values as they are; and the clips at the end. (epsilon, 1e-9) for one basket.

    python benchmarks/clips.py [--quick]     # forty runs of `tidegauge run`: three minutes
"""

import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
from timing import is_quick

CLIPS = {
    "no clip": "",
    "clip: auto": ", clip: auto",
    "perrier": ", clip: {perrier: {first: 182d, quantile: 0.02}}",
    "perrier, share 0.2": ", clip: {perrier: {first: 182d, quantile: 0.02, share: 0.2}}",
}
DAYS, JUDGED, RUNS = 365, 211, 5
CONFIG = """\
sources: [baskets.parquet]
event_time: time
step: 1d
start: 2017-01-01T00:00:00Z
end: 2018-01-01T00:00:00Z
privacy: {{unit: event, epsilon: {epsilon}, delta: 1.0e-9}}
gauges:
  spent:
    mean: {{column: spent, bounds: [0, 5000], round_to: 0.01{clip}}}
    views: [running, 7d]
store: spent.tidegauge
public: public
mark: mark/spent
"""


def baskets():
    """Every basket's time and what it cost."""
    path = Path(__file__).resolve().parents[1] / "examples" / "groceries" / "prepare.py"
    spec = importlib.util.spec_from_file_location("prepare", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.baskets()


def exact_means(events):
    """The exact means of both views at every step."""
    begun = pl.datetime(2017, 1, 1, time_zone="UTC")
    days = events.select(pl.col("spent"), day=(pl.col("time") - begun).dt.total_days()).filter(
        pl.col("day") < DAYS
    )
    day, spent = days["day"].to_numpy(), days["spent"].to_numpy()
    found = {}
    sums, counts = (np.cumsum(np.bincount(day, one, DAYS)) for one in (spent, np.ones(len(day))))
    found["running"] = sums / counts
    week = [np.r_[one[:7], one[7:] - one[:-7]] for one in (sums, counts)]
    found["window_7d"] = week[0] / week[1]
    return found


def run(events, epsilon, clip):
    """The releases of one run: of each view steps, values and clips."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        events.write_parquet(folder / "baskets.parquet")
        (folder / "spent.yaml").write_text(CONFIG.format(epsilon=epsilon, clip=clip))
        words = ["-m", "tidegauge", "run", "-q", str(folder / "spent.yaml")]
        subprocess.run([sys.executable, *words], check=True, capture_output=True)
        releases = folder / "public" / "releases" / "spent"
        return {
            view.name: pl.read_parquet(view / "*.parquet").sort("step")
            for view in sorted(releases.iterdir())
        }


def main():
    quick = is_quick(__doc__ or "")
    events = baskets()
    exact = exact_means(events)
    runs = 1 if quick else RUNS
    print("epsilon | clip | running | 7 days | the clips at the end")
    for epsilon in (3,) if quick else (1, 3):
        for name, clip in list(CLIPS.items())[: 2 if quick else None]:
            squares, ends = {view: [] for view in exact}, []
            for _ in range(runs):
                for view, table in run(events, epsilon, clip).items():
                    judged = table.filter(pl.col("step") >= JUDGED)
                    off = judged["value"].to_numpy() - exact[view][judged["step"].to_numpy() - 1]
                    squares[view].append(np.nanmean(off**2))
                    if "clip_high" in table.columns and view == "running":
                        ends.append(f"{table['clip_high'][-1]:.0f}")
            errors = (f"{np.sqrt(np.mean(squares[view])):.3f}" for view in exact)
            print(epsilon, name, *errors, " ".join(ends), sep=" | ", flush=True)


if __name__ == "__main__":
    main()
