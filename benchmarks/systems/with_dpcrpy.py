"""dpcrpy: its mechanisms for a running count, one call a step, with the error that each states."""

import math

import dpcrpy
import numpy as np
from dpcrpy.framework.noiMech import GaussNoiMech, LapNoiMech
from shared import SEED, Errors, Timer, case, stream, tell

MECHANISMS = {
    "BinMech": lambda noise, steps: dpcrpy.BinMech(kOrder=bits(steps), noiMech=noise),
    "Honaker": lambda noise, steps: dpcrpy.Honaker(kOrder=bits(steps), noiMech=noise),
    "BCRG": lambda noise, steps: dpcrpy.BCRG(kOrder=bits(steps + 1), noiMech=noise),
    "ABCRG": lambda noise, steps: dpcrpy.ABCRG(kOrder=bits(steps + 1), noiMech=noise),
    "AuBCR": lambda noise, steps: dpcrpy.AuBCR(kOrder=bits(steps), noiMech=noise),
    "KTCR": lambda noise, steps: dpcrpy.KTCR(h=bits(steps), N=1, k=2, noiMech=noise),
    "FDA": lambda noise, steps: dpcrpy.FDA(kOrder=bits(steps + 1), noiMech=noise),
}
NOISE = {
    "rho 0.5": lambda: GaussNoiMech(sigma0=1.0),
    "epsilon 1": lambda: LapNoiMech(epsilon=1.0),
}


def bits(steps):
    return math.ceil(math.log2(steps))


def main():
    name, steps, runs = case()
    guarantee, which = name.split(", ")
    np.random.seed(SEED)  # dpcrpy draws from numpy's global generator
    x, truth = stream(steps)
    errors, stated, seconds = Errors(steps), 0.0, 0.0
    for _ in range(runs):
        with Timer() as setup:
            mechanism = MECHANISMS[which](NOISE[guarantee](), steps)
        with Timer() as run:
            released = [mechanism.dpRelease(value) for value in x]
        values, squares = np.array(released, dtype=float).reshape(-1, 2).T
        errors.add(0, (values - truth)[:, None])
        stated, seconds = float(np.sqrt(squares.mean())), seconds + run.seconds
    tell(
        "dpcrpy", name, "dpcrpy", setup, online=True, noise="float64, numpy's global generator",
        predicted_rmse=stated, measured_rmse=errors.rmse, runs=runs,
        live_steps_per_second=steps * runs / seconds,
    )  # fmt: skip


if __name__ == "__main__":
    main()
