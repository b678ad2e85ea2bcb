"""The threshold for names: what it pays for, to the last digit, and against a paper's tree."""

import math
from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import tidegauge as tg
from tidegauge.errors import UnsupportedCombination
from tidegauge.mechanisms import name_threshold as module
from tidegauge.mechanisms.design import design
from tidegauge.mechanisms.discovery import Discover
from tidegauge.mechanisms.name_threshold import false_releases, least_threshold, window_of
from tidegauge.mechanisms.request import request_of
from tidegauge.noise.gaussian import RoundedGaussian
from tidegauge.privacy.conversion import mu_from_epsilon_delta
from tidegauge.privacy.unit import Contributions, Event, NeighboringRelation, Neighbors
from tidegauge.strategies.identity import Identity
from tidegauge.strategies.named import NAMED, ByName

ADD, REPLACE = NeighboringRelation.ADD_OR_REMOVE_ONE, NeighboringRelation.REPLACE_ONE
ONE = Neighbors(Event(), ADD, 0, 1, 1, None)
WINDOW = tg.Window(10)
WIDE = RoundedGaussian(Fraction(1 << 30))  # one grain, on the lattice of 2^-30


def plan(views, discover=None, **changes):
    asked = {"unit": "event", "epsilon": 1, "delta": 1e-6, "end": 300}
    return design(request_of(views=views, discover=Discover(discover), **(asked | changes)))


def known(views, **changes):
    """A plan whose cells are known: of its strategy any threshold can be asked."""
    asked = {"unit": "event", "guarantee": tg.GaussianDP(0.2), "end": 300, "cells": 4}
    return design(request_of(views=views, **(asked | changes)))


def parts(found, decay):
    return decay, found.strategy, found.law, found.neighbors, found.end


@pytest.mark.parametrize("decay", [tg.Running(), tg.Window(24), tg.Step()])
@pytest.mark.parametrize("delta", [1e-1, 1e-6, 1e-30])
def test_a_threshold_pays_for_its_delta_and_is_the_least_that_does(decay, delta):
    found = plan([tg.Running()])
    delta = Fraction(delta)
    least = least_threshold(*parts(found, decay), delta)
    assert delta * Fraction(99, 100) < false_releases(least, *parts(found, decay)) <= delta
    lower = least - Fraction(1, 1000)
    assert false_releases(lower, *parts(found, decay)) > delta


@pytest.mark.parametrize("end", [1, 5, 400, 1500])
def test_the_chance_is_the_sum_over_all_steps_and_groups_of_steps_only_add_to_it(end):
    steps = np.arange(1, end + 1)
    least = least_threshold(tg.Running(), Identity(30), WIDE, ONE, end, Fraction(1, 10**9))
    mpmath.mp.dps = 40
    total = mpmath.fsum(mpmath.ncdf(-(float(least) - 1) / mpmath.sqrt(int(t))) for t in steps)
    assert (0.999e-9 if end <= 1024 else 0.9e-9) < total <= 1e-9


def test_one_step_is_the_plain_quantile():
    least = least_threshold(tg.Step(), Identity(30), WIDE, ONE, None, Fraction(1, 10**6))
    assert abs(float(least) - 1 - 4.753424) < 1e-5


def test_what_one_unit_adds_and_how_often_it_can_try_is_charged():
    def q(neighbors, decay=WINDOW, end=None):
        """The threshold, and how many pairs of a cell and a step it pays for."""
        least = least_threshold(decay, Identity(30), WIDE, neighbors, end, Fraction(1, 10**6))
        largest = module._largest_value(decay, neighbors)
        sigma = math.sqrt(WINDOW.steps)
        tail = math.erfc((float(least) - largest) / sigma / math.sqrt(2)) / 2
        return largest, round(1e-6 / tail)

    assert (1, 10) == q(ONE)
    assert (30, 10) == q(replace(ONE, high=30))
    assert (30, 10) == q(replace(ONE, low=-30))
    assert (1, 30) == q(replace(ONE, max_cells=3))
    assert (1, 60) == q(replace(ONE, max_cells=3, relation=REPLACE))
    assert (5, 150) == q(replace(ONE, max_cells=3, unit=Contributions(5)))
    assert (2, 150) == q(replace(ONE, max_cells=3, unit=Contributions(5, 6)))
    assert (1, 50) == q(replace(ONE, unit=Contributions(5, 10)))
    assert (5, 50) == q(replace(ONE, unit=Contributions(5, 1)))
    running = [
        float(least_threshold(tg.Running(), Identity(30), WIDE, n, 9, Fraction(1, 10**6)))
        for n in (ONE, replace(ONE, unit=Contributions(5, 3)))
    ]
    assert running[1] > running[0] + 4  # of a running sum no event ever leaves


def test_a_window_is_paid_for_ever_by_as_many_steps_as_it_has():
    found = plan([tg.Window(24)], end=None)
    decay, strategy, law, neighbors, _ = parts(found, tg.Window(24))
    ever = least_threshold(decay, strategy, law, neighbors, None, Fraction(1, 10**6))
    year = least_threshold(decay, strategy, law, neighbors, 8760, Fraction(1, 10**6))
    assert year <= ever < year * Fraction(101, 100)


DECODED = {
    "running": (plan([tg.Running()]), tg.Running()),
    "window": (plan([tg.Running()]), tg.Window(24)),
    "window behind a comb": (known([tg.Window(24)], end=None), tg.Window(24)),
    "each step": (known([tg.Step()]), tg.Running()),
}


