"""Rows become exact totals of steps and cells."""

from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from plans import HOUR, START, gauge, plan

from tidegauge.engine.contributions import Contributor
from tidegauge.engine.source import UNREADABLE, Source
from tidegauge.engine.totals import totals
from tidegauge.errors import InvalidParameter, SourceUnavailable
from tidegauge.mechanisms.accumulator import Accumulator
from tidegauge.planning.plan import IdUnit

KEY = b"sixteen bytes or more"


class Frames(Source):
    """Batches made by hand."""

    def __init__(self, *frames):
        self.frames = frames

    def batches(self, columns):
        yield from self.frames

    def describe(self):
        return "frames"


def at(hour, minute=0):
    return f"2013-01-01T{hour:02}:{minute:02}:00Z"


def test_rows_count_in_the_cell_and_step_of_their_own():
    frame = pl.DataFrame(
        {
            "time": [at(0), at(0, 59), at(1), "2012-12-31T23:59:59Z", "2099-01-01T00:00:00Z", None],
            "carrier": ["UA", "B6", "XX", "UA", "UA", "UA"],
        }
    )
    by = (("carrier", ("B6", "UA")),)
    first, second = gauge("a", by=by, other="other"), gauge("b", by=by)
    got = totals(plan(first, second), Frames(frame), 0, 3)
    assert [[1, 1, 0], [0, 0, 1], [0, 0, 0]] == got.arrays["a"].tolist()
    assert [[1, 1], [0, 0], [0, 0]] == got.arrays["b"].tolist()
    assert (6, 1, 2) == (got.records, got.counters["no_time"], got.counters["outside"])
    assert 1 == got.counters["b: other"]
    later = totals(plan(first, second), Frames(frame), 1, 3)
    assert got.arrays["a"][1:].tolist() == later.arrays["a"].tolist()
    assert (2, 2) == (later.counters["step_published"], later.counters["outside"])
    assert 0 == got.counters["step_published"]


def test_crossed_columns_have_the_declared_order_of_cells():
    by = (("x", ("a", "b")), ("y", ("1", "2")))
    crossed = gauge(by=by, other="rest")
    frame = pl.DataFrame({"time": [at(0)] * 4, "x": ["b", "b", None, "a"], "y": [1, 7, None, 2]})
    got = totals(plan(crossed), Frames(frame), 0, 1).arrays["departures"][0]
    counted = {cell: int(n) for cell, n in zip(crossed.cells, got, strict=True) if n}
    expected = {("b", "1"): 1, ("b", "rest"): 1, ("rest", "rest"): 1, ("a", "2"): 1}
    assert expected == counted


def test_sums_are_clamped_rounded_and_exact():
    dollars = gauge(kind="sum", column="v", low=-100, high=500, round_to=Fraction(1, 100))
    values = ["0.1", "0.2", "9", "-9", "NaN", "", None, "0.005", "0.015"]
    frame = pl.DataFrame({"time": [at(0)] * 9, "v": values})
    got = totals(plan(dollars), Frames(frame), 0, 1)
    assert [[10 + 20 + 500 - 100 + 0 + 2]] == got.arrays["departures"].tolist()
    assert 3 == got.counters["departures: no_number"]


def test_a_row_counts_only_if_the_predicate_is_true():
    frame = pl.DataFrame({"time": [at(0)] * 5, "v": ["16", "15", None, "many", "17"]})
    late = gauge(where="v > 15")
    assert [[2]] == totals(plan(late), Frames(frame), 0, 1).arrays["departures"].tolist()


def test_a_row_that_a_predicate_cannot_judge_is_not_true_and_stops_no_other():
    class Strict(Contributor):
        def __init__(self, gauge):
            super().__init__(gauge)
            self._where = pl.col("v").cast(pl.Int64, strict=True) > 15

    frame = pl.DataFrame({"v": ["16", "many", "15", "", None, "17"]})
    keys, _ = Strict(gauge()).contributions(frame, np.zeros(6, np.int64))
    assert [0, -1, -1, -1, -1, 0] == keys.tolist()


