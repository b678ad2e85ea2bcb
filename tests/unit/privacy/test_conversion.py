"""Conversions against 60 digits of mpmath, against dp_accounting, and from both sides."""

import math
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist

import mpmath as mp
import pytest
from dp_accounting.pld.privacy_loss_mechanism import GaussianPrivacyLoss
from hypothesis import given
from hypothesis import strategies as st

import tidegauge
from tidegauge.errors import InvalidParameter
from tidegauge.privacy.conversion import (
    epsilon_from_mu,
    epsilon_from_rho,
    gaussian_delta,
    mu_from_epsilon_delta,
    mu_from_pure,
    mu_from_rho,
    odds_exceeded,
    pure_from_mu,
    rho_from_bounded_range,
    rho_from_epsilon_delta,
    rho_from_mu_squared,
    rho_from_pure,
)
from tidegauge.privacy.curve import log_gaussian_delta
from tidegauge.privacy.guarantee import ZCDP, ApproxDP, GaussianDP, PureDP
from tidegauge.privacy.k_events import k_event_table
from tidegauge.privacy.rounding import ceil_decimal, sqrt_down, sqrt_up

EPSILONS = [1e-6, 1e-3, 0.1, 1, 10, 100]
DELTAS = [0.999, 0.5, 1e-3, 1e-12, 1e-15, 1e-300]


def log_delta(mu, epsilon, tail=1):
    """ln of the printed formula, with enough digits to survive its cancellation."""
    with mp.workdps(360):
        mu, epsilon = (
            mp.mpf(Fraction(v).numerator) / Fraction(v).denominator for v in (mu, epsilon)
        )
        upper = mp.erfc((epsilon / mu - mu / 2) / mp.sqrt(2)) / 2
        lower = mp.exp(epsilon) * mp.erfc((epsilon / mu + mu / 2) / mp.sqrt(2)) / 2
        return mp.log(upper - tail * lower)


@pytest.mark.parametrize("mu", [1e-8, 1e-4, 0.01, 0.3, 1, 3, 10, 100])
def test_the_exact_curve_has_thirteen_digits_everywhere(mu):
    for epsilon in [0.0, *EPSILONS]:
        if epsilon / mu < 1e4:
            expected = log_delta(mu, epsilon)
            actual = log_gaussian_delta(mu, epsilon)
            assert abs(actual - expected) <= 1e-13 * (1 + abs(expected))


def test_the_curve_agrees_with_dp_accounting():
    for mu, epsilon in [(0.2, 1.0), (1.0, 1.0), (1.0, 4.0), (3.0, 2.0)]:
        expected = GaussianPrivacyLoss(1 / mu).get_delta_for_epsilon(epsilon)
        assert gaussian_delta(mu, epsilon) == pytest.approx(expected, rel=1e-9)


def tail(x):
    return mp.erfc(x / mp.sqrt(2)) / 2


@pytest.mark.parametrize("mu", [0.001, 0.182, 1, 3, 30])
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1, 4, 20])
def test_the_probability_that_odds_change_further_is_safe_and_nearly_exact(mu, epsilon):
    with mp.workdps(60):
        m, eps = mp.mpf(repr(mu)), mp.mpf(repr(epsilon))

        def too_likely(a):
            return tail(a) > mp.exp(eps) * tail(a + m)

        low, high = mp.mpf(-40), eps / m + 1
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (low, middle) if too_likely(middle) else (middle, high)
        exact = tail(low) * (1 + mp.exp(-eps))
        found = odds_exceeded(mu, epsilon)
        found = mp.mpf(found.numerator) / found.denominator
        assert min(exact, 1) <= found
        if low > -4.9:
            assert found <= max(exact * (1 + mp.mpf("1e-5")), mp.mpf("1e-320"))


