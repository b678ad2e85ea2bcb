"""Durations and numbers of a config are exact."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegauge.errors import InvalidParameter
from tidegauge.planning.document import Scalar
from tidegauge.planning.durations import UNITS, microseconds, steps_in, written
from tidegauge.planning.fields import amount


@given(st.integers(1, 10**4), st.sampled_from(sorted(UNITS)), st.integers(1, 100))
def test_whole_durations_are_exact_numbers_of_steps(count, unit, step):
    assert steps_in(f"{count * step}{unit}", step * UNITS[unit]) == count


@given(st.integers(1, 1 << 61))
def test_a_length_is_written_so_that_it_is_read_again(length):
    assert microseconds(written(length)) == length


@given(st.integers(2, 10**6), st.integers(1, 10**9))
def test_parts_of_steps_are_refused(step, length):
    text = f"{length}us"
    if length % step:
        with pytest.raises(InvalidParameter, match="whole number of steps"):
            steps_in(text, step)
    else:
        assert steps_in(text, step) == length // step


@pytest.mark.parametrize(
    "text",
    ["", "h", "1", "1.5h", "-1h", "1 h", "1h ", "1D", "1y", "1mo", "\u0661h", "15m30d", "1h1h"],
)
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(InvalidParameter, match="Expected a duration"):
        microseconds(text)


@given(st.decimals(allow_nan=False, allow_infinity=False, places=9, min_value=0, max_value=10**9))
def test_numbers_are_the_decimals_that_were_written(number):
    assert amount(Scalar(f"{number:f}", False)) == Fraction(number)


def test_the_exponent_needs_no_dot():
    assert amount(Scalar("1e-9", False)) == Fraction(1, 10**9)
