"""The finder: what it tells does not depend on cuts, openings or numbers, and nothing is hidden."""

import copy
import itertools
import os
import pickle
import threading
from dataclasses import fields, replace

import numpy as np
import pytest

import tidegauge as tg
from tidegauge.errors import InvalidInput, InvalidParameter, LiveState, StreamEnded
from tidegauge.mechanisms import finder as module
from tidegauge.mechanisms import item_keys
from tidegauge.mechanisms.design import design
from tidegauge.mechanisms.discovery import Discover
from tidegauge.mechanisms.finder import Finder
from tidegauge.mechanisms.growing import GrowingReading
from tidegauge.mechanisms.reading import Reading
from tidegauge.mechanisms.request import request_of
from tidegauge.mechanisms.secret import noise_key
from tidegauge.noise.randomness import stored_words
from tidegauge.strategies.blt import Blt, Comb
from tidegauge.strategies.identity import Identity

STEPS, ITEMS = 60, 300
KEYS = tuple(bytes([n]) * 32 for n in range(4))


def planned(views=(tg.Running(), tg.Window(7)), discover=tg.Running(), **changes):  # noqa: B008
    options = {"unit": "event", "epsilon": 4, "delta": 1e-3, "end": STEPS, "max_change": 3}
    return design(request_of(views=views, discover=Discover(discover), **(options | changes)))


PLANS = {
    "running": planned(),
    "window": planned(discover=tg.Window(7)),
    "comb": planned(views=[tg.Window(20)], discover=tg.Window(20), end=None),
    "identity": planned(views=[tg.Step()], discover=tg.Step(), end=None),
    "a running sum of few steps": planned(views=[tg.Step()], discover=tg.Running(), end=STEPS),
}


def stream(seed=1, steps=STEPS, items=ITEMS):
    """When, which and how much, numbered by first sight: some items large, most small or rare."""
    rng = np.random.default_rng(seed)
    often = rng.random(items) ** 3
    when, which = np.nonzero(rng.random((steps, items)) < often)
    amounts = rng.poisson(30 * rng.random(items) ** 2, items)[which]
    known: dict[int, int] = {}
    numbers = [known.setdefault(item, len(known)) for item in which.tolist()]
    return when.astype(np.int64), np.array(numbers, np.int64), amounts.astype(np.int64)


def told(plan, cuts, events, *, keys=((0, KEYS[0]),), resume=False, gauge="visits"):
    """Run a stream in blocks; return v of each visible item, its first step, and the finder."""
    when, numbers, amounts = events
    measured, starts, finder = {}, {}, Finder(plan, keys[:1], gauge=gauge)
    for first, end in itertools.pairwise(cuts):
        if resume or any(first == start for start, _ in keys[1:]):
            state = {name: array.copy() for name, array in finder.state.items()}
            now = [pair for pair in keys if pair[0] <= first]
            finder = Finder(plan, now, gauge=gauge, state=state, step=first)
        block = (first <= when) & (when < end)
        found = finder.measure(end - first, when[block] - first, numbers[block], amounts[block])
        assert found.past.shape == (first, int(found.new.sum()))
        for past, number in zip(found.past.T, found.numbers[found.new], strict=True):
            measured[int(number)] = past.tolist()
        for rows, number in zip(found.measured.T, found.numbers, strict=True):
            measured[int(number)] += rows.tolist()
        starts = dict(zip(found.numbers.tolist(), found.visible_from.tolist(), strict=True))
    return measured, starts, finder


CUTS = {
    "two blocks": [0, 31, STEPS],
    "each step": list(range(STEPS + 1)),
    "an empty block": [0, 1, 1, 30, 59, STEPS],
}


