"""How near the fitted strategies come to the lower bounds, and how long a fit takes.

Prints one row a set of views: buffers, comb, worst ratio, that without a comb, each view's ratio,
bound and std (Gaussian, at mu = 1 and one grain of change), milliseconds. All are computed from the
integers that a plan stores. Accuracy is deterministic; times are the least of three. ``--stream``
has the streaming decoder turn one unit of noise into every view, and compares; ``--starts 40`` adds
the best of as many random starts for the hard sets, with and without a comb.

    python benchmarks/accuracy.py [--quick] [--stream] [--starts N]
"""

import argparse
import math
import time

import numpy as np

from tidegauge.mechanisms.design import plan
from tidegauge.noise.laplace import DiscreteLaplace
from tidegauge.privacy.guarantee import ZCDP, PureDP
from tidegauge.privacy.unit import Event, NeighboringRelation, Neighbors
from tidegauge.strategies.blocks import best_levels
from tidegauge.strategies.blt.comb_search import CombDemands
from tidegauge.strategies.blt.fitting import _targets, fit
from tidegauge.strategies.blt.growth import FitTarget, demands_of, grow, memory
from tidegauge.strategies.blt.search import geometric_start, solve
from tidegauge.strategies.bounds import UNKNOWN_HORIZON
from tidegauge.strategies.decay import Exponential, Polynomial, Running, Step, Window
from tidegauge.strategies.strategy import Norm

ONE = Neighbors(Event(), NeighboringRelation.ADD_OR_REMOVE_ONE, 0, 1, 1, 1)

RUNNING, DAY = Running(), Exponential(half_life=24)
MIXED = [RUNNING, Window(24), Window(168), DAY]
TEN = [RUNNING, *map(Window, (7, 24, 168, 1440, 10080)), DAY, Exponential(half_life=168)]
TEN += [Polynomial(0.5), Polynomial(1)]

CASES = [
    # views, horizon, largest ratio promised
    ([RUNNING], 1 << 16, 1.10),
    ([RUNNING], 1 << 20, 1.085),
    ([RUNNING], 1 << 24, 1.075),
    ([RUNNING], 1 << 30, None),
    ([RUNNING], None, 1.28),
    ([RUNNING, Step()], None, None),
    ([Window(7)], None, 1.015),
    ([Window(24)], None, 1.015),
    ([Window(168)], None, 1.015),
    ([Window(1440)], None, 1.015),
    ([Window(43200)], None, 1.10),
    ([Exponential(half_life=2)], None, 1.005),
    ([DAY], None, 1.005),
    ([Exponential(half_life=1000)], None, 1.005),
    ([Polynomial(1)], None, 1.005),
    ([Polynomial(1.5)], None, 1.005),
    ([Polynomial(2)], None, 1.005),
    ([Polynomial(0.5)], None, 1.005),
    ([RUNNING, Step()], 8760, None),
    ([RUNNING, Window(24)], 8760, None),
    (MIXED, 8760, 1.24),
    ([*MIXED, Step()], 8760, 1.34),
    ([RUNNING, Window(60), Window(1440), Window(10080)], 525_600, 1.28),
    ([RUNNING, Window(7), Window(30)], 365, None),
    ([RUNNING, Window(7), Window(28), Window(91), Window(365)], 3650, None),
    ([Window(24), Window(168)], None, None),
    ([Window(7), Window(43200)], None, None),
    ([Exponential(half_life=h) for h in (1, 24, 168)], None, None),
    ([RUNNING, Window(1440), Exponential(half_life=60), Polynomial(1)], 1 << 20, None),
    (TEN, 525_600, 1.35),
]

HARD = [
    ([RUNNING], 1 << 20),
    (MIXED, 8760),
    ([RUNNING, Window(60), Window(1440), Window(10080)], 525_600),
    ([Window(7), Window(43200)], None),
    ([RUNNING], None),
    ([RUNNING, Step()], 8760),
]


def name(views, horizon):
    at = "unknown horizon" if horizon is None else f"horizon {horizon}"
    needs = any(isinstance(view, Running) for view in views)
    return " ".join(view.name for view in views) + (f" ({at})" if needs else "")


def table(cases, repeats, stream):
    fit([RUNNING], 100)  # imports scipy
    print("buffers | comb | worst | promised | without comb | ms | views | ratios | bounds | stds"
          + " | streamed" * stream)  # fmt: skip
    for views, horizon, promised in cases:
        best = math.inf
        for _ in range(repeats):
            start = time.perf_counter()
            result = fit(views, horizon)
            best = min(best, time.perf_counter() - start)
        alone = fit(views, horizon, longest_lag=0) if result.comb else result
        comb = "{} at {}".format(*result.comb) if result.comb else "none"
        numbers = (
            " ".join(f"{value:.{digits}f}" for value in values)
            for values, digits in ((result.ratios, 3), (result.bounds, 2), (result.stds, 2))
        )
        kept = "" if promised is None else f"<= {promised}"
        if promised is not None and result.worst > promised:
            kept += " BROKEN"
        print(
            len(result.gaps),
            comb,
            f"{result.worst:.4f}",
            kept,
            f"{alone.worst:.4f}",
            f"{best * 1e3:.0f}",
            name(views, horizon),
            *numbers,
            *([f"within {streamed(views, horizon):.1e}"] if stream else []),
            sep=" | ",
            flush=True,
        )


PURE = [
    # view, horizon, largest std promised at epsilon 1
    (RUNNING, 1 << 8, 13.4),
    (RUNNING, 1 << 12, 23.0),
    (RUNNING, 1 << 16, 34.5),
    (Window(32), None, None),
    (Window(256), None, 14.0),
    (Window(1024), None, 21.0),
]


