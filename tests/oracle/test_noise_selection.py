"""The order of Gumbel noise against mpmath, its law by enumeration, and broken twins of it."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats
from twins.noise import ForcedWords, SeededCounter

from tidegauge.errors import InvalidParameter, LiveState
from tidegauge.noise import _kernels, selection
from tidegauge.noise.intervals import log_bracket
from tidegauge.noise.selection import gumbel_order
from tidegauge.testing import SeededWords

ORDERS = 6000


@pytest.mark.parametrize("bits", [1, 16, 64, 500])
@pytest.mark.parametrize(
    "x", [1, Fraction(2**64 + 1, 2**64), Fraction(3, 2), 2, Fraction(999, 10), 10**40, 2**128]
)
def test_a_bracket_of_a_logarithm_holds_it_and_is_narrow(x, bits):
    low, high = log_bracket(Fraction(x), bits)
    with mpmath.workprec(1500):
        exact = mpmath.log(mpmath.mpf(Fraction(x).numerator) / Fraction(x).denominator) * 2**bits
        assert low <= exact <= high
    assert high - low <= 2


EDGES = [4096, 4097, 2**30, 2**52, 2**53 + 1, 2**62 - 1, 2**62, 2**62 + 1, 2**63, 3 * 2**62]


def words_to_try():
    rng = np.random.default_rng(1)
    random = rng.integers(0, 2**64, 300, dtype=np.uint64)
    small = random >> rng.integers(0, 52, 300).astype(np.uint64)
    edges = np.array([*EDGES, *(2**64 - 1 - edge for edge in EDGES)], dtype=np.uint64)
    return np.concatenate((random, small, ~small, edges))


@pytest.mark.parametrize(("score", "rate"), [(0, 1.0), (5, 0.1), (10**6, 3.7), (-(10**12), 1e-3)])
def test_a_key_lies_in_its_bracket_for_every_tail_of_the_word(score, rate):
    first = words_to_try()
    low, high = np.empty(len(first)), np.empty(len(first))
    words = np.stack((first, first), axis=1)
    _kernels.gumbel_keys(words, np.full(len(first), score), 7, rate, low, high)
    with mpmath.workprec(200):
        for w, a, b in zip(first.tolist(), low.tolist(), high.tolist(), strict=True):
            if not 4096 <= w < 2**64 - 4096:
                assert (a, b) == (-math.inf, math.inf)
                continue
            least, most = (
                (score - 7) * mpmath.mpf(rate) - mpmath.log(-mpmath.log1p(-mpmath.mpf(v) / 2**64))
                for v in (w + 1, w)
            )
            assert a < least < most < b
            assert b - a < 2.0**-8 + 1e-12 * abs(score * rate)


def test_the_bracket_of_an_extreme_word_is_everything():
    words = np.array([[0, 0], [4095, 0], [2**64 - 1, 0], [2**64 - 4096, 0]], np.uint64)
    low, high = np.empty(4), np.empty(4)
    _kernels.gumbel_keys(words, np.zeros(4, np.int64), 0, 1.0, low, high)
    assert (low == -np.inf).all()
    assert (high == np.inf).all()


def exact_order(words, scores, scale, coordinate):
    """By 250 bits of mpmath."""
    inputs = np.array([[place, coordinate << 20] for place in range(len(scores))], np.uint64)
    outputs = np.empty((len(scores) + 1, 2), np.uint64)
    words.fill(inputs, outputs)
    with mpmath.workprec(250):
        keys = []
        for score, (a, b) in zip(scores, outputs[:-1].tolist(), strict=True):
            v = mpmath.mpf((a << 64 | b) * 2 + 1) / 2**129
            keys.append(
                score * mpmath.mpf(scale.denominator) / scale.numerator
                - mpmath.log(-mpmath.log1p(-v))
            )
        return sorted(range(len(scores)), key=lambda place: -keys[place])


@pytest.mark.parametrize("everything", [False, True], ids=["brackets", "exact comparisons alone"])
def test_the_order_is_that_of_the_exact_keys(everything, monkeypatch):
    if everything:

        def wide(words, scores, top, rate, low, high):
            low[:], high[:] = -np.inf, np.inf

        monkeypatch.setattr(selection._kernels, "gumbel_keys", wide)
    rng = np.random.default_rng(2)
    for coordinate, scale in enumerate(
        [Fraction(1, 512), Fraction(1), Fraction(999, 7), Fraction(2**50)]
    ):
        scores = rng.integers(0, 1 + min(int(10 * scale), 10**9), 40 if everything else 500)
        order = gumbel_order(SeededWords(3), scores, scale, coordinate)
        assert exact_order(SeededWords(3), scores, scale, coordinate) == order.tolist()


def test_words_that_agree_in_64_bits_are_told_apart_by_the_next_and_then_by_further_blocks():
    def same(cell, coordinate, attempt, block):
        if block == 0:
            return 1 << 63, (5 if coordinate == 1 and cell == 2 else 3)
        return (9, cell) if coordinate == 2 else None

    words = ForcedWords(same)
    first = gumbel_order(words, np.array([1, 0, 0]), Fraction(1000), 1)
    assert [0, 1, 2] == first.tolist()  # a larger V is a smaller key
    second = gumbel_order(words, np.zeros(4, np.int64), Fraction(1), 2)
    assert [0, 1, 2, 3] == second.tolist()
    assert any(block == 1 for *_, block in words.filled)


def test_words_at_both_ends_are_compared_exactly_whatever_the_scores():
    ends = {0: (0, 0), 1: (2**64 - 1, 2**64 - 1), 2: (0, 1), 3: (2**64 - 1, 5)}
    words = ForcedWords(lambda cell, coordinate, attempt, block: None if block else ends.get(cell))
    order = gumbel_order(words, np.array([0, 0, 0, 0, 0]), Fraction(1), 0)
    assert [0, 2, 4, 3, 1] == order.tolist()
    far = gumbel_order(words, np.array([0, 10**9, 0, 10**9, 0]), Fraction(1), 0)
    assert [3, 1, 0, 2, 4] == far.tolist()


def test_few_lanes_need_exact_comparisons():
    words = SeededCounter(5)
    gumbel_order(words, np.random.default_rng(1).integers(0, 100, 50_000), Fraction(5), 0)
    assert 0 == words.single


def chances(scores, scale):
    """Of every order, by picking one after another without putting back."""
    weights = np.exp((np.array(scores) - max(scores)) / float(scale))
    found = {}
    for order in itertools.permutations(range(len(scores))):
        left, chance = weights.sum(), 1.0
        for place in order:
            chance *= weights[place] / left
            left -= weights[place]
        found[order] = chance
    return found


def p_value(order_of, scores, scale):
    expected = chances(scores, scale)
    counted = dict.fromkeys(expected, 0)
    for coordinate in range(ORDERS):
        counted[tuple(order_of(coordinate))] += 1
    return stats.chisquare(list(counted.values()), [ORDERS * p for p in expected.values()]).pvalue


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("scores", "scale"),
    [([5, 3, 1], Fraction(1)), ([0, 0, 0, 0], Fraction(3)), ([2, 9, 5, 4], Fraction(5, 2))],
)
def test_orders_follow_the_law_of_picks_and_no_other_scale(scores, scale):
    words, array = SeededWords(7), np.array(scores)

    def order_of(coordinate):
        return gumbel_order(words, array, scale, coordinate).tolist()

    assert p_value(order_of, scores, scale) > 1e-3
    if len(set(scores)) > 1:
        assert p_value(order_of, scores, scale * Fraction(6, 5)) < 1e-9


@pytest.mark.statistical
def test_a_twin_with_another_law_is_caught():
    rng = np.random.default_rng(8)

    def laplace(_):
        return np.argsort(-(np.array([5, 3, 1]) + rng.laplace(0, 1.2, 3)))

    def half_a_word(coordinate):  # keys of 3 bits, ties by place
        v = rng.integers(0, 8, 3) / 8 + 1 / 16
        return np.argsort(-(np.array([5, 3, 1]) - np.log(-np.log(v))), kind="stable")

    for twin in (laplace, half_a_word):
        assert p_value(twin, [5, 3, 1], Fraction(1)) < 1e-9


def test_the_printed_chances_of_three_counts():
    found = chances([5, 3, 1], Fraction(1))  # tau = 2: a scale of 1
    first = sum(chance for order, chance in found.items() if order[0] == 0)
    assert 0.8668133322 == pytest.approx(first, abs=5e-11)
    assert 0.7634866502 == pytest.approx(found[0, 1, 2], abs=5e-11)


def test_ranges_are_refused_and_nothing_is_drawn_from_closed_words():
    words = SeededWords(1)
    with pytest.raises(InvalidParameter, match="below 2\\*\\*61"):
        gumbel_order(words, np.array([1 << 61, 0]), Fraction(1), 0)
    with pytest.raises(InvalidParameter, match="scale"):
        gumbel_order(words, np.array([1, 0]), Fraction(1, 1000), 0)
    assert 0 == len(gumbel_order(words, np.empty(0, np.int64), Fraction(1), 0))
    words.close()
    with pytest.raises(LiveState):
        gumbel_order(words, np.array([1, 0]), Fraction(1), 0)


def test_the_logarithm_by_plain_operations_is_as_exact_as_claimed():
    rng = np.random.default_rng(9)
    for x in [*(10.0 ** rng.uniform(-19, 2, 400)).tolist(), 1.0 + 1e-9, 0.7071067811865476, 1.5]:
        assert math.isclose(_kernels.natural_log(x), math.log(x), rel_tol=2.0**-47)
