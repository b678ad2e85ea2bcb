"""The two halves of a gauge, apart: stored and resumed, and kept from being used twice."""

import copy
import os
import pickle
import threading

import numpy as np
import pytest

import tidegauge as tg
from tidegauge.mechanisms.design import design
from tidegauge.mechanisms.meter import Meter
from tidegauge.mechanisms.reading import Reading
from tidegauge.mechanisms.request import request_of
from tidegauge.testing import seeded_gauge, seeded_meter

VIEWS = [tg.Running(), tg.Window(5), tg.Exponential(half_life=3)]


def planned(**changes):
    options = {"views": VIEWS, "unit": "event", "cells": 3, "horizon": 400, "guarantee": tg.ZCDP(1)}
    if "epsilon" in changes:
        del options["guarantee"]
    return design(request_of(**(options | changes)))


PLANS = {
    "blt": {},
    "comb": {"views": [tg.Running(), tg.Window(7)]},
    "identity": {"views": [tg.Step()]},
    "open blocks": {"epsilon": 1},
    "completed blocks": {"epsilon": 1, "max_change": 1 << 12},
}


@pytest.mark.parametrize("changes", PLANS.values(), ids=PLANS)
def test_halves_resume_from_copied_arrays_with_the_same_bytes(changes):
    plan = planned(**changes)
    decays = [decay for _, decay in plan.views]
    x = np.random.default_rng(0).integers(0, 9, (60, 3))
    meter, reading = seeded_meter(3, plan), Reading(plan, decays)
    whole = reading.decode(meter.measure(x), 60)

    meter, reading = seeded_meter(3, plan), Reading(plan, decays)
    first = reading.decode(meter.measure(x[:23]), 23)
    private = {
        part: {name: array.copy() for name, array in state.items()}
        for part, state in meter.state.items()
    }
    public = {name: array.copy() for name, array in reading.state.items()}
    again = Reading(plan, decays, state=public, step=23)
    second = again.decode(seeded_meter(3, plan, private, 23).measure(x[23:]), 37)
    assert whole.tobytes() == np.concatenate([first, second], axis=1).tobytes()


def test_a_meter_counts_clamped_totals_and_refuses_bad_ones():
    meter = Meter(planned(max_per_step=5))
    meter.measure([[9, 9, 1]])
    assert 2 == meter.clamped
    with pytest.raises(tg.InvalidInput):
        meter.measure([[1, 2]])
    assert 1 == meter.step


def test_a_meter_keeps_its_end():
    meter = Meter(planned(end=2, horizon=None))
    meter.measure(np.zeros((2, 3), int))
    with pytest.raises(tg.StreamEnded):
        meter.measure(np.zeros((1, 3), int))


def test_every_meter_has_a_key_of_its_own():
    plan = planned()
    zeros = np.zeros((50, 3), int)
    assert len(np.intersect1d(Meter(plan).measure(zeros), Meter(plan).measure(zeros))) == 0


def test_a_meter_cannot_be_copied_pickled_or_used_after_closing():
    meter = Meter(planned())
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(tg.LiveState):
            attempt(meter)
    meter.close()
    with pytest.raises(tg.LiveState):
        meter.measure([[1, 2, 3]])


def test_a_forked_meter_refuses_to_measure():
    meter = Meter(planned())
    child = os.fork()
    if child == 0:
        try:
            meter.measure([[1, 2, 3]])
        except tg.LiveState:
            os._exit(17)
        os._exit(0)
    assert 17 == os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_an_interrupted_meter_refuses_to_go_on(monkeypatch):
    meter = Meter(planned())

    def interrupt(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(type(meter._words), "fill", interrupt)
        with pytest.raises(KeyboardInterrupt):
            meter.measure([[1, 2, 3]])
    with pytest.raises(tg.LiveState, match="interrupted"):
        meter.measure([[1, 2, 3]])


def test_threads_never_share_a_step():
    gauge = seeded_gauge(1, views=[tg.Running()], unit="event", cells=20_000, guarantee=tg.ZCDP(1))
    gauge.update(np.zeros(20_000, int))
    steps, refused = [], []

    def work():
        for _ in range(30):
            try:
                steps.append(gauge.update(np.ones(20_000, int))["running"].first_step)
            except tg.LiveState:
                refused.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(steps)) == len(steps)
    assert 120 == len(steps) + len(refused)
    assert refused, "four threads at once were meant to meet"


def test_a_gauge_erases_its_key_at_the_end_of_a_with_statement():
    with tg.Gauge(views=[tg.Step()], unit="event", epsilon=1) as gauge:
        gauge.update(3)
    with pytest.raises(tg.LiveState, match="closed"):
        gauge.update(3)
