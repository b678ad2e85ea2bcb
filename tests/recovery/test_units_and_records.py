"""Ids with a bound across runs and crashes; records as steps; several gauges; long streams."""

import sqlite3
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
import stand

from tidegauge.engine import measuring
from tidegauge.engine import run as running
from tidegauge.engine.public import PublicFolder
from tidegauge.engine.publisher import Publisher
from tidegauge.engine.store import Store
from tidegauge.errors import InvalidParameter, StoreBehind
from tidegauge.mechanisms.design import design
from tidegauge.mechanisms.meter import Meter
from tidegauge.mechanisms.request import request_of
from tidegauge.planning.plan import IdUnit
from tidegauge.privacy.guarantee import PureDP
from tidegauge.privacy.unit import Contributions
from tidegauge.strategies.decay import Step
from tidegauge.testing import seeded_meter

STEPS = (("step", Step()),)


class Still(Meter):
    """A meter without noise: what it measures is the exact stream, in lattice units."""

    def measure(self, exact):
        from tidegauge.mechanisms.totals import totals

        checked, _ = totals(exact, self._plan, block=True)
        self._step += len(checked)
        return self._plan.strategy.encode(self._state["encoder"], checked, self._step)


def id_plan(most, end=48):
    mechanism = design(
        request_of(
            views=dict(STEPS), unit=Contributions(most), cells=4, end=end, guarantee=PureDP(1)
        )
    )
    plan = stand.plan_of(end=end)
    gauge = replace(plan.gauges[0], views=STEPS, every=(), mechanism=mechanism)
    unit = IdUnit("id", most, "lifetime")
    return replace(plan, unit=unit, guarantee=mechanism.guarantee, gauges=(gauge,))


def counted(place):
    return PublicFolder(place.public).view("flights", "step").value.sum()


@pytest.mark.parametrize("stop", [5, 17, 20, 33])
def test_the_bound_of_an_id_holds_over_crashes_in_the_middle_of_a_run(
    memory_path, monkeypatch, stop
):
    """One id with an event in each of 48 steps and a bound of 10: ten are ever counted."""
    monkeypatch.setattr(running, "_LANES", 4)  # a block is a step
    monkeypatch.setattr(measuring, "Meter", Still)
    hours = np.arange(48)
    frame = pl.DataFrame(
        {"at": stand.START + hours * stand.HOUR, "kind": ["AA"] * 48, "id": ["one"] * 48}
    ).with_columns(pl.col("at").cast(pl.Datetime("us", "UTC")))
    place, plan, publish = stand.Place(memory_path), id_plan(10), Publisher.publish

    class Crash(Exception):
        pass

    def crashing(self, first, steps, blocks):
        if first == stop:
            raise Crash
        publish(self, first, steps, blocks)

    with monkeypatch.context() as patched:
        patched.setattr(Publisher, "publish", crashing)
        with pytest.raises(Crash):
            place.run(plan, frame[20:])  # the first twenty rows are delivered later
    place.run(plan, frame)
    assert 10 == counted(place)


def test_a_bound_that_forgot_its_state_would_be_caught(memory_path, monkeypatch):
    monkeypatch.setattr(measuring, "Meter", Still)
    nothing = {"ids": np.zeros((0, 2), int), "counts": np.zeros(0, int), "period": np.zeros(0, int)}
    monkeypatch.setattr(Store, "bounding", lambda self: nothing)
    hours = np.arange(48)
    frame = pl.DataFrame(
        {"at": stand.START + hours * stand.HOUR, "kind": ["AA"] * 48, "id": ["one"] * 48}
    ).with_columns(pl.col("at").cast(pl.Datetime("us", "UTC")))
    place, plan = stand.Place(memory_path), id_plan(10)
    place.run(plan, frame, until=stand.datetime(2013, 1, 2))
    place.run(plan, frame)
    assert counted(place) > 10


@pytest.mark.parametrize("part", [-1, -2])
def test_a_store_without_the_key_or_the_counts_of_ids_is_damaged(memory_path, part):
    place, plan, frame = stand.Place(memory_path), id_plan(10), stand.rows()
    frame = frame.with_columns(id=pl.lit("one"))
    place.run(plan, frame, until=stand.datetime(2013, 1, 2))
    before = place.files()
    with sqlite3.connect(place.store) as connection:
        connection.execute("DELETE FROM state WHERE gauge = ?", (part,))
    connection.close()
    with pytest.raises(StoreBehind, match="damaged"):
        place.run(plan, frame)
    assert before == place.files()


