"""Variances in closed form against impulse responses, and against 100 digits at a billion steps."""

import math
from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegauge.errors import InvalidParameter
from tidegauge.strategies.blt.buffers import UNIT
from tidegauge.strategies.blt.inverse import zeros
from tidegauge.strategies.blt.variance import (
    covariance_gain,
    covariance_limit,
    variance_gain,
    variance_limit,
)
from tidegauge.strategies.decay import (
    Custom,
    Difference,
    Exponential,
    Polynomial,
    Running,
    Step,
    Window,
)


def buffers(poles, ends):
    """Integers of C from the gaps of its poles and of its zeros, in between."""
    weights = []
    for i, pole in enumerate(poles):
        weight = 1.0
        for j, end in enumerate(ends):
            weight *= end - pole
            if j != i:
                weight /= poles[j] - pole
        weights.append(max(1, round(weight * UNIT)))
    return tuple(round(pole * UNIT) for pole in poles), tuple(weights)


PLAIN = buffers([1.9e-5, 5.2e-4, 1.03e-2, 0.184], [1.15e-4, 2.3e-3, 4.5e-2, 0.6])
TINY = buffers([1e-9, 1e-3], [2e-9, 0.9996])
MEETING = buffers([0.001, 0.0011], [0.00105, 0.5])
FAINT = buffers([0.3], [0.3001])
NONE = ((), ())
EVERY_C = {"plain": PLAIN, "tiny": TINY, "meeting": MEETING, "faint": FAINT, "none": NONE}


def impulse_of_inverse(gaps, weights, steps):
    """The decoder's answer to one unit, step by step: x = v - w q; q <- theta q + x."""
    gap = np.array([g / UNIT for g in gaps], dtype=np.longdouble)
    weight = np.array([w / UNIT for w in weights], dtype=np.longdouble)
    state = np.zeros(len(gaps), dtype=np.longdouble)
    answer = np.empty(steps, dtype=np.longdouble)
    for n in range(steps):
        answer[n] = (n == 0) - weight @ state
        state += answer[n] - gap * state
    return answer


def brute_force(gaps, weights, decay, steps):
    """sum of b_n^2 up to each step, from the impulse response through the view."""
    x = impulse_of_inverse(gaps, weights, steps)
    if isinstance(decay, Running | Window):
        b = np.cumsum(x)
        if isinstance(decay, Window) and decay.steps < steps:
            b[decay.steps :] -= b[: -decay.steps].copy()
    else:
        b = np.convolve(decay.weights(steps), x.astype(np.float64))[:steps]
    return np.cumsum(b * b).astype(np.float64)


def views_for(gaps, weights):
    """Views of every kind, with half-lives on top of, beside and far from each zero of C."""
    views = [
        Step(),
        Running(),
        Window(1),
        Window(24),
        Window(1500),
        Window(1 << 40),
        Exponential(half_life=24),
        Exponential(half_life=1e9),
        Exponential(half_life=0.05),
        Polynomial(0.5),
        Polynomial(2, reach=100),
        Custom([0, 1, -2, 3]),
        Custom(np.cos(np.arange(700))),
    ]
    for zero in zeros(gaps, weights):
        for aside in (0, 1e-12, 1e-6, 1e-4, -2e-3, 2e-3, 5e-3):
            gap = zero / 2**128 * (1 + aside)
            if 1e-12 < gap < 0.9999:
                views.append(Exponential(factor=1 - gap))
    return views


@pytest.mark.parametrize("name", EVERY_C)
def test_closed_forms_are_the_impulse_response(name):
    gaps, weights = EVERY_C[name]
    steps = np.unique(np.r_[1:30, 1499:1503, np.geomspace(1, 4096, 60).astype(int)])
    for view in views_for(gaps, weights):
        expected = brute_force(gaps, weights, view, 4096)[steps - 1]
        actual = variance_gain(gaps, weights, view, steps)
        np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-12, err_msg=view.name)


