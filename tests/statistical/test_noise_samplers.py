"""Draws against the exact laws, at fixed seeds, with power: a scale 15 % off must be rejected.

Known-answer vectors keep the law of words: the same key, cell and coordinate give the same draw in
every version.
"""

import hashlib
import math
import random
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr
from twins import noise as twins

from tidegauge.noise.gaussian import RoundedGaussian
from tidegauge.noise.laplace import DiscreteLaplace
from tidegauge.noise.randomness import AesWords
from tidegauge.testing import SeededWords

pytestmark = pytest.mark.statistical

SAMPLES = 200_000


def draws(law, seed=11, samples=SAMPLES):
    return law.draw(SeededWords(seed), 64 * np.arange(samples // 1000), 1000).reshape(-1)


def distribution(law, scale):
    """P(X <= j) of a law's kind at a scale."""
    if isinstance(law, RoundedGaussian):
        return lambda j: ndtr((j + 0.5) / scale)

    q = math.exp(-1 / scale)

    def laplace(j):
        magnitude = np.where(j >= 0, j + 1, -j).astype(float)
        tail = np.exp(-magnitude / scale) / (1 + q)
        return np.where(j >= 0, 1 - tail, tail)

    return laplace


def p_value(sample, cdf):
    """Chi-square over bins of at least 40 expected draws."""
    edges = np.unique(np.quantile(sample, np.linspace(0, 1, 130)[1:-1], method="nearest"))
    expected = np.diff(np.concatenate([[0.0], cdf(edges), [1.0]])) * len(sample)
    observed = np.bincount(np.searchsorted(edges, sample), minlength=len(edges) + 1)
    keep = expected >= 40
    observed = np.append(observed[keep], observed[~keep].sum())
    expected = np.append(expected[keep], expected[~keep].sum())
    if expected[-1] < 5:
        observed, expected = (
            observed[:-1],
            expected[:-1] * (observed[:-1].sum() / expected[:-1].sum()),
        )
    return stats.chisquare(observed, expected).pvalue


SMALL = [
    *(RoundedGaussian(Fraction(s)) for s in (Fraction(1, 3), 1, 2, 8, 63, 64, Fraction(1000, 7))),
    *(
        DiscreteLaplace(Fraction(t))
        for t in (Fraction(1, 3), 1, 10, 32, 33, Fraction(777, 10), 1000)
    ),
]


@pytest.mark.parametrize("law", SMALL, ids=str)
def test_draws_follow_the_exact_law_and_no_other_scale(law):
    sample, scale = draws(law), float(law.scale)
    assert p_value(sample, distribution(law, scale)) > 1e-3
    for wrong in (scale / 1.15, scale * 1.15):
        assert p_value(sample, distribution(law, wrong)) < 1e-9


@pytest.mark.parametrize("scale", [1, 2, 8])
def test_zero_of_the_rounded_gaussian_has_its_exact_probability(scale):
    sample = draws(RoundedGaussian(Fraction(scale)), seed=12)
    zero = 2 * ndtr(0.5 / scale) - 1
    deviation = math.sqrt(zero * (1 - zero) * SAMPLES)
    assert abs((sample == 0).sum() - zero * SAMPLES) < 4 * deviation
    halved = zero / 2 / (1 - zero / 2)  # the law of a sampler that rejects minus zero
    assert abs((sample == 0).sum() - halved * SAMPLES) > 20 * deviation


LARGE = [
    *(RoundedGaussian(Fraction(s)) for s in (10**6, Fraction(2**40, 3), 2**46, 2**50 + 1, 2**55)),
    *(DiscreteLaplace(Fraction(t)) for t in (10**6, 2**21 + 1, Fraction(10**12, 7), 2**50)),
]


@pytest.mark.parametrize("law", LARGE, ids=str)
def test_draws_at_large_scales_follow_the_law_and_no_other_scale(law):
    sample, scale = draws(law, seed=13).astype(float), float(law.scale)
    exact = stats.norm.cdf if isinstance(law, RoundedGaussian) else stats.laplace.cdf
    assert stats.kstest(sample / scale, exact).pvalue > 1e-3
    for wrong in (scale / 1.15, scale * 1.15):
        assert stats.kstest(sample / wrong, exact).pvalue < 1e-9


@pytest.mark.parametrize("law", LARGE, ids=str)
def test_low_bits_at_large_scales_are_uniform_and_independent_of_the_sign(law):
    sample, bits = draws(law, seed=14), int(law.scale).bit_length()
    for shift in range(0, bits - 12, 8):  # a byte that is small beside the scale
        byte = sample >> shift & 255
        assert stats.chisquare(np.bincount(byte, minlength=256)).pvalue > 1e-4
        if shift < bits - 20:  # the sign says something about all but the lowest bits
            halves = np.stack([np.bincount(byte[sample < 0]), np.bincount(byte[sample >= 0])])
            assert stats.chi2_contingency(halves).pvalue > 1e-4


@pytest.mark.parametrize("law", [*SMALL, *LARGE], ids=str)
def test_measured_mean_and_variance_are_those_promised(law):
    sample = draws(law, seed=15).astype(float)
    assert abs(sample.mean()) < 4 * law.std / math.sqrt(SAMPLES)
    fourth = ((sample / law.std) ** 4).mean()
    assert abs((sample**2).mean() / law.variance - 1) < 4 * math.sqrt((fourth - 1) / SAMPLES)


@pytest.mark.parametrize("law", [RoundedGaussian(Fraction(10**6)), DiscreteLaplace(Fraction(50))])
def test_draws_of_different_cells_and_steps_are_uncorrelated(law):
    sample = draws(law, seed=16).reshape(200, 1000) / law.std
    for a, b in ((sample[1:], sample[:-1]), (sample[:, 1:], sample[:, :-1])):
        assert abs((a * b).sum()) < 4 * math.sqrt(a.size)


def test_laplace_ties_occur_and_are_resolved_among_millions_of_draws():
    law = DiscreteLaplace(Fraction(2**21))
    source = twins.SeededCounter(17)
    values = np.zeros((2000, 2000), dtype=np.int64)
    for first in range(0, 12000, 2000):
        law.add(source, values, np.arange(first, first + 2000))
    entries = 1 + sum(len(np.unique(row)) - 1 for row in law._tables[1])
    expected = 24e6 * entries / 2**32
    assert 5 < expected < 9
    assert 1 <= source.single / 2 <= 20  # the resolver reads its own word and one more


# ------------------------------------------------------------------ other samplers


def two_sample(a, b):
    """p-value of the hypothesis that two samples of integers have one law."""
    edges = np.unique(np.quantile(np.concatenate([a, b]), np.linspace(0, 1, 40)[1:-1]))
    table = np.stack(
        [np.bincount(np.searchsorted(edges, x), minlength=len(edges) + 1) for x in (a, b)]
    )
    return stats.chi2_contingency(table[:, table.sum(axis=0) > 0]).pvalue


def test_slow_plain_integer_rounded_gaussian_agrees():
    rng = random.Random(21)
    for scale in (Fraction(3, 2), Fraction(500, 3)):
        slow = np.array([twins.slow_rounded_gaussian(rng, scale) for _ in range(5000)])
        assert two_sample(slow, draws(RoundedGaussian(scale))) > 1e-3
        assert two_sample(slow, draws(RoundedGaussian(scale * Fraction(115, 100)))) < 1e-6


def test_slow_plain_integer_laplace_agrees():
    rng = random.Random(22)
    for scale in (Fraction(3, 2), Fraction(500, 3)):
        slow = np.array([twins.slow_laplace(rng, scale) for _ in range(8000)])
        assert two_sample(slow, draws(DiscreteLaplace(scale))) > 1e-3
        assert two_sample(slow, draws(DiscreteLaplace(scale * Fraction(115, 100)))) < 1e-6


def test_discrete_gaussian_of_equal_variance_agrees():
    rng = random.Random(23)
    scale = Fraction(20)
    rounded = draws(RoundedGaussian(scale))
    slow = np.array([twins.slow_discrete_gaussian(rng, scale) for _ in range(5000)])
    assert two_sample(slow, rounded) > 1e-3  # the laws differ by 1/12 in variance 400
    assert two_sample(slow, draws(RoundedGaussian(scale * Fraction(115, 100)))) < 1e-6


def opendp_sample(kind, scale, size):
    import opendp.prelude as dp

    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    if kind is RoundedGaussian:
        measurement = dp.m.make_gaussian(domain, dp.l2_distance(T="i64"), scale=scale)
    else:
        measurement = dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=scale)
    return np.array(measurement([0] * size))


@pytest.mark.parametrize("kind", [RoundedGaussian, DiscreteLaplace])
def test_opendp_agrees(kind):
    # OpenDP draws from the operating system: this can fail once in a million runs
    sample = opendp_sample(kind, 20.0, 20_000)
    assert two_sample(sample, draws(kind(Fraction(20)))) > 1e-6
    assert two_sample(sample, draws(kind(Fraction(23)))) < 1e-9


# ------------------------------------------------------------------ known answers

KNOWN = {
    "RoundedGaussian(scale=Fraction(1, 16))": ([0, 0, 0], "5d067bc81bb170f7"),
    "RoundedGaussian(scale=Fraction(1, 4))": ([0, 0, 0], "2754f74a37934e14"),
    "RoundedGaussian(scale=Fraction(1, 1))": ([1, -1, 0], "02562a14689f86a4"),
    "RoundedGaussian(scale=Fraction(2469, 200))": ([10, -16, 3], "a19f937342530ca4"),
    "RoundedGaussian(scale=Fraction(639, 10))": ([53, -85, 16], "888a1e8f8339e785"),
    "RoundedGaussian(scale=Fraction(64, 1))": ([54, -85, 15], "2de5c853504720c0"),
    "RoundedGaussian(scale=Fraction(999, 8))": ([105, -165, 30], "af71fcbc330a84cd"),
    "RoundedGaussian(scale=Fraction(128, 1))": ([108, -171, 31], "3fa16269b9ab8318"),
    "RoundedGaussian(scale=Fraction(1000, 1))": ([840, -1331, 251], "973968960246075a"),
    "RoundedGaussian(scale=Fraction(1000000, 1))": ([835481, -1330013, 248632], "d1906fc93794051d"),
    "RoundedGaussian(scale=Fraction(35184372101177, 7))": (
        [4259741504051, -6690193362267, 1261040275651],
        "3d17848083c6810c",
    ),
    "RoundedGaussian(scale=Fraction(70368744177664, 1))": (
        [59359771042614, -93848954262958, 16878109527091],
        "722c538d03a45954",
    ),
    "RoundedGaussian(scale=Fraction(1000000000000000, 3))": (
        [281419549281497, -441366514718393, 80706577641677],
        "7e697c193eec98d4",
    ),
    "RoundedGaussian(scale=Fraction(36028797018963968, 1))": (
        [30392202773818491, -48050664582634572, 8641592077870665],
        "c49cd38872003f2a",
    ),
    "DiscreteLaplace(scale=Fraction(1, 512))": ([0, 0, 0], "5d067bc81bb170f7"),
    "DiscreteLaplace(scale=Fraction(1, 3))": ([0, 0, 0], "47f2f0a8a71d45c8"),
    "DiscreteLaplace(scale=Fraction(1, 1))": ([0, 1, 0], "bfe3244dd4b1498d"),
    "DiscreteLaplace(scale=Fraction(10, 1))": ([-10, 16, -3], "6173d78db38ac0ac"),
    "DiscreteLaplace(scale=Fraction(32, 1))": ([-29, 54, -7], "7f0c0508e79fdc18"),
    "DiscreteLaplace(scale=Fraction(777, 10))": ([-67, 119, -17], "51eca8e3371ab8e7"),
    "DiscreteLaplace(scale=Fraction(8192, 1))": ([-1944, 9424, -1842], "12324d72214752fd"),
    "DiscreteLaplace(scale=Fraction(1000000, 1))": (
        [-4338841, 437712, -405811],
        "f854f6935d276fce",
    ),
    "DiscreteLaplace(scale=Fraction(2097152, 1))": (
        [-9123225, 962256, -864819],
        "d84591c7d0a286ea",
    ),
    "DiscreteLaplace(scale=Fraction(1000000000, 7))": (
        [-33306265, 22523600, -139866931],
        "c8a375b06865d701",
    ),
    "DiscreteLaplace(scale=Fraction(1000000000000, 1))": (
        [-172402423449, 2302729170640, -101524779827],
        "7538311d03ef522f",
    ),
    "DiscreteLaplace(scale=Fraction(1125899906842624, 1))": (
        [-564312061785753, 543322579578576, -83720243065651],
        "1a247c3cfcd1971a",
    ),
}


@pytest.mark.parametrize("law", twins.LAWS, ids=str)
def test_key_cell_and_coordinate_give_the_draw_that_they_always_gave(law):
    coordinates = np.array([0, 1, 64, 1 << 30, (1 << 44) - 1])
    block = law.draw(AesWords(bytes(range(32))), coordinates, 2100)
    digest = hashlib.sha256(block.astype("<i8").tobytes()).hexdigest()[:16]
    assert KNOWN[str(law)] == (block[2, 7:10].tolist(), digest)
