"""Neighbors against brute force: every event, every change, every cell."""

from itertools import combinations, product

import numpy as np
import pytest

from tidegauge.errors import InvalidParameter
from tidegauge.privacy.unit import (
    Contributions,
    Event,
    NeighboringRelation,
    Neighbors,
    relation_of,
    unit_of,
)

ADD, REPLACE = NeighboringRelation.ADD_OR_REMOVE_ONE, NeighboringRelation.REPLACE_ONE
RANGES = [(0, 1), (0, 2), (-1, 0), (-1, 1), (-2, 1), (-1, 3)]
CASES = [
    (relation, low, high, max_cells, cells)
    for relation in NeighboringRelation
    for low, high in RANGES
    for cells in (1, 2, 3, 4)
    for max_cells in range(1, cells + 1)
    if (high - low + 1) ** cells <= 300
]


def changes_of_one_step(relation, low, high, max_cells, cells):
    """Every difference between a step with an event and the same step after the change."""
    events = np.array(
        [v for v in product(range(low, high + 1), repeat=cells) if np.count_nonzero(v) <= max_cells]
    )
    if relation is ADD:
        return events
    return (events[:, None, :] - events[None, :, :]).reshape(-1, cells)


def brute_force(relation, low, high, max_cells, cells):
    """Largest L1, squared L2 and number of cells touched."""
    change = changes_of_one_step(relation, low, high, max_cells, cells)
    return (
        int(np.abs(change).sum(axis=1).max()),
        int((change**2).sum(axis=1).max()),
        int(np.count_nonzero(change, axis=1).max()),
    )


def declared(neighbors):
    return neighbors.event_l1, neighbors.event_l2_squared, neighbors.touched_cells


def agrees_with_brute_force(kind):
    return all(brute_force(*case) == declared(kind(Event(), *case)) for case in CASES)


def test_declared_changes_are_the_largest_that_exist():
    for case in CASES:
        assert brute_force(*case) == declared(Neighbors(Event(), *case)), case


class CellsNeverShared(Neighbors):
    """Broken twin: two sets of cells are always taken to be disjoint."""

    def _changes(self):
        if self.relation is ADD:
            return ((0, self.max_cells, 0),)
        return ((0, 2 * self.max_cells, self.high - self.low),)


class ValuesOnly(Neighbors):
    """Broken twin: an event's cells never change."""

    def _changes(self):
        if self.relation is ADD:
            return ((0, self.max_cells, 0),)
        return ((self.max_cells, 0, self.high - self.low),)


class LargestOnly(Neighbors):
    """Broken twin: a changed value moves by its largest size, not by the width of its range."""

    def _changes(self):
        return tuple((k, m, self.largest if k else 0) for k, m, _ in super()._changes())


class OneSided(Neighbors):
    """Broken twin: the lower bound is forgotten."""

    @property
    def largest(self):
        return self.high


class OneSetOfCells(Neighbors):
    """Broken twin: a replaced event leaves no cells behind."""

    @property
    def touched_cells(self):
        return min(self.max_cells * self.unit.max_events, self.cells)


@pytest.mark.parametrize(
    "mutant", [CellsNeverShared, ValuesOnly, LargestOnly, OneSided, OneSetOfCells]
)
def test_broken_twins_are_caught(mutant):
    assert not agrees_with_brute_force(mutant)


@pytest.mark.parametrize("relation", NeighboringRelation)
def test_a_unit_with_several_events_touches_the_union_of_their_cells(relation):
    for cells, max_cells, events in [(2, 1, 2), (4, 1, 2), (4, 1, 3), (5, 2, 2), (4, 2, 3)]:
        each = max_cells * (1 if relation is ADD else 2)
        sets = list(combinations(range(cells), min(each, cells)))
        union = max(len(set().union(*chosen)) for chosen in product(sets, repeat=events))
        neighbors = Neighbors(Contributions(events), relation, 0, 1, max_cells, cells)
        assert union == neighbors.touched_cells


