from fractions import Fraction

import numpy as np
import pytest
from twins.blts import RUNNING, UNIT
from twins.cases import ADD, ONE
from twins.exact_filters import coefficients, column_norm_squared

from tidegauge.errors import (
    InvalidInput,
    InvalidParameter,
    StreamEnded,
    UnsupportedCombination,
)
from tidegauge.privacy.unit import Contributions, Event, NeighboringRelation, Neighbors
from tidegauge.strategies.blt import Blt, fit
from tidegauge.strategies.decay import Running, Step, Window
from tidegauge.strategies.identity import Identity
from tidegauge.strategies.strategy import MOST_STEPS, Norm

HALF, QUARTER = UNIT // 2, UNIT // 4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gaps": (), "weights": ()}, "Expected gaps to be a tuple of 1 to 8"),
        ({"gaps": [HALF]}, "Expected gaps to be a tuple"),
        ({"gaps": tuple(range(1, 10)), "weights": (1,) * 9}, "Fit fewer buffers"),
        ({"gaps": (0,)}, r"Expected gaps\[0\] in \[1, "),
        ({"gaps": (UNIT,)}, r"Expected gaps\[0\] in \[1, "),
        ({"gaps": (0.5,)}, r"Expected gaps\[0\] to be an integer"),
        ({"weights": (0,)}, r"Expected weights\[0\] in \[1, "),
        ({"weights": (-1,)}, r"Expected weights\[0\] in \[1, "),
        ({"weights": (UNIT,)}, r"Expected weights\[0\] in \[1, "),
        ({"weights": (1, 1)}, "as many weights as gaps, got 2 and 1"),
        ({"gaps": (HALF, HALF), "weights": (1, 1)}, "Expected gaps to increase"),
        ({"gaps": (HALF, QUARTER), "weights": (1, 1)}, "Expected gaps to increase"),
        ({"weights": (HALF,)}, "got a sum of 1. The zeros"),
        ({"gaps": (QUARTER, HALF), "weights": (HALF, QUARTER)}, "would not interlace"),
        ({"lattice_bits": 41}, r"lattice_bits in \[-20, 40\]"),
        ({"lattice_bits": -21}, r"lattice_bits in \[-20, 40\]"),
        ({"lattice_bits": True}, "lattice_bits to be an integer"),
        ({"charged_steps": 0}, "charged_steps in"),
        ({"charged_steps": MOST_STEPS + 1}, "charged_steps in"),
        ({"gaps": (1,)}, "Coordinates would overflow"),
    ],
)
def test_impossible_parameters_are_refused(change, message):
    sound = {"gaps": (HALF,), "weights": (QUARTER,), "lattice_bits": 20, "charged_steps": 100}
    with pytest.raises(InvalidParameter, match=message):
        Blt(**{**sound, **change})


def test_numpy_integers_become_exact_ones():
    numbers = np.array([QUARTER], dtype=np.uint64)
    blt = Blt(tuple(numbers), tuple(numbers), np.int64(3), np.int64(9))
    assert Blt((QUARTER,), (QUARTER,), 3, 9) == blt
    assert all(type(n) is int for n in (*blt.gaps, *blt.weights, blt.lattice_bits))
    assert type(Identity(np.int64(2)).lattice_bits) is int


def test_without_an_end_the_numbers_of_the_coordinates_end_the_stream():
    blt = Blt(*RUNNING, 30)
    assert blt.hard_end == MOST_STEPS
    assert int(blt.coordinates(MOST_STEPS - 1, 1)[0]) < 1 << 44
    with pytest.raises(StreamEnded, match="Noise would be used twice"):
        blt.coordinates(MOST_STEPS, 1)
    with pytest.raises(StreamEnded):
        blt.encode(blt.init_encoder(1), np.zeros((1, 1), dtype=np.int64), MOST_STEPS)


def test_the_roundings_of_every_touched_cell_and_charged_step_are_paid():
    nine = Neighbors(Event(), ADD, 0, 1, 9, 9)
    coarse = Blt(*RUNNING, 0, 10_000)
    norm = float(column_norm_squared(*RUNNING)) ** 0.5
    assert float(coarse.sensitivity(Norm.L2, ONE)) == pytest.approx(norm + 100, rel=1e-9)
    assert float(coarse.sensitivity(Norm.L2, nine)) == pytest.approx(3 * norm + 300, rel=1e-9)


def test_a_bounded_id_pays_for_the_cells_of_all_its_events():
    unit = Contributions(4, min_separation=1 << 40)
    coarse = Blt(*RUNNING, 0, 10_000)
    declared = coarse.sensitivity(Norm.L2, Neighbors(unit, ADD, 0, 1, 2, 100))
    moved = (4 * 2 * float(column_norm_squared(*RUNNING))) ** 0.5
    assert float(declared) == pytest.approx(moved + 100 * 8**0.5, rel=1e-9)


