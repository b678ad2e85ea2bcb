"""Strategies for counts of different values of a window: figures, integers, bad input."""

from fractions import Fraction

import numpy as np
import pytest

from tidegauge.errors import InvalidInput, InvalidParameter, StreamEnded, UnsupportedCombination
from tidegauge.mechanisms.stored import plain, read_as
from tidegauge.privacy.unit import Contributions, Event, NeighboringRelation, Neighbors
from tidegauge.strategies.blt import fit
from tidegauge.strategies.decay import Running, Step, Window
from tidegauge.strategies.distinct import (
    Anchored,
    Shaped,
    anchored,
    decoder_poles,
    interval_gains,
    shaped,
    worst_intervals,
)
from tidegauge.strategies.strategy import MOST_STEPS, Norm

ADD, REPLACE = NeighboringRelation.ADD_OR_REMOVE_ONE, NeighboringRelation.REPLACE_ONE
HALF = 1 << 63


def of_window(window, relation=ADD, unit=None, cells=1, values=1):
    return Neighbors(unit or Event(), relation, 0, values, 1, cells, window)


def worst_std(strategy, norm, relation=ADD):
    """At mu = 1, or epsilon = 1."""
    moved = float(strategy.sensitivity(norm, of_window(strategy.window, relation)))
    gain = strategy.worst_variance_gain(Window(strategy.window), 1 << 30)
    return moved * gain**0.5 * (2**0.5 if norm is Norm.L1 else 1)


@pytest.mark.parametrize(
    ("window", "gaussian", "pure"), [(32, 2.6, 46), (256, 3.6, 82), (1024, 4.3, 110)]
)
def test_the_worst_noise_is_within_the_figures(window, gaussian, pure):
    assert worst_std(shaped(window), Norm.L2) <= gaussian
    assert worst_std(anchored(window), Norm.L1) <= pure


@pytest.mark.parametrize(
    ("window", "gaussian", "replaced", "pure"),
    [(32, 2.562, 3.878, 22.450), (256, 3.506, 5.510, 39.370), (1024, 4.124, 6.596, 53.066)],
)
def test_the_worst_noise_is_what_the_page_says(window, gaussian, replaced, pure):
    assert gaussian == pytest.approx(worst_std(shaped(window), Norm.L2), abs=2e-3)
    assert replaced == pytest.approx(worst_std(shaped(window), Norm.L2, REPLACE), abs=2e-3)
    assert pure == pytest.approx(worst_std(anchored(window), Norm.L1), abs=1e-3)


