"""The lemmas behind the costs, by enumeration through the code's own vectors, with broken twins."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegauge.papers.cardoso_rogers import SparseGumb, SparseNoise
from tidegauge.papers.cardoso_rogers.algorithms import _largest
from tidegauge.papers.cardoso_rogers.events import LARGEST_TOTAL

NAMES = "fbdace"  # no order of places


def padded(counts, kbar):
    """The code's choice of the largest, with items that never occur where too few do."""
    places = [i for i, count in enumerate(counts) if count]
    if len(places) <= kbar:
        return set(places), 0
    best, following = _largest(
        np.array([counts[i] for i in places]), [NAMES[i] for i in places], kbar
    )
    return {places[i] for i in best.tolist()}, following


def extended(one, other, kbar):
    """How far each coordinate of the extended vector moves, and the gaps of virtual items."""
    (mine, m), (theirs, n) = padded(one, kbar), padded(other, kbar)
    moves = [one[i] - other[i] for i in mine & theirs]
    pairs = max(len(mine - theirs), len(theirs - mine))
    columns = [
        sorted((counts[i] for i in alone), reverse=True)
        for counts, alone in ((one, mine - theirs), (other, theirs - mine))
    ]
    for column in columns:
        column += [0] * (pairs - len(column))
    moves += [a - b for a, b in zip(*columns, strict=True)]
    gaps = [one[i] - m for i in mine - theirs] + [other[i] - n for i in theirs - mine]
    return [*moves, m - n], gaps, pairs


HISTOGRAMS = st.lists(st.integers(0, 3), min_size=1, max_size=6)
EVENTS = st.sets(st.integers(0, 5))


@settings(max_examples=250, deadline=None)
@given(HISTOGRAMS, EVENTS, st.integers(1, 5))
def test_an_event_moves_the_extended_vector_by_no_more_than_its_items(counts, event, kbar):
    event = {i for i in event if i < len(counts)}
    more = [count + (i in event) for i, count in enumerate(counts)]
    moves, gaps, pairs = extended(more, counts, kbar)
    assert set(moves) <= {0, 1}
    assert sum(move**2 for move in moves) <= len(event)
    assert max(gaps, default=0) <= 1
    assert pairs <= min(len(event), kbar)


@settings(max_examples=250, deadline=None)
@given(HISTOGRAMS, EVENTS, EVENTS, st.integers(1, 5))
def test_replacing_an_event_moves_it_both_ways(counts, first, second, kbar):
    one, other = (
        [count + (i in event) for i, count in enumerate(counts)] for event in (first, second)
    )
    events = len([i for i in first if i < len(counts)]), len([i for i in second if i < len(counts)])
    moves, gaps, pairs = extended(one, other, kbar)
    assert set(moves) <= {-1, 0, 1}
    assert sum(move**2 for move in moves) <= sum(events)
    assert max(gaps, default=0) <= 2
    assert pairs <= min(2 * max(events), kbar)


def test_a_gap_of_one_is_not_enough_where_events_are_replaced():
    def worst(counts):
        moved = [[c + (event >> i & 1) for i, c in enumerate(counts)] for event in range(16)]
        return max(gap for x in moved for y in moved for gap in [0, *extended(x, y, 2)[1]])

    assert 2 == max(map(worst, [(0, 0, 0, 0), (1, 1, 1, 1), (2, 1, 1, 0)]))


# ------------------------------------------------------------------ AboveThreshold, exactly


def laplace(scale, reach):
    q = math.exp(-1 / scale)
    return (1 - q) / (1 + q) * q ** np.abs(np.arange(-reach, reach + 1))