def test_replacing_moves_further_than_adding():
    add = Neighbors(Event(), ADD, 0, 3, 1, 4)
    replace = Neighbors(Event(), NeighboringRelation.REPLACE_ONE, 0, 3, 1, 4)
    blt = Blt(*RUNNING, 40, 16)
    ratio = blt.sensitivity(Norm.L2, replace) / blt.sensitivity(Norm.L2, add)
    assert float(ratio) == pytest.approx(2**0.5, rel=1e-9)


def test_the_lattice_is_the_unit_of_the_sensitivity():
    norm = column_norm_squared(*RUNNING)
    for bits in (-5, 0, 20):
        blt = Blt(*RUNNING, bits, 1)
        grains = blt.sensitivity(Norm.L2, ONE) / Fraction(2) ** bits - Fraction(2) ** -bits
        assert float(grains**2) == pytest.approx(float(norm), rel=1e-9)


def test_l1_is_refused():
    with pytest.raises(UnsupportedCombination, match="Expected the L2 norm"):
        Blt(*RUNNING, 20).sensitivity(Norm.L1, ONE)


@pytest.mark.parametrize(
    "x",
    [
        np.zeros((2, 3)),
        np.zeros((2, 3), dtype=np.int32),
        np.zeros((2, 3), dtype=object),
        np.zeros(3, dtype=np.int64),
        np.zeros((2, 4), dtype=np.int64),
        np.zeros((3, 2), dtype=np.int64).T,
    ],
)
def test_arrays_of_another_form_are_refused_and_change_nothing(x):
    blt = Blt(*RUNNING, 20)
    state = blt.init_encoder(3)
    with pytest.raises(InvalidInput, match="Expected totals of dtype int64"):
        blt.encode(state, x, 0)
    assert not state["encoder"].any()


def test_coefficients_are_the_column_of_c():
    blt = Blt(*RUNNING, 20)
    encoder, inverse = blt.matrices(50)
    np.testing.assert_allclose(blt.coefficients(50), encoder[:, 0], rtol=1e-12)
    np.testing.assert_allclose(inverse @ encoder, np.eye(50), atol=1e-12)
    assert blt.coefficients(1).tolist() == [1.0]


def test_the_absolute_gain_is_the_sum_of_all_coefficients():
    gaps, weights = (UNIT // 8, UNIT // 2), (UNIT // 16, UNIT // 8)
    gain = Blt(gaps, weights, 20).absolute_gain
    assert gain == 1 + Fraction(1, 2) + Fraction(1, 4)
    total = sum(coefficients(gaps, weights, 400))
    assert total < gain
    assert float(gain - total) < 1e-12


def test_errors_come_with_the_noise_of_one_grain_at_mu_1():
    blt = Blt(*RUNNING, 30, 1 << 16)
    encoder, _ = blt.matrices(100)
    rows = np.tril(np.ones((100, 100))) @ np.linalg.inv(encoder)
    norm = float(column_norm_squared(*RUNNING)) ** 0.5
    squares = (rows**2).sum(axis=1)
    assert blt.max_error(Running(), 100) == pytest.approx(norm * squares.max() ** 0.5, rel=1e-6)
    assert blt.mean_squared_error(Running(), 100) == pytest.approx(
        norm**2 * squares.mean(), rel=1e-6
    )


def test_a_fitted_filter_makes_a_strategy_with_the_errors_of_the_fit():
    views = [Running(), Window(24)]
    fitted = fit(views, 365, longest_lag=0)
    blt = Blt(fitted.gaps, fitted.weights, 30, 365)
    assert blt == fitted.strategy(30, 365)
    for view, ratio, bound in zip(views, fitted.ratios, fitted.bounds, strict=True):
        assert blt.max_error(view, 365) == pytest.approx(ratio * bound, rel=1e-5)
    assert blt.largest_total > 1 << 20


def test_a_step_far_away_has_its_noise_at_once():
    blt = Blt(*RUNNING, 30)
    view = Window(10**8)
    weights, counts = blt.noise_terms(view, 10**9)
    law = float((weights**2 * counts).sum())
    assert law == pytest.approx(float(blt.variance_gain(view, np.array([10**9]))[0]), rel=1e-6)
    assert len(weights) < 10_000


def test_the_noise_of_the_step_view_falls_with_its_age():
    weights, counts = Blt(*RUNNING, 0).noise_terms(Step(), 100)
    assert weights[0] == 1.0
    assert (np.diff(weights[1:]) < 0).all()
    assert counts.sum() == 100
