import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tidegauge.errors import InvalidParameter, UnsupportedCombination
from tidegauge.papers.bolot import ExponentialSum, InputPerturbation
from tidegauge.privacy.guarantee import ZCDP, ApproxDP, GaussianDP, PureDP
from tidegauge.strategies.decay import Exponential
from tidegauge.testing import seeded_system


@pytest.mark.parametrize("alpha", [0.01, 0.5, 0.9, 0.999, Fraction(1, 3)])
@pytest.mark.parametrize("cells", [1, 3])
def test_the_decayed_sum_is_exact_but_for_noise(alpha: float, cells: int) -> None:
    source = np.random.Generator(np.random.PCG64(1))
    readings = source.random((200, cells))
    system = seeded_system(1, ExponentialSum(alpha, 1e5, cells=cells))
    released = system.update_many(readings if cells > 1 else readings[:, 0]).reshape(200, cells)
    exact = np.zeros(cells)
    for step in range(200):
        exact = exact * float(alpha) + readings[step]
        assert np.abs(released[step] - exact).max() < 12 * system.noise_std(step + 1) + 1e-5
    assert system.noise_std(200) < 1e-3


def test_steps_and_blocks_give_the_same_bytes() -> None:
    readings = np.linspace(0, 1, 99).reshape(33, 3)
    whole = seeded_system(3, ExponentialSum(0.9, 1, cells=3)).update_many(readings)
    one = seeded_system(3, ExponentialSum(0.9, 1, cells=3))
    assert whole.tobytes() == np.array([one.update(x) for x in readings]).tobytes()


def test_every_guarantee_is_served() -> None:
    with ExponentialSum(0.9, guarantee=GaussianDP(1)) as gaussian:
        # the largest column and the largest row are the same numbers
        np.testing.assert_allclose(gaussian.noise_std((1 << 20) - 1), 2.614057377, rtol=1e-5)
        np.testing.assert_allclose(float(gaussian.sensitivity) ** 2, 2.614057377, rtol=1e-6)
        two_sided = gaussian.noise_std(1) * 1.959964
        np.testing.assert_allclose(gaussian.error_at(0.05, 1), two_sided, rtol=1e-4)
    with ExponentialSum(0.9, guarantee=ZCDP(Fraction(1, 2))) as concentrated:
        np.testing.assert_allclose(concentrated.noise_std(255), 2.614057, rtol=1e-5)
    with ExponentialSum(0.9, guarantee=PureDP(1)) as pure, ExponentialSum(0.9, 1) as same:
        assert pure.noise_std(7) == same.noise_std(7)
    with ExponentialSum(0.9, guarantee=ApproxDP(1, Fraction(1, 10**9))) as approximate:
        assert approximate.noise_std(255) > 0


def test_the_error_is_the_quantile_of_the_noise() -> None:
    with ExponentialSum(0.9, 1) as system:
        single = float(system.sensitivity) * math.log(20)
        np.testing.assert_allclose(system.error_at(0.05, 64), single, rtol=1e-4)  # one node
        assert single < system.error_at(0.05, 63) < 20**0.5 * system.noise_std(63)  # Chebyshev


def test_small_epsilons_and_long_memories_coarsen_the_weights() -> None:
    fine, coarse = ExponentialSum(0.9, 1), ExponentialSum(1 - 1e-6, 0.001)
    assert 14 <= coarse.plan.strategy.lattice_bits < fine.plan.strategy.lattice_bits <= 30
    np.testing.assert_allclose(float(coarse.sensitivity), 19.5988, rtol=1e-3)


@pytest.mark.parametrize("alpha", [0, 1, -0.5, 1.5, math.nan, math.inf, "0.5", None, True])
def test_factors_that_are_no_decay_are_refused(alpha: Any) -> None:
    for make in (ExponentialSum, lambda a, e: ExponentialSum(a, e, as_printed=True)):
        with pytest.raises(InvalidParameter):
            make(alpha, 1)


def test_what_has_no_proof_is_refused() -> None:
    with pytest.raises(UnsupportedCombination, match="half-life"):
        ExponentialSum(1 - 2.0**-25, 1)
    with pytest.raises(UnsupportedCombination, match="Laplace"):
        ExponentialSum(0.9, guarantee=GaussianDP(1), as_printed=True)
    with pytest.raises(InvalidParameter, match="as_printed"):
        ExponentialSum(0.9, 1, as_printed=1)  # type: ignore[arg-type]  # refused
    for epsilon, guarantee in ((None, None), (1, PureDP(1)), (0, None), (-1, None)):
        with pytest.raises(InvalidParameter):
            ExponentialSum(0.9, epsilon, guarantee=guarantee)
    for cells in (0, -1, 1.5):
        with pytest.raises(InvalidParameter):
            ExponentialSum(0.9, 1, cells=cells)  # type: ignore[arg-type]  # refused


def test_input_perturbation_is_the_stream_itself() -> None:
    with InputPerturbation(1, Exponential(factor=0.9)) as system:
        assert 1 == system.sensitivity
        np.testing.assert_allclose(system.noise_std(1 << 20), math.sqrt(2 / 0.19), rtol=1e-6)
    with InputPerturbation(guarantee=GaussianDP(1)) as running:
        np.testing.assert_allclose(running.noise_std(16), 4, rtol=1e-4)
