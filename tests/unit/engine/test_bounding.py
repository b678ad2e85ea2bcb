"""At most k events of each id, whatever the order of rows, batches and runs."""

from collections import defaultdict
from hashlib import blake2b

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plans import gauge, plan
from test_totals import KEY, Frames, at

from tidegauge.engine.bounding import Bounding
from tidegauge.engine.totals import totals
from tidegauge.planning.plan import IdUnit

BY = (("x", ("a", "b")),)
GAUGES = (gauge("all"), gauge("cells", by=BY))


def read(frame, *, k=2, per="lifetime", first=0, last=24, state=None, gauges=GAUGES, parts=1):
    bounded = plan(*gauges, unit=IdUnit("id", k, per))
    size = max(1, -(-frame.height // parts))
    source = Frames(*frame.iter_slices(size))
    return totals(bounded, source, first, last, unit_key=KEY, unit_state=state)


def frame_of(rows):
    times, ids, cells = zip(*rows, strict=True) if rows else ((), (), ())
    data = {"time": times, "id": ids, "x": cells}
    return pl.DataFrame(data, schema=dict.fromkeys(data, pl.String))


def test_the_first_events_of_each_id_are_kept():
    rows = [(at(3), "u", "a"), (at(1), "u", "b"), (at(2), "u", "a"), (at(5), "v", "a")]
    got = read(frame_of(rows)).arrays["all"].ravel()
    assert [1, 2, 5] == np.flatnonzero(got).tolist()


def test_an_id_that_is_null_or_empty_is_a_bad_row():
    rows = [(at(0), None, "a"), (at(0), "", "a"), (at(0), "u", "a")]
    got = read(frame_of(rows))
    assert 1 == got.arrays["all"].sum()
    assert 2 == got.counters["no_id"]


def test_ids_that_are_integers_are_text_and_floats_are_none():
    integers = {"time": [at(0)] * 4, "id": [1, 1, 2, None], "x": ["a"] * 4}
    assert 2 == read(pl.DataFrame(integers), k=1).arrays["all"].sum()
    floats = integers | {"id": [1.0, 1.0, float("nan"), None]}
    got = read(pl.DataFrame(floats), k=1)
    assert (0, 4) == (got.arrays["all"].sum(), got.counters["no_id"])


def test_rows_that_add_nowhere_do_not_use_up_the_bound():
    rows = [(at(hour), "u", "zz") for hour in range(5)] + [(at(6), "u", "a")]
    got = read(frame_of(rows), k=1, gauges=(gauge("cells", by=BY),))
    assert 1 == got.arrays["cells"].sum()


def test_the_bound_holds_over_all_gauges_together():
    halves = (gauge("a", by=(("x", ("a",)),)), gauge("b", by=(("x", ("b",)),)))
    rows = [(at(hour), "u", "ab"[hour % 2]) for hour in range(10)]
    got = read(frame_of(rows), k=3, gauges=halves)
    assert (2, 1) == (got.arrays["a"].sum(), got.arrays["b"].sum())


def test_periods_have_a_bound_each():
    rows = [(at(hour), "u", "a") for hour in range(12)]
    got = read(frame_of(rows), k=2, per=4).arrays["all"].ravel()
    assert [0, 1, 4, 5, 8, 9] == np.flatnonzero(got).tolist()


def test_what_is_stored_shows_no_id():
    got = read(frame_of([(at(0), "alice", "a")]))
    state = got.unit_state_at(24)
    assert {"ids", "counts", "period"} == set(state)
    assert (1, 2) == state["ids"].shape
    assert b"alice" not in state["ids"].tobytes()
    assert "alice" not in repr(got)
    other = totals(
        plan(*GAUGES, unit=IdUnit("id", 2, "lifetime")),
        Frames(frame_of([(at(0), "alice", "a")])), 0, 24, unit_key=KEY + b"!",
    )  # fmt: skip
    assert state["ids"].tolist() != other.unit_state_at(24)["ids"].tolist()


def test_hashes_of_ids_stay_the_same_over_versions_for_stored_counts():
    state = read(frame_of([(at(0), "alice", "a")])).unit_state_at(24)
    key = blake2b(KEY, digest_size=32, person=b"tidegauge ids").digest()
    expected = blake2b(b"alice", digest_size=16, key=key).digest()
    assert expected == state["ids"].astype("<i8").tobytes()


ROWS = st.lists(
    st.tuples(
        st.builds(at, st.integers(0, 5), st.integers(0, 2)),
        st.sampled_from(["u", "v", "w", None]),
        st.sampled_from(["a", "b", "zz"]),
    ),
    max_size=40,
)


@given(ROWS, st.integers(1, 4), st.sampled_from(["lifetime", 2]), st.randoms(), st.integers(1, 5))
def test_order_and_batches_never_change_totals(rows, k, per, random, parts):
    expected = read(frame_of(rows), k=k, per=per)
    shuffled = rows.copy()
    random.shuffle(shuffled)
    got = read(frame_of(shuffled), k=k, per=per, parts=parts)
    for name in expected.arrays:
        assert expected.arrays[name].tolist() == got.arrays[name].tolist()


@given(ROWS, st.integers(1, 4), st.sampled_from(["lifetime", 2, 3, 4]), st.integers(0, 6))
def test_a_resumed_run_keeps_the_bound_and_gives_the_same_totals(rows, k, per, cut):
    whole = read(frame_of(rows), k=k, per=per, last=6)
    begun = read(frame_of(rows), k=k, per=per, last=cut)
    state = {name: array.copy() for name, array in begun.unit_state_at(cut).items()}
    resumed = read(frame_of(rows), k=k, per=per, first=cut, last=6, state=state)
    for name, array in whole.arrays.items():
        parts = np.concatenate([begun.arrays[name], resumed.arrays[name]])
        assert array.tolist() == parts.tolist()
    for name, array in whole.unit_state_at(6).items():
        assert array.tolist() == resumed.unit_state_at(6)[name].tolist()
    for name, array in whole.unit_state_at(cut).items():
        assert array.tolist() == state[name].tolist()
    counts = dict.fromkeys("uvw", 0)
    for time, unit, _ in rows:
        hour = int(time[11:13])
        here = per == "lifetime" or hour // per == cut // per
        if unit is not None and hour < cut and here:
            counts[unit] += 1
    expected = sorted(min(count, k) for count in counts.values() if count)
    assert expected == sorted(state["counts"].tolist())


@given(ROWS, st.integers(1, 4), st.sampled_from(["lifetime", 2]), st.sampled_from("uvw"))
def test_removing_an_id_moves_totals_by_its_own_events_alone(rows, k, per, leaving):
    with_it = read(frame_of(rows), k=k, per=per, last=6)
    alone = read(frame_of([row for row in rows if row[1] == leaving]), k=k, per=per, last=6)
    without = read(frame_of([row for row in rows if row[1] != leaving]), k=k, per=per, last=6)
    for name, array in with_it.arrays.items():
        assert array.tolist() == (without.arrays[name] + alone.arrays[name]).tolist()
        moved = alone.arrays[name].sum(axis=1)
        periods = [moved] if per == "lifetime" else moved.reshape(-1, per)
        assert max(period.sum() for period in periods) <= k


@given(ROWS, st.integers(1, 3))
def test_the_kept_events_are_the_first_by_time(rows, k):
    got = read(frame_of(rows), k=k, last=6).arrays["all"].ravel()
    times = defaultdict(list)
    for time, unit, _ in rows:
        if unit is not None:
            times[unit].append(int(time[11:13]))
    expected = np.zeros(6, np.int64)
    for hours in times.values():
        for hour in sorted(hours)[:k]:
            expected[hour] += 1
    assert expected.tolist() == got.tolist()


def test_memory_follows_the_ids_and_not_the_rows():
    kept = Bounding(IdUnit("id", 3, "lifetime"), 1, KEY)
    ids = pl.Series([str(i % 50) for i in range(1 << 15)])
    for batch in range(12):
        steps = np.arange(1 << 15) + batch
        kept.add(ids, steps, steps, [(steps, None)])
    assert kept.rows <= 50 * 3 + 2 * (1 << 17)
    ((keys, amounts),) = kept.kept()
    assert (150, 150) == (len(keys), int(amounts.sum()))
    assert 150 == kept.rows


def test_counts_beyond_the_bound_stay_used_up():
    state = {"ids": np.array([[1, 2]]), "counts": np.array([9]), "period": np.array([0])}
    kept = Bounding(IdUnit("id", 3, "lifetime"), 1, KEY, state)
    kept.add(pl.Series(["u"]), np.array([5]), np.array([5]), [(np.array([5]), None)])
    got = kept.state(6, 6)
    assert [1, 9] == sorted(got["counts"].tolist())


@pytest.mark.parametrize("per", ["lifetime", 2])
def test_ids_that_share_a_word_of_their_hash_share_no_bound(monkeypatch, per):
    rows = [(at(hour), unit, "a") for hour in range(6) for unit in "uvwxyz"]
    expected = read(frame_of(rows), k=2, per=per, last=6)
    hashed = Bounding.hashed

    def colliding(self, ids, wanted):
        high, low, known = hashed(self, ids, wanted)
        return np.full_like(high, 7), low, known

    monkeypatch.setattr(Bounding, "hashed", colliding)
    got = read(frame_of(rows), k=2, per=per, last=6)
    assert expected.arrays["all"].tolist() == got.arrays["all"].tolist()
    counts = expected.unit_state_at(3)["counts"].tolist()
    assert counts == got.unit_state_at(3)["counts"].tolist()
