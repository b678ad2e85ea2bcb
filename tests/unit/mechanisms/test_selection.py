"""What choices of cells cost, and what is refused."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from tidegauge.errors import InvalidParameter, UnsupportedCombination
from tidegauge.mechanisms.design import compare
from tidegauge.mechanisms.request import Request
from tidegauge.mechanisms.restoring import restore_gauge, verify_gauge
from tidegauge.mechanisms.selection import Select, Selection, pick_rho, quiet_margin, shown_cells
from tidegauge.papers.cardoso_rogers.accounting import sparse_rho
from tidegauge.privacy.costs import Currency, GaussianCost, PureCost, ZCDPCost, price
from tidegauge.privacy.guarantee import ZCDP, ApproxDP, GaussianDP, PureDP
from tidegauge.privacy.ledger import Ledger
from tidegauge.privacy.unit import Contributions, Event, NeighboringRelation, Neighbors
from tidegauge.strategies.blocks import Blocks
from tidegauge.strategies.decay import Running, Window
from tidegauge.strategies.strategy import Norm

CHOICE, TENTH = Select(2, 3), ZCDP(Fraction(1, 10))
ADD, REPLACE = NeighboringRelation.ADD_OR_REMOVE_ONE, NeighboringRelation.REPLACE_ONE


def neighbors(k=2, switches=3, cells=20, *, relation=ADD, unit=None, high=1):
    touched = shown_cells(k, switches, cells, relation)
    return Neighbors(unit or Event(), relation, 0, high, touched, cells)


def request(guarantee, *, select=CHOICE, end=100, **changes):
    who = changes.pop("neighbors", neighbors(select.k, select.switches))
    return Request(
        views=(("running", Running()),), cells=None, scalar=False, guarantee=guarantee,
        neighbors=who, max_per_step=1 << 20, horizon=end, end=end, level=0.95, select=select,
        **changes,
    )  # fmt: skip


def planned(guarantee=TENTH, **asked):
    return compare([request(guarantee, **asked)])[0].plan


def test_the_cost_is_that_of_the_paper_with_its_blocks():
    k, switches, end = 5, 10, 1000
    who = neighbors(k, switches, 100)
    chosen = Selection(k, switches, 100, Fraction(25), Fraction(1, 20))
    blocks = Blocks(tuple(2**level for level in range(10)))
    counts = GaussianCost(blocks.sensitivity(Norm.L2, who) ** 2 / 100**2)
    ledger = Ledger(ZCDP(1))
    ledger.charge({"types": counts, "types, choices": chosen.cost(who)})
    paper = sparse_rho(2, end, k, switches, Fraction(50), Fraction(100), Fraction(1, 20))
    assert math.isclose(0.051, paper)
    assert paper <= ledger.total().rho <= paper * (1 + Fraction(1, 10**9))


@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_an_event_is_charged_for_all_cells_that_are_ever_shown_and_no_more(relation):
    for k, switches, cells in ((2, 3, 20), (3, 4, 100), (2, 30, 20), (1, 2, 5)):
        ever = min(cells, k * (switches + 1))
        found = neighbors(k, switches, cells, relation=relation)
        assert ever <= found.moved_cells <= ever + (relation is REPLACE)


def test_units_of_several_events_and_heavier_ones_cost_as_their_counts_move():
    chosen = Selection(2, 3, 10, Fraction(5), Fraction(1, 10))
    one = chosen.cost(neighbors()).rho
    tests = 3 * Fraction(1, 10) ** 2 / 2
    assert pick_rho(8, 1, Fraction(5), ADD) + tests == one
    for who, ways, change in (
        (neighbors(high=3), 1, 3),
        (neighbors(unit=Contributions(3)), 1, 3),
        (neighbors(relation=REPLACE), 4, 1),
        (neighbors(unit=Contributions(3), high=2, relation=REPLACE), 4, 6),
    ):
        assert ways * change**2 * (one - tests) + tests == chosen.cost(who).rho
        assert change * (2 if ways == 4 else 1) == chosen.lead_change(who)


@pytest.mark.parametrize("guarantee", [ZCDP(Fraction(1, 10)), ApproxDP(1, Fraction(1, 10**6))])
def test_a_plan_spends_all_of_its_guarantee_and_keeps_its_shares(guarantee):
    plan = planned(guarantee)
    spent, whole = plan.charged(), Ledger(guarantee).split([1], ZCDPCost)[0].rho
    assert Currency.RHO is spent.currency
    assert 0 <= spent.left <= whole / 10**6
    choices = plan.charges("a")["a, choices"].rho
    assert math.isclose(choices, whole / 2, rel_tol=1e-6)
    assert plan == restore_gauge(plan.stored())
    assert spent.total() == ZCDP(whole - spent.left)


def test_gauges_beside_it_share_rho():
    other = replace(request(ZCDP(1)), select=None, name="b", budget_weight=Fraction(3))
    found = [one.plan for one in compare([request(ZCDP(1)), other])]
    assert Fraction(3, 4) == price(found[1].cost, Currency.RHO)
    assert Fraction(1, 8) == price(found[0].cost, Currency.RHO)


@pytest.mark.parametrize("guarantee", [PureDP(1), GaussianDP(1)])
def test_guarantees_that_choices_have_no_price_in_are_refused(guarantee):
    with pytest.raises(UnsupportedCombination, match="known in rho"):
        planned(guarantee)
    with pytest.raises(UnsupportedCombination, match="known in rho"):
        Ledger(guarantee).charge({"a": ZCDPCost(Fraction(1, 100))})


def test_a_ledger_that_has_settled_on_another_currency_refuses_choices():
    for first in (GaussianCost, PureCost):
        ledger = Ledger(ApproxDP(1, Fraction(1, 10**6)))
        ledger.charge({"a": first(Fraction(1, 1000))})
        with pytest.raises(UnsupportedCombination, match="known in rho"):
            ledger.charge({"b": ZCDPCost(Fraction(1, 10**9))})
        assert 1 == len(ledger.charges)


def test_a_stranger_recomputes_the_epsilon():
    accounting = pytest.importorskip("dp_accounting")
    rdp = pytest.importorskip("dp_accounting.rdp")
    ledger = Ledger(ApproxDP(1, Fraction(1, 10**6)))
    plan = planned(ledger.guarantee)
    ledger.charge(plan.charges("a"))
    gaussian, zcdp = ledger.events()["events"]
    accountant = rdp.RdpAccountant()
    accountant.compose(accounting.GaussianDpEvent(gaussian["noise_multiplier"]))
    accountant.compose(accounting.ZCDpEvent(zcdp["rho"], zcdp["xi"]))
    assert 0.9 <= accountant.get_epsilon(1e-6) <= 1.02  # its orders are a grid


def test_a_margin_that_is_not_given_is_passed_by_noise_in_few_streams():
    plan, end = planned(), 100
    epsilon = plan.selection.epsilon
    quiet, scale = quiet_margin(epsilon, 1, 4, end, 3), float(plan.selection.scale)
    k, cells = plan.selection.k, plan.neighbors.cells
    picked = math.ceil(scale * math.log((cells - k) * k * 4 / 0.05))
    assert quiet + picked == plan.selection.margin
    assert 2 * quiet + picked == plan.selection.noticed(plan.neighbors, end)
    assert plan.selection.noticed(plan.neighbors, None) is None
    assert 7 == planned(select=Select(2, 3, 7)).selection.margin
    with pytest.raises(UnsupportedCombination, match="end or a margin"):
        CHOICE.bought(GaussianCost(1), neighbors(), None)
    assert 7 == Select(2, 3, 7).bought(GaussianCost(1), neighbors(), None).margin


def test_a_choice_by_noise_makes_no_switch_afterwards():
    """Of many cells that are as large as the margin allows, a choice may miss some."""
    k, cells, streams = 100, 1000, 400
    plan = planned(
        ZCDP(Fraction(1, 2)), select=Select(k, 5, None), neighbors=neighbors(k, 5, cells)
    )
    margin, scale = plan.selection.margin, float(plan.selection.scale)
    rng = np.random.default_rng(5)
    for tried, most in ((margin, 0.05), (quiet_margin(plan.selection.epsilon, 1, 4, 100, 5), 1)):
        keys = rng.gumbel(0, scale, (streams, cells))
        keys[:, :k] += tried
        missed = (np.sort(keys[:, :k], axis=1)[:, 0] < np.sort(keys[:, k:], axis=1)[:, -1]).mean()
        assert missed <= most
    assert missed > 0.2  # with a margin for tests alone: the broken twin


def test_noise_of_choices_that_no_count_could_have_is_refused():
    with pytest.raises(UnsupportedCombination, match="more noise than counts"):
        planned(ZCDP(Fraction(1, 10**18)), select=Select(5, 1, 3))


@pytest.mark.parametrize(
    "changes",
    [
        {"k": 0},
        {"switches": 0},
        {"margin": -1},
        {"scale": Fraction(0)},
        {"epsilon": Fraction(-1)},
    ],
)
def test_impossible_numbers_are_refused(changes):
    with pytest.raises(InvalidParameter):
        replace(Selection(2, 3, 7, Fraction(5), Fraction(1, 10)), **changes)


def test_plans_whose_numbers_were_changed_are_refused():
    plan = planned()
    chosen = plan.selection
    for broken in (
        replace(plan, selection=replace(chosen, k=3)),  # more cells than noise is made for
        replace(plan, selection=replace(chosen, switches=4)),
        replace(plan, neighbors=replace(plan.neighbors, max_cells=1)),
        replace(plan, neighbors=replace(plan.neighbors, low=-1)),
        replace(plan, views=(("week", Window(7)),)),
        replace(plan, neighbors=replace(plan.neighbors, cells=8), selection=replace(chosen, k=8)),
    ):
        with pytest.raises(InvalidParameter):
            verify_gauge(broken)
    from tidegauge.errors import BudgetExceeded

    for broken in (replace(chosen, scale=chosen.scale / 2), replace(chosen, epsilon=Fraction(1))):
        with pytest.raises(BudgetExceeded):
            verify_gauge(replace(plan, selection=broken))


def test_no_other_view_can_be_made():
    with pytest.raises(InvalidParameter, match="no other view"):
        planned().decay(Window(7))
    assert Running() == planned().decay("running")