@pytest.mark.parametrize("name", PLANS)
def test_blocks_and_interruptions_change_nothing(name):
    plan, events = PLANS[name], stream()
    whole = told(plan, [0, STEPS], events)
    assert 20 < len(whole[0]) < 280
    for cuts in CUTS.values():
        for resume in (False, True):
            again = told(plan, cuts, events, resume=resume)
            assert whole[:2] == again[:2]
            for key, array in whole[2].state.items():
                rows = slice(None) if array.ndim == 1 else slice(0, len(array))
                assert np.array_equal(array, again[2].state[key][rows]), key


@pytest.mark.parametrize("name", PLANS)
def test_what_is_told_is_the_measurement_of_exact_totals_and_the_rule_of_the_plan(name):
    """Against a plain twin: all items as known cells, with the noise of their numbers."""
    plan = PLANS[name]
    when, numbers, amounts = events = stream()
    measured, starts, _ = told(plan, [0, 17, STEPS], events)
    items = numbers.max() + 1
    x = np.zeros((STEPS, items), np.int64)
    x[when, numbers] = amounts
    words = stored_words(
        KEYS[0], "tidegauge items 1", "visits", plan.fingerprint, plan.law.scale,
        plan.strategy.lattice_bits,
    )  # fmt: skip
    v = plan.strategy.encode(plan.strategy.init_encoder(items), x, 0)
    plan.law.add(words, v, plan.strategy.coordinates(0, STEPS))
    decay = plan.discovery.decay
    value = np.empty((1, STEPS, items))
    plan.strategy.decode(plan.strategy.init_decoder([decay], items), [decay], v, 0, value)
    seen = np.zeros((STEPS, items), bool)
    seen[when, numbers] = True
    window = {tg.Window(7): 7, tg.Window(20): 20, tg.Step(): 1}.get(decay, STEPS)
    expected = {}
    for item in range(items):
        for t in range(STEPS):
            support = seen[max(0, t - window + 1) : t + 1, item].any()
            if support and value[0, t, item] > plan.discovery.threshold:
                expected[item] = t
                break
    assert expected == starts
    assert {item: v[:, item].tolist() for item in expected} == measured


def test_plans_here_are_of_every_strategy_that_discovers():
    assert {Identity, Blt, Comb} == {type(plan.strategy) for plan in PLANS.values()}


def test_a_new_opening_changes_the_noise_from_its_step_on_and_none_before():
    plan, events = PLANS["running"], stream()
    once, _, _ = told(plan, [0, 40, STEPS], events)
    again, _, _ = told(plan, [0, 40, STEPS], events, keys=((0, KEYS[0]), (40, KEYS[1])))
    both = once.keys() & again.keys()
    assert len(both) > 100
    for item in both:
        assert once[item][:40] == again[item][:40]
        assert all(a != b for a, b in zip(once[item][40:], again[item][40:], strict=True))
    late = set(again) - {n for n, s in told(plan, [0, 40], events)[1].items() if s < 40}
    assert late, "some became visible later: their past came from the first key"


def test_openings_in_any_number_give_what_their_keys_give():
    plan, events = PLANS["window"], stream(2)
    keys = ((0, KEYS[0]), (10, KEYS[1]), (11, KEYS[2]), (50, KEYS[3]))
    a = told(plan, [0, 10, 11, 50, STEPS], events, keys=keys)
    b = told(plan, [0, 5, 10, 11, 12, 30, 50, 55, STEPS], events, keys=keys, resume=True)
    assert a[:2] == b[:2]


def test_a_key_gives_other_noise_to_other_gauges_plans_scales_and_lattices():
    plan, events = PLANS["running"], stream()
    ours, _, _ = told(plan, [0, STEPS], events)
    for other in (
        told(plan, [0, STEPS], events, gauge="others"),
        told(replace(plan, max_per_step=plan.max_per_step - 1), [0, STEPS], events),
        told(plan, [0, STEPS], events, keys=((0, KEYS[1]),)),
    ):
        both = ours.keys() & other[0].keys()
        assert both
        assert all(a != b for item in both for a, b in zip(ours[item], other[0][item], strict=True))


