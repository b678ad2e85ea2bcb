"""Events that are sets of rows: T3 for sets, an oracle in plain Python, runs, and bad input."""

import tempfile
from collections import Counter, defaultdict
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from dirty import step_of
from hypothesis import given, settings
from hypothesis import strategies as st
from plans import gauge, plan
from test_neighbors import COLUMNS, KINDS, source_of
from test_totals import KEY, Frames, at

from tidegauge.connectors.files import Files
from tidegauge.engine.contributions import Contributor
from tidegauge.engine.totals import totals
from tidegauge.planning.plan import IdUnit
from tidegauge.privacy.unit import NeighboringRelation
from tidegauge.strategies.decay import Running

ADD, REPLACE = NeighboringRelation
LAST = 6
TIMES = st.sampled_from(
    [
        *(f"2013-01-01T0{hour}:{minute}:00Z" for hour in range(7) for minute in ("00", "30")),
        "2013-01-01T03:30:00-01:00", "2012-12-31T23:59:59Z", "1969-07-20T20:17:00Z",
        "9999-12-31T23:59:59Z", "soon", None,
    ]
)  # fmt: skip
EVENTS = st.sampled_from(["u", "v", "w", "x", "", None, "\u00e9", "1"])
IDS = st.sampled_from(["UA", "B6", "1", "", None])
VALUES = st.sampled_from(["1", "-3", "2", "1e9", "ten", "", None, "B", "\u00e9", "Z"])
ROWS = st.lists(st.tuples(TIMES, EVENTS, IDS, VALUES), max_size=25)
LOW, HIGH = -4, 6
CELLS = ("1", "\u00e9", "-3", "B", "2")
GAUGES = (
    gauge("sets", by=(("v", CELLS),), other="other", max_items=2),
    gauge("repeated", by=(("v", CELLS),), max_items=1, high=3),
    gauge("numbers", where='("v" IS NOT NULL)', high=2),
    gauge(
        "sums", kind="sum", column="v", low=LOW, high=HIGH, by=(("v", CELLS),), other="other",
        max_items=2, round_to=Fraction(1),
    ),
    gauge("values", kind="count_distinct", column="v", high=2, views=(("running", Running()),)),
)  # fmt: skip
EXACT = GAUGES[:-1]  # whose values are not told apart by hashes


def plan_of(unit=None, relation=ADD, gauges=GAUGES, end=LAST):
    return plan(*gauges, unit=unit, relation=relation, event="id", end=end)


def frame_of(rows):
    return pl.DataFrame(rows, schema=dict.fromkeys(COLUMNS, pl.String), orient="row")


