from fractions import Fraction

import numpy as np
import pytest
from twins.cases import ADD, ONE

from tidegauge.errors import (
    InvalidInput,
    InvalidParameter,
    StreamEnded,
    UnsupportedCombination,
)
from tidegauge.privacy.unit import Contributions, Event, Neighbors
from tidegauge.strategies.decay import (
    Custom,
    Exponential,
    Polynomial,
    Running,
    Step,
    Window,
)
from tidegauge.strategies.identity import Identity
from tidegauge.strategies.strategy import MOST_STEPS, Norm


@pytest.mark.parametrize("bits", [-1, 41, 0.5, "1", None, True])
def test_impossible_lattices_are_refused(bits):
    with pytest.raises(InvalidParameter, match="Expected lattice_bits"):
        Identity(bits)


def test_l1_belongs_to_whole_grains():
    assert frozenset(Norm) == Identity(0).norms
    assert frozenset({Norm.L2}) == Identity(1).norms
    with pytest.raises(UnsupportedCombination, match="Expected lattice_bits=0 under L1"):
        Identity(1).sensitivity(Norm.L1, ONE)


@pytest.mark.parametrize(
    ("unit", "l1", "l2"),
    [
        (Event(), 6, 18),
        (Contributions(5), 30, 25 * 18),
        (Contributions(5, min_separation=1), 30, 5 * 18),
    ],
)
def test_ids_pay_for_their_events(unit, l1, l2):
    neighbors = Neighbors(unit, ADD, 0, 3, 2, 4)
    assert l1 == Identity(0).sensitivity(Norm.L1, neighbors)
    squared = float(Identity(2).sensitivity(Norm.L2, neighbors) / 4) ** 2
    assert l2 == pytest.approx(squared, rel=1e-12)


def test_a_perfect_root_is_exact():
    assert Fraction(8) == Identity(2).sensitivity(Norm.L2, Neighbors(Event(), ADD, 0, 1, 4, 4))


def test_the_sensitivity_holds_for_ever():
    assert Identity(0).hard_end is None
    assert Identity(0).absolute_gain == 1
    with pytest.raises(StreamEnded, match="Start a new gauge"):
        Identity(0).coordinates(MOST_STEPS, 1)


@pytest.mark.parametrize("x", [np.zeros((2, 3)), np.zeros((2, 4), dtype=np.int64)])
def test_arrays_of_another_form_are_refused(x):
    with pytest.raises(InvalidInput, match="Expected totals of dtype int64"):
        Identity(0).encode(Identity(0).init_encoder(3), x, 0)


def test_encoding_leaves_the_totals_alone():
    x = np.arange(6).reshape(2, 3)
    coordinates = Identity(0).encode(Identity(0).init_encoder(3), x, 0)
    coordinates += 100
    assert list(range(6)) == x.ravel().tolist()


@pytest.mark.parametrize(
    ("view", "limit"),
    [
        (Step(), 1.0),
        (Running(), 1e9),
        (Window(24), 24.0),
        (Window(10**12), 1e9),
        (Exponential(factor=0.5), 4 / 3),
        (Exponential(factor=0.999999), 1 / (1 - 0.999999**2)),
        (Custom((1.0, -2.0)), 5.0),
    ],
)
def test_the_variance_after_a_billion_steps_is_known_at_once(view, limit):
    gain = Identity(0).variance_gain(view, np.array([10**9]))
    assert float(gain[0]) == pytest.approx(limit, rel=1e-9)
    weights, counts = Identity(0).noise_terms(view, 10**9)
    assert float((weights**2 * counts).sum()) == pytest.approx(limit, rel=1e-6)
    assert counts.sum() <= 10**9


def test_a_slow_power_law_has_a_law_of_few_terms():
    weights, counts = Identity(0).noise_terms(Polynomial(0.5), 10**6)
    harmonic = np.log(10**6) + np.euler_gamma
    assert float((weights**2 * counts).sum()) == pytest.approx(harmonic, rel=0.01)
    assert len(weights) < 5000
    assert counts.sum() == 10**6


def test_grouped_weights_keep_the_shape_of_the_law():
    view = Exponential(factor=1 - 1e-4)
    weights, counts = Identity(0).noise_terms(view, 10**6)
    each = view.weights(10**6)
    for power in (2, 4, 6):
        expected = (each**power).sum()
        assert expected == pytest.approx(float((weights**power * counts).sum()), rel=1e-4)


def test_errors_of_running_sums_are_those_of_adding_up():
    assert Identity(0).max_error(Running(), 100) == pytest.approx(10.0)
    assert Identity(5).max_error(Running(), 100) == pytest.approx(10.0)
    assert Identity(0).max_error(Running(), 100, Norm.L1) == pytest.approx(10 * 2**0.5)
    assert Identity(0).mean_squared_error(Running(), 3) == pytest.approx(2.0)
    assert Identity(0).mean_squared_error(Running(), 3, Norm.L1) == pytest.approx(4.0)


def test_its_matrices_are_identities():
    encoder, decoder = Identity(4).matrices(5)
    assert np.eye(5).tolist() == encoder.tolist() == decoder.tolist()
