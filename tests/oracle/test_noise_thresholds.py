"""Every table entry against an independent computation with mpmath at 60 digits."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from tidegauge.noise import thresholds
from tidegauge.noise.gaussian import RoundedGaussian
from tidegauge.noise.intervals import exp_bracket, floors
from tidegauge.noise.laplace import DiscreteLaplace
from tidegauge.noise.law import guided


def real(x):
    return mpmath.mpf(Fraction(x).numerator) / Fraction(x).denominator


def half_gaussian(scale, count):
    inverse = 1 / (2 * real(scale) ** 2)
    weights = [mpmath.exp(-x * x * inverse) for x in range(int(30 * scale) + 30)]
    total = mpmath.fsum(weights)
    sums, result = mpmath.mpf(0), []
    for weight in weights[:count]:
        sums += weight
        result.append(sums / total)
    return result


@pytest.mark.parametrize("x", [0, Fraction(1, 10**30), Fraction(1, 3), 1, 7, Fraction(5000, 7)])
@pytest.mark.parametrize("bits", [16, 80, 400])
def test_exponential_bracket_is_true_and_narrow(x, bits):
    low, high = exp_bracket(Fraction(x), bits)
    with mpmath.workprec(bits + 2000):
        assert low <= 2**bits * mpmath.exp(-real(x)) <= high
    assert high - low <= 2


def check(brackets, exact, bits):
    """Brackets hold the exact thresholds, are narrow, increase, and end near 1 if cut off."""
    low, high = brackets(bits)
    with mpmath.workdps(150):
        thresholds_ = exact(len(low))
        assert len(thresholds_) == len(low)
        for below, above, threshold in zip(low, high, thresholds_, strict=True):
            assert below <= 2**bits * threshold <= above
    assert max(above - below for below, above in zip(low, high, strict=True)) <= 4
    assert low == sorted(low)
    assert high == sorted(high)
    return low, high


@pytest.mark.parametrize("scale", [Fraction(64), Fraction(12345, 113), Fraction(127999, 1000)])
@pytest.mark.parametrize("bits", [48, 80, 208])
def test_half_gaussian_brackets_hold_the_exact_thresholds(scale, bits):
    _, high = check(
        thresholds.half_gaussian(scale), lambda count: half_gaussian(scale, count), bits
    )
    assert high[-1] >= (1 << bits) - 1


@pytest.mark.parametrize("t", [Fraction(1, 512), Fraction(1, 3), Fraction(10), Fraction(2**50)])
@pytest.mark.parametrize("bits", [32, 64, 192])
def test_sign_brackets_hold_the_exact_threshold(t, bits):
    def exact(count):
        q = mpmath.exp(-1 / real(t))
        return [q / (1 + q)] * count

    assert len(check(thresholds.negative(t), exact, bits)[0]) == 1


@pytest.mark.parametrize("rate", [Fraction(1, 40), Fraction(7, 10**6), Fraction(1, 2**50)])
@pytest.mark.parametrize("bits", [32, 64, 192])
def test_digit_brackets_hold_the_exact_thresholds(rate, bits):
    def exact(count):
        r = mpmath.exp(-real(rate))
        return [(1 - r ** (k + 1)) / (1 - r**256) for k in range(count)]

    assert len(check(thresholds.geometric_digit(rate), exact, bits)[0]) == 255


@pytest.mark.parametrize("rate", [Fraction(512), Fraction(3), Fraction(1, 32)])
@pytest.mark.parametrize("bits", [32, 64, 192])
def test_geometric_brackets_hold_the_exact_thresholds(rate, bits):
    def exact(count):
        return [1 - mpmath.exp(-real(rate) * (k + 1)) for k in range(count)]

    _, high = check(thresholds.geometric(rate), exact, bits)
    assert high[-1] >= (1 << bits) - 1


@pytest.mark.parametrize(
    "scale", [Fraction(1, 4), Fraction(10), Fraction(63), Fraction(64), Fraction(10**6)], ids=str
)
def test_gaussian_table_is_the_floor_of_the_exact_thresholds(scale):
    law = RoundedGaussian(scale)
    table = law._tables[0].tolist()
    with mpmath.workdps(60):
        entries = half_gaussian(law.base, len(table))
        assert [int(mpmath.floor(2**48 * entry)) for entry in entries] == table


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(10), Fraction(10**6)], ids=str)
def test_laplace_tables_are_the_floors_of_the_exact_thresholds(scale):
    law = DiscreteLaplace(scale)
    negative, tables, _ = law._tables
    with mpmath.workdps(60):
        q = mpmath.exp(-1 / real(scale))
        assert int(mpmath.floor(2**32 * q / (1 + q))) == int(negative)
        for d in range(law.digits):
            r = q ** (256**d)
            exact = [(1 - r ** (k + 1)) / (1 - r**256) for k in range(255)]
            assert [int(mpmath.floor(2**32 * f)) for f in exact] == tables[d, :255].tolist()
        r = q ** (256**law.digits)
        top = tables[law.digits].tolist()
        assert [
            min(2**32 - 1, int(mpmath.floor(2**32 * (1 - r ** (k + 1))))) for k in range(len(top))
        ] == top


@pytest.mark.parametrize("scale", [Fraction(5), Fraction(99), Fraction(10**9, 7)], ids=str)
def test_guide_starts_where_the_middle_of_its_cell_ends(scale):
    table, guide = RoundedGaussian(scale)._tables
    entries = table.tolist()
    for lead, start in enumerate(guide.tolist()):
        middle = lead << 37 | 1 << 36
        assert all(entry < middle for entry in entries[:start])
        assert entries[start] >= middle


def test_guided_stops_at_the_first_entry_that_no_word_exceeds():
    table, guide = guided([3, 9, 15, 15], 4, 2)
    assert table.tolist() == [3, 9, 15]
    assert guide.tolist() == [0, 1, 2, 2]


def test_floors_refine_until_each_floor_is_certain():
    exact = Fraction(12345678901, 3 << 32)  # close to a multiple of 2^-32 only after more bits

    def brackets(bits):
        scaled = exact * (1 << bits)
        return [int(scaled) - (1 << 40)], [int(scaled) + (1 << 40)]

    assert [int(exact * (1 << 32))] == floors(brackets, 32)


@pytest.mark.parametrize("law", [RoundedGaussian(Fraction(10**6)), DiscreteLaplace(Fraction(1000))])
def test_off_by_one_table_would_be_noticed(law):
    """The mutant: one entry off by one unit is no floor of its threshold."""
    table = np.asarray(law._tables[0 if isinstance(law, RoundedGaussian) else 1])
    row = table if table.ndim == 1 else table[0]
    k = 100
    bits = 48 if isinstance(law, RoundedGaussian) else 32
    brackets = (
        thresholds.half_gaussian(law.base)
        if isinstance(law, RoundedGaussian)
        else thresholds.geometric_digit(1 / law.scale)
    )
    low, high = (ends[k] for ends in brackets(bits + 32))
    for off in (-1, 1):
        wrong = int(row[k]) + off
        assert not wrong << 32 <= low <= high <= (wrong + 1) << 32
    assert int(row[k]) << 32 <= low <= high <= (int(row[k]) + 1) << 32
