"""The clip that finds itself, against the best fixed clip in hindsight; by simulation.

The running mean of basket spend (cents, bound guessed at 5,000 dollars), of arrival delays
(minutes, earlier is 0, bound 1,440) and of 100,000 values of other shapes (bound a million), one
event a step, replace_one, delta 1/n^2. Error: root mean square over the steps from n/10 on and over
runs, of noise and of what the clip cuts off. The best fixed clip has all of the budget and is the
one that turns out best. Prints ratios to it.

Counts of magnitudes are exact counts of each epoch with the noise of the real mechanism; the
variance of what is published under the clips that they lead to is in closed form. So a run is
cheap, and the number of runs only averages over choices.

    python benchmarks/clip.py [--quick] [--runs 40] [--share 0.125]
"""

import argparse
import functools
import importlib.util
import math
import zipfile
from pathlib import Path

import numpy as np
import polars as pl

import tidegauge as tg
from tidegauge.mechanisms.clip_plan import SHARE, UNIT, clip_plan
from tidegauge.mechanisms.clip_reading import one_end
from tidegauge.mechanisms.clipping import bins_of, clips_up_to
from tidegauge.mechanisms.mean import Bounds
from tidegauge.strategies.rescaled import covariances

EXAMPLES = Path(__file__).parent.parent / "examples"
READ = 80  # steps at which the error is read
MANY, MOST = 100_000, 1_000_000
SHAPES = {
    "lognormal, sigma 1.2": lambda rng: rng.lognormal(6, 1.2, MANY),
    "lognormal, sigma 2": lambda rng: rng.lognormal(5, 2, MANY),
    "Pareto, 2.5": lambda rng: 1000 * (1 + rng.pareto(2.5, MANY)),
    "Weibull, 0.5": lambda rng: 100 * rng.weibull(0.5, MANY),
    "exponential": lambda rng: rng.exponential(1000, MANY),
    "uniform to 30,000": lambda rng: rng.uniform(0, 30_000, MANY),
    "normal, 10,000 +- 1,000": lambda rng: rng.normal(10_000, 1000, MANY),
    "all 1,000": lambda rng: np.full(MANY, 1000.0),
    "19 of 20 are 0": lambda rng: rng.exponential(500, MANY) * (rng.random(MANY) < 0.05),
}


