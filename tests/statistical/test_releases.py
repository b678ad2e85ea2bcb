"""Released noise against what the plan predicts: standard deviation and coverage, with power."""

import numpy as np
import pytest

import tidegauge as tg
from tidegauge.noise.laplace import DiscreteLaplace
from tidegauge.strategies.blocks import Blocks, OpenBlocks
from tidegauge.strategies.blt import Blt, Comb, NormalisedBlt
from tidegauge.strategies.decayed import DecayedTree
from tidegauge.strategies.dense import DenseToeplitz
from tidegauge.strategies.distinct import Anchored, Shaped
from tidegauge.strategies.identity import Identity
from tidegauge.strategies.responses import Responses
from tidegauge.strategies.stepped import PolynomialSum
from tidegauge.strategies.strategy import RowPerStep, Strategy
from tidegauge.testing import seeded_gauge

pytestmark = pytest.mark.statistical

CELLS = 40_000
VIEWS = {
    "step": tg.Step(),
    "running": tg.Running(),
    "window": tg.Window(9),
    "recent": tg.Exponential(half_life=4),
    "slow": tg.Polynomial(1.0),
    "custom": tg.Custom((1.0, -0.5, 0.25)),
}
SHORT = {"step": tg.Step(), "window": tg.Window(3), "custom": tg.Custom((1.0, -0.5, 0.25))}
CHANGES = {
    "week on week": tg.Difference(tg.Window(7), 7),
    "step on step": tg.Difference(tg.Step(), 2),
    "trend": tg.Difference(tg.Exponential(half_life=4), 3),
    "level": tg.Exponential(half_life=4, average=True),
}
LONG_CHANGES = {"window": tg.Window(100), "change": tg.Difference(tg.Window(100), 60)}
LONG = {"running": tg.Running(), "window": tg.Window(100)}
SETTINGS = {
    # the strategy that has to be planned, the views, what is asked
    "gaussian, all views": (Blt, VIEWS, {"guarantee": tg.ZCDP(0.5)}),
    "gaussian, epsilon and delta": (
        Comb,
        LONG,
        {"epsilon": 1.0, "delta": 1e-6, "horizon": 5000},
    ),
    "gaussian, roundings paid up to an end": (
        Blt,
        VIEWS,
        {"guarantee": tg.GaussianDP(1), "max_per_step": 1 << 30, "end": 1000},
    ),
    "gaussian, one window": (Comb, {"window": tg.Window(7)}, {"guarantee": tg.ZCDP(0.5)}),
    "gaussian, windows of an id": (
        Comb,
        {"running": tg.Running(), "short": tg.Window(7), "long": tg.Window(20)},
        {"guarantee": tg.ZCDP(0.5), "unit": tg.Contributions(5), "horizon": 200},
    ),
    "gaussian, steps alone": (Identity, {"step": tg.Step()}, {"guarantee": tg.GaussianDP(1)}),
    "gaussian, replace": (
        Blt,
        VIEWS,
        {"guarantee": tg.ZCDP(0.5), "neighboring_relation": "replace_one"},
    ),
    "gaussian, an id": (Blt, VIEWS, {"guarantee": tg.ZCDP(0.5), "unit": tg.Contributions(5, 2)}),
    "gaussian, running up to an end": (
        NormalisedBlt,
        {"running": tg.Running()},
        {"guarantee": tg.GaussianDP(1), "end": 24},
    ),
    "gaussian, one view up to an end": (
        DenseToeplitz,
        {"custom": tg.Custom((1.0, -0.5, 0.25, 3.0))},
        {"guarantee": tg.GaussianDP(1), "end": 24},
    ),
    "pure, short views": (Identity, SHORT, {"epsilon": 1.0}),
    "pure, all views": (Identity, VIEWS, {"epsilon": 1.0}),
    "pure, a long window": (
        OpenBlocks,
        {"window": tg.Window(100)},
        {"epsilon": 1.0, "horizon": 400},
    ),
    "gaussian, changes": (Blt, CHANGES, {"guarantee": tg.ZCDP(0.5)}),
    "pure, changes": (Identity, CHANGES, {"epsilon": 1.0}),
    "pure, changes of blocks": (OpenBlocks, LONG_CHANGES, {"epsilon": 1.0, "horizon": 400}),
    "pure, running": (OpenBlocks, {"running": tg.Running()}, {"epsilon": 1.0, "horizon": 1000}),
    "pure, completed blocks": (
        Blocks,
        {"running": tg.Running()},
        {"epsilon": 0.5, "horizon": 50, "max_change": 1 << 30},
    ),
}


def test_every_strategy_is_measured():
    finals = {Blt, Comb, NormalisedBlt, DenseToeplitz, Identity, Blocks, OpenBlocks}
    known = {
        kind
        for base in (Strategy, RowPerStep)
        for kind in base.__subclasses__()
        if kind.__module__.startswith("tidegauge.")
    } - {RowPerStep}
    assert finals == known - {
        Anchored,
        DecayedTree,
        PolynomialSum,
        Responses,
        Shaped,
    }  # test_bolot.py
    assert finals == {strategy for strategy, _, _ in SETTINGS.values()}


@pytest.mark.parametrize("name", SETTINGS)
def test_measured_noise_agrees_with_the_plan(name):
    strategy, views, options = SETTINGS[name]
    steps = 120 if options.get("horizon", 0) > 100 else 24
    options = {"unit": "event", "horizon": 24, "cells": CELLS} | options
    gauge = seeded_gauge(2026, views=views, **options)
    assert strategy is type(gauge.plan.strategy)
    x = np.random.default_rng(3).integers(0, 1000, (steps, CELLS))
    releases = gauge.update_many(x)
    for view, decay in views.items():
        for step in (1, 2, 3, 10, steps - 3, steps):
            truth = decay.weights(step) @ x[:step][::-1]
            release = releases[view]
            error = release.value[step - 1] - truth
            std = release.noise_std[step - 1, 0]
            assert std == gauge.noise_std(view, step)
            assert abs(error.mean()) < 5 * std / np.sqrt(CELLS), (view, step)
            assert abs(error.std() / std - 1) < 0.02, (view, step, error.std() / std)
            covered = np.mean(
                (release.lower[step - 1] <= truth) & (truth <= release.upper[step - 1])
            )
            coarse = isinstance(gauge.plan.law, DiscreteLaplace) and std < 100
            assert 0.945 <= covered <= (0.98 if coarse else 0.955), (view, step, covered)


def test_a_plan_that_promises_less_noise_is_caught():
    _, views, options = SETTINGS["gaussian, all views"]
    gauge = seeded_gauge(7, views=views, unit="event", horizon=24, cells=CELLS, **options)
    x = np.zeros((24, CELLS), np.int64)
    release = gauge.update_many(x)["running"]
    claimed = release.noise_std[-1, 0] / 1.05
    assert abs(release.value[-1].std() / claimed - 1) > 0.02


def test_noise_of_two_cells_is_uncorrelated():
    gauge = seeded_gauge(
        11, views=VIEWS, unit="event", horizon=24, cells=CELLS, epsilon=1, delta=1e-6
    )
    value = gauge.update_many(np.zeros((24, CELLS), np.int64))["running"].value[-1]
    even, odd = value[::2], value[1::2]
    assert abs(np.corrcoef(even, odd)[0, 1]) < 5 / np.sqrt(CELLS / 2)
