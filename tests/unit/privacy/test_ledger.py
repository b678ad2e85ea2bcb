"""The ledger: exact at the edges, all or nothing, and readable by a stranger's accountant."""

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.pld.pld_privacy_accountant import PLDAccountant
from hypothesis import given
from hypothesis import strategies as st

from tidegauge.errors import BudgetExceeded, InvalidParameter, UnsupportedCombination
from tidegauge.privacy import ledger as ledger_module
from tidegauge.privacy.conversion import (
    epsilon_from_mu,
    epsilon_from_rho,
    gaussian_delta,
    mu_from_epsilon_delta,
    mu_from_pure,
    rho_from_epsilon_delta,
)
from tidegauge.privacy.costs import Currency, GaussianCost, PureCost
from tidegauge.privacy.guarantee import ZCDP, ApproxDP, GaussianDP, PureDP
from tidegauge.privacy.ledger import Ledger

GUARANTEES = [PureDP(1), ZCDP(0.5), GaussianDP(1), ApproxDP(1, 1e-9)]
PAYABLE = [
    (guarantee, kind)
    for guarantee in GUARANTEES
    for kind in (GaussianCost, PureCost)
    if not (isinstance(guarantee, PureDP) and kind is GaussianCost)
]


def charge_all(ledger, costs):
    ledger.charge({f"gauge {i}": cost for i, cost in enumerate(costs)})


def facts(ledger):
    return ledger.charges, ledger.currency, ledger.left, ledger.total(), ledger.events()


@pytest.mark.parametrize(("guarantee", "kind"), PAYABLE)
def test_ten_weights_of_a_tenth_spend_the_whole_guarantee_and_nothing_more(guarantee, kind):
    ledger = Ledger(guarantee)
    charge_all(ledger, ledger.split([0.1] * 10, kind))
    exact = kind is GaussianCost or ledger.currency is Currency.EPSILON
    assert ledger.left == 0 if exact else 0 <= ledger.left < Fraction(1, 10**10)
    before = facts(ledger)
    with pytest.raises(BudgetExceeded):
        ledger.charge({"one more": kind(Fraction(1, 1000))})
    assert before == facts(ledger)


def test_ten_tenths_of_pure_epsilon_are_one():
    ledger = Ledger(PureDP(1.0))
    charge_all(ledger, [PureCost(0.1)] * 10)
    assert ledger.left == 0
    assert PureDP(1) == ledger.total()


@given(
    weights=st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=12),
    guarantee=st.sampled_from([PureDP(1), GaussianDP(0.3), ZCDP(0.1)]),
)
def test_shares_add_up_exactly_and_keep_their_proportions(weights, guarantee):
    ledger = Ledger(guarantee)
    kind = PureCost if isinstance(guarantee, PureDP) else GaussianCost
    shares = ledger.split(weights, kind)
    size = [s.epsilon if kind is PureCost else s.mu_squared for s in shares]
    first = Fraction(repr(weights[0]))
    for weight, share in zip(weights, size, strict=True):
        assert size[0] * Fraction(repr(weight)) == share * first
    charge_all(ledger, shares)
    assert ledger.left == 0


@pytest.mark.parametrize("kind", [PureCost, GaussianCost])
def test_a_charge_that_is_too_large_by_a_hair_changes_nothing(kind):
    ledger = Ledger(PureDP(1) if kind is PureCost else GaussianDP(1))
    ledger.charge({"a": kind(Fraction(1, 2))})
    before = facts(ledger)
    hair = Fraction(1, 10**40)
    with pytest.raises(BudgetExceeded, match=r"0\.5 is left of 1, .* too little") as refusal:
        ledger.charge({"b": kind(Fraction(1, 4)), "c": kind(Fraction(1, 4) + hair)})
    assert before == facts(ledger)
    assert Fraction(1, 2) + hair == refusal.value.needed
    assert Fraction(1, 2) == refusal.value.left
    assert refusal.value.total == 1
    ledger.charge({"b": kind(Fraction(1, 4)), "c": kind(Fraction(1, 4))})
    assert ledger.left == 0


def test_a_refusal_keeps_its_facts_when_it_is_sent_to_another_process():
    with pytest.raises(BudgetExceeded) as refusal:
        Ledger(PureDP(1)).charge({"a": PureCost(2)})
    copy = pickle.loads(pickle.dumps(refusal.value))
    assert (copy.needed, copy.left, copy.total) == (2, 1, 1)
    assert str(refusal.value) == str(copy)


