from fractions import Fraction

import numpy as np
import pytest
from contract.strategy_contract import assert_streams
from hypothesis import given
from twins.cases import VIEWS, neighbors

from tidegauge.strategies.identity import Identity
from tidegauge.strategies.responses import Responses
from tidegauge.strategies.strategy import Norm

STRATEGY = Responses(Fraction(2))


@given(neighbors())
def test_no_more_bits_change_than_it_says(unit):
    """A bit moves by no more than its total: the clamp is 1-Lipschitz."""
    moved = STRATEGY.sensitivity(Norm.L1, unit)
    assert moved == unit.unit.max_events * unit.event_l1
    rng = np.random.default_rng(5)
    for _ in range(20):
        x = rng.integers(-2, 3, (unit.unit.max_events, unit.cells))
        change = np.zeros_like(x)
        for step in range(len(x)):
            room, cells = unit.event_l1, rng.permutation(unit.cells)
            for cell in cells[: unit.moved_cells]:
                change[step, cell] = rng.integers(-room, room + 1)
                room -= abs(change[step, cell])
        rows = [STRATEGY.encode(STRATEGY.init_encoder(unit.cells), y, 0) for y in (x, x + change)]
        assert np.abs(rows[0] - rows[1]).sum() <= moved


def test_responses_stream_without_a_trace():
    assert_streams(STRATEGY, VIEWS, steps=60, cells=3)


def test_responses_have_the_rows_of_the_stream_itself():
    """Decoding is affine, so B is that of the identity: the law's variance is without the bias."""
    steps = np.arange(1, 41)
    for view in VIEWS:
        gain = STRATEGY.variance_gain(view, steps)
        np.testing.assert_array_equal(gain, Identity(0).variance_gain(view, steps))
        for got, expected in zip(
            STRATEGY.noise_terms(view, 9), Identity(0).noise_terms(view, 9), strict=True
        ):
            np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("view", VIEWS)
def test_each_view_of_mean_responses_is_its_decay_of_the_bits(view):
    """What a response is on average, decoded: exact, for it is linear."""
    bits = np.arange(12)[:, None] % 3 == 1
    chance = 1 / (1 + np.exp(0.5))
    state, out = STRATEGY.init_decoder([view], 1), np.empty((1, 12, 1))
    STRATEGY.decode(state, [view], chance + (1 - 2 * chance) * bits, 0, out)
    expected = np.convolve(view.weights(12), bits.ravel())[:12]
    np.testing.assert_allclose(out.ravel(), expected, atol=1e-9)
