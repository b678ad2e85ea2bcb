"""Exact noise against numpy's float samplers and OpenDP's vector measurements, side by side.

Run with ``python benchmarks/noise.py``. All figures are the least time of many short runs on one
thread, taken in turns, so that a busy machine slows both sides alike.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import opendp.prelude as dp
from timing import is_quick, least

from tidegauge.noise.gaussian import RoundedGaussian
from tidegauge.noise.laplace import DiscreteLaplace
from tidegauge.noise.randomness import open_words

LANES = 16384
REPEATS, LIVE_REPEATS = 200, 1000


def block(law: RoundedGaussian | DiscreteLaplace, rows: int, cells: int) -> Callable[[], None]:
    """Return a run that adds noise to one block."""
    words = open_words("benchmark", type(law).__name__, law.scale)
    values = np.zeros((rows, cells), dtype=np.int64)
    coordinates = 64 * np.arange(rows)
    return lambda: law.add(words, values, coordinates)


def opendp_seconds(measurement: Any, size: int) -> float:
    """Return the least seconds a draw of OpenDP's vector measurement."""
    zeros = [0] * size
    return least({"opendp": lambda: measurement(zeros)}, repeats=3)["opendp"] / size


def main() -> None:
    """Print the ratios."""
    quick = is_quick(__doc__ or "")
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="i64")
    draws = 20 if quick else 2000
    opendp_normal = opendp_seconds(dp.m.make_gaussian(*space, scale=1e6), draws)
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    opendp_laplace = opendp_seconds(dp.m.make_laplace(*space, scale=1e6), draws)

    generator = np.random.default_rng(0)
    out = np.empty(LANES)
    scales = [Fraction(10**power) for power in ((6,) if quick else (0, 1, 3, 6, 9, 12, 15))]
    runs: dict[str, Callable[[], Any]] = {
        "normal": lambda: generator.standard_normal(out=out),
        "numpy normal": lambda: generator.normal(0.0, 1e6, LANES),
        "numpy laplace": lambda: generator.laplace(0.0, 1e6, LANES),
    }
    for scale in scales:
        runs[f"rounded Gaussian {float(scale):g}"] = block(RoundedGaussian(scale), 16, 1024)
        runs[f"discrete Laplace {float(scale):g}"] = block(DiscreteLaplace(scale), 16, 1024)
    for run in runs.values():
        run()
    best = least(runs, repeats=2 if quick else REPEATS)
    print(f"{LANES} lanes a call, nanoseconds a draw")
    for name, seconds in best.items():
        print(f"  {name:28s} {seconds / LANES * 1e9:7.1f}")
    gauss, laplace = best["rounded Gaussian 1e+06"], best["discrete Laplace 1e+06"]
    print(f"rounded Gaussian / numpy normal    {gauss / best['numpy normal']:8.2f}   (at most 2)")
    print(
        f"discrete Laplace / numpy laplace   {laplace / best['numpy laplace']:8.2f}   (at most 3)"
    )
    print(f"OpenDP / rounded Gaussian       {opendp_normal * LANES / gauss:8.0f}   (200 or more)")
    print(
        f"OpenDP / discrete Laplace       {opendp_laplace * LANES / laplace:8.0f}   (200 or more)"
    )

    live = {}
    for cells in (1, 16, 1000):
        live[f"Gaussian, {cells} cells"] = block(RoundedGaussian(Fraction(10**6)), 1, cells)
        live[f"Laplace, {cells} cells"] = block(DiscreteLaplace(Fraction(100)), 1, cells)
    print("one live call, microseconds (least)")
    for name, seconds in least(live, repeats=2 if quick else LIVE_REPEATS).items():
        print(f"  {name:28s} {seconds * 1e6:7.1f}")


if __name__ == "__main__":
    main()
