"""Private thresholds in the ledger: set apart, added up, recomputed by a stranger."""

import math
from fractions import Fraction

import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.pld.pld_privacy_accountant import PLDAccountant

from tidegauge.errors import BudgetExceeded, InvalidParameter
from tidegauge.privacy.conversion import epsilon_from_mu, gaussian_delta, mu_from_epsilon_delta
from tidegauge.privacy.costs import (
    Currency,
    GaussianCost,
    PureCost,
    ThresholdCost,
    ZCDPCost,
    price,
)
from tidegauge.privacy.guarantee import ZCDP, ApproxDP, GaussianDP, PureDP
from tidegauge.privacy.k_events import k_event_table
from tidegauge.privacy.ledger import Ledger

WHOLE = ApproxDP(1, Fraction(1, 10**9))
APART = ApproxDP(Fraction(1, 2), Fraction(1, 2 * 10**9))
COST = ThresholdCost(APART.epsilon, APART.delta)


def ledger_of(kind=GaussianCost):
    ledger = Ledger(WHOLE, thresholds=APART)
    (cost,) = ledger.split([1], kind)
    ledger.charge({"spend": cost, "spend, threshold": COST})
    return ledger


def test_noise_is_made_for_what_is_left():
    ledger = ledger_of()
    assert ApproxDP(Fraction(1, 2), Fraction(1, 2 * 10**9)) == ledger.noise
    mu = mu_from_epsilon_delta(Fraction(1, 2), Fraction(1, 2 * 10**9))
    assert mu**2 == ledger.charges[0].cost.mu_squared
    assert (0, WHOLE) == (ledger.left, ledger.total())
    assert Currency.MU_SQUARED is ledger.currency


@pytest.mark.parametrize("kind", [GaussianCost, ZCDPCost, PureCost])
def test_the_total_stays_within_the_promise_and_grows_with_releases(kind):
    ledger = ledger_of(kind)
    one, two = ledger.total(), ledger.total(2)
    assert one.epsilon <= WHOLE.epsilon
    assert one.delta <= WHOLE.delta
    assert two.delta == ledger.noise.delta + 2 * APART.delta
    assert one.epsilon + APART.epsilon < two.epsilon


def test_what_two_releases_spend_on_noise_is_read_at_its_own_delta():
    ledger = ledger_of()
    mu = math.sqrt(2) * float(ledger.charges[0].cost.mu)
    expected = float(epsilon_from_mu(Fraction(repr(mu)), ledger.noise.delta)) + 1
    assert float(ledger.total(2).epsilon) == pytest.approx(expected, rel=1e-6)


def test_a_threshold_that_nothing_was_set_apart_for_is_refused():
    """The twin that forgets its delta: a plain ledger, or one with another part."""
    for ledger, cost in (
        (Ledger(WHOLE), COST),
        (Ledger(GaussianDP(1)), COST),
        (Ledger(WHOLE, thresholds=APART), ThresholdCost(APART.epsilon, 2 * APART.delta)),
        (Ledger(WHOLE, thresholds=APART), ThresholdCost(2 * APART.epsilon, APART.delta)),
    ):
        with pytest.raises(BudgetExceeded, match="set apart"):
            ledger.charge({"spend, threshold": cost})
        assert () == ledger.charges
    ledger = ledger_of()
    with pytest.raises(BudgetExceeded, match="set apart"):
        ledger.charge({"again": COST})


@pytest.mark.parametrize("guarantee", [PureDP(1), ZCDP(1), GaussianDP(1), APART])
def test_nothing_can_be_set_apart_of_what_has_no_such_part(guarantee):
    with pytest.raises(InvalidParameter, match="part of each"):
        Ledger(guarantee, thresholds=APART)
    with pytest.raises(InvalidParameter, match="part of each"):
        Ledger(WHOLE, delta_for_names=Fraction(1, 10**10), thresholds=APART)


@pytest.mark.parametrize(
    ("cost", "needed", "most"),
    [
        (ThresholdCost(APART.epsilon, 2 * APART.delta), 2 * APART.delta, APART.delta),
        (ThresholdCost(2 * APART.epsilon, APART.delta), 2 * APART.epsilon, APART.epsilon),
    ],
)
def test_a_refusal_gives_the_numbers_of_what_is_exceeded(cost, needed, most):
    with pytest.raises(BudgetExceeded) as refused:
        Ledger(WHOLE, thresholds=APART).charge({"spend, threshold": cost})
    assert (needed, most, most) == (
        refused.value.needed,
        refused.value.left,
        refused.value.total,
    )


