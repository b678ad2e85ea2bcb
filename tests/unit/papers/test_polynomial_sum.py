"""PolynomialSum: what the paper claims, what its printed form does instead, and the correction."""

import math
from fractions import Fraction

import numpy as np
import pytest

from tidegauge.errors import InvalidParameter, UnsupportedCombination
from tidegauge.papers.polynomial_sum import PolynomialSum
from tidegauge.privacy.guarantee import ZCDP, PureDP
from tidegauge.privacy.unit import Event, NeighboringRelation, Neighbors
from tidegauge.strategies.decay import Polynomial
from tidegauge.strategies.identity import Identity
from tidegauge.strategies.stepped import PolynomialSum as Windows
from tidegauge.strategies.stepped import polynomial_sum, stepped_windows
from tidegauge.strategies.strategy import Float64, Norm
from tidegauge.testing import seeded_system

REACH = 4096
ONE = Neighbors(Event(), NeighboringRelation.ADD_OR_REMOVE_ONE, 0, 1, 1, 1)


def ratios(c: float, beta: float, *, printed: bool) -> Float64:
    strategy = polynomial_sum(c, beta, REACH, printed=printed)
    ages = np.arange(REACH, dtype=np.float64)
    return np.asarray(strategy.decay.weights(REACH) * (ages + 1) ** c)


@pytest.mark.parametrize("c", [0.7, 1.05, 1.5, 2, 3])
@pytest.mark.parametrize("beta", [0.1, 0.25, 0.5, 0.9])
def test_weights_are_within_beta_below_the_decay(c: float, beta: float) -> None:
    found = ratios(c, beta, printed=False)
    assert found.min() >= (1 - beta) * (1 - 1e-9)
    assert found.max() <= 1 + 1e-9
    assert found[0] == 1


@pytest.mark.parametrize(
    ("c", "beta", "first"), [(1.5, 0.1, 0.3874), (1.5, 0.25, 0.4219), (2, 0.25, 0.3164)]
)
def test_printed_weights_are_neither_above_nor_below(c: float, beta: float, first: float) -> None:
    found = ratios(c, beta, printed=True)
    assert first == round(float(found[0]), 4)
    assert found[0] < 1 - beta  # the claim (1 - beta) F <= F' fails at age 0
    assert found.max() > 1 + 1e-3  # and F' <= F fails further back


def test_no_window_is_skipped() -> None:
    """Against the definition, power after power."""
    for c, beta in ((1.05, 0.1), (1.5, 0.25), (3.0, 0.5), (2.0, 0.9)):
        found = dict(stepped_windows(Fraction(str(c)), Fraction(str(beta)), 500))
        ages = np.arange(500, dtype=np.float64)
        powers = np.ceil(c * np.log(ages + 1) / -np.log1p(-beta) - 1e-9)
        expected = {int(p): int(ages[powers == p].max()) + 1 for p in np.unique(powers)}
        assert expected == found


def test_the_printed_algorithm_stalls_at_its_first_empty_window() -> None:
    """``if i = b(j) + 1`` fires once a step: with b(j + 1) = b(j) it never fires again."""
    c, beta = 1.5, 0.25
    b = [int((1 - beta) ** (-j / c) * (1 + 1e-12)) - 1 for j in range(60)]
    started, j = [], 1
    for i in range(1, 1000):
        if i == b[j] + 1:
            started.append(j)
            j += 1
    assert started == [1] or len(started) < 5
    assert len(stepped_windows(Fraction(3, 2), Fraction(1, 4), 1000)) > 30


@pytest.mark.parametrize(
    ("c", "beta", "expected"),
    [
        (1.5, 0.1, 2.355),
        (1.5, 0.25, 2.091),
        (1.5, 0.5, 1.835),
        (2, 0.1, 1.597),
        (2, 0.25, 1.558),
        (2, 0.5, 1.479),
    ],
)
def test_sensitivity_of_the_windows_with_equal_noise(
    c: float, beta: float, expected: float
) -> None:
    c_exact, beta_exact = Fraction(str(c)), Fraction(str(beta))
    begin, charged = 0, 0.0
    for power, end in stepped_windows(c_exact, beta_exact, 1 << 20):
        charged += (1 - beta) ** power * (end - begin).bit_length()  # floor(log2 W) + 1 levels
        begin = end
    assert expected == round(charged, 3)


