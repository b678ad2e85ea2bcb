"""T5: counts of different values, from rows to coordinates, under every change of one event.

Exhaustive for streams of six steps: removed and replaced events, several values an event, ids with
several events, and two cells. The coordinates come out of the strategies' own encoders.
"""

import itertools
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest
from contract.strategy_contract import attack

from tidegauge.engine.distinct import DistinctCounts
from tidegauge.errors import UnsupportedCombination
from tidegauge.privacy.rounding import sqrt_up
from tidegauge.privacy.unit import Contributions, Event, NeighboringRelation, Neighbors
from tidegauge.strategies.blocks import Blocks, OpenBlocks
from tidegauge.strategies.blt import Blt, Comb, fit, fit_normalised
from tidegauge.strategies.decay import Running, Window
from tidegauge.strategies.dense import square_root_strategy
from tidegauge.strategies.distinct import Anchored, Shaped, anchored, interval_gains, shaped
from tidegauge.strategies.distinct.first_seen import check_distinct
from tidegauge.strategies.identity import Identity
from tidegauge.strategies.strategy import Norm

ADD, REPLACE = NeighboringRelation.ADD_OR_REMOVE_ONE, NeighboringRelation.REPLACE_ONE
STEPS, HALF = 6, 1 << 63
BINARY = list(itertools.product((None, 0, 1), repeat=STEPS))  # a value a step, or none
FITTED = fit([Running()], 64).strategy(lattice_bits=30, charged_steps=64)
SUMS = [Identity(0), FITTED, Blocks((1, 2, 4)), square_root_strategy(Running(), 16, 20),
        fit_normalised(16)]  # fmt: skip


def exact(distinct, cells, rows, steps=STEPS):
    """The counts of rows (step, cell, value), by the engine."""
    counts = DistinctCounts(distinct, cells, 0)
    if rows:
        step, cell, value = np.array(rows, np.int64).T
        counts.add(step * cells + cell, value)
    return counts.result(steps)


def slow(distinct, cells, rows, steps=STEPS):
    """The same by definition."""
    out = np.zeros((steps, cells), np.int64)
    for t in range(steps):
        for cell in range(cells):
            last = t - distinct if distinct != "ever" else -1
            now = {v for s, c, v in rows if c == cell and last < s <= t}
            before = {v for s, c, v in rows if c == cell and s < t}
            out[t, cell] = len(now) if distinct != "ever" else len(now - before)
    return out


def events(stream):
    return [(step, 0, value) for step, value in enumerate(stream) if value is not None]


@pytest.mark.parametrize("distinct", ["ever", 1, 2, 3, 5, 6, 9])
def test_the_engine_counts_by_the_definition(distinct):
    rng = np.random.default_rng(1)
    for _ in range(200):
        rows = [
            tuple(map(int, row)) for row in rng.integers(0, (6, 2, 4), (rng.integers(0, 15), 3))
        ]
        assert slow(distinct, 2, rows).tolist() == exact(distinct, 2, rows).tolist()


@pytest.mark.parametrize("window", [1, 2, 3, 4, 7])
def test_the_interval_lemma_holds_for_every_stream_of_six_steps(window):
    """Removing an occurrence: minus one on one interval within [s, s + W), and nothing else."""
    for stream in BINARY:
        rows = events(stream)
        counts = exact(window, 1, rows)[:, 0]
        for at, row in enumerate(rows):
            change = exact(window, 1, rows[:at] + rows[at + 1 :])[:, 0] - counts
            where = np.flatnonzero(change)
            assert set(change[where].tolist()) <= {-1}
            if len(where):
                assert where[-1] - where[0] + 1 == len(where) <= window
                assert row[0] <= where[0]
                assert where[-1] < row[0] + window


def test_the_interval_lemma_holds_with_many_occurrences_a_step():
    rng = np.random.default_rng(5)
    for _ in range(400):
        window = int(rng.integers(1, 6))
        rows = [tuple(map(int, r)) for r in rng.integers(0, (6, 1, 3), (rng.integers(1, 12), 3))]
        change = (exact(window, 1, rows[1:]) - exact(window, 1, rows))[:, 0]
        where = np.flatnonzero(change)
        assert set(change[where].tolist()) <= {-1}
        assert len(where) <= window
        assert len(where) == 0 or where[-1] - where[0] + 1 == len(where)


