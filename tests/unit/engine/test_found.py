"""Blocks of discovered cells: packed, stored in pieces, published, decoded as they grow."""

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from plans import gauge
from recovery import stand

from tidegauge.engine import block_rows, states
from tidegauge.engine.found import FoundBlock, FoundReading, Shown, block_of, block_of_table
from tidegauge.engine.store import Store
from tidegauge.errors import InvalidInput, StoreBehind
from tidegauge.mechanisms.discovery import Discover

ODD = ["a,\n", "", "\0", "\x1b[2J", "Z", "e\u0301", "\u00e9", "a"]


def found_of(names, *, first=3, steps=2, new=(), seed=0):
    """What a finder would return of items with these numbers, and all items by number."""
    rng = np.random.default_rng(seed)
    count = len(names)
    return SimpleNamespace(
        numbers=np.arange(count),
        visible_from=np.where(np.isin(np.arange(count), new), first, 1),
        measured=rng.integers(-99, 99, (steps, count)),
        new=np.isin(np.arange(count), new),
        past=rng.integers(-99, 99, (first, len(new))),
    )


def block(names=ODD, first=3, steps=2, new=(1, 4)):
    table = pl.DataFrame({"dest": pl.Series(names, dtype=pl.String)})
    return block_of(first, steps, table, found_of(names, first=first, steps=steps, new=new))


def equal(one, other):
    arrays = all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("new", "measured", "past")
    )
    names = one.shown.names.equals(other.shown.names)
    return arrays and names and np.array_equal(one.shown.visible_from, other.shown.visible_from)


def test_cells_stand_in_the_order_of_their_bytes_with_their_own_numbers():
    made, found = block(), found_of(ODD, new=(1, 4))
    names = made.shown.names["0"].to_list()
    assert sorted(ODD, key=str.encode) == names
    for place, name in enumerate(names):
        number = ODD.index(name)
        assert made.measured[:, place].tolist() == found.measured[:, number].tolist()
        assert made.new[place] == (number in (1, 4))
    past = {name: made.past[:, i].tolist() for i, name in enumerate(made.shown.names["0"].filter(
        pl.Series(made.new)))}  # fmt: skip
    assert {"": found.past[:, 0].tolist(), "Z": found.past[:, 1].tolist()} == past


@pytest.mark.parametrize("new", [(), (0,), (1, 4), tuple(range(len(ODD)))])
@pytest.mark.parametrize("first", [0, 3])
def test_a_block_comes_back_from_its_bytes_and_from_its_table(first, new):
    if first == 0:
        new = tuple(range(len(ODD)))
    made = block(first=first, new=new)
    assert equal(made, FoundBlock.unpacked(first, 2, made.packed))
    planned = gauge(by=(("dest", ()),), discover=Discover())
    table = made.table(planned)
    again = block_of_table(planned, first, 2, table)
    assert equal(made, again)
    assert made.sum == again.sum
    assert ["dest", "first_step", "visible_from", "measured"] == table.columns
    assert table["measured"].list.len().to_list() == [2 + first * bool(n) for n in made.new]


def test_a_block_without_cells_is_a_table_without_rows():
    made = block(names=[], new=())
    planned = gauge(by=(("dest", ()),), discover=Discover())
    assert 0 == len(made.table(planned))
    assert equal(made, block_of_table(planned, 3, 2, made.table(planned)))
    assert equal(made, FoundBlock.unpacked(3, 2, made.packed))


def test_what_is_public_does_not_tell_in_which_order_items_came():
    table = pl.DataFrame({"dest": ODD})
    found = found_of(ODD, new=(1, 4))
    order = np.random.default_rng(1).permutation(len(ODD))
    moved = SimpleNamespace(
        numbers=np.arange(len(ODD)) * 3,  # hidden ones in between
        visible_from=found.visible_from[order],
        measured=found.measured[:, order],
        new=found.new[order],
        past=found.past[:, [(1, 4).index(number) for number in order if number in (1, 4)]],
    )
    spread = pl.DataFrame({"dest": ["hidden"] * 3 * len(ODD)})
    spread[moved.numbers.tolist(), "dest"] = table["dest"].gather(order)
    assert block(new=(1, 4)).packed == block_of(3, 2, spread, moved).packed


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.drop("visible_from"),
        lambda t: t.with_columns(pl.col("measured").list.head(1)),
        lambda t: t.with_columns(measured=None),
        lambda t: t.with_columns(pl.lit(None, pl.String).alias("dest")),
        lambda t: t.with_columns(pl.col("measured").cast(pl.List(pl.Float64))),
    ],
)
def test_a_table_that_was_changed_is_refused(change):
    planned = gauge(by=(("dest", ()),), discover=Discover())
    with pytest.raises(InvalidInput):
        block_of_table(planned, 3, 2, change(block().table(planned)))