def test_one_bit_of_a_gaussian_release_changes_odds_more_often_than_its_loss_exceeds_epsilon():
    mu, epsilon = 0.181974807283, 1.0  # (1, 1e-9)-DP
    tail_of_loss = NormalDist().cdf(mu / 2 - epsilon / mu)
    cut = 5.2277  # the bit: whether a draw of N(mu, 1) or of N(0, 1) lies beyond cut + mu
    often, seldom = NormalDist().cdf(-cut), NormalDist().cdf(-cut - mu)
    assert often > math.exp(epsilon) * seldom
    assert 2 * tail_of_loss < often <= odds_exceeded(mu, epsilon)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
def test_the_largest_mu_is_safe_and_nearly_the_largest(epsilon, delta):
    mu = mu_from_epsilon_delta(epsilon, delta)
    goal = mp.log(mp.mpf(Fraction(repr(delta)).numerator) / Fraction(repr(delta)).denominator)
    assert log_delta(mu, epsilon) <= goal
    assert log_delta(mu * (1 + Fraction(1, 10**7)), epsilon) > goal


@pytest.mark.parametrize("mu", [0.01, 0.18, 1, 6])
@pytest.mark.parametrize("delta", DELTAS)
def test_the_least_epsilon_is_safe_and_nearly_the_least(mu, delta):
    epsilon = epsilon_from_mu(mu, delta)
    if epsilon == 0:
        assert log_delta(mu, 0) <= mp.log(delta)
        return
    assert log_delta(mu, epsilon) <= mp.log(delta)
    assert log_delta(mu, epsilon * (1 - Fraction(1, 10**6))) > mp.log(delta)


def test_a_curve_without_its_second_term_is_told_from_the_true_one():
    assert log_delta(1, 1, tail=0) - log_delta(1, 1) > 0.5


@given(epsilon=st.floats(1e-6, 100), log10_delta=st.floats(-300, -0.1))
def test_there_and_back_never_claims_less_than_was_spent(epsilon, log10_delta):
    delta = 10**log10_delta
    back = epsilon_from_mu(mu_from_epsilon_delta(epsilon, delta), delta)
    assert back <= ceil_decimal(epsilon)  # the twelve digits that a claim is rounded up to


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 0.5, 1, 1.999, 2, 2.001, 10, 100, 800])
def test_pure_dp_as_gaussian_dp_is_attained_by_randomised_response(epsilon):
    mu = mu_from_pure(epsilon)
    with mp.workdps(40):
        half = mp.mpf(mu.numerator) / mu.denominator / 2
        odds = mp.erfc(-half / mp.sqrt(2)) / mp.erfc(half / mp.sqrt(2))
        eps = mp.mpf(Fraction(repr(epsilon)).numerator) / Fraction(repr(epsilon)).denominator
        assert eps <= mp.log(odds) <= eps * (1 + mp.mpf(10) ** -10)
    assert pure_from_mu(mu) <= Fraction(repr(epsilon)) * (1 + Fraction(1, 10**10))
    assert mu_from_pure(pure_from_mu(mu)) <= mu * (1 + Fraction(1, 10**10))


def test_pure_dp_is_not_gaussian_dp_of_the_same_number():
    # Randomised response at epsilon 1 has a total variation of 0.462; 1-GDP allows 0.383.
    total_variation = (math.e - 1) / (math.e + 1)
    assert gaussian_delta(1, 0) < total_variation
    assert gaussian_delta(mu_from_pure(1), 0) == pytest.approx(total_variation, rel=1e-9)


def test_rho_of_one_gauge():
    assert Fraction(1, 2) == rho_from_mu_squared(1)
    assert Fraction(1, 2) == rho_from_pure(1)
    assert Fraction(1, 8) == rho_from_bounded_range(1)
    assert mu_from_rho(0.5) == 1
    assert 0 < 2 - mu_from_rho(1) ** 2 < Fraction(1, 10**15)


def every_epsilon(rho, delta, points=4000):
    """The conversion at many orders alpha, none of which may beat the claim by much."""
    for i in range(1, points):
        gap = math.exp(-15 + 40 * i / points)
        yield (1 + gap) * rho - (math.log1p(gap) + math.log(delta)) / gap - math.log1p(1 / gap)


