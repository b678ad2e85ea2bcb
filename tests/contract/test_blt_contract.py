import pytest
from contract.strategy_contract import (
    assert_covers_every_pattern,
    assert_each_rounding_is_paid,
    assert_factorizes,
    assert_knows_its_noise,
    assert_stays_within_under_attack,
    assert_stops_at_its_hard_end,
    assert_streams,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from twins.blts import RUNNING, UNIT, filters
from twins.cases import ADD, ONE, VIEWS, neighbors

from tidegauge.privacy.unit import Contributions, Neighbors
from tidegauge.strategies.blt import Blt
from tidegauge.strategies.blt.fixed_point import rounding_error
from tidegauge.strategies.strategy import Norm

SLOW_AND_FAST = ((UNIT // 2000, UNIT // 10), (UNIT // 50, UNIT // 5))


@given(filters(longest=30), st.integers(20, 30))
@settings(max_examples=30)
def test_each_view_of_a_blt_is_its_decay(buffers, bits):
    assert_factorizes(Blt(*buffers, bits, 1 << 20), VIEWS, steps=25)


@given(filters(longest=1.0, most=3), neighbors())
@settings(max_examples=40)
def test_no_pattern_moves_a_blt_further_than_it_says_nor_much_less(buffers, unit):
    strategy = Blt(*buffers, lattice_bits=40, charged_steps=8)
    assert_covers_every_pattern(strategy, Norm.L2, unit, steps=8, slack=0.001)


@pytest.mark.parametrize("separation", [0, 1, 2, 4])
def test_three_events_of_one_id_are_covered(separation):
    unit = Contributions(3, separation)
    one_cell = Neighbors(unit, ADD, -1, 2, 1, 1)
    strategy = Blt((UNIT // 2, UNIT * 3 // 4), (UNIT // 4, UNIT // 16), 40, 14)
    assert_covers_every_pattern(strategy, Norm.L2, one_cell, steps=14, slack=0.001)


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("max_cells", [1, 4, 16])
def test_an_adversary_of_the_roundings_comes_close_but_stays_within(max_cells, signed):
    strategy = Blt(*SLOW_AND_FAST, lattice_bits=0, charged_steps=150)
    share = assert_stays_within_under_attack(strategy, max_cells, signed=signed, steps=150)
    assert share > 0.85


@pytest.mark.parametrize("bits", [-3, 0, 2, 9])
def test_each_rounding_is_paid_and_nearly_reached(bits):
    strategy = Blt(*SLOW_AND_FAST, lattice_bits=bits, charged_steps=100)
    error = float(rounding_error(strategy.gaps, bits))
    share = assert_each_rounding_is_paid(strategy, error, signed=True, steps=100)
    assert share > 0.9


def test_a_blt_streams_without_a_trace():
    assert_streams(Blt(*RUNNING, 30, 1 << 20), VIEWS, steps=60, cells=3)
    assert_streams(Blt(*RUNNING, -4, 1 << 20), VIEWS, steps=30, cells=17)


@given(filters(longest=12))
@settings(max_examples=15)
def test_a_blt_knows_its_noise(buffers):
    assert_knows_its_noise(Blt(*buffers, 20, 1 << 20), VIEWS, steps=60, tolerance=2e-6)


def test_a_blt_stops_where_its_roundings_are_no_longer_paid():
    assert_stops_at_its_hard_end(Blt(*RUNNING, 20, charged_steps=50), Norm.L2, ONE)