def opened(folder, plan):
    names = [gauge.name for gauge in plan.gauges]
    path = folder / "a.tidegauge"
    return Store(path, fingerprint=plan.fingerprint, canonical=plan.canonical(), gauges=names)


def test_a_store_keeps_blocks_in_pieces_items_in_parts_and_a_key_for_each_opening(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(block_rows, "_PIECE", 64)
    monkeypatch.setattr(states, "_ITEMS_A_PART", 2)
    plan = stand.found_plan_of()
    new = pl.DataFrame({"kind": ODD})
    state = {"flights": {"finder": {"last": np.arange(3)}}}
    with opened(tmp_path, plan) as store:
        assert [] == store.noise_keys()
        assert store.items("flights") is None
        store.begin_noise(b"0" * 32)
        made = block(first=0, new=tuple(range(len(ODD))))
        store.commit(0, 2, {"flights": made}, state, items={"flights": new[:5]})
    with opened(tmp_path, plan) as store:
        store.begin_noise(b"1" * 32)
    with opened(tmp_path, plan) as store:  # nothing was committed under the key before
        store.begin_noise(b"2" * 32)
        assert [(0, b"0" * 32), (2, b"2" * 32)] == store.noise_keys()
        store.commit(2, 1, {"flights": block(first=2, steps=1)}, state,
                     items={"flights": new[5:]})  # fmt: skip
        assert new.equals(store.items("flights"))
        assert equal(made, store.block("flights", 0))
        pieces = store._connection.execute("SELECT count(*) FROM piece").fetchone()[0]
        assert pieces > 10
        store.commit(3, 1, {"flights": block(first=3, steps=1)}, {}, ended=True)
        assert [] == store.noise_keys()
        assert store.items("flights") is None
        assert equal(made, store.block("flights", 0))


@pytest.mark.parametrize(
    "what", ["DELETE FROM piece WHERE part = 1", "UPDATE piece SET part = -1 WHERE part = 2"]
)
def test_pieces_are_final(what, tmp_path, monkeypatch):
    import sqlite3

    monkeypatch.setattr(block_rows, "_PIECE", 64)
    with opened(tmp_path, stand.found_plan_of()) as store:
        store.begin_noise(b"0" * 32)
        made = block(first=0, new=tuple(range(len(ODD))))
        store.commit(0, 2, {"flights": made}, {"flights": {}})
        with pytest.raises(sqlite3.Error, match="final"):
            store._connection.execute(what)
        for verb in ("DELETE", "UPDATE"):
            store._connection.execute(f"DROP TRIGGER piece_{verb}")
        store._connection.execute(what)
        with pytest.raises(StoreBehind, match="damaged"):
            store.block("flights", 0)


def test_views_of_cells_that_come_later_are_those_of_all_at_once():
    """Decoded as they grow, and as if each had been there from the first step on."""
    plan = stand.found_plan_of()
    planned = plan.gauges[0]
    views = [decay for _, decay in planned.views]
    rng = np.random.default_rng(3)
    names = sorted(["n", "a", "z", "m"], key=str.encode)
    measured = rng.integers(-(1 << 20), 1 << 20, (12, 4))
    came = {"n": 0, "a": 1, "m": 1, "z": 2}  # the block in which each is named
    reading, whole, parts = FoundReading(planned, views), FoundReading(planned, views), []
    for number in range(3):
        here = [i for i, name in enumerate(names) if came[name] <= number]
        new = np.array([came[names[i]] == number for i in here])
        first = 4 * number
        shown = Shown(pl.DataFrame({"0": [names[i] for i in here]}), np.zeros(len(here), int))
        rows = measured[first : first + 4, here]
        past = measured[:first, [i for i, n in zip(here, new, strict=True) if n]]
        parts.append((here, reading.decode(FoundBlock(first, 4, shown, new, rows, past))))
    shown = Shown(pl.DataFrame({"0": names}), np.zeros(4, int))
    everything = FoundBlock(0, 12, shown, np.ones(4, bool), measured, np.empty((0, 4), int))
    expected = whole.decode(everything)
    for number, (here, values) in enumerate(parts):
        assert np.array_equal(expected[:, 4 * number : 4 * number + 4, here], values)
    lost = FoundBlock(12, 4, Shown(shown.names[1:], np.zeros(3, int)), np.zeros(3, bool),
                      measured[:4, 1:], np.empty((12, 0), int))  # fmt: skip
    with pytest.raises(StoreBehind, match="visible before"):
        reading.decode(lost)
