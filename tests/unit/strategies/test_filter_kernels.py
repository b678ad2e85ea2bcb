"""The compiled loops against plain Python integers and floats: equal bytes, always."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from twins.blts import RUNNING, filters
from twins.cases import VIEWS
from twins.python_blt import PythonBlt, filtered
from twins.python_comb import PythonComb

from tidegauge.strategies import _kernels
from tidegauge.strategies.blt import Blt, Comb
from tidegauge.strategies.decay import Decay, Exponential
from tidegauge.strategies.identity import Identity

EVERY = [*VIEWS, Exponential(factor=1 - 1e-9)]
ENDS = 1 << 20


@st.composite
def streams(draw, largest, steps=12, cells=3):
    totals = st.one_of(
        st.integers(-min(50, largest), min(50, largest)),
        st.integers(-largest, largest),
        st.sampled_from([largest, -largest, 0]),
    )
    rows = st.lists(totals, min_size=cells, max_size=cells)
    return np.array(draw(st.lists(rows, min_size=1, max_size=steps)), dtype=np.int64)


@given(filters(longest=62), st.integers(-20, 40), st.data())
@settings(max_examples=200)
def test_the_encoder_equals_big_integers(buffers, bits, data):
    if _largest(buffers, bits) < 1:
        return
    blt = Blt(*buffers, bits, ENDS)
    x = data.draw(streams(blt.largest_total))
    twin = PythonBlt(*buffers, bits, ENDS)
    state, plain = blt.init_encoder(3), twin.init_encoder(3)
    expected = twin.encode(plain, x, 0)
    assert expected.tobytes() == blt.encode(state, x, 0).tobytes()
    for i, j in np.ndindex(3, len(blt.gaps)):
        high, low = (int(half) for half in state["encoder"][i, j])
        assert plain["states"][i, j] == (high << 64 | low) - (high >> 63 << 128)


def _largest(buffers, bits):
    from tidegauge.strategies.blt.fixed_point import largest_total

    gain = PythonBlt(*buffers, bits, ENDS).absolute_gain
    return largest_total(gain, buffers[0], bits)


@pytest.mark.parametrize("cells", [1, 15, 16, 17, 40])
def test_the_encoder_equals_big_integers_for_any_number_of_cells(cells):
    x = np.random.Generator(np.random.PCG64(1)).integers(-1000, 1000, (30, cells))
    blt, twin = Blt(*RUNNING, 30, ENDS), PythonBlt(*RUNNING, 30, ENDS)
    expected = twin.encode(twin.init_encoder(cells), x, 0)
    assert expected.tobytes() == blt.encode(blt.init_encoder(cells), x, 0).tobytes()


@pytest.mark.parametrize("sign", [-1, 1])
def test_the_largest_totals_for_ever_stay_within_62_bits(sign):
    gaps, weights = (1 << 58, 1 << 62), (1 << 57, 1 << 62)
    blt, twin = Blt(gaps, weights, 10, ENDS), PythonBlt(gaps, weights, 10, ENDS)
    x = np.full((1500, 1), sign * blt.largest_total)
    coordinates = blt.encode(blt.init_encoder(1), x, 0)
    assert twin.encode(twin.init_encoder(1), x, 0).tobytes() == coordinates.tobytes()
    assert 0.999 * 2**62 < np.abs(coordinates).max() <= 2**62


@pytest.mark.parametrize("strategy", [Blt(*RUNNING, 30, ENDS), Identity(3)])
def test_totals_beyond_the_largest_are_clamped(strategy):
    most = strategy.largest_total
    x = np.array([[most + 1], [np.iinfo(np.int64).max], [np.iinfo(np.int64).min], [-most - 1]])
    clamped = np.array([[most], [most], [-most], [-most]])
    expected = strategy.encode(strategy.init_encoder(1), clamped, 0)
    assert expected.tolist() == strategy.encode(strategy.init_encoder(1), x, 0).tolist()


@given(filters(longest=62), st.integers(-20, 40), st.integers(1, 20), st.integers(0, 2**32))
@settings(max_examples=60)
def test_the_decoder_equals_plain_floats(buffers, bits, cells, seed):
    source = np.random.Generator(np.random.PCG64(seed))
    measured = source.integers(-(1 << 62), 1 << 62, (20, cells)) >> source.integers(0, 60)
    blt = PythonBlt(*buffers, bits, ENDS)
    expected = _decoded(blt, EVERY, measured)
    gaps, weights = (np.array([n / 2**64 for n in numbers]) for numbers in buffers)
    out = np.empty_like(measured, dtype=np.float64)
    states = np.zeros((len(gaps), cells))
    _kernels.decode(measured, states, gaps, weights, 2.0**-bits, out)
    assert expected[0].tobytes() == out.tobytes()
    if _largest(buffers, bits) >= 1:
        assert expected.tobytes() == _decoded(Blt(*buffers, bits, ENDS), EVERY, measured).tobytes()


def _decoded(strategy, views: Sequence[Decay], measured):
    out = np.full((len(views), *measured.shape), np.nan)
    state = strategy.init_decoder(views, measured.shape[1])
    strategy.decode(state, views, measured, 0, out)
    return out


@pytest.mark.parametrize("cells", [1, 7, 8, 600])
def test_decoding_many_cells_equals_plain_floats(cells):
    measured = np.random.Generator(np.random.PCG64(2)).integers(-(10**12), 10**12, (40, cells))
    expected = _decoded(PythonBlt(*RUNNING, 30, ENDS), EVERY, measured)
    assert expected.tobytes() == _decoded(Blt(*RUNNING, 30, ENDS), EVERY, measured).tobytes()


@pytest.mark.parametrize("view", EVERY, ids=lambda view: view.name)
def test_views_of_the_identity_equal_plain_floats(view):
    measured = np.random.Generator(np.random.PCG64(3)).integers(-(10**6), 10**6, (2500, 9))
    expected = [filtered(view, [float(v) / 8 for v in measured[:, i]]) for i in range(9)]
    assert np.array(expected).T.tobytes() == _decoded(Identity(3), [view], measured)[0].tobytes()


@given(filters(longest=40), st.integers(1, 31), st.integers(1, 15), st.integers(-20, 34), st.data())
@settings(max_examples=60, deadline=None)
def test_the_encoder_behind_a_comb_equals_big_integers(buffers, n, lag, bits, data):
    beta = Fraction(n, 32)
    if _largest(buffers, bits) < n + 32:
        return
    comb = Comb(*buffers, beta, lag, bits, ENDS)
    x = data.draw(streams(comb.largest_total))
    twin = PythonComb(*buffers, bits, ENDS, beta=beta, lag=lag)
    state, plain = comb.init_encoder(3), twin.init_encoder(3)
    for start, stop in ((0, len(x) // 2), (len(x) // 2, len(x))):
        block = np.ascontiguousarray(x[start:stop])
        expected = twin.encode(plain, block, start)
        assert expected.tobytes() == comb.encode(state, block, start).tobytes()
    for i, j in np.ndindex(3, len(comb.gaps)):
        high, low = (int(half) for half in state["encoder"][i, j])
        assert plain["states"][i, j] == (high << 64 | low) - (high >> 63 << 128)


@pytest.mark.parametrize("cells", [1, 7, 8, 40])
@pytest.mark.parametrize("lag", [1, 5, 29, 1000])
def test_the_decoder_behind_a_comb_equals_plain_floats(cells, lag):
    beta = Fraction(13, 32)
    v = np.random.Generator(np.random.PCG64(2)).integers(-(1 << 40), 1 << 40, (30, cells))
    comb = Comb(*RUNNING, beta, lag, 30, ENDS)
    twin = PythonComb(*RUNNING, 30, ENDS, beta=beta, lag=lag)
    one, other = (s.init_decoder(VIEWS, cells) for s in (comb, twin))
    for start, stop in ((0, 11), (11, 30)):
        a, b = (np.empty((len(VIEWS), stop - start, cells)) for _ in range(2))
        block = np.ascontiguousarray(v[start:stop])
        comb.decode(one, VIEWS, block, start, a)
        twin.decode(other, VIEWS, block, start, b)
        assert a.tobytes() == b.tobytes()


def test_totals_beyond_the_largest_are_clamped_before_the_comb():
    comb = Comb(*RUNNING, Fraction(1, 2), 1, 20, ENDS)
    huge = np.array([[1 << 62], [-(1 << 62)]])
    largest = np.sign(huge) * comb.largest_total
    one, other = (comb.encode(comb.init_encoder(1), x, 0) for x in (huge, largest))
    assert one.tobytes() == other.tobytes()
    assert np.abs(one).max() < 1 << 62
