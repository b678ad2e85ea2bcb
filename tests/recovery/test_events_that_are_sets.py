"""Events that are sets of rows, across crashes, runs and sources that were rotated."""

import sqlite3
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
import stand
from test_units_and_records import STEPS, Still, counted

from tidegauge.engine import measuring
from tidegauge.engine import run as running
from tidegauge.engine.publisher import Publisher
from tidegauge.errors import StoreBehind
from tidegauge.mechanisms.design import design
from tidegauge.mechanisms.request import Request
from tidegauge.planning.parts import neighbors_of
from tidegauge.planning.plan import IdUnit
from tidegauge.planning.verified import plan_from_bytes
from tidegauge.privacy.guarantee import PureDP
from tidegauge.privacy.unit import Contributions, Event, NeighboringRelation


def sets_plan(unit=None, end=48):
    """Baskets of at most two kinds, each counted once."""
    plan = stand.plan_of(end=end)
    who = Event() if unit is None else Contributions(unit.max_contributions)
    neighbors = neighbors_of(who, NeighboringRelation.ADD_OR_REMOVE_ONE, 0, 1, 4, None, 2)
    request = Request(
        views=STEPS, cells=None, scalar=False, guarantee=PureDP(1), neighbors=neighbors,
        max_per_step=1 << 20, horizon=end, end=end, level=0.95, band="pointwise", anticipate=(),
        importance=(), every=(), name="flights",
    )  # fmt: skip
    mechanism = design(request)
    gauge = replace(plan.gauges[0], views=STEPS, every=(), mechanism=mechanism, max_items=2)
    made = replace(plan, unit=unit, guarantee=PureDP(1), gauges=(gauge,), event="basket")
    assert plan_from_bytes(made.canonical()) == made
    return made


def baskets(count=12):
    """Baskets of four rows of three kinds, each over eight hours, shuffled."""
    rng = np.random.default_rng(3)
    rows = [
        (stand.START + (start * 4 + 2 * row) * stand.HOUR, stand.KINDS[row % 3], f"b{start}", "one")
        for start in range(count)
        for row in range(4)
    ]
    rng.shuffle(rows)
    frame = pl.DataFrame(rows, schema=["at", "kind", "basket", "id"], orient="row")
    return frame.with_columns(pl.col("at").cast(pl.Int64).cast(pl.Datetime("us", "UTC")))


class CrashError(Exception):
    """A process that ends."""


@pytest.mark.parametrize("stop", [0, 9, 20])
@pytest.mark.parametrize("unit", [None, IdUnit("id", 5, "lifetime")])
def test_no_basket_counts_twice_over_a_crash_and_a_rotated_source(
    memory_path, monkeypatch, stop, unit
):
    """Twelve baskets of two kinds each: 24 are counted, or those of the first five."""
    monkeypatch.setattr(running, "_LANES", 4)  # a block is a step
    monkeypatch.setattr(measuring, "Meter", Still)
    place, plan, publish = stand.Place(memory_path), sets_plan(unit), Publisher.publish

    def crashing(self, first, steps, blocks):
        if first == stop:
            raise CrashError
        publish(self, first, steps, blocks)

    with monkeypatch.context() as patched:
        patched.setattr(Publisher, "publish", crashing)
        with pytest.raises(CrashError):
            place.run(plan, baskets())
    begun = stand.START + (stop + 1) * stand.HOUR  # older rows are gone by now
    rotated = baskets().filter(pl.col("at").cast(pl.Int64) >= begun)
    place.run(plan, rotated)
    assert (24 if unit is None else 10) == counted(place)


def test_a_run_that_forgot_which_baskets_began_would_be_caught(memory_path, monkeypatch):
    from tidegauge.engine.store import Store

    monkeypatch.setattr(measuring, "Meter", Still)
    place, plan = stand.Place(memory_path), sets_plan()
    place.run(plan, baskets(), until=stand.datetime(2013, 1, 1, 10))
    monkeypatch.setattr(Store, "bounding", lambda self: {"events": np.zeros((0, 2), int)})
    rotated = baskets().filter(pl.col("at") >= stand.datetime(2013, 1, 1, 10))
    place.run(plan, rotated)
    assert counted(place) > 24


@pytest.mark.parametrize("part", [-1, -2])
def test_a_store_without_its_key_or_its_baskets_is_damaged(memory_path, part):
    place, plan = stand.Place(memory_path), sets_plan()
    place.run(plan, baskets(), until=stand.datetime(2013, 1, 2))
    before = place.files()
    with sqlite3.connect(place.store) as connection:
        connection.execute("DELETE FROM state WHERE gauge = ?", (part,))
    connection.close()
    with pytest.raises(StoreBehind, match="damaged"):
        place.run(plan, baskets())
    assert before == place.files()


def test_ids_of_baskets_are_nowhere_and_erased_at_the_end(memory_path):
    frame = baskets().with_columns(basket=pl.lit("B-SECRET-42"))
    place = stand.Place(memory_path)
    place.run(sets_plan(), frame, until=stand.datetime(2013, 1, 2))
    for path in memory_path.rglob("*"):
        assert path.is_dir() or b"B-SECRET-42" not in path.read_bytes()
    place.run(sets_plan(), frame)
    with sqlite3.connect(place.store) as connection:
        assert 0 == connection.execute("SELECT count(*) FROM state").fetchone()[0]
    connection.close()