@pytest.mark.parametrize("name", DECODED)
def test_roundings_of_noise_and_doubles_are_paid(name):
    """An item without events: what doubles make of rounded noise, and long doubles of it all."""
    found, decay = DECODED[name]
    strategy, law, neighbors = found.strategy, found.law, replace(found.neighbors, cells=None)
    paid = module._roundings(decay, strategy, law, neighbors, 300)
    std = found.noise_std(decay, [300])[0]
    assert paid < 1e-3 * std
    real = np.random.default_rng(7).normal(0, float(law.scale), (300, 40))
    rounded = np.rint(real).astype(np.int64)
    out = np.empty((1, 300, 40))
    strategy.decode(strategy.init_decoder([decay], 40), [decay], rounded, 0, out)
    exact = strategy.decoder_matrix(decay, 300).astype(np.longdouble) @ real.astype(np.longdouble)
    unit = np.longdouble(2.0) ** -strategy.lattice_bits
    assert np.abs(out[0] - exact * unit).max() < paid


def test_lattice_roundings_alone_would_be_seen():
    """On a lattice of whole grains they are large, and still within what is paid."""
    neighbors, law = ONE, RoundedGaussian(Fraction(100))
    paid = module._roundings(tg.Running(), Identity(0), law, neighbors, 50)
    assert 25 <= paid < 25.001


REFUSED = {
    "events that fade": (tg.Exponential(half_life=3), known([tg.Running()]), 300),
    "a running sum for ever": (tg.Running(), known([tg.Running()]), None),
    "a running sum behind a comb": (tg.Running(), known([tg.Window(24)], end=None), 300),
    "multipliers": (tg.Running(), known([tg.Running()], end=40), 40),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_proved_is_refused(name):
    decay, found, end = REFUSED[name]
    with pytest.raises(UnsupportedCombination):
        least_threshold(decay, found.strategy, found.law, ONE, end, Fraction(1, 10**6))


def test_a_delta_below_what_doubles_tell_is_refused():
    with pytest.raises(UnsupportedCombination, match="1e-100"):
        least_threshold(tg.Step(), Identity(30), WIDE, ONE, 1, Fraction(1, 10**120))


def test_windows_of_views():
    assert [None, 24, 1] == [window_of(d) for d in (tg.Running(), tg.Window(24), tg.Step())]


def tree_threshold(base, steps, share, epsilon=1, delta=Fraction(1, 10**6)):
    """UnkBase's constant threshold, by the union over the digit sums of all steps."""
    levels, rest = 0, steps
    while rest:
        levels, rest = levels + 1, rest // base
    tau = math.sqrt(levels) / float(mu_from_epsilon_delta(epsilon, delta * (1 - share)))
    sums = np.zeros(levels * base, np.int64)
    numbers = np.arange(1, steps + 1)
    digits = np.zeros(steps, np.int64)
    for _ in range(levels):
        digits, numbers = digits + numbers % base, numbers // base
    np.add.at(sums, digits, 1)
    low, high = 0.0, 1e4
    while high - low > 1e-6:
        middle = (low + high) / 2
        chance = sum(
            n * math.erfc(middle / (tau * math.sqrt(2 * s))) / 2
            for s, n in enumerate(sums.tolist())
            if n
        )
        low, high = (middle, high) if chance > float(delta * share) else (low, middle)
    return 1 + high


def test_a_name_needs_a_2_5_times_smaller_count_than_under_a_binary_tree():
    """Both at the share of delta that is best for the tree, by exact Gaussian DP."""
    shares = [Fraction(n, 20) for n in range(1, 20)]
    tree, share = min((tree_threshold(2, 8760, share), share) for share in shares)
    found = design(
        request_of(
            views=[tg.Running()], unit="event", epsilon=1, delta=1e-6, end=8760,
            discover=Discover(delta_share=share),
        )
    )  # fmt: skip
    assert 315 < tree < 319
    assert tree / found.discovery.threshold > 2.85
    # the best base of a tree takes less, and still much more
    best = min(tree_threshold(base, 8760, share) for base in range(2, 17))
    assert best / found.discovery.threshold > 2.3


def test_no_name_of_a_strategy_serves_items():
    for name in NAMED:
        request = request_of(
            views=[tg.Running()], unit="event", epsilon=1, delta=1e-6, end=30, discover=Discover(),
            strategy=ByName(name),
        )  # fmt: skip
        with pytest.raises(UnsupportedCombination, match="not items to be discovered"):
            design(request)


@pytest.mark.parametrize("end", [50, 400])
def test_rows_of_b_are_what_the_roundings_are_weighed_by(end):
    """Of a filter: running sums in [0, 1], 1/C at most 2 in all, windows at most 2 W."""
    strategy = plan([tg.Running()], end=end).strategy
    running, each, window = (
        strategy.decoder_matrix(decay, end) for decay in (tg.Running(), tg.Step(), tg.Window(24))
    )
    assert running.min() > -1e-9
    assert running.max() < 1 + 1e-9
    assert np.abs(each).sum(axis=1).max() < 2
    assert np.abs(window).sum(axis=1).max() <= 2 * 24
    comb = known([tg.Window(24)], end=None).strategy
    inverse = 2 / (1 - float(comb.beta)) / comb.beta.denominator
    assert np.abs(comb.decoder_matrix(tg.Step(), end)).sum(axis=1).max() < inverse
    assert np.abs(comb.decoder_matrix(tg.Window(24), end)).sum(axis=1).max() < 24 * inverse
