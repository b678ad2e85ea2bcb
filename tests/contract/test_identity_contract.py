from contract.strategy_contract import (
    assert_covers_every_pattern,
    assert_factorizes,
    assert_knows_its_noise,
    assert_stays_within_under_attack,
    assert_streams,
)
from hypothesis import given
from hypothesis import strategies as st
from twins.cases import VIEWS, neighbors

from tidegauge.strategies.decay import Difference, Window
from tidegauge.strategies.identity import Identity
from tidegauge.strategies.strategy import Norm


@given(st.integers(0, 40))
def test_each_view_of_the_identity_is_its_decay(bits):
    assert_factorizes(Identity(bits), VIEWS, steps=12, tolerance=1e-12)


@given(neighbors())
def test_the_identity_moves_as_far_as_it_says_in_l2(unit):
    assert_covers_every_pattern(Identity(3), Norm.L2, unit, steps=4, slack=1e-9)


@given(neighbors())
def test_the_identity_moves_as_far_as_it_says_in_l1(unit):
    assert_covers_every_pattern(Identity(0), Norm.L1, unit, steps=4, slack=1e-9)


def test_the_identity_streams_without_a_trace():
    assert_streams(Identity(0), VIEWS, steps=60, cells=3)
    assert_streams(Identity(7), VIEWS, steps=30, cells=9)
    assert_streams(Identity(0), [Difference(Window(300), 400)], steps=900, cells=2)


def test_the_identity_knows_its_noise():
    assert_knows_its_noise(Identity(5), VIEWS, steps=40)


def test_no_rounding_helps_an_adversary_of_the_identity():
    assert assert_stays_within_under_attack(Identity(2), 4, signed=True, steps=5) == 1.0
