"""Items: what is one, in every kind of source; sums where an event was; numbers by first step."""

import json
from collections import Counter
from datetime import UTC, datetime

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plans import gauge, plan
from test_totals import Frames, at

from tidegauge.connectors.files import Files
from tidegauge.engine.items import LONGEST, Items
from tidegauge.engine.sparse import SparseSums
from tidegauge.engine.totals import totals
from tidegauge.errors import InvalidParameter, SourceUnavailable
from tidegauge.mechanisms.discovery import Discover
from tidegauge.planning.plan import IdUnit

KEY = b"sixteen bytes or more"
DEST = (("dest", ()),)
LETTER, COMPOSED = "e\u0301", "\u00e9"
ODD = {
    "a comma, a quote": 'a,"b"', "newlines": "a\n\nb\n", "a NUL": "a\0b",
    "an escape": "\x1b[31mred",
    "decomposed": LETTER, "composed": COMPOSED, "a blank": " ", "a blank before": " 1", "one": "1",
    "one of its own": "1.0", "zeros": "01", "a long one": "x" * LONGEST, "an emoji": "\U0001f30a",
    "a separator": "\u2028", "the word": "null", "truth": "true",
}  # fmt: skip
NONE = {"empty": "", "too long": "x" * (LONGEST + 1), "too many bytes": "\u00e9" * 513}


def unknown(name="departures", **changes):
    return gauge(name, **{"by": DEST, "discover": Discover()} | changes)


def counted(found):
    """Item, step and amount of each pair, as texts and numbers."""
    names = found.items.rows()
    pairs = zip(found.item.tolist(), found.step.tolist(), found.amount.tolist(), strict=True)
    return {(*names[item], step): amount for item, step, amount in pairs}


def test_items_are_numbered_by_first_step_and_then_bytes():
    frame = pl.DataFrame({"time": [at(2), at(0), at(1), at(0), at(2)], "dest": list("abZca")})
    found = totals(plan(unknown()), Frames(frame), 0, 3).sparse["departures"]
    assert ["b", "c", "Z", "a"] == found.items["dest"].to_list()
    assert {("b", 0): 1, ("c", 0): 1, ("Z", 1): 1, ("a", 2): 2} == counted(found)
    assert [0, 2, 3, 4] == [found.seen(step) for step in range(4)]
    assert [[0, 1], [2, 3], [1, 2]] == [array.tolist() for array in found.block(1, 2)]


def test_numbers_of_earlier_runs_stay():
    known = pl.DataFrame({"dest": ["y", "x"]})
    frame = pl.DataFrame({"time": [at(0), at(1), at(2), at(1)], "dest": ["old", "a", "x", "b"]})
    options = {"items": {"departures": known}}
    found = totals(plan(unknown()), Frames(frame), 1, 3, **options).sparse["departures"]
    assert ["y", "x", "a", "b"] == found.items["dest"].to_list()
    assert {("a", 1): 1, ("b", 1): 1, ("x", 2): 1} == counted(found)
    assert [2, 4, 4] == [found.seen(step) for step in (1, 2, 3)]


def test_known_and_discovered_columns_cross():
    crossed = unknown(by=(("dest", ()), ("carrier", ("UA", "DL"))), other="rest")
    frame = pl.DataFrame(
        {"time": [at(0)] * 4, "dest": ["a", "a", None, "a"], "carrier": ["UA", "XX", "UA", None]}
    )
    found = totals(plan(crossed), Frames(frame), 0, 1)
    assert {("a", "UA", 0): 1, ("a", "rest", 0): 2} == counted(found.sparse["departures"])
    dropped = unknown(by=crossed.by, other=None)
    found = totals(plan(dropped), Frames(frame), 0, 1)
    assert {("a", "UA", 0): 1} == counted(found.sparse["departures"])
    assert (1, 2) == tuple(found.counters[f"departures: {why}"] for why in ("no_item", "other"))


def test_an_event_is_there_also_where_its_amount_is_nothing():
    sums = unknown(kind="sum", column="v", low=-5, high=5)
    frame = pl.DataFrame({"time": [at(0)] * 4, "dest": ["a", "b", "b", "c"], "v": [0, 3, -3, None]})
    found = totals(plan(sums), Frames(frame), 0, 1).sparse["departures"]
    assert {("a", 0): 0, ("b", 0): 0} == counted(found)


def written(folder, kind, texts):
    """A file of one event a text, all in the first hour."""
    time = datetime(2013, 1, 1, tzinfo=UTC)
    path = folder / f"events.{kind}"
    if kind == "jsonl":
        lines = [json.dumps({"time": at(0), "dest": text}) for text in texts]
        path.write_text("\n".join(lines) + "\n")
    elif kind == "csv":
        frame = pl.DataFrame({"time": [at(0)] * len(texts), "dest": texts})
        frame.write_csv(path, quote_style="necessary")
    else:
        pl.DataFrame({"time": [time] * len(texts), "dest": texts}).write_parquet(path)
    return Files([str(path)], folder=folder, multiline=kind == "csv")


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_what_is_an_item_is_the_same_in_every_kind_of_source(kind, tmp_path):
    texts = [*ODD.values(), *NONE.values(), LETTER, " 1", None]
    found = totals(plan(unknown()), written(tmp_path, kind, texts), 0, 1)
    expected = Counter(text for text in texts if text is not None and text not in NONE.values())
    assert {(text, 0): n for text, n in expected.items()} == counted(found.sparse["departures"])
    assert 2 == found.counters["departures: long_item"]
    assert 2 == found.counters["departures: no_item"]
    assert 0 == found.counters.get("unreadable", 0)


