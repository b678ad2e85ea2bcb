"""Counts of different values from sources: state, order, odd values, ids, types."""

import numpy as np
import polars as pl
import pytest
from plans import gauge, plan
from test_totals import KEY, Frames, at

from tidegauge.engine.distinct import DistinctCounts, Values
from tidegauge.engine.totals import totals
from tidegauge.errors import InvalidParameter, SourceUnavailable
from tidegauge.planning.plan import IdUnit
from tidegauge.strategies.decay import Running, Window

EVER = (("running", Running()),)


def counting(window=2, name="kinds", **changes):
    views = EVER if window == "ever" else (("window", Window(window)),)
    return gauge(name, kind="count_distinct", column="v", views=views, **changes)


def rows(*pairs):
    return pl.DataFrame({"time": [at(h) for h, _ in pairs], "v": [v for _, v in pairs]})


def counted(frame, window=2, last=4, **options):
    asked = plan(counting(window, **options))
    return totals(asked, Frames(frame), 0, last, unit_key=KEY).arrays["kinds"].ravel().tolist()


def test_a_value_counts_once_as_long_as_it_is_in_the_window():
    frame = rows((0, "a"), (0, "a"), (0, "b"), (1, "a"), (3, "c"))
    assert [2, 2, 1, 1] == counted(frame)
    assert [2, 1, 0, 1] == counted(frame, window=1)
    assert [2, 0, 0, 1] == counted(frame, window="ever")


def test_composed_and_decomposed_letters_are_two_values_and_spelling_counts():
    frame = rows((0, "\u00e9"), (0, "e\u0301"), (0, "a"), (0, "A"), (0, " a"), (0, "1"), (0, "1.0"))
    assert 7 == counted(frame)[0]


def test_nulls_and_empty_texts_are_not_counted_and_told_to_the_operator():
    frame = rows((0, None), (0, ""), (0, "a"))
    found = totals(plan(counting()), Frames(frame), 0, 2, unit_key=KEY)
    assert [[1], [1]] == found.arrays["kinds"].tolist()
    assert 2 == found.counters["kinds: no_value"]


def test_an_integer_and_its_text_are_one_value():
    numbers = pl.DataFrame({"time": [at(0), at(0)], "v": [1, 2]})
    assert [2] == counted_of(numbers, rows((0, "1"), (0, "2")))
    truths = pl.DataFrame({"time": [at(0)], "v": [True]})
    assert [2] == counted_of(truths, rows((0, "true"), (0, "1")))


def counted_of(*frames):
    return totals(plan(counting()), Frames(*frames), 0, 1, unit_key=KEY).arrays["kinds"][0].tolist()


def test_values_are_counted_in_each_cell_by_itself():
    frame = rows((0, "a"), (0, "a"), (0, "b")).with_columns(shop=pl.Series(["n", "s", "n"]))
    counts = counting(by=(("shop", ("n", "s")),), other="other")
    found = totals(plan(counts), Frames(frame), 0, 1, unit_key=KEY)
    assert [[2, 1, 0]] == found.arrays["kinds"].tolist()
    dropped = counting(where="v = 'b'")
    assert [[1]] == totals(plan(dropped), Frames(frame), 0, 1, unit_key=KEY).arrays[
        "kinds"
    ].tolist()


def test_the_order_of_rows_and_batches_leaves_no_trace():
    rng = np.random.default_rng(0)
    made = [(int(h), f"v{v}") for h, v in rng.integers(0, (12, 30), (300, 2))]
    asked = plan(counting(3), counting("ever", name="ever"))
    first = totals(asked, Frames(rows(*made)), 0, 12, unit_key=KEY)
    for seed in range(5):
        np.random.default_rng(seed).shuffle(made)
        other = totals(asked, Frames(rows(*made[:100]), rows(*made[100:])), 0, 12, unit_key=KEY)
        for name in ("kinds", "ever"):
            assert first.arrays[name].tolist() == other.arrays[name].tolist()
            for step in (0, 3, 12):
                one, two = first.seen_at(step)[name], other.seen_at(step)[name]
                assert {k: v.tobytes() for k, v in one.items()} == {
                    k: v.tobytes() for k, v in two.items()
                }


