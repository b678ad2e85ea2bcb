"""The rule that chooses a clip: near the best one for many shapes, and not led by noise."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegauge.mechanisms.clipping import (
    best_clip,
    bins_of,
    clips_up_to,
    next_epoch,
    octaves,
    pooled,
    tails,
)

LARGEST, EVENTS = 1_000_000, 20_000
CLIPS = clips_up_to(LARGEST)
SHAPES = {
    "lognormal": lambda rng: rng.lognormal(6, 1.2, EVENTS),
    "exponential": lambda rng: rng.exponential(1000, EVENTS),
    "Pareto": lambda rng: 1000 * (1 + rng.pareto(2.5, EVENTS)),
    "Weibull": lambda rng: 100 * rng.weibull(0.5, EVENTS),
    "uniform": lambda rng: rng.uniform(0, 30_000, EVENTS),
    "normal": lambda rng: rng.normal(10_000, 1000, EVENTS),
    "equal": lambda rng: np.full(EVENTS, 1000.0),
    "two kinds": lambda rng: np.where(
        rng.random(EVENTS) < 0.9, rng.exponential(20, EVENTS), rng.normal(100_000, 5000, EVENTS)
    ),
}


def counted(values):
    """Counts of magnitudes: zeros, then octaves."""
    return np.bincount(bins_of(values), minlength=1 + octaves(LARGEST)).astype(float)


@pytest.mark.statistical
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("std", [20.0, 80.0])
def test_the_clip_is_near_the_best_one_whatever_the_shape(shape, std):
    """Root mean square over choices, of what is cut off and of noise, over that of the best."""
    rng = np.random.default_rng(7)
    values = np.clip(np.rint(SHAPES[shape](rng)), 0, LARGEST).astype(np.int64)
    noise, exact = std, counted(values)  # the sum's noise for a clip of 1, for simplicity
    cut = {c: float((values - np.minimum(values, c)).sum()) for c in CLIPS.tolist()}
    errors = {c: cut[c] ** 2 + (c * noise) ** 2 for c in cut}
    found = [
        best_clip(counts[1:], counts[0], std, CLIPS, [(1.0, noise**2)])
        for counts in exact + std * rng.normal(size=(60, len(exact)))
    ]
    ours = np.mean([errors[clip] for clip in found])
    # 1.5: an octave whose end nobody sees costs up to 1.4, in noise
    assert np.sqrt(ours / min(errors.values())) < 1.5


def test_far_above_all_values_noise_is_hardly_ever_taken_for_values():
    rng = np.random.default_rng(3)
    exact = np.r_[0.0, np.full(7, 2000.0), 900, 200, 20, np.zeros(10)]
    noisy = exact + 60 * rng.normal(size=(3000, len(exact)))
    assert all(tails(counts[1:], 60.0).octave < 11 for counts in noisy)


def test_values_that_are_far_apart_are_seen():
    counts = np.r_[3000.0, 2000, 500, np.zeros(12), 900, np.zeros(4)]
    assert 15 == tails(counts, 60.0).octave
    assert best_clip(counts, 0.0, 60.0, CLIPS, [(1.0, 30.0**2)]) >= 32_768


@given(st.integers(1, 20_000), st.floats(0, 50), st.floats(0, 1), st.integers(0, 99))
def test_any_counts_have_a_clip_or_none(scale, std, share, seed):
    rng = np.random.default_rng(seed)
    counts = scale * share ** np.arange(octaves(LARGEST)) + std * rng.normal(size=20)
    clip = best_clip(counts, 0.0, max(std, 1e-3), CLIPS, [(1.0, 1.0)], now=7)
    assert clip is None or clip in CLIPS


@given(st.lists(st.floats(-6, 12), min_size=20, max_size=20), st.sampled_from([1e-3, 1.0, 1e5]))
def test_no_noise_is_too_odd(scores, std):
    for now in (None, 0, 900):
        for views in ([(1.0, 1e-12)], [(2.0, 900.0), (1e-3, 1.0)]):
            clip = best_clip(np.array(scores) * std, 9 * std, std, CLIPS, views, now)
            assert clip is None or clip in CLIPS


def test_few_events_have_no_clip_and_many_near_zero_have_the_least():
    nothing = np.zeros(20)
    views = [(1.0, 1.0)]
    assert best_clip(nothing, 30.0, 10.0, CLIPS, views) is None
    assert best_clip(nothing, 300.0, 10.0, CLIPS, views) is None
    assert 0 == best_clip(nothing, 1e6, 10.0, CLIPS, views)
    some = np.r_[np.zeros(5), 900.0, np.zeros(14)]
    assert best_clip(some, 0.0, 10.0, CLIPS, views, waiting=True) is None
    assert 32 <= best_clip(some, 0.0, 10.0, CLIPS, views) <= 64


def test_pooled_counts_are_hardly_biased_and_their_noise_is_told():
    rng, epochs = np.random.default_rng(1), np.outer([30.0, 500, 8000], [0.7, 0.2, 0.1])
    found = [pooled(epochs + 20 * rng.normal(size=epochs.shape), 20.0) for _ in range(4000)]
    counts = np.array([counts for counts, _ in found])
    assert counts.mean(axis=0) == pytest.approx(epochs.sum(axis=0), rel=2e-3)
    spread = (counts - counts.sum(axis=1, keepdims=True) * [0.7, 0.2, 0.1]).std(axis=0)
    told = np.mean([std for _, std in found])
    assert 20 < told < 22.5  # of one measurement 20
    # the noise of a share: what is left when the noise of the whole is taken out
    assert spread == pytest.approx(told * np.sqrt([1.07, 0.72, 0.83]), rel=0.1)


@given(st.integers(1, 1 << 38), st.one_of(st.none(), st.integers(2, 1 << 37)))
def test_an_epoch_ends_after_it_begins(step, lag):
    after = next_epoch(step, lag)
    assert step < after <= max(2 * step, lag or 0, 2)
    assert next_epoch(after - 1, lag) == after
