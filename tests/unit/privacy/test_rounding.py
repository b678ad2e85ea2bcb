"""Square roots end on the side they are told to, and by a hair."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegauge.privacy.rounding import sqrt_down, sqrt_up

CLOSE = Fraction(1, 1 << 64)
VALUES = st.fractions(0, 10**30)


@given(VALUES)
def test_the_square_root_is_rounded_up_by_a_hair(value):
    assert value <= sqrt_up(value) ** 2 <= value * (1 + CLOSE)


@given(VALUES)
def test_the_square_root_is_rounded_down_by_a_hair(value):
    assert value * (1 - CLOSE) <= sqrt_down(value) ** 2 <= value


@given(st.integers(0, 1 << 200))
def test_the_square_root_of_a_square_is_exact(root):
    assert root == sqrt_up(Fraction(root * root)) == sqrt_down(Fraction(root * root))


def test_the_square_root_of_a_tiny_number_keeps_its_precision():
    root = sqrt_up(Fraction(2, 10**60))
    assert float(root) == pytest.approx(math.sqrt(2) * 1e-30, rel=1e-15)