def test_a_first_occurrence_moves_two_steps_in_opposite_ways_under_both_relations():
    for stream in BINARY:
        counts = exact("ever", 1, events(stream))[:, 0]
        for at, other in itertools.product(range(STEPS), (None, 0, 1, 2)):
            if stream[at] is None:
                continue
            changed = [*stream[:at], other, *stream[at + 1 :]]
            change = exact("ever", 1, events(changed))[:, 0] - counts
            assert abs(change).sum() <= 2
            assert (change**2).sum() <= 2
            assert abs(np.cumsum(change)).max() <= 1  # prefix sums, for ever
            assert (change > 0).sum() <= 1
            assert (change < 0).sum() <= 1


@lru_cache(maxsize=64)
def changes(case, distinct, cells):
    """Every change of the counts that a change of one event can make, each once."""
    known = lru_cache(maxsize=None)(lambda rows: exact(distinct, cells, list(rows)))
    found = {}
    for one, other in CHANGED[case]():
        change = known(tuple(sorted(one))) - known(tuple(sorted(other)))
        found[change.tobytes()] = change
    return [change for change in found.values() if change.any()]


def moves(strategy, norm, changed):
    """The largest move of the coordinates, in lattice units, through the real encoder.

    Changes have the largest size that the strategy takes, so that its roundings vanish.
    """
    largest = 0.0
    for change in changed:
        size = strategy.largest_total // (1 << 8)
        x = np.ascontiguousarray(change * size)
        rows = strategy.encode(strategy.init_encoder(x.shape[1]), x, 0).astype(np.float64) / size
        moved = abs(rows).sum() if norm is Norm.L1 else (rows**2).sum() ** 0.5
        largest = max(largest, moved)
    return largest


def removed(values=1):
    """Pairs of streams with and without one event, which brings so many values at once."""
    for stream in BINARY[:: 3 if values > 1 else 1]:
        for at in range(STEPS):
            rest = events([*stream[:at], None, *stream[at + 1 :]])
            yield rest, [*rest, *((at, 0, number) for number in range(values))]


def replaced(cells=1):
    """Pairs of streams in which one event has another value, or lies in another cell."""
    for stream in BINARY:
        for at in range(STEPS):
            rest = events([*stream[:at], None, *stream[at + 1 :]])
            for new in ((at, 0, 1), (at, cells - 1, 0), (at, cells - 1, 2)):
                yield [*rest, (at, 0, 0)], [*rest, new]


def charged(strategy, norm, distinct, relation=ADD, cells=1, values=1, unit=None):
    neighbors = Neighbors(unit or Event(), relation, 0, values, 1, cells, distinct)
    check_distinct(strategy, neighbors)
    return float(strategy.sensitivity(norm, neighbors))


def two_removed():
    """Pairs of streams with and without two events of one id."""
    for stream in BINARY[::2]:
        for places in itertools.combinations(range(STEPS), 2):
            rest = [None if at in places else value for at, value in enumerate(stream)]
            yield events(stream), events(rest)


CHANGED = {
    "removed": removed,
    "three values": lambda: removed(3),
    "replaced": replaced,
    "replaced, two cells": lambda: replaced(2),
    "two removed": two_removed,
}
CASES = [("removed", ADD, 1, 1), ("three values", ADD, 1, 3), ("replaced", REPLACE, 1, 1),
         ("replaced, two cells", REPLACE, 2, 1)]  # fmt: skip


@pytest.mark.parametrize(("case", "relation", "cells", "values"), CASES)
@pytest.mark.parametrize("window", [2, 3, 5])
@pytest.mark.parametrize("kind", ["shaped", "each", "anchored"])
def test_no_change_of_an_event_moves_further_than_charged(
    kind, window, case, relation, cells, values
):
    made = {"shaped": shaped(window), "each": Anchored((1,), window)}
    strategy = made.get(kind) or Anchored((1, 2, 6), window)
    norm = next(iter(strategy.norms))
    paid = charged(strategy, norm, window, relation, cells, values)
    worst = moves(strategy, norm, changes(case, window, cells))
    assert worst <= paid * (1 + 1e-12)
    assert worst >= (0.4 if kind == "anchored" else 0.75) * paid  # six steps do not show all


