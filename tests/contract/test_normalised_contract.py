from dataclasses import replace

import numpy as np
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
from tidegauge.strategies.blt import NormalisedBlt, fit_normalised
from tidegauge.strategies.blt.fixed_point import rounding_error
from tidegauge.strategies.decay import Difference, Exponential, Running, Window
from tidegauge.strategies.strategy import Norm

MILLION = 1 << 20
PIECES = ((7, 1, 9, 3, 10), (MILLION // 3, MILLION // 2, MILLION // 2, 7 * MILLION // 8, MILLION))


@given(filters(longest=30), st.integers(24, 34))
@settings(max_examples=10)
def test_each_view_of_a_normalised_filter_is_its_decay(buffers, bits):
    assert_factorizes(NormalisedBlt(*buffers, *PIECES, bits), VIEWS, steps=30)


@given(
    filters(longest=1.0, most=3),
    st.lists(st.integers(1, MILLION), min_size=3, max_size=3),
    neighbors(),
)
@settings(max_examples=25)
def test_no_pattern_moves_a_normalised_filter_further_than_it_says(buffers, multipliers, unit):
    strategy = NormalisedBlt(*buffers, (2, 1, 5), tuple(multipliers), 40)
    one = unit.unit.max_events == 1 or unit.unit.min_separation == 0
    slack = 0.001 if one else 2.0  # a least distance is not made use of
    assert_covers_every_pattern(strategy, Norm.L2, unit, steps=8, slack=slack)


@pytest.mark.parametrize("separation", [0, 1, 2])
def test_three_events_of_one_id_are_covered(separation):
    unit = Contributions(3, separation)
    one_cell = Neighbors(unit, ADD, -1, 2, 1, 1)
    strategy = replace(fit_normalised(14), lattice_bits=40)
    slack = 0.001 if separation == 0 else 1.0
    assert_covers_every_pattern(strategy, Norm.L2, one_cell, steps=14, slack=slack)


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("max_cells", [1, 3])
def test_an_adversary_of_the_roundings_comes_close_but_stays_within(max_cells, signed):
    slow_and_fast = ((UNIT // 2000, UNIT // 10), (UNIT // 50, UNIT // 5))
    strategy = NormalisedBlt(*slow_and_fast, (1, 149), (MILLION, MILLION // 2), 0)
    share = assert_stays_within_under_attack(strategy, max_cells, signed=signed, steps=150)
    assert share > 0.85


@pytest.mark.parametrize("bits", [0, 9])
def test_each_rounding_is_paid_and_nearly_reached(bits):
    slow_and_fast = ((UNIT // 2000, UNIT // 10), (UNIT // 50, UNIT // 5))
    strategy = NormalisedBlt(*slow_and_fast, (50, 50), (MILLION // 2 + 1, MILLION - 1), bits)
    error = float(rounding_error(strategy.gaps, bits - 20)) / MILLION
    share = assert_each_rounding_is_paid(strategy, error, signed=True, steps=100)
    assert share > 0.9


def test_a_normalised_filter_streams_without_a_trace():
    assert_streams(replace(fit_normalised(60), lattice_bits=30), VIEWS, steps=60, cells=3)
    assert_streams(NormalisedBlt(*RUNNING, *PIECES, 20), VIEWS, steps=30, cells=17)


@given(filters(longest=12))
@settings(max_examples=10)
def test_a_normalised_filter_knows_its_noise(buffers):
    assert_knows_its_noise(NormalisedBlt(*buffers, *PIECES, 20), VIEWS, steps=30, tolerance=1e-7)


@pytest.mark.parametrize("end", [2, 3, 63, 64, 65, 300])
def test_fitted_normalised_filters_know_their_noise(end):
    strategy = replace(fit_normalised(end), lattice_bits=30)
    assert_knows_its_noise(strategy, [Running()], steps=end, tolerance=1e-7)


def test_a_normalised_filter_stops_at_its_end():
    strategy = replace(fit_normalised(50), lattice_bits=20)
    assert_stops_at_its_hard_end(strategy, Norm.L2, ONE)


@pytest.fixture(scope="module")
def long():
    return fit_normalised(1500)


@pytest.mark.parametrize(
    "view",
    [Window(24), Window(1000), Exponential(half_life=50), Difference(Window(24), 24)],
    ids=lambda view: view.name,
)
def test_the_worst_step_of_any_view_of_a_long_stream_is_found(long, view):
    every = long.variance_gain(view, np.arange(1, 1501))
    assert long.worst_variance_gain(view, 1500) == pytest.approx(every.max(), rel=1e-9)