def test_unreadable_records_take_their_step_and_nothing_else():
    frame = pl.DataFrame({"v": ["1", None, "3", None], UNREADABLE: [False, True, False, False]})
    nulls = gauge(where="v IS NULL")
    records = plan(gauge(), nulls.__class__(**(vars(nulls) | {"name": "nulls"})), step=None)
    got = totals(records, Frames(frame, frame), 0, 8)
    assert [[1], [0], [1], [1]] * 2 == got.arrays["departures"].tolist()
    assert [[0], [0], [0], [1]] * 2 == got.arrays["nulls"].tolist()
    assert (
        got.arrays["nulls"].tolist()
        == totals(records, Frames(frame, frame), 0, None).arrays["nulls"].tolist()
    )
    later = totals(records, Frames(frame, frame), 5, None)
    assert (5, 8, [[0], [1], [1]]) == (
        later.first, later.last, later.arrays["departures"].tolist(),
    )  # fmt: skip
    for first in (0, 3):
        nothing = totals(records, Frames(), first, None)
        assert (first, first, []) == (
            nothing.first, nothing.last, nothing.arrays["nulls"].tolist(),
        )  # fmt: skip
    short = totals(plan(step=None, end=3), Frames(frame), 0, None)
    assert [[1], [0], [1]] == short.arrays["departures"].tolist()


def test_no_rows_give_zeros_of_the_full_shape():
    by = (("x", ("a", "b")),)
    empty = pl.DataFrame({"time": [], "x": []}, schema={"time": pl.String, "x": pl.String})
    for source in (Frames(), Frames(empty)):
        assert [[0, 0]] * 24 == totals(plan(gauge(by=by)), source, 0, 24).arrays[
            "departures"
        ].tolist()


def test_the_range_of_steps_is_checked():
    for first, last in ((0, None), (-1, 3), (4, 3), (0, 25)):
        with pytest.raises(InvalidParameter, match="Expected"):
            totals(plan(), Frames(), first, last)
    with pytest.raises(InvalidParameter, match="unit_key"):
        totals(plan(unit=IdUnit("id", 1, "lifetime")), Frames(), 0, 1)


class Typed(Frames):
    def types(self, columns):
        return [("a.parquet", {"time": self.frames[0]})]

    def batches(self, columns):
        raise AssertionError("a row was read")


@pytest.mark.parametrize("kind", [pl.Int64(), pl.Time(), pl.Datetime("us"), pl.List(pl.String)])
def test_types_that_no_row_could_be_read_from_are_refused_before_any_row(kind):
    with pytest.raises(SourceUnavailable, match=r"time.*a\.parquet"):
        totals(plan(), Typed(kind), 0, 1)


def test_sums_beyond_int64_are_exact_and_cut_off_at_the_end():
    largest = 1 << 40
    total = Accumulator(largest)
    total.grow(3)
    keys = np.zeros(1 << 20, np.int64)
    for sign in (1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1, -1, -1):
        total.add(keys, np.full(1 << 20, sign * largest))
        total.add(np.array([1]), np.array([sign]))
    total.add(np.array([2, 1, -1]), np.array([5, 7, 9]))
    assert [0, 7, 5] == total.result().tolist()
    for sign, expected in ((1, 1 << 62), (-1, -(1 << 62))):
        total = Accumulator(largest)
        total.grow(1)
        for _ in range(9):
            total.add(keys, np.full(1 << 20, sign * largest))
        assert [expected] == total.result().tolist()


def test_batches_never_change_totals():
    rows = {
        "time": [at(i % 24, i % 60) for i in range(500)],
        "x": ["ab"[i % 2] for i in range(500)],
    }
    frame = pl.DataFrame(rows)
    cells = plan(gauge(by=(("x", ("a", "b")),)))
    whole = totals(cells, Frames(frame), 0, 24).arrays["departures"].tolist()
    for size in (1, 7, 499):
        parts = frame.sample(500, shuffle=True, seed=size).iter_slices(size)
        assert whole == totals(cells, Frames(*parts), 0, 24).arrays["departures"].tolist()


def test_times_of_every_type_fall_into_their_steps():
    moments = pl.Series([START, START + HOUR, START + HOUR - 1])
    for column, zone in [
        (moments.cast(pl.Datetime("us", "UTC")), None),
        ((moments * 1000).cast(pl.Datetime("ns", "Asia/Tokyo")), None),
        (moments.cast(pl.Datetime("us")), "UTC"),
    ]:
        frame = pl.DataFrame({"time": column})
        got = totals(plan(timezone=zone, end=2), Frames(frame), 0, 2)
        assert [[2], [1]] == got.arrays["departures"].tolist()
