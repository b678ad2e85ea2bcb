"""OpenDP has no streaming count: a share of rho for each step, or a batch tree over all of them."""

import numpy as np
import opendp.prelude as dp
from shared import Errors, Timer, case, stream, tell

RHO = 0.5


def each_step(steps, runs):
    """One release of the running count a step, rho / steps each; the first 3000 steps are run."""
    _, truth = stream(steps)
    with Timer() as setup:
        scale = float(np.sqrt(steps / (2 * RHO)))
        space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
        measurement = dp.m.make_gaussian(*space, scale=scale)
    shown = min(steps, 3000)
    errors = Errors(shown)
    with Timer() as run:
        values = [measurement(int(total)) for total in truth[:shown]]
    errors.add(0, (np.array(values) - truth[:shown])[:, None])
    tell(
        "opendp", "rho 0.5, each step its share", "opendp", setup, online=True,
        noise="exact, OpenSSL", predicted_rmse=scale, measured_rmse=errors.rmse, runs=1,
        live_steps_per_second=shown / run.seconds,
    )  # fmt: skip


def tree(steps, runs):
    """Its binary tree with its stated sensitivity and its consistency: not online."""
    x, truth = stream(steps)
    with Timer() as setup:
        space = dp.vector_domain(dp.atom_domain(T=int), size=steps), dp.l2_distance(T=int)
        nodes = dp.t.make_b_ary_tree(*space, leaf_count=steps, branching_factor=2)
        scale = float(nodes.map(1) / np.sqrt(2 * RHO))
        noise = dp.m.make_gaussian(
            dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float), scale=scale
        )
        consistent = dp.t.make_consistent_b_ary_tree(branching_factor=2)
    errors = Errors(steps)
    with Timer() as all_runs:
        for _ in range(runs):
            leaves = consistent(noise(nodes(x.tolist())))
            errors.add(0, (np.cumsum(leaves)[:steps] - truth)[:, None])
    tell(
        "opendp", "rho 0.5, batch tree over the whole stream", "opendp", setup, online=False,
        noise="exact, OpenSSL", predicted_rmse=None, measured_rmse=errors.rmse, runs=runs,
        steps_per_second=steps * runs / all_runs.seconds,
    )  # fmt: skip


if __name__ == "__main__":
    dp.enable_features("contrib", "honest-but-curious")
    name, steps, runs = case()
    {"each step": each_step, "tree": tree}[name](steps, runs)
