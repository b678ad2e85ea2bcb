from contract.strategy_contract import (
    assert_covers_every_pattern,
    assert_factorizes,
    assert_knows_its_noise,
    assert_stays_within_under_attack,
    assert_streams,
)
from hypothesis import given
from hypothesis import strategies as st

from tidegauge.privacy.unit import Contributions, Event, NeighboringRelation, Neighbors
from tidegauge.strategies.decay import Custom, Exponential, Polynomial, Running, Step, Window
from tidegauge.strategies.identity import Identity
from tidegauge.strategies.strategy import Norm

VIEWS = [
    Step(),
    Running(),
    Window(1),
    Window(4),
    Window(100),
    Exponential(half_life=3),
    Polynomial(0.5),
    Custom((0.5, 0.0, -2.0)),
]
UNITS = st.one_of(
    st.just(Event()),
    st.builds(Contributions, st.integers(1, 2), st.integers(0, 2)),
)


@st.composite
def neighbors(draw, cells=2):
    low, high = draw(st.sampled_from([(0, 1), (0, 5), (-1, 1), (-3, 2), (-4, 0)]))
    relation = draw(st.sampled_from(NeighboringRelation))
    return Neighbors(draw(UNITS), relation, low, high, draw(st.integers(1, cells)), cells)


@given(st.integers(0, 40))
def test_each_view_of_the_identity_is_its_decay(bits):
    assert_factorizes(Identity(bits), VIEWS, steps=12, tolerance=1e-12)


@given(neighbors())
def test_the_identity_moves_as_far_as_it_says_in_l2(unit):
    assert_covers_every_pattern(Identity(3), Norm.L2, unit, steps=3, slack=1e-9)


@given(neighbors())
def test_the_identity_moves_as_far_as_it_says_in_l1(unit):
    assert_covers_every_pattern(Identity(0), Norm.L1, unit, steps=3, slack=1e-9)


def test_the_identity_streams_without_a_trace():
    assert_streams(Identity(0), VIEWS, steps=60, cells=3)
    assert_streams(Identity(7), VIEWS, steps=30, cells=9)


def test_the_identity_knows_its_noise():
    assert_knows_its_noise(Identity(5), VIEWS, steps=40)


def test_no_rounding_helps_an_adversary_of_the_identity():
    assert assert_stays_within_under_attack(Identity(2), 4, signed=True, steps=5) == 1.0
