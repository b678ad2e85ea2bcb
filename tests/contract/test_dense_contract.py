import numpy as np
import pytest
from contract.strategy_contract import (
    assert_covers_every_pattern,
    assert_factorizes,
    assert_knows_its_noise,
    assert_stays_within_under_attack,
    assert_stops_at_its_hard_end,
    assert_streams,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from twins.cases import ADD, ONE, VIEWS, neighbors

from tidegauge.privacy.unit import Contributions, Neighbors
from tidegauge.strategies.decay import Custom, Exponential, Polynomial, Running, Window
from tidegauge.strategies.dense import DenseToeplitz, square_root_strategy
from tidegauge.strategies.strategy import Norm

DECAYS = [
    Running(),
    Window(7),
    Exponential(half_life=3),
    Polynomial(0.5, reach=1024),
    Custom((0.5, 0.0, -2.0)),
    Custom((0, 1, 1)),
]


@pytest.mark.parametrize("decay", DECAYS)
def test_each_view_of_a_dense_root_is_its_decay(decay):
    assert_factorizes(square_root_strategy(decay, 30, 24), VIEWS, steps=30)
    assert_factorizes(square_root_strategy(decay, 30, 3), VIEWS, steps=20)


@given(
    st.lists(st.integers(-50, 50), min_size=3, max_size=7).map(lambda tail: (60, *tail)),
    neighbors(),
)
@settings(max_examples=60)
def test_no_pattern_moves_any_integers_further_than_they_say(coefficients, unit):
    strategy = DenseToeplitz(coefficients, 4)
    slack = 1e-9 if unit.unit.max_events == 1 else 1.0
    assert_covers_every_pattern(strategy, Norm.L2, unit, steps=strategy.hard_end, slack=slack)


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_the_shortest_streams_are_covered(steps):
    strategy = square_root_strategy(Running(), steps, 20)
    assert_covers_every_pattern(strategy, Norm.L2, ONE, steps=steps, slack=1e-9)


@pytest.mark.parametrize("steps", [4, 7, 8])
@given(unit=neighbors())
@settings(max_examples=20)
def test_the_root_of_a_running_sum_moves_exactly_as_far_as_it_says(unit, steps):
    strategy = square_root_strategy(Running(), steps, 20)
    assert_covers_every_pattern(strategy, Norm.L2, unit, steps=steps, slack=1e-9)


@pytest.mark.parametrize("separation", [0, 1, 2, 4, 6])
def test_three_events_of_one_id_are_covered_exactly_where_c_falls(separation):
    one_cell = Neighbors(Contributions(3, separation), ADD, -1, 2, 1, 1)
    strategy = square_root_strategy(Exponential(half_life=3), 14, 20)
    assert_covers_every_pattern(strategy, Norm.L2, one_cell, steps=14, slack=1e-9)


def test_no_rounding_helps_an_adversary_of_a_dense_root():
    strategy = square_root_strategy(Running(), 40, 6)
    share = assert_stays_within_under_attack(strategy, 4, signed=True, steps=40)
    assert share == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("decay", DECAYS)
def test_a_dense_root_streams_without_a_trace(decay):
    assert_streams(square_root_strategy(decay, 150, 30), VIEWS, steps=150, cells=3)
    assert_streams(square_root_strategy(decay, 70, 0), VIEWS, steps=30, cells=17)


@pytest.mark.parametrize("decay", DECAYS)
def test_a_dense_root_knows_its_noise(decay):
    assert_knows_its_noise(square_root_strategy(decay, 60, 20), VIEWS, steps=60)


def test_a_dense_root_stops_at_its_last_coefficient():
    assert_stops_at_its_hard_end(square_root_strategy(Running(), 50, 20), Norm.L2, ONE)


def test_coordinates_are_exact_integers_up_to_the_largest_total():
    strategy = square_root_strategy(Window(5), 9, 40)
    x = np.full((9, 1), 1 << 62)
    rows = strategy.encode(strategy.init_encoder(1), x, 0)
    exact = [sum(strategy.coefficients[: t + 1]) * strategy.largest_total for t in range(len(rows))]
    assert exact == rows.ravel().tolist()
    assert max(map(abs, exact)) <= 1 << 62
