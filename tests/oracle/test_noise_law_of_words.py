"""The construction itself, exhaustively: miniature words, exact masses, and two broken twins.

Every value of every word of a miniature sampler is enumerated. What is certainly accepted for a
value, and what its unknown bits may add, must bracket the exact law of round(N(0, s^2)).
Then the law is held against the privacy curve that it is sold with.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtr

from tidegauge.noise import thresholds
from tidegauge.noise.intervals import floors


def rounded_pmf(values, scale):
    """P(round N = j) without cancellation in the tails."""
    j = np.abs(values)
    return ndtr((0.5 - j) / scale) - ndtr((-0.5 - j) / scale)


def miniature(base, shift, *, x_bits=20, y_bits=13, w_bits=22, reject_zero=False, sign_bit=None):
    """Enumerate all words: certain mass of each value, undecided mass, as shares of all words.

    ``reject_zero`` and ``sign_bit`` (the sign is that bit of y, from the top) are the broken twins.
    """
    table = floors(thresholds.half_gaussian(base), x_bits)
    y = np.arange(1 << y_bits)
    low, high = y / 2**y_bits, (y + 1) / 2**y_bits
    drop = y_bits - shift  # negative shifts drop bits of x as well
    certain: dict[int, float] = {}
    undecided = 0.0
    previous = -1
    for x, entry in enumerate(table):
        share_x = max(0, entry - previous - 1) / 2**x_bits  # words that surely mean x
        undecided += 1 / 2**x_bits if entry != previous else 0
        previous = entry
        inverse = 1 / (2 * float(base) ** 2)
        surely = np.floor(np.exp(-high * (high + 2 * x) * inverse) * 2**w_bits - 1e-6)
        maybe = np.ceil(np.exp(-low * (low + 2 * x) * inverse) * 2**w_bits + 1e-6)
        share = share_x / 2**y_bits / 2**w_bits
        undecided += share * (maybe - surely).sum()
        for sign in (1, -1):
            if sign_bit is None:
                chance = np.full(len(y), 0.5)
            else:
                chance = ((y >> (y_bits - sign_bit) & 1) == (sign < 0)).astype(float)
            magnitude = ((x << y_bits) + y + (1 << (drop - 1))) >> drop
            least = magnitude[0]
            masses = np.bincount(magnitude - least, share * surely * chance)
            for m, mass in enumerate(masses):
                value = sign * int(least + m)
                if not (reject_zero and sign < 0 and value == 0):
                    certain[value] = certain.get(value, 0.0) + mass
    return certain, undecided


def outside(scale, certain, undecided):
    """The values whose exact probability is not between what their words leave possible."""
    total = sum(certain.values())
    values = np.array(list(certain))
    mass = np.array(list(certain.values()))
    exact = rounded_pmf(values, float(scale))
    wrong = (exact < mass / (total + undecided) - 1e-12) | (exact > (mass + undecided) / total)
    return sorted(values[wrong].tolist())


SHAPES = [
    *((Fraction(2), shift) for shift in (0, 3)),
    *((Fraction(13, 10), shift) for shift in (-1, 2)),
    *((Fraction(79, 10), shift) for shift in (-3, -5, 4)),
]


@pytest.mark.parametrize(("base", "shift"), SHAPES)
@pytest.mark.parametrize("y_bits", [6, 10, 13])
def test_all_words_together_bracket_the_exact_law(base, shift, y_bits):
    certain, undecided = miniature(base, shift, y_bits=y_bits)
    assert outside(base * Fraction(2) ** shift, certain, undecided) == []
    assert undecided < 2.0 ** (1 - y_bits)


@pytest.mark.parametrize(("base", "shift"), SHAPES)
def test_rejecting_minus_zero_breaks_the_law_of_zero(base, shift):
    certain, undecided = miniature(base, shift, reject_zero=True)
    assert 0 in outside(base * Fraction(2) ** shift, certain, undecided)


@pytest.mark.parametrize(("base", "shift"), [(Fraction(2), 1), (Fraction(13, 10), 2)])
def test_sign_from_a_bit_of_y_breaks_the_law(base, shift):
    certain, undecided = miniature(base, shift, y_bits=15, sign_bit=6)
    assert len(outside(base * Fraction(2) ** shift, certain, undecided)) > 4


# ------------------------------------------------------------------ against the privacy curve


def gaussian_delta(mu, epsilon):
    return ndtr(-epsilon / mu + mu / 2) - math.exp(epsilon) * ndtr(-epsilon / mu - mu / 2)


def largest_excess(pmf, scale, shifts):
    """The largest delta(epsilon) above the curve of mu = |shift| / scale, over both directions."""
    reach = int(12 * scale) + 8
    grid = np.arange(-reach, reach + 1)
    noise = pmf(grid)
    worst = -np.inf
    for shift in shifts:
        p, q = np.ones(1), np.ones(1)
        for one in shift:
            p = np.multiply.outer(p, noise)
            q = np.multiply.outer(q, pmf(grid - one))
        mu = math.hypot(*shift) / scale
        for epsilon in (0, 0.1, 0.5, 1, 2, 4):
            for a, b in ((p, q), (q, p)):
                delta = np.maximum(a - math.exp(epsilon) * b, 0).sum()
                worst = max(worst, delta - gaussian_delta(mu, epsilon))
    return worst


SHIFTS = [(1,), (2,), (3,), (1, 0), (1, 1), (2, 1), (1, -1)]


@pytest.mark.parametrize("scale", [0.25, 0.4, 0.7, 1.0, 1.3, 3.0])
def test_rounded_gaussian_is_never_above_its_gaussian_dp_curve(scale):
    excess = largest_excess(lambda j: rounded_pmf(j, scale), scale, SHIFTS)
    assert excess < 1e-13


@pytest.mark.parametrize("scale", [0.7, 1.0, 3.0])
def test_law_with_minus_zero_rejected_is_above_the_curve(scale):
    def broken(j):
        pmf = np.where(j == 0, 0.5, 1.0) * rounded_pmf(j, scale)
        return pmf / (1 - rounded_pmf(np.zeros(1), scale)[0] / 2)

    assert largest_excess(broken, scale, SHIFTS) > 1e-3


@pytest.mark.parametrize("scale", [0.4, 1.0, 3.0])
def test_smaller_scale_than_claimed_is_above_the_curve(scale):
    excess = largest_excess(lambda j: rounded_pmf(j, scale / 1.05), scale, [(1,)])
    assert excess > 1e-3


@pytest.mark.parametrize("t", [Fraction(1, 3), Fraction(1), Fraction(10), Fraction(777, 10)])
@pytest.mark.parametrize("shift", [1, 2, 7])
def test_discrete_laplace_loses_exactly_shift_over_scale(t, shift):
    k = np.arange(-300, 301)

    def log_pmf(j):
        return -np.abs(j) / float(t)

    loss = np.abs(log_pmf(k) - log_pmf(k - shift)).max()
    assert math.isclose(shift / float(t), loss, rel_tol=1e-12)


def laplace_parts(t, digits, base=256):
    """The law of the construction: sign, independent digits, top; exact in floats."""
    q = math.exp(-1 / t)
    law = np.ones(1)
    for d in range(digits):
        r = q ** (base**d)
        digit = (1 - r) * r ** np.arange(base) / (1 - r**base)
        law = np.multiply.outer(digit, law).reshape(-1)
    r = q ** (base**digits)
    top = (1 - r) * r ** np.arange(40)
    return q / (1 + q), np.multiply.outer(top, law).reshape(-1)


@pytest.mark.parametrize(("t", "digits"), [(0.5, 0), (3.0, 0), (40.0, 1), (900.0, 1)])
def test_sign_and_digits_compose_to_the_discrete_laplace_law(t, digits):
    negative, geometric = laplace_parts(t, digits)
    q = math.exp(-1 / t)
    g = np.arange(len(geometric))
    exact = (1 - q) / (1 + q) * q**g
    np.testing.assert_allclose((1 - negative) * geometric, exact, rtol=1e-9, atol=1e-300)
    np.testing.assert_allclose(negative * geometric[:-1], exact[1:], rtol=1e-9, atol=1e-300)
