"""What every system gets and tells: one stream, one line of JSON a case.

A running count of 2^16 steps; neighboring streams differ by 1 at one step. rho = 0.5 is Gaussian
noise of the sensitivity's size. ``rmse`` is over all steps, and over runs where it was measured.
"""

import json
import platform
import resource
import sys
import time
from importlib.metadata import version

import numpy as np

SEED = 0
STEPS = 1 << 16


def case():
    """Return the case to run, the number of steps and of runs, from the command line."""
    name, steps, runs = sys.argv[1:]
    return name, int(steps), int(runs)


def stream(steps):
    """Return the steps' counts, 0 or 1, and the true running counts."""
    x = (np.random.default_rng(SEED).random(steps) < 0.3).astype(np.int64)
    return x, np.cumsum(x)


def peak_mb():
    """Return the most memory that this process has held so far, libraries included."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


class Errors:
    """The errors of runs over all steps, added up as they come."""

    def __init__(self, steps):
        self._squares = np.zeros(steps)
        self.runs = 0

    def add(self, first, errors):
        """Add the errors of steps from ``first`` on, shape (steps, runs); runs are counted at 0."""
        self._squares[first : first + len(errors)] += (errors**2).sum(axis=1)
        self.runs += errors.shape[1] if first == 0 else 0

    @property
    def rmse(self):
        return float(np.sqrt(self._squares.mean() / self.runs))


def rmse(std):
    """Return the root mean square over steps of a predicted std."""
    return float(np.sqrt(np.mean(np.square(std))))


class Timer:
    """A ``with`` block: seconds by the clock and of processors, and the peak of memory after it."""

    def __enter__(self):
        self._start = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_):
        self.seconds = time.perf_counter() - self._start[0]
        self.cpu_seconds = time.process_time() - self._start[1]
        self.peak_mb = peak_mb()


def tell(system, name, package, setup, **figures):
    """Print one case: versions, seed, its set-up (imports aside) and figures, to four digits."""
    figures |= {"setup_seconds": setup.seconds, "setup_cpu_seconds": setup.cpu_seconds}
    figures |= {"setup_mb": setup.peak_mb, "peak_mb": peak_mb()}
    rounded = {
        key: float(f"{value:.4g}") if isinstance(value, float) else value
        for key, value in figures.items()
    }
    versions = {p: version(p) for p in (package, "numpy")} | {"python": platform.python_version()}
    told = {"system": system, "case": name, "versions": versions, "seed": SEED}
    print(json.dumps(told | rounded), flush=True)
