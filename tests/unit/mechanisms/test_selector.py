"""The selector: what is shown, what is kept between blocks, and how often it may choose."""

import copy
import itertools
import pickle
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_selection import ADD, REPLACE, neighbors, planned

from tidegauge.errors import InvalidInput, InvalidParameter, LiveState, StreamEnded
from tidegauge.mechanisms.oneshot import AboveThreshold
from tidegauge.mechanisms.selection import Select
from tidegauge.mechanisms.selector import Chosen, ChosenReading, Selector
from tidegauge.noise.laplace import DiscreteLaplace
from tidegauge.privacy.guarantee import ZCDP
from tidegauge.testing import SeededWords, seeded_selector

SURE = {"scale": Fraction(1, 1000), "epsilon": Fraction(1000)}  # choices nearly without noise
MUCH = ZCDP(10**5)


def sure(*, k=2, switches=3, margin=3, end=100, cells=6, guarantee=MUCH):
    """A plan whose choices are those of the exact counts; it protects nobody."""
    plan = planned(
        guarantee,
        select=Select(k, switches, margin),
        end=end,
        neighbors=neighbors(k, switches, cells),
    )
    return replace(plan, selection=replace(plan.selection, **SURE))


def expected(counts, k, switches, margin):
    """The rule itself, step by step."""
    used, shown = 0, None
    for step, count in enumerate(counts):
        if step:
            lead = max(np.delete(count, shown)) - min(count[shown])
            switch = used < switches and lead >= margin
            used += switch
        if step == 0 or switch:
            shown = np.sort(np.argsort(-count, kind="stable")[:k])
        yield used, shown.tolist()


STREAMS = st.lists(st.lists(st.integers(0, 3), min_size=5, max_size=5), min_size=1, max_size=12)


@settings(max_examples=15, deadline=None)
@given(STREAMS, st.integers(0, 3), st.integers(1, 4))
def test_it_shows_the_largest_and_switches_when_another_leads(rows, seed, length):
    tie = np.arange(5) * 97 % 5  # no two counts are ever equal
    steps = 16 * np.array(rows) + np.where(np.arange(len(rows))[:, None] == 0, tie, 0)
    plan = sure(switches=2, margin=20, cells=5, end=12)
    selector = seeded_selector(seed, plan)
    blocks = [selector.measure(steps[at : at + length]) for at in range(0, len(steps), length)]
    found = [
        pair
        for block in blocks
        for pair in zip(block.used.tolist(), block.cells.tolist(), strict=True)
    ]
    assert list(expected(steps.cumsum(axis=0), 2, 2, 20)) == found


def test_cuts_between_blocks_change_nothing_and_a_stored_state_goes_on():
    rng = np.random.default_rng(1)
    steps = rng.poisson([9, 8, 7, 3, 3, 2], (60, 6)) + 40 * (np.arange(60) > 30)[:, None] * [
        0, 0, 0, 0, 1, 2,
    ]  # fmt: skip
    plan = sure(margin=5)
    whole = seeded_selector(3, plan).measure(steps)
    assert whole.used[-1] > 0
    selector, parts = seeded_selector(3, plan), []
    for start, stop in itertools.pairwise([0, 1, 2, 31, 33, 60]):
        state = copy.deepcopy(selector.state) if start else None  # what a store would give back
        if state is not None:
            selector.close()
            selector = seeded_selector(3, plan, state, start)
        parts.append(selector.measure(steps[start:stop]).packed)
    assert np.array_equal(whole.packed, np.concatenate(parts))
    assert selector.step == 60


def test_a_cell_that_returns_has_the_noise_that_it_would_have_had():
    plan = sure(k=1, switches=5, margin=5, cells=3, end=40)
    steps = np.zeros((40, 3), np.int64)
    steps[0], steps[10], steps[20] = [20, 0, 0], [0, 40, 0], [40, 0, 0]
    shown = seeded_selector(5, plan).measure(steps)
    assert [0] * 10 + [1] * 10 + [0] * 20 == shown.cells[:, 0].tolist()
    steps[10] = 0  # the same noise, and nobody in between
    always = seeded_selector(5, plan).measure(steps)
    assert [0] * 40 == always.cells[:, 0].tolist()
    assert np.array_equal(shown.measured[20:], always.measured[20:])


