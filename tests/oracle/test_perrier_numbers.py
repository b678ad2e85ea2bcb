"""The systems of Perrier et al. 2019 against numbers computed elsewhere, to the printed digits."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from tidegauge.mechanisms import _kernels
from tidegauge.mechanisms.smooth import _weights, smooth_bound
from tidegauge.mechanisms.threshold_rule import ThresholdRule
from tidegauge.papers.perrier import (
    BinaryTree,
    first_needed,
    light_tail_error,
    light_tail_excess,
    outlier_error,
    quantile_risk,
    smooth_sensitivity,
    tree_error,
)

DATA = [1, 2, 4, 7, 11, 16, 22, 29, 37, 46]


def padded(values, upper):
    return [0.0, *sorted(values), float(upper)]


def gaps(values, rank, upper, k, last=None):
    """The largest s_(P+t) - s_(P+t-k-1) over t = 0 .. k+1, or up to ``last``."""
    ordered = sorted(values)

    def at(i):
        return 0 if i < 1 else ordered[i - 1] if i <= len(ordered) else upper

    return max(
        at(rank + t) - at(rank + t - k - 1) for t in range((k + 1 if last is None else last) + 1)
    )


def by_formula(values, rank, b, upper):
    """The definition, O(m^2) and more."""
    return max(math.exp(-b * k) * gaps(values, rank, upper, k) for k in range(len(values) + 1))


def by_pairs(ordered, weights, rank):
    """The kernel's plain twin: all pairs."""
    return max(
        (ordered[j] - ordered[i]) * weights[max(j - i - 1, 0)]
        for i in range(rank + 1)
        for j in range(rank, len(ordered))
    )


@pytest.mark.parametrize(
    ("first", "risk"),
    [(10_000, "1.428767e-01"), (20_000, "5.70960e-02"), (65_536, "2.662498e-03")],
)
def test_the_risk_of_the_quantile(first, risk):
    digits = len(risk.split("e")[0]) - 2
    assert risk == f"{quantile_risk(first):.{digits}e}"


def test_the_risk_of_the_quantile_at_a_hundred_thousand():
    assert "2.622457e-04" == f"{quantile_risk(100_000):.6e}"


def test_the_time_lag_is_where_the_saw_tooth_stays_below():
    assert 54_602 == first_needed(0.005, 0.85, 0.006)
    assert 60_716 == first_needed(0.005, 0.85, 0.004)
    risks = np.array([quantile_risk(m) for m in range(52_200, 55_000)])
    good = np.flatnonzero(risks <= 0.006) + 52_200
    assert 52_220 == good[0]
    assert 54_601 == np.flatnonzero(risks > 0.006)[-1] + 52_200
    chernoff = math.ceil(2 * math.log(1 / 0.006) / (0.005 * 0.15**2))
    assert 90_952 <= chernoff + 1 <= 90_954


@pytest.mark.parametrize(
    ("p", "lam", "chance"), [(0.2, 0.5, 0.1), (0.1, 0.7, 0.01), (0.5, 0.1, 0.4)]
)
def test_the_time_lag_equals_a_search_of_every_length(p, lam, chance):
    limit = math.ceil(2 * math.log(1 / chance) / (p * (1 - lam) ** 2)) + 2
    bad = [m for m in range(1, limit) if quantile_risk(m, p, lam) > chance]
    assert (bad[-1] + 1 if bad else 1) == first_needed(p, lam, chance)


@pytest.mark.parametrize(
    ("b", "rank", "expected"),
    [
        (0.5, 5, "7.305564878"),
        (0.5, 8, "26.119440323"),
        (0.5, 9, "38.211431562"),
        (0.5, 10, "54.000000000"),
        *[(0.05, rank, "69.313269693") for rank in (5, 8, 9, 10)],
    ],
)
def test_smooth_sensitivity_of_ten_numbers(b, rank, expected):
    found = smooth_sensitivity(DATA, rank, b, 100)
    assert expected == f"{found:.9f}"
    assert found >= by_formula(DATA, rank, b, 100) * (1 - 1e-15)