class Renumbered:
    """Words by item: numbers of the finder are taken for the names of the items."""

    def __init__(self, words, names):
        self._words, self._names = words, np.array(names, np.uint64)

    def fill(self, inputs, outputs):
        named = inputs.copy()
        named[:, 0] = self._names[inputs[:, 0].astype(np.int64)]
        self._words.fill(named, outputs)

    def __getattr__(self, name):
        return getattr(self._words, name)


@pytest.mark.parametrize("name", ["running", "window"])
def test_which_item_came_first_changes_nothing_for_any_item(name, monkeypatch):
    """Under noise keyed by the item, numbers are but addresses."""
    plan, (when, numbers, amounts) = PLANS[name], stream()
    items = int(numbers.max()) + 1
    whole = told(plan, [0, 20, STEPS], (when, numbers, amounts))
    first = np.array([when[numbers == item].min() for item in range(items)])
    order = np.lexsort((-np.arange(items), first))  # of each step the other way round
    renumber = np.empty(items, np.int64)
    renumber[order] = np.arange(items)
    monkeypatch.setattr(
        item_keys, "stored_words", lambda *context: Renumbered(stored_words(*context), order)
    )
    again = told(plan, [0, 20, STEPS], (when, renumber[numbers], amounts))
    assert whole[0] == {int(order[item]): rows for item, rows in again[0].items()}
    assert whole[1] == {int(order[item]): step for item, step in again[1].items()}


def test_views_do_not_change_who_is_visible():
    """One threshold for all views: a view that is added is of visible items, and costs nothing."""
    plan, events = PLANS["running"], stream()
    more = plan.with_view("later", tg.Window(3))
    assert told(plan, [0, STEPS], events)[:2] == told(more, [0, STEPS], events)[:2]


def test_hidden_items_leave_nothing():
    """Found speaks of visible items: with hidden ones left out, it is the same to the byte."""
    plan, (when, numbers, amounts) = PLANS["running"], stream()
    _, starts, _ = told(plan, [0, STEPS], (when, numbers, amounts))
    finder = Finder(plan, [(0, KEYS[0])], gauge="visits")
    found = finder.measure(STEPS, when, numbers, amounts)
    shown = sorted(starts)
    assert found.numbers.tolist() == shown
    # amounts of hidden items are replaced by 0, and the last of them do not occur at all
    small = np.where(np.isin(numbers, shown), amounts, 0)
    kept = np.isin(numbers, shown) | (numbers < max(shown))
    other = Finder(plan, [(0, KEYS[0])], gauge="visits")
    again = other.measure(STEPS, when[kept], numbers[kept], small[kept])
    assert other.items < finder.items
    for field in fields(found):
        one, two = getattr(found, field.name), getattr(again, field.name)
        assert np.array_equal(one, two), field.name
    assert repr(found) == repr(again)
    assert repr(finder) == repr(other) == f"Finder(step={STEPS})"


@pytest.mark.parametrize("name", PLANS)
def test_a_further_release_has_noise_of_its_own_for_all_that_is_not_visible(name):
    """Items that are not shown have what they would have had under the later key alone."""
    plan, at, events = PLANS[name], 20, stream()
    when, numbers, amounts = events
    early, late = when < at, when >= at
    finder = Finder(plan, [(0, KEYS[0])], gauge="visits")
    first = finder.measure(at, when[early], numbers[early], amounts[early])
    older = {key: array for key, array in finder.state.items() if key not in ("since", "again")}
    again = Finder(plan, [(0, KEYS[0]), (at, KEYS[1])], gauge="visits", state=older, step=at)
    again.begin_again()
    found = again.measure(STEPS - at, when[late] - at, numbers[late], amounts[late])
    shown = np.isin(found.numbers, first.numbers)
    assert (found.new == ~shown).all()
    assert (found.visible_from[~shown] >= at).all()
    alone, starts, _ = told(plan, [0, at, STEPS], events, keys=((0, KEYS[1]),))
    past = dict(zip(found.numbers[found.new].tolist(), found.past.T.tolist(), strict=True))
    rows = dict(zip(found.numbers.tolist(), found.measured.T.tolist(), strict=True))
    begun = dict(zip(found.numbers.tolist(), found.visible_from.tolist(), strict=True))
    both = past.keys() & alone.keys()
    assert {number < numbers[early].max() for number in both} == {True, False}
    assert all(past[number] + rows[number] == alone[number] for number in both)
    later = {number: step for number, step in starts.items() if step >= at}
    ours = {number: step for number, step in begun.items() if number in later and number in past}
    assert ours == {number: step for number, step in later.items() if number in ours}
    assert ours


