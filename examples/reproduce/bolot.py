"""Errors of the systems of Bolot et al. (2013) beside ours: one table, one figure.

    python examples/reproduce/bolot.py      # writes output/bolot.md and output/bolot.png

The paper has no experiments. Here every system measures the same stream at epsilon = 1, one reading
in [0, 1] replaced by any other: the paper's as printed (where that is private), as corrected, the
trivial baselines, and what tidegauge would choose. The std of each is known before any data is
read; it is measured as well, over many streams side by side, at its worst step.

Two lower bounds stand below: that of any factorization mechanism with Laplace noise, and, far
lower, that of any epsilon-DP algorithm (Theorem 7).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from common import STREAMS, WORK, Maker, figure, markdown, measured, script

from tidegauge.mechanisms.comparison import least_std
from tidegauge.papers import bolot
from tidegauge.papers.system import GRAINS, System, plan_of
from tidegauge.strategies.decay import Decay, Exponential, Polynomial, Window

EPSILON = 1
NEAR = 0.98  # of the largest std: measured at the first step that has so much

WINDOWS = (16, 64, 256, 1024, 4096)
FACTORS = (0.9, 0.99, 0.999, 0.9999, 0.99999)
POWERS = (1.05, 1.5, 2.0, 3.0)
BETA = 0.25  # by how much PolynomialSum rounds weights down


class Chosen(System):
    """What tidegauge chooses for one decay."""

    def __init__(self, decay: Decay, horizon: int, cells: int) -> None:
        self._start(
            plan_of(
                decay,
                epsilon=EPSILON,
                guarantee=None,
                cells=cells,
                strategy=None,
                horizon=horizon,
            )
        )

    @property
    def source(self) -> str:
        """No paper."""
        return "tidegauge"


@dataclass(frozen=True)
class Row:
    """One system at one parameter.

    Attributes:
        family: Which decay.
        parameter: W, alpha or c.
        system: Its name.
        predicted: Std at its worst step, up to the horizon.
        measured: The same, scaled from a step near it, over many streams; None of a bound.
    """

    family: str
    parameter: float
    system: str
    predicted: float
    measured: float | None


def systems(decay: Decay, horizon: int) -> dict[str, Maker]:
    """Every system that releases a decay, as a function of the number of streams."""
    found: dict[str, Maker] = {}
    match decay:
        case Window(steps=w):
            found["WindowSum, as printed"] = lambda n: bolot.WindowSum(
                w, EPSILON, cells=n, as_printed=True
            )
            found["WindowSum, corrected"] = lambda n: bolot.WindowSum(w, EPSILON, cells=n)
            found["AllWindowSum"] = lambda n: bolot.AllWindowSum(EPSILON, longest=w, cells=n)
        case Exponential(factor=alpha):
            assert alpha is not None
            found["ExponentialSum, as printed"] = lambda n: bolot.ExponentialSum(
                alpha, EPSILON, cells=n, as_printed=True
            )
            found["ExponentialSum, corrected"] = lambda n: bolot.ExponentialSum(
                alpha, EPSILON, cells=n
            )
        case Polynomial(c=c):
            found["PolynomialSum, as printed"] = lambda n: bolot.PolynomialSum(
                c, BETA, EPSILON, reach=horizon, cells=n, as_printed=True
            )
            found["PolynomialSum, corrected"] = lambda n: bolot.PolynomialSum(
                c, BETA, EPSILON, reach=horizon, cells=n
            )
    found["input perturbation"] = lambda n: bolot.InputPerturbation(EPSILON, decay, cells=n)
    found["randomised response (bits)"] = lambda n: bolot.RandomizedResponse(
        EPSILON, decay, cells=n
    )
    found["tidegauge"] = lambda n: Chosen(decay, horizon, n)
    return found


def worst_step(system: System, horizon: int) -> tuple[float, int, float]:
    """The largest std up to the horizon; the first step that is near it, and its std."""
    steps = _steps(horizon)
    stds = np.array([system.noise_std(step) for step in steps])
    near = int(np.argmax(stds >= NEAR * stds.max()))
    return float(stds.max()), steps[near], float(stds[near])


def _steps(horizon: int) -> list[int]:
    """All of a short stream; of a long one, the last steps before each power of two as well."""
    if horizon <= 1 << 14:
        return list(range(1, horizon + 1))
    peaks = [(1 << k) - 1 for k in range(1, horizon.bit_length() + 1) if (1 << k) - 1 <= horizon]
    return sorted({*peaks, *range(horizon - 4096, horizon + 1)})


def rows(family: str, parameter: float, decay: Decay, horizon: int, work: int) -> Iterator[Row]:
    """Every system at one parameter, then the bounds."""
    for name, make in systems(decay, horizon).items():
        with make(1) as system:
            worst, step, near = worst_step(system, horizon)
        yield Row(family, parameter, name, worst, measured(make, step, work) * worst / near)
    with bolot.InputPerturbation(EPSILON, decay) as system:
        plan = system.plan
    least = least_std(decay, horizon, None, plan.cost, plan.neighbors) / GRAINS
    yield Row(family, parameter, "any factorization", least, None)
    yield Row(family, parameter, "any algorithm", bolot.std_bound(decay, EPSILON), None)


def everything(quick: bool) -> list[Row]:
    """The whole table."""
    work = 1 << 16 if quick else WORK
    found: list[Row] = []
    for w in WINDOWS[:2] if quick else WINDOWS:
        found += rows("window", w, Window(w), 4 * w, work)
    for alpha in FACTORS[:2] if quick else FACTORS:
        horizon = (1 << math.ceil(math.log2(8 / (1 - alpha)))) - 1
        found += rows("exponential", alpha, Exponential(factor=alpha), horizon, work)
    for c in POWERS[:2] if quick else POWERS:
        horizon = 1 << 8 if quick else 1 << 12
        found += rows("polynomial", c, Polynomial(c, reach=horizon), horizon, work >> 4)
    return found


def table(found: list[Row]) -> str:
    """The rows as Markdown, and where each system wins."""
    lines = [
        "# Decayed sums at epsilon = 1: the std at the worst step",
        "",
        f"Measured over {WORK:,} readings, at most {STREAMS} streams: within some 3 %, for long",
        "memories 10 %. Randomised response serves bits alone; all others serve readings in",
        "[0, 1].",
        "",
    ]
    rows = [
        (
            row.family, f"{row.parameter:g}", row.system, f"{row.predicted:.3f}",
            "" if row.measured is None else f"{row.measured:.3f}",
        )
        for row in found
    ]  # fmt: skip
    lines += markdown(("decay", "parameter", "system", "predicted", "measured"), rows)
    return "\n".join([*lines, "", "## Where each wins", "", *wins(found), ""])


def wins(found: list[Row]) -> list[str]:
    """One line a decay and parameter: the least std of all, of the paper's, and for bits."""
    lines = []
    for key in dict.fromkeys((row.family, row.parameter) for row in found):
        here = {row.system: row.predicted for row in found if (row.family, row.parameter) == key}
        bits = here.pop("randomised response (bits)")
        least = here.pop("any factorization")
        here.pop("any algorithm")
        best = min(here, key=lambda name: (here[name], name))
        own = {name: std for name, std in here.items() if name != "tidegauge"}
        paper = min(own, key=lambda name: (own[name], name))
        lines.append(
            f"* {key[0]}, {key[1]:g}: {best} ({here[best]:.2f}, {here[best] / least:.2f} times the "
            f"bound of factorizations); the best of the paper is {paper} ({own[paper]:.2f}); for "
            f"bits alone randomised response has {bits:.2f}."
        )
    return lines


