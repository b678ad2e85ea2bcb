"""The figures of the systems of Cardoso and Rogers, worked out by hand, to the printed digits."""

import math
from fractions import Fraction

import numpy as np
import pytest

from tidegauge import ZCDP, ApproxDP, GaussianDP, UnsupportedCombination
from tidegauge.papers.cardoso_rogers import (
    BaseMech,
    KnownBase,
    KnownGumb,
    MetaAlgo,
    SparseGumb,
    SparseNoise,
    UnkGauss,
    UnkGumb,
    best_base,
)
from tidegauge.papers.cardoso_rogers.accounting import (
    budget_of,
    constant_quantile,
    item_rho,
    sparse_rho,
    worst_quantile,
)
from tidegauge.papers.cardoso_rogers.digits import digit_sum, level_count, steps_by_digit_sum
from tidegauge.strategies.blocks import Blocks
from tidegauge.strategies.decay import Running


@pytest.mark.parametrize(
    ("end", "base", "last", "worst", "mean"),
    [
        (255, 2, 8.0, 8.0, 32.1255),
        (255, 3, 4.242641, 7.745967, 29.5059),
        (255, 4, 6.928203, 6.928203, 24.0941),
        (255, 5, 3.464102, 7.211103, 25.8510),
        (1000, 2, None, 9.486833, 49.38),
        (1000, 3, None, 9.165151, None),
        (1000, 4, None, 8.366600, 37.01),
        (1000, 5, None, 8.944272, None),
        (1000, 10, None, 10.392305, None),
    ],
)
def test_noise_of_running_sums_at_rho_one_half(end, base, last, worst, mean):
    system = BaseMech(base, end, ZCDP(Fraction(1, 2)))
    stds = np.array([system.noise_std(step) for step in range(1, end + 1)])
    assert worst == pytest.approx(stds.max(), abs=5.1e-7)
    if last is not None:
        assert last == pytest.approx(stds[-1], abs=5.1e-7)
    if mean is not None:
        digits = 4 if end == 255 else 2
        assert mean == pytest.approx((stds**2).mean(), abs=0.51 * 10**-digits)


@pytest.mark.parametrize(
    ("end", "base", "rows", "longest", "columns"),
    [(255, 2, 502, 8, 128), (255, 3, 381, 6, 243), (256, 2, 511, 9, 256), (1000, 5, 1249, 5, 625)],
)
def test_the_strategy_matrix(end, base, rows, longest, columns):
    strategy = Blocks.base(base, end)
    encoder, decoder = strategy.encoder_matrix(end), strategy.decoder_matrix(Running(), end)
    squares = (encoder**2).sum(axis=0)
    assert rows == len(encoder)
    assert longest == squares.max() == level_count(base, end)
    assert columns == (squares == longest).sum()
    np.testing.assert_allclose(decoder @ encoder, np.tri(end), atol=1e-9)


def test_the_level_that_the_paper_does_not_count():
    # at t = T = 2^20 the top digit is the 21st
    assert (20, 21) == (level_count(2, 2**20 - 1), level_count(2, 2**20))
    assert 4 == level_count(10, 1000) > int(math.log(1000, 10)) + 1


@pytest.mark.parametrize(
    ("end", "base", "ratio"),
    [
        (255, 4, 0.8660),
        (256, 7, 0.8165),
        (1000, 4, None),
        (1024, 6, 0.8131),
        (10**4, 5, 0.8571),
        (10**5, 7, 0.8645),
        (10**6, 4, 0.8660),
        (10**7, 6, 0.8385),
        (10**9, 4, 0.8660),
    ],
)
def test_the_best_base(end, base, ratio):
    assert base == best_base(end)
    if ratio is not None:
        found = math.sqrt(base - 1) * level_count(base, end) / level_count(2, end)
        assert ratio == pytest.approx(found, abs=5.1e-5)


@pytest.mark.parametrize("base", [2, 3, 10])
def test_steps_are_counted_by_digit_sum(base):
    for end in (1, 9, 10, 81, 100, 999):
        found = np.bincount([digit_sum(base, step) for step in range(1, end + 1)])
        assert tuple(found.tolist()) == steps_by_digit_sum(base, end)


