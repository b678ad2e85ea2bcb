"""Strategies of streams with an end: published figures, odd lengths, and what the planner takes."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import toeplitz
from scipy.special import binom
from twins.cases import ONE

from tidegauge.errors import InvalidParameter, UnsupportedCombination
from tidegauge.mechanisms.design import compare
from tidegauge.mechanisms.request import request_of
from tidegauge.privacy.guarantee import GaussianDP, PureDP
from tidegauge.strategies.blt import Blt, Comb, NormalisedBlt, fit, fit_normalised
from tidegauge.strategies.blt.patterns import column_gain_squared
from tidegauge.strategies.bounds import lower_bound, nuclear_bound
from tidegauge.strategies.decay import Custom, Exponential, Polynomial, Running, Step, Window
from tidegauge.strategies.dense import DenseToeplitz, square_root, square_root_strategy
from tidegauge.strategies.identity import Identity
from tidegauge.strategies.strategy import Norm

ALL = [
    Running(),
    Window(5),
    Window(1),
    Exponential(half_life=5),
    Polynomial(0.5),
    Custom([2, 1, 0.5]),
    Custom([1, -0.5, 0.25, 3]),
    Custom([0, 0, 1, 1]),
    Custom([1, 2, 1]),
]


# --- roots


def test_the_root_of_a_running_sum_is_the_central_binomials():
    k = np.arange(200)
    np.testing.assert_allclose(square_root(Running(), 200), binom(k - 0.5, k), rtol=1e-12)


@pytest.mark.parametrize("decay", [d for d in ALL if not isinstance(d, Custom)])
def test_a_root_times_itself_is_the_decay(decay):
    c = square_root(decay, 100)
    np.testing.assert_allclose(np.convolve(c, c)[:100], decay.weights(100), atol=1e-12)


@pytest.mark.parametrize("decay", [Custom([2, 1, 0.5]), Custom([0.5, 0, -2]), Custom([0, 3, 1])])
def test_the_outer_root_has_the_decays_modulus_and_a_stable_inverse(decay):
    c = square_root(decay, 2000)
    modulus = np.abs(np.fft.rfft(c, 1 << 14)) ** 2
    np.testing.assert_allclose(modulus, np.abs(np.fft.rfft(decay.taps, 1 << 14)), rtol=1e-6)
    inverse = square_root_strategy(decay, 2000, 30)
    assert (
        inverse.variance_gain(Step(), np.array([2000]))[0]
        < 4 * inverse.variance_gain(Step(), np.array([20]))[0]
    )


def test_the_outer_root_of_weights_without_zeros_inside_is_their_root():
    np.testing.assert_allclose(
        square_root(Custom([4, 4, 1]), 5), [2, 1, 0, 0, 0], atol=1e-12
    )  # (2 + z)^2
    geometric = Custom(0.9 ** np.arange(2000))
    expected = square_root(Exponential(factor=0.9), 50)
    np.testing.assert_allclose(square_root(geometric, 50), expected, rtol=1e-9)


@pytest.mark.parametrize("steps", [0, -1, 4097, 1.5, True])
def test_a_root_has_a_short_stream(steps):
    with pytest.raises(InvalidParameter, match="Each step costs as much"):
        square_root(Running(), steps)


# --- dense strategies


@pytest.mark.parametrize(
    ("exponent", "largest", "mean"), [(8, 2.831, 2.669), (10, 3.273, 3.110), (12, 3.714, 3.551)]
)
def test_dense_roots_of_running_sums_have_the_published_errors(exponent, largest, mean):
    dense = square_root_strategy(Running(), 1 << exponent, 24)
    assert dense.max_error(Running(), 1 << exponent) == pytest.approx(largest, abs=6e-4)
    measured = math.sqrt(dense.mean_squared_error(Running(), 1 << exponent))
    assert measured == pytest.approx(mean, abs=6e-4)


@pytest.mark.parametrize(
    ("decay", "published"),
    [
        (Window(32), 2.394),
        (Window(256), 3.237),
        (Exponential(factor=0.9), 1.452),
        (Exponential(factor=0.99), 2.137),
        (Polynomial(1), 1.108),
        (Polynomial(1.5), 1.0431),
        (Polynomial(2), 1.0191),
        (Custom([1, -0.5, 0.25, 3]), None),
        (Custom([0, 0, 1, 1]), None),
    ],
)
def test_dense_roots_reach_the_bound_of_every_decay(decay, published):
    steps = 4096
    std = square_root_strategy(decay, steps, 24).max_error(decay, steps)
    assert std == pytest.approx(lower_bound(decay), rel=2e-3)
    assert std >= nuclear_bound(decay, steps) * (1 - 1e-9)
    if published:
        assert std == pytest.approx(published, abs=2e-3)


@pytest.mark.parametrize("decay", ALL)
@pytest.mark.parametrize("steps", [1, 2, 3, 15, 16, 17])
def test_no_dense_root_passes_the_bound_of_its_stream(decay, steps):
    bound = nuclear_bound(decay, steps)
    assert square_root_strategy(decay, steps, 24).max_error(decay, steps) >= bound * (1 - 1e-9)


@pytest.mark.parametrize(
    ("bits", "norm"), [(8, 1.3e-4), (12, 2.0e-5), (16, 9e-7), (20, 3e-8), (30, 5e-11)]
)
def test_integers_of_few_bits_are_as_good_as_the_root(bits, norm):
    ideal = math.sqrt(float((square_root(Running(), 4096) ** 2).sum()))
    integers = square_root_strategy(Running(), 4096, bits).coefficients
    size = math.sqrt(sum(c * c for c in integers)) / 2**bits
    assert abs(size / ideal - 1) <= 1.5 * norm


@pytest.mark.parametrize("decay", [Running(), Window(24), Exponential(half_life=24)])
def test_fitted_filters_are_judged_as_their_dense_twins_are(decay):
    steps = 1024
    fitted = fit([decay], steps)
    blt = Blt(fitted.gaps, fitted.weights, 20)
    c = np.rint(blt.coefficients(steps) * 2**40).astype(int)
    dense = DenseToeplitz(tuple(c.tolist()), 40)
    times = np.arange(1, steps + 1)
    np.testing.assert_allclose(
        blt.variance_gain(decay, times) * 2.0**40,
        dense.variance_gain(decay, times) * 2.0**80,
        rtol=1e-6,
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"coefficients": ()}, "number of coefficients"),
        ({"coefficients": (0, 1)}, "newest step"),
        ({"coefficients": (-1,)}, "newest step"),
        ({"coefficients": (1, 0.5)}, "one lag"),
        ({"coefficients": (1, 1 << 46)}, "one lag"),
        ({"coefficients": "12"}, "list of integers"),
        ({"coefficients": 7}, "list of integers"),
        ({"coefficients": (1,) * 4097}, "number of coefficients"),
        ({"lattice_bits": 41}, "other grains"),
        ({"lattice_bits": -21}, "other grains"),
    ],
)
def test_impossible_dense_strategies_are_refused(changes, message):
    with pytest.raises(InvalidParameter, match=message):
        DenseToeplitz(**{"coefficients": (4, 2), "lattice_bits": 2} | changes)


def test_pure_epsilon_is_refused_by_all_filters():
    for strategy in (square_root_strategy(Running(), 4, 10), fit_normalised(4)):
        with pytest.raises(UnsupportedCombination, match="L2 norm"):
            strategy.sensitivity(Norm.L1, ONE)


# --- column-normalised filters


@pytest.mark.parametrize(
    ("steps", "most"),
    [(1, 1.0), (2, 1.06), (3, 1.08), (255, 1.075), (256, 1.075), (257, 1.075), (4096, 1.06)],
)
def test_normalised_filters_come_as_near_the_bound_as_promised(steps, most):
    best = fit_normalised(steps)
    ratio = best.max_error(Running(), steps) / lower_bound(Running(), steps)
    assert 1 - 1e-9 <= ratio <= most + 1e-6


def test_normalised_filters_equal_the_published_table():
    for steps, largest, mean in ((256, 2.645, 2.557), (1024, 3.081, 2.992)):
        best = fit_normalised(steps)
        assert best.max_error(Running(), steps) == pytest.approx(largest, rel=0.005)
        measured = math.sqrt(best.mean_squared_error(Running(), steps))
        assert measured == pytest.approx(mean, rel=0.005)


def test_every_column_is_nearly_as_long_as_the_longest():
    best = replace(fit_normalised(300), lattice_bits=40)
    norms = np.sqrt((best.encoder_matrix(300) ** 2).sum(axis=0))
    assert norms.max() <= math.sqrt(best.largest_column_squared) <= 1
    assert norms.min() > 0.996


def test_the_noise_of_a_simulated_stream_is_as_predicted():
    steps, runs = 256, 4000
    best = fit_normalised(steps)
    noise = np.random.Generator(np.random.PCG64(4)).normal(0, 2.0**30, (steps, runs))
    out = np.empty((1, steps, runs))
    best.decode(best.init_decoder([Running()], runs), [Running()], noise.astype(int), 0, out)
    predicted = best.noise_std(Running(), np.arange(1, steps + 1), 2.0**30)
    np.testing.assert_allclose(out[0].std(axis=1), predicted, rtol=0.06)
    assert float((out[0].var(axis=1) / predicted**2).mean()) == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("steps", [1, 2, 3, 7, 50])
def test_the_norm_of_a_cut_column_is_rounded_up_by_a_hair(steps):
    fitted = fit([Running()], 1000)
    c = Blt(fitted.gaps, fitted.weights, 20).coefficients(steps)
    bound = float(column_gain_squared(fitted.gaps, fitted.weights, steps))
    assert bound == pytest.approx(float(c @ c), rel=1e-13)
    one = column_gain_squared((1 << 63,), (1 << 63,), steps)  # (4 - 4^(1 - steps)) / 3
    exact = (4 - 4 ** (1 - steps)) / 3
    assert 0 <= float(one) - exact <= 1e-15 * 2


@pytest.mark.parametrize("end", [0, -1, (1 << 16) + 1, 2.5, None, True])
def test_a_normalised_filter_has_a_length(end):
    with pytest.raises(InvalidParameter, match="Columns are normalised"):
        fit_normalised(end)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lengths": ()}, "as many lengths as multipliers"),
        ({"lengths": (2, 2)}, "as many lengths as multipliers"),
        ({"lengths": (0,)}, "share a multiplier"),
        ({"lengths": ((1 << 16) + 1,)}, "share a multiplier"),
        ({"lengths": (1 << 16, 1), "multipliers": (5, 5)}, "steps of the stream"),
        ({"multipliers": (0,)}, "multiplied by it"),
        ({"multipliers": ((1 << 20) + 1,)}, "multiplied by it"),
        ({"lattice_bits": 41}, "other grains"),
        ({"lattice_bits": -1}, "other grains"),
        ({"gaps": (0,)}, "gaps"),
    ],
)
def test_impossible_normalised_filters_are_refused(changes, message):
    fields = {"gaps": (1 << 62,), "weights": (1 << 60,), "lengths": (3,), "multipliers": (9,)}
    with pytest.raises(InvalidParameter, match=message):
        NormalisedBlt(**fields | {"lattice_bits": 2} | changes)


def test_totals_beyond_the_largest_are_clamped_before_they_are_multiplied():
    best = replace(fit_normalised(5), lattice_bits=40)
    largest = np.full((5, 1), best.largest_total)
    beyond = np.full((5, 1), (1 << 63) - 1)
    one, other = (best.encode(best.init_encoder(1), x, 0) for x in (largest, beyond))
    assert one.tolist() == other.tolist()
    assert abs(other).max() <= 1 << 62


# --- what the planner takes


def planned(views, end, **changes):
    request = request_of(
        **{"views": views, "unit": "event", "guarantee": GaussianDP(0.5), "end": end} | changes
    )
    chosen = compare([request])[0].chosen
    return chosen.plan, chosen.worst_ratio


@pytest.mark.parametrize("end", [2, 3, 255, 256, 257, 4095, 4097, 1 << 16])
def test_a_running_sum_with_an_end_is_normalised(end):
    plan, _ = planned([Running()], end)
    assert type(plan.strategy) is NormalisedBlt
    assert plan.last_step == end


def test_a_single_step_is_measured_as_it_is():
    plan, ratio = planned([Running()], 1)
    assert type(plan.strategy) is Identity
    assert ratio == pytest.approx(1, rel=1e-6)


@pytest.mark.parametrize("end", [(1 << 16) + 1, 10**9])
def test_a_running_sum_with_a_far_end_holds_for_ever(end):
    plan, _ = planned([Running()], end)
    assert type(plan.strategy) is Blt


def test_a_running_sum_that_may_end_later_than_designed_for_is_still_held_to_its_end():
    plan, _ = planned([Running()], 1000, horizon=100)
    assert plan.last_step == 1000


@pytest.mark.parametrize("end", [1, 2, 3, 31, 32, 33, 100])
@pytest.mark.parametrize("view", [Window(1), Window(7), Window(1000), Custom([1, -0.5, 0.25, 3])])
def test_no_plan_of_a_short_stream_claims_to_pass_its_bound(view, end):
    plan, ratio = planned([view], end)
    assert ratio >= 1 - 1e-6
    assert plan.last_step is None or plan.last_step >= end


def test_weights_that_no_filter_suits_get_a_dense_root():
    swing = Custom([1, -0.5, 0.25, 3])
    plan, ratio = planned([swing], 300)
    assert type(plan.strategy) is DenseToeplitz
    assert ratio < 1.02
    longer, worse = planned([swing], 5000)
    assert type(longer.strategy) is Blt
    assert worse > 1.01 * ratio
    pure, _ = planned([swing], 300, guarantee=PureDP(1))
    assert type(pure.strategy) is not DenseToeplitz


def test_two_views_share_a_filter_and_ids_apart_their_pattern():
    plan, _ = planned([Running(), Window(5)], 300)
    assert type(plan.strategy) in (Blt, Comb)


def test_the_matrix_of_a_dense_strategy_is_its_integers():
    dense = DenseToeplitz((5, -2, 1), 1)
    expected = toeplitz([2.5, -1, 0.5], [2.5, 0, 0])
    np.testing.assert_allclose(dense.encoder_matrix(3), expected, rtol=1e-15)