def test_gaps_of_ten_numbers():
    assert [5, 11, 18, 26] == [gaps(DATA, 5, 100, k) for k in range(4)]


def random_case(rng):
    """Values with ties, all equal, all zero, at the bound; a rank; b."""
    m = int(rng.integers(1, 40))
    upper = int(rng.choice([1, 7, 1000, 1 << 40]))
    kind = rng.integers(5)
    values = rng.integers(0, min(upper, int(rng.choice([1, 3, upper]))) + 1, m)
    if kind == 0:
        values[:] = values[0]
    elif kind == 1:
        values[:] = 0
    elif kind == 2:
        values[: m // 2] = upper
    return values, int(rng.integers(1, m + 1)), float(rng.choice([1e-6, 0.01, 0.3, 2, 50])), upper


def test_smooth_sensitivity_equals_brute_force_and_is_never_below():
    rng = np.random.default_rng(3)
    for _ in range(1000):
        values, rank, b, upper = random_case(rng)
        exactly = by_formula(values.tolist(), rank, b, upper)
        found = smooth_sensitivity(values, rank, b, upper)
        assert exactly <= found * (1 + 1e-15)
        np.testing.assert_allclose(found, exactly, rtol=1e-10, atol=upper * 2.0**-99)


def test_reals_and_long_lists_equal_brute_force():
    rng = np.random.default_rng(4)
    for m in (1, 2, 150):
        values = rng.exponential(size=m).clip(0, 5)
        for rank in {1, (m + 1) // 2, m}:
            exactly = by_formula(values.tolist(), rank, 0.05, 5.0)
            np.testing.assert_allclose(
                smooth_sensitivity(values, rank, 0.05, 5), exactly, rtol=1e-10
            )


def test_the_kernel_equals_its_twin():
    rng = np.random.default_rng(5)
    for _ in range(300):
        values, rank, b, upper = random_case(rng)
        ordered = np.array(padded(values.tolist(), upper))
        weights = _weights(Fraction(b), len(ordered) - 1)
        found = _kernels.largest_gap(ordered, weights, rank)
        np.testing.assert_allclose(found, by_pairs(ordered, weights, rank), rtol=1e-13)


@pytest.mark.parametrize("b", [Fraction(1, 1 << 29), Fraction(1, 97), Fraction(5)])
def test_weights_are_powers_within_their_claim(b):
    weights = _weights(b, 3000)
    with mpmath.workdps(60):
        for k in [0, 1, 2, 54, 55, 56, 1000, 2999]:
            exactly = mpmath.exp(-mpmath.mpf(b.numerator) * k / b.denominator)
            if b * k < 140:
                assert abs(weights[k] / exactly - 1) < 2.0**-51
            else:
                assert weights[k] <= exactly < 2.0**-201


def test_an_off_by_one_in_the_inner_maximum_is_caught():
    """The public comparator stops at t = k: its bound is none, and not smooth."""

    def wrong(values, rank, b, upper):
        return max(
            math.exp(-b * k) * gaps(values, rank, upper, k, last=k) for k in range(len(values) + 1)
        )

    near, far = [0, 0, 0, 3], [0, 0, 3, 3]  # neighbors: the third value is replaced
    local = abs(sorted(near)[2] - sorted(far)[2])
    assert wrong(near, 3, 0.5, 3) < local
    assert smooth_sensitivity(near, 3, 0.5, 3) >= local


def test_the_constants_of_the_threshold():
    rule = ThresholdRule(1, Fraction(1, 10**6), Fraction(17, 4000), Fraction(6, 1000))
    assert ".0344621818" == f"{float(rule.b):.10f}"[1:]
    assert "4.4228486" == f"{float(rule.shift):.7f}"
    assert "1.4496023660" == f"{float(rule.kappa):.10f}"
    small = ThresholdRule(
        Fraction(1, 10), Fraction(1, 10**6), Fraction(17, 4000), Fraction(6, 1000)
    )
    assert "1.4396109964" == f"{float(small.kappa):.10f}"
    for delta, kappa in ((1e-12, 1.19), (1e-6, 1.45), (1e-3, 2.5)):
        assert abs(kappa - float(ThresholdRule(1, delta, 0.00425, 0.006).kappa)) < 0.03


def judge_constants(rule):
    with mpmath.workdps(80):
        big = lambda x: mpmath.mpf(x.numerator) / x.denominator  # noqa: E731
        a, b, shift, kappa = (big(x) for x in (rule.a, rule.b, rule.shift, rule.kappa))
        slack = mpmath.mpf(2) ** -40
        assert 1 - slack < b * mpmath.log(2 / big(rule.delta)) / a <= 1
        assert 0 <= shift - mpmath.log(1 / (2 * big(rule.beta_lt))) < slack
        assert 0 <= kappa - 1 / (1 - (mpmath.exp(b) - 1) * shift / a) < slack


@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(1), Fraction(5)])
@pytest.mark.parametrize("delta", [Fraction(1, 10**3), Fraction(1, 10**6), Fraction(1, 10**12)])
def test_constants_are_rounded_towards_more_noise(epsilon, delta):
    judge_constants(ThresholdRule(epsilon, delta, Fraction(1, 100), Fraction(6, 1000)))


