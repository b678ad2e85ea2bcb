"""What every strategy owes; each function judges one strategy by running its own streaming code.

A test file applies the functions it needs to its strategies, for instance::

    def test_my_strategy_keeps_the_contract():
        strategy = MyStrategy(...)
        assert_factorizes(strategy, [Running(), Window(3)], steps=20)
        assert_covers_every_pattern(strategy, Norm.L2, neighbors, steps=6, slack=0.01)
        assert_stays_within_under_attack(strategy, max_cells=4, signed=True, steps=200)
        assert_streams(strategy, [Running()], steps=50, cells=3)

``steps`` must not pass the strategy's hard end. Matrices are in grains. Every function raises
AssertionError when the strategy breaks its word, and is itself tested against broken strategies.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from tidegauge.errors import StreamEnded
from tidegauge.privacy.unit import Event, NeighboringRelation, Neighbors
from tidegauge.strategies.decay import Decay
from tidegauge.strategies.strategy import (
    COORDINATES_PER_STEP,
    Float64,
    Int64,
    Norm,
    State,
    Strategy,
)


def workload(view: Decay, steps: int) -> Float64:
    """A: the lower-triangular matrix of a view's implemented weights."""
    weights = view.weights(steps)
    lags = np.subtract.outer(np.arange(steps), np.arange(steps))
    return np.where(lags >= 0, weights[np.maximum(lags, 0)], 0.0)


def assert_factorizes(
    strategy: Strategy, views: Sequence[Decay], steps: int, tolerance: float = 1e-9
) -> None:
    """B C = A for each view: without noise, every view is exact within ``tolerance`` grains."""
    encoder = strategy.encoder_matrix(steps)
    for view in views:
        product = strategy.decoder_matrix(view, steps) @ encoder
        np.testing.assert_allclose(product, workload(view, steps), rtol=0, atol=tolerance)


def assert_covers_every_pattern(
    strategy: Strategy, norm: Norm, neighbors: Neighbors, steps: int, slack: float
) -> None:
    """The largest move over all patterns within ``steps`` <= sensitivity <= (1 + slack) of it.

    Brute force over steps, cells and the extreme values of every event; keep steps and cells small.
    """
    declared = float(strategy.sensitivity(norm, neighbors)) * 2.0**-strategy.lattice_bits
    largest = largest_move(strategy.encoder_matrix(steps), norm, neighbors)
    assert largest <= declared * (1 + 1e-12)
    assert declared <= largest * (1 + slack)


def largest_move(encoder: Float64, norm: Norm, neighbors: Neighbors) -> float:
    """max ||C dx|| over every pair of neighboring streams, by enumeration."""
    changes = np.array(sorted(event_changes(neighbors)), dtype=np.float64)  # (changes, cells)
    largest = 0.0
    for steps in _event_steps(neighbors, encoder.shape[1]):
        columns = encoder[:, list(steps)]  # (rows, events)
        for chosen in itertools.product(changes, repeat=len(steps)):
            moved = columns @ np.array(chosen)
            size = np.abs(moved).sum() if norm is Norm.L1 else np.sqrt((moved**2).sum())
            largest = max(largest, float(size))
    return largest


def _event_steps(neighbors: Neighbors, steps: int) -> Iterator[tuple[int, ...]]:
    """Every increasing choice of the unit's event steps with the least distance it promises."""
    unit = neighbors.unit
    for chosen in itertools.combinations_with_replacement(range(steps), unit.max_events):
        if all(b - a >= unit.min_separation for a, b in itertools.pairwise(chosen)):
            yield chosen


def event_changes(neighbors: Neighbors) -> set[tuple[int, ...]]:
    """Every extreme change of x at one step that one event can make, shape (cells,) each."""
    values = sorted({neighbors.low, 0, neighbors.high})
    events = {
        event
        for event in itertools.product(values, repeat=neighbors.cells)
        if sum(value != 0 for value in event) <= neighbors.max_cells
    }
    nothing = (0,) * neighbors.cells
    others = events if neighbors.relation is NeighboringRelation.REPLACE_ONE else {nothing}
    return {
        sign
        for event in events
        for other in others
        for sign in (_minus(event, other), _minus(other, event))
    }


