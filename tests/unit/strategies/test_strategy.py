"""What Strategy implements once, for all strategies."""

import math

import numpy as np
import pytest
from twins.blts import RUNNING
from twins.cases import ONE, VIEWS

from tidegauge.errors import InvalidParameter, UnsupportedCombination
from tidegauge.strategies.blocks import Blocks, OpenBlocks
from tidegauge.strategies.blt import Blt
from tidegauge.strategies.decay import Running, Step
from tidegauge.strategies.identity import Identity
from tidegauge.strategies.strategy import Norm, Strategy

EVERY = [
    Identity(3),
    Blt(*RUNNING, 20),
    Blocks((1, 4, 12)),
    OpenBlocks((1, 4, 12), (Running(),)),
]
NAMES = [type(strategy).__name__ for strategy in EVERY]


def test_a_method_is_abstract_or_final():
    implemented = {
        name
        for name, member in vars(Strategy).items()
        if callable(member) and not name.startswith("__")
    } - Strategy.__abstractmethods__
    assert {"max_error", "mean_squared_error", "noise_std", "matrices"} <= implemented
    for strategy in EVERY:
        assert set() == implemented & set(vars(type(strategy)))


@pytest.mark.parametrize("strategy", EVERY, ids=NAMES)
@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_errors_are_those_of_the_noise_of_one_grain(strategy, view):
    steps = np.arange(1, 201)
    gains = strategy.variance_gain(view, steps)
    np.testing.assert_array_equal(np.sqrt(gains) * 3, strategy.noise_std(view, steps, 3.0))
    for norm in strategy.norms:
        sensitivity = float(strategy.sensitivity(norm, ONE))
        variance = sensitivity**2 if norm is Norm.L2 else 2 * sensitivity**2
        largest, mean = gains.max() * variance, gains.mean() * variance
        assert strategy.max_error(view, 200, norm) == pytest.approx(math.sqrt(largest))
        assert strategy.mean_squared_error(view, 200, norm) == pytest.approx(mean)
    usual = Norm.L2 if Norm.L2 in strategy.norms else Norm.L1
    assert strategy.max_error(view, 200, usual) == strategy.max_error(view, 200)


@pytest.mark.parametrize("strategy", EVERY, ids=NAMES)
def test_the_matrices_undo_each_other(strategy):
    C, plus = strategy.matrices(24)
    assert (24, len(C)) == plus.shape
    np.testing.assert_allclose(plus @ C, np.eye(24), atol=1e-9)


def test_errors_under_a_norm_without_a_proof_are_refused():
    with pytest.raises(UnsupportedCombination):
        Blt(*RUNNING, 20).max_error(Step(), 10, Norm.L1)
    with pytest.raises(UnsupportedCombination):
        OpenBlocks((1, 4), (Running(),)).mean_squared_error(Step(), 10, Norm.L2)


@pytest.mark.parametrize("steps", [0, -1, 2.0, True, 1 << 29])
def test_numbers_of_steps_that_cannot_be_computed_are_refused(steps):
    for method in (Identity(0).max_error, Identity(0).mean_squared_error):
        with pytest.raises(InvalidParameter, match="Ask for fewer"):
            method(Running(), steps)
    for matrix in (Identity(0).encoder_matrix, Identity(0).matrices):
        with pytest.raises(InvalidParameter, match="Ask for fewer steps"):
            matrix(steps)