@pytest.mark.parametrize(
    ("end", "max_items", "naive", "digit_sums"),
    [
        (1000, 1, 17.993421, 15.752605),
        (10**6, 1, 30.662604, 25.512781),
        (1000, 5, 18.762083, 16.545305),
    ],
)
def test_thresholds_of_unk_base(end, max_items, naive, digit_sums):
    chance = Fraction(1, 10**6) / max_items
    assert naive == pytest.approx(float(worst_quantile(2, end, chance)), abs=5.1e-7)
    assert digit_sums == pytest.approx(float(constant_quantile(2, end, chance)), abs=5.1e-7)


def test_the_union_bound_of_256_steps():
    assert 10.312 == pytest.approx(float(constant_quantile(2, 256, Fraction(1, 1000))), abs=5.1e-4)


@pytest.mark.parametrize(
    ("algorithm", "offset"),
    [
        (UnkGauss(1, max_items=1, delta=1e-6, kbar=10), 7.722357),
        (UnkGauss(1, max_items=5, delta=1e-6, kbar=10), 8.168589),
        (UnkGauss(1, max_items=1, delta=1e-6), 5.753424),
        (UnkGauss(1, max_items=5, delta=1e-6), 6.068958),
        (UnkGumb(1, k=1, kbar=1, delta=1e-6), 7.907755),
        (UnkGumb(1, k=1, kbar=10, delta=1e-6), 9.059048),
    ],
    ids=repr,
)
def test_offsets_of_one_shot_thresholds(algorithm, offset):
    assert offset == pytest.approx(float(algorithm.offset), abs=5.1e-7)


def test_costs():
    assert Fraction(3, 20) == item_rho(2, 1000, 3, Fraction(10))
    assert ZCDP(0.5) == MetaAlgo(KnownGumb(10, k=5), 2, 1000, items=list("abcdefg")).cost
    names = [f"item {i}" for i in range(60)]
    noise = SparseNoise(50, 100, 0.05)
    assert ZCDP(0.051) == SparseGumb(names, 5, 2, 1000, switches=10, noise=noise).cost
    parts = [0.011, 0.0275, 0.0125]
    whole = sparse_rho(2, 1000, 5, 10, Fraction(50), Fraction(100), Fraction(1, 20))
    assert sum(parts) == pytest.approx(float(whole), abs=1e-15)


def test_known_base_has_the_noise_that_its_cost_pays_for():
    system = KnownBase(list("abcdef"), 2, 1000, ZCDP(0.15), max_items=3)
    assert 10 == pytest.approx(system.noise_std(1), rel=1e-6)
    replaced = KnownBase(
        list("abcdef"), 2, 1000, ZCDP(0.15), max_items=3, neighboring_relation="replace_one"
    )
    assert 10 * math.sqrt(2) == pytest.approx(replaced.noise_std(1), rel=1e-6)


def test_rho_of_epsilon_1_and_delta_1e_6():
    log = math.log(1e6)
    printed = (math.sqrt(log + 1) - math.sqrt(log)) ** 2  # rho + 2 sqrt(rho ln 1/delta) = 1
    assert 0.017468904769 == pytest.approx(printed, abs=5.1e-13)
    promise = ApproxDP(1, 1e-6)
    best = budget_of(promise, gaussian=False, unknown=False).rho
    gaussian = budget_of(promise, gaussian=True, unknown=False).rho
    assert printed < best < gaussian
    assert 0.0280145 == pytest.approx(float(gaussian), abs=5.1e-8)


def test_the_five_per_cent_of_the_asymptotic_base():
    ratio = math.sqrt((4.92 - 1) / math.log(4.92) ** 2 / (1 / math.log(2) ** 2))
    assert 0.861 == pytest.approx(ratio, abs=6e-4)


@pytest.mark.parametrize("gaussian", [True, False])
def test_guarantees_that_cannot_be_met_are_refused(gaussian):
    from tidegauge import PureDP

    with pytest.raises(UnsupportedCombination, match="pure"):
        budget_of(PureDP(1), gaussian=gaussian, unknown=False)
    for promise in (PureDP(1), ZCDP(1), GaussianDP(1)):
        with pytest.raises(UnsupportedCombination, match="ApproxDP for unknown items"):
            budget_of(promise, gaussian=gaussian, unknown=True)
    with pytest.raises(UnsupportedCombination):
        budget_of(GaussianDP(1), gaussian=False, unknown=False)
    assert Fraction(1, 2) == budget_of(GaussianDP(1), gaussian=True, unknown=False).rho
