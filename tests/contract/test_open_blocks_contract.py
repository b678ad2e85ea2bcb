"""T6: the rows of open blocks are ``A x + L z`` with ``A = L R``, seen in the code's own output."""

from __future__ import annotations

from collections.abc import Callable
from math import lcm

import numpy as np
import pytest
from contract.strategy_contract import workload
from hypothesis import given
from hypothesis import strategies as st
from twins.cases import ONE

from tidegauge.privacy import unit
from tidegauge.strategies.blocks import OpenBlocks
from tidegauge.strategies.decay import Difference, Running, Step, Window
from tidegauge.strategies.strategy import Int64, Norm, State

CASES = [
    (OpenBlocks((1, 3, 9, 27), (Running(),)), 81),
    (OpenBlocks((1, 3), (Running(),)), 60),
    (OpenBlocks((1, 5, 10), (Window(7), Running(), Window(23))), 100),
    (OpenBlocks((1, 4, 12), (Window(48), Window(2)), lattice_bits=4), 144),
    (OpenBlocks((1, 13, 169), (Window(40), Running())), 169),
    (OpenBlocks((1, 3, 9, 27), (Running(),), weights=(6, 4, 4, 3)), 81),
    (OpenBlocks((1, 4, 12), (Window(7), Running()), lattice_bits=2, weights=(3, 2, 2)), 96),
]


