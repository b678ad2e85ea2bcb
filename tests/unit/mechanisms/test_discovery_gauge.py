"""A gauge of items found in the stream: names in the order of their bytes, and nothing else."""

import copy
import dataclasses
import itertools
import os
import threading

import numpy as np
import pytest

import tidegauge as tg
from tidegauge.errors import (
    InvalidInput,
    InvalidParameter,
    LiveState,
    StreamEnded,
    UnsupportedCombination,
)
from tidegauge.mechanisms import discovery_gauge as module
from tidegauge.mechanisms import item_keys
from tidegauge.noise.randomness import stored_words

KEY = b"k" * 32
ASKED = {
    "unit": "event",
    "epsilon": 4,
    "delta": 1e-3,
    "end": 40,
    "discover": tg.Discover(tg.Running()),
}
VIEWS = {"total": tg.Running(), "week": tg.Window(7)}
NAMES = ["milk", "Milk", "", "ü", "u\u0308", "a\nb", "a,b", "1", "1.0", " 1", "\0", "é" * 3000]


@pytest.fixture(autouse=True)
def fixed_key(monkeypatch):
    monkeypatch.setattr(module, "noise_key", lambda: KEY)


def gauge(**changes):
    return tg.DiscoveryGauge(views=VIEWS, **(ASKED | changes))


def history(seed=3, steps=30, names=NAMES):
    rng = np.random.default_rng(seed)
    rates = {name: 40 * rng.random() ** 3 for name in names}
    drawn = [{name: int(rng.poisson(rate)) for name, rate in rates.items()} for _ in range(steps)]
    return [{name: count for name, count in step.items() if count} for step in drawn]


def plain(releases):
    """Everything that a reader sees."""
    return {
        name: (one.names, one.first_step, one.value.tobytes(), one.noise_std.tobytes())
        for name, one in releases.items()
    }


def test_names_are_ordered_by_their_bytes_and_values_are_near_the_truth():
    made, stream = gauge(epsilon=30), history()
    releases = made.update_many(stream)
    names = releases["total"].names
    assert list(names) == sorted(names, key=str.encode) == list(made.visible_from)
    assert len(names) > 8
    assert {"ü", "u\u0308"} & set(names)
    last = {name: sum(step.get(name, 0) for step in stream) for name in names}
    errors = releases["total"].value[-1] - [last[name] for name in names]
    assert np.abs(errors).max() < 5 * releases["total"].noise_std[-1].max()


def test_a_block_cut_in_two_gives_the_same_numbers():
    stream, whole = history(), gauge()
    together = whole.update_many(stream)
    for cuts in ([0, 11, 30], list(range(31))):
        parts = gauge()
        for first, end in itertools.pairwise(cuts):
            if end - first == 1:
                released = parts.update(stream[first])
                rows = {view: one.value[None] for view, one in released.items()}
            else:
                released = parts.update_many(stream[first:end])
                rows = {view: one.value for view, one in released.items()}
            for view, release in released.items():
                which = [together[view].names.index(name) for name in release.names]
                expected = together[view].value[first:end, which]
                assert rows[view].tobytes() == np.ascontiguousarray(expected).tobytes()
        assert parts.visible_from == whole.visible_from
        assert (parts.step, parts.clamped) == (whole.step, whole.clamped)


def test_before_an_item_is_visible_it_has_no_value():
    made = gauge()
    releases = made.update_many([{"milk": 1}, {}, {"milk": 900}, {}])
    assert {"milk": 3} == made.visible_from
    for release in releases.values():
        assert [True, True, False, False] == np.isnan(release.cell("milk").value).tolist()


class ByName:
    """Words by name: the number of an item is taken for the hash of its name."""

    def __init__(self, words, names):
        self._words, self._names = words, names

    def fill(self, inputs, outputs):
        named = inputs.copy()
        places = inputs[:, 0].astype(np.int64).tolist()
        named[:, 0] = [NAMES.index(self._names[place]) for place in places]
        self._words.fill(named, outputs)

    def __getattr__(self, name):
        return getattr(self._words, name)


def released(monkeypatch, stream, **changes):
    """What a reader sees under noise keyed by name."""
    numbered = []
    monkeypatch.setattr(
        item_keys, "stored_words", lambda *context: ByName(stored_words(*context), numbered)
    )
    made, seen = gauge(**changes), []
    for step in stream:
        numbered += sorted(step.keys() - set(numbered), key=str.encode)
        seen.append(plain(made.update(step)))
    return seen, made.visible_from, repr(made)


def first_seen_the_other_way_round(stream):
    """The same stream, but for a step of events that count for nothing: all are seen in it."""
    return [{name: 0 for name in NAMES}, *stream], [{}, *stream]


def test_the_order_of_first_sight_is_not_told(monkeypatch):
    early, late = first_seen_the_other_way_round(history(steps=12))
    assert released(monkeypatch, early) == released(monkeypatch, late)


def test_an_order_by_numbers_would_be_noticed(monkeypatch):
    monkeypatch.setattr(module, "_order", lambda names: list(range(len(names))))
    stream = [{"b": 500}, {"a": 500}, {}]
    made, other = gauge(), gauge()
    for step in stream:
        one = made.update(step)
    for step in (stream[1], stream[0], {}):
        two = other.update(step)
    assert one["total"].names != two["total"].names  # what b, a, b against a, b would tell


def test_hidden_items_change_nothing_that_is_seen():
    """Rare items are there, or not at all: names, numbers, text and shape are the same."""
    stream = [{name: 200 for name in ("b", "a")} | {f"z{i}": 1} for i in range(20)]
    without = [{name: step[name] for name in ("b", "a")} for step in stream]
    one, two = gauge(), gauge()
    assert plain(one.update_many(stream)) == plain(two.update_many(without))
    assert repr(one) == repr(two)
    assert one.statement() == two.statement()
    assert vars(one).keys() == vars(two).keys()
    assert {"a", "b"} == set(one.visible_from)