def test_gaussian_gauges_are_refused_under_pure_dp():
    ledger = Ledger(PureDP(1))
    for attempt in (
        lambda: ledger.charge({"a": GaussianCost(1)}),
        lambda: ledger.charge({"a": PureCost(Fraction(1, 2)), "b": GaussianCost(Fraction(1, 9))}),
        lambda: ledger.split([1], GaussianCost),
    ):
        with pytest.raises(UnsupportedCombination, match="Give a delta"):
            attempt()
    assert ledger.charges == ()


def test_pure_gauges_under_gaussian_dp_cost_the_mu_of_randomised_response():
    ledger = Ledger(GaussianDP(2))
    ledger.charge({"a": PureCost(1)})
    assert 4 - mu_from_pure(1) ** 2 == ledger.left
    assert ledger.left < 4 - Fraction(3, 2)  # far from 4 - 1
    with pytest.raises(BudgetExceeded):
        Ledger(GaussianDP(1)).charge({"a": PureCost(1)})


def test_mixtures_under_zcdp_add_rho():
    ledger = Ledger(ZCDP(1))
    ledger.charge({"a": GaussianCost(1), "b": PureCost(1)})
    assert ledger.left == 0
    assert ZCDP(1) == ledger.total()


def test_gaussian_gauges_are_gaussian_dp_whatever_is_counted():
    for guarantee in (ZCDP(1), GaussianDP(2), ApproxDP(9, 1e-9)):
        ledger = Ledger(guarantee)
        ledger.charge({"a": GaussianCost(Fraction(1, 4)), "b": GaussianCost(Fraction(3, 4))})
        assert GaussianDP(1) == ledger.total()


def test_an_epsilon_delta_ledger_settles_with_its_first_charge():
    promise = ApproxDP(1, 1e-9)
    gaussian, pure, mixed = Ledger(promise), Ledger(promise), Ledger(promise)
    assert gaussian.currency is None
    gaussian.charge({"a": GaussianCost(Fraction(1, 100))})
    pure.charge({"a": PureCost(0.5)})
    mixed.charge({"a": GaussianCost(Fraction(1, 100)), "b": PureCost(0.01)})
    assert Currency.MU_SQUARED is gaussian.currency
    assert mu_from_epsilon_delta(1, 1e-9) ** 2 - Fraction(1, 100) == gaussian.left
    assert Currency.EPSILON is pure.currency
    assert Fraction(1, 2) == pure.left
    assert PureDP(0.5) == pure.total()
    assert Currency.RHO is mixed.currency
    spent = Fraction(1, 200) + Fraction(1, 20000)
    assert rho_from_epsilon_delta(1, 1e-9) - spent == mixed.left
    with pytest.raises(UnsupportedCombination, match="whole plan at once"):
        pure.charge({"b": GaussianCost(Fraction(1, 10**9))})


def test_a_refused_first_charge_settles_nothing():
    ledger = Ledger(ApproxDP(1, 1e-9))
    with pytest.raises(BudgetExceeded):
        ledger.charge({"a": PureCost(2)})
    assert ledger.currency is None
    ledger.charge({"a": GaussianCost(Fraction(1, 100))})
    assert Currency.MU_SQUARED is ledger.currency


def test_a_second_share_of_nothing_is_refused():
    ledger = Ledger(GaussianDP(1))
    charge_all(ledger, ledger.split([1], GaussianCost))
    with pytest.raises(BudgetExceeded, match="something left"):
        ledger.split([1], GaussianCost)


@pytest.mark.parametrize("weights", [[], [0], [-1], [float("nan")], [True], ["1"], [1, 0]])
def test_impossible_weights_are_refused(weights):
    with pytest.raises(InvalidParameter, match="weight"):
        Ledger(PureDP(1)).split(weights, PureCost)


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), "1", True])
@pytest.mark.parametrize("kind", [PureCost, GaussianCost])
def test_impossible_costs_are_refused(kind, value):
    with pytest.raises(InvalidParameter, match="Expected"):
        kind(value)


@pytest.mark.parametrize("costs", [{"a": 1.0}, {1: PureCost(0.1)}, {"a": PureDP(1)}])
def test_what_is_not_a_cost_cannot_be_charged(costs):
    ledger = Ledger(PureDP(1))
    with pytest.raises(InvalidParameter, match="names to costs"):
        ledger.charge(costs)
    assert ledger.left == 1