@given(
    st.lists(st.floats(0.02, 3), min_size=2, max_size=6).filter(lambda steps: len(steps) % 2 == 0),
    st.floats(-9, -1),
    st.sampled_from([Step(), Running(), Window(50), Exponential(half_life=9), Polynomial(1)]),
)
def test_closed_forms_hold_for_any_interlaced_c(logs, first, view):
    gaps = np.exp(first + np.cumsum(logs))
    gaps = gaps / max(1.0, gaps[-1] * 1.01)
    c = buffers(list(gaps[0::2]), list(gaps[1::2]))
    steps = np.arange(1, 300)
    expected = brute_force(*c, view, 300)[:-1]
    np.testing.assert_allclose(variance_gain(*c, view, steps), expected, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    "view",
    [Step(), Running(), Window(43200), Exponential(half_life=1e5), Custom([1, 2, 3])],
    ids=lambda view: view.name,
)
def test_closed_forms_are_the_impulse_response_over_a_million_steps(view):
    gaps, weights = PLAIN
    gap, weight = [g / UNIT for g in gaps], [w / UNIT for w in weights]
    q, x = [0.0] * 4, np.empty(1 << 20)
    for n in range(1 << 20):
        v = (n == 0) - math.fsum(a * b for a, b in zip(weight, q, strict=True))
        q = [s + (v - g * s) for s, g in zip(q, gap, strict=True)]
        x[n] = v
    if isinstance(view, Running | Window):
        b = np.cumsum(x)
        if isinstance(view, Window):
            b[view.steps :] -= b[: -view.steps].copy()
    elif isinstance(view, Exponential):
        b = np.empty(1 << 20)
        state = 0.0
        for n, value in enumerate(x.tolist()):
            state += value - view.gap * state
            b[n] = state
    else:
        b = np.convolve(view.taps, x)[: 1 << 20]
    steps = np.array([1, 1000, 43200, 43201, 500_000, 1 << 20])
    expected = np.cumsum(b * b)[steps - 1]
    np.testing.assert_allclose(variance_gain(*PLAIN, view, steps), expected, rtol=1e-6)


def in_many_digits(gaps, weights, poles_of_view, steps):
    """sum_(n<t) b_n^2 from residues in 100 digits; poles of the view moved aside by 1e-30."""
    with mpmath.workdps(100):
        g = [mpmath.mpf(v) / UNIT for v in gaps]
        w = [mpmath.mpf(v) / UNIT for v in weights]

        def secular(y):
            return 1 + sum(b / (a - y) for a, b in zip(g, w, strict=True))

        roots = []
        for low, high in zip(g, [*g[1:], mpmath.mpf(1)], strict=True):
            for _ in range(340):
                middle = (low + high) / 2
                low, high = (low, middle) if secular(middle) > 0 else (middle, high)
            roots.append((low + high) / 2)
        phi = [
            (mpmath.mpf(a) * (1 + mpmath.mpf(10) ** -30), mpmath.mpf(b)) for a, b in poles_of_view
        ]

        def inverse(y, skip=None):
            out = mpmath.mpf(1)
            for k, (a, z) in enumerate(zip(g, roots, strict=True)):
                out *= (a - y) / (1 if k == skip else z - y)
            return out

        terms = [(q, b * inverse(q)) for q, b in phi]
        for i, z in enumerate(roots):
            omega = -inverse(z, skip=i)
            terms.append((z, sum(b * omega / (z - q) for q, b in phi)))
        total = mpmath.mpf(0)
        for a, r in terms:
            for b, s in terms:
                pair = a + b - a * b
                power = steps if pair == 0 else (1 - (1 - pair) ** steps) / pair
                total += r * s * power
        return float(total)


