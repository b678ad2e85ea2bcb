"""The private threshold: the conditions of its proof on every small case, and twins that fail them.

What is judged is what the code hands to its noise: the center and the scale of each list of values.
"""

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tidegauge.errors import InvalidParameter, UnsupportedCombination
from tidegauge.mechanisms import measure, smooth
from tidegauge.mechanisms.smooth import smooth_bound
from tidegauge.mechanisms.threshold_rule import ThresholdRule
from tidegauge.noise import clamped
from tidegauge.noise.intervals import exp_bracket
from tidegauge.testing import SeededWords

Law = tuple[Fraction, Fraction]
RULES = [
    ThresholdRule(1, Fraction(1, 100), Fraction(1, 4), Fraction(6, 1000)),
    ThresholdRule(Fraction(1, 2), Fraction(1, 10**6), Fraction(1, 2), Fraction(6, 1000)),
    ThresholdRule(5, Fraction(1, 10**4), Fraction(3, 4), Fraction(1, 10)),
    ThresholdRule(1, Fraction(1, 10**9), Fraction(99, 100), Fraction(6, 1000)),
]


@pytest.fixture
def laws(monkeypatch):
    """A function from a rule and values to the center and scale of the threshold's law."""
    monkeypatch.setattr(
        clamped, "clamped_laplace", lambda words, center, scale, most: (center, scale)
    )

    def law(rule: ThresholdRule, values: Any, most: int) -> Law:
        found: Any = measure.measure_threshold(
            rule, np.array(values, np.int64), most, SeededWords(1)
        )
        return found

    return law


