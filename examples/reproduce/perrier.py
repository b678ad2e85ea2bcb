"""Sums of real values: the systems of Perrier, Asghar and Kaafar (2019) beside ours, on real data.

    python examples/reproduce/perrier.py      # writes output/perrier.md and output/perrier.png

One value a step, replaced by any other in [0, B]; B is a guess. The error is that of the average so
far: root mean square over the steps from max(m, n / 10) on and over runs, of noise and of what a
clip cuts off. m is the paper's time lag, n the number of values; delta is 1 / n^2.

The CDNOW purchases are in the package lifetimes, of which nothing but a data file is read; without
it they are left out: pip install --no-deps lifetimes==0.11.3
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from common import example, figure, markdown, script
from numpy.typing import NDArray

import tidegauge as tg
from tidegauge.mechanisms.clipping import clips_up_to
from tidegauge.papers.perrier import BinaryTree, ThresholdedSum, first_needed, smooth_sensitivity
from tidegauge.papers.perrier.threshold import BETA_LT, LAM, P, rule_of

EPSILONS = (0.1, 1, 10)
READ = 100  # steps at which the error is read
RUNS, FEW = 10, 6  # FEW of the clip that moves, whose noise is told at every step
UNIT = 1 << 20  # the clip, where only the noise in parts of it is asked for
PARTS = 400  # of equal chance, of a threshold's law
FREE = Fraction(1, 1000)  # of epsilon: what a threshold costs that is had for free

Array = NDArray[Any]


@dataclass(frozen=True)
class Data:
    """Values by time, in grains.

    Attributes:
        name: What they are.
        unit: Grains in 1.
        most: The bound guessed, in grains.
        values: int64 of shape (n,).
    """

    name: str
    unit: int
    most: int
    values: Array = field(repr=False)

    @property
    def first(self) -> int:
        """The time lag m: what the paper's defaults need, but half of a short stream."""
        return min(first_needed(), len(self.values) // 2)

    @property
    def delta(self) -> float:
        """The paper's."""
        return 1 / len(self.values) ** 2

    @property
    def steps(self) -> Array:
        """The steps at which the error is read."""
        n = len(self.values)
        return np.unique(np.linspace(max(self.first, n // 10), n, READ).astype(np.int64))

    def sums(self, clip: int | None = None) -> Array:
        """The exact sums of clipped values at these steps."""
        kept = self.values if clip is None else np.minimum(self.values, clip)
        return np.asarray(np.cumsum(kept)[self.steps - 1])

    def error(self, squares: Array) -> float:
        """The error of the average, in units, from squared errors of sums in grains."""
        return float(np.sqrt(np.mean(squares / self.steps**2))) / self.unit


def datasets(quick: bool) -> list[Data]:
    """All there are."""
    import polars as pl

    groceries = example("groceries")
    drugs = groceries.items("product_type", groceries.OVER_THE_COUNTER)
    spent = drugs.group_by("basket", maintain_order=True).agg(pl.col("spent").sum())["spent"]
    found = [Data("pharmacy baskets", 100, 500_000, _cents(spent))]
    if quick:
        return found
    with zipfile.ZipFile(example("flights").flights_file()) as archive:
        flights = archive.read("flights.csv")
    kinds = {"time_hour": pl.String, "arr_delay": pl.Int64}
    read = pl.read_csv(flights, columns=list(kinds), null_values="NA", schema_overrides=kinds)
    late = read.drop_nulls().sort("time_hour", maintain_order=True)["arr_delay"].to_numpy()
    found = [
        Data("basket spend", 100, 500_000, _cents(groceries.baskets()["spent"])),
        Data("arrival delays", 1, 1440, np.maximum(late, 0)),
        *_purchases(),
        *found,
    ]
    return found


def _purchases() -> Iterator[Data]:
    """The CDNOW master sample by day, where its package is installed."""
    package = find_spec("lifetimes")
    if package is None or package.origin is None:
        return
    text = (Path(package.origin).parent / "datasets" / "CDNOW_master.txt").read_text()
    rows = [line.split() for line in text.splitlines()[1:] if line.strip()]
    rows.sort(key=lambda row: row[1])  # the file is by customer
    yield Data("CDNOW spend", 100, 500_000, _cents(np.array([float(row[3]) for row in rows])))


def _cents(dollars: Any) -> Array:
    return np.rint(np.asarray(dollars) * 100).astype(np.int64)


@dataclass(frozen=True)
class Row:
    """One system on one data set.

    Attributes:
        data: Its name.
        epsilon: Of the whole.
        system: Its name.
        clip: The clip or threshold in units; of several runs the median one at the end.
        error: What is cut off, exactly, and the noise, as its law is; under each run's clips.
        measured: The error over runs; None where it was not run.
    """

    data: str
    epsilon: float
    system: str
    clip: float
    error: float
    measured: float | None


def _over(runs: int, one: Callable[[], Array], data: Data) -> float:
    """The error of released sums in grains, of several runs."""
    exact = data.sums()
    squares = [np.nan_to_num(one()) - exact for _ in range(runs)]
    return data.error(np.mean(np.square(squares), axis=0))


def plain(data: Data, epsilon: float, runs: int) -> Row:
    """The paper's baseline: a binary tree on [0, B]."""

    def tree(cells: int = 1) -> BinaryTree:
        return BinaryTree(data.most, len(data.values), epsilon, grain=1, cells=cells)

    with tree() as system:
        std = system.plan.noise_std(tg.Running(), data.steps)

    def one() -> Array:
        with tree() as system:
            return np.asarray(system.update_many(data.values)[data.steps - 1])

    found = _over(runs, one, data)
    return Row(data.name, epsilon, "BinaryTree", data.most / data.unit, data.error(std**2), found)


def _thresholded(data: Data, epsilon: float, share: Fraction) -> ThresholdedSum:
    return ThresholdedSum(
        data.most, first=data.first, end=len(data.values), epsilon=epsilon, delta=data.delta,
        share=share, grain=1,
    )  # fmt: skip


def published(data: Data, epsilon: float, runs: int) -> Row:
    """The paper's mechanism with its defaults."""
    clips, squares = [], []

    def one() -> Array:
        with _thresholded(data, epsilon, Fraction(1, 2)) as system:
            released = system.update_many(data.values)[data.steps - 1]
            assert system.threshold is not None
            clips.append(int(system.threshold))
            squares.append(_squares(data, system, clips[-1]))
            return np.asarray(released)

    found = _over(runs, one, data)
    error = data.error(np.mean(squares, axis=0))
    return Row(data.name, epsilon, "ThresholdedSum", float(np.median(clips)) / data.unit, error,
               found)  # fmt: skip


def _squares(data: Data, system: ThresholdedSum, clip: int) -> Array:
    """What is cut off, and the variance of the noise."""
    std = np.array([system.noise_std(int(step), clip) for step in data.steps])
    return np.asarray((data.sums(clip) - data.sums()) ** 2 + std**2)


def printed(data: Data, epsilon: float) -> Row:
    """The paper's mechanism by its text alone, over the law of its threshold.

    No kappa, log2 n levels, a first sum that is not truncated, and a threshold that is not kept
    below B: it breaks the promise, and is here for its error. Below 0 it is taken as 0.
    """
    first, n, steps = data.first, len(data.values), data.steps
    rule = rule_of(Fraction(str(epsilon)) / 2, data.delta, P, LAM, BETA_LT)
    rank, a = rule.rank(first), float(rule.a)
    quantile = int(np.sort(data.values[:first])[rank - 1])
    scale = smooth_sensitivity(data.values[:first], rank, rule.b, data.most) / a
    tails = (np.arange(PARTS // 2) + 0.5) / PARTS
    noise = np.concatenate([np.log(2 * tails), -np.log(2 * tails)])
    thresholds = np.maximum(quantile + scale * (float(rule.shift) + noise), 0.0)
    with _thresholded(data, epsilon, Fraction(1, 2)) as system:
        stds = [system.noise_std(int(step), data.most) for step in (first, *steps)]
    at_once, both = np.square(stds[0]), np.square(stds[1:])
    levels = math.log2(n - first) / (n - first).bit_length()
    variance = (at_once + (both - at_once) * levels**2) / data.most**2  # for a threshold of 1
    squares = np.zeros(len(steps))
    for threshold in thresholds:
        clip = int(min(threshold, data.most))
        uncut = np.maximum(data.values[:first] - clip, 0).sum()
        squares += (data.sums(clip) - data.sums() + uncut) ** 2 + variance * threshold**2
    clip = float(np.median(thresholds)) / data.unit
    error = data.error(squares / PARTS)
    return Row(data.name, epsilon, "ThresholdedSum as printed", clip, error, None)


def for_free(data: Data, epsilon: float) -> Row:
    """The paper's mechanism, told the quantile that its threshold estimates."""
    rank = data.first - math.ceil(Fraction(str(LAM)) * Fraction(str(P)) * data.first)
    clip = int(np.sort(data.values[: data.first])[rank])
    with _thresholded(data, epsilon, FREE) as system:
        error = data.error(_squares(data, system, clip))
    name = "ThresholdedSum, threshold for free"
    return Row(data.name, epsilon, name, clip / data.unit, error, None)


def _asked(data: Data, epsilon: float) -> dict[str, Any]:
    n = len(data.values)
    return {
        "views": [tg.Running()], "unit": "event", "epsilon": epsilon, "delta": data.delta,
        "end": n, "neighboring_relation": "replace_one",
    }  # fmt: skip


def best_fixed(data: Data, epsilon: float, runs: int) -> Row:
    """Our strategy with all of the budget, and the clip that turns out best."""
    asked, exact = _asked(data, epsilon), data.sums()
    plan = tg.plan(**asked, max_change=UNIT, max_per_step=UNIT).plan
    std = plan.noise_std("running", data.steps) / UNIT
    errors = {
        clip: data.error((data.sums(clip) - exact) ** 2 + (clip * std) ** 2)
        for clip in clips_up_to(data.most)[1:].tolist()
    }
    clip = min(errors, key=errors.__getitem__)

    def one() -> Array:
        gauge = tg.Gauge(**asked, max_change=clip, max_per_step=clip)
        kept = np.minimum(data.values, clip)
        return np.asarray(gauge.update_many(kept)["running"].value[data.steps - 1])

    found = _over(runs, one, data)
    return Row(data.name, epsilon, "best fixed clip", clip / data.unit, errors[clip], found)


def found_clip(data: Data, epsilon: float, runs: int) -> Row:
    """Ours: a clip that is found from published counts and moves with the stream."""
    clips, squares, n = [], [], len(data.values)
    asked = {**_asked(data, epsilon), "bounds": (0, data.most), "horizon": n}

    def one() -> Array:
        with tg.ClippedGauge("sum", **asked) as gauge:
            release = gauge.update_many(data.values, np.arange(n), n)["running"]
        clip = np.asarray(release.clip[1])
        clips.append(int(clip[-1]))
        cut = _counted(data.values, clip)[data.steps - 1] - data.sums()
        squares.append(cut**2 + np.nan_to_num(release.noise_std[data.steps - 1]) ** 2)
        return np.asarray(release.value)[data.steps - 1]

    found = _over(runs, one, data)
    error = data.error(np.mean(squares, axis=0))
    return Row(data.name, epsilon, "tidegauge, clip: auto", float(np.median(clips)) / data.unit,
               error, found)  # fmt: skip


def _counted(values: Array, clip: Array) -> Array:
    """The sums of clipped values; those before the first clip count where it begins."""
    kept, first = np.minimum(values, clip), int(np.argmax(clip > 0))
    kept[first] += np.minimum(values[:first], clip[first]).sum()
    return np.cumsum(kept)


@dataclass(frozen=True)
class Found:
    """The data, and every system on each."""

    data: list[Data]
    rows: list[Row]


def everything(quick: bool) -> Found:
    """All that is told."""
    data, rows, runs = datasets(quick), [], 2 if quick else RUNS
    for one in data:
        for epsilon in EPSILONS[1:2] if quick else EPSILONS:
            rows += [
                plain(one, epsilon, runs), published(one, epsilon, runs), printed(one, epsilon),
                for_free(one, epsilon),
                best_fixed(one, epsilon, runs), found_clip(one, epsilon, min(runs, FEW)),
            ]  # fmt: skip
    return Found(data, rows)


def table(found: Found) -> str:
    """The rows as Markdown, and where each system wins."""
    lines = [
        "# The average of real values over time",
        "",
        f"Root mean squared error under the clips of {RUNS} runs ({FEW} of the clip that moves):",
        "what they cut off, exactly, and the noise, as its law is. Measured: the same runs with",
        "the noise that they had, which is much the same at all steps of a run.",
        "",
        *(
            f"* {one.name}: {len(one.values):,} values, mean {one.values.mean() / one.unit:.2f}, "
            f"largest {one.values.max() / one.unit:,.0f}, bound {one.most / one.unit:,.0f}, "
            f"m = {one.first:,}."
            for one in found.data
        ),
        "",
        *markdown(
            ("data", "epsilon", "system", "clip", "error", "measured", "plain / this"),
            [
                (
                    row.data, f"{row.epsilon:g}", row.system, f"{row.clip:,.2f}",
                    *("" if x is None else f"{x:.4g}" for x in (row.error, row.measured)),
                    f"{_of(found, row, 'BinaryTree').error / row.error:.2f}",
                )
                for row in found.rows
            ],
        ),
        "",
        "## Where each wins",
        "",
        *wins(found),
        "",
    ]  # fmt: skip
    return "\n".join(lines)


def _of(found: Found, like: Row, system: str) -> Row:
    key = (like.data, like.epsilon, system)
    return next(row for row in found.rows if (row.data, row.epsilon, row.system) == key)


def wins(found: Found) -> list[str]:
    """One line a data set and epsilon: the errors of all, in parts of ours."""
    lines = []
    for ours in found.rows:
        if ours.system == "tidegauge, clip: auto":
            plain, own, text, free, best = (
                _of(found, ours, system).error / ours.error
                for system in ("BinaryTree", "ThresholdedSum", "ThresholdedSum as printed",
                               "ThresholdedSum, threshold for free", "best fixed clip")
            )  # fmt: skip
            lines.append(
                f"* {ours.data}, {ours.epsilon:g}: the plain tree has {plain:.3g} times the error "
                f"of tidegauge, ThresholdedSum {own:.3g} times (as printed {text:,.3g} times), "
                f"with its threshold for free {free:.3g} times, the best fixed clip {best:.3g} "
                "times."
            )
    return lines


def draw(found: Found, path: Path) -> None:
    """A panel a data set: the error over epsilon."""
    from tidegauge.plots import OKABE_ITO

    picture, panels = figure(len(found.data), (3.2 * len(found.data) + 1, 4.4))
    for panel, one in zip(panels, found.data, strict=True):
        systems = dict.fromkeys(row.system for row in found.rows)
        systems.pop("ThresholdedSum as printed", None)  # far above the others
        for number, system in enumerate(systems):
            mine = [r for r in found.rows if (r.data, r.system) == (one.name, system)]
            x, y = [row.epsilon for row in mine], [row.error for row in mine]
            dash = "--" if "free" in system or "fixed" in system else "-"
            colour = OKABE_ITO[(number + 1) % 5]  # the last, ours, has the first colour
            panel.plot(x, y, dash + "o", color=colour, label=system, ms=4, linewidth=1.6)
        panel.set(xscale="log", yscale="log", xlabel="epsilon")
        panel.set_title(one.name, loc="left", fontsize=10)
    panels[0].set_ylabel("error of the average over time")
    handles, labels = panels[0].get_legend_handles_labels()
    picture.legend(handles, labels, loc="outside lower center", ncols=5, fontsize=8, frameon=False)
    picture.savefig(path, dpi=150)


if __name__ == "__main__":
    script("perrier", __doc__, everything, table, draw)