@pytest.mark.parametrize(
    ("c", "beta", "expected", "printed"),
    [
        (1.5, 0.1, 2.355, 20.13),
        (1.5, 0.25, 2.091, 8.427),
        (1.5, 0.5, 1.835, 4.667),
        (2, 0.1, 1.597, 17.6),
        (2, 0.25, 1.558, 7.32),
        (2, 0.5, 1.479, 4.0),
    ],
)
def test_the_charge_of_equal_noise_is_the_exact_one_without_roots(
    c: float, beta: float, expected: float, printed: float
) -> None:
    """Dropping a root saves the window's weight, in windows of a power of two alone."""
    found = stepped_windows(Fraction(str(c)), Fraction(str(beta)), 1 << 16)
    powers, ends = zip(*found, strict=True)
    factors = [(1 - beta) ** power for power in powers]
    weights = tuple(max(1, round(factor * (1 << 20))) for factor in factors)
    strategy = Windows(Fraction(str(beta)), powers, ends, weights)
    charged = float(strategy.sensitivity(Norm.L1, ONE)) / (1 << 20)
    lengths = np.diff((0, *ends)).tolist()
    roots = [f for f, n in zip(factors, lengths, strict=True) if n > 1 and n.bit_count() == 1]
    assert expected == round(charged + sum(roots), 3)
    assert charged < expected
    lambda_lg = -math.log2(1 - beta) / (c * beta**2) + 1 / beta  # what the paper charges
    assert printed == round(lambda_lg, 2 if printed > 9 else 3)
    assert lambda_lg > 2 * charged


@pytest.mark.parametrize(
    ("c", "beta", "expected"),
    [
        (1.5, 0.1, 2.355),
        (1.5, 0.25, 2.091),
        (1.5, 0.5, 1.835),
        (2, 0.1, 1.597),
        (2, 0.25, 1.558),
        (2, 0.5, 1.479),
    ],
)
def test_the_class_as_printed_charges_what_its_levels_cost(
    c: float, beta: float, expected: float
) -> None:
    """With roots a window of no power of two has one level more than floor(log2 W) + 1."""
    found = stepped_windows(Fraction(str(c)), Fraction(str(beta)), 1 << 16)
    powers, ends = zip(*found, strict=True)
    factors = [(1 - beta) ** power for power in powers]
    weights = tuple(max(1, round(factor * (1 << 20))) for factor in factors)
    strategy = Windows(Fraction(str(beta)), powers, ends, weights, printed=True)
    charged = float(strategy.sensitivity(Norm.L1, ONE)) / (1 << 20)
    lengths = np.diff((0, *ends)).tolist()
    more = [f for f, n in zip(factors, lengths, strict=True) if n.bit_count() > 1]
    assert expected == round(charged - sum(more), 3)
    with PolynomialSum(c, beta, 1, reach=1 << 12, as_printed=True) as system:
        printed = stepped_windows(Fraction(str(c)), Fraction(str(beta)), 1 << 12, printed=True)
        own = system.plan.strategy
        assert isinstance(own, Windows)
        begin, levels = 0, []
        for power, end in printed:
            levels.append((1 - beta) ** power * ((end - begin - 1).bit_length() + 1))
            begin = end
        first = (1 - beta) ** printed[0][0]
        expected_own = sum(levels) / first * own.weights[0]
        assert float(system.sensitivity) == pytest.approx(expected_own, rel=1e-4)


def _worst_std(c: float, beta: float, reach: int, *, printed: bool = False) -> float:
    strategy = polynomial_sum(c, beta, reach, printed=printed)
    charged = float(strategy.sensitivity(Norm.L1, ONE))
    return charged * (2 * strategy.worst_variance_gain(strategy.decay, 1 << 20)) ** 0.5


def test_the_variance_is_bounded_for_every_reach_and_the_printed_one_grows() -> None:
    ours = [_worst_std(1.5, 0.25, reach) for reach in (1 << 8, 1 << 12, 1 << 16)]
    printed = [_worst_std(1.5, 0.25, reach, printed=True) for reach in (1 << 8, 1 << 12, 1 << 16)]
    assert ours[2] < 1.05 * ours[1] < 1.25 * ours[0]
    assert printed[2] > 1.3 * printed[1] > 1.3**2 * printed[0]
    assert printed[1] > 2 * ours[1]


@pytest.mark.parametrize(("c", "best"), [(1.05, 30.9), (1.5, 12.6), (2, 6.3), (3, 2.8)])
def test_it_is_no_better_than_known_and_worse_than_noise_on_each_step(
    c: float, best: float
) -> None:
    ours = _worst_std(c, 0.25, 1 << 14)
    assert ours < best * 1.1
    steps = np.array([1 << 14])
    plain = (2 * Identity(0).variance_gain(Polynomial(c, reach=1 << 14), steps)[0]) ** 0.5
    assert plain < ours


def test_shares_are_those_of_least_variance() -> None:
    strategy = polynomial_sum(1.5, 0.5, 256)
    steps = np.arange(1, 1024)
    weights = np.array(strategy.weights)
    moved = []
    for factor in (0.9, 1.1):
        for k in range(len(weights)):
            other = weights.astype(float)
            other[k] *= factor
            moved.append(_bound(strategy, other))
    assert _bound(strategy, weights.astype(float)) <= min(moved)
    assert strategy.variance_gain(strategy.decay, steps).max() > 0


