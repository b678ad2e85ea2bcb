import numpy as np
import pytest

from tidegauge.errors import InvalidInput
from tidegauge.strategies.decay import Difference, Running, Window
from tidegauge.strategies.identity import Identity


def test_a_window_longer_than_the_stream_takes_memory_for_the_stream_only():
    strategy, views = Identity(0), [Window(1 << 40)]
    state = strategy.init_decoder(views, 2)
    out = np.empty((1, 3000, 2))
    strategy.decode(state, views, np.ones((3000, 2), dtype=np.int64), 0, out)
    assert out[0, -1].tolist() == [3000, 3000]
    assert len(state["0.ring"]) < 2 * 3000


@pytest.mark.parametrize("length", [1, 2, 255, 256, 257, 1000])
def test_a_growing_ring_forgets_what_leaves_the_window(length):
    strategy, views = Identity(0), [Window(length), Running()]
    v = np.random.Generator(np.random.PCG64(5)).integers(-100, 100, (2600, 1))
    state, out = strategy.init_decoder(views, 1), np.empty((2, 2600, 1))
    for first in range(0, 2600, 130):
        block = slice(first, first + 130)
        strategy.decode(state, views, v[block], first, part := np.empty((2, 130, 1)))
        out[:, block] = part
    total = np.cumsum(v[:, 0])
    before = np.concatenate([np.zeros(length, dtype=np.int64), total])[:2600]
    assert total.tolist() == out[1, :, 0].tolist()
    assert (total - before).tolist() == out[0, :, 0].tolist()
    assert len(state["0.ring"]) <= length


@pytest.mark.parametrize("lag", [1, 255, 256, 257, 1000])
def test_a_change_remembers_as_far_back_as_its_lag_and_no_further(lag):
    strategy, views = Identity(0), [Difference(Window(300), lag), Window(300)]
    v = np.random.Generator(np.random.PCG64(6)).integers(-100, 100, (2600, 1))
    state, out = strategy.init_decoder(views, 1), np.empty((2, 2600, 1))
    for first in range(0, 2600, 130):
        block = slice(first, first + 130)
        strategy.decode(state, views, v[block], first, part := np.empty((2, 130, 1)))
        out[:, block] = part
    before = np.concatenate([np.zeros(lag), out[1, :, 0]])[:2600]
    assert (out[1, :, 0] - before).tolist() == out[0, :, 0].tolist()
    assert len(state["0.past"]) <= lag


def test_a_window_forgets_its_rounding_errors():
    strategy, views = Identity(0), [Window(8)]
    v = np.full((64, 1), 1)
    v[5] = 1 << 62  # swallows the ones that it is added to
    out = np.empty((1, 64, 1))
    strategy.decode(strategy.init_decoder(views, 1), views, v, 0, out)
    assert out[0, 31:, 0].tolist() == [8.0] * 33


@pytest.mark.parametrize("steps", [0, 1])
def test_short_blocks_change_what_they_hold(steps):
    strategy, views = Identity(0), [Window(3), Running()]
    out = np.empty((2, steps, 4))
    v = np.full((steps, 4), 7)
    strategy.decode(strategy.init_decoder(views, 4), views, v, 0, out)
    assert np.full((2, steps, 4), 7.0).tolist() == out.tolist()


@pytest.mark.parametrize(
    ("measured", "out"), [((2, 3), (1, 2, 4)), ((2, 4), (1, 2, 4)), ((2, 3), (2, 2, 3))]
)
def test_arrays_that_do_not_belong_together_are_refused(measured, out):
    strategy, views = Identity(0), [Running()]
    state = strategy.init_decoder(views, 3)
    with pytest.raises(InvalidInput, match="Expected 1 views of 3 cells"):
        strategy.decode(state, views, np.zeros(measured, dtype=np.int64), 0, np.zeros(out))
    assert not state["0.sum"].any()
