"""Speed of the strategies beside ``numpy.cumsum`` of the same matrix, and of one live step.

Run ``python benchmarks/strategies.py``. One core; the figures are minima, live steps medians.
"""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from timing import is_quick, least, quantiles

from tidegauge.strategies.blt import Blt, Comb
from tidegauge.strategies.decay import Exponential, Running, Window
from tidegauge.strategies.identity import Identity
from tidegauge.strategies.strategy import Strategy

UNIT = 1 << 64
GAPS = (1.9e-5, 6.0e-4, 1.2e-2, 0.16, 0.3, 0.4, 0.5, 0.6)
VIEWS = [Running(), Window(24), Exponential(half_life=24)]
SHAPES = ((65536, 1), (4096, 16), (1024, 229), (256, 1000), (4096, 1000), (8, 100_000))


def blt(buffers: int) -> Blt:
    gaps = tuple(int(UNIT * gap) for gap in GAPS[:buffers])
    return Blt(gaps, tuple(int(UNIT * gap / 10) for gap in GAPS[:buffers]), 20)


def comb(buffers: int) -> Comb:
    inner = blt(buffers)
    return Comb(inner.gaps, inner.weights, Fraction(13, 32), 24, inner.lattice_bits)


def block(strategy: Strategy, steps: int, cells: int, repeats: int = 20) -> tuple[float, ...]:
    """Nanoseconds a cell-step of cumsum, of encoding and of decoding three views."""
    x = np.random.Generator(np.random.PCG64(0)).integers(0, 50, (steps, cells))
    out = np.empty((len(VIEWS), steps, cells))
    private, public = strategy.init_encoder(cells), strategy.init_decoder(VIEWS, cells)
    measured = strategy.encode(private, x, 0)
    calls: dict[str, Callable[[], object]] = {
        "cumsum": lambda: np.cumsum(x, axis=0),
        "encode": lambda: strategy.encode(private, x, 0),
        "decode": lambda: strategy.decode(public, VIEWS, measured, 0, out),
    }
    seconds = least(calls, repeats=repeats)
    return tuple(seconds[name] / x.size * 1e9 for name in calls)


def live(strategy: Strategy, cells: int, steps: int = 5000) -> float:
    """Median microseconds of one step, encoded and decoded to three views."""
    x, out = np.ones((1, cells), dtype=np.int64), np.empty((len(VIEWS), 1, cells))
    private, public = strategy.init_encoder(cells), strategy.init_decoder(VIEWS, cells)
    t = iter(range(10 * steps))

    def step() -> None:
        now = next(t)
        strategy.decode(public, VIEWS, strategy.encode(private, x, now), now, out)

    return quantiles(step, number=steps)[0] * 1e6


def main() -> None:
    quick = is_quick(__doc__ or "")
    shapes, repeats, steps = (((64, 4),), 1, 100) if quick else (SHAPES, 20, 5000)
    lines = ["strategy    steps x cells   cumsum  encode  decode  ns per cell-step, three views"]
    named: dict[str, Strategy] = {
        "blt, d = 4": blt(4),
        "comb, 24": comb(4),
        "identity": Identity(0),
    }
    for name, strategy in named.items():
        for rows, cells in shapes:
            figures = "".join(f"{value:8.2f}" for value in block(strategy, rows, cells, repeats))
            lines.append(f"{name:10}{rows:8} x {cells:6}{figures}")
    lines.append("buffers d   encode, 256 x 1000 (quick: 64 x 4), ns per cell-step")
    rows, cells = shapes[0] if quick else (256, 1000)
    encode = [(d, block(blt(d), rows, cells, repeats)[1]) for d in (1, 2, 3, 4, 5, 6, 8)]
    lines.extend(f"{buffers:9}{nanoseconds:10.2f}" for buffers, nanoseconds in encode)
    lines.append("strategy    cells   one live step, microseconds")
    for name, strategy in named.items():
        lines.extend(
            f"{name:10}{cells:7}{live(strategy, cells, steps):8.1f}" for cells in (1, 16, 1000)
        )
    print("\n".join(lines))


if __name__ == "__main__":
    main()