def _bound(strategy, weights):
    """Sum of worst variances of all windows at epsilon 1, for any row weights."""
    scale = (strategy._heights * weights).sum()
    worst = [paths.worst_price(length, 1 << 20) for paths, length, _, _ in strategy._windows()]
    return float((np.array(worst) * (strategy._factors * scale / weights) ** 2).sum())


def test_a_system_releases_the_stepped_sum() -> None:
    readings = np.random.Generator(np.random.PCG64(4)).random((200, 2))
    system = seeded_system(6, PolynomialSum(1.5, 0.5, 9e5, reach=64, cells=2))
    released = system.update_many(readings)
    weights = system.decay.weights(200)
    exact = np.array([weights[: t + 1][::-1] @ readings[: t + 1] for t in range(200)])
    np.testing.assert_allclose(released, exact, atol=1e-4)


def test_the_planner_never_picks_it() -> None:
    import tidegauge as tg

    strategy = polynomial_sum(1.5, 0.5, 64)
    found = tg.plan(views=[strategy.decay], epsilon=1, unit="event")
    assert not any("PolynomialSum" in candidate.strategy for candidate in found.candidates)


@pytest.mark.parametrize(
    ("c", "beta", "reach"),
    [
        (0, 0.5, 8),
        (-1, 0.5, 8),
        (1, 0, 8),
        (1, 1, 8),
        (1, 0.5, 0),
        (1, 0.5, 1 << 17),
        ("1", 0.5, 8),
    ],
)
def test_impossible_parameters_are_refused(c: object, beta: object, reach: object) -> None:
    with pytest.raises(InvalidParameter, match="Expected"):
        PolynomialSum(c, beta, 1.0, reach=reach)  # type: ignore[arg-type]  # refused


@pytest.mark.slow
def test_too_many_windows_and_gaussian_noise_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="windows"):
        polynomial_sum(50, 0.001, 1 << 16)
    with pytest.raises(InvalidParameter, match="Expected"):
        polynomial_sum(50, 1e-9, 1 << 16)
    with pytest.raises(UnsupportedCombination, match=r"Norm\.L1"):
        polynomial_sum(1, 0.5, 8).sensitivity(Norm.L2, ONE)


@pytest.mark.parametrize("printed", [False, True])
@pytest.mark.parametrize("c", [1e-4, 1e-9])
def test_a_decay_that_hardly_falls_has_two_windows(c: float, printed: bool) -> None:
    """The first age with half the weight is beyond all floats."""
    system = PolynomialSum(c, 0.25, 1, as_printed=printed)
    assert [1, 1 if printed else 0.75] == pytest.approx(system.decay.weights(2))
    assert 4096 == np.count_nonzero(system.decay.weights(5000))


@pytest.mark.parametrize(
    ("c", "beta", "named", "remedy"),
    [
        (99.9, 0.25, "c=99.9, beta=0.25 and reach=4096", (99.9, 0.9, 512)),
        (1.5, 1e-9, "beta=1e-09", (1.5, 0.25, 4096)),
        (99.9, 0.9, "c=99.9 and reach=4096", (80, 0.9, 4096)),
    ],
)
def test_numbers_that_make_too_much_are_named_with_what_helps(
    c: float, beta: float, named: str, remedy: tuple[float, float, int]
) -> None:
    with pytest.raises(InvalidParameter, match=named) as refused:
        polynomial_sum(c, beta, REACH)
    advice = str(refused.value).rpartition("Use ")[2]
    assert ("larger beta" in advice) == (beta < remedy[1])
    assert "smaller c" in advice
    assert polynomial_sum(*remedy).decay.weights(remedy[2]).min() > 0


def test_a_guarantee_serves_in_place_of_epsilon() -> None:
    whole = PolynomialSum(1.5, 0.5, 1, reach=64)
    other = PolynomialSum(1.5, 0.5, guarantee=PureDP(Fraction(1)), reach=64)
    assert whole.plan.fingerprint == other.plan.fingerprint
    with pytest.raises(UnsupportedCombination, match="PolynomialSum") as refused:
        PolynomialSum(1.5, 0.5, guarantee=ZCDP(Fraction(1)), reach=64)
    assert ".." not in str(refused.value)
    for nothing_or_both in ({}, {"epsilon": 1, "guarantee": PureDP(Fraction(1))}):
        with pytest.raises(InvalidParameter):
            PolynomialSum(1.5, 0.5, reach=64, **nothing_or_both)  # type: ignore[arg-type]  # refused