def test_a_ledger_needs_a_guarantee():
    with pytest.raises(InvalidParameter, match="Expected a guarantee"):
        Ledger(1.0)


def test_nothing_charged_is_nothing_spent():
    ledger = Ledger(PureDP(1))
    ledger.charge({})
    assert ledger.total() is None
    assert ledger.events()["events"] == []


def test_a_repr_shows_plan_and_spend():
    ledger = Ledger(ApproxDP(1, 1e-9))
    charge_all(ledger, ledger.split([3], GaussianCost))
    expected = "<Ledger of ApproxDP(epsilon=1, delta=1e-9): 1 charges, 0 % of its mu^2 left>"
    assert expected == repr(ledger)


def as_dp_accounting(fields):
    """Rebuild dp_accounting's own event from plain values."""
    kind = getattr(dp_event, fields["class_name"])
    values = {k: v for k, v in fields.items() if k not in ("module_name", "class_name")}
    if "events" in values:
        values["events"] = [as_dp_accounting(event) for event in values["events"]]
    assert fields["module_name"] == "dp_accounting.dp_event"
    return kind(**values)


def recomputed(accountant, ledger, delta):
    return accountant.compose(as_dp_accounting(ledger.events())).get_epsilon(delta)


def test_a_stranger_recomputes_the_epsilon_of_gaussian_gauges():
    ledger = Ledger(ApproxDP(1, 1e-9))
    charge_all(ledger, ledger.split([1, 2, 3], GaussianCost))
    epsilon = recomputed(PLDAccountant(), ledger, 1e-9)
    assert epsilon == pytest.approx(1, rel=2e-3)
    assert epsilon == pytest.approx(float(epsilon_from_mu(ledger.total().mu, 1e-9)), rel=2e-3)


def test_a_stranger_recomputes_the_epsilon_of_pure_gauges():
    ledger = Ledger(PureDP(2))
    charge_all(ledger, ledger.split([1, 3], PureCost))
    epsilon = recomputed(PLDAccountant(), ledger, 1e-30)
    assert epsilon == pytest.approx(2, rel=2e-3)


def test_a_mixture_in_rho_covers_what_another_accountant_finds():
    ledger = Ledger(ZCDP(0.5))
    ledger.charge({"a": GaussianCost(Fraction(1, 2)), "b": PureCost(Fraction(1, 2))})
    claimed = float(epsilon_from_rho(ledger.total().rho, 1e-9))
    assert recomputed(PLDAccountant(), ledger, 1e-9) <= claimed


def total_variation_of_discrete_laplace(epsilon):
    """Exact, between the law and the law moved by one lattice unit."""
    p = math.exp(-epsilon)
    return (1 - p) / (1 + p)


def recomputed_delta(event, epsilon):
    return PLDAccountant().compose(event).get_delta(epsilon)


def test_the_event_of_a_pure_gauge_covers_discrete_laplace_and_a_laplace_event_would_not():
    truth = total_variation_of_discrete_laplace(1)
    ours = recomputed_delta(as_dp_accounting(PureCost(1).event()), 0)
    continuous = recomputed_delta(dp_event.LaplaceDpEvent(1.0), 0)
    assert truth <= ours * (1 + 1e-6)
    assert continuous < truth - 0.05


def test_tenths_add_up_where_floats_do_not():
    assert 0.1 + 0.2 > 0.3
    ledger = Ledger(PureDP(0.3))
    ledger.charge({"a": PureCost(0.1), "b": PureCost(0.2)})
    assert ledger.left == 0


BROKEN_PRICES = {
    "mu counts as epsilon": lambda cost, currency: (
        cost.epsilon**2
        if isinstance(cost, PureCost) and currency is Currency.MU_SQUARED
        else TRUE_PRICE(cost, currency)
    ),
    "rho of a Gaussian is mu^2 / 4": lambda cost, currency: (
        cost.mu_squared / 4
        if isinstance(cost, GaussianCost) and currency is Currency.RHO
        else TRUE_PRICE(cost, currency)
    ),
    "pure costs add as squares": lambda cost, currency: (
        cost.epsilon**2
        if isinstance(cost, PureCost) and currency is Currency.EPSILON
        else TRUE_PRICE(cost, currency)
    ),
}
TRUE_PRICE = ledger_module.price


