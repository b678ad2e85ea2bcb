"""What the tests of all strategies share: one event of one grain, neighbors of any kind, views."""

from __future__ import annotations

from hypothesis import strategies as st

from tidegauge.privacy.unit import Contributions, Event, NeighboringRelation, Neighbors
from tidegauge.strategies.decay import (
    Custom,
    Decay,
    Difference,
    Exponential,
    Polynomial,
    Running,
    Step,
    Window,
)

ADD = NeighboringRelation.ADD_OR_REMOVE_ONE
ONE = Neighbors(Event(), ADD, 0, 1, 1, 1)

VIEWS: list[Decay] = [
    Step(),
    Running(),
    Window(1),
    Window(7),
    Window(1000),
    Exponential(half_life=3),
    Polynomial(0.5, reach=1024),
    Custom((0.5, 0.0, -2.0)),
    Exponential(half_life=3, average=True),
    Difference(Window(7), 7),
    Difference(Window(7), 3),
    Difference(Window(3), 10),
    Difference(Step(), 5),
    Difference(Exponential(half_life=30), 4),
    Difference(Polynomial(1.5, reach=64), 6),
    Difference(Custom((0.5, 0.0, -2.0)), 2),
    Difference(Custom((0.5, 0.0, -2.0)), 9),
]


@st.composite
def neighbors(draw: st.DrawFn, cells: int = 2) -> Neighbors:
    """One event or two of an id, at most three steps apart, with either relation and any signs."""
    low, high = draw(st.sampled_from([(0, 1), (0, 5), (-1, 1), (-3, 2), (-4, 0)]))
    relation = draw(st.sampled_from(NeighboringRelation))
    apart = st.builds(Contributions, st.integers(1, 2), st.integers(0, 3))
    unit = draw(st.one_of(st.just(Event()), apart))
    return Neighbors(unit, relation, low, high, draw(st.integers(1, cells)), cells)
