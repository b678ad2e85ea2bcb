"""Lower bounds against nuclear norms of dense matrices, closed forms and published tables."""

import math

import numpy as np
import pytest
from scipy.linalg import toeplitz
from scipy.special import ellipk

from tidegauge.errors import InvalidParameter
from tidegauge.strategies.bounds import lower_bound, worst_step
from tidegauge.strategies.decay import (
    Custom,
    Difference,
    Exponential,
    Polynomial,
    Running,
    Step,
    Window,
)


def nuclear(decay, steps):
    column = decay.weights(steps)
    matrix = toeplitz(column, np.r_[column[0], np.zeros(steps - 1)])
    return np.linalg.svd(matrix, compute_uv=False).sum() / steps


@pytest.mark.parametrize("steps", [1, 2, 3, 31, 32, 33, 400])
def test_the_bound_of_a_running_sum_is_its_nuclear_norm(steps):
    assert lower_bound(Running(), steps) == pytest.approx(nuclear(Running(), steps), rel=1e-12)


@pytest.mark.parametrize("half_life", [250, 1e4, 1e9])
def test_the_bound_of_a_half_life_beyond_the_horizon_is_its_nuclear_norm(half_life):
    decay = Exponential(half_life=half_life)
    assert lower_bound(decay, 300) == pytest.approx(nuclear(decay, 300), rel=1e-9)


def test_a_window_as_long_as_the_stream_is_a_running_sum():
    assert lower_bound(Window(100), 100) == lower_bound(Running(), 100)
    assert lower_bound(Window(1 << 40), 100) == lower_bound(Running(), 100)
    assert lower_bound(Window(99), 100) == lower_bound(Window(99))


@pytest.mark.parametrize(
    ("decay", "nearness"),
    [
        (Window(4), 0.007),
        (Exponential(half_life=5), 0.006),
        (Polynomial(1.5), 2e-3),
        (Polynomial(2), 2e-3),
        (Custom([1, -0.5, 0.25, 3]), 0.01),
        (Custom([0, 0, 1, 1]), 0.01),
        (Difference(Window(4), 4), 0.02),
        (Difference(Window(5), 2), 0.02),
        (Difference(Step(), 3), 0.01),
        (Difference(Exponential(half_life=5), 3), 0.01),
        (Difference(Polynomial(1.5), 2), 5e-3),
        (Exponential(half_life=5, average=True), 0.006),
    ],
)
def test_a_bound_for_ever_is_the_limit_of_nuclear_norms(decay, nearness):
    short, long = nuclear(decay, 128), nuclear(decay, 512)
    bound = lower_bound(decay)
    assert long == pytest.approx(bound, rel=nearness)
    assert abs(long - bound) < 0.5 * abs(short - bound)


@pytest.mark.parametrize(
    ("exponent", "bound"), [(8, 2.471), (12, 3.350), (14, 3.791), (16, 4.232), (20, 5.115)]
)
def test_running_bounds_are_the_published_ones(exponent, bound):
    assert lower_bound(Running(), 1 << exponent) == pytest.approx(bound, abs=6e-4)


@pytest.mark.parametrize(("steps", "bound"), [(32, 2.394), (256, 3.237), (1024, 3.799)])
def test_window_bounds_are_the_published_ones(steps, bound):
    assert lower_bound(Window(steps)) == pytest.approx(bound, abs=6e-4)


@pytest.mark.parametrize("exponent", [21, 24, 30, 38])
def test_a_long_running_sum_has_its_asymptotic_bound(exponent):
    steps = 1 << exponent
    asymptotic = (math.log(8 * steps + 4) + np.euler_gamma - math.log(math.pi / 2)) / math.pi
    assert lower_bound(Running(), steps) == pytest.approx(asymptotic, rel=3e-7)


def test_the_sum_over_modes_and_its_integral_agree():
    steps = 100_000
    j = np.arange(1, steps + 1)
    every_mode = (0.5 / np.sin((2 * j - 1) * np.pi / (4 * steps + 2))).sum() / steps
    assert lower_bound(Running(), steps) == pytest.approx(every_mode, rel=1e-9)


@pytest.mark.parametrize("gap", [0.9, 0.5, 0.1, 1e-3, 1e-6])
def test_the_bound_of_an_exponential_is_an_elliptic_integral(gap):
    decay = Exponential(factor=1 - gap)
    expected = 2 / math.pi * ellipk((1 - decay.gap) ** 2)
    assert lower_bound(decay) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("steps", [1, 2, 7, 24, 168, 1000])
def test_a_custom_of_ones_has_the_bound_of_the_window(steps):
    assert lower_bound(Custom(np.ones(steps))) == pytest.approx(
        lower_bound(Window(steps)), rel=2e-6
    )


