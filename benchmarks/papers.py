"""Processor time a step of the systems of the papers, over lengths of the stream."""

import time

import numpy as np
from timing import is_quick

from tidegauge.papers.bolot import (
    AllWindowSum,
    ExponentialSum,
    PolynomialSum,
    RandomizedResponse,
    WindowSum,
)

SYSTEMS = {
    "WindowSum(1024)": lambda cells: WindowSum(1024, 1, cells=cells),
    "AllWindowSum, to 1024": lambda cells: AllWindowSum(1, longest=1024, cells=cells),
    "PolynomialSum(1.5, 0.5)": lambda cells: PolynomialSum(1.5, 0.5, 1, reach=1024, cells=cells),
    "ExponentialSum(0.9999)": lambda cells: ExponentialSum(0.9999, 1, cells=cells),
    "RandomizedResponse": lambda cells: RandomizedResponse(1, cells=cells),
}
TOGETHER = 1 << 16  # cell-steps of short streams, each of which is a repetition
REPETITIONS = 9


def rate(name, cells, steps, lanes, repetitions):
    """Nanoseconds of processor time a cell and step, over the last steps of so many.

    Each repetition makes a stream. Making it is not timed, nor is the first half of the steps, in
    which tables of noise and of paths are made, once; rings that grow in the second half are. The
    least of the repetitions counts: what else a machine does makes a step slower, never faster.
    """
    measured = max(1, min(steps // 2, lanes // cells))
    readings = np.zeros((measured, cells))
    readings = readings[:, 0] if cells == 1 else readings
    least = float("inf")
    for _ in range(max(repetitions, TOGETHER // (measured * cells))):
        with SYSTEMS[name](cells) as system:
            # the work of a step depends on its number, not on what came before: begin late
            system._meter._step = system._reading._step = steps - 2 * measured
            system.update_many(readings)
            began = time.process_time()
            system.update_many(readings)
            least = min(least, time.process_time() - began)
    return least / (measured * cells) * 1e9


def main():
    quick = is_quick(__doc__ or "")
    exponents = (10,) if quick else (10, 12, 14, 16, 18, 20)
    lanes, repetitions = (1 << 10, 1) if quick else (1 << 18, REPETITIONS)
    print("ns a cell and step at the end of T steps; million cell-steps a second at the slowest T")
    print(f"{'system':>24}{'cells':>6}" + "".join(f"{f'2^{k}':>9}" for k in exponents))
    for name in SYSTEMS:
        for cells in (1, 1000):
            found = [rate(name, cells, 1 << k, lanes, repetitions) for k in exponents]
            text = "".join(f"{ns:9.1f}" for ns in found)
            print(f"{name:>24}{cells:6}{text}{1e3 / max(*found, 1e-3):8.1f} M/s", flush=True)


if __name__ == "__main__":
    main()