@pytest.mark.parametrize(("case", "relation", "cells", "values"), CASES)
@pytest.mark.parametrize("strategy", SUMS, ids=lambda s: type(s).__name__)
def test_no_change_moves_first_occurrences_further_than_charged(
    strategy, case, relation, cells, values
):
    for norm in strategy.norms:
        paid = charged(strategy, norm, "ever", relation, cells, values)
        worst = moves(strategy, norm, changes(case, "ever", cells))
        assert 0.5 * paid <= worst <= paid * (1 + 1e-12)


@pytest.mark.parametrize("distinct", ["ever", 3])
def test_an_id_with_several_events_moves_no_further_than_charged(distinct):
    """All events of an id at once: its values come and go by chains of single removals."""
    strategies = SUMS if distinct == "ever" else [shaped(3), Anchored((1, 2, 6), 3)]
    for strategy in strategies:
        for norm in strategy.norms:
            paid = charged(strategy, norm, distinct, unit=Contributions(2))
            worst = moves(strategy, norm, changes("two removed", distinct, 1))
            assert 0.3 * paid <= worst <= paid * (1 + 1e-12)


def assert_intervals_are_paid(strategy, window, norm, paid, steps=400):
    """Every interval of at most W steps, in the middle of a stream, through the encoder."""
    size = strategy.largest_total // 4
    for start in range(0, 2 * getattr(strategy, "periods", (1,))[-1], 7):
        for length in range(1, window + 1):
            x = np.zeros((steps, 1), np.int64)
            x[start : start + length] = size
            rows = strategy.encode(strategy.init_encoder(1), x, 0) / size
            moved = abs(rows).sum() if norm is Norm.L1 else (rows**2).sum() ** 0.5
            assert moved <= paid * (1 + 1e-9)


def test_every_interval_of_a_window_is_paid_for():
    for strategy in (shaped(32), anchored(32)):
        norm = next(iter(strategy.norms))
        assert_intervals_are_paid(strategy, 32, norm, charged(strategy, norm, 32))


# --- broken twins


class Toothed:
    """Behind a comb, as the best strategies for a window sum are: its inverse has teeth."""

    largest_total = 1 << 40
    lattice_bits = 0

    def __init__(self, window):
        self.window = window
        comb = fit([Window(window)]).strategy(lattice_bits=30)
        teeth = [1, *[0] * (window - 1), -float(comb.beta)]
        b = np.convolve(comb.blt.coefficients(400), teeth)[:400]
        self.c = np.zeros(400)
        self.c[0] = 1
        for k in range(1, 400):
            self.c[k] = -b[1 : k + 1] @ self.c[k - 1 :: -1][:k]

    def init_encoder(self, cells):
        return {}

    def encode(self, state, x, first):
        return np.convolve(x[:, 0], self.c)[: len(x)].reshape(-1, 1)

    def sensitivity_at(self, length):
        return (np.convolve(np.ones(length), self.c)[:400] ** 2).sum() ** 0.5


def test_a_comb_that_is_charged_at_the_longest_interval_is_rejected():
    broken = Toothed(32)
    with pytest.raises(AssertionError):
        assert_intervals_are_paid(broken, 32, Norm.L2, broken.sensitivity_at(32))
    worst = max(range(1, 33), key=broken.sensitivity_at)
    assert worst < 32
    assert_intervals_are_paid(broken, 32, Norm.L2, broken.sensitivity_at(worst))


def counted_twice(distinct, cells, rows, steps=STEPS):
    """Every occurrence adds a window of its own: one value that comes twice counts twice."""
    out = np.zeros((steps, cells), np.int64)
    for step, cell, _ in rows:
        out[step : step + distinct, cell] += 1
    return out


def occurrence_ends_early(distinct, cells, rows, steps=STEPS):
    """A value that came again is forgotten when its first occurrence leaves the window."""
    out = np.zeros((steps, cells), np.int64)
    for value in {v for _, _, v in rows}:
        step = min(s for s, _, v in rows if v == value)
        out[step : step + distinct, 0] += 1
    return out