def small(most: int, count: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Every pair of neighboring lists of so many values."""
    for values in itertools.combinations_with_replacement(range(most + 1), count):
        for place, other in itertools.product(range(count), range(most + 1)):
            yield values, (*values[:place], other, *values[place + 1 :])


def random_pairs(runs: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Neighbors of up to 60 values up to 1000, with ties and gaps."""
    rng = np.random.default_rng(7)
    for _ in range(runs):
        values = rng.integers(0, int(rng.choice([2, 30, 1001])), rng.integers(1, 60))
        other = values.copy()
        other[rng.integers(len(values))] = rng.choice([0, 1000, rng.integers(1001)])
        yield values, other


def assert_private(rule: ThresholdRule, one: Law, other: Law) -> None:
    """The two conditions from which (epsilon, delta) follows; see the proof page."""
    least, most = sorted((one[1], other[1]))
    assert abs(one[0] - other[0]) <= rule.a * least, "the center moves too far"
    assert most * exp_bracket(rule.b, 100)[1] <= least * 2**100 * (1 + Fraction(1, 2**95)), (
        "the scale is not smooth"
    )


def judge(rule: ThresholdRule, laws: Any) -> None:
    """Every pair of neighbors among four values up to 3."""
    for values, other in small(3, 4):
        assert_private(rule, laws(rule, values, 3), laws(rule, other, 3))


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_center_and_scale_of_neighbors_meet_the_conditions(rule, laws):
    judge(rule, laws)
    for values, other in random_pairs(300):
        assert_private(rule, laws(rule, values, 1000), laws(rule, other, 1000))


def judge_sizes(rule: ThresholdRule, laws: Any) -> None:
    """Every list of up to four values up to 3, the empty one too, beside one with one value more.

    And random ones, at many ranks: how many values lie beyond the quantile changes with the count.
    """
    for count in range(5):
        for values in itertools.combinations_with_replacement(range(4), count):
            for more in range(4):
                assert_private(rule, laws(rule, values, 3), laws(rule, (*values, more), 3))
    rng = np.random.default_rng(8)
    for _ in range(300):
        values = rng.integers(0, int(rng.choice([2, 30, 1001])), rng.integers(60))
        more = np.append(values, rng.choice([0, 1000, rng.integers(1001)]))
        assert_private(rule, laws(rule, values, 1000), laws(rule, more, 1000))


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_the_number_of_values_may_be_private(rule, laws):
    judge_sizes(rule, laws)


def test_a_range_that_ends_at_the_largest_value_is_caught(laws, monkeypatch):
    right = smooth.smooth_bound

    def wrong(values: Any, rank: int, b: Fraction, most: float) -> Fraction:
        return right(values, rank, b, max([1.0, *values]))

    monkeypatch.setattr(smooth, "smooth_bound", wrong)
    with pytest.raises(AssertionError):
        judge_sizes(RULES[1], laws)


def test_a_rank_that_falls_where_a_value_comes_is_caught(laws, monkeypatch):
    def wrong(self: ThresholdRule, count: int) -> int:
        return max(1, count // 2 if count % 2 else count)  # jumps by half of the list

    monkeypatch.setattr(ThresholdRule, "rank", wrong)
    with pytest.raises(AssertionError):
        judge_sizes(RULES[1], laws)


def judge_ranks(rule: ThresholdRule) -> None:
    """How many values lie beyond the quantile of up to 2000."""
    beyond = [count - rule.rank(count) + 1 for count in range(2000)]
    assert {0, 1} >= set(np.diff(beyond).tolist())
    assert 1 == rule.rank(0) == rule.rank(1)


def test_at_most_one_more_value_lies_beyond_the_quantile_for_each_that_comes():
    for rule in RULES:
        judge_ranks(rule)


def test_a_rank_that_jumps_by_two_is_caught(laws, monkeypatch):
    """By the count of values beyond it, and by the law of the threshold, which it makes too far."""
    right = ThresholdRule.rank

    def wrong(self: ThresholdRule, count: int) -> int:
        beyond = count - right(self, count) + 1
        return count - min(beyond + beyond % 2, count) + 1

    monkeypatch.setattr(ThresholdRule, "rank", wrong)
    for rule in RULES:
        with pytest.raises(AssertionError):
            judge_ranks(rule)
    with pytest.raises(AssertionError):
        judge_sizes(RULES[1], laws)


def judge_noise(rule: ThresholdRule) -> None:
    """P(|Z| > z) = e^-z, beyond the z up to which no ratio exceeds e^epsilon; and by quadrature."""
    a, b = float(rule.a), float(rule.b)
    assert b <= a
    assert math.exp(-(a + b) / math.expm1(b)) <= float(rule.delta), "the tail"
    z = np.linspace(-60, 60, 2_000_001)
    for shift, growth in itertools.product((-a, 0, a), (-b, 0, b)):
        scale = math.exp(growth)
        moved = shift * min(1, scale)
        p, q = np.exp(-np.abs(z)) / 2, np.exp(-np.abs(z - moved) / scale) / (2 * scale)
        excess = np.maximum(p - math.exp(float(rule.epsilon)) * q, 0).sum() * (z[1] - z[0])
        assert excess <= float(rule.delta), "the excess"


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_the_conditions_give_epsilon_and_delta(rule):
    judge_noise(rule)


@pytest.mark.parametrize(("name", "match"), [("b", "tail"), ("a", "excess")])
def test_a_scale_or_a_center_that_may_move_further_is_caught(name, match):
    """Twins: twice the b, which is still below a, or twice the a."""
    rule = ThresholdRule(1, Fraction(1, 100), Fraction(1, 4), Fraction(6, 1000))
    rule.__dict__[name] = 2 * getattr(rule, name)
    with pytest.raises(AssertionError, match=match):
        judge_noise(rule)


def test_a_threshold_without_kappa_is_caught(laws):
    rule = ThresholdRule(1, Fraction(1, 100), Fraction(1, 4), Fraction(6, 1000))
    rule.__dict__["kappa"] = Fraction(1)
    with pytest.raises(AssertionError, match="center"):
        judge(rule, laws)


def test_a_bound_without_its_last_gap_is_caught(laws, monkeypatch):
    """The public comparator's: t runs up to k, not k + 1."""

    def wrong(values: Any, rank: int, b: Fraction, most: float) -> Fraction:
        s = [0.0, *sorted(values), most]
        ks = range(len(values) + 1)
        padded = {i: s[min(max(i, 0), len(s) - 1)] for i in range(-len(s), 2 * len(s))}
        found = max(
            math.exp(-float(b) * k)
            * max(padded[rank + t] - padded[rank + t - k - 1] for t in range(k + 1))
            for k in ks
        )
        return max(Fraction(found), Fraction(1, 1 << 60))

    monkeypatch.setattr(smooth, "smooth_bound", wrong)
    with pytest.raises(AssertionError):
        judge(RULES[1], laws)


def test_a_bound_that_is_the_local_sensitivity_alone_is_caught(laws, monkeypatch):
    def local(values: Any, rank: int, b: Fraction, most: float) -> Fraction:
        s = [0.0, *sorted(values), most]
        return Fraction(max(s[rank] - s[rank - 1], s[rank + 1] - s[rank], 2.0**-60))

    monkeypatch.setattr(smooth, "smooth_bound", local)
    with pytest.raises(AssertionError):
        judge(RULES[0], laws)


def long_pairs() -> Iterator[tuple[np.ndarray, np.ndarray, int]]:
    """Neighbors of 4000 values, with a rank: random ones, and those whose far gap comes nearer."""
    rng = np.random.default_rng(9)
    values = np.sort(rng.exponential(size=4000) * 100).astype(np.int64).astype(float).clip(0, 5000)
    for _ in range(40):
        other = values.copy()
        other[rng.integers(4000)] = rng.choice([0, 5000])
        yield values, other, 3900
    for zeros in (10, 1000, 3900):  # the bound is 5000 e^-bk, and k one less: all that is allowed
        values = np.where(np.arange(4000) < zeros, 0.0, 5000.0)
        yield values, np.concatenate([values[1:], [5000.0]]), 5


def judge_long(bound: Any) -> None:
    """Long lists: the bound falls by e^-bk over thousands of k, and floats err at each."""
    b = Fraction(1, 300)
    for *lists, rank in long_pairs():
        least, most = sorted(bound(values, rank, b, 5000.0) for values in lists)
        assert most * exp_bracket(b, 100)[1] <= least * 2**100


def test_rounding_leaves_the_bound_smooth_where_it_decays_for_long():
    judge_long(smooth_bound)


def test_a_bound_that_decays_faster_than_it_is_told_is_caught():
    """A twin: as an error of 2^-36 in b would have it."""

    def wrong(values: Any, rank: int, b: Fraction, most: float) -> Fraction:
        return smooth_bound(values, rank, b + Fraction(1, 1 << 36), most)

    with pytest.raises(AssertionError):
        judge_long(wrong)


def test_what_the_proof_does_not_cover_is_refused():
    with pytest.raises(UnsupportedCombination, match="at most 5"):
        ThresholdRule(60, Fraction(1, 10**6), Fraction(1, 4), Fraction(6, 1000))
    with pytest.raises(UnsupportedCombination, match="beta_lt"):
        ThresholdRule(1, Fraction(1, 10), Fraction(1, 4), Fraction(1, 1000))
    with pytest.raises(UnsupportedCombination, match="2\\^-30"):
        ThresholdRule(Fraction(1, 10**9), Fraction(1, 10**6), Fraction(1, 4), Fraction(6, 1000))
    bad: list[tuple[Any, Any, Any, Any]] = [
        (0, 0.1, 0.5, 0.1),
        (-1, 0.1, 0.5, 0.1),
        (math.nan, 0.1, 0.5, 0.1),
        (1, 0, 0.5, 0.1),
        (1, 1, 0.5, 0.1),
        (1, 0.1, 0, 0.1),
        (1, 0.1, 1, 0.1),
        (1, 0.1, 0.5, 0),
        (1, 0.1, 0.5, 0.5),
        ("1", 0.1, 0.5, 0.1),
        (None, 0.1, 0.5, 0.1),
    ]
    for numbers in bad:
        with pytest.raises(InvalidParameter):
            ThresholdRule(*numbers)