def test_numbers_are_the_items_of_their_texts(tmp_path):
    (tmp_path / "a.jsonl").write_text(
        "".join(f'{{"time":"{at(0)}","dest":{dest}}}\n' for dest in ("1", '"1"', "true", '" 1"'))
    )
    source = Files([str(tmp_path / "a.jsonl")], folder=tmp_path)
    found = totals(plan(unknown()), source, 0, 1).sparse["departures"]
    assert {("1", 0): 2, ("true", 0): 1, (" 1", 0): 1} == counted(found)
    typed = pl.DataFrame({"time": [at(0)] * 2, "dest": [1, None]})
    found = totals(plan(unknown()), Frames(typed), 0, 1).sparse["departures"]
    assert {("1", 0): 1} == counted(found)


def test_a_column_of_floats_is_refused_and_floats_of_other_sources_are_no_items(tmp_path):
    with pytest.raises(SourceUnavailable, match=r"1\.0 is not 1"):
        totals(plan(unknown()), written(tmp_path, "parquet", [1.0, 2.5]), 0, 1)
    frame = pl.DataFrame({"time": [at(0)], "dest": [1.5]})
    found = totals(plan(unknown()), Frames(frame), 0, 1)
    assert {} == counted(found.sparse["departures"])


ROWS = st.lists(st.tuples(st.integers(0, 4), st.sampled_from("abcdé"), st.integers(-3, 3)))


@settings(max_examples=60, deadline=None)
@given(rows=ROWS, cut=st.integers(0, 40))
def test_totals_are_those_of_a_dictionary_whatever_the_batches(rows, cut):
    sums = unknown(kind="sum", column="v", low=-3, high=3)
    frame = pl.DataFrame(
        {"time": [at(t) for t, _, _ in rows], "dest": [d for _, d, _ in rows],
         "v": [v for _, _, v in rows]},
        schema={"time": pl.String, "dest": pl.String, "v": pl.Int64},
    )  # fmt: skip
    expected = {}
    for step, dest, amount in rows:
        expected[dest, step] = expected.get((dest, step), 0) + amount
    for frames in ([frame], [frame[:cut], frame[cut:]], [frame[cut:], frame[:cut]]):
        found = totals(plan(sums), Frames(*frames), 0, 5).sparse["departures"]
        assert expected == counted(found)
        firsts = [min(s for d, s in expected if d == dest) for dest in found.items["dest"]]
        order = [(first, dest.encode()) for first, dest in
                 zip(firsts, found.items["dest"], strict=True)]  # fmt: skip
        assert sorted(order) == order
        assert len(order) == found.seen(5)


def test_sums_beyond_a_word_are_cut_off_and_exact_below():
    sums, most = SparseSums(), 1 << 40
    big = np.full(1 << 18, most)
    for _ in range(20):  # 5 * 2^20 * 2^40: beyond 2^62
        sums.add(np.zeros(1 << 18, np.int64), big)
        sums.add(np.ones(1 << 18, np.int64), -big)
    sums.add(np.array([2, 2, 2]), np.array([most, -1, -most]))
    keys, amounts = sums.result()
    assert [0, 1, 2] == keys.tolist()
    assert [1 << 62, -(1 << 62), -1] == amounts.tolist()


def test_what_is_kept_of_an_id_does_not_depend_on_other_rows():
    """Among rows of one stamp a hash of the text decides, not the number of the item."""
    bound = IdUnit("id", 1, "lifetime")
    mine = pl.DataFrame({"time": [at(0)] * 3, "dest": list("abc"), "id": ["me"] * 3})
    kept = set()
    for others in ([], ["c"], ["b", "c"], ["c", "b", "a"]):
        rows = {"time": [at(0)] * len(others), "dest": others, "id": [f"o{o}" for o in others]}
        first = pl.DataFrame(rows, schema=mine.schema)
        source = Frames(first, mine)
        found = totals(plan(unknown(), unit=bound), source, 0, 1, unit_key=KEY)
        amounts = Counter({dest: n for (dest, _), n in counted(found.sparse["departures"]).items()})
        amounts.subtract(others)
        kept.add(frozenset(+amounts))
    assert 1 == len(kept)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.tuples(st.integers(0, 4), st.sampled_from("abc"), st.sampled_from("uvw"))),
    most=st.integers(1, 3),
    cut=st.integers(0, 20),
)
def test_an_id_more_or_less_moves_no_more_than_its_events(rows, most, cut):
    """T3: whole ids, whatever the others do and in whatever batches they come."""
    bound = IdUnit("id", most, "lifetime")
    schema = {"time": pl.String, "dest": pl.String, "id": pl.String}
    frame = pl.DataFrame([(at(t), d, i) for t, d, i in rows], schema=schema, orient="row")
    reading = plan(unknown(), unit=bound)

    def read(frame):
        found = totals(reading, Frames(frame[cut:], frame[:cut]), 0, 5, unit_key=KEY)
        return counted(found.sparse["departures"])

    whole, without = read(frame), read(frame.filter(pl.col("id") != "u"))
    keys = set(whole) | set(without)
    moved = {key: whole.get(key, 0) - without.get(key, 0) for key in keys}
    assert all(change >= 0 for change in moved.values())
    assert sum(moved.values()) == min(most, sum(i == "u" for *_, i in rows))


def test_steps_that_share_no_word_with_items_are_refused():
    with pytest.raises(InvalidParameter, match="last"):
        totals(plan(unknown(), end=1 << 33), Frames(), 0, (1 << 31) + 1)


def test_items_of_other_columns_never_run_into_one_another():
    items = Items((("a", ()), ("b", ())), None)
    frame = pl.DataFrame({"a": ["x", "xy", "x"], "b": ["yz", "z", "yz"]})
    assert [0, 1, 0] == items.numbers(frame).tolist()
