"""The one clock of the benchmarks."""

import time


def best(call, *, repeats=5, number=1):
    """Least seconds of one call over several repeats: other work on the machine only adds."""
    least = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(number):
            call()
        least = min(least, (time.perf_counter() - start) / number)
    return least


def quantiles(call, *, number):
    """Median and 99th percentile of the seconds of single calls."""
    seconds = []
    for _ in range(number):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    seconds.sort()
    return seconds[number // 2], seconds[number * 99 // 100]