def stranger_agrees(guarantee, costs, allowed):
    """Everything the ledger accepts is within the promise, judged by dp_accounting."""
    ledger = Ledger(guarantee)
    try:
        charge_all(ledger, costs)
    except BudgetExceeded:
        return True
    found = PLDAccountant().compose(as_dp_accounting(ledger.events()))
    return all(found.get_delta(eps) <= delta * 1.01 + 1e-12 for eps, delta in allowed)


PLANS = {
    "mu counts as epsilon": (GaussianDP(1), [PureCost(1)], [(0, 0.38293)]),
    "rho of a Gaussian is mu^2 / 4": (
        ZCDP(0.5),
        [GaussianCost(2)],
        [(float(epsilon_from_rho(0.5, 1e-3)), 1e-3)],
    ),
    "pure costs add as squares": (PureDP(1), [PureCost(0.7)] * 2, [(1, 1e-12)]),
}


@pytest.mark.parametrize("name", BROKEN_PRICES)
def test_broken_prices_are_found_by_the_stranger(name, monkeypatch):
    guarantee, costs, allowed = PLANS[name]
    assert stranger_agrees(guarantee, costs, allowed)
    monkeypatch.setattr(ledger_module, "price", BROKEN_PRICES[name])
    assert not stranger_agrees(guarantee, costs, allowed)


@given(
    sizes=st.lists(st.integers(1, 60), min_size=1, max_size=4),
    kinds=st.lists(st.sampled_from([PureCost, GaussianCost]), min_size=4, max_size=4),
    guarantee=st.sampled_from(GUARANTEES),
)
def test_what_is_left_is_never_negative_and_the_spend_never_above_the_promise(
    sizes, kinds, guarantee
):
    ledger = Ledger(guarantee)
    for i, (size, kind) in enumerate(zip(sizes, kinds, strict=False)):
        before = facts(ledger)
        try:
            ledger.charge({str(i): kind(Fraction(size, 100))})
        except (BudgetExceeded, UnsupportedCombination):
            assert before == facts(ledger)
        assert ledger.left >= 0
    total = ledger.total()
    if isinstance(guarantee, ApproxDP) and isinstance(total, GaussianDP):
        assert epsilon_from_mu(total.mu, guarantee.delta) <= guarantee.epsilon
    if isinstance(guarantee, ApproxDP) and isinstance(total, ZCDP):
        assert epsilon_from_rho(total.rho, guarantee.delta) <= guarantee.epsilon
    if type(total) is type(guarantee):
        for name, spent in vars(total).items():
            assert spent <= getattr(guarantee, name)


@given(st.lists(st.floats(1e-4, 5), min_size=2, max_size=6))
def test_pure_gauges_divided_further_never_cost_more(parts):
    whole = sum(Fraction(repr(part)) for part in parts)
    apart = sum(mu_from_pure(part) ** 2 for part in parts)
    assert apart <= mu_from_pure(whole) ** 2 * (1 + Fraction(1, 10**9))


def adaptive_losses(first, second_if_low, second_if_high, count):
    """ln P/Q under Q of two Gaussian coordinates, the second shift chosen from the first output."""
    z = np.random.default_rng(7).normal(size=(2, count))
    second = np.where(z[0] < 0.3, second_if_low, second_if_high)
    return first * z[0] - first**2 / 2 + second * z[1] - second**2 / 2, first**2 + second**2


def delta_of(losses, epsilon):
    """E_Q (P/Q - e^epsilon)_+ and four standard errors."""
    gain = np.maximum(np.exp(losses) - math.exp(epsilon), 0)
    return gain.mean(), 4 * gain.std() / math.sqrt(len(gain))


@pytest.mark.statistical
def test_adaptive_gaussian_shifts_stay_on_the_curve():
    count = 400_000
    losses, squares = adaptive_losses(0.6, 0.8, -0.8, count)
    assert np.allclose(squares, 1)
    for epsilon in (0, 0.5, 1, 2):
        delta, error = delta_of(losses, epsilon)
        assert abs(delta - gaussian_delta(1, epsilon)) <= error
    # twin: the bound holds on average only, not on every path
    losses, squares = adaptive_losses(0.6, 0.0, 1.29, count)
    assert squares.mean() <= 1
    delta, error = delta_of(losses, 2)
    assert delta - error > gaussian_delta(1, 2)
