"""The step of an event comes from its own stamp alone."""

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegauge.engine.clock import steps
from tidegauge.engine.stamps import stamps
from tidegauge.planning.plan import Clock, TimeColumn

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EVER = (-(1 << 61), 1 << 61)


def micros(text):
    return (datetime.fromisoformat(text) - EPOCH) // timedelta(microseconds=1)


def read(values, *, form="iso", timezone=None, dtype=pl.String, around=EVER):
    column = pl.Series(values, dtype=dtype)
    us, known = stamps(column, TimeColumn("time", timezone, form), around)
    return [int(u) if k else None for u, k in zip(us, known, strict=True)]


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("2013-01-31T05:06:07Z", "2013-01-31T05:06:07+00:00"),
        ("2013-01-31 05:06:07.5 UTC", "2013-01-31T05:06:07.500000+00:00"),
        ("2013-01-31t05:06:07,1234569z", "2013-01-31T05:06:07.123456+00:00"),
        ("  2013-01-31T05:06Z\t", "2013-01-31T05:06:00+00:00"),
        ("2013-01-31T05:06:07+01:30", "2013-01-31T03:36:07+00:00"),
        ("2013-01-31T05:06:07-0130", "2013-01-31T06:36:07+00:00"),
        ("2013-01-31T05:06:07+01", "2013-01-31T04:06:07+00:00"),
        ("2012-02-29T00:00:00Z", "2012-02-29T00:00:00+00:00"),
        ("1969-12-31T23:59:59.999999Z", "1969-12-31T23:59:59.999999+00:00"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00+00:00"),
        ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59+00:00"),
        ("2099-06-01T00:00:00Z", "2099-06-01T00:00:00+00:00"),
        ("2016-12-31T23:59:60Z", "2016-12-31T23:59:59.999999+00:00"),
        ("2016-12-31T23:59:60.75Z", "2016-12-31T23:59:59.999999+00:00"),
    ],
)
def test_stamps_with_a_zone_are_read(text, same):
    assert [micros(same)] == read([text])


@pytest.mark.parametrize(
    "text",
    [
        "", "NaN", "yesterday", "2013-01-31", "2013-01-31T05:06:07", "2013-02-29T00:00:00Z",
        "2013-13-01T00:00:00Z", "2013-00-01T00:00:00Z", "2013-01-00T00:00:00Z",
        "2013-01-31T24:00:00Z", "2013-01-31T05:60:00Z", "2013-01-31T05:06:61Z",
        "2013-01-31T05:06:07+24:00", "2013-01-31T05:06:07+01:60", "0000-01-01T00:00:00Z",
        "1/31/2013", "20130131T050607Z", "2013-01-31T05:06:07ZZ", "\uff12013-01-31T05:06:07Z",
        "2013-01-31T05:06:07Z\n", "10000-01-01T00:00:00Z", "2400", None, "\x00",
    ],
)  # fmt: skip
def test_what_is_no_stamp_with_a_zone_is_unreadable_and_spoils_no_other(text):
    good = "2013-01-31T05:06:07Z"
    assert [micros(good), None, micros(good)] == read([good, text, good])


def test_local_times_need_a_zone_and_clock_changes_are_decided():
    texts = [
        "2013-01-31",
        "2013-03-10 01:59:59",
        "2013-03-10 02:30:00",  # skipped
        "2013-11-03 01:30:00",  # happens twice: the first
        "2013-11-03 01:30:00-05:00",  # its own zone wins
        "9999-12-31",
    ]
    expected = [
        micros("2013-01-31T05:00:00+00:00"),
        micros("2013-03-10T06:59:59+00:00"),
        None,
        micros("2013-11-03T05:30:00+00:00"),
        micros("2013-11-03T06:30:00+00:00"),
        None,
    ]
    around = (micros("2013-01-01T00:00:00+00:00"), micros("2014-01-01T00:00:00+00:00"))
    assert expected == read(texts, timezone="America/New_York", around=around)
    naive = pl.Series(texts[1:4]).str.to_datetime("%Y-%m-%d %H:%M:%S")
    for unit in ("ms", "us", "ns"):
        column = naive.cast(pl.Datetime(unit))
        got = read(column, timezone="America/New_York", dtype=column.dtype, around=around)
        assert expected[1:4] == got
        assert [None] * 3 == read(column, dtype=column.dtype)


