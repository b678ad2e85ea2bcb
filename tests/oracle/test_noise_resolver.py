"""The exact resolver is the oracle: kernels agree with it on every lane that they decide.

A quarter of the Gaussian lanes has its word of acceptance forced next to the kernel's threshold,
where an error would show. Ties with a threshold go to the resolver, which must split them in the
proportion that the unknown bits have.
"""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from twins import noise as twins

from tidegauge.noise import resolver, thresholds
from tidegauge.noise.gaussian import RoundedGaussian
from tidegauge.noise.laplace import DiscreteLaplace
from tidegauge.noise.resolver import Tape, Uniform


def tape(law, words, lane):
    """The tape of a lane whose own words are given; further blocks are AES of a fixed key."""

    def force(cell, coordinate, attempt, block):
        return tuple(words[2 * block : 2 * block + 2]) if block < law.words_each else None

    return Tape(twins.ForcedWords(force), lane, 0, 0, law.words_each)


def near_the_threshold(law, words, rng):
    """Move the 39 bits of acceptance of each lane next to the kernel's own probability."""
    for lane in words:
        x, _ = twins.look_up(int(lane[0]) >> 16, law._tables[0].tolist())
        _, p = twins.probability(int(lane[1]), x, int(law._inverse))
        w = max(0, min((1 << 39) - 1, (p >> 25) + int(rng.integers(-3, 4))))
        lane[0] = lane[0] & ~np.uint64(0xFFFF) | np.uint64(w >> 23)
        lane[1] = lane[1] & ~np.uint64(0x7FFFFF) | np.uint64(w & 0x7FFFFF)