def test_history_is_kept_of_hidden_items_only():
    plan, events = PLANS["running"], stream()
    _, starts, finder = told(plan, [0, 30, STEPS], events)
    hidden = ~np.isin(events[1], sorted(starts))
    assert len(finder.state["history.items"]) == hidden.sum() > 0
    assert set(finder.state["history.items"].tolist()).isdisjoint(starts)


def test_an_event_without_an_amount_supports_its_item():
    """Support is that an event occurred, and not that its sum is positive."""
    plan = planned(views=[tg.Step()], discover=tg.Step(), end=None)
    low = replace(plan, discovery=replace(plan.discovery, threshold=-(10**9)))
    finder = Finder(low, [(0, KEYS[0])], gauge="visits")
    found = finder.measure(3, *(np.array(a) for a in ([0, 2], [0, 1], [0, 0])))
    assert [0, 2] == found.visible_from.tolist()
    assert [0, 1] == found.numbers.tolist()


@pytest.mark.parametrize("name", PLANS)
def test_a_growing_reading_is_a_reading_of_all_steps(name):
    plan, (when, numbers, amounts) = PLANS[name], stream()
    views = [decay for _, decay in plan.views] + [tg.Window(5), tg.Exponential(half_life=4)]
    finder, reading = Finder(plan, [(0, KEYS[0])], gauge="visits"), GrowingReading(plan, views)
    order, last = np.zeros(0, np.int64), None
    for first, end in ((0, 13), (13, 14), (14, 45), (45, STEPS)):
        block = (first <= when) & (when < end)
        found = finder.measure(end - first, when[block] - first, numbers[block], amounts[block])
        reading.grow(found.past)
        order = np.concatenate([order, found.numbers[found.new]])
        columns = np.searchsorted(found.numbers, order)
        last = reading.decode(found.measured[:, columns], end - first)
    measured, _, _ = told(plan, [0, STEPS], (when, numbers, amounts))
    rows = np.array([measured[item] for item in order.tolist()]).T.copy()
    known = replace(plan, neighbors=replace(plan.neighbors, cells=len(order)))
    whole = Reading(known, views).decode(rows, STEPS)
    assert last.tobytes() == np.ascontiguousarray(whole[:, 45:]).tobytes()
    state = {name: array.copy() for name, array in reading.state.items()}
    again = GrowingReading(plan, views, state=state, step=STEPS, cells=len(order))
    assert (again.step, again.cells) == (reading.step, reading.cells) == (STEPS, len(order))


def test_a_growing_reading_refuses_what_does_not_belong_to_it():
    reading = GrowingReading(PLANS["running"], [tg.Running()])
    assert reading.decode(np.zeros((4, 0), np.int64), 4).shape == (1, 4, 0)
    with pytest.raises(InvalidInput, match="past of 4 steps"):
        reading.grow(np.zeros((3, 1), np.int64))
    reading.grow(np.zeros((4, 0), np.int64))
    with pytest.raises(InvalidInput, match="measurement of 0 items"):
        reading.decode(np.zeros((1, 2), np.int64), 1)


