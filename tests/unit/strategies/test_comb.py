"""The comb as a strategy: what it refuses, what it charges, what it keeps."""

from fractions import Fraction

import numpy as np
import pytest
from twins.blts import RUNNING, UNIT
from twins.cases import ADD, ONE
from twins.exact_filters import autocorrelation, column_norm_squared

from tidegauge.errors import InvalidInput, InvalidParameter, StreamEnded, UnsupportedCombination
from tidegauge.privacy.unit import Contributions, Event, Neighbors
from tidegauge.strategies.blt import Blt, Comb
from tidegauge.strategies.decay import Running, Window
from tidegauge.strategies.strategy import Norm

HALF, QUARTER = UNIT // 2, UNIT // 4
BETA = Fraction(13, 32)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"beta": Fraction(0)}, "beta"),
        ({"beta": Fraction(1)}, "beta"),
        ({"beta": Fraction(-1, 2)}, "beta"),
        ({"beta": Fraction(3, 2)}, "beta"),
        ({"beta": Fraction(1, 3)}, "in 32nds"),
        ({"beta": Fraction(1, 64)}, "in 32nds"),
        ({"beta": 0.4}, "in 32nds"),
        ({"beta": "half"}, "beta"),
        ({"lag": 0}, "lag in"),
        ({"lag": (1 << 16) + 1}, "lag in"),
        ({"lag": 2.5}, "lag to be an integer"),
        ({"gaps": (0,)}, r"gaps\[0\]"),
        ({"weights": (HALF,)}, "would not interlace"),
        ({"lattice_bits": 41}, "lattice_bits"),
        ({"charged_steps": 0}, "charged_steps"),
        ({"gaps": (1 << 40,), "lattice_bits": 35}, "Coordinates would overflow"),
    ],
)
def test_impossible_parameters_are_refused(change, message):
    sound = {
        "gaps": (HALF,), "weights": (QUARTER,), "beta": BETA, "lag": 7, "lattice_bits": 20,
        "charged_steps": 100,
    }  # fmt: skip
    with pytest.raises(InvalidParameter, match=message) as error:
        Comb(**{**sound, **change})
    assert str(error.value).startswith("Expected ")


def test_numbers_become_exact_ones():
    comb = Comb(*RUNNING, 0.5, np.int64(3), np.int64(20))
    assert comb == Comb(*RUNNING, Fraction(1, 2), 3, 20)
    assert type(comb.beta) is Fraction
    assert type(comb.lag) is type(comb.lattice_bits) is int


def test_one_event_is_charged_by_the_formula():
    comb = Comb(*RUNNING, BETA, 24, 30, 1)
    near, far = column_norm_squared(*RUNNING), autocorrelation(*RUNNING, 24)
    norm = float((1 + BETA**2) * near) - 2 * float(BETA) * float(far)
    moved = float(comb.sensitivity(Norm.L2, ONE) - comb.blt.rounding(ONE)) / 2**30
    assert moved == pytest.approx(32 * norm**0.5, rel=1e-9)


def test_a_reduced_fraction_costs_no_range():
    assert Comb(*RUNNING, Fraction(16, 32), 24, 30).largest_total > 10 * (
        Comb(*RUNNING, Fraction(15, 32), 24, 30).largest_total
    )


def test_roundings_are_charged_as_those_of_the_filter():
    nine = Neighbors(Event(), ADD, 0, 1, 9, 9)
    blt, comb = Blt(*RUNNING, 0, 10_000), Comb(*RUNNING, BETA, 24, 0, 10_000)
    assert comb.sensitivity(Norm.L2, nine) > blt.rounding(nine) > 299


def test_an_id_pays_no_more_than_all_its_events_at_once():
    def of(events, separation):
        unit = Neighbors(Contributions(events, separation), ADD, 0, 1, 1, 1)
        return Comb(*RUNNING, BETA, 24, 30, 1 << 20).sensitivity(Norm.L2, unit)

    assert of(1, 0) < of(5, 24) < of(5, 1) < of(5, 0)
    assert float(of(5, 0) / of(1, 0)) == pytest.approx(5, rel=1e-3)


def test_l1_is_refused():
    with pytest.raises(UnsupportedCombination, match="Expected the L2 norm"):
        Comb(*RUNNING, BETA, 7, 20).sensitivity(Norm.L1, ONE)


@pytest.mark.parametrize("first", [0, 99])
def test_what_is_refused_changes_nothing(first):
    comb = Comb(*RUNNING, BETA, 7, 20, charged_steps=100)
    state = comb.init_encoder(3)
    comb.encode(state, np.ones((99, 3), dtype=np.int64), 0)
    before = {name: array.copy() for name, array in state.items()}
    bad = np.zeros((1, 3)) if first else np.zeros((101, 3), dtype=np.int64)
    with pytest.raises((InvalidInput, StreamEnded)):
        comb.encode(state, bad, first)
    assert all((before[name] == state[name]).all() for name in state)


def test_coefficients_are_the_column_of_c():
    for lag in (1, 7, 49, 60):
        comb = Comb(*RUNNING, BETA, lag, 20)
        encoder, inverse = comb.matrices(50)
        np.testing.assert_allclose(comb.coefficients(50), encoder[:, 0], rtol=1e-9)
        np.testing.assert_allclose(inverse @ encoder, np.eye(50), atol=1e-9)


def test_no_total_leaves_62_bits():
    comb = Comb((1 << 58, 1 << 62), (1 << 57, 1 << 62), Fraction(31, 32), 1, 3)
    signs = np.where(np.arange(1500) % 2, 1, -1)
    for x in (np.ones(1500, dtype=np.int64), signs):
        totals = (x * comb.largest_total)[:, None].astype(np.int64)
        coordinates = comb.encode(comb.init_encoder(1), totals, 0)
        assert np.abs(coordinates).max() <= 1 << 62


def test_errors_do_not_grow_with_the_echoes():
    comb = Comb(*RUNNING, Fraction(31, 32), 2, 10, 1 << 20)
    x = np.random.default_rng(1).integers(0, 1000, (200_000, 1))
    exact = comb.encode(comb.init_encoder(1), x, 0)
    out = np.empty((2, len(x), 1))
    views = [Window(2), Running()]
    comb.decode(comb.init_decoder(views, 1), views, exact, 0, out)
    truth = x[1:, 0] + x[:-1, 0]
    assert np.abs(out[0, 1:, 0] - truth)[-1000:].max() < 1.0