def passes(statistic, test_scale, threshold_scale, reach=150):
    """P(the first pass is at each step), and of none."""
    threshold = laplace(threshold_scale, reach)
    at = np.arange(-reach, reach + 1)
    q = math.exp(-1 / test_scale)
    chances, none = [], threshold.copy()
    for value in statistic:
        need = at - value  # nu >= need
        above = np.where(
            need > 0, q ** np.maximum(need, 0) / (1 + q), 1 - q ** np.maximum(1 - need, 0) / (1 + q)
        )
        chances.append((none * above).sum())
        none = none * (1 - above)
    return np.array([*chances, none.sum()])


def worst_loss(test_scale, threshold_scale, ways, length=5):
    """The largest logarithm of a ratio over neighboring sequences of statistics."""
    worst = 0.0
    rng = np.random.default_rng(1)
    starts = [np.full(length, level) for level in (-30, -10, 0, 10)]
    starts += [rng.integers(-20, 20, length) for _ in range(10)]
    for start in starts:
        for moves in ways(length):
            one, other = (passes(x, test_scale, threshold_scale) for x in (start, start + moves))
            worst = max(worst, float(np.abs(np.log(one / other)).max()))
    return worst


def both_ways(length):
    for last in (-1, 1):
        yield np.array([-last] * (length - 1) + [last])
    for moves in np.ndindex(3, 3, 3):
        yield np.pad(np.array(moves) - 1, (0, length - 3))


def one_way(length):
    for bits in range(2**length):
        yield np.array([bits >> i & 1 for i in range(length)])


@pytest.mark.parametrize("epsilon", [0.5, 1.0])
def test_a_run_of_tests_is_epsilon_private(epsilon):
    assert worst_loss(4 / epsilon, 2 / epsilon, both_ways) <= epsilon * (1 + 1e-9)
    assert worst_loss(2 / epsilon, 2 / epsilon, one_way) <= epsilon * (1 + 1e-9)


def test_half_the_noise_is_not_enough_for_a_statistic_that_moves_both_ways():
    assert worst_loss(2.0, 2.0, both_ways, 30) > 1.02


# ------------------------------------------------------------------ SparseGumb


def test_the_lead_moves_by_one_in_both_directions_and_by_two_if_an_event_is_replaced():
    names, found, replaced = "abcd", set(), set()
    system = SparseGumb(list(names), 2, 2, 9, switches=1, noise=SparseNoise(1, 1, 1))
    system.update(None)

    def lead(counts):
        system._counts[:] = counts
        return system._lead()

    for counts in np.ndindex(3, 3, 3, 3):
        leads = [lead(np.array(counts) + [event >> i & 1 for i in range(4)]) for event in range(16)]
        found |= {moved - leads[0] for moved in leads}
        replaced |= {a - b for a in leads for b in leads}
    assert {-1, 0, 1} == found
    assert {-2, -1, 0, 1, 2} == replaced


def runs_of(kind, switches):
    """How many runs of tests a system begins where everything passes."""
    names = [f"{i}" for i in range(6)]
    system = kind(names, 1, 2, 60, switches=switches, margin=0, noise=SparseNoise(1, 1, 50))
    runs = 0
    restart = system._tests.restart

    def counted(margin):
        nonlocal runs
        runs += 1
        restart(margin)

    system._tests.restart = counted
    for step in range(60):
        system.update({names[step % 6]: 2 ** min(step, 29)})
    return runs


@pytest.mark.parametrize("switches", [0, 1, 4])
def test_no_more_runs_of_tests_begin_than_are_paid_for(switches):
    assert switches == runs_of(SparseGumb, switches)


def test_a_run_after_the_last_switch_is_caught():
    def unpaid(*args, **options):
        system = SparseGumb(*args, **options)
        choose = system._choose

        def broken():
            choose()
            if not system._left:
                system._tests.restart(system._margin)

        system._choose = broken
        return system

    assert runs_of(unpaid, 4) > 4


def test_counts_are_cut_off_far_below_what_64_bits_hold():
    assert LARGEST_TOTAL << 20 < 2**61
    assert Fraction(LARGEST_TOTAL) > 10**12