@pytest.mark.parametrize(
    ("low", "high", "max_cells", "cells"),
    [(0, 0, 1, 1), (1, 2, 1, 1), (0, -1, 1, 1), (0, 1, 2, 1), (0, 1, 0, 1), (0, 1, 1, 0),
     (0, 1.5, 1, 1), (0, True, 1, 1), (0, float("nan"), 1, 1), (0, 1 << 41, 1, 1)],
)  # fmt: skip
def test_impossible_bounds_are_refused(low, high, max_cells, cells):
    with pytest.raises(InvalidParameter, match="Expected"):
        Neighbors(Event(), ADD, low, high, max_cells, cells)


def test_units_and_relations_are_found_by_name():
    assert Event() == unit_of("event")
    assert Contributions(3, 2) == unit_of(Contributions(3, 2))
    assert ADD is relation_of("add_or_remove_one")
    assert REPLACE is relation_of(REPLACE)


@pytest.mark.parametrize("unit", [None, "user", "Event", 1, Event, np.array(["event"])])
def test_a_unit_has_no_default_and_no_guess(unit):
    with pytest.raises(InvalidParameter, match="who is protected"):
        unit_of(unit)


@pytest.mark.parametrize("relation", [None, "replace", 1, ""])
def test_an_unknown_relation_is_refused(relation):
    with pytest.raises(InvalidParameter, match="add_or_remove_one"):
        relation_of(relation)


@pytest.mark.parametrize("arguments", [(0,), (-1,), (1.5,), (True,), ("20",), (3, -1)])
def test_an_impossible_number_of_contributions_is_refused(arguments):
    with pytest.raises(InvalidParameter, match="Expected"):
        Contributions(*arguments)


PAIRED = [
    (relation, low, high, max_pairs, pairs)
    for relation in NeighboringRelation
    for low, high in [(0, 1), (-1, 1), (-2, 1), (-1, 2), (-2, 2), (0, 3)]
    for pairs in (1, 2, 3)
    for max_pairs in range(1, pairs + 1)
    if (high - low + 2) ** pairs <= 130
]


def brute_force_of_pairs(relation, low, high, max_pairs, pairs):
    """Every event: in each pair it is absent, or adds a value and one count of ``largest``."""
    largest, events = max(-low, high), []
    for values in product([None, *range(low, high + 1)], repeat=pairs):
        if sum(value is not None for value in values) <= max_pairs:
            sums = [value or 0 for value in values]
            events.append(sums + [0 if value is None else largest for value in values])
    events = np.array(events)
    change = events
    if relation is REPLACE:
        change = (events[:, None, :] - events[None, :, :]).reshape(-1, 2 * pairs)
    return (
        int(np.abs(change).sum(axis=1).max()),
        int((change**2).sum(axis=1).max()),
        int(np.count_nonzero(change, axis=1).max()),
    )


def pairs_agree(kind):
    return all(
        brute_force_of_pairs(relation, low, high, most, pairs)
        == declared(kind(Event(), relation, low, high, 2 * most, 2 * pairs, paired=True))
        for relation, low, high, most, pairs in PAIRED
    )


def test_declared_changes_of_pairs_are_the_largest_that_exist():
    assert pairs_agree(Neighbors)


class SumsAlone(Neighbors):
    """Broken twin: what the count moves is forgotten."""

    @property
    def _each(self):
        return 1

    def _changes(self):
        return tuple((k // 2, m // 2, span) for k, m, span in super()._changes())


class PairsNeverVanish(Neighbors):
    """Broken twin: a replaced event always stays somewhere."""

    def _changes(self):
        return super()._changes()[:2]


@pytest.mark.parametrize("mutant", [SumsAlone, PairsNeverVanish])
def test_broken_pairs_are_caught(mutant):
    assert not pairs_agree(mutant)


@pytest.mark.parametrize("changes", [{"cells": 3}, {"max_cells": 1}, {"distinct": "ever"}])
def test_half_a_pair_is_refused(changes):
    fields = {"low": 0, "high": 1, "max_cells": 2, "cells": 4, "paired": True} | changes
    with pytest.raises(InvalidParameter, match="pairs"):
        Neighbors(Event(), ADD, **fields)