def test_values_are_the_counts_with_the_noise_that_the_plan_tells():
    plan = planned(ZCDP(Fraction(1, 10)), end=200)
    steps = np.random.default_rng(2).poisson(30, (200, 20))
    noise = []
    for seed in range(25):
        shown = seeded_selector(seed, plan).measure(steps)
        exact = np.take_along_axis(steps.cumsum(axis=0), shown.cells, axis=1)
        noise.append((shown.measured / 2**20 - exact)[[9, 199]])
    std = plan.noise_std("running", [10, 200])
    z = np.array(noise) / std[:, None]
    assert abs(z.mean()) < 4 / np.sqrt(z.size)
    assert 0.8 < z.std() < 1.2


# ------------------------------------------------------------------ what is paid for


def starts(plan, steps, selector=None):
    """How many runs of tests and how many choices there are where everything passes."""
    selector = selector or seeded_selector(1, plan)
    runs, picks = [], []
    restart, order = selector._tests.restart, selector._order.of
    selector._tests.restart = lambda margin: (runs.append(1), restart(margin))[1]
    selector._order.of = lambda counts: (picks.append(1), order(counts))[1]
    for block in np.array_split(steps, 5):
        selector.measure(block)
    return len(runs), len(picks)


def leapfrog(steps, cells):
    """Each step another cell is far ahead."""
    return np.array([[10 * 2**t * (t % cells == c) for c in range(cells)] for t in range(steps)])


@pytest.mark.parametrize("switches", [1, 2, 4])
def test_no_more_choices_and_runs_than_are_paid_for(switches):
    plan = sure(k=1, switches=switches, margin=1)
    assert (switches, switches + 1) == starts(plan, leapfrog(15, 6))


def test_a_test_after_the_last_switch_is_caught():
    plan = sure(k=1, switches=2, margin=1)
    broken = seeded_selector(1, plan)
    broken._selection = replace(plan.selection, switches=10**6)
    assert starts(plan, leapfrog(15, 6), broken) > (2, 3)


def test_the_threshold_of_a_run_is_drawn_once_however_often_it_is_opened():
    plan, steps = planned(end=50), np.zeros((50, 20), np.int64)
    selector = Selector(plan)
    selector.measure(steps[:1])
    kept = selector._tests.threshold
    for step in range(1, 6):
        state = copy.deepcopy(selector.state)
        selector.close()
        selector = Selector(plan, state=state, step=step)
        assert kept == selector._tests.threshold
        assert [] == list(selector.measure(steps[:0]).used)
        selector.measure(steps[step : step + 1])


def passes(*, kept, openings=30, streams=60):
    """In how many streams noise alone passes, with an opening at each step.

    Of tests that hardly have noise of their own, so that the threshold alone decides.
    """
    passed = 0
    for stream in range(streams):
        threshold = None
        for step in range(openings):
            tests = AboveThreshold(Fraction(1, 10), 1, monotone=False, threshold=threshold)
            tests._law = DiscreteLaplace(Fraction(1, 100))
            tests._words = SeededWords(1000 * stream + 2 * step)
            tests._threshold_words = SeededWords(1000 * stream + 2 * step + 1)
            if threshold is None or not kept:
                tests.restart(60)
            threshold = tests.threshold
            if tests.passed(0):
                passed += 1
                break
    return passed


def test_a_threshold_that_is_drawn_at_each_opening_would_be_as_many_runs():
    assert passes(kept=True) <= 8  # e^(-60 / 20) / 2 = 2.5 % of 60 streams
    assert passes(kept=False) >= 20  # 1 - (1 - 2.5 %)^30 = 53 %