BAD = {
    "a list": ["milk"],
    "a count of a half": {"milk": 0.5},
    "a count of a whole float": {"milk": 1.0},
    "true": {"milk": True},
    "no count": {"milk": None},
    "text": {"milk": "12"},
    "a negative count": {"milk": -1},
    "a number for a name": {1: 5},
    "no name": {None: 5},
    "bytes for a name": {b"milk": 5},
    "half a character": {"\ud800": 5},
}


@pytest.mark.parametrize("name", BAD)
def test_bad_counts_are_refused_and_the_gauge_is_as_it_was(name):
    made, twin = gauge(), gauge()
    made.update({"milk": 5, "tea": 500})
    twin.update({"milk": 5, "tea": 500})
    with pytest.raises(InvalidInput) as refused:
        made.update_many([{"new": 3}, BAD[name]])
    assert "milk" not in str(refused.value).replace('{"milk": 12}', "")
    assert plain(made.update({"other": 500})) == plain(twin.update({"other": 500}))


@pytest.mark.parametrize("block", ["milk", {"milk": 1}, 5, None])
def test_what_is_no_block_is_refused(block):
    with pytest.raises(InvalidInput, match="one mapping for each step"):
        gauge().update_many(block)


def test_counts_beyond_64_bits_are_clamped_as_others():
    made = gauge(max_per_step=1000)
    values = made.update({"milk": 10**30, "tea": 1001, "salt": np.int32(7)})["total"]
    assert 2 == made.clamped
    assert np.abs(values.value - 1000).max() < 60


def test_the_end_is_kept_and_the_gauge_is_as_it_was():
    made = gauge(end=2)
    with pytest.raises(StreamEnded):
        made.update_many([{"a": 900}] * 3)
    assert made.update_many([{"b": 900}] * 2)["total"].names == ("b",)
    with pytest.raises(StreamEnded):
        made.update({})


def test_steps_without_events_or_without_a_step_are_releases_without_items():
    made = gauge()
    assert (0, 0) == made.update_many([])["total"].value.shape
    assert (0,) == made.update({})["week"].value.shape
    assert (2, 0) == made.update_many([{}, {}])["week"].value.shape
    assert 3 == made.step


@pytest.mark.parametrize(
    "changes",
    [{"discover": "week"}, {"discover": tg.Window(7)}, {"max_items": 0}, {"repeats": 0},
     {"end": 0}, {"unit": None}],
)  # fmt: skip
def test_impossible_parameters_are_refused(changes):
    with pytest.raises(InvalidParameter):
        gauge(**changes)


def test_what_an_event_may_add_is_charged():
    one, many = gauge(), gauge(max_items=3, repeats=5)
    assert many.plan.neighbors.max_cells == 3
    assert many.plan.neighbors.largest == 5
    assert many.threshold > 5 * one.threshold


def test_any_decay_can_be_asked_to_discover():
    assert gauge(discover=tg.Discover(tg.Window(7))).plan.discovery.view == "week"
    assert gauge(discover=tg.Discover(tg.Running())).threshold == gauge().threshold


def test_a_gauge_stays_where_it_is():
    made = gauge()
    with pytest.raises(LiveState):
        copy.copy(made)
    if hasattr(os, "fork"):
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            try:
                made.update({"milk": 1})
                os.write(writer, b"measured")
            except LiveState:
                os.write(writer, b"refused")
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        assert b"refused" == os.read(reader, 20)
        os.close(reader), os.close(writer)
    with made:
        made.update({"milk": 1})
    with pytest.raises(LiveState):
        made.update({"milk": 1})


def test_a_second_thread_is_refused_while_a_block_is_measured(monkeypatch):
    made, refused = gauge(), []
    measure = made._finder.measure

    def while_another_comes(*block):
        def other():
            with pytest.raises(LiveState, match="inside a block"):
                made.update({"alpha": 1})
            refused.append(True)

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        return measure(*block)

    monkeypatch.setattr(made._finder, "measure", while_another_comes)
    made.update({"beta": 5000})
    assert refused == [True]
    assert list(made.visible_from) == ["beta"]
    monkeypatch.undo()
    assert made.update({"beta": 5000})["total"].names == ("beta",)


@pytest.mark.parametrize("part", ["_finder.measure", "_reading.grow", "_reading.decode"])
def test_an_interrupted_gauge_goes_no_further(part, monkeypatch):
    made = gauge()
    made.update({"milk": 500})

    def interrupted(*_):
        raise KeyboardInterrupt

    owner, name = part.split(".")
    monkeypatch.setattr(getattr(made, owner), name, interrupted)
    with pytest.raises(KeyboardInterrupt):
        made.update({"bread": 500})
    monkeypatch.undo()
    with pytest.raises(LiveState, match="interrupted"):
        made.update({"bread": 500})


@pytest.mark.parametrize("end", [10, 40])
def test_why_nothing_can_be_discovered_is_said(end):
    with pytest.raises(UnsupportedCombination, match="part of delta of at least 1e-100") as told:
        gauge(delta=1e-90, discover=tg.Discover(delta_share=1e-12), end=end)
    assert 1 == str(told.value).count("Expected")


def test_it_says_what_it_promises():
    made = gauge()
    assert made.ledger.left == 0
    assert made.ledger.total() == tg.ApproxDP(4, 1e-3)
    assert "for ever, in all views" in made.statement()
    assert "visible=0" in repr(made)
    assert dataclasses.is_dataclass(made.plan)
