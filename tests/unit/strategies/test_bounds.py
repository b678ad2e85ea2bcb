"""Lower bounds against nuclear norms of dense matrices, closed forms and published tables."""

import math

import numpy as np
import pytest
from scipy.linalg import toeplitz
from scipy.special import ellipk

from tidegauge.errors import InvalidParameter
from tidegauge.strategies.bounds import (
    asymptotic_set_bound,
    lower_bound,
    nuclear_bound,
    worst_step,
)
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


EVERY_DECAY = [
    Step(),
    Running(),
    Window(1),
    Window(5),
    Window(24),
    Window(1000),
    Exponential(half_life=5),
    Exponential(half_life=1000),
    Polynomial(1.5),
    Polynomial(0.5),
    Custom([1, -0.5, 0.25, 3]),
    Custom([0, 0, 1, 1]),
]


@pytest.mark.parametrize("decay", EVERY_DECAY, ids=lambda decay: decay.name)
@pytest.mark.parametrize("steps", [1, 2, 3, 31, 32, 33, 256])
def test_the_bound_of_a_stream_that_ends_is_its_nuclear_norm(decay, steps):
    assert nuclear_bound(decay, steps) == pytest.approx(nuclear(decay, steps), rel=1e-9)


@pytest.mark.parametrize("decay", EVERY_DECAY, ids=lambda decay: decay.name)
@pytest.mark.parametrize("steps", [257, 600])
def test_what_is_certified_for_a_longer_stream_lies_just_below_its_nuclear_norm(decay, steps):
    share = nuclear_bound(decay, steps) / nuclear(decay, steps)
    assert 0.975 < share <= 1 + 1e-9


@pytest.mark.parametrize(
    "decay", [Window(24), Polynomial(1.5), Exponential(half_life=24), Custom([2, 1])]
)
def test_the_bound_of_a_long_stream_nears_the_limit_from_below(decay):
    bounds = [nuclear_bound(decay, steps) for steps in (300, 3000, 30_000, 1 << 30)]
    assert bounds == sorted(bounds)
    assert bounds[-1] == pytest.approx(lower_bound(decay), rel=3e-4)
    assert bounds[-1] <= lower_bound(decay) * (1 + 1e-6)


def test_a_window_longer_than_all_blocks_is_bounded_by_running_sums():
    window = Window(10**6)
    assert nuclear_bound(window, 10**9) == pytest.approx(lower_bound(Running(), 10**6), rel=1e-9)


@pytest.mark.parametrize("steps", [0, -1, 1.5, "9", True, 1 << 39])
def test_a_stream_has_a_number_of_steps(steps):
    with pytest.raises(InvalidParameter, match="length of the stream"):
        nuclear_bound(Running(), steps)


HOURS, DAY = Window(24), Exponential(half_life=24)
TEN = [Running(), *map(Window, (7, 24, 168, 1440, 10080)), DAY, Exponential(half_life=168)]
TEN += [Polynomial(0.5), Polynomial(1)]


@pytest.mark.parametrize(
    ("views", "horizon", "bound"),
    [
        ([Running(), HOURS], 8760, 1.144),
        ([Running(), HOURS, Window(168), DAY], 8760, 1.164),
        ([Running(), Window(60), Window(1440), Window(10080)], 525_600, 1.209),
        ([Running(), Window(7), Window(30)], 365, 1.135),
        ([Running(), Window(7), Window(28), Window(91), Window(365)], 3650, 1.196),
        ([HOURS, Window(168)], None, 1.089),
        ([Window(7), Window(43200)], None, 1.210),
        ([Running(), Exponential(factor=0.99)], 1 << 20, 1.153),
        ([Exponential(half_life=h) for h in (1, 24, 168)], None, 1.137),
        ([Window(7), Polynomial(1.5)], None, 1.059),
        (TEN, 525_600, 1.296),
    ],
)
def test_bounds_of_sets_are_the_published_ones(views, horizon, bound):
    found, shares = asymptotic_set_bound(views, horizon)
    assert found == pytest.approx(bound, abs=6e-4)
    assert sum(shares) == pytest.approx(1)
    assert min(shares) >= 0


@pytest.mark.parametrize("lengths", [(8, 32), (7,), (24,)])
def test_the_bound_of_a_set_is_near_the_nuclear_norm_of_the_stacked_matrix(lengths):
    steps = 512
    views = [Running(), *map(Window, lengths)]
    found, shares = asymptotic_set_bound(views, steps)
    gram = np.zeros((steps, steps))
    for view, share in zip(views, shares, strict=True):
        g = view.weights(steps) / lower_bound(view, steps)
        matrix = toeplitz(g, np.r_[g[0], np.zeros(steps - 1)])
        gram += share * matrix.T @ matrix
    exact = np.sqrt(np.maximum(np.linalg.eigvalsh(gram), 0)).sum() / steps
    assert found == pytest.approx(exact, rel=0.03)


def test_no_fit_and_no_other_shares_pass_the_bound_of_a_set():
    from tidegauge.strategies.blt import fit

    views = [HOURS, Window(168), Exponential(half_life=100)]
    bound, _ = asymptotic_set_bound(views)
    assert 1 < bound < fit(views).worst < 1.1 * bound


@pytest.mark.parametrize("view", EVERY_DECAY, ids=lambda decay: decay.name)
def test_the_bound_of_one_view_is_its_own_and_a_view_twice_changes_nothing(view):
    assert asymptotic_set_bound([view], 1 << 16)[0] == pytest.approx(1, rel=2e-3)
    assert asymptotic_set_bound([view, view], 1 << 16)[0] == pytest.approx(1, rel=2e-3)


def test_a_view_of_little_importance_does_not_bind():
    views = [Running(), HOURS]
    bound, shares = asymptotic_set_bound(views, 8760, importance=[1, 1e-3])
    assert bound == pytest.approx(1, rel=1e-3)
    assert shares[1] < 0.01
    doubled, _ = asymptotic_set_bound(views, 8760, importance=[2, 2])
    assert doubled == pytest.approx(2 * asymptotic_set_bound(views, 8760)[0], rel=1e-9)


def test_sets_that_have_no_bound_are_refused():
    with pytest.raises(InvalidParameter, match="at least one view"):
        asymptotic_set_bound([])
    with pytest.raises(InvalidParameter, match="positive importance"):
        asymptotic_set_bound([HOURS], importance=[0])
    with pytest.raises(InvalidParameter, match="number of steps"):
        asymptotic_set_bound([Running(), HOURS])


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