def test_a_further_release_begins_its_run_anew_and_only_then():
    plan = planned(end=50)
    first = Selector(plan)
    first.measure(np.zeros((5, 20), np.int64))
    state, threshold = copy.deepcopy(first.state), first._tests.threshold
    found = set()
    for _ in range(5):
        further = Selector(plan, state=copy.deepcopy(state), step=5)
        assert threshold == further._tests.threshold
        further.begin_again()
        found.add(further._tests.threshold)
    assert len(found | {threshold}) > 3
    spent = copy.deepcopy(state)
    spent["choice"]["used"][:] = 3
    spent["choice"]["threshold"][:] = np.iinfo(np.int64).min
    done = Selector(plan, state=spent, step=5)
    done.begin_again()
    assert done._tests.threshold is None  # nothing more is paid for
    assert [3] * 45 == done.measure(np.zeros((45, 20), np.int64)).used.tolist()


@pytest.mark.parametrize(("relation", "most"), [(ADD, 1), (REPLACE, 2)])
def test_the_lead_moves_no_further_than_tests_are_made_for(relation, most):
    selector = Selector(sure(cells=4))
    found = set()
    events = [np.array([event >> i & 1 for i in range(4)]) for event in range(16)]
    selector._shown = np.array([1, 2])
    for counts in np.ndindex(3, 3, 3, 3):
        leads = [int(selector._leads((np.array(counts) + event)[None])[0]) for event in events]
        others = leads[:1] if relation is ADD else leads
        found |= {one - other for one in leads for other in others}
    assert set(range(-most, most + 1)) == found
    assert most == planned().selection.lead_change(neighbors(relation=relation))


# ------------------------------------------------------------------ bad input, and live state


def test_what_is_refused_measures_nothing():
    selector = Selector(planned(end=5))
    for wrong in (np.zeros((1, 3), int), np.full((1, 20), -1), np.full((1, 20), 0.5), b"12"):
        with pytest.raises(InvalidInput):
            selector.measure(wrong)
    with pytest.raises(StreamEnded):
        selector.measure(np.zeros((6, 20), int))
    assert 0 == selector.step
    assert 5 == len(selector.measure(np.zeros((5, 20), int)).used)


def test_it_is_live():
    selector = Selector(planned())
    for act in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(LiveState):
            act(selector)
    assert "Selector(step=0)" == repr(selector)
    selector.close()
    with pytest.raises(LiveState):
        selector.measure(np.zeros((1, 20), int))


def test_an_interrupted_block_ends_it():
    selector = Selector(planned())
    order = selector._order.of

    def interrupted(counts):
        raise KeyboardInterrupt

    selector._order.of = interrupted
    with pytest.raises(KeyboardInterrupt):
        selector.measure(np.zeros((1, 20), int))
    selector._order.of = order
    with pytest.raises(LiveState, match="between two blocks"):
        selector.measure(np.zeros((1, 20), int))


def test_a_plan_without_a_choice_has_no_selector():
    with pytest.raises(InvalidParameter, match="Use a Meter"):
        Selector(replace(planned(), selection=None))


def test_totals_are_clamped_and_counts_end_far_below_what_64_bits_hold():
    plan = planned(end=5)
    selector = Selector(plan)
    shown = selector.measure(np.full((5, 20), plan.max_per_step + 1))
    assert 100 == selector.clamped
    assert (
        np.abs(shown.measured / 2**20 - plan.max_per_step * np.arange(1, 6)[:, None]).max() < 10**5
    )
    selector = Selector(plan)
    selector._counts[:] = 1 << 40
    assert selector.measure(np.full((5, 20), plan.max_per_step)).cells.shape == (5, 2)


def test_a_block_packs_and_a_table_has_nothing_where_a_cell_is_hidden():
    chosen = Chosen(np.array([0, 1]), np.array([[0, 2], [1, 2]]), np.array([[1, 2], [3, 4]]) << 20)
    again = Chosen.unpacked(chosen.packed)
    assert np.array_equal(chosen.packed, again.packed)
    reading = ChosenReading(planned())
    table = reading.decode(chosen.packed, 2)
    assert (1, 2, 20) == table.shape
    assert 4 == np.isfinite(table).sum()
    assert [1.0, 2.0] == table[0, 0, [0, 2]].tolist()
    assert 2 == reading.step
    assert {} == reading.state
    assert "Chosen(2 steps, 2 cells)" == repr(chosen)
