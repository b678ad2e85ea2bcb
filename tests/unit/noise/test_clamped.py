"""The lazily refined Laplace draw: its law, its words, and words that do not decide."""

import inspect
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from twins.noise import ForcedWords

from tidegauge.errors import InvalidParameter, LiveState
from tidegauge.noise.clamped import clamped_laplace
from tidegauge.noise.randomness import open_words
from tidegauge.testing import SeededWords

CASES = [  # center, scale, most
    (Fraction(7, 2), Fraction(1), 10),
    (Fraction(1, 3), Fraction(1, 1000), 3),
    (Fraction(-5), Fraction(10), 8),
    (Fraction(10**6 * 7 + 1, 7), Fraction(12345, 678), 1 << 21),
    (Fraction(1 << 39), Fraction(1 << 36), 1 << 40),
    (Fraction(3), Fraction(1, 10**30), 5),
]


def forced(first, second, further=()):
    """Words whose blocks of the one lane are given: (sign, first bits of V), then further bits."""
    blocks = [(first, second), *further]

    def force(cell, coordinate, attempt, block):
        assert (0, 0, 0) == (cell, coordinate, attempt)
        return blocks[block] if block < len(blocks) else None

    return ForcedWords(force)


def rounded(center, scale, most, negative, uniform):
    """The definition, at a given uniform number, to 60 digits."""
    with mpmath.workdps(60):
        size = -mpmath.log(mpmath.mpf(uniform.numerator) / uniform.denominator)
        center, scale = (mpmath.mpf(x.numerator) / x.denominator for x in (center, scale))
        value = int(mpmath.floor(center + scale * (-size if negative else size) + mpmath.mpf(0.5)))
    return min(max(value, 0), most)


@pytest.mark.parametrize(("center", "scale", "most"), CASES)
def test_a_draw_is_what_its_words_say(center, scale, most):
    rng = np.random.default_rng(1)
    for first, second in rng.integers(1, 1 << 64, (60, 2), dtype=np.uint64).tolist():
        ends = {
            rounded(center, scale, most, first & 1, Fraction(second + k, 1 << 64)) for k in (0, 1)
        }
        found = clamped_laplace(forced(first, second), center, scale, most)
        if len(ends) == 1:
            assert ends == {found}
        assert min(ends) <= found <= max(ends)


@pytest.mark.parametrize("negative", [False, True])
def test_bits_beyond_the_first_64_decide_ties(negative):
    """V agrees with e^-x in 64 bits: the next 128 tell on which side it lies."""
    rng = np.random.default_rng(2)
    with mpmath.workdps(80):
        edge = mpmath.exp(mpmath.mpf(-1) / 2)
        word = int(mpmath.floor(edge * 2**64))
        tie = int(mpmath.floor(edge * mpmath.mpf(2) ** 192)) - (word << 128)
    wrong = 0
    for further in [
        *rng.integers(0, 1 << 64, (40, 2), dtype=np.uint64).tolist(),
        divmod(tie, 1 << 64),
    ]:
        rest = (further[0] << 64) + further[1]
        words = forced(int(negative), word, [tuple(further)])
        found = clamped_laplace(words, Fraction(1), Fraction(1), 3)
        farther = rest < tie or (rest == tie and found in (0, 2))  # a tie again: either
        assert found == (1 if not farther else 0 if negative else 2)
        wrong += found != 1  # the twin that takes the known bits for all: V = word / 2^64 or above
    assert 0 < wrong < 41


def test_a_twin_that_stops_at_64_bits_is_caught():
    """Its V is the known bits alone, always below e^-x at a tie: it never stays at the center."""

    def twin(first, second):
        return rounded(Fraction(1), Fraction(1), 3, first & 1, Fraction(second, 1 << 64))

    with mpmath.workdps(80):
        word = int(mpmath.floor(mpmath.exp(mpmath.mpf(-1) / 2) * 2**64))
    exactly = clamped_laplace(forced(0, word, [((1 << 64) - 1, 0)]), Fraction(1), Fraction(1), 3)
    assert 1 == exactly != twin(0, word)


def test_halves_round_up_and_the_center_may_be_one():
    """Where k + 1/2 is the center itself, the sign alone decides."""
    draws = [
        clamped_laplace(forced(sign, 1 << 63), Fraction(3, 2), Fraction(1, 10**9), 9)
        for sign in (0, 1)
    ]
    assert [2, 1] == draws


def test_far_tails_and_clamps():
    assert 0 == clamped_laplace(forced(1, 0), Fraction(5), Fraction(1), 9)  # V near 0
    assert 9 == clamped_laplace(forced(0, 0), Fraction(5), Fraction(1), 9)
    assert 9 == clamped_laplace(forced(1, 1 << 63), Fraction(10**9), Fraction(1), 9)
    assert 0 == clamped_laplace(forced(0, 1 << 63), Fraction(-(10**9)), Fraction(1), 9)
    assert 0 == clamped_laplace(forced(0, 1 << 63), Fraction(5), Fraction(1), 0)
    tiny = Fraction(1, 10**40)  # e^(1/tiny) has no digits that anybody could write
    assert 3 == clamped_laplace(forced(1, 12345), Fraction(3), tiny, 1 << 40)


def probabilities(center, scale, most):
    """P(draw = k), k = 0 .. most."""
    edges = (np.arange(most) + 0.5 - center) / scale
    below = np.where(edges < 0, np.exp(-np.abs(edges)) / 2, 1 - np.exp(-np.abs(edges)) / 2)
    return np.diff(np.concatenate(([0], below, [1])))


@pytest.mark.statistical
def test_draws_have_the_law_and_no_other():
    from scipy.stats import chisquare

    center, scale, most, runs = Fraction(10, 3), Fraction(9, 4), 8, 4000
    draws = [clamped_laplace(SeededWords(seed), center, scale, most) for seed in range(runs)]
    counts = np.bincount(draws, minlength=most + 1)

    def p_value(center, scale):
        return chisquare(counts, runs * probabilities(center, scale, most)).pvalue

    assert p_value(10 / 3, 9 / 4) > 1e-3
    for wrong in ((10 / 3, 9 / 4 * 1.15), (10 / 3, 9 / 4 / 1.15), (4, 9 / 4), (8 / 3, 9 / 4)):
        assert p_value(*wrong) < 1e-6


@pytest.mark.parametrize(
    ("scale", "most"), [(Fraction(0), 5), (Fraction(-1), 5), (0.5, 5), (Fraction(1), -1)]
)
def test_noise_that_is_none_is_refused_and_nothing_is_shown(scale, most):
    with pytest.raises(InvalidParameter) as refused:
        clamped_laplace(SeededWords(1), Fraction(12345), scale, most)
    assert "12345" not in str(refused.value)


def test_closed_words_draw_nothing():
    words = open_words("test")
    words.close()
    with pytest.raises(LiveState):
        clamped_laplace(words, Fraction(1), Fraction(1), 5)


def test_nothing_private_is_cached():
    import tidegauge.noise.clamped as module

    assert "lru_cache" not in inspect.getsource(module)
    assert math.inf > clamped_laplace(SeededWords(1), Fraction(1), Fraction(1), 5)