@pytest.mark.parametrize("law", twins.LAWS, ids=str)
def test_kernel_equals_the_resolver_on_every_lane_that_it_decides(law):
    rng = np.random.default_rng(7)
    n = 320
    words = rng.integers(0, 1 << 64, (n, 2 * law.words_each), dtype=np.uint64)
    scaled = isinstance(law, RoundedGaussian)
    if scaled:
        near_the_threshold(law, words[: n // 4], rng)
    results = twins.kernel_attempt(law, words)
    undecided = 0
    for lane, result in enumerate(results):
        exact = law.resolve(tape(law, words[lane].tolist(), lane))
        if result == "undecided":
            undecided += 1
        else:
            assert (None if result == "rejected" else result) == exact
    assert (n // 40 <= undecided <= n // 8) if scaled else undecided == 0


def test_narrow_margins_would_be_noticed():
    """The mutant: without margins, open lanes are decided, about half of them wrong."""
    law = RoundedGaussian(Fraction(1000))
    rng = np.random.default_rng(8)
    words = rng.integers(0, 1 << 64, (120, 2), dtype=np.uint64)
    near_the_threshold(law, words, rng)
    table, inverse = law._tables[0].tolist(), int(law._inverse)
    results = twins.rounded_gaussian(words.tolist(), table, law._shift, inverse, below=0, above=0)
    wrong = 0
    for lane, result in enumerate(results):
        exact = law.resolve(tape(law, words[lane].tolist(), lane))
        wrong += (None if result == "rejected" else result) != exact
    assert wrong >= 3


def assert_split(successes, n, p):
    assert abs(successes - n * p) <= 4 * math.sqrt(n * p * (1 - p)) + 1e-9


@pytest.mark.parametrize("scale", [Fraction(64), Fraction(1000), Fraction(2**47)])
def test_tie_with_the_gaussian_table_splits_as_the_unknown_bits_do(scale):
    law = RoundedGaussian(scale)
    table = law._tables[0].tolist()
    brackets = thresholds.half_gaussian(law.base)
    for k in (0, 1, 5, 11):
        # y = 0 and acceptance word 0: nothing else is open, the draw is x scaled
        words = [table[k] << 16, 1, *[0] * (2 * law.words_each - 2)]
        assert twins.kernel_attempt(law, np.array([words], dtype=np.uint64)) == ["undecided"]
        draws = [law.resolve(tape(law, words, lane)) for lane in range(300)]
        unit = 1 << law._shift
        assert set(draws) <= {k * unit, (k + 1) * unit}
        below = (brackets(112)[0][k] & (1 << 64) - 1) / 2**64
        assert_split(draws.count(k * unit), 300, below)


def test_tie_of_acceptance_splits_as_the_unknown_bits_of_y_and_w_do():
    law = RoundedGaussian(Fraction(1000))
    table = law._tables[0].tolist()
    for x, y in ((3, 12345), (70, 1 << 39), (200, (1 << 40) - 1)):
        with mpmath.workdps(60):
            middle = (mpmath.mpf(y) + 0.5) / 2**40
            base = mpmath.mpf(law.base.numerator) / law.base.denominator
            p = mpmath.exp(-middle * (middle + 2 * x) / (2 * base**2)) * 2**39
        w, expected = int(p), float(p - mpmath.floor(p))
        words = [(table[x] - 1) << 16 | w >> 23, y << 24 | w & 0x7FFFFF]
        assert twins.kernel_attempt(law, np.array([words], dtype=np.uint64)) == ["undecided"]
        draws = [law.resolve(tape(law, words, lane)) for lane in range(400)]
        assert_split(sum(draw is not None for draw in draws), 400, expected)


def test_tie_of_the_sign_and_of_a_digit_splits_as_the_unknown_bits_do():
    law = DiscreteLaplace(Fraction(10**6))
    negative, tables, _ = law._tables
    below = (thresholds.negative(law.scale)(96)[0][0] & (1 << 64) - 1) / 2**64
    tie = [int(negative), 0]
    assert twins.kernel_attempt(law, np.array([tie], dtype=np.uint64)) == ["undecided"]
    draws = [law.resolve(tape(law, tie, lane)) for lane in range(300)]
    assert set(draws) == {0, -1}
    assert_split(draws.count(-1), 300, below)
    for k in (0, 100, 254):
        entry = int(tables[0, k])
        below = (thresholds.geometric_digit(1 / law.scale)(96)[0][k] & (1 << 64) - 1) / 2**64
        words = [0xFFFFFFFF | entry << 32, 0]
        assert twins.kernel_attempt(law, np.array([words], dtype=np.uint64)) == ["undecided"]
        draws = [law.resolve(tape(law, words, lane)) for lane in range(300)]
        assert set(draws) <= {k, k + 1}
        assert_split(draws.count(k), 300, below)


def test_lane_that_its_words_cannot_decide_is_resolved_and_never_redrawn():
    law = RoundedGaussian(Fraction(1000))
    table = law._tables[0].tolist()
    tie = [table[40] << 16, 5 << 24]

    def force(cell, coordinate, attempt, block):
        return tuple(tie) if cell == 2 and attempt == 0 and block == 0 else None

    source = twins.ForcedWords(force)
    draws = law.draw(source, np.array([64]), 5)[0].tolist()
    assert draws[2] in (40 << law._shift, 41 << law._shift)
    exact = law.resolve(Tape(twins.ForcedWords(force), 2, 64, 0, 1))
    assert exact == draws[2]
    mine = [(attempt, block) for cell, _, attempt, block in source.filled if cell == 2]
    assert mine == [(0, 0), (0, 0), (0, 1)]  # its own word, again for the resolver, and one more


def test_lane_that_the_resolver_rejects_goes_to_the_next_attempt():
    law = RoundedGaussian(Fraction(1000))
    table = law._tables[0].tolist()
    tie = (table[300] << 16 | 0xFFFF, (1 << 64) - 1)  # a tie, then certainly not accepted

    def force(cell, coordinate, attempt, block):
        return tie if (attempt, block) == (0, 0) else None

    source = twins.ForcedWords(force)
    draws = law.draw(source, np.array([0]), 3)[0].tolist()
    expected = []
    for cell in range(3):
        assert law.resolve(Tape(twins.ForcedWords(force), cell, 0, 0, 1)) is None
        expected.append(law.resolve(Tape(twins.ForcedWords(force), cell, 0, 1, 1)))
    assert expected == draws


def test_undecided_and_rejected_lanes_of_one_block_are_told_apart():
    law = RoundedGaussian(Fraction(1000))
    table = law._tables[0].tolist()
    words = {
        0: (table[300] - 1 << 16 | 0xFFFF, (1 << 64) - 1),  # rejected by the kernel
        1: (table[40] << 16, 5 << 24),  # undecided, then accepted
        2: (table[300] << 16 | 0xFFFF, (1 << 64) - 1),  # undecided, then rejected
    }

    def force(cell, coordinate, attempt, block):
        return words.get(cell) if (attempt, block) == (0, 0) else None

    draws = law.draw(twins.ForcedWords(force), np.array([0]), 4)[0].tolist()
    attempts = [1, 0, 1, 0]
    for cell, attempt in enumerate(attempts):
        exact = law.resolve(Tape(twins.ForcedWords(force), cell, 0, attempt, 1))
        assert exact == draws[cell]


def test_undecided_laplace_lane_is_resolved_in_place():
    law = DiscreteLaplace(Fraction(1000))
    tie = int(law._tables[1][0, 50]) << 32 | 0xFFFFFFFF

    def force(cell, coordinate, attempt, block):
        return (tie, 0) if cell == 1 and block == 0 else None

    draws = law.draw(twins.ForcedWords(force), np.array([0]), 3)[0].tolist()
    assert draws[1] in (50, 51)
    assert law.resolve(Tape(twins.ForcedWords(force), 1, 0, 0, law.words_each)) == draws[1]


def test_uniform_with_all_bits_set_still_finds_its_place_in_an_endless_table():
    law = RoundedGaussian(Fraction(64))
    words = [((1 << 48) - 1) << 16, 1]
    draws = [law.resolve(tape(law, words, lane)) for lane in range(20)]
    longest = len(law._tables[0])
    assert all(draw >= longest - 1 for draw in draws)
    full = Uniform((1 << 300) - 1, 300, tape(law, words, 0))
    x = full.rank(thresholds.half_gaussian(Fraction(64)))
    with mpmath.workdps(200):
        tail = mpmath.erfc(mpmath.mpf(x) / 64 / mpmath.sqrt(2))
        assert mpmath.mpf(2) ** -310 < tail < mpmath.mpf(2) ** -290


def test_words_that_never_decide_are_an_error_not_a_loop():
    law = DiscreteLaplace(Fraction(10))
    half = Uniform(0, 8, Tape(twins.ForcedWords(lambda *_: (0, 0)), 0, 0, 0, 1))
    with pytest.raises(ArithmeticError, match="broken"):
        half.rank(lambda bits: ([0], [1]))
    assert law.words_each == 1


def test_resolver_reads_y_of_large_scales_from_the_second_block():
    law = RoundedGaussian(Fraction(2**50))
    words = [0, 1 << 23 | 1 << 63, 1 << 62, 0]
    expected = -(((1 << 63 | 1 << 62 >> 40) >> 64 - law._shift - 1) + 1 >> 1)
    assert expected == resolver.rounded_gaussian(tape(law, words, 0), law._shift, law.base)
    assert twins.kernel_attempt(law, np.array([words], dtype=np.uint64)) == [expected]