def test_far_native_stamps_are_read_or_left_out_without_wrapping():
    far = [0, -(1 << 63), (1 << 63) - 1, None]
    zoned = pl.Series(far).cast(pl.Datetime("ms", "UTC"))
    assert [0, None, None, None] == read(zoned, dtype=zoned.dtype)
    naive = pl.Series(far).cast(pl.Datetime("us"))
    near = (0, 1)
    got = read(naive, dtype=naive.dtype, timezone="America/New_York", around=near)
    assert [5 * 3_600_000_000, None, None, None] == got
    days = pl.Series([1, -1, 2**31 - 1, None], dtype=pl.Int32).cast(pl.Date)
    expected = [86_400_000_000, -86_400_000_000, None, None]
    assert expected == read(days, dtype=pl.Date, timezone="UTC")


@pytest.mark.parametrize(
    ("text", "us"),
    [
        ("0", 0),
        ("1356998400", 1356998400_000_000),
        (" 1356998400.1234569 ", 1356998400_123_456),
        ("-0.5", -500_000),
        ("-0.0000001", -1),
        ("1.", 1_000_000),
        ("-1", -1_000_000),
        ("1e9", None),
        ("99999999999999", None),
        ("9999999999999", None),
        ("nan", None),
        ("", None),
        ("12:00", None),
        (None, None),
    ],
)
def test_seconds_since_1970_are_read_as_decimals(text, us):
    assert [us] == read([text], form="epoch_s")


def test_numbers_since_1970_are_read_in_every_type():
    assert [-1000, None] == read([-1, None], form="epoch_ms", dtype=pl.Int64)
    assert [2**31 * 1000] == read([2**31], form="epoch_ms", dtype=pl.UInt32)
    assert [None, None] == read([2**63 - 1, -(2**63)], form="epoch_s", dtype=pl.Int64)
    assert [None] == read([2**64 - 1], form="epoch_s", dtype=pl.UInt64)
    floats = [1356998400.1, -0.25, float("nan"), float("inf"), 1e300, None]
    expected = [1356998400_100_000, -250_000, None, None, None, None]
    assert expected == read(floats, form="epoch_s", dtype=pl.Float64)


@given(st.datetimes(), st.integers(-1439, 1439), st.sampled_from(["T", " "]))
def test_every_stamp_that_python_writes_is_read_as_python_reads_it(stamp, minutes, blank):
    sign, size = "-" if minutes < 0 else "+", abs(minutes)
    text = f"{stamp.isoformat(sep=blank)}{sign}{size // 60:02}:{size % 60:02}"
    local = stamp.replace(tzinfo=UTC)
    expected = (local - EPOCH) // timedelta(microseconds=1) - minutes * 60_000_000
    assert [expected] == read([text])


@given(
    st.lists(
        st.text(max_size=30) | st.sampled_from(["2013-01-31T05:06:07Z", "2013-01-31"]), max_size=12
    )
)
def test_each_stamp_is_read_as_if_it_stood_alone(texts):
    alone = [read([text], timezone="UTC")[0] for text in texts]
    assert alone == read(texts, timezone="UTC")
    assert alone * 9 == read(texts * 9, timezone="UTC")


def test_steps_are_half_open_and_others_lie_outside():
    clock = Clock(1000, 10, None)
    us = np.array([999, 1000, 1009, 1010, 1039, 1040, -(1 << 63), (1 << 63) - 1, 1010])
    known = np.ones(9, bool)
    known[8] = False
    step, inside = steps(us, known, clock, 0, 4)
    assert [0, 0, 1, 3] == step[inside].tolist()
    far = np.array([(1 << 60) + 1])
    assert [(1 << 60) + 1] == steps(far, far > 0, Clock(0, 1, None), 0, 1 << 61)[0].tolist()
    step, inside = steps(us, known, clock, 1, 3)
    assert [1] == step[inside].tolist()