def test_a_threshold_alone_settles_no_currency_and_is_not_for_free():
    ledger = Ledger(WHOLE, thresholds=APART)
    assert ledger.total() is None
    ledger.charge({"spend, threshold": COST})
    assert (None, APART) == (ledger.currency, ledger.total())
    assert ApproxDP(3 * APART.epsilon, 3 * APART.delta) == ledger.total(3)
    assert price(COST, Currency.RHO) == price(COST, Currency.EPSILON) == 0


def test_a_stranger_recomputes_less_than_is_claimed():
    """Both parameters add up; the exact composition of randomised response and noise is below."""
    accountant = PLDAccountant()
    for fields in ledger_of().events()["events"]:
        values = {k: v for k, v in fields.items() if k not in ("module_name", "class_name")}
        accountant.compose(getattr(dp_event, fields["class_name"])(**values))
    epsilon = accountant.get_epsilon(float(WHOLE.delta - APART.delta))
    assert 0.95 < epsilon <= 1


def hockey_stick(mu, epsilon, apart):
    """The exact delta of noise beside the worst threshold, up to the threshold's own delta."""
    heads = 1 / (1 + math.exp(-apart))
    return heads * gaussian_delta(Fraction(mu), Fraction(epsilon - apart)) + (1 - heads) * (
        gaussian_delta(Fraction(mu), Fraction(epsilon + apart))
    )


def test_the_sum_of_both_is_on_the_safe_side_and_a_threshold_for_free_is_not():
    mu = float(ledger_of().charges[0].cost.mu)
    exactly = hockey_stick(mu, 1.0, 0.5)
    assert float(APART.delta) / 2 < exactly <= float(APART.delta)
    whole = float(mu_from_epsilon_delta(WHOLE.epsilon, WHOLE.delta))  # the paper's: disjoint
    assert hockey_stick(whole, 1.0, 0.5) > 1000 * float(WHOLE.delta)


def test_several_units_pay_for_both():
    mu = Fraction(1, 10)
    noise = k_event_table(GaussianDP(mu), APART.delta, (1, 3))
    drawn = k_event_table(APART, APART.delta, (1, 3))
    both = k_event_table(GaussianDP(mu), APART.delta, (1, 3), thresholds=APART)
    for a, b, c in zip(noise, drawn, both, strict=True):
        assert (a.epsilon + b.epsilon, a.delta + b.delta) == (c.epsilon, c.delta)
    group = sum(math.exp(0.5 * j) for j in range(3))
    assert float(drawn[1].delta / APART.delta) == pytest.approx(group, rel=1e-6)
    assert 3 * APART.epsilon == drawn[1].epsilon


def test_adaptive_noise_beside_a_threshold_stays_within_the_sum():
    """A clip that decides which noise follows: exact, by enumeration of a small mechanism.

    A bit is told by randomised response at e; then noise of mu_1 or mu_2 <= mu follows, chosen from
    the answer. The hockey-stick divergence at e + epsilon is below delta(mu, epsilon).
    """
    e, epsilon, mu = 0.5, 0.5, 0.4
    heads = 1 / (1 + math.exp(-e))
    allowed = gaussian_delta(Fraction(mu), Fraction(epsilon))
    for first in np.linspace(0.05, mu, 8):
        for second in np.linspace(0.05, mu, 8):
            found = heads * gaussian_delta(Fraction(first), Fraction(epsilon))
            found += (1 - heads) * gaussian_delta(Fraction(second), Fraction(epsilon + 2 * e))
            assert found <= allowed


def test_names_come_on_top_of_noise_of_every_kind_and_thresholds_too():
    names = Fraction(1, 10**10)
    for kind in (GaussianCost, PureCost):
        ledger = Ledger(WHOLE, delta_for_names=names)
        ledger.charge({"spend": ledger.split([2, 3], kind)[0]})
        assert isinstance(ledger.spent_on_noise(), GaussianDP)
        assert (WHOLE.delta, 2 * WHOLE.delta) == (ledger.total().delta, ledger.total(2).delta)
        assert ledger.total().epsilon < WHOLE.epsilon
    ledger = ledger_of()
    assert GaussianDP(mu_from_epsilon_delta(ledger.noise.epsilon, ledger.noise.delta)) == (
        ledger.spent_on_noise()
    )