@pytest.mark.parametrize(("name", "sign"), [("b", 1), ("shift", -1), ("kappa", -1)])
def test_a_constant_that_is_rounded_towards_less_noise_is_caught(name, sign):
    """Twins: 2^-40 to the other side."""
    rule = ThresholdRule(1, Fraction(1, 10**6), Fraction(1, 100), Fraction(6, 1000))
    rule.__dict__[name] = getattr(rule, name) + Fraction(sign, 1 << 40)
    with pytest.raises(AssertionError):
        judge_constants(rule)


def test_the_rank_is_counted_by_fractions():
    rule = ThresholdRule(1, 1e-6, Fraction(17, 4000), 0.006)
    assert 60_000 - 255 + 1 == rule.rank(60_000)
    assert math.ceil(0.85 * 0.005 * 60_000) == 256  # in floats
    assert [1, 10] == [ThresholdRule(1, 1e-6, 0.5, 0.006).rank(m) for m in (1, 19)]


def test_the_tail_of_an_exponential_law():
    quantile = -math.log(0.005)
    assert "5.298317" == f"{quantile:.6f}"
    np.testing.assert_allclose(light_tail_excess(quantile, 0.005), 0.005)


def test_errors_of_the_paper_s_example():
    plain, cut = tree_error(1440, 10**6, 1, 0.02), tree_error(150, 10**6, 1, 0.02)
    assert ("1.66903e+06", "1.73858e+05", "9.6") == (
        f"{plain:.5e}",
        f"{cut:.5e}",
        f"{plain / cut:.1f}",
    )
    assert "6.755e+06" == f"{outlier_error(1290, 10**6, 0.005, 0.004):.3e}"
    assert "1.5e+05" == f"{light_tail_error(150, 10**6, 0.005, 0.004):.1e}"

    def bound(h):  # at any h, of the same Chernoff bound
        return (math.log(250) + 1e6 * math.log1p(0.005 * math.expm1(1290 * h))) / h

    assert "4.206e+07" == f"{bound(1 / (1290 * 0.005 * 1e6)):.3e}"  # the paper's h
    assert "6.755e+06" == f"{bound(3.6e-5):.3e}"


def test_the_worst_noise_of_the_binary_tree():
    with BinaryTree(1, end=1 << 20, epsilon=1) as tree:
        assert 21 == tree.sensitivity
        assert "132.816" == f"{tree.noise_std((1 << 20) - 1):.3f}"
        assert max(tree.noise_std(t) for t in range(1, 1 << 12)) < tree.noise_std((1 << 20) - 1)
    with BinaryTree(1440, end=7, epsilon=1, grain=1) as small:  # three levels
        assert 3 * 1440 == small.sensitivity


def test_bounds_and_smoothness_may_be_of_any_size():
    assert 2 == round(smooth_sensitivity([1, 3, 3], 2, 1e12, 9), 9)
    np.testing.assert_allclose(float(smooth_bound(np.zeros(3), 3, Fraction(1), 1e90)), 1e90)
