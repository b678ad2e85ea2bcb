"""Released noise against what the plan predicts: standard deviation and coverage, with power."""

import numpy as np
import pytest

import tidegauge as tg
from tidegauge.noise.laplace import DiscreteLaplace
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
SETTINGS = {
    "gaussian, all views": (VIEWS, {"guarantee": tg.ZCDP(0.5)}),
    "gaussian, epsilon and delta": (
        {"running": tg.Running(), "window": tg.Window(100)},
        {"epsilon": 1.0, "delta": 1e-6, "horizon": 5000},
    ),
    "gaussian, steps alone": ({"step": tg.Step()}, {"guarantee": tg.GaussianDP(1)}),
    "gaussian, replace": (
        VIEWS,
        {"guarantee": tg.ZCDP(0.5), "neighboring_relation": "replace_one"},
    ),
    "gaussian, an id": (VIEWS, {"guarantee": tg.ZCDP(0.5), "unit": tg.Contributions(5, 2)}),
    "pure, short views": (SHORT, {"epsilon": 1.0}),
    "pure, all views": (VIEWS, {"epsilon": 1.0}),
    "pure, a long window": ({"window": tg.Window(100)}, {"epsilon": 1.0, "horizon": 400}),
    "pure, running": ({"running": tg.Running()}, {"epsilon": 1.0, "horizon": 1000}),
    "pure, completed blocks": (
        {"running": tg.Running(), "recent": tg.Exponential(half_life=50)},
        {"epsilon": 0.5, "horizon": 2000, "max_change": 1 << 10},
    ),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_measured_noise_agrees_with_the_plan(name):
    views, options = SETTINGS[name]
    steps = 120 if options.get("horizon", 0) > 24 else 24
    options = {"unit": "event", "horizon": 24, "cells": CELLS} | options
    gauge = seeded_gauge(2026, views=views, **options)
    x = np.random.default_rng(3).integers(0, 1000, (steps, CELLS))
    releases = gauge.update_many(x)
    for view, decay in views.items():
        for step in (1, 2, 3, 10, steps - 3, steps):
            truth = decay.weights(step) @ x[step - 1 :: -1]
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
    views, options = SETTINGS["gaussian, all views"]
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