@pytest.mark.parametrize("window", ["ever", 1, 2, 5, 20])
def test_a_stream_cut_anywhere_counts_as_one_that_was_not(window):
    rng = np.random.default_rng(4)
    made = [(int(h), f"v{v}") for h, v in rng.integers(0, (12, 9), (60, 2))]
    asked, frame = plan(counting(window)), rows(*made)
    whole = totals(asked, Frames(frame), 0, 12, unit_key=KEY)
    for cut in range(13):
        part = totals(asked, Frames(frame), 0, cut, unit_key=KEY)
        assert part.seen_at(cut)["kinds"]["value"].tolist() == (
            whole.seen_at(cut)["kinds"]["value"].tolist()
        )
        rest = totals(asked, Frames(frame), cut, 12, unit_key=KEY, seen=whole.seen_at(cut))
        both = np.concatenate([part.arrays["kinds"], rest.arrays["kinds"]])
        assert whole.arrays["kinds"].tolist() == both.tolist()


def test_a_window_forgets_what_later_steps_do_not_need():
    counts = DistinctCounts(3, 1, 0)
    counts.add(np.arange(100), np.arange(100))
    assert [98, 99] == sorted(counts.state(100)["last"].tolist())
    ever = DistinctCounts("ever", 1, 0)
    ever.add(np.arange(100), np.arange(100))
    assert ["cell", "value"] == list(ever.state(100))
    assert 100 == len(ever.state(100)["value"])


def test_values_are_kept_as_hashes_under_the_stores_key():
    column = pl.Series(["N-SECRET-42", None])
    one, known = Values(KEY).hashes(column)
    assert [True, False] == known.tolist()
    assert one[0] == Values(KEY).hashes(column)[0][0] != Values(KEY[::-1]).hashes(column)[0][0]
    for short in (None, b"short"):
        with pytest.raises(InvalidParameter, match="secret bytes"):
            totals(plan(counting()), Frames(rows((0, "a"))), 0, 1, unit_key=short)


def test_an_id_brings_as_many_values_as_it_has_events():
    frame = rows((0, "a"), (0, "b"), (1, "c"), (1, "d")).with_columns(who=pl.lit("one"))
    unit = IdUnit("who", 3, "lifetime")
    found = totals(plan(counting(4), unit=unit), Frames(frame), 0, 4, unit_key=KEY)
    assert [2, 3, 3, 3] == found.arrays["kinds"].ravel().tolist()
    nothing = rows((0, None), (0, "a")).with_columns(who=pl.lit("one"))
    one = totals(
        plan(counting(4), unit=IdUnit("who", 1, "lifetime")), Frames(nothing), 0, 1, unit_key=KEY
    )
    assert [[1]] == one.arrays["kinds"].tolist()  # a row without a value is no event of an id


class Typed(Frames):
    """A source with types of its own."""

    def types(self, columns):
        return [("part", dict(self.frames[0].schema))]


@pytest.mark.parametrize(
    "column",
    [pl.Series([1.0]), pl.Series([[1]]), pl.Series([b"x"]), pl.Series([None], dtype=pl.Date)],
)
def test_columns_that_have_no_plain_values_are_refused_before_any_row(column):
    frame = pl.DataFrame({"time": [at(0)], "v": column})
    with pytest.raises(SourceUnavailable, match="'v' of part"):
        totals(plan(counting()), Typed(frame), 0, 1, unit_key=KEY)


def test_records_as_steps_have_windows_of_records():
    frame = pl.DataFrame({"v": ["a", "b", "a", None, "c"]})
    asked = plan(counting(2), step=None, end=None)
    found = totals(asked, Frames(frame), 0, None, unit_key=KEY)
    assert [1, 2, 2, 1, 1] == found.arrays["kinds"].ravel().tolist()