def read(rows, *, first=0, last=LAST, state=None, seen=None, parts=1, **options):
    """The totals of rows that come in batches."""
    frame = frame_of(rows)
    source = Frames(*frame.iter_slices(max(1, -(-frame.height // parts))))
    how = {"unit_key": KEY, "unit_state": state, "seen": seen}
    return totals(plan_of(**options), source, first, last, **how)


def arrays(rows, **options):
    return read(rows, **options).arrays


def equal(one, other):
    return all((one[name] == other[name]).all() for name in one)


def summed(each):
    return {name: sum(one[name] for one in each) for name in each[0]}


# --- the definition, in plain Python


def slow(rows, gauges=EXACT):
    """Exact totals of sets of rows, event by event."""
    reading = plan_of()
    events = defaultdict(list)
    for row in rows:
        named = dict(zip(COLUMNS, row, strict=True))
        step = step_of(named, reading)
        if step is not None and named["id"]:
            events[named["id"]].append((step, named))
    result = {g.name: np.zeros((LAST, len(g.cells)), np.int64) for g in gauges}
    for members in events.values():
        step = min(step for step, _ in members)
        if not 0 <= step < LAST:
            continue
        for one in gauges:
            for cell, amount in slow_cells([row for _, row in members], one).items():
                result[one.name][step, one.cells.index(cell)] += amount
    return result


def slow_cells(rows, one):
    """What one event adds to one gauge: cells and amounts."""
    found = Counter()
    for row in rows:
        if one.where is not None and row["v"] is None:
            continue
        cell = ()
        if one.by:
            cell = (row["v"] if row["v"] in CELLS else one.other,)
        if cell == (None,):
            continue
        if one.kind == "sum":
            try:
                found[cell] += round(Fraction(row["v"] or "none"))
            except ValueError:
                continue
        else:
            found[cell] += 1
    kept = sorted(found, key=lambda cell: [value.encode() for value in cell])[: one.max_items]
    return {cell: min(max(found[cell], one.low), one.high) for cell in kept}


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=10)
@given(ROWS)
def test_totals_are_those_of_the_definition_from_every_kind_of_source(kind, rows):
    rows = [tuple(value or None for value in row) for row in rows]  # CSV has no empty text
    expected = slow(rows)
    with tempfile.TemporaryDirectory() as name:
        source = source_of(kind, rows, Path(name))
        got = totals(plan_of(gauges=EXACT), source, 0, LAST, unit_key=KEY).arrays
    assert equal(expected, got)


@settings(max_examples=10)
@given(ROWS, st.randoms())
def test_events_that_are_split_over_files_of_every_kind_are_one(rows, random):
    rows = [tuple(value or None for value in row) for row in rows]
    shuffled = rows.copy()
    random.shuffle(shuffled)
    with tempfile.TemporaryDirectory() as name:
        names = []
        for number, kind in enumerate(("csv", "jsonl", "parquet", "csv.gz")):
            folder = Path(name) / str(number)
            folder.mkdir()
            source_of(kind, shuffled[number::4], folder)
            names.append(f"{number}/a.{kind}")
        source = Files(names, folder=Path(name))
        got = totals(plan_of(gauges=EXACT), source, 0, LAST, unit_key=KEY).arrays
    assert equal(slow(rows), got)


@settings(max_examples=25)
@given(ROWS, st.randoms(), st.integers(1, 9))
def test_order_and_batches_change_nothing(rows, random, parts):
    shuffled = rows.copy()
    random.shuffle(shuffled)
    assert equal(arrays(rows), arrays(shuffled, parts=parts))


# --- T3: totals are a sum over events, and each moves one step within its bound


def within(array, one):
    """One event lies within what the noise of a gauge is made for."""
    most = one.high if one.kind == "count_distinct" else max(-one.low, one.high)
    assert np.count_nonzero(array.any(axis=1)) <= 1
    assert np.count_nonzero(array) <= one.max_items
    assert np.abs(array).max(initial=0) <= most


@settings(max_examples=25)
@given(ROWS)
def test_totals_are_the_sum_of_events_each_in_one_step_and_its_bound(rows):
    events = sorted({row[1] for row in rows if row[1]})
    each = [arrays([row for row in rows if row[1] == event], gauges=EXACT) for event in events]
    for found in each:
        for one in EXACT:
            within(found[one.name], one)
    assert equal(arrays(rows, gauges=EXACT), summed([arrays([], gauges=EXACT), *each]))


@settings(max_examples=25)
@given(ROWS, st.sampled_from("uvwx"))
def test_an_event_brings_no_more_new_values_than_declared(rows, leaving):
    """Different values are no sum over events: the claim is about the removal of one."""
    with_it, without = (
        arrays(given)["values"] for given in (rows, [r for r in rows if r[1] != leaving])
    )
    assert int(np.abs(with_it - without).sum()) <= 2 * 2


@settings(max_examples=25)
@given(ROWS, st.integers(1, 2), st.sampled_from(["lifetime", 2]))
def test_totals_are_the_sum_of_ids_each_with_its_first_events(rows, k, per):
    """Two ids under one event id are two events: so one that leaves takes none of the other's."""
    unit = IdUnit("carrier", k, per)
    ids = sorted({row[2] for row in rows if row[2]})
    options = {"unit": unit, "gauges": EXACT}
    each = [arrays([row for row in rows if row[2] == one], **options) for one in ids]
    for found in each:
        for one in EXACT:
            steps = np.flatnonzero(found[one.name].any(axis=1))
            assert len(steps) <= (k if per == "lifetime" else 3 * k)
            assert np.count_nonzero(found[one.name]) <= len(steps) * k * one.max_items
            assert np.abs(found[one.name]).max(initial=0) <= k * max(-one.low, one.high)
    assert equal(arrays(rows, **options), summed([arrays([], **options), *each]))


PLACES = st.lists(st.tuples(TIMES, EVENTS), max_size=20)


@settings(max_examples=25)
@given(PLACES, st.data(), st.integers(1, 2))
def test_replaced_values_of_an_id_move_the_steps_of_its_first_events_alone(places, data, k):
    """Under replace_one events that add nothing use up the bound, too."""
    one, other = (
        arrays(
            [(time, event, "UA", data.draw(VALUES)) for time, event in places],
            unit=IdUnit("carrier", k, "lifetime"), relation=REPLACE, gauges=EXACT,
        )
        for _ in range(2)
    )  # fmt: skip
    steps = {step for name in one for step in np.flatnonzero((one[name] - other[name]).any(axis=1))}
    assert len(steps) <= k


# --- runs


@settings(max_examples=25)
@given(ROWS, st.integers(1, 5), st.sampled_from([None, IdUnit("carrier", 2, "lifetime")]))
def test_two_runs_add_up_as_one_does(rows, cut, unit):
    whole = read(rows, unit=unit)
    begun = read(rows, last=cut, unit=unit)
    later = read(
        rows, first=cut, state=begun.unit_state_at(cut), seen=begun.seen_at(cut), unit=unit
    )
    both = {name: np.concatenate([begun.arrays[name], later.arrays[name]]) for name in whole.arrays}
    assert equal(whole.arrays, both)
    for name, state in whole.unit_state_at(LAST).items():
        assert state.tolist() == later.unit_state_at(LAST)[name].tolist()


@settings(max_examples=25)
@given(ROWS, ROWS, st.integers(1, 5))
def test_an_event_that_began_never_counts_again_whatever_the_source_becomes(rows, later, cut):
    """A rotated source has lost the rows that say when an event began."""
    begun = read(rows, last=cut, gauges=EXACT)
    resumed = read(later, first=cut, state=begun.unit_state_at(cut), gauges=EXACT)
    reading = plan_of()
    starts = defaultdict(lambda: LAST)
    for row in rows:
        step = step_of(dict(zip(COLUMNS, row, strict=True)), reading)
        if step is not None and row[1]:
            starts[row[1]] = min(starts[row[1]], step)
    old = {event for event, step in starts.items() if step < cut}
    assert len(old) == len(begun.unit_state_at(cut)["events"])
    new = [row for row in later if row[1] not in old]
    assert equal(resumed.arrays, read(new, first=cut, gauges=EXACT).arrays)


# --- examples


def test_the_step_is_that_of_the_earliest_row_wherever_the_others_are():
    rows = [(at(4), "u", None, "1"), (at(2, 59), "u", None, "B"), (at(23), "u", None, "2")]
    assert [2] == np.flatnonzero(arrays(rows)["sets"].any(axis=1)).tolist()
    for early in ("2012-12-31T23:59:59Z", "0001-01-02T00:00:00Z"):
        assert not arrays([*rows, (early, "u", None, "1")])["sets"].any()
    assert arrays([*rows, ("soon", "u", None, "1")])["sets"].any()


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kathmandu"])
def test_local_times_of_any_year_tell_when_an_event_began(zone):
    rows = [("2013-01-01 12:00:00", "u"), ("1701-02-03 00:00:00", "u"), ("0001-01-01 00:00", "v"),
            ("9999-12-31 23:59", "v"), ("2013-01-01 12:00:00", "w")]  # fmt: skip
    frame = pl.DataFrame(rows, schema=["time", "id"], orient="row")
    reading = plan(gauge("all"), timezone=zone, event="id")
    assert 1 == totals(reading, Frames(frame), 0, 24, unit_key=KEY).arrays["all"].sum()


def test_the_smallest_cells_by_bytes_stay_in_every_column():
    by = (("v", ("b", "a")), ("carrier", ("\u00e9", "z")))
    one = gauge("sets", by=by, max_items=2)
    cells = [("b", "z"), ("b", "\u00e9"), ("a", "\u00e9")]
    rows = [(at(0), "u", carrier, v) for v, carrier in cells]
    got = arrays(rows, gauges=(one,))["sets"][0]
    assert {("a", "\u00e9"), ("b", "z")} == {one.cells[at] for at in np.flatnonzero(got)}


def test_an_event_without_items_with_repeated_and_with_ten_thousand():
    by = (("v", tuple(f"{at:05}" for at in range(10_000))),)
    gauges = (gauge("sets", by=by, max_items=300, high=2), gauge("all"))
    none = [(at(0), "none", None, "unknown")]
    many = [(at(1), "many", None, value) for value in reversed(by[0][1])]
    repeated = [(at(2), "repeated", None, "00007")] * 10_000
    got = arrays([*none, *many, *repeated], gauges=gauges, parts=7)
    assert [0, 300, 2, 0, 0, 0] == got["sets"].sum(axis=1).tolist()
    assert got["sets"][1, :300].all()
    assert [1, 1, 1, 0, 0, 0] == got["all"].ravel().tolist()


def test_rows_without_an_event_or_an_id_are_bad_rows():
    rows = [(at(0), None, "UA", "1"), (at(0), "", "UA", "1"), (at(0), "1.0", "UA", "1"),
            (at(1), "u", None, "1"), (at(2), "u", "UA", "1")]  # fmt: skip
    got = read(rows, unit=IdUnit("carrier", 5, "lifetime"))
    assert [2] == np.flatnonzero(got.arrays["numbers"]).tolist()
    assert (3, 1) == (got.counters["no_event"], got.counters["no_id"])


def test_pairs_of_ids_are_told_apart():
    rows = [(at(0), "bc", "a", "1"), (at(1), "c", "ab", "1"), (at(2), ":a", "1", "1")]
    got = arrays(rows, unit=IdUnit("carrier", 5, "lifetime"))["numbers"]
    assert [1, 1, 1, 0, 0, 0] == got.ravel().tolist()


def test_sums_are_of_the_event_and_clamped_when_they_are_whole():
    one = gauge("sums", kind="sum", column="v", low=LOW, high=HIGH)
    rows = [(at(0), "u", None, "9"), (at(0), "u", None, "-5"), (at(1), "v", None, "1e30"),
            (at(1), "v", None, "-1e30"), (at(2), "w", None, "9")]  # fmt: skip
    assert [4, 0, 6] == arrays(rows, gauges=(one,))["sums"][:3].ravel().tolist()


def test_events_that_share_a_word_of_their_hash_are_told_apart(monkeypatch):
    from tidegauge.engine.hashed import Hashed

    rows = [(at(hour), event, "UA", "1") for hour in range(6) for event in "uvwx"[hour // 2 :]]
    halves = Hashed.halves

    def colliding(self, text):
        high, low, known = halves(self, text)
        return np.full_like(high, 7), low, known

    unit = IdUnit("carrier", 3, "lifetime")
    expected = [arrays(rows, gauges=EXACT), arrays(rows, gauges=EXACT, unit=unit)]
    monkeypatch.setattr(Hashed, "halves", colliding)
    got = [arrays(rows, gauges=EXACT), arrays(rows, gauges=EXACT, unit=unit)]
    assert all(map(equal, expected, got))


def test_memory_follows_the_events_and_what_they_keep():
    from tidegauge.engine.events import Events

    one = gauge("sets", by=(("v", tuple(map(str, range(1000)))),), max_items=3)
    gathered = Events(((one, Contributor(one)),), plan_of().clock)
    rng = np.random.default_rng(0)
    for _ in range(12):
        events = rng.integers(0, 50, 1 << 15)
        cells = rng.integers(0, 1000, 1 << 15)
        gathered.add((events, events), events, [(cells, None)])
    assert 0 == len(next(gathered.result(0, LAST))[0])  # all began before the clock
    assert (50, 150) == (gathered._events.shape[1], gathered._items[0]._kept.shape[1])