def prepared(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / name / "prepare.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def baskets():
    """Spend of every basket by time, in cents, and the bound."""
    return np.rint(prepared("groceries").baskets()["spent"].to_numpy() * 100).astype(int), 500_000


def delays():
    """Arrival delays by scheduled hour, in minutes, clamped at 0, and the bound."""
    with zipfile.ZipFile(prepared("flights").flights_file()) as archive:
        table = archive.read("flights.csv")
    columns = ["time_hour", "arr_delay"]
    kinds = {"time_hour": pl.String, "arr_delay": pl.Int64}
    read = pl.read_csv(table, columns=columns, null_values="NA", schema_overrides=kinds)
    late = read.drop_nulls().sort("time_hour", maintain_order=True)["arr_delay"].to_numpy()
    return np.maximum(late, 0), 1440


def read_at(n):
    return np.unique(np.linspace(n // 10, n, READ).astype(int))


def fixed(values, most, plan):
    """The error of the best fixed clip with all of the budget, that clip, and its bias."""
    n = len(values)
    at, exact = read_at(n), np.cumsum(values)
    std = plan.noise_std("running", at) / UNIT
    found = []
    for clip in clips_up_to(most)[1:]:
        bias = (np.cumsum(np.minimum(values, clip)) - exact)[at - 1]
        found.append((math.sqrt(np.mean((bias**2 + (clip * std) ** 2) / at**2)), int(clip)))
    return min(found)


def by_epoch(values, plan):
    """The first step of each epoch, and the exact counts of magnitudes in those that end."""
    firsts = [1]
    while firsts[-1] <= len(values):
        firsts.append(plan.next_epoch(firsts[-1]))
    firsts = np.array(firsts[:-1])
    bins, size = bins_of(values), plan.bins.neighbors.cells
    parts = np.split(bins, firsts[1:] - 1)[: len(firsts) - 1]
    return firsts, np.array([np.bincount(part, minlength=size) for part in parts])


def choices(plan, firsts, noisy):
    """The clips of one run: (first step, clip) for each change."""
    found, now = [], None
    for number in range(1, len(firsts)):
        step = int(firsts[number])
        clip = one_end(plan, noisy[:number], step, 2, now)
        if clip is not None and clip != now:
            found.append((step, clip))
            now = clip
    return found or [(int(firsts[-1]), 0)]


def error(values, plan, found, at):
    """Squared errors of the running mean at the steps ``at`` under these clips."""
    starts = np.array([step for step, _ in found])
    clips = np.array([0, *(clip for _, clip in found)])
    each = clips[np.searchsorted(starts, np.arange(1, len(values) + 1), side="right")]
    kept = np.minimum(values, each)
    if starts[0] <= len(values):  # what came before waits for the first clip
        kept[starts[0] - 1] += np.minimum(values[: starts[0] - 1], clips[1]).sum()
    bias = (np.cumsum(kept) - np.cumsum(values))[at - 1]
    main = plan.main
    gain = covariances(main.strategy, tg.Running(), at, starts[1:] - 1, clips[None, 1:] / UNIT)
    gain = np.where(at >= starts[0], gain[:, 0, 0], 0.0)
    return (bias**2 + gain * main.law.std**2) / at**2


def compare(values, most, epsilon, share, runs):
    """Our error over that of the best fixed clip, with the spread over runs."""
    n = len(values)
    asked = {
        "of": "sum", "bounds": Bounds(0, most), "views": [tg.Running()], "unit": "event",
        "epsilon": epsilon, "delta": 1 / n**2, "horizon": n, "end": n,
        "neighboring_relation": "replace_one", "max_events_per_step": 1,
    }  # fmt: skip
    plan = clip_plan(share=share, **asked)
    whole = tg.plan(
        views=[tg.Running()], unit="event", epsilon=epsilon, delta=1 / n**2, horizon=n, end=n,
        neighboring_relation="replace_one", max_change=UNIT, max_per_step=UNIT,
    ).plan  # fmt: skip
    best, clip = fixed(values, most, whole)
    (firsts, exact), rng = by_epoch(values, plan), np.random.default_rng(1)
    std = float(plan.bins.noise_std(tg.Step(), [1])[0])
    noisy = (exact + std * rng.normal(size=exact.shape) for _ in range(runs))
    paths = [choices(plan, firsts, counts) for counts in noisy]
    errors = np.array([error(values, plan, path, read_at(n)).mean() for path in paths])
    ratio = math.sqrt(errors.mean()) / best
    return best, clip, ratio, np.sqrt(np.quantile(errors, [0.1, 0.5, 0.9, 1])) / best, paths[0]


def drawn(name):
    """100,000 whole values of a shape, and the bound."""
    values = np.rint(SHAPES[name](np.random.default_rng(5))).astype(int)
    return np.clip(values, 0, MOST), MOST


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--share", type=float, default=float(SHARE))
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    runs, data = given.runs, {"basket spend": baskets, "arrival delays": delays}
    data |= {name: functools.partial(drawn, name) for name in SHAPES}
    if given.quick:
        runs, data = 3, {"exponential": data["exponential"]}
    print("data | epsilon | rmse of the best fixed clip | that clip | ours over it", end=" | ")
    print("10, 50, 90 and 100 % of runs | first run's clips from their steps on")
    for name, load in data.items():
        for epsilon in (1.0, 0.1):
            best, clip, ratio, spread, path = compare(*load(), epsilon, given.share, runs)
            shown = " ".join(f"{part:.2f}" for part in spread)
            row = name, epsilon, f"{best:.4g}", clip, f"{ratio:.2f}", shown, path[:8]
            print(*row, sep=" | ", flush=True)


if __name__ == "__main__":
    main()