def _minus(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(p - q for p, q in zip(a, b, strict=True))


def assert_stays_within_under_attack(
    strategy: Strategy, max_cells: int, *, signed: bool, steps: int, width: int = 100
) -> float:
    """A greedy adversary cannot drive two neighbors' coordinates beyond the sensitivity.

    One event of one grain enters each of ``max_cells`` cells at the first step; see :func:`attack`.

    Returns:
        The move over the sensitivity, to show how close the attack came.
    """
    moved = attack(strategy, max_cells, signed=signed, steps=steps, width=width)
    low, high = (-1, 1) if signed else (0, 1)
    neighbors = Neighbors(
        Event(), NeighboringRelation.ADD_OR_REMOVE_ONE, low, high, max_cells, max_cells
    )
    size = float((moved.astype(np.float64) ** 2).sum()) ** 0.5
    share = size / float(strategy.sensitivity(Norm.L2, neighbors))
    assert share <= 1.0
    return share


def assert_each_rounding_is_paid(
    strategy: Strategy, error: float, *, signed: bool, steps: int, width: int = 100
) -> float:
    """A greedy adversary cannot part any coordinate's move from that of C x by ``error`` grains.

    Returns:
        The largest such distance over ``error``, to show how close the attack came.
    """
    ideal = strategy.encoder_matrix(steps)[:, :1] * 2.0**strategy.lattice_bits
    moved = attack(strategy, 1, signed=signed, steps=steps, width=width, ideal=ideal)
    share = float(np.abs(moved - ideal).max()) * 2.0**-strategy.lattice_bits / error
    assert share < 1.0
    return share


def attack(
    strategy: Strategy,
    max_cells: int,
    *,
    signed: bool,
    steps: int,
    width: int = 100,
    ideal: Float64 | None = None,
) -> Int64:
    """The difference, in lattice units, to which the greedy adversary drives two neighbors.

    At each step it takes the first of ``width`` totals, the same in every cell, after which the
    roundings of this and the next step move the two streams furthest apart; or, if ``ideal`` is
    given (rows, 1), furthest away from that move. The strategy must have one row a step.
    """
    candidates = range(-width // 2, width // 2) if signed else range(width)
    base, other = strategy.init_encoder(max_cells), strategy.init_encoder(max_cells)
    aim = np.zeros((steps, 1)) if ideal is None else ideal
    moved = []
    for t in range(steps):
        event = int(t == 0)
        soon = aim[t : t + 2]

        def gained(total: int, event: int = event, t: int = t, soon: Float64 = soon) -> float:
            x = np.zeros((len(soon), max_cells), dtype=np.int64)
            x[0] = total
            neighbor = x.copy()
            neighbor[0] += event
            ahead = strategy.encode(copied(other), neighbor, t)
            return float(((ahead - strategy.encode(copied(base), x, t) - soon) ** 2).sum())

        x = np.full((1, max_cells), max(candidates, key=gained), dtype=np.int64)
        moved.append(strategy.encode(other, x + event, t) - strategy.encode(base, x, t))
    return np.concatenate(moved)


def copied(state: State) -> State:
    """A state that shares nothing with the other."""
    return {name: array.copy() for name, array in state.items()}


def assert_streams(
    strategy: Strategy, views: Sequence[Decay], steps: int, cells: int, largest: int = 1000
) -> None:
    """Coordinates are integers of the promised form, and streaming leaves no trace in the bytes.

    Cutting the stream into blocks, or going on from copies of the states, changes nothing; and
    every coordinate has a number of its own.
    """
    source = np.random.Generator(np.random.PCG64(20))
    x = source.integers(-largest, largest, (steps, cells)) * (source.random((steps, cells)) < 0.5)
    whole = _run(strategy, views, x, cuts=[steps])
    _assert_coordinates(strategy, whole[0], steps)
    for cuts in (range(1, steps + 1), [1, steps // 2, steps // 2, steps], [steps // 3, steps]):
        for restart in (False, True):
            _assert_same_bytes(whole, _run(strategy, views, x, cuts=cuts, restart=restart))


def _run(
    strategy: Strategy,
    views: Sequence[Decay],
    x: Int64,
    cuts: Sequence[int],
    *,
    restart: bool = False,
) -> tuple[Int64, Float64]:
    """Coordinates and views of a stream, with a pseudo-noise that is a function of the row."""
    steps, cells = x.shape
    private, public = strategy.init_encoder(cells), strategy.init_decoder(views, cells)
    rows, outs, first = [], [], 0
    for cut in cuts:
        if restart:
            private, public = copied(private), copied(public)
        coordinates = strategy.encode(private, np.ascontiguousarray(x[first:cut]), first)
        rows.append(coordinates.copy())
        numbers = strategy.coordinates(first, cut - first)
        coordinates += (numbers * 7919 % 10007)[:, None]
        out = np.full((len(views), cut - first, cells), np.nan)
        strategy.decode(public, views, coordinates, first, out)
        outs.append(out)
        first = cut
    assert first == steps
    return np.concatenate(rows), np.concatenate(outs, axis=1)


def _assert_coordinates(strategy: Strategy, coordinates: Int64, steps: int) -> None:
    numbers = strategy.coordinates(0, steps)
    assert coordinates.dtype == np.int64
    assert len(numbers) == len(coordinates)
    assert len(set(numbers.tolist())) == len(numbers)
    step = numbers // COORDINATES_PER_STEP
    assert (step >= 0).all()
    assert (step < steps).all()
    block = strategy.encode(strategy.init_encoder(2), np.ones((3, 2), dtype=np.int64), 0)
    assert block.dtype == np.int64
    assert block.flags.c_contiguous
    assert block.flags.writeable
    assert block.shape == (len(strategy.coordinates(0, 3)), 2)


def _assert_same_bytes(a: tuple[Int64, Float64], b: tuple[Int64, Float64]) -> None:
    for one, other in zip(a, b, strict=True):
        assert one.shape == other.shape
        assert one.tobytes() == other.tobytes()


def assert_knows_its_noise(
    strategy: Strategy, views: Sequence[Decay], steps: int, tolerance: float = 1e-8
) -> None:
    """variance_gain and noise_terms are those of the rows of B, from the streaming decoder."""
    unit = 2.0**-strategy.lattice_bits
    times = np.arange(1, steps + 1)
    for view in views:
        rows = strategy.decoder_matrix(view, steps) * unit
        expected = (rows**2).sum(axis=1)
        np.testing.assert_allclose(strategy.variance_gain(view, times), expected, rtol=tolerance)
        for step in {1, 2, steps // 2, steps} - {0}:
            weights, counts = strategy.noise_terms(view, step)
            np.testing.assert_allclose(
                np.sqrt(expected[step - 1]),
                np.sqrt((weights**2 * counts).sum()),
                rtol=tolerance,
            )
            assert counts.dtype == np.int64
            assert (counts > 0).all()
            assert counts.sum() <= rows.shape[1]
        if strategy.gain_tells_terms(view):
            _assert_equal_gains_mean_equal_terms(strategy, view, rows, times)


def _assert_equal_gains_mean_equal_terms(
    strategy: Strategy, view: Decay, rows: Float64, times: Int64
) -> None:
    """Half-widths are remembered by gain: what two rows of one gain weigh is the same."""
    gains = strategy.variance_gain(view, times)
    _, first, alike = np.unique(gains, return_index=True, return_inverse=True)
    sizes = np.sort(np.abs(rows), axis=1)
    np.testing.assert_allclose(sizes, sizes[first[alike]], atol=1e-6)


def assert_stops_at_its_hard_end(strategy: Strategy, norm: Norm, neighbors: Neighbors) -> None:
    """The last step is encoded, the next refused with the state untouched; the norm holds to there.

    The strategy's hard end must be small; neighbors differ in one event.
    """
    end = strategy.hard_end
    assert end is not None
    state = strategy.init_encoder(1)
    strategy.encode(state, np.ones((end - 1, 1), dtype=np.int64), 0)
    before = copied(state)
    with pytest.raises(StreamEnded, match="Expected at most"):
        strategy.encode(state, np.ones((2, 1), dtype=np.int64), end - 1)
    assert {k: v.tobytes() for k, v in before.items()} == {k: v.tobytes() for k, v in state.items()}
    strategy.encode(state, np.ones((1, 1), dtype=np.int64), end - 1)
    with pytest.raises(StreamEnded, match="Expected at most"):
        strategy.encode(state, np.ones((1, 1), dtype=np.int64), end)
    columns = strategy.encoder_matrix(end)
    norms = np.abs(columns).sum(0) if norm is Norm.L1 else np.sqrt((columns**2).sum(0))
    event = neighbors.event_l1 if norm is Norm.L1 else neighbors.event_l2_squared**0.5
    declared = float(strategy.sensitivity(norm, neighbors)) * 2.0**-strategy.lattice_bits
    assert float(norms.max()) * event <= declared * (1 + 1e-12)
