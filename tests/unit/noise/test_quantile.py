"""Half-widths against exact convolutions of probabilities, and against a million draws."""

import math
from statistics import NormalDist

import numpy as np
import pytest

from tidegauge.errors import InvalidParameter
from tidegauge.noise import quantile
from tidegauge.noise.quantile import gaussian_half_width, laplace_half_width

LEVELS = [0.5, 0.9, 0.95, 0.99, 0.9999, 1 - 1e-8]


def coverages(scale, terms, unit):
    """P(|S| <= q) for q = 0, 1, 2, ... on the lattice of 1 / unit, from its probabilities.

    ``terms`` holds (numerator over unit, how many draws). The convolution is exact to 1e-15; the
    draws reach 45 scales, beyond which lies 1e-19.
    """
    p = math.exp(-1 / scale)
    reach = math.ceil(45 * scale) + 5
    law = (1 - p) / (1 + p) * p ** np.abs(np.arange(-reach, reach + 1))
    middle = sum(reach * numerator * number for numerator, number in terms)
    size = 1 << (2 * middle + 1).bit_length()
    transform = np.ones(size // 2 + 1, dtype=complex)
    for numerator, number in terms:
        spaced = np.zeros((law.size - 1) * numerator + 1)
        spaced[::numerator] = law
        transform *= np.fft.rfft(spaced, size) ** number
    total = np.fft.irfft(transform, size)[: 2 * middle + 1]
    return total[middle] + np.concatenate([[0.0], 2 * np.cumsum(total[middle + 1 :])])


def exact_half_width(scale, terms, unit, level):
    return int(np.argmax(coverages(scale, terms, unit) >= level)) / unit


def on_lattice_agrees(scale, number):
    one, many = np.array([1.0]), np.array([number])
    return all(
        exact_half_width(scale, [(1, number)], 1, level)
        == laplace_half_width(scale, one, many, 1 - level)
        for level in LEVELS
    )


@pytest.mark.parametrize("scale", [0.1, 0.3, 1.0, 3.0, 20.0])
@pytest.mark.parametrize("number", [1, 2, 5, 12])
def test_equal_weights_give_the_least_lattice_point_that_covers(scale, number):
    assert on_lattice_agrees(scale, number)


def test_signs_repetitions_and_sizes_of_equal_weights_do_not_matter():
    expected = exact_half_width(2.0, [(1, 6)], 1, 0.95) * 0.25
    weights, counts = np.array([0.25, -0.25, 0.25, 0.0]), np.array([3, 2, 1, 9])
    assert expected == laplace_half_width(2.0, weights, counts, 0.05)


@pytest.mark.parametrize("scale", [0.5, 1.0, 3.0, 20.0, 29.9, 30.0, 45.0, 100.0])
@pytest.mark.parametrize(
    ("terms", "unit"),
    [([(2, 1), (1, 1)], 2), ([(3, 1), (1, 2)], 3), ([(2, 3), (1, 1)], 2), ([(5, 1), (1, 4)], 5)],
)
def test_unequal_weights_always_cover_and_are_hardly_too_wide(scale, terms, unit):
    weights = np.array([numerator / unit for numerator, _ in terms])
    counts = np.array([number for _, number in terms])
    exact = coverages(scale, terms, unit)
    for level in LEVELS:
        found = laplace_half_width(scale, weights, counts, 1 - level)
        covered = exact[math.floor(found * unit)]
        assert covered >= level - 1e-5 * (1 - level)
        least = int(np.argmax(exact >= level)) / unit
        if scale >= 30:
            assert found <= least + weights[0]
        elif level >= 0.9:
            assert found <= least * 1.02


@pytest.mark.parametrize("scale", [30.0, 1e3, 1e6, 1e9])
def test_large_scales_agree_with_the_continuous_law(scale):
    # The difference of two gamma variables: a sum of n Laplace draws, by its own closed form.
    for number in (2, 3):
        q = laplace_half_width(scale, np.array([1.0]), np.array([number]), 0.05) / scale
        x = np.linspace(0, 60, 600_001)
        shape = {2: 1 + x, 3: 3 + 3 * x + x**2}[number] * np.exp(-x)
        cover = np.cumsum(shape) / np.sum(shape)
        expected = x[np.argmax(cover >= 0.95)]
        assert q == pytest.approx(expected, rel=2e-4 + 1 / scale)


@pytest.mark.parametrize("scale", [1 / 512, 0.01, 2.0**30, 2.0**50])
@pytest.mark.parametrize("level", [1e-6, 0.5, 0.95, 1 - 1e-9])
def test_extreme_scales_give_finite_widths_in_proportion(scale, level):
    weights, counts = np.array([1.0, -1.0, 0.3]), np.array([2, 1, 4])
    for terms in (slice(0, 1), slice(0, 2), slice(0, 3)):
        q = laplace_half_width(scale, weights[terms], counts[terms], 1 - level)
        assert 0 <= q < math.inf
        if scale > 1:
            half = laplace_half_width(scale / 2, weights[terms], counts[terms], 1 - level)
            assert q == pytest.approx(2 * half, rel=1e-6, abs=2)


def test_many_terms_become_normal():
    q = laplace_half_width(1e4, np.array([1.0]), np.array([10**6]), 0.05)
    expected = NormalDist().inv_cdf(0.975) * math.sqrt(2e6) * 1e4
    assert q == pytest.approx(expected, rel=1e-5)


def test_many_distinct_weights_keep_their_fourth_cumulant():
    # Cornish and Fisher's expansion, whose next term is below 1e-6 here
    factor, scale = 0.999, 1e4
    weights = factor ** np.arange(27_600)
    q = laplace_half_width(scale, weights, np.ones(weights.size, dtype=np.int64), 0.05)
    variance = 2 * scale**2 * np.sum(weights**2)
    excess = 12 * scale**4 * np.sum(weights**4) / variance**2
    z = NormalDist().inv_cdf(0.975)
    expected = math.sqrt(variance) * (z + excess * (z**3 - 3 * z) / 24)
    assert q == pytest.approx(expected, rel=2e-5)
    assert abs(excess * (z**3 - 3 * z) / 24 / z) > 5e-5  # the test can see the fourth cumulant


@pytest.mark.statistical
@pytest.mark.parametrize(("scale", "factor"), [(0.7, 0.6), (2.0, 0.8), (50.0, 0.5)])
def test_the_coverage_of_decayed_noise_is_the_level(scale, factor):
    draws = 300_000
    source = np.random.default_rng(20240511)
    weights = factor ** np.arange(math.ceil(math.log(1e-7) / math.log(factor)))
    p = 1 - math.exp(-1 / scale)
    total = np.zeros(draws)
    for weight in weights:
        total += weight * (source.geometric(p, draws) - source.geometric(p, draws))
    q = laplace_half_width(scale, weights, np.ones(weights.size, dtype=np.int64), 0.05)
    error = 4 * math.sqrt(0.95 * 0.05 / draws)
    assert 0.95 - error <= np.mean(np.abs(total) <= q) <= 0.956 + error
    assert np.mean(np.abs(total) <= 0.97 * q) < 0.95


@pytest.mark.parametrize("level", LEVELS)
def test_gaussian_half_widths_have_the_probability_of_the_level(level):
    std = np.array([[0.5, 1.0, 1e6]])
    half = gaussian_half_width(std, 1 - level)
    assert std.shape == half.shape
    for one, scale in zip(half.flat, std.flat, strict=True):
        outside = math.erfc(one / (scale * math.sqrt(2)))
        assert 1 - level == pytest.approx(outside, rel=1e-6)


def test_no_noise_has_no_width():
    nothing = np.zeros(0), np.zeros(0, dtype=np.int64)
    assert laplace_half_width(1.0, *nothing, 0.05) == 0.0
    assert laplace_half_width(1.0, np.zeros(3), np.ones(3, dtype=np.int64), 0.05) == 0.0
    assert gaussian_half_width(np.zeros(1), 0.05) == 0.0


@pytest.mark.parametrize("tail", [0, 1, -0.5, 1.5, float("nan")])
def test_impossible_tails_are_refused(tail):
    one = np.ones(1), np.ones(1, dtype=np.int64)
    with pytest.raises(InvalidParameter, match="tail"):
        laplace_half_width(1.0, *one, tail)
    with pytest.raises(InvalidParameter, match="tail"):
        gaussian_half_width(one[0], tail)


def test_gaussian_half_widths_of_several_tails_stand_beside_their_stds():
    tails = np.array([0.05, 1e-15, 0.05])
    found = gaussian_half_width(np.array([1.0, 1.0, 2.0]), tails)
    outside = [
        math.erfc(half / std / math.sqrt(2)) for half, std in zip(found, (1, 1, 2), strict=True)
    ]
    assert outside == pytest.approx([0.05, 1e-15, 0.05], rel=1e-6)


@pytest.mark.parametrize("tail", [9e-10, 1e-13, 1e-20, 1e-40])
def test_far_tails_are_bounded_from_above_and_not_by_much(tail):
    # the sum of two draws: P(|S| > q) in closed form, summed from the far end
    for scale in (1.0, 7.0):
        p = math.exp(-1 / scale)
        k = np.arange(0, math.ceil(130 * scale))
        law = ((1 - p) / (1 + p)) ** 2 * p**k * (k + (1 + p * p) / (1 - p * p))
        outside = 2 * np.cumsum(law[::-1])[::-1]  # P(|S| >= k)
        least = int(np.argmax(outside[1:] <= tail))
        found = laplace_half_width(scale, np.ones(1), np.array([2]), tail)
        assert least <= found < least * 1.25


def test_a_normal_approximation_would_not_pass(monkeypatch):
    def normal(scale, number, tail):
        std = math.sqrt(quantile._variance(scale) * number)
        return math.ceil(-NormalDist().inv_cdf(tail / 2) * std)

    monkeypatch.setattr(quantile, "_on_lattice", normal)
    assert not on_lattice_agrees(3.0, 2)


def test_forgetting_what_the_smoothing_moved_would_not_cover(monkeypatch):
    exact = coverages(1.0, [(2, 1), (1, 1)], 2)
    level = float(exact[5]) + 1e-6  # a half-width of 2.5 is not enough, 3 is
    both = np.array([1.0, 0.5]), np.array([1, 1])
    assert laplace_half_width(1.0, *both, 1 - level) >= 3
    honest = quantile._smoothed
    monkeypatch.setattr(quantile, "_smoothed", lambda *given: (honest(*given)[0], 0.0))
    assert exact[math.floor(laplace_half_width(1.0, *both, 1 - level) * 2)] < level


@pytest.mark.parametrize(
    ("scale", "small", "level"), [(1.0, 2e-5, 0.99), (0.5, 3e-5, 0.95), (1.0, 1e-7, 0.99)]
)
def test_a_term_too_small_to_count_still_cannot_lower_the_coverage(scale, small, level):
    # the half-width without it is a lattice point: any further noise pushes half of that atom out
    width = laplace_half_width(scale, np.array([1.0, small]), np.array([1, 1]), 1 - level)
    k = np.arange(-2000, 2001)
    law = np.exp(-np.abs(k) / scale)
    law /= law.sum()
    inside = sum(law[np.abs(k + small * j) <= width].sum() * law[j + 2000] for j in range(-60, 61))
    assert inside >= level - 1e-5
    alone = laplace_half_width(scale, np.ones(1), np.ones(1, int), 1 - level)
    assert width < 1.02 * alone + small * 40


@pytest.mark.parametrize(
    ("scale", "weights", "counts"),
    [(-1.0, [1.0], [1]), (0.0, [1.0], [1]), (1.0, [np.nan], [1]), (1.0, [np.inf, 1], [1, 1]),
     (1.0, [1.0], [-1]), (1.0, [1.0, 2.0], [1])],
)  # fmt: skip
def test_what_is_no_sum_of_draws_is_refused(scale, weights, counts):
    with pytest.raises(InvalidParameter, match="sum of draws"):
        laplace_half_width(scale, np.array(weights), np.array(counts), 0.05)