@pytest.mark.parametrize("rho", [1e-8, 1e-3, 0.5, 5, 200])
@pytest.mark.parametrize("delta", DELTAS)
def test_zcdp_is_converted_at_the_best_order(rho, delta):
    claim = float(epsilon_from_rho(rho, delta))
    best = max(0.0, min(every_epsilon(rho, delta)))
    assert claim == pytest.approx(best, rel=1e-4, abs=1e-9)
    assert claim >= float(epsilon_from_mu(math.sqrt(2 * rho), delta))


def test_zcdp_conversion_beats_the_simple_one():
    for rho, delta in [(0.01, 1e-9), (0.5, 1e-9), (3, 1e-6)]:
        assert epsilon_from_rho(rho, delta) < rho + 2 * math.sqrt(rho * math.log(1 / delta))


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
def test_the_largest_rho_is_safe(epsilon, delta):
    rho = rho_from_epsilon_delta(epsilon, delta)
    assert epsilon_from_rho(rho, delta) <= Fraction(repr(epsilon) if epsilon < 1 else epsilon)
    assert rho <= rho_from_mu_squared(mu_from_epsilon_delta(epsilon, delta) ** 2) * (
        1 + Fraction(1, 10**6)
    )


@given(st.fractions(min_value=0, max_value=10**6))
def test_roots_are_on_their_sides(value):
    assert sqrt_down(value) ** 2 <= value <= sqrt_up(value) ** 2
    assert sqrt_up(value) - sqrt_down(value) <= sqrt_up(value) / 2**62
    assert value == sqrt_down(value**2) == sqrt_up(value**2)


def test_a_negative_root_is_refused():
    with pytest.raises(InvalidParameter, match="square root"):
        sqrt_up(Fraction(-1))


def test_k_events_follow_the_exact_curve():
    rows = k_event_table(GaussianDP(0.1), 1e-9)
    assert tuple(row.events for row in rows) == (2, 5, 10, 20, 50)
    for row in rows:
        assert log_delta(row.events * Fraction(1, 10), row.epsilon) <= mp.log(1e-9)
    assert rows[2].epsilon == epsilon_from_mu(1, 1e-9)
    # far from "k times epsilon": at 50 events the exact curve, not 50 times the epsilon of one
    assert rows[4].epsilon > 50 * epsilon_from_mu(0.1, 1e-9) / 2


def test_k_events_of_other_guarantees():
    assert [(2, 1, 0), (3, Fraction(3, 2), 0)] == [
        (row.events, row.epsilon, row.delta) for row in k_event_table(PureDP(0.5), 1e-9, (2, 3))
    ]
    (row,) = k_event_table(ZCDP(0.01), 1e-9, (3,))
    assert row.epsilon == epsilon_from_rho(0.09, 1e-9)
    (row,) = k_event_table(ApproxDP(1, 1e-9), 1e-9, (3,))
    assert row.epsilon == 3
    expected = 1e-9 * (1 + math.e + math.e**2)  # group privacy, term by term
    assert expected <= row.delta <= expected * (1 + 1e-6)
    (row,) = k_event_table(ApproxDP(1, 1e-9), 1e-9, (1000,))
    assert row.delta == 1


@pytest.mark.parametrize("ks", [(0,), (-1,), (1.5,), (True,)])
def test_an_impossible_number_of_events_is_refused(ks):
    with pytest.raises(InvalidParameter, match="ks"):
        k_event_table(PureDP(1), 1e-9, ks)


def test_conversions_need_neither_numpy_nor_scipy():
    code = (
        "import sys, tidegauge.privacy.statement, tidegauge.privacy.ledger as ledger;"
        "from tidegauge.privacy.conversion import mu_from_epsilon_delta as m; m(1, 1e-9);"
        "print([n for n in ('numpy', 'scipy', 'numba') if n in sys.modules])"
    )
    source = Path(tidegauge.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(source)},
    )
    assert done.stdout.strip() == "[]"