ENDED = [(1 << 8, 1.075), (1 << 12, 1.06)]
RMSE = [
    # guarantee, end, largest rmse over 2^16 steps promised
    (ZCDP(0.5), None, 4.5),
    (ZCDP(0.5), 1 << 16, 4.5),
    (PureDP(1), None, 26),
]


def ended(ends, guarantees):
    """Whole plans of a running sum: with an end, and the error over all steps."""
    print("\nworst ratio | promised | strategy | end")
    for end, promised in ends:
        found = plan(views=[RUNNING], unit="event", guarantee=ZCDP(0.5), end=end).chosen
        kept = f"<= {promised}" + " BROKEN" * (found.worst_ratio > promised)
        print(f"{found.worst_ratio:.4f}", kept, found.strategy, end, sep=" | ")
    print("\nrmse over 2^16 steps | promised | strategy | guarantee | end")
    for guarantee, end, promised in guarantees:
        asked = {"views": [RUNNING], "unit": "event", "horizon": 1 << 16, "end": end}
        found = plan(guarantee=guarantee, **asked)
        std = found.plan.noise_std("running", np.arange(1, (1 << 16) + 1))
        rmse = math.sqrt(np.mean(std**2))
        kept = f"<= {promised}" + " BROKEN" * (rmse > promised)
        print(f"{rmse:.3f}", kept, found.chosen.strategy, guarantee, end or "none", sep=" | ")


def streamed(views, horizon):
    """The largest difference between a std and what the streaming decoder makes of one unit."""
    result, worst = fit(views, horizon), 0.0
    strategy, block = result.strategy(lattice_bits=20), 1 << 16
    column = float(result.strategy(20, charged_steps=1).sensitivity(Norm.L2, ONE)) / 2**20
    for view, std in zip(views, result.stds, strict=True):
        targets = [target.step for target in _targets(view, horizon)]
        last = max(step or 8 * int(memory(FitTarget(view, None, 1.0))) for step in targets)
        state, squares, found = strategy.init_decoder([view], 1), 0.0, []
        for first in range(0, last, block):
            steps = min(block, last - first)
            unit, out = np.zeros((steps, 1), dtype=np.int64), np.empty((1, steps, 1))
            unit[0] = (1 << 20) * (first == 0)
            strategy.decode(state, [view], unit, first, out)
            sums = squares + np.cumsum(out[0, :, 0] ** 2)
            squares = sums[-1]
            found += [sums[t - 1 - first] for t in targets if t and first < t <= first + steps]
        gains = found or [squares]
        nearest = min(abs(math.sqrt(gain) * column / std - 1) for gain in gains)
        worst = max(worst, nearest)
    return worst


def pure(cases):
    """Blocks under discrete Laplace noise at epsilon 1: std of the implemented law."""
    print("\nlevels | worst std at epsilon 1 | promised | with completed blocks only | view")
    for view, horizon, promised in cases:
        opened, completed = (
            best_levels([view], [1.0], horizon or UNKNOWN_HORIZON, opened=opened)
            for opened in (True, False)
        )
        std, other = (
            math.sqrt(blocks.worst_variance_gain(view, horizon or UNKNOWN_HORIZON))
            * DiscreteLaplace(blocks.sensitivity(Norm.L1, ONE)).std
            for blocks in (opened, completed)
        )
        kept = "" if promised is None else f"<= {promised}"
        if promised is not None and std > promised:
            kept += " BROKEN"
        print(opened.levels, f"{std:.2f}", kept, f"{other:.2f}", name([view], horizon), sep=" | ")


def random_starts(cases, count):
    print("\nbuffers | comb | our start | best of random starts | median | views")
    for views, horizon in cases:
        targets = [target for view in views for target in _targets(view, horizon)]
        demands = demands_of(targets, [1.0] * len(targets))
        longest = max(4.0, *map(memory, targets))
        for buffers in (2, 4, 5, 6):
            ours = min(
                (
                    solve(demands, geometric_start(buffers, longest, top, low))
                    for top, low in ((0.0, 1.0), (2.0, 0.5))
                ),
                key=lambda solution: solution.worst,
            )
            compare(views, horizon, demands, longest, ours, 0, count)
        lags = [view.steps for view in views if isinstance(view, Window)]
        if lags:
            ours = grow(demands, longest, min(lags))
            if ours.beta:
                compare(views, horizon, demands, longest, ours, min(lags), count)


def compare(views, horizon, demands, longest, ours, lag, count):
    rng, found, buffers = np.random.default_rng(1), [], len(ours.logits) // 2
    for _ in range(count):
        start = np.sort(rng.uniform(math.log(0.1 / longest), 3, 2 * buffers))
        start += 2e-3 * np.arange(2 * buffers)
        if lag:
            judged, start = CombDemands(demands, lag), np.r_[start, rng.uniform(0.05, 0.55)]
        else:
            judged = demands
        found.append(math.exp(solve(judged, start).worst))
    print(
        buffers,
        f"at {lag}" if lag else "none",
        f"{math.exp(ours.worst):.5f}",
        f"{min(found):.5f}",
        f"{np.median(found):.5f}",
        name(views, horizon),
        sep=" | ",
        flush=True,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stream", action="store_true", help="confirm by the streaming decoder")
    parser.add_argument("--starts", type=int, default=0, help="random starts for the hard sets")
    parser.add_argument("--quick", action="store_true", help="the first case of each table, once")
    arguments = parser.parse_args()
    shown = 1 if arguments.quick else None
    table(CASES[:shown], 1 if arguments.quick else 3, arguments.stream)
    ended(ENDED[:shown], RMSE[:shown])
    pure(PURE[:shown])
    if arguments.starts:
        random_starts(HARD[:shown], arguments.starts)