@pytest.mark.parametrize("name", ["plain", "tiny", "meeting", "faint"])
@pytest.mark.parametrize("steps", [1 << 20, 10**9, 1 << 40])
def test_closed_forms_hold_at_a_billion_steps(name, steps):
    gaps, weights = EVERY_C[name]
    views = [Exponential(half_life=1e9), Exponential(half_life=1e5), Polynomial(1)]
    for zero in zeros(gaps, weights):
        gap = zero / 2**128
        beside = [gap * (1 + aside) for aside in (0, 1e-5, 2e-3)]
        views += [Exponential(factor=1 - gap) for gap in beside if gap < 0.9999]
    for view in views:
        expected = in_many_digits(gaps, weights, list(zip(*view.poles, strict=True)), steps)
        actual = variance_gain(gaps, weights, view, np.array([steps]))[0]
        assert actual == pytest.approx(expected, rel=1e-6), view
    running = in_many_digits(gaps, weights, [(0.0, 1.0)], steps)
    assert variance_gain(gaps, weights, Running(), np.array([steps]))[0] == pytest.approx(
        running, rel=1e-9
    )
    assert variance_gain(gaps, weights, Window(steps), np.array([steps]))[0] == pytest.approx(
        running, rel=1e-9
    )


@pytest.mark.parametrize("view", views_for(*PLAIN), ids=lambda view: view.name)
def test_the_limit_is_what_the_variance_grows_to(view):
    limit = variance_limit(*PLAIN, view)
    if isinstance(view, Running):
        assert limit == math.inf
    else:
        late = variance_gain(*PLAIN, view, np.array([1, 1000, 1 << 44]))
        assert late[2] == pytest.approx(limit, rel=1e-9)
        assert (late <= limit * (1 + 1e-9)).all()


def test_without_buffers_the_variance_is_that_of_the_weights():
    steps = np.arange(1, 50)
    for view in (Step(), Running(), Window(7), Exponential(half_life=3), Custom([1, 2])):
        expected = np.cumsum(view.weights(49) ** 2)
        np.testing.assert_allclose(variance_gain(*NONE, view, steps), expected, rtol=1e-12)


def test_the_shape_of_the_steps_is_kept():
    assert variance_gain(*PLAIN, Running(), np.array([[1, 2, 3]])).shape == (1, 3)
    assert variance_gain(*PLAIN, Running(), np.array(5)).shape == ()
    assert variance_gain(*PLAIN, Window(3), np.array([], dtype=np.int64)).shape == (0,)


def test_zeros_lie_between_the_poles():
    for gaps, weights in EVERY_C.values():
        found = zeros(gaps, weights)
        ends = [*(g << 64 for g in gaps[1:]), *[1 << 128] * bool(gaps)]
        assert all(g << 64 < z < e for g, z, e in zip(gaps, found, ends, strict=True))


def test_zeros_of_a_known_c_are_found():
    poles, ends = [0.001, 0.1], [0.01, 0.5]
    found = zeros(*buffers(poles, ends))
    np.testing.assert_allclose([z / 2**128 for z in found], ends, rtol=1e-14)


def test_steps_count_from_one():
    with pytest.raises(InvalidParameter, match="Count steps from 1"):
        variance_gain(*PLAIN, Step(), np.array([0]))


LAGS = (0, 1, 2, 23, 24, 25, 100, 699, 701, 1500, 4095, 5000)


def impulse_through(decay, x):
    if isinstance(decay, Running | Window):
        b = np.cumsum(x)
        if isinstance(decay, Window) and decay.steps < len(x):
            b[decay.steps :] -= b[: -decay.steps].copy()
        return b.astype(np.float64)
    return np.convolve(decay.weights(len(x)), x.astype(np.float64))[: len(x)]


@cache  # the same of every comb
def response(name, decay):
    """The answer to one unit of a view whose noise goes through 1 / C, of 4096 steps."""
    return impulse_through(decay, impulse_of_inverse(*EVERY_C[name], 4096))


def covariances(b, lag, steps):
    """sum_(k < t - lag) b_k b_(k + lag) at each step, from the response itself."""
    sums = np.r_[np.zeros(min(lag, len(b)) + 1), np.cumsum(b[: len(b) - lag] * b[lag:])]
    return sums[steps]


