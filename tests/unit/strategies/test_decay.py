"""Decays: their weights, what they refuse, and when two of them are the same."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from tidegauge.errors import InvalidParameter
from tidegauge.strategies.decay import (
    Custom,
    Decay,
    Exponential,
    FiniteDecay,
    PoleDecay,
    Polynomial,
    Running,
    Step,
    Window,
)

EVERY = [
    Step(),
    Running(),
    Window(1),
    Window(7),
    Exponential(half_life=3),
    Exponential(factor=0.9),
    Polynomial(0.5),
    Polynomial(2, reach=100),
    Custom([0.0, 2.0, -1.0]),
]


@pytest.mark.parametrize("decay", EVERY, ids=lambda decay: decay.name)
def test_weights_follow_from_the_canonical_form(decay):
    k = np.arange(40)
    if isinstance(decay, PoleDecay):
        gaps, phi = decay.poles
        expected = (phi * (1 - gaps) ** k[:, None]).sum(axis=1)
    elif isinstance(decay, FiniteDecay):
        expected = np.r_[decay.taps, np.zeros(40)][:40]
    else:
        expected = np.where(k < decay.steps, 1.0, 0.0)
    np.testing.assert_allclose(decay.weights(40), expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize("decay", EVERY, ids=lambda decay: decay.name)
def test_weights_have_the_asked_length_and_type(decay):
    for n in (0, 1, 2, 5):
        assert decay.weights(n).shape == (n,)
        assert decay.weights(n).dtype == np.float64


def test_every_decay_is_a_decay_and_has_a_name_of_its_own():
    assert all(isinstance(decay, Decay) for decay in EVERY)
    names = [decay.name for decay in EVERY]
    assert names == [
        "step",
        "running",
        "window_1",
        "window_7",
        "half_life_3",
        "factor_0.9",
        "polynomial_0.5",
        "polynomial_2",
        "custom_3",
    ]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Step(), Step()),
        (Window(24), Window(np.int64(24))),
        (Exponential(half_life=24), Exponential(half_life=24.0)),
        (Exponential(half_life=1), Exponential(factor=0.5)),
        (Exponential(factor=0.9), Exponential(factor=Fraction(9, 10))),
        (Exponential(factor=0.9), Exponential(factor=Decimal("0.9"))),
        (Exponential(factor=0.5), Exponential(factor=np.float64(0.5))),
        (Polynomial(1), Polynomial(1.0, 1 << 20)),
        (Custom([1, 2]), Custom(np.array([1.0, 2.0]))),
    ],
)
def test_the_same_decay_stated_twice_is_noticed(one, other):
    assert one == other
    assert len({one, other}) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Step(), Running()),
        (Window(24), Window(25)),
        (Exponential(half_life=24), Exponential(half_life=25)),
        (Polynomial(1), Polynomial(1, reach=100)),
        (Custom([1, 2]), Custom([2, 1])),
    ],
)
def test_different_decays_are_different(one, other):
    assert one != other


def test_a_gap_keeps_full_precision_near_zero():
    assert Exponential(factor=1 - 1e-12).gap == 1e-12
    assert Exponential(half_life=1e9).gap == pytest.approx(math.log(2) / 1e9, rel=1e-9)
    assert Exponential(half_life=0.05).gap == pytest.approx(1 - 2.0**-20, rel=1e-15)


def test_a_half_life_halves():
    weights = Exponential(half_life=24).weights(49)
    np.testing.assert_allclose(weights[[0, 24, 48]], [1, 0.5, 0.25], rtol=1e-12)


@pytest.mark.parametrize(
    ("make", "remedy"),
    [
        (lambda: Window(0), r"Use Running\(\)"),
        (lambda: Window(2.0), "whole number of steps"),
        (lambda: Window(True), "whole number of steps"),
        (lambda: Window((1 << 40) + 1), r"\[1, 1099511627776\]"),
        (lambda: Exponential(), "Give one"),
        (lambda: Exponential(half_life=1, factor=0.5), "Give one"),
        (lambda: Exponential(half_life=0), r"Use Step\(\)"),
        (lambda: Exponential(half_life=-1), "positive number of steps"),
        (lambda: Exponential(half_life=1e-9), r"Use Step\(\)"),
        (lambda: Exponential(half_life=Fraction(1, 10**400)), r"Use Step\(\)"),
        (lambda: Exponential(half_life=1e13), r"Use Running\(\)"),
        (lambda: Exponential(half_life=math.inf), "finite"),
        (lambda: Exponential(half_life=math.nan), "finite"),
        (lambda: Exponential(half_life="24"), "to be a number"),
        (lambda: Exponential(factor=0), r"Use Step\(\)"),
        (lambda: Exponential(factor=1), r"Use .*Running\(\)"),
        (lambda: Exponential(factor=1e-30), r"Use Step\(\)"),
        (lambda: Exponential(factor=1 - 1e-13), r"Use Running\(\)"),
        (lambda: Exponential(factor=math.nan), "finite"),
        (lambda: Polynomial(0), r"Use Running\(\)"),
        (lambda: Polynomial(0.001), r"Use Running\(\)"),
        (lambda: Polynomial(50), r"Step\(\)"),
        (lambda: Polynomial(math.nan), "finite"),
        (lambda: Polynomial(1, reach=0), "Give the horizon"),
        (lambda: Polynomial(1, reach=1.5), "Give the horizon"),
        (lambda: Custom([]), "1 to 65536 values"),
        (lambda: Custom([1.0] * 65537), "Use Window"),
        (lambda: Custom(3.0), "Give a list"),
        (lambda: Custom([1.0, math.nan]), r"values\[1\] to be finite"),
        (lambda: Custom([math.inf]), r"values\[0\] to be finite"),
        (lambda: Custom(["1"]), r"values\[0\] to be a number"),
        (lambda: Custom([0.0, 0.0]), "Scale the values"),
        (lambda: Custom([1e200]), "Scale the values"),
        (lambda: Step().weights(-1), "n in"),
    ],
)
def test_a_decay_that_cannot_be_is_refused_with_the_remedy(make, remedy):
    with pytest.raises(InvalidParameter, match=remedy):
        make()


@pytest.mark.parametrize("c", [0.01, 0.1, 0.5, 1, 1.5, 2, 4, 16])
@pytest.mark.parametrize("reach", [1, 2, 10, 1000, 1 << 20])
def test_a_polynomial_is_within_half_a_percent_up_to_its_reach(c, reach):
    decay = Polynomial(c, reach=reach)
    power_law = (np.arange(reach + 1) + 1.0) ** -c
    off = np.abs(decay.weights(reach + 1) - power_law)
    visible = power_law >= 2.0**-53
    assert (off <= 0.005 * power_law)[visible].all()
    stated = 1.05 * decay.error * power_law + 1e-15  # sampled; and the sum's own rounding
    assert (off <= stated)[visible].all()


def test_a_polynomial_takes_few_terms():
    assert len(Polynomial(1).poles[0]) == 14
    assert len(Polynomial(1, reach=1 << 40).poles[0]) < 40


def test_the_terms_of_a_polynomial_cannot_be_changed_from_outside():
    decay = Polynomial(1)
    with pytest.raises(ValueError, match="read-only"):
        decay.poles[1][:] = 0
    assert decay.weights(1)[0] == pytest.approx(1, rel=0.005)
