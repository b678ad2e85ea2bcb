"""No bound may pass a mechanism of the form that it bounds; broken bounds do, and are rejected."""

import math
from fractions import Fraction

import numpy as np
import pytest

from tidegauge.mechanisms.comparison import least_std
from tidegauge.noise.laplace import DiscreteLaplace
from tidegauge.privacy.costs import GaussianCost, PureCost
from tidegauge.privacy.unit import Event, NeighboringRelation, Neighbors
from tidegauge.strategies.decay import Step

ADD, REPLACE = NeighboringRelation.ADD_OR_REMOVE_ONE, NeighboringRelation.REPLACE_ONE
GAUSSIAN, PURE = GaussianCost(Fraction(1)), PureCost(Fraction(1))

# --- cells that are encoded together

CHANGES = {ADD: [(1, 1), (1, 0), (0, 1)], REPLACE: [(1, -1), (1, 0), (0, 1)]}
NEIGHBORS = {
    ADD: Neighbors(Event(), ADD, 0, 1, 2, 2),
    REPLACE: Neighbors(Event(), REPLACE, 0, 1, 1, 2),
}


def std_of_mixed_cells(relation, cost):
    """Std of each of two cells where a sum and a difference are measured, at equal privacy."""
    if isinstance(cost, PureCost):
        mixed = np.array([[1, 1], [1, -1]])
        moved = max(np.abs(mixed @ change).sum() for change in CHANGES[relation])
        drawn = DiscreteLaplace(Fraction(int(moved))).std
    else:
        both, apart = (0.5, math.sqrt(0.75)) if relation is ADD else (math.sqrt(0.75), 0.5)
        mixed = np.array([[both, both], [apart, -apart]])
        drawn = max(np.linalg.norm(mixed @ change) for change in CHANGES[relation])
    return drawn * np.linalg.norm(np.linalg.inv(mixed), axis=1).max()


def as_if_cells_were_apart(cost, neighbors):
    if isinstance(cost, PureCost):
        return DiscreteLaplace(Fraction(neighbors.event_l1)).std
    return math.sqrt(neighbors.event_l2_squared)


@pytest.mark.parametrize("relation", [ADD, REPLACE])
@pytest.mark.parametrize("cost", [GAUSSIAN, PURE], ids=["gaussian", "pure"])
def test_no_mechanism_that_mixes_cells_passes_the_bound(relation, cost):
    reached = std_of_mixed_cells(relation, cost)
    assert reached >= least_std(Step(), 1, None, cost, NEIGHBORS[relation])
    assert reached < as_if_cells_were_apart(cost, NEIGHBORS[relation]) * (1 - 1e-3)


@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_one_cell_is_bounded_by_its_own_change(relation):
    one = Neighbors(Event(), relation, -2, 3, 1, 1)
    change = 3 if relation is ADD else 5
    assert least_std(Step(), 1, None, GAUSSIAN, one) == change == math.sqrt(one.event_l2_squared)
    for more in (
        Neighbors(Event(), relation, -2, 3, 1, 8),
        Neighbors(Event(), relation, -2, 3, 4, 8),
    ):
        assert least_std(Step(), 1, None, GAUSSIAN, more) == change
