"""Each compiled kernel against its plain-Python twin: equal results, lane by lane."""

from fractions import Fraction

import numpy as np
import pytest
from twins import noise as twins

from tidegauge.noise import _kernels
from tidegauge.noise.laplace import DiscreteLaplace


def random_words(law, n, seed):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 1 << 64, (n, 2 * law.words_each), dtype=np.uint64)


@pytest.mark.parametrize("law", twins.LAWS, ids=str)
def test_kernel_equals_its_plain_twin_on_random_words(law):
    words = random_words(law, 300, 1)
    assert twins.attempt(law, words) == twins.kernel_attempt(law, words)


@pytest.mark.parametrize("law", twins.LAWS, ids=str)
def test_kernel_equals_its_plain_twin_on_extreme_words(law):
    edges = np.array([0, 1, 1 << 23, (1 << 24) - 1, 1 << 63, (1 << 64) - 1], dtype=np.uint64)
    shape = 2 * law.words_each
    words = np.random.default_rng(2).choice(edges, (300, shape))
    assert twins.attempt(law, words) == twins.kernel_attempt(law, words)


@pytest.mark.parametrize("law", twins.LAWS, ids=str)
def test_kernel_adds_to_the_lanes_it_is_given_and_to_no_other(law):
    words = random_words(law, 50, 3)
    lanes = np.random.default_rng(4).permutation(200)[:50]
    values = np.arange(200)
    pending = np.empty(50, dtype=np.int64)
    count = law.attempt(words, values, 0, lanes, pending)
    left = pending[: abs(count)].tolist()
    expected = np.arange(200)
    for lane, draw in zip(lanes.tolist(), twins.attempt(law, words), strict=True):
        if isinstance(draw, int):
            expected[lane] += draw
        else:
            assert (lane if draw == "rejected" else -1 - lane) in left
    assert expected.tolist() == values.tolist()


def words_near_thresholds(law):
    """All that decides a symbol: each threshold and each end of a margin, one below, one above."""
    _, tables, _ = law._tables
    rows = []
    for d in range(law.digits + 1):
        ends = (np.arange(256) << 24) + int(law._margins[d])
        near = np.concatenate([np.unique(tables[d]).astype(np.int64), ends])
        near = np.unique(near[:, None] + [-1, 0, 1])
        near = near[(near >= 0) & (near < 1 << 32)]
        words = np.full((len(near), 4 * law.words_each), 0xABCD1234, np.uint32)
        words[:, d + 1] = near
        rows.append(words)
    return np.concatenate(rows).view(np.uint64)


LAPLACES = [law for law in twins.LAWS if isinstance(law, DiscreteLaplace)]
FLAT = DiscreteLaplace(Fraction(5 << 42, 3))
"""Four digits of it are nearly uniform."""


@pytest.mark.parametrize("law", [*LAPLACES, FLAT], ids=str)
def test_symbols_change_at_their_thresholds_and_nowhere_else(law):
    words = words_near_thresholds(law)
    assert twins.attempt(law, words) == twins.kernel_attempt(law, words)


def test_a_margin_one_too_small_would_be_noticed(monkeypatch):
    assert FLAT._margins.tolist()[:4] == sorted(FLAT._margins.tolist()[:4])
    assert FLAT._margins[3] < 1 << 20
    words = words_near_thresholds(FLAT)
    expected = twins.attempt(FLAT, words)
    for digit in range(1, 4):
        mutant = FLAT._margins.copy()
        mutant[digit] -= 1
        monkeypatch.setitem(FLAT.__dict__, "_margins", mutant)
        assert twins.kernel_attempt(FLAT, words) != expected


@pytest.mark.parametrize("blocks", [1, 2])
def test_numbers_of_a_range_and_of_a_list_equal_the_twin(blocks):
    coordinates = np.array([0, 64, (1 << 44) - 1, 5])
    lanes = np.arange(3, 25)
    inputs = np.empty((22 * blocks, 2), dtype=np.uint64)
    _kernels.number_range(coordinates, np.arange(7), 3, 25, blocks, inputs)
    assert twins.number_lanes(coordinates, 7, lanes.tolist(), 0, blocks) == inputs.tolist()
    some = lanes[::-3].copy()
    inputs = np.empty((len(some) * blocks, 2), dtype=np.uint64)
    _kernels.number_lanes(coordinates, np.arange(7), some, 65535, blocks, inputs)
    assert twins.number_lanes(coordinates, 7, some.tolist(), 65535, blocks) == inputs.tolist()


def test_end_of_a_key_range_equals_the_twin():
    rng = np.random.default_rng(5)
    for _ in range(20):
        cells = np.sort(rng.integers(0, 3000, 4000))
        high = np.sort(rng.integers(0, 3, 4000)) << 37
        inputs = np.stack([cells, high], axis=1).astype(np.uint64)
        start = int(rng.integers(0, 4000))
        expected = twins.same_key_until(inputs.tolist(), start, 11, 18)
        assert expected == _kernels.same_key_until(inputs, start, 11, 18)


def test_fixed_point_exponential_errs_by_less_than_the_proof_allows():
    import mpmath

    for x in [0, 1, *np.random.default_rng(6).integers(0, (1 << 64) // 7, 500).tolist()]:
        with mpmath.workdps(60):
            exact = mpmath.mpf(2) ** 64 * mpmath.exp(-mpmath.mpf(x) / 2**64)
            assert abs(exact - int(_kernels.exp_minus(np.uint64(x)))) < 1 << 15
