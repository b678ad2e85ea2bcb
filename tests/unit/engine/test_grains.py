"""Values become whole grains exactly."""

from decimal import Decimal
from fractions import Fraction

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegauge.engine.grains import grains

WIDE = 1 << 40


def read(values, dtype=pl.String, *, grain="1", low=-WIDE, high=WIDE):
    amounts, known = grains(pl.Series(values, dtype=dtype), Fraction(grain), low, high)
    return [int(a) if k else None for a, k in zip(amounts, known, strict=True)]


@pytest.mark.parametrize(
    ("text", "grain", "expected"),
    [
        ("0.1", "1/100", 10),
        ("0.125", "1/100", 12),
        ("0.135", "1/100", 14),
        ("0.1350000000000000000001", "1/100", 14),
        ("0.1250000000000000000001", "1/100", 13),
        ("2.5", "1", 2),
        ("-2.5", "1", -2),
        ("2.50000000000000000001", "1", 3),
        ("1e3", "1", 1000),
        ("+.5E1", "1", 5),
        (" 7 ", "1", 7),
        ("7.", "2", 4),
        ("1e400", "1", WIDE),
        ("-1e400", "1", -WIDE),
        ("1e-400", "1", 0),
        ("9007199254740993", "16384", 549755813888),
        ("0.15", "1/3", 0),
        ("0.5", "1/3", 2),
    ],
)
def test_text_is_read_as_the_decimal_it_writes(text, grain, expected):
    assert [expected] == read([text], grain=grain)


@pytest.mark.parametrize(
    "text",
    ["", "NaN", "inf", "-Infinity", "true", "1,000", "1_000", "0x10", "१", "1 2", None, "9" * 65],
)
def test_what_is_no_finite_number_is_left_out(text):
    assert [3, None, 3] == read(["3", text, "3"])


def test_floats_are_their_shortest_decimal_and_infinities_are_left_out():
    values = [0.1, 0.125, 0.135, float("nan"), float("inf"), None, 1e300, -0.0]
    assert [10, 12, 14, None, None, None, WIDE, 0] == read(values, pl.Float64, grain="1/100")
    assert [16, 10] == read([0.165, 0.1], pl.Float32, grain="1/100")


@pytest.mark.parametrize("dtype", [pl.Int8, pl.UInt8, pl.Int64, pl.UInt64, pl.Int128])
def test_integers_of_every_width_are_clamped_without_wrapping(dtype):
    assert [5, 100, None] == read([5, 127, None], dtype, low=0, high=100)
    assert [0, 1] == read([0, 1], dtype)


@pytest.mark.parametrize(
    "dtype",
    [pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64, pl.Int128],
)
@pytest.mark.parametrize(
    ("low", "high"), [(200, 300), (-10, -1), (-WIDE, 1 - WIDE), (WIDE - 1, WIDE), (0, 0)]
)
def test_bounds_outside_an_integer_type_clamp_every_row_and_stop_none(dtype, low, high):
    least, most = pl.select(least=dtype.min(), most=dtype.max()).row(0)
    values = [least, most, None, 0, 100]
    expected = [None if v is None else min(max(v, low), high) for v in values]
    assert expected == read(values, dtype, low=low, high=high)
    for value, grains_of_it in zip(values, expected, strict=True):
        assert [grains_of_it] == read([value], dtype, low=low, high=high)


def test_large_integers_are_clamped():
    assert [WIDE, WIDE] == read([2**63, 2**64 - 1], pl.UInt64)
    assert [-WIDE, WIDE] == read([-(2**63), 2**63 - 1], pl.Int64)
    assert [-5, 0] == read([-(2**63), 2**63 - 1], pl.Int64, low=-5, high=0)
    assert [4294967296] == read([2**63], pl.UInt64, grain=str(2**31))


def test_decimals_are_exact_and_truth_values_are_no_numbers():
    assert [12] == read([Decimal("0.125")], pl.Decimal(10, 3), grain="1/100")
    assert [None] == read([True], pl.Boolean)
    assert [None] == read([None], pl.Null)


NUMBERS = st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-99, max_value=99)


@given(st.lists(NUMBERS), st.sampled_from(["1", "1/100", "1/3", "5", "7/2"]))
def test_rounding_is_that_of_rational_numbers_in_every_format(values, grain):
    expected = [min(max(round(Fraction(value) / Fraction(grain)), -50), 200) for value in values]
    assert expected == read([str(v) for v in values], grain=grain, low=-50, high=200)
    floats = [float(value) for value in values]
    assert expected == read(floats, pl.Float64, grain=grain, low=-50, high=200)
    exact = pl.Decimal(20, 4)
    assert expected == read(values, exact, grain=grain, low=-50, high=200)


@given(st.lists(st.text(max_size=8) | st.floats().map(repr)))
def test_each_value_is_read_as_if_it_stood_alone(texts):
    alone = [read([text], grain="1/8")[0] for text in texts]
    assert alone == read(texts, grain="1/8")
