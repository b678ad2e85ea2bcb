"""ExponentialSum against numbers computed independently, to the digits that were noted."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import exp1
from twins.cases import ONE

from tidegauge.errors import InvalidParameter
from tidegauge.papers.bolot import ExponentialSum, InputPerturbation
from tidegauge.strategies.decay import Exponential
from tidegauge.strategies.decayed import DecayedTree, printed_sensitivity
from tidegauge.strategies.strategy import Norm


def sensitivity(alpha: float, levels: int = 60) -> float:
    """S(alpha), from its definition in floats."""
    return math.fsum(alpha ** (2.0**k - 1) for k in range(levels))


@pytest.mark.parametrize(
    ("alpha", "expected"),
    [(0.5, 1.632843018044), (0.7, 2.130117639222), (0.9, 3.352651639591), (0.99, 6.377676613370)],
)
def test_the_exact_sensitivity(alpha: float, expected: float) -> None:
    assert round(sensitivity(alpha), 12) == expected
    tree = DecayedTree.of(Exponential(factor=alpha), 30)
    np.testing.assert_allclose(float(tree.sensitivity(Norm.L1, ONE)) / 2**30, expected, rtol=3e-9)


@pytest.mark.parametrize(
    ("alpha", "steps", "expected"),
    [(0.9, 64, 3.352650095051), (0.9, 1000, 3.352651639591), (0.99, 1000, 6.377642350890)],
)
def test_a_stream_that_ends_moves_as_much_as_its_own_nodes(
    alpha: float, steps: int, expected: float
) -> None:
    assert round(sensitivity(alpha, levels=steps.bit_length()), 12) == expected
    C = DecayedTree.of(Exponential(factor=alpha), 30).encoder_matrix(steps)
    np.testing.assert_allclose(C.sum(axis=0).max(), expected, rtol=3e-9)


@pytest.mark.parametrize(
    ("alpha", "expected"), [(0.9, 6.545858357652), (0.99, 9.445155697499), (0.7, 5.633914202544)]
)
def test_the_printed_lambda(alpha: float, expected: float) -> None:
    np.testing.assert_allclose(float(printed_sensitivity(alpha)), expected, rtol=1e-9)
    with ExponentialSum(alpha, 1, as_printed=True) as system:
        np.testing.assert_allclose(float(system.sensitivity), expected, rtol=1e-8)


@pytest.mark.parametrize(
    ("alpha", "step", "squares"),
    [
        *((0.9, step, 1.0) for step in (1, 2, 64, 256)),
        (0.9, 3, 1.81),
        (0.9, 7, 2.341441),
        (0.9, 15, 2.570208925),
        (0.9, 255, 2.614057377),
        (0.9, 100, 1.430974739),
        (0.9, 1000, 1.185520494),
        (0.99, 255, 5.426019744),
    ],
)
def test_the_squared_weights_of_a_step(alpha: float, step: int, squares: float) -> None:
    decay = Exponential(factor=alpha)
    gain = DecayedTree.of(decay, 20).variance_gain(decay, np.array([step]))[0] * 4.0**20
    np.testing.assert_allclose(gain, squares, rtol=3e-10)


@pytest.mark.parametrize(
    ("alpha", "exact", "printed"),
    [(0.9, 7.665862, 14.967152), (0.99, 21.009619, 31.114642)],
)
def test_the_std_at_step_255(alpha: float, exact: float, printed: float) -> None:
    with ExponentialSum(alpha, 1) as ours, ExponentialSum(alpha, 1, as_printed=True) as theirs:
        assert round(ours.noise_std(255), 6) == exact
        assert round(theirs.noise_std(255), 6) == printed


@pytest.mark.parametrize(("alpha", "expected"), [(0.9, 2.614057377), (0.99, 5.431996578)])
def test_the_largest_column_is_the_worst_row(alpha: float, expected: float) -> None:
    decay = Exponential(factor=alpha)
    tree = DecayedTree.of(decay, 20)
    column = float(tree.sensitivity(Norm.L2, ONE)) ** 2 / 4.0**20
    row = tree.worst_variance_gain(decay, 1 << 30) * 4.0**20
    np.testing.assert_allclose([column, row], expected, rtol=2e-6)
    np.testing.assert_allclose(row, expected, rtol=3e-10)


def test_the_printed_lambda_covers_the_sensitivity_where_it_is_claimed_and_not_everywhere() -> None:
    claimed = 1 - np.geomspace(1 / 3, 1e-9, 2000)
    ratios = [float(printed_sensitivity(a)) / sensitivity(a) for a in claimed.tolist()]
    assert 1 < min(ratios)
    np.testing.assert_allclose(ratios[0], 2.76, rtol=2e-3)  # at 2/3
    for alpha, loose in ((0.9, 1.95), (0.99, 1.48), (0.9999, 1.24)):
        ratio = float(printed_sensitivity(alpha)) / sensitivity(alpha)
        np.testing.assert_allclose(ratio, loose, rtol=4e-3)
    assert float(printed_sensitivity(0.1454)) < sensitivity(0.1454)
    assert float(printed_sensitivity(0.1455)) > sensitivity(0.1455)


def test_where_the_printed_lambda_fails_it_is_refused() -> None:
    for alpha in (0.01, 0.1, Fraction(1453, 10000)):
        with pytest.raises(InvalidParameter, match=r"0\.1454"):
            ExponentialSum(alpha, 1, as_printed=True)
        ExponentialSum(alpha, 1).close()
    ExponentialSum(0.146, 1, as_printed=True).close()


@pytest.mark.parametrize(
    ("alpha", "inputs", "exact", "printed"),
    [
        (0.9, 3.24, 7.67, 14.97),
        (0.99, 10.03, 21.02, 31.13),
        (0.999, 31.6, 40.1, 52.8),
        (0.9999, 100.0, 63.4, 78.3),
    ],
)
def test_worst_stds_beside_those_of_input_perturbation(
    alpha: float, inputs: float, exact: float, printed: float
) -> None:
    worst = (1 << 30) - 1
    with ExponentialSum(alpha, 1) as ours, ExponentialSum(alpha, 1, as_printed=True) as theirs:
        found = [ours.noise_std(worst), theirs.noise_std(worst)]
    with InputPerturbation(1, Exponential(factor=alpha)) as noisy:
        found.append(noisy.noise_std(worst))
    np.testing.assert_allclose(found, [exact, printed, inputs], rtol=2e-3)


def test_the_tree_beats_the_stream_itself_from_9996_on() -> None:
    def worst(alpha: float) -> float:
        squares = math.fsum(alpha ** (2 * (2.0**k - 1)) for k in range(60))
        return sensitivity(alpha) * math.sqrt(2 * squares)

    for alpha, better in ((0.99956, False), (0.99957, True)):
        assert (worst(alpha) < math.sqrt(2 / (1 - alpha**2))) is better


def test_the_constants_of_the_printed_bound() -> None:
    """E1(1), the constant of its expansion, and the inequality in the proof of Lemma 2."""
    assert round(float(exp1(1)), 6) == 0.219384
    constant = quad(lambda t: (1 - math.exp(-t)) / t, 0, 1)[0]  # Ein(1)
    np.testing.assert_allclose(constant, 0.796600, atol=5e-7)
    for alpha in (0.7, 0.9, 0.99, 0.9999):  # the tail of S as an integral: ln 1/alpha, not twice
        tail = float(exp1(math.log(1 / alpha))) / math.log(2) / alpha
        assert sensitivity(alpha) - 1 <= tail
        assert sensitivity(alpha) - 1 > float(exp1(2 * math.log(1 / alpha))) / math.log(2) / alpha
    assert 1 / (1 - 0.5) <= math.exp(1.5 * 0.5)
    assert 1 / (1 - 0.5) > math.exp(-1.5 * 0.5)  # as printed
    y = np.linspace(0, 0.5625, 1000)
    assert (1 / (1 - y) <= np.exp(1.5 * y) + 1e-15).all()


def test_one_item_needs_one_node() -> None:
    decay = Exponential(factor=0.5)
    _, counts = DecayedTree.of(decay, 20).noise_terms(decay, 1)
    assert [1] == counts.tolist()
    assert 0 == math.ceil(math.log2(1))  # what Lemma 1 allows
    for step in range(1, 200):
        _, counts = DecayedTree.of(decay, 20).noise_terms(Exponential(factor=0.5), step)
        assert counts.sum() <= step.bit_count()


def test_the_error_grows_with_the_log_of_the_memory() -> None:
    """Theorem 5, case 1, as corrected: log^1.5 of the memory, not the memory itself."""
    stds, logs = [], []
    for power in (8, 12, 16, 20):
        with ExponentialSum(1 - Fraction(1, 1 << power), 1) as system:
            stds.append(system.noise_std((1 << (power + 3)) - 1))
            logs.append(power)
    ratios = np.array(stds) / np.array(logs) ** 1.5
    assert ratios.max() / ratios.min() < 1.2
    assert stds[-1] / stds[0] < 5 < 1 << 12  # the memory grew by 4096
