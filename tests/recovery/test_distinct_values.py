"""Counts of different values across runs and crashes: exact where noise is taken away."""

import numpy as np
import polars as pl
import pytest
import stand

from tidegauge.engine import run as running
from tidegauge.engine.public import PublicFolder
from tidegauge.engine.publisher import Publisher
from tidegauge.engine.store import Store
from tidegauge.errors import InvalidParameter, StoreBehind
from tidegauge.strategies.decay import Window

VIEWS = {"flights": "window", "ever": "running"}


def slow(frame, window, end=48):
    """Different ids by kind at every step, by definition; since the start if there is no window."""
    hours = ((frame["at"].to_physical() - stand.START) // stand.HOUR).to_list()
    found = np.zeros((end, 4), int)
    cells = {kind: number for number, kind in enumerate(stand.KINDS)}
    for t in range(end):
        seen = {
            (cells.get(kind, 3), value)
            for hour, kind, value in zip(hours, frame["kind"], frame["id"], strict=True)
            if (-1 if window is None else t - window) < hour <= t
        }
        for cell, _ in seen:
            found[t, cell] += 1
    return found


def released(place):
    folder = PublicFolder(place.public)
    return {name: folder.view(name, view).value for name, view in VIEWS.items()}


def silent(strategy, state, law, words, exact, first):
    """A measurement without noise, also of blocks that are still open."""
    rows = strategy.encode(state["encoder"], exact, first)
    if "noise" in state:
        drawn = np.zeros((len(strategy.noise_coordinates(first, len(exact))), exact.shape[1]), int)
        rows += strategy.mix(state["noise"], drawn, first, len(exact))
    return rows


class Crash(Exception):
    pass


@pytest.mark.parametrize("pure", [False, True])
@pytest.mark.parametrize("stop", [1, 6, 17, 46])
def test_counts_go_on_after_a_crash_as_if_there_was_none(memory_path, monkeypatch, stop, pure):
    monkeypatch.setattr("tidegauge.mechanisms.meter.measure", silent)
    monkeypatch.setattr(running, "_LANES", 8 * 3)  # a block is three steps
    place, plan, frame = stand.Place(memory_path), stand.distinct_plan_of(pure=pure), stand.rows()
    publish = Publisher.publish

    def crashing(self, first, steps, blocks):
        if first + steps > stop:
            raise Crash
        publish(self, first, steps, blocks)

    with monkeypatch.context() as patched:
        patched.setattr(Publisher, "publish", crashing)
        with pytest.raises(Crash):
            place.run(plan, frame)
    place.run(plan, frame)
    found = released(place)
    assert slow(frame, 5) == pytest.approx(found["flights"], abs=1e-4)
    assert slow(frame, None) == pytest.approx(found["ever"], abs=1e-4)


def test_a_count_that_forgot_its_values_would_be_caught(memory_path, monkeypatch):
    """The broken twin: values of committed steps are not remembered."""
    monkeypatch.setattr("tidegauge.mechanisms.meter.measure", silent)
    place, plan, frame = stand.Place(memory_path), stand.distinct_plan_of(), stand.rows()
    place.run(plan, frame, until=stand.datetime(2013, 1, 2))
    with monkeypatch.context() as patched:
        patched.setattr(running, "seen_values", lambda states: {})
        with pytest.raises(StoreBehind):  # a store without its values is refused
            place.run(plan, frame)
    forgetful = lambda self: {"unit_key": self.store.unit_key}  # noqa: E731
    monkeypatch.setattr(running._Work, "_seen", forgetful)
    place.run(plan, frame)
    found = released(place)
    assert slow(frame, 5)[:24] == pytest.approx(found["flights"][:24], abs=1e-4)
    assert abs(slow(frame, 5) - found["flights"]).max() >= 1
    assert abs(slow(frame, None) - found["ever"]).max() >= 1


def test_values_are_nowhere_in_the_store_or_the_public_folder(memory_path):
    frame = stand.rows().with_columns(id=pl.lit("N-SECRET-42"))
    place = stand.Place(memory_path)
    place.run(stand.distinct_plan_of(), frame, until=stand.datetime(2013, 1, 2))
    for path in memory_path.rglob("*"):
        assert path.is_dir() or b"N-SECRET-42" not in path.read_bytes()


def test_values_are_erased_with_the_last_step(memory_path):
    place, plan = stand.Place(memory_path), stand.distinct_plan_of()
    for until, expected in ((stand.datetime(2013, 1, 2), 2), (None, 0)):
        place.run(plan, stand.rows(), until=until)
        names = [gauge.name for gauge in plan.gauges]
        with Store(
            place.store, fingerprint=plan.fingerprint, canonical=plan.canonical(), gauges=names
        ) as store:
            assert expected == len(running.seen_values(store.states()))


def test_another_window_cannot_be_read_from_the_published_folder(memory_path):
    place = stand.Place(memory_path)
    place.run(stand.distinct_plan_of(), stand.rows())
    folder = PublicFolder(place.public)
    for gauge in VIEWS:
        for view in (Window(7), "7h"):
            with pytest.raises(InvalidParameter, match="gauge of their own"):
                folder.view(gauge, view)