def factors_of(strategy: OpenBlocks) -> Int64:
    """What the noise of each level is multiplied by: M / w_l."""
    weights = strategy.weights or (1,) * len(strategy.levels)
    return np.array([lcm(*weights) // weight for weight in weights])


def multiple_of(strategy: OpenBlocks) -> int:
    return lcm(*strategy.weights)


def matrices(strategy: OpenBlocks, steps: int) -> tuple[Int64, Int64, Int64]:
    """(A, L, R): rows and noise in their units, R the weighted blocks that noise is added to.

    ``steps`` is whole blocks of the last level.
    """
    scale = 1 << strategy.lattice_bits
    A = strategy.encode(strategy.init_encoder(steps), np.eye(steps, dtype=np.int64), 0)
    numbers = strategy.noise_coordinates(0, steps)
    assert len(set(numbers.tolist())) == len(numbers), "a block's noise is drawn twice"
    L = strategy.mix(
        strategy.init_noise(len(numbers)), np.eye(len(numbers), dtype=np.int64), 0, steps
    )
    rows = {number: row for number, row in zip(strategy.coordinates(0, steps), A, strict=True)}
    blocks = np.array([rows[number] for number in numbers])
    R, rest = np.divmod(blocks, scale * factors_of(strategy)[numbers % 64][:, None])
    assert not rest.any()
    return A // scale, L, R


def assert_private(strategy: OpenBlocks, steps: int) -> None:
    """What the shear argument of docs/proofs/blocks.md needs."""
    A, L, R = matrices(strategy, steps)
    np.testing.assert_array_equal(A, L @ R)
    declared = strategy.sensitivity(Norm.L1, ONE) / (1 << strategy.lattice_bits)
    assert np.abs(R).sum(axis=0).max() <= declared
    when = strategy.coordinates(0, steps) // 64
    for step in range(steps):
        assert not (L @ R[:, step])[when < step].any()


@pytest.mark.parametrize(("strategy", "steps"), CASES)
def test_the_rows_are_a_map_of_noisy_blocks(strategy: OpenBlocks, steps: int) -> None:
    assert_private(strategy, steps)


@pytest.mark.parametrize(("strategy", "steps"), CASES)
def test_the_ledger_charges_what_the_blocks_cost(strategy: OpenBlocks, steps: int) -> None:
    _, _, R = matrices(strategy, steps)
    scale = 1 << strategy.lattice_bits
    assert strategy.sensitivity(Norm.L1, ONE) == scale * np.abs(R).sum(axis=0).max()
    thrice = unit.Neighbors(
        unit.Contributions(3, 2), unit.NeighboringRelation.REPLACE_ONE, -1, 2, 2, 9
    )
    charged = sum(strategy.weights or (1,) * len(strategy.levels))
    assert strategy.sensitivity(Norm.L1, thrice) == 3 * scale * charged * 8


@pytest.mark.parametrize(("strategy", "steps"), CASES)
def test_planned_views_are_exact_sums_with_the_promised_noise(
    strategy: OpenBlocks, steps: int
) -> None:
    A, L, _ = matrices(strategy, steps)
    multiple = multiple_of(strategy)
    A, rest = np.divmod(A, multiple)
    assert not rest.any()
    unit_of_rows = 0.5**strategy.lattice_bits
    place = strategy.coordinates(0, steps) % 64 - len(strategy.levels)
    for number, view in enumerate(strategy.views):
        np.testing.assert_array_equal(A[place == number], workload(view, steps))
        rows = strategy.decoder_matrix(view, steps) @ L * unit_of_rows
        gain = strategy.variance_gain(view, np.arange(1, steps + 1))
        np.testing.assert_allclose(gain, (rows**2).sum(axis=1), rtol=1e-12)
    changes = [
        Difference(view, lag)
        for view in strategy.views[:1]
        for lag in (1, 7, 30)
        if isinstance(view, Window)
    ] + [Difference(Window(5), 3), Difference(Step(), 9)]
    for view in changes:
        np.testing.assert_allclose(
            strategy.decoder_matrix(view, steps) @ A * multiple, workload(view, steps), atol=1e-12
        )
        rows = strategy.decoder_matrix(view, steps) @ L * unit_of_rows
        gain = strategy.variance_gain(view, np.arange(1, steps + 1))
        np.testing.assert_allclose(gain, (rows**2).sum(axis=1), rtol=1e-12)
    for view in (*strategy.views, *changes, Running(), Window(5), Window(40)):
        gain = strategy.variance_gain(view, np.arange(1, steps + 1))
        for step in range(1, steps + 1):
            weights, counts = strategy.noise_terms(view, step)
            assert gain[step - 1] == pytest.approx((weights**2 * counts).sum(), rel=1e-12)


@pytest.mark.parametrize(("strategy", "steps"), CASES)
def test_a_completed_block_shows_its_own_noise_once(strategy: OpenBlocks, steps: int) -> None:
    _, L, _ = matrices(strategy, steps)
    numbers = strategy.coordinates(0, steps)
    blocks = numbers % 64 < len(strategy.levels)
    shown = (numbers[blocks][:, None] == strategy.noise_coordinates(0, steps)).astype(np.int64)
    shown *= factors_of(strategy)[numbers[blocks] % 64][:, None]
    np.testing.assert_array_equal(L[blocks], shown)


@st.composite
def open_blocks(draw: st.DrawFn) -> tuple[OpenBlocks, int]:
    """Any shape with at most 200 steps, whole blocks of the last level."""
    levels = [1]
    while levels[-1] <= 25 and draw(st.booleans()):
        levels.append(levels[-1] * draw(st.integers(2, 8)))
    spans = draw(st.lists(st.integers(1, 120), max_size=2, unique=True))
    weights = draw(st.sampled_from([(), (4,) * 2 + (3,) * 62, (6,) + (5,) * 63]))[: len(levels)]
    views = (Running(), *[Window(span) for span in spans])
    strategy = OpenBlocks(tuple(levels), views, weights=weights)
    return strategy, levels[-1] * draw(st.integers(1, max(1, 200 // levels[-1])))


@given(open_blocks())
def test_every_shape_is_a_map_of_noisy_blocks(case: tuple[OpenBlocks, int]) -> None:
    assert_private(*case)


class _Altered:
    """A strategy with one fault: everything else is the real one's."""

    def __init__(self, strategy: OpenBlocks) -> None:
        self.real = strategy

    def __getattr__(self, name: str) -> object:
        return getattr(self.real, name)


class _DropsOpenNoise(_Altered):
    """Blocks get their noise when they complete; before, sums are released without it."""

    def mix(self, noise: State, fresh: Int64, first: int, steps: int) -> Int64:
        last = self.real.noise_coordinates(0, steps) // 64
        mixed = []
        for t in range(first, first + steps):
            known = np.where((last <= t)[:, None], fresh, 0)
            before = len(self.real.coordinates(first, t - first))
            until = len(self.real.coordinates(first, t + 1 - first))
            state = self.real.init_noise(fresh.shape[1])
            mixed.append(self.real.mix(state, known, first, steps)[before:until])
        return np.concatenate(mixed)


class _LeavesOneNodeOut(_Altered):
    def mix(self, noise: State, fresh: Int64, first: int, steps: int) -> Int64:
        silent = fresh.copy()
        silent[len(silent) // 2] = 0
        return self.real.mix(noise, silent, first, steps)


class _DrawsTwice(_Altered):
    """One draw for the block's own row, another for the sums that use it."""

    def noise_coordinates(self, first: int, steps: int) -> Int64:
        numbers = self.real.noise_coordinates(first, steps)
        return np.concatenate((numbers, numbers))


class _ForgetsALevel(_Altered):
    def sensitivity(self, norm: Norm, neighbors: unit.Neighbors) -> object:
        levels = len(self.real.levels)
        return self.real.sensitivity(norm, neighbors) * (levels - 1) / levels


class _ChargesLevelsAlike(_Altered):
    """The budget of a level is its weight: a ledger that counts levels is too small."""

    def sensitivity(self, norm: Norm, neighbors: unit.Neighbors) -> object:
        return OpenBlocks(self.real.levels, self.real.views).sensitivity(norm, neighbors)


class _ScalesNoiseOfOneLevelOnly(_Altered):
    """Rows are M times the sums, and the noise is not M / w times the draws."""

    def mix(self, noise: State, fresh: Int64, first: int, steps: int) -> Int64:
        plain = OpenBlocks(self.real.levels, self.real.views, self.real.lattice_bits)
        return plain.mix(noise, fresh, first, steps)


@pytest.mark.parametrize(
    ("fault", "message"), [(_ChargesLevelsAlike, "sum"), (_ScalesNoiseOfOneLevelOnly, "not equal")]
)
def test_broken_weights_are_caught(fault: type[_Altered], message: str) -> None:
    for strategy, steps in CASES[-2:]:
        with pytest.raises(AssertionError, match=message):
            assert_private(fault(strategy), steps)  # type: ignore[arg-type]  # a broken twin


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (_DropsOpenNoise, "not equal"),
        (_LeavesOneNodeOut, "not equal"),
        (_DrawsTwice, "drawn twice"),
        (_ForgetsALevel, "sum"),
    ],
)
def test_broken_twins_are_caught(fault: type[_Altered], message: str) -> None:
    for strategy, steps in (CASES[0], CASES[2]):
        with pytest.raises(AssertionError, match=message):
            assert_private(fault(strategy), steps)  # type: ignore[arg-type]  # a broken twin


Event = Callable[[int, Int64], Int64]  # step, latest release -> what is added to the step's total


def _law(event: Event, reach: int, scale: float, weights: tuple[int, ...]) -> dict[bytes, float]:
    """Log probability of every output of four steps, one cell for each vector of draws.

    Levels 1 and 4: the third release uses the open block of four and the noise of step 4, whose
    total may depend on it. After four steps no draw is hidden, so outputs and draws are one to one.
    """
    strategy, steps = OpenBlocks((1, 4), (Running(),), weights=weights), 4
    draws = np.stack(np.meshgrid(*[np.arange(-reach, reach + 1)] * 5, indexing="ij"))
    draws = draws.reshape(5, -1)
    cells = draws.shape[1]
    noise, state, released = strategy.init_noise(cells), strategy.init_encoder(cells), []
    latest = np.zeros(cells, np.int64)
    for t in range(steps):
        fresh = draws if t == 0 else draws[:0]
        x = (np.zeros(cells, np.int64) + event(t, latest))[None]
        rows = strategy.encode(state, x, t) + strategy.mix(noise, fresh, t, 1)
        released.append(rows)
        latest = rows[-1]
    outputs = np.ascontiguousarray(np.concatenate(released).T)
    logs = -np.abs(draws).sum(axis=0) / scale
    law = {row.tobytes(): float(p) for row, p in zip(outputs, logs, strict=True)}
    assert len(law) == cells
    return law


def _worst_log_ratio(
    one: Event, other: Event, scale: float, weights: tuple[int, ...] = ()
) -> float:
    """Over outputs of small draws, which the other stream reaches with draws little larger."""
    reach, moved = (2, max(weights)) if weights else (3, 1)
    p, q = _law(one, reach, scale, weights), _law(other, reach + moved, scale, weights)
    assert p.keys() <= q.keys()
    return max(abs(p[row] - q[row]) for row in p)


@pytest.mark.parametrize(
    "event",
    [
        lambda t, y: np.int64(t == 0),
        lambda t, y: (t == 2) * (y > 0).astype(np.int64),
        lambda t, y: (t == 3) * np.sign(y),
    ],
    ids=["first step", "third step if the second release is positive", "last step by its sign"],
)
def test_an_adaptive_adversary_learns_epsilon_and_no_more(event: Event) -> None:
    nothing: Event = lambda t, y: np.zeros_like(y)  # noqa: E731  # beside the other adversaries
    epsilon = 1.0
    scale = float(OpenBlocks((1, 4), (Running(),)).sensitivity(Norm.L1, ONE)) / epsilon
    assert _worst_log_ratio(nothing, event, scale) == pytest.approx(epsilon, abs=1e-12)
    assert _worst_log_ratio(nothing, event, scale / 2) > epsilon


def test_an_adaptive_adversary_learns_epsilon_from_weighted_blocks_and_no_more() -> None:
    nothing: Event = lambda t, y: np.zeros_like(y)  # noqa: E731  # beside the other adversaries
    event: Event = lambda t, y: (t == 2) * (y > 0).astype(np.int64)  # noqa: E731
    weights = (3, 2)
    scale = float(OpenBlocks((1, 4), (Running(),), weights=weights).sensitivity(Norm.L1, ONE))
    assert scale == 5
    assert _worst_log_ratio(nothing, event, scale, weights) == pytest.approx(1, abs=1e-12)
    assert _worst_log_ratio(nothing, event, 2.0, weights) > 2  # charged by levels alone
