"""The one clock of the benchmarks: least times, taken in turns so that others slow all alike."""

import argparse
import time


def is_quick(description):
    """Read the command line: whether to run the smallest sizes only, to see that all works."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="smallest sizes; figures mean nothing")
    return parser.parse_args().quick


def least(calls, *, repeats=5):
    """Return the least seconds of one call of each, all called in turns."""
    seconds = dict.fromkeys(calls, float("inf"))
    for _ in range(repeats):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            seconds[name] = min(seconds[name], time.perf_counter() - start)
    return seconds


def quantiles(call, *, number):
    """Return the median and the 99th percentile of the seconds of single calls."""
    seconds = []
    for _ in range(number):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    seconds.sort()
    return seconds[number // 2], seconds[number * 99 // 100]
