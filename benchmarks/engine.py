"""Gauge against numpy.cumsum of the same matrix: 4096 steps x 1000 cells, one thread, one run."""

import numpy as np
from timing import is_quick, least

import tidegauge as tg

STEPS, CELLS = 4096, 1000
VIEWS = [tg.Running(), tg.Window(24), tg.Exponential(half_life=24)]


def gauge(cells, horizon):
    return tg.Gauge(
        views=VIEWS, unit="event", cells=cells, horizon=horizon, epsilon=1.0, delta=1e-9
    )


def main():
    quick = is_quick(__doc__)
    steps, cells = (STEPS, 4) if quick else (STEPS, CELLS)
    x = np.random.default_rng(0).integers(0, 50, (steps, cells))
    designs = {f"horizon {steps}": gauge(cells, steps), "no horizon": gauge(cells, None)}
    for design in designs.values():
        design.update_many(x[:64])  # compile and touch
    calls = {name: (lambda d=design: d.update_many(x)) for name, design in designs.items()}
    seconds = least({"cumsum": lambda: np.cumsum(x, axis=0), **calls}, repeats=1 if quick else 7)
    plain = seconds.pop("cumsum")
    print(f"numpy.cumsum: {plain / x.size * 1e9:.1f} ns a cell-step")
    for name, ours in seconds.items():
        print(
            f"gauge, {name} ({len(designs[name].plan.strategy.gaps)} buffers): "
            f"{ours / x.size * 1e9:.1f} ns a cell-step, {x.size / ours / 1e6:.1f} million "
            f"cell-steps a second, {ours / plain:.2f} times cumsum"
        )


if __name__ == "__main__":
    main()