def test_the_bound_scales_with_the_weights_and_ignores_delay():
    bound = lower_bound(Custom([3, 1, 2]))
    assert lower_bound(Custom([6, 2, 4])) == pytest.approx(2 * bound, rel=1e-12)
    assert lower_bound(Custom([0, 0, 3, 1, 2])) == pytest.approx(bound, rel=1e-9)


def test_a_step_can_be_no_better_than_its_noise():
    assert lower_bound(Step()) == 1.0
    assert lower_bound(Window(1)) == pytest.approx(1.0, rel=1e-9)


def test_views_are_judged_where_they_are_worst():
    assert worst_step(Running(), 10) == 10
    assert worst_step(Window(10), 10) == 10
    assert worst_step(Window(9), 10) is None
    assert worst_step(Exponential(half_life=100), 10) == 10
    assert worst_step(Exponential(half_life=1), 10) is None
    assert worst_step(Polynomial(1), 10) is None
    assert worst_step(Window(9), None) is None


@pytest.mark.parametrize("horizon", [None, 0, -1, 1.5, "8760", True])
def test_a_running_sum_needs_a_horizon(horizon):
    with pytest.raises(InvalidParameter, match="number of steps"):
        lower_bound(Running(), horizon)


@pytest.mark.parametrize(
    ("steps", "lag"),
    [(1, 1), (7, 7), (7, 3), (24, 168), (168, 24), (168, 168), (100, 113), (2, 199), (2, 201)],
)
def test_the_change_of_a_window_has_the_bound_of_its_weights(steps, lag):
    taps = Difference(Window(steps), lag).weights(steps + lag)
    bound = lower_bound(Difference(Window(steps), lag))
    assert bound == pytest.approx(lower_bound(Custom(taps)), rel=1e-5)


@pytest.mark.parametrize("lag", [1, 2, 100, 5001])
def test_the_change_of_a_decay_has_the_bound_of_its_weights(lag):
    for view in (Exponential(half_life=200), Polynomial(2, reach=1000)):
        taps = Difference(view, lag).weights(12_000)
        bound = lower_bound(Difference(view, lag))
        assert bound == pytest.approx(lower_bound(Custom(taps)), rel=1e-4)


def test_a_long_lag_costs_four_over_pi():
    for view in (Window(24), Exponential(half_life=24), Polynomial(2)):
        ratio = lower_bound(Difference(view, 1 << 30)) / lower_bound(view)
        assert ratio == pytest.approx(4 / math.pi, rel=1e-4)


def test_an_average_has_the_bound_of_its_total_times_its_first_weight():
    for horizon in (None, 10):
        total, average = Exponential(half_life=99), Exponential(half_life=99, average=True)
        ratio = lower_bound(average, horizon) / lower_bound(total, horizon)
        assert ratio == pytest.approx(total.gap, rel=1e-12)


@pytest.mark.parametrize(
    "decay",
    [
        Running(),
        Window(12),
        Window(13),
        Window(3),
        Step(),
        Exponential(half_life=9),
        Exponential(half_life=9, average=True),
        Polynomial(1, reach=256),
        Custom([0, 1, 2, -1, 3]),
        Difference(Window(12), 12),
        Difference(Window(12), 5),
        Difference(Exponential(half_life=9), 8),
        Difference(Exponential(half_life=9), 7),
        Difference(Step(), 3),
    ],
    ids=lambda decay: decay.name,
)
@pytest.mark.parametrize("every", [2, 4, 5])
def test_no_release_of_every_nth_step_has_less_noise(decay, every):
    """The rows that are read, and the columns of one residue: a part of the matrix."""
    steps = 120 * every
    weights = decay.weights(steps)
    best = 0.0
    for first in range(every):
        column = weights[first::every]
        matrix = toeplitz(column, np.r_[column[0], np.zeros(len(column) - 1)])
        best = max(best, np.linalg.svd(matrix, compute_uv=False).sum() / len(column))
    bound = lower_bound(decay, steps, every=every)
    assert bound <= best * 1.04  # an endless stream has a little more than 120 readings
    assert bound <= lower_bound(decay, steps) * (1 + 1e-9)


def test_a_day_read_once_a_day_needs_the_noise_of_one_step():
    assert lower_bound(Window(24), every=24) == pytest.approx(1, rel=1e-9)
    assert lower_bound(Window(168), every=24) == lower_bound(Window(7))
    assert lower_bound(Running(), 8760, every=24) == lower_bound(Running(), 365)
    change = lower_bound(Difference(Window(168), 168), every=168)
    assert change == pytest.approx(4 / math.pi, rel=1e-4)
