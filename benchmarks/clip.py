"""The clip that finds itself, against the best fixed clip in hindsight; by simulation.

The running mean of basket spend (cents, bound guessed at 5,000 dollars) and of arrival delays
(minutes, earlier is 0, bound 1,440), one event a step, replace_one, delta 1/n^2. Error: root mean
square over the steps from n/10 on and over runs, of noise and of what the clip cuts off. The best
fixed clip has all of the budget and is the one that turns out best. Prints ratios to it.

Counts of magnitudes get noise with the exact covariance of the real mechanism; the variance of
what is published under the clips that they lead to is in closed form. So a run is cheap, and the
number of runs only averages over choices.

    python benchmarks/clip.py [--quick] [--runs 40] [--share 0.2]
"""

import argparse
import importlib.util
import math
import zipfile
from pathlib import Path

import numpy as np
import polars as pl

import tidegauge as tg
from tidegauge.mechanisms.clip_plan import UNIT, clip_plan
from tidegauge.mechanisms.clip_reading import FIRST_CHOICE, following_choice, one_end
from tidegauge.mechanisms.clipping import bins_of, clips_up_to
from tidegauge.mechanisms.mean import Bounds
from tidegauge.strategies.rescaled import covariances

EXAMPLES = Path(__file__).parent.parent / "examples"
READ = 80  # steps at which the error is read


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


def noise_of_bins(plan, at, runs, rng):
    """Noise of one count of magnitudes at the steps ``at``, with its covariance; (runs, steps)."""
    changes = at[:-1]
    # the running sum up to a change is a sum with factors 1 before it and 0 after
    factors = np.tril(np.ones((len(at), len(at))))
    bins = plan.bins.strategy
    gains = covariances(bins, tg.Running(), at[-1:], changes, factors)[0]
    root = np.linalg.cholesky(gains * plan.bins.law.std**2)
    return lambda: root @ rng.normal(size=(len(at), plan.bins.neighbors.cells))


def choices(values, plan, noise, at, steps):
    """The clips of one run: (first step, clip) for each change."""
    n, found, now, due = len(values), [], None, FIRST_CHOICE
    counts = dict(zip((at + 1).tolist(), steps + noise, strict=True))
    while due <= n:
        clip = one_end(plan, counts[due], due, 2, now) if due in counts else None
        if clip is not None and clip != now:
            found.append((due, clip))
            now = clip
        due = following_choice(due, plan, now is None)
    return found or [(n + 1, 0)]


def may_choose(plan, n):
    """Every step at which a clip may be chosen, wherever the first one is; few events give none."""
    step, found = FIRST_CHOICE, set()
    while step <= n:
        later = step
        while n // 50 <= later <= n and later not in found:
            found.add(later)
            later = following_choice(later, plan, False)
        step = following_choice(step, plan, True)
    return np.array(sorted(found))


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
    at, rng = may_choose(plan, n) - 1, np.random.default_rng(1)
    size = plan.bins.neighbors.cells
    exact = np.cumsum(np.eye(size, dtype=np.int32)[bins_of(values)], axis=0)[at - 1]
    draw = noise_of_bins(plan, at, runs, rng)
    paths = [choices(values, plan, draw(), at, exact) for _ in range(runs)]
    errors = np.array([error(values, plan, path, read_at(n)).mean() for path in paths])
    ratio = math.sqrt(errors.mean()) / best
    return best, clip, ratio, np.sqrt(np.quantile(errors, [0.1, 0.5, 0.9, 1])) / best, paths[0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--share", type=float, default=0.2)
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    runs, cases = given.runs, [("arrival delays", delays, 1.0), ("arrival delays", delays, 0.1)]
    if given.quick:
        runs, cases = 3, cases[:1]
    else:
        cases = [("basket spend", baskets, 1.0), ("basket spend", baskets, 0.1), *cases]
    print("data | epsilon | rmse of the best fixed clip | that clip | ours over it", end=" | ")
    print("10, 50, 90 and 100 % of runs | first run's clips from their steps on")
    for name, load, epsilon in cases:
        best, clip, ratio, spread, path = compare(*load(), epsilon, given.share, runs)
        shown = " ".join(f"{part:.2f}" for part in spread)
        row = name, epsilon, f"{best:.4g}", clip, f"{ratio:.2f}", shown, path[:8]
        print(*row, sep=" | ", flush=True)


if __name__ == "__main__":
    main()