def test_a_stream_of_records_that_is_at_its_end_stays_there(memory_path):
    plan = stand.plan_of(end=10)
    plan = replace(plan, clock=replace(plan.clock, step_us=None), time=None)
    place, frame = stand.Place(memory_path), stand.rows(count=30)
    assert 10 == place.run(plan, frame).last
    before = place.files()
    assert (10, 10) == (lambda o: (o.first, o.last))(place.run(plan, frame))
    assert before == place.files()


def test_ids_are_nowhere_in_the_store_or_the_public_folder(memory_path):
    frame = stand.rows().with_columns(id=pl.lit("N-SECRET-42"))
    place = stand.Place(memory_path)
    place.run(id_plan(10), frame, until=stand.datetime(2013, 1, 2))
    for path in memory_path.rglob("*"):
        assert path.is_dir() or b"N-SECRET-42" not in path.read_bytes()


def test_each_record_is_a_step_and_later_records_go_on(memory_path):
    plan = stand.plan_of(end=None)
    plan = replace(plan, clock=replace(plan.clock, step_us=None), time=None)
    place, frame = stand.Place(memory_path), stand.rows(count=30)
    assert 20 == place.run(plan, frame[:20]).last
    before = place.numbers()
    assert (20, 30) == (lambda o: (o.first, o.last))(place.run(plan, frame))
    assert before.items() <= place.numbers().items()
    assert 30 == place.run(plan, frame[:5]).last  # a file that became shorter moves nothing
    with pytest.raises(InvalidParameter, match="no --until"):
        place.run(plan, frame, until=stand.datetime(2013, 1, 2))


def test_several_gauges_are_committed_together_and_have_noise_of_their_own(memory_path):
    plan = stand.plan_of(end=600, gauges=("arrivals", "departures"))
    place = stand.Place(memory_path)
    place.run(plan, stand.rows(count=0))
    folder = PublicFolder(place.public)
    rows = [
        np.concatenate([block.measured for block in folder.blocks(gauge)])
        for gauge in folder.gauges
    ]
    assert (rows[0] != rows[1]).all()
    noise = [one.reshape(-1).astype(float) for one in rows]
    assert abs(np.corrcoef(*noise)[0, 1]) < 5 / np.sqrt(len(noise[0]))


def test_the_size_of_blocks_changes_no_byte_of_a_row(memory_path, monkeypatch):
    """The same measurement, cut in other ways, gives the same releases."""
    tables = []
    for lanes in (4, 28, 1 << 17):
        monkeypatch.setattr(running, "_LANES", lanes)
        monkeypatch.setattr(measuring, "Meter", lambda plan, state, step: _known(plan, state, step))
        place = stand.Place(memory_path / str(lanes))
        place.run(stand.plan_of(), stand.rows())
        tables.append(
            [pl.read_parquet(place.public / f"releases/flights/{v}/*") for v, _ in stand.VIEWS]
        )
    for other in tables[1:]:
        assert all(a.equals(b) for a, b in zip(tables[0], other, strict=True))


def _known(plan, state, step):
    return seeded_meter(3, plan, state, step)  # each draw is a function of its own coordinate


def test_checkpoints_of_decoders_change_no_byte(memory_path, monkeypatch):
    from tidegauge.engine import decoders

    monkeypatch.setattr(decoders, "_CHECKPOINT_BYTES", 1)
    monkeypatch.setattr(decoders, "_CHECKPOINT_SIZES", 0)
    monkeypatch.setattr(running, "_LANES", 4)
    monkeypatch.setattr(measuring, "Meter", lambda plan, state, step: _known(plan, state, step))
    place, plain = stand.Place(memory_path / "a"), stand.Place(memory_path / "b")
    plan = stand.plan_of()
    for hours in (12, 37, 48):
        place.run(plan, stand.rows(), until=stand.datetime(2013, 1, 1 + hours // 24, hours % 24))
    with Store(place.store, fingerprint=plan.fingerprint, canonical=b"", gauges=["flights"]) as one:
        assert one.reading("flights", 47) is not None
    monkeypatch.setattr(decoders, "_CHECKPOINT_BYTES", 1 << 40)
    plain.run(plan, stand.rows())
    assert place.numbers() == plain.numbers()


def test_nothing_is_published_in_another_order(memory_path, monkeypatch):
    """A deleted public folder is written again, byte for byte."""
    monkeypatch.setattr(running, "_LANES", 40)
    place = stand.Place(memory_path)
    place.run(stand.plan_of(), stand.rows())
    import shutil

    before = place.files()
    shutil.rmtree(place.public / "releases" / "flights" / "day")
    (place.public / "measurements" / "flights" / "000000000011.parquet").unlink()
    place.run(stand.plan_of(), stand.rows())
    assert before == place.files()
