"""tidegauge: a gauge of one running count, planned, and run in many cells that get one stream."""

import numpy as np
import scipy.optimize  # noqa: F401 - so that set-up is without imports, as of the others
from shared import SEED, Errors, Timer, case, rmse, stream, tell

import tidegauge as tg
from tidegauge.testing import seeded_gauge

BLOCK = 256
CASES = {
    "rho 0.5, for ever": {"guarantee": tg.ZCDP(0.5)},
    "rho 0.5, with an end": {"guarantee": tg.ZCDP(0.5)},
    "epsilon 1, for ever": {"guarantee": tg.PureDP(1)},
}


def main():
    name, steps, runs = case()
    asked = {"views": {"count": tg.Running()}, "unit": "event", "horizon": steps, **CASES[name]}
    if "end" in name:
        asked["end"] = steps
    x, truth = stream(steps)
    with Timer() as setup:
        found = tg.plan(**asked)
    predicted = rmse(found.plan.noise_std("count", np.arange(1, steps + 1)))

    live = tg.Gauge(**asked)
    live.update(int(x[0]))  # loads the kernels
    with Timer() as alone:
        for value in x[1:2001].tolist():
            live.update(value)
    with tg.Gauge(**asked) as one, Timer() as block:
        one.update_many(x)

    many, errors = seeded_gauge(SEED, cells=runs, **asked), Errors(steps)
    for first in range(0, steps, BLOCK):
        part = x[first : first + BLOCK, None]
        values = many.update_many(np.repeat(part, runs, axis=1))["count"].value
        errors.add(first, values - truth[first : first + BLOCK, None])
    tell(
        "tidegauge", name, "tidegauge", setup, online=True, noise="exact, AES-256",
        measures=found.chosen.strategy, predicted_rmse=predicted, measured_rmse=errors.rmse,
        runs=runs, live_steps_per_second=min(2000, steps - 1) / alone.seconds,
        steps_per_second=steps / block.seconds,
    )  # fmt: skip


if __name__ == "__main__":
    main()
