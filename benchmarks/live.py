"""One live step, whole Python path: totals in, releases of three views out."""

import numpy as np
from timing import is_quick, quantiles

import tidegauge as tg

VIEWS = [tg.Running(), tg.Window(24), tg.Exponential(half_life=24)]


def main():
    quick = is_quick(__doc__)
    for cells in (1, 16) if quick else (1, 16, 1000, 10_000):
        gauge = tg.Gauge(
            views=VIEWS, unit="event", cells=cells, horizon=8760, epsilon=1.0, delta=1e-9
        )
        x = np.random.default_rng(0).integers(0, 50, cells)
        for _ in range(200):
            gauge.update(x)
        median, slow = quantiles(lambda g=gauge, x=x: g.update(x), number=100 if quick else 3000)
        print(f"{cells:6d} cells: median {median * 1e6:7.1f} us, 99 % {slow * 1e6:7.1f} us")


if __name__ == "__main__":
    main()
