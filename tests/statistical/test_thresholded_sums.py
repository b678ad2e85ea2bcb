"""Released noise of the systems of Perrier et al. against ``noise_std``, at fixed seeds."""

import numpy as np
import pytest

from tidegauge.mechanisms.measure import measure_threshold
from tidegauge.mechanisms.threshold_rule import ThresholdRule
from tidegauge.papers.perrier import BinaryTree, ThresholdedSum
from tidegauge.testing import SeededWords, seeded_system, seeded_thresholded

pytestmark = pytest.mark.statistical

STEPS = np.array([20, 21, 27, 35])


def errors(runs: int) -> np.ndarray:
    """Released less truncated sums over their std, shape (runs, steps); thresholds differ."""
    values = np.linspace(0, 10, 35)[np.arange(35) * 11 % 35]
    found = []
    for seed in range(runs):
        plain = ThresholdedSum(
            10, first=20, end=35, epsilon=4, delta=0.01, p=0.5, beta_lt=0.2, grain=0.001
        )
        system = seeded_thresholded(3 * seed, plain)
        released = system.update_many(values)[STEPS - 1]
        if not system.threshold:
            assert not released.any()
            continue
        exact = np.cumsum(np.minimum(values, float(system.threshold)))[STEPS - 1]
        found.append((released - exact) / [system.noise_std(int(step)) for step in STEPS])
    return np.array(found)


def test_the_measured_std_is_the_predicted_one_whatever_the_threshold_is():
    runs = 600
    measured = errors(runs)
    runs = len(measured)
    assert runs > 500
    assert (np.abs(measured.mean(axis=0)) < 5 / runs**0.5).all()
    # a draw of Laplace noise has the kurtosis 6: its squares vary by sqrt(5 / runs)
    np.testing.assert_allclose((measured**2).mean(axis=0), 1, atol=4 * (5 / runs) ** 0.5)
    assert (np.abs((measured**2).mean(axis=0) * 1.9 - 1) > 0.4).all()  # half the noise is noticed


def test_thresholds_lie_below_the_quantile_as_often_as_allowed():
    values, rule = np.arange(1000) * 1000, ThresholdRule(1, 0.001, 0.5, 0.2)
    at = int(values[rule.rank(1000) - 1])
    runs = 800
    draws = [measure_threshold(rule, values, 1 << 20, SeededWords(seed)) for seed in range(runs)]
    below = np.mean(np.array(draws) < at)
    assert abs(below - 0.2) < 4 * (0.2 * 0.8 / runs) ** 0.5


def test_the_measured_std_of_the_tree_is_the_predicted_one():
    runs = 50_000
    tree = seeded_system(5, BinaryTree(1440, end=31, epsilon=1, grain=1, cells=runs))
    released = tree.update_many(np.full((31, runs), 25))
    for step in (1, 16, 31):
        error = released[step - 1] - 25 * step
        np.testing.assert_allclose(error.std(), tree.noise_std(step), rtol=0.02)
        assert abs(error.mean()) < 5 * tree.noise_std(step) / runs**0.5