def draw(found: list[Row], path: Path) -> None:
    """Three panels: the std over W, over the memory 1/(1 - alpha), over c."""
    from tidegauge.plots import OKABE_ITO

    colours = {
        "as printed": OKABE_ITO[1], "corrected": OKABE_ITO[4], "AllWindowSum": OKABE_ITO[3],
        "input perturbation": OKABE_ITO[5], "randomised response (bits)": OKABE_ITO[2],
        "tidegauge": OKABE_ITO[0], "any factorization": "#888888", "any algorithm": "#bbbbbb",
    }  # fmt: skip
    picture, panels = figure(3, (12, 4.6))
    names = {"window": "W", "exponential": "1 / (1 - alpha)", "polynomial": "c"}
    for panel, (family, label) in zip(panels, names.items(), strict=True):
        for system in dict.fromkeys(row.system for row in found if row.family == family):
            mine = [row for row in found if row.family == family and row.system == system]
            x = [
                1 / (1 - row.parameter) if family == "exponential" else row.parameter
                for row in mine
            ]
            short = system.split(", ")[-1]
            dash = "--" if "any" in system else "-"
            y = [row.predicted for row in mine]
            panel.plot(x, y, dash, color=colours[short], label=short, linewidth=1.6)
            seen = [(a, row.measured) for a, row in zip(x, mine, strict=True) if row.measured]
            panel.plot(
                *zip(*seen, strict=True) if seen else ([], []), "o", color=colours[short], ms=4
            )
        panel.set_yscale("log")
        panel.set_xscale("linear" if family == "polynomial" else "log")
        panel.set_xlabel(label)
        panel.set_title(f"{family} decay", loc="left", fontsize=10)
    panels[0].set_ylabel("std at the worst step, epsilon = 1")
    handles, labels = panels[0].get_legend_handles_labels()
    picture.legend(handles, labels, loc="outside lower center", ncols=8, fontsize=8, frameon=False)
    picture.suptitle("Lines: predicted. Dots: measured.", x=0.01, ha="left", fontsize=9)
    picture.savefig(path, dpi=150)


if __name__ == "__main__":
    script("bolot", __doc__, everything, table, draw)
