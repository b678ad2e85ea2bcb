"""No bound may pass a mechanism of the form that it bounds; broken bounds do, and are rejected."""

import math
from fractions import Fraction

import numpy as np
import pytest

from tidegauge.mechanisms.comparison import least_std
from tidegauge.noise.laplace import DiscreteLaplace
from tidegauge.privacy.costs import GaussianCost, PureCost
from tidegauge.privacy.unit import Event, NeighboringRelation, Neighbors
from tidegauge.strategies.bounds import lower_bound, nuclear_bound
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


# --- streams with an end, of which some steps are read


def rows_read(decay: Decay, end: int, every: int):
    """The rows of the steps that are read, over all steps of the stream."""
    lags = np.subtract.outer(np.arange(every, end + 1, every) - 1, np.arange(end))
    return np.where(lags >= 0, decay.weights(end)[np.abs(lags)], 0.0)


def reached(decay, end, every):
    """The least std of three mechanisms: noise on each step, on each reading, on half of both."""
    rows = rows_read(decay, end, every)
    left, sizes, right = np.linalg.svd(rows, full_matrices=False)
    found = [(np.eye(len(rows)), rows), (rows, np.eye(end))]
    found.append((left * np.sqrt(sizes), np.sqrt(sizes)[:, None] * right))
    for encoded, decoded in ((c, b) for b, c in found):
        assert np.allclose(decoded @ encoded, rows)
    return min(np.linalg.norm(b, axis=1).max() * np.linalg.norm(c, axis=0).max() for b, c in found)


def with_a_row_that_nobody_reads(decay, end, every):
    """Broken: as many rows as columns that begin, of the phase of most energy."""
    weights = decay.weights(-(-end // every) * every)
    weights[end:] = 0
    phases = weights.reshape(-1, every).T
    heaviest = phases[(phases**2).sum(axis=1).argmax()]
    lags = np.subtract.outer(np.arange(len(heaviest)), np.arange(len(heaviest)))
    matrix = np.where(lags >= 0, heaviest[np.abs(lags)], 0.0)
    return np.linalg.svd(matrix, compute_uv=False).sum() / len(heaviest)


READ = [
    (Window(4), 5, 3),
    (Window(2), 3, 2),
    (Window(60), 99, 50),
    (Window(169), 359, 168),
    (Window(24), 24, 24),
    (Window(24), 23, 24),
    (Custom((1, 1, 1, 5)), 4, 3),
    (Custom((1, 2, 3, 4)), 5, 3),
    (Exponential(half_life=20), 99, 50),
    (Polynomial(0.5, 64), 95, 8),
    (Difference(Window(5), 5), 64, 3),
    (Difference(Window(60), 60), 64, 1),
    (Window(60), 64, 1),
    (Running(), 64, 5),
]


@pytest.mark.parametrize(
    ("decay", "end", "every"), READ, ids=lambda value: getattr(value, "name", value)
)
def test_no_mechanism_for_the_steps_that_are_read_passes_the_bound(decay, end, every):
    least = reached(decay, end, min(every, end))
    assert 0 < lower_bound(decay, end, end, every=every) <= least * (1 + 1e-9)
    assert lower_bound(decay, 1, end, every=every) == lower_bound(decay, end, end, every=every)


def test_a_bound_with_a_row_that_nobody_reads_is_passed():
    for decay, end, every in ((Window(4), 5, 3), (Custom((1, 1, 1, 5)), 4, 3)):
        assert reached(decay, end, every) < 0.9 * with_a_row_that_nobody_reads(decay, end, every)


def test_the_limit_for_ever_is_passed_in_a_stream_that_ends():
    """By the square root of a running sum, which the view is but for its last step."""
    decay, steps = Difference(Window(396), 399), np.arange(1, 400)
    root = np.cumprod(np.concatenate([[1.0], 1 - 0.5 / steps]))
    lags = np.subtract.outer(np.arange(400), np.arange(400))
    encoded = np.where(lags >= 0, root[np.abs(lags)], 0.0)
    decoded = np.linalg.solve(encoded.T, rows_read(decay, 400, 1).T).T
    std = np.linalg.norm(decoded, axis=1).max() * np.linalg.norm(encoded[:, 0])
    assert std < 0.95 * lower_bound(decay, 400)
    assert std >= lower_bound(decay, 400, 400) >= nuclear_bound(decay, 400)


def test_a_stream_is_bounded_by_what_its_first_steps_are():
    window, change = Window(200), Difference(Window(200), 150)
    bounds = [lower_bound(window, end, end) for end in (100, 150, 200, 201, 1 << 17, 10**9)]
    assert bounds == sorted(bounds)
    assert bounds[-1] <= lower_bound(window) * (1 + 1e-5)
    for end in (201, 257, 300, 400):
        assert lower_bound(window, end, end) >= lower_bound(Running(), 200)
    assert nuclear_bound(window, 300) < lower_bound(Running(), 200)
    assert lower_bound(change, 151, 151) >= lower_bound(Running(), 150)
