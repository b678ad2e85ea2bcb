"""Fits for 50 common sets of views, as integers that need no tidegauge: docs/plans.json.

Prints one row a set: worst ratio, buffers, comb, views. ``make plans`` writes the file, which
docs/plans.md explains; a test recomputes what it says from its integers.

    python benchmarks/plans.py [--write FILE] [--quick]
"""

import argparse
import json
import math
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path

from tidegauge.privacy.rounding import sqrt_up
from tidegauge.strategies.blt.comb_patterns import comb_pattern_gain_squared
from tidegauge.strategies.blt.fitting import fit
from tidegauge.strategies.blt.patterns import pattern_gain_squared
from tidegauge.strategies.blt.shipped import SPREAD_OF_HORIZONS
from tidegauge.strategies.bounds import asymptotic_set_bound, worst_step
from tidegauge.strategies.decay import Exponential, Polynomial, Running, Step, Window

STEP, RUNNING, DAY = Step(), Running(), Exponential(half_life=24)
TEN = [RUNNING, *map(Window, (7, 24, 168, 1440, 10080)), DAY, Exponential(half_life=168)]
TEN += [Polynomial(0.5), Polynomial(1)]

SETS = [
    # views, horizon (None: unknown, or not needed)
    *(([RUNNING], n) for n in (256, 365, 1024, 4096, 8760, 1 << 16, 525_600, 1 << 20, 1 << 24)),
    ([RUNNING], None),
    *(([RUNNING, STEP], horizon) for horizon in (365, 8760, 1 << 16, None)),
    *(([Window(n)], None) for n in (7, 24, 30, 60, 168, 1440, 10080, 43200)),
    *(([Exponential(half_life=n)], None) for n in (2, 7, 24, 168, 1000)),
    *(([Polynomial(c)], None) for c in (0.5, 1, 1.5, 2)),
    # days
    ([RUNNING, Window(7), Window(30)], 365),
    ([RUNNING, Window(7), Window(28), Window(91), Window(365)], 3650),
    ([RUNNING, STEP, Window(7)], 365),
    ([STEP, Window(7), Window(28)], None),
    # hours
    ([RUNNING, Window(24)], 8760),
    ([RUNNING, Window(24), Window(168)], 8760),
    ([RUNNING, Window(24), Window(168), Window(720)], 8760),
    ([RUNNING, Window(24), Window(168), DAY], 8760),
    ([RUNNING, Window(24), Window(168), DAY, STEP], 8760),
    ([RUNNING, STEP, Window(168)], 8760),
    ([STEP, Window(24), Window(168)], None),
    ([Window(24), Window(168)], None),
    # minutes
    ([RUNNING, Window(60), Window(1440), Window(10080)], 525_600),
    ([Window(60), Window(1440)], None),
    ([STEP, Window(60), Window(1440)], None),
    # mixtures
    ([Exponential(half_life=n) for n in (1, 24, 168)], None),
    ([RUNNING, Window(1440), Exponential(half_life=60), Polynomial(1)], 1 << 20),
    ([Window(7), Window(43200)], None),
    (TEN, 525_600),
]

ABOUT = {
    "what": "One measurement for several views: filters fitted to 50 common sets of views.",
    "how": "docs/plans.md tells what the fields mean and how to use them without tidegauge.",
    "gaps": "1 - theta_j, over 2^64; as text, for many readers of JSON keep 53 bits",
    "weights": "w_j, over 2^64",
    "sensitivity": "the largest norm of a column for ever, rounded up: one event that adds 1",
    "bound": "least std at mu = 1 of any factorization mechanism for this view alone",
    "std": "of this filter at the view's worst step, at mu = 1; ratio is std over bound",
    "steps": "where the view is judged, at the worst of them; null: in the limit, for ever",
    "set_bound": "no factorization mechanism brings every view of the set below this ratio, in the "
    "limit of long streams; null where it is not computed",
}


def written(decay):
    match decay:
        case Step() | Running():
            return decay.name
        case Window(steps=steps):
            return {"window": steps}
        case Exponential(half_life=half_life):
            return {"half_life": float(half_life)}
        case Polynomial(c=c, reach=reach):
            return {"polynomial": c, "reach": reach}
    raise NotImplementedError(decay)


def judged_at(view, horizon):
    """The steps at the worst of which a view is judged; None: the limit."""
    if isinstance(view, Running) and horizon is None:
        return list(SPREAD_OF_HORIZONS)
    step = worst_step(view, horizon)
    return None if step is None else [step]


def named(views, horizon):
    names = ", ".join(view.name for view in views)
    if RUNNING not in views:
        return names
    return f"{names}; horizon {'unknown' if horizon is None else horizon}"


def planned(views, horizon):
    """Return a fit as plain data, all of it computed from its integers."""
    found = fit(views, horizon)
    if found.comb is None:
        squared = pattern_gain_squared(found.gaps, found.weights, events=1, separation=0)
    else:
        squared = comb_pattern_gain_squared(
            found.gaps, found.weights, *found.comb, events=1, separation=0
        )
    sensitivity = float(sqrt_up(squared))
    if Fraction(sensitivity) ** 2 < squared:
        sensitivity = math.nextafter(sensitivity, math.inf)
    bound = None
    if len(views) > 1 and (horizon is not None or RUNNING not in views):
        bound = float(asymptotic_set_bound(views, horizon)[0])
    comb = found.comb and {
        "numerator": found.comb[0].numerator,
        "denominator": found.comb[0].denominator,
        "lag": found.comb[1],
    }
    judged = zip(views, found.bounds, found.stds, found.ratios, strict=True)
    return {
        "name": named(views, horizon),
        "horizon": horizon,
        "gaps": [str(gap) for gap in found.gaps],
        "weights": [str(weight) for weight in found.weights],
        "comb": comb,
        "sensitivity": sensitivity,
        "worst_ratio": found.worst,
        "set_bound": bound,
        "views": [
            {
                "view": written(view),
                "steps": judged_at(view, horizon),
                "bound": bound,
                "std": std,
                "ratio": ratio,
            }
            for view, bound, std, ratio in judged
        ],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the first five sets")
    parser.add_argument("--write", type=Path, help="write the file")
    arguments = parser.parse_args()
    plans = []
    print("worst ratio | of any, for the set | buffers | comb | views")
    for views, horizon in SETS[:5] if arguments.quick else SETS:
        plan = planned(views, horizon)
        plans.append(plan)
        comb = plan["comb"] and "{numerator}/{denominator} at {lag}".format(**plan["comb"])
        of_any = "-" if plan["set_bound"] is None else f"{plan['set_bound']:.4f}"
        row = [f"{plan['worst_ratio']:.4f}", of_any, len(plan["gaps"]), comb or "none"]
        print(*row, plan["name"], sep=" | ", flush=True)
    if arguments.write:
        document = {"about": ABOUT, "made_by": f"tidegauge {version('tidegauge')}", "plans": plans}
        arguments.write.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
