"""Lower bounds of any pure algorithm, and the printed forms that are wrong."""

import math

import numpy as np
import pytest
from scipy.special import zeta

from tidegauge.errors import InvalidParameter
from tidegauge.papers.bolot import ExponentialSum, RandomizedResponse, lower_bound, std_bound
from tidegauge.strategies.decay import (
    Custom,
    Decay,
    Difference,
    Exponential,
    Polynomial,
    Running,
    Step,
    Window,
)

DECAYS: list[Decay] = [
    Step(),
    Running(),
    Window(16),
    Exponential(factor=0.9),
    Polynomial(1.5, reach=1 << 12),
    Custom((0.5, 0.0, -2.0)),
    Difference(Window(3), 3),
]


def most_readings(epsilon: float, gamma: float) -> int:
    """D by counting up."""
    d = 0
    while math.exp(epsilon * (d + 1)) * gamma < (1 - gamma) * (1 - 1e-12):
        d += 1
    return d


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("gamma", [1e-6, 0.01, 0.1, 0.4, 0.5, 0.9])
@pytest.mark.parametrize("decay", DECAYS)
def test_the_bound_is_half_of_what_so_many_readings_move(
    decay: Decay, epsilon: float, gamma: float
) -> None:
    d = most_readings(epsilon, gamma)
    sums = np.abs(np.cumsum(decay.weights(d))) if d else np.zeros(1)
    np.testing.assert_allclose(lower_bound(decay, epsilon, gamma), sums.max() / 2, rtol=1e-12)
    if gamma >= 0.5:
        assert 0 == d


def test_the_corollaries() -> None:
    for epsilon, gamma in ((0.1, 0.01), (1, 1e-6)):
        d = most_readings(epsilon, gamma)
        assert d > 10
        for window in (4, 1 << 30):
            assert min(window, d) / 2 == lower_bound(Window(window), epsilon, gamma)
        exponential = lower_bound(Exponential(factor=0.9), epsilon, gamma)
        np.testing.assert_allclose(exponential, (1 - 0.9**d) / 0.2, rtol=1e-12)
        polynomial = lower_bound(Polynomial(2.0, reach=1 << 12), epsilon, gamma)
        harmonic = (np.arange(1, d + 1) ** -2.0).sum() / 2
        np.testing.assert_allclose(polynomial, harmonic, rtol=1e-3)  # of the implemented weights


def test_randomised_response_meets_the_bound_of_a_single_step() -> None:
    """Flipped bits are right with chance 1 - gamma: one reading more would be a contradiction."""
    for epsilon in (0.5, 1.0, 2.0):
        gamma = 1 / (1 + math.exp(epsilon))  # the chance of a flip, and so of any error
        assert 0 == lower_bound(Step(), epsilon, gamma)
        assert 0.5 == lower_bound(Step(), epsilon, gamma * (1 - 1e-9))


def test_the_printed_set_up_claims_too_much() -> None:
    """gamma = 2/(3q) gives success of 1/3 alone; with it, D > ln(2q)/epsilon refutes a flip.

    The corrected set-up, gamma = 1/(3q), holds and is never above the bound here.
    """
    epsilon = 1.0
    gamma = 1 / (1 + math.e)
    assert 1 <= math.log(2 * 2 / (3 * gamma)) / epsilon  # printed: one reading moves any algorithm
    assert 0 == lower_bound(Step(), epsilon, gamma)  # yet a flip errs in no more than gamma
    for q in (1, 2, 10, 1000):
        corrected = 1 / (3 * q)
        assert math.log(2 * q) / epsilon <= math.log((1 - corrected) / corrected) / epsilon


def test_the_printed_third_corollary_forgets_a_half() -> None:
    """A constant, half of all weights, needs no data: no bound can be above it."""
    for c in (2.0, 3.0):
        constant = zeta(c) / 2
        printed = (
            np.arange(1.0, 60) ** -c
        ).sum()  # H_c at ln(1/gamma)/epsilon, of ln(1/gamma) = 59
        assert printed > constant
        assert lower_bound(Polynomial(c, reach=1 << 16), 1, 1e-20) < constant


@pytest.mark.parametrize("decay", DECAYS)
def test_no_system_beats_the_bounds(decay: Decay) -> None:
    for gamma in (0.01, 0.1):
        bound = lower_bound(decay, 1, gamma)
        with RandomizedResponse(1, decay=decay) as response:
            assert bound <= response.error_at(gamma, 1000)
            assert std_bound(decay, 1) <= response.noise_std(1000)
    if isinstance(decay, Exponential):
        for gamma in (1e-6, 0.01, 0.4):
            with ExponentialSum(decay.factor, 1) as tree:
                assert lower_bound(decay, 1, gamma) <= tree.error_at(gamma, 1000)


def test_the_bound_of_the_std_is_the_best_of_two_streams() -> None:
    for epsilon in (0.01, 1.0):
        found = max(d / 2 / math.sqrt(1 + math.exp(epsilon * d)) for d in range(1, 700))
        np.testing.assert_allclose(std_bound(Running(), epsilon), found, rtol=1e-12)
    with RandomizedResponse(6, decay=Step()) as response:  # large epsilon: the bound is near
        assert 1 < response.noise_std(1) / std_bound(Step(), 6) < 2.01


@pytest.mark.parametrize(("epsilon", "gamma"), [(0, 0.1), (1, 0), (1, 1), (-1, 0.1), (1, math.nan)])
def test_impossible_numbers_are_refused(epsilon: float, gamma: float) -> None:
    with pytest.raises(InvalidParameter):
        lower_bound(Running(), epsilon, gamma)
    with pytest.raises(InvalidParameter):
        lower_bound(Exponential(factor=0.5), 1e-9, 1e-9)
    with pytest.raises(InvalidParameter):
        std_bound(Running(), 1e-5)


@pytest.mark.parametrize("decay", [3, None, "running", Window])
def test_what_is_no_decay_is_refused(decay: Decay) -> None:
    with pytest.raises(InvalidParameter, match="Expected a decay"):
        lower_bound(decay, 1, 0.1)
    with pytest.raises(InvalidParameter, match="Expected a decay"):
        std_bound(decay, 1)
