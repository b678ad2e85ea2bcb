"""jax-privacy: its buffered Toeplitz matrix, tuned to the number of steps, and its square root."""

import jax
import jax.numpy as jnp
import numpy as np
from jax_privacy import noise_addition
from jax_privacy.matrix_factorization import buffered_toeplitz, toeplitz
from shared import SEED, Errors, Timer, case, rmse, stream, tell

jax.config.update("jax_enable_x64", True)


def predicted(coefficients, steps):
    """The std of each running count at rho = 0.5, by jax-privacy's own formula."""
    return np.sqrt(np.asarray(toeplitz.per_query_error(strategy_coef=coefficients, n=steps)))


def blt(steps, runs):
    with Timer() as setup:
        tuned = buffered_toeplitz.optimize(n=steps, max_buffers=4)
        scale = float(np.sqrt(buffered_toeplitz.sensitivity_squared(tuned, n=steps)))
        inverse = tuned.inverse_as_streaming_matrix()
    std = scale * predicted(tuned.toeplitz_coefs(steps), steps)
    x, truth = stream(steps)

    @jax.jit
    def counts(key):
        privatizer = noise_addition.matrix_factorization_privatizer(
            inverse, stddev=scale, prng_key=key
        )

        def step(carry, value):
            state, total = carry
            noised, state = privatizer.update(value, state)
            return (state, total + noised), total + noised

        start = privatizer.init(jnp.zeros(())), jnp.zeros(())
        return jax.lax.scan(step, start, jnp.asarray(x, float))[1]

    keys = jax.random.split(jax.random.key(SEED), runs + 1)
    counts(keys[0]).block_until_ready()
    errors = Errors(steps)
    with Timer() as all_runs:
        for key in keys[1:]:
            errors.add(0, (np.asarray(counts(key)) - truth)[:, None])
    tell(
        "jax-privacy", "rho 0.5, BLT of 4 buffers", "jax-privacy", setup, online=True,
        noise="float64, JAX's generator", predicted_rmse=rmse(std), measured_rmse=errors.rmse,
        runs=runs,
        steps_per_second=steps * runs / all_runs.seconds,
    )  # fmt: skip


def square_root(steps):
    with Timer() as setup:
        coefficients = toeplitz.optimal_max_error_strategy_coefs(steps)
        scale = float(np.sqrt(toeplitz.sensitivity_squared(coefficients)))
        std = scale * predicted(coefficients, steps)
    tell(
        "jax-privacy", "rho 0.5, square root, its formula", "jax-privacy", setup, online=False,
        noise="none drawn", predicted_rmse=rmse(std), measured_rmse=None, runs=0,
    )  # fmt: skip


if __name__ == "__main__":
    name, steps, runs = case()
    if name == "blt":
        blt(steps, runs)
    else:
        square_root(steps)