@pytest.mark.parametrize("name", EVERY_C)
def test_covariances_are_those_of_the_impulse_response(name):
    gaps, weights = EVERY_C[name]
    steps = np.unique(np.r_[1:30, 1499:1503, np.geomspace(1, 4096, 60).astype(int)])
    for view in views_for(gaps, weights):
        b = response(name, view)
        tolerance = 1e-6 * covariances(b, 0, steps).max()
        for lag in LAGS:
            expected = covariances(b, lag, steps) if lag < 4096 else np.zeros(len(steps))
            actual = covariance_gain(gaps, weights, view, steps, lag)
            np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=tolerance)
            assert (actual[steps <= lag] == 0).all()


@pytest.mark.parametrize("view", views_for(*PLAIN), ids=lambda view: view.name)
def test_the_limit_is_what_the_covariance_tends_to(view):
    for lag in (0, 1, 24, 1500, 1 << 30):
        limit = covariance_limit(*PLAIN, view, lag)
        if isinstance(view, Running):
            assert limit == math.inf
        else:
            late = covariance_gain(*PLAIN, view, np.array([1 << 45]), lag)[0]
            variance = variance_limit(*PLAIN, view)
            assert late == pytest.approx(limit, rel=1e-9, abs=1e-9 * variance)
            assert abs(limit) <= variance * (1 + 1e-9)


@pytest.mark.parametrize("lag", [-1, 0.5, True])
def test_a_lag_counts_back(lag):
    with pytest.raises(InvalidParameter, match="lag"):
        covariance_gain(*PLAIN, Step(), np.array([5]), lag)


def with_echoes(b, beta, lag):
    b = b.copy()
    for start in range(lag, len(b), lag):
        b[start : start + lag] += beta * b[start - lag : len(b) - lag][:lag]
    return b


@pytest.mark.parametrize("name", EVERY_C)
@pytest.mark.parametrize(
    "comb", [(Fraction(13, 32), 24), (Fraction(1, 32), 1), (Fraction(5, 8), 300)]
)
def test_with_a_comb_they_are_those_of_the_impulse_response_with_echoes(name, comb):
    gaps, weights = EVERY_C[name]
    steps = np.unique(np.r_[1:30, 299:303, 1499:1503, np.geomspace(1, 4096, 60).astype(int)])
    for view in views_for(gaps, weights):
        b = with_echoes(response(name, view), float(comb[0]), comb[1])
        tolerance = 1e-6 * covariances(b, 0, steps).max()
        for lag in (0, 1, 24, 700):
            expected = covariances(b, lag, steps)
            actual = covariance_gain(gaps, weights, view, steps, lag, comb)
            np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=tolerance)
        if not isinstance(view, Running):
            late = variance_gain(gaps, weights, view, np.array([1 << 45]), comb)[0]
            assert late == pytest.approx(variance_limit(gaps, weights, view, comb), rel=1e-9)


@pytest.mark.parametrize(
    "view",
    [
        Difference(Window(1000), 700),
        Difference(Window(700), 1000),
        Difference(Window(1000), 1000),
        Difference(Exponential(half_life=1e6), 1),
        Difference(Exponential(half_life=50), 2000),
        Difference(Polynomial(0.5), 24),
        Difference(Step(), 900),
        Difference(Custom((1.0, -2.0, 0.5)), 2),
    ],
    ids=lambda view: view.name,
)
def test_the_noise_of_a_change_loses_no_digits(view):
    steps, (gaps, weights) = 5000, PLAIN
    inverse = impulse_of_inverse(gaps, weights, steps)
    b = np.convolve(view.weights(steps), inverse)[:steps]
    gain = variance_gain(gaps, weights, view, np.arange(1, steps + 1))
    np.testing.assert_allclose(gain, np.cumsum(b**2), rtol=1e-7)
    assert variance_limit(gaps, weights, view) >= gain[-1] * (1 - 1e-12)
