"""Released noise of the systems of Bolot et al. against ``noise_std``, with cells as runs."""

import numpy as np
import pytest

from tidegauge.papers.bolot import ExponentialSum, RandomizedResponse
from tidegauge.papers.system import System
from tidegauge.strategies.decay import Exponential, Polynomial, Running, Window
from tidegauge.testing import seeded_system

pytestmark = pytest.mark.statistical

RUNS = 100_000
STEPS = (1, 3, 7, 8, 23)
SYSTEMS = {
    "ExponentialSum, 0.9": lambda: ExponentialSum(0.9, 1, cells=RUNS),
    "ExponentialSum, 0.9999": lambda: ExponentialSum(0.9999, 1, cells=RUNS),
    "ExponentialSum, as printed": lambda: ExponentialSum(0.9, 1, cells=RUNS, as_printed=True),
    "ExponentialSum, small epsilon": lambda: ExponentialSum(0.5, 0.01, cells=RUNS),
    **{
        f"RandomizedResponse, {decay.name}": lambda decay=decay: RandomizedResponse(
            0.5, decay=decay, cells=RUNS
        )
        for decay in (Running(), Window(8), Exponential(factor=0.9), Polynomial(1.5, reach=1024))
    },
}


def errors(system: System) -> np.ndarray:
    """Released minus exact at the steps, shape (steps, runs)."""
    bits = np.arange(STEPS[-1]) % 3 == 1
    weights = system.decay.weights(len(bits))
    exact = np.convolve(weights, bits)[: len(bits)]
    released = system.update_many(np.repeat(bits[:, None], RUNS, axis=1).astype(float))
    return (released - exact[:, None])[np.array(STEPS) - 1]


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_measured_std_is_the_predicted_one(name: str) -> None:
    system = seeded_system(11, SYSTEMS[name]())
    for step, error in zip(STEPS, errors(system), strict=True):
        std = system.noise_std(step)
        np.testing.assert_allclose(error.std(), std, rtol=0.02)
        assert abs(error.mean()) < 5 * std / RUNS**0.5
        exceeded = (np.abs(error) > system.error_at(0.05, step)).mean()
        if isinstance(system, ExponentialSum):
            assert abs(exceeded - 0.05) < 5 * (0.05 * 0.95 / RUNS) ** 0.5
        else:
            assert exceeded < 0.05


def test_a_scale_that_is_three_percent_off_is_noticed() -> None:
    system = seeded_system(11, SYSTEMS["ExponentialSum, 0.9"]())
    last = errors(system)[-1]
    with pytest.raises(AssertionError):
        np.testing.assert_allclose(last.std() * 1.03, system.noise_std(STEPS[-1]), rtol=0.02)