@pytest.mark.parametrize("broken", [counted_twice, occurrence_ends_early])
def test_counts_that_are_not_those_of_different_values_are_rejected(broken):
    rows = [(0, 0, 7), (1, 0, 7), (4, 0, 8)]
    assert slow(3, 1, rows).tolist() == exact(3, 1, rows).tolist() != broken(3, 1, rows).tolist()


def test_a_forgetful_count_would_move_two_intervals():
    """The twin's sensitivity is not what is charged: removing the first of two occurrences."""
    one, other = [(0, 0, 7), (2, 0, 7)], [(2, 0, 7)]
    change = occurrence_ends_early(2, 1, one) - occurrence_ends_early(2, 1, other)
    assert [1, 1, -1, -1, 0, 0] == change[:, 0].tolist()
    strategy = shaped(2)
    rows = strategy.encode(strategy.init_encoder(1), change * (1 << 20), 0) / (1 << 20)
    assert (rows**2).sum() ** 0.5 > charged(strategy, Norm.L2, 2)


def test_one_change_charged_where_there_are_two_is_rejected():
    sums = Neighbors(Event(), ADD, 0, 1, 1, 1)
    broken = float(FITTED.sensitivity(Norm.L2, sums))
    rows = [(0, 0, 7), (40, 0, 7)]
    change = exact("ever", 1, rows, 64) - exact("ever", 1, rows[1:], 64)
    moved = moves(FITTED, Norm.L2, [change])
    assert broken * 1.25 < moved <= charged(FITTED, Norm.L2, "ever")


def test_two_opposite_changes_behind_a_comb_are_refused():
    comb = Comb((HALF,), (HALF // 2,), Fraction(13, 32), 4, 20, 64)
    with pytest.raises(UnsupportedCombination):
        charged(comb, Norm.L2, "ever")


def test_the_root_of_two_would_not_pay_for_a_replaced_value():
    """The value that is taken away ends where the one that is brought begins."""
    strategy, u, v = shaped(16), 7, 8
    around = [(0, 0, v), (16, 0, u)]
    one, other = ([*around, (8, 0, value)] for value in (u, v))
    change = exact(16, 1, one, 200) - exact(16, 1, other, 200)
    assert [8, 8] == [(change == 1).sum(), (change == -1).sum()]
    worst, single = moves(strategy, Norm.L2, [change]), charged(strategy, Norm.L2, 16)
    assert single * 2**0.5 * 1.03 < worst <= charged(strategy, Norm.L2, 16, REPLACE)


def test_strategies_for_sums_refuse_counts_of_a_window():
    for strategy in (*SUMS, OpenBlocks((1, 3), (Running(),))):
        with pytest.raises(UnsupportedCombination):
            strategy.sensitivity(next(iter(strategy.norms)), Neighbors(Event(), ADD, 0, 1, 1, 1, 3))


@pytest.mark.parametrize("cells", [1, 3])
def test_no_rounding_of_shaped_noise_is_unpaid(cells):
    """A greedy adversary on a coarse lattice stays within what its roundings are charged."""
    strategy = Shaped((HALF // 8,), (HALF // 16,), 4, lattice_bits=0, charged_steps=120)
    ideal = np.zeros((120, 1))
    ideal[:, 0] = strategy.coefficients(120)
    moved = attack(strategy, cells, signed=False, steps=120, ideal=ideal)
    e = 1 + 1 / (HALF // 8)
    assert abs(moved - ideal).max() < e
    one, _ = interval_gains(strategy.gaps, strategy.weights, 4)
    neighbors = Neighbors(Event(), ADD, 0, 1, cells, cells, 4)
    paid = strategy.sensitivity(Norm.L2, neighbors)
    assert paid >= sqrt_up(cells * one) + sqrt_up(Fraction(120 * cells))


def test_a_larger_window_never_costs_less():
    blt = shaped(64)
    assert isinstance(FITTED, Blt)
    gains = [interval_gains(blt.gaps, blt.weights, w) for w in (1, 2, 8, 32, 64)]
    assert gains == sorted(gains)