def norms_of_intervals(coefficients, window):
    """Brute force: the squared norms of C on all intervals, and on all pairs, within a window."""
    lengths = len(coefficients)
    ones = np.zeros((window * (window + 1) // 2 + 1, lengths))  # the last is empty
    spans = [(a, b) for a in range(window) for b in range(a + 1, window + 1)]
    for row, (start, stop) in enumerate(spans):
        ones[row, start:stop] = 1
    moved = np.array([np.convolve(row, coefficients)[:lengths] for row in ones])
    inner = moved @ moved.T
    own = np.diag(inner)
    return own.max(), (own[:, None] + own[None, :] - 2 * inner).max()


@pytest.mark.parametrize("window", [1, 2, 3, 5, 9, 16])
@pytest.mark.parametrize("seed", range(6))
def test_no_interval_and_no_pair_of_them_moves_further_than_charged(window, seed):
    """Over all intervals and all pairs of them, for fitted and for random filters."""
    rng = np.random.default_rng(seed)
    if seed == 0:
        strategy = shaped(max(window, 2))
        gaps, weights = strategy.gaps, strategy.weights
    else:
        size = int(rng.integers(1, 4))
        shares = np.sort(rng.uniform(0.05, 0.9, size))
        gaps = tuple(int(share * 2**64) for share in shares)
        parts = rng.dirichlet(np.ones(size)) * rng.uniform(0.2, 0.99)
        weights = tuple(max(1, int(part * gap)) for part, gap in zip(parts, gaps, strict=True))
    one, two = interval_gains(gaps, weights, window)
    single, pair = norms_of_intervals(Shaped(gaps, weights, window).coefficients(4000), window)
    assert single == pytest.approx(float(one), rel=1e-6)
    assert pair == pytest.approx(float(two), rel=1e-6)


def test_a_bound_on_intervals_is_never_below_the_exact_rational():
    gaps, weights = (HALF, HALF + HALF // 2), (HALF // 4, HALF // 8)
    theta = [1 - Fraction(gap, 1 << 64) for gap in gaps]
    share = [Fraction(weight, 1 << 64) for weight in weights]
    c = [Fraction(1)] + [
        -sum(w * t**k for w, t in zip(share, theta, strict=True)) for k in range(300)
    ]
    for window in (1, 2, 7):
        moved = [sum(c[max(0, t - window + 1) : t + 1], Fraction(0)) for t in range(300)]
        assert sum(one * one for one in moved) <= interval_gains(gaps, weights, window)[0]


def test_two_adjacent_intervals_of_opposite_signs_are_worse_than_the_root_of_two():
    """The referee's example: 2.63 against 1.685 sqrt(2)."""
    strategy = shaped(16)
    one, two = interval_gains(strategy.gaps, strategy.weights, 16)
    assert float(two) > 2 * float(one) * 1.05


def test_the_worst_interval_of_a_comb_is_not_the_longest():
    """Why every length is looked at: of a filter with teeth, l = W would be an understatement."""
    comb = fit([Window(32)]).strategy(lattice_bits=30)
    b = np.convolve(comb.blt.coefficients(1500), [1, *[0] * 31, -float(comb.beta)])[:1500]
    c = np.zeros(1500)
    c[0] = 1
    for k in range(1, 1500):
        c[k] = -b[1 : k + 1] @ c[k - 1 :: -1][:k]
    autocorrelation = [float(c[: 1500 - lag] @ c[lag:]) for lag in range(32)]
    steps = np.cumsum(c)
    longest = ((steps - np.concatenate([np.zeros(32), steps[:-32]])) ** 2).sum()
    assert worst_intervals(autocorrelation, 32)[0] ** 0.5 > 1.15 * longest**0.5


@pytest.mark.parametrize("strategy", [shaped(32), anchored(32), Anchored((1,), 32)])
@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_k_events_and_more_values_cost_so_many_times(strategy, relation):
    norm = next(iter(strategy.norms))
    one = strategy.sensitivity(norm, of_window(32, relation))
    five = strategy.sensitivity(norm, of_window(32, relation, Contributions(5)))
    three = strategy.sensitivity(norm, of_window(32, relation, values=3))
    assert float(5 * one) == pytest.approx(float(five), rel=3e-3)
    assert float(3 * one) == pytest.approx(float(three), rel=3e-3)


def test_an_event_that_changes_cells_moves_both():
    one, two = interval_gains(shaped(32).gaps, shaped(32).weights, 32)
    moved = shaped(32).sensitivity(Norm.L2, of_window(32, REPLACE, cells=8))
    assert max(float(two), 2 * float(one)) ** 0.5 == pytest.approx(
        float(moved) / 2 ** shaped(32).lattice_bits, rel=2e-3
    )
    assert 2 * (2 + 4) == anchored(32).sensitivity(Norm.L1, of_window(32, REPLACE, cells=8))


def test_other_streams_and_norms_are_refused():
    sums = Neighbors(Event(), ADD, 0, 1, 1, 1)
    ever = Neighbors(Event(), ADD, 0, 1, 1, 1, "ever")
    for strategy in (shaped(32), anchored(32)):
        norm = next(iter(strategy.norms))
        for neighbors in (sums, ever, of_window(33)):
            with pytest.raises(UnsupportedCombination):
                strategy.sensitivity(norm, neighbors)
        other = Norm.L1 if norm is Norm.L2 else Norm.L2
        with pytest.raises(UnsupportedCombination):
            strategy.sensitivity(other, of_window(32))
        for view in (Step(), Running(), Window(31)):
            with pytest.raises(InvalidParameter, match="gauge of their own"):
                strategy.init_decoder([view], 1)
            with pytest.raises(InvalidParameter):
                strategy.variance_gain(view, np.array([1]))


@pytest.mark.parametrize("strategy", [shaped(32), Anchored((1, 3, 12, 36), 32), anchored(5)])
def test_streaming_leaves_no_trace_in_the_bytes(strategy):
    rng = np.random.default_rng(3)
    x, view = rng.integers(0, 1000, (97, 3)), [Window(strategy.window)]
    whole = strategy.encode(strategy.init_encoder(3), x, 0)
    noisy = whole + rng.integers(-(1 << 40), 1 << 40, whole.shape)
    decoded = np.empty((1, 97, 3))
    strategy.decode(strategy.init_decoder(view, 3), view, noisy, 0, decoded)
    encoder, decoder, at = strategy.init_encoder(3), strategy.init_decoder(view, 3), 0
    for size in (1, 1, 5, 30, 0, 12, 48):
        rows = strategy.encode(encoder, x[at : at + size], at)
        assert whole[at : at + size].tobytes() == rows.tobytes()
        out = np.empty((1, size, 3))
        strategy.decode(decoder, view, noisy[at : at + size], at, out)
        assert decoded[:, at : at + size].tobytes() == out.tobytes()
        at += size
    exact = np.empty((1, 97, 3))
    strategy.decode(strategy.init_decoder(view, 3), view, whole, 0, exact)
    assert abs(exact[0] - x).max() < 1e-6
    assert list(range(0, 97 * 64, 64)) == strategy.coordinates(0, 97).tolist()


@pytest.mark.parametrize("strategy", [shaped(32), Anchored((1, 3, 12), 12), anchored(7)])
def test_predicted_noise_is_that_of_single_draws_through_the_decoder(strategy):
    steps, view = 60, [Window(strategy.window)]
    unit = 1 << strategy.lattice_bits
    out = np.empty((1, steps, steps))
    state = strategy.init_decoder(view, steps)
    strategy.decode(state, view, unit * np.eye(steps, dtype=np.int64), 0, out)
    gain = (out[0] ** 2).sum(axis=1)
    numbers = np.arange(1, steps + 1)
    predicted = strategy.variance_gain(view[0], numbers) * unit**2
    assert gain == pytest.approx(predicted, rel=1e-9)
    assert predicted.max() <= strategy.worst_variance_gain(view[0], steps) * unit**2 * (1 + 1e-12)
    for step in (1, 2, 31, 60):
        weights, counts = strategy.noise_terms(view[0], step)
        total = (weights**2 * counts).sum() * unit**2
        assert predicted[step - 1] == pytest.approx(total, rel=1e-9)


def test_the_noise_is_known_for_ever():
    strategy, view = shaped(256), Window(256)
    last = strategy.variance_gain(view, np.array([10**9, MOST_STEPS]))
    assert last[0] == last[1] == strategy.worst_variance_gain(view, 1)
    b = np.zeros(60_000)
    gaps, weights = decoder_poles(strategy.gaps, strategy.weights)
    b[0] = 1
    for gap, weight in zip(gaps, weights, strict=True):
        b[1:] += weight * np.exp(np.log1p(-gap) * np.arange(59_999))
    assert (b**2).sum() == pytest.approx(last[0] * 4**strategy.lattice_bits, rel=1e-9)


def test_stored_strategies_come_back_as_they_were():
    for strategy in (shaped(32), anchored(256)):
        assert strategy == read_as(plain(strategy), Shaped, Anchored)
    changed = plain(shaped(32)) | {"window": 31.5}
    with pytest.raises(InvalidParameter):
        read_as(changed, Shaped)


@pytest.mark.parametrize(
    "changes",
    [
        {"gaps": (HALF, HALF)}, {"gaps": (0,)}, {"gaps": [HALF]}, {"gaps": ()},
        {"gaps": (1 << 64,)},
        {"weights": (HALF,)}, {"weights": (0,)}, {"weights": (1, 1)}, {"window": 0},
        {"window": (1 << 20) + 1}, {"window": 2.5}, {"window": True}, {"lattice_bits": -1},
        {"lattice_bits": 41}, {"charged_steps": 0},
    ],
)  # fmt: skip
def test_numbers_that_are_no_shaped_noise_are_refused(changes):
    sound = {"gaps": (HALF,), "weights": (HALF // 2,), "window": 4}
    Shaped(**sound)
    with pytest.raises(InvalidParameter):
        Shaped(**(sound | changes))


@pytest.mark.parametrize(
    "periods",
    [(), (2,), (1, 1), (1, 4, 6), (1, 0), [1, 2], (1, 2.0), tuple(1 << k for k in range(9))],
)
def test_periods_that_do_not_nest_are_refused(periods):
    with pytest.raises(InvalidParameter):
        Anchored(periods, 8)


def test_bad_blocks_leave_the_state_as_it_was():
    strategy = Anchored((1, 4), 4)
    state = strategy.init_encoder(2)
    for block in (np.zeros((3, 1), np.int64), np.zeros((3, 2)), np.zeros(3, np.int64)):
        with pytest.raises(InvalidInput):
            strategy.encode(state, block, 0)
    assert not state["anchors"].any()
    short = Shaped((HALF,), (1,), 4, charged_steps=3)
    with pytest.raises(StreamEnded):
        short.encode(short.init_encoder(1), np.zeros((4, 1), np.int64), 0)