BAD = {
    "a step before the block": ([-1], [0], [1]),
    "a step after the block": ([2], [0], [1]),
    "a gap in the numbers": ([0], [1], [1]),
    "a negative number": ([0], [-1], [1]),
    "an item twice in a step": ([0, 0], [0, 0], [1, 1]),
    "a negative amount": ([0], [0], [-1]),
    "arrays of different lengths": ([0, 1], [0], [1]),
    "floats": ([0.0], [0], [1]),
    "a matrix": ([[0]], [[0]], [[1]]),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_and_changes_nothing(name):
    finder = Finder(PLANS["running"], [(0, KEYS[0])], gauge="visits")
    with pytest.raises(InvalidInput):
        finder.measure(2, *(np.array(array) for array in BAD[name]))
    assert (0, 0) == (finder.step, finder.items)
    good = [np.array(array) for array in ([0, 1], [0, 0], [900, 5])]
    assert [0] == finder.measure(2, *good).numbers.tolist()


def test_amounts_are_clamped_as_declared():
    finder = Finder(planned(max_per_step=5), [(0, KEYS[0])], gauge="visits")
    found = finder.measure(1, np.array([0, 0]), np.array([0, 1]), np.array([6, 5]))
    assert 1 == found.clamped
    assert 5 == finder.state["history.amounts"].max()
    signed = Finder(planned(max_change=(-3, 2), max_per_step=5), [(0, KEYS[0])], gauge="visits")
    assert 1 == signed.measure(1, np.array([0]), np.array([0]), np.array([-9])).clamped


def test_a_finder_stops_at_the_end():
    finder = Finder(PLANS["running"], [(0, KEYS[0])], gauge="visits")
    none = [np.zeros(0, np.int64)] * 3
    with pytest.raises(StreamEnded):
        finder.measure(STEPS + 1, *none)
    assert (STEPS, 0) == finder.measure(STEPS, *none).measured.shape
    with pytest.raises(StreamEnded):
        finder.measure(1, *none)


@pytest.mark.parametrize(
    "keys",
    [[], [(1, KEYS[0])], [(0, KEYS[0]), (0, KEYS[1])], [(0, KEYS[0]), (5, KEYS[1])],
     [(0, b"short")], [(0, "text" * 8)]],
)  # fmt: skip
def test_keys_that_leave_a_step_without_noise_are_refused(keys):
    with pytest.raises(InvalidParameter) as refused:
        Finder(PLANS["running"], keys, gauge="visits", step=4)
    assert "short" not in str(refused.value)


def test_keys_are_fresh_and_belong_to_noise():
    assert len({noise_key() for _ in range(20)}) == 20
    assert 32 == len(noise_key())


def test_a_plan_of_known_cells_needs_a_meter():
    known = tg.plan(views=[tg.Step()], unit="event", guarantee=tg.GaussianDP(1), cells=2).plan
    with pytest.raises(InvalidParameter, match="Use a Meter"):
        Finder(known, [(0, KEYS[0])], gauge="visits")


def test_a_finder_stays_where_it_is():
    finder = Finder(PLANS["running"], [(0, KEYS[0])], gauge="visits")
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(LiveState):
            attempt(finder)
    none = [np.zeros(0, np.int64)] * 3
    finder._turn._busy.acquire()
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()
    with pytest.raises(LiveState, match="inside a block"):
        finder.measure(1, *none)
    finder._turn._busy.release()
    finder._turn._owner = os.getpid() + 1
    with pytest.raises(LiveState, match="a fork of it"):
        finder.measure(1, *none)
    finder._turn._owner = os.getpid()
    finder.close()
    with pytest.raises(LiveState, match="closed"):
        finder.measure(1, np.array([0]), np.array([0]), np.array([1]))


def test_an_interrupted_finder_does_not_go_on(monkeypatch):
    finder = Finder(PLANS["running"], [(0, KEYS[0])], gauge="visits")

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "measure", interrupted)
    with pytest.raises(KeyboardInterrupt):
        finder.measure(1, np.array([0]), np.array([0]), np.array([1]))
    monkeypatch.undo()
    with pytest.raises(LiveState, match="inside a block"):
        finder.measure(1, *[np.zeros(0, np.int64)] * 3)
