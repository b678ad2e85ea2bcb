"""Plans of gauges that discover their items: what is chosen, stored, charged and refused."""

from dataclasses import replace
from fractions import Fraction

import pytest
from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant

import tidegauge as tg
from tidegauge.errors import InvalidParameter, UnsupportedCombination
from tidegauge.mechanisms.design import compare, design, designed_for
from tidegauge.mechanisms.discovery import Discover, deltas
from tidegauge.mechanisms.gauge import Gauge
from tidegauge.mechanisms.meter import Meter
from tidegauge.mechanisms.reading import Reading
from tidegauge.mechanisms.request import request_of
from tidegauge.mechanisms.restoring import restore_gauge, verify_gauge
from tidegauge.mechanisms.totals import totals
from tidegauge.privacy.costs import GaussianCost
from tidegauge.privacy.ledger import Ledger
from tidegauge.privacy.unit import Contributions, Event, NeighboringRelation, Neighbors
from tidegauge.strategies.blt import Blt, Comb
from tidegauge.strategies.identity import Identity

ADD, REPLACE = NeighboringRelation.ADD_OR_REMOVE_ONE, NeighboringRelation.REPLACE_ONE
MIXED = {"total": tg.Running(), "day": tg.Window(24), "each": tg.Step()}


def asked(discover=None, **changes):
    options = {"views": MIXED, "unit": "event", "epsilon": 1, "delta": 1e-6, "end": 200}
    discover = discover if isinstance(discover, Discover) else Discover(discover)
    return request_of(discover=discover, **(options | changes))


@pytest.fixture(scope="module")
def plan():
    return design(asked(tg.Running()))


def test_a_plan_comes_back_as_it_was_stored(plan):
    again = restore_gauge(plan.stored())
    assert again == plan
    assert again.fingerprint == plan.fingerprint
    assert plan.discovery.adaptive
    assert "total" == plan.discovery.view
    assert isinstance(plan.strategy, Blt)


TAMPERED = {
    "a lower threshold": {"threshold": "20/1"},
    "less delta than it takes": {"delta": "1/100000000"},
    "more delta than there is": {"delta": "1/1000"},
    "another promise": {"adaptive": False},
    "another view": {"decay": {"is": "Exponential", "half_life": "3/1"}},
}


@pytest.mark.parametrize("name", TAMPERED)
def test_a_changed_discovery_is_refused(plan, name):
    stored = plan.stored()
    stored["discovery"] |= TAMPERED[name]
    with pytest.raises(InvalidParameter):
        restore_gauge(stored)


def test_a_discovery_cannot_be_taken_out_or_put_in(plan):
    stored = plan.stored()
    del stored["discovery"]
    with pytest.raises(InvalidParameter, match="either known cells or a discovery"):
        restore_gauge(stored)
    views = {"views": [tg.Step()], "guarantee": tg.GaussianDP(1)}
    known = tg.plan(unit="event", end=200, cells=4, **views).plan
    assert "discovery" not in known.stored()
    with pytest.raises(InvalidParameter):
        restore_gauge(known.stored() | {"discovery": plan.stored()["discovery"]})


def test_a_strategy_that_is_not_proved_for_items_is_refused(plan):
    comb = tg.plan(views=[tg.Window(24)], unit="event", guarantee=tg.GaussianDP(0.1), cells=4).plan
    assert isinstance(comb.strategy, Comb)
    changed = replace(plan, strategy=comb.strategy, law=comb.law)
    with pytest.raises(InvalidParameter, match="proved for unknown items"):
        verify_gauge(changed)


def test_noise_of_another_discovery_shares_no_word(plan):
    other = replace(plan, discovery=replace(plan.discovery, threshold=Fraction(999)))
    assert plan.fingerprint != other.fingerprint


def test_the_default_view_has_the_longest_memory():
    found = design(asked())
    assert isinstance(found.discovery.decay, tg.Running)
    assert found.discovery.adaptive
    endless = design(asked(views=[tg.Running(), tg.Window(24)], end=None))
    assert "window_24" == endless.discovery.view  # a running sum would need an end


def test_a_discovery_view_need_not_be_published_and_is_designed_for():
    found = design(asked(tg.Window(24), views=[tg.Running()], end=5000))
    assert "window_24" == found.discovery.view
    assert ["running"] == [name for name, _ in found.views]
    alone = design(asked(tg.Window(24), views=[tg.Window(24)], end=5000))
    assert found.noise_std(tg.Window(24), [5000])[0] < 1.5 * alone.noise_std(tg.Window(24), [5000])


def test_only_what_is_proved_is_tried():
    for views in (MIXED, [tg.Running()], [tg.Window(24)], [tg.Step()], [tg.Window(600)]):
        for end in (20, 1000):
            (found,) = compare([asked(views=views, end=end)])
            kinds = {type(one.plan.strategy) for one in found.candidates if one.plan}
            assert kinds <= {Identity, Blt, Comb}
            assert {"rounded Gaussian"} == {one.noise for one in found.candidates}
    (found,) = compare([asked(tg.Running(), end=1000)])
    refused = [one.verdict for one in found.candidates if one.plan is None]
    assert all("behind a comb" in verdict for verdict in refused)


def test_behind_a_comb_items_are_discovered_in_windows():
    found = design(asked(views=[tg.Window(24)], end=None))
    assert isinstance(found.strategy, Comb)
    assert "window_24" == found.discovery.view
    assert found == restore_gauge(found.stored())


def test_delta_is_split_over_the_gauges_that_discover():
    requests = [
        replace(asked(tg.Running(), views=[tg.Running()]), name="one"),
        replace(asked(tg.Window(7), views=[tg.Window(7)], end=None), name="two"),
        replace(request_of(views=[tg.Step()], unit="event", epsilon=1, delta=1e-6), name="known"),
    ]
    one, two, known = (found.plan for found in compare(requests))
    assert one.discovery.delta == two.discovery.delta == Fraction(1, 4 * 10**6)
    assert known.discovery is None
    assert isinstance(known.cost, GaussianCost)
    ledger = Ledger(one.guarantee, delta_for_names=one.discovery.delta + two.discovery.delta)
    ledger.charge({"one": one.cost, "two": two.cost, "known": known.cost})
    assert 0 <= ledger.left < Fraction(1, 10**9)
    assert ledger.total() == tg.ApproxDP(1, 1e-6)


def test_a_stranger_recomputes_epsilon_at_delta_less_names(plan):
    ledger = plan.charged()
    (event,) = ledger.events()["events"]
    accountant = PLDAccountant()
    accountant.compose(dp_event.GaussianDpEvent(event["noise_multiplier"]))
    assert Fraction(1, 2 * 10**6) == ledger.delta_for_names
    assert (
        0.999 < accountant.get_epsilon(float(Fraction(1, 10**6) - ledger.delta_for_names)) < 1.001
    )
    assert ledger.total(2) == tg.ApproxDP(ledger.total(2).epsilon, 2e-6)
    assert 1.4 < ledger.total(2).epsilon < 2


def test_the_share_of_delta_moves_noise_and_threshold_apart():
    noise, threshold = [], []
    for share in (0.01, 0.5, 0.99):
        found = design(asked(Discover(tg.Running(), share)))
        noise.append(found.law.scale / 2**found.strategy.lattice_bits)
        threshold.append(found.discovery.threshold / noise[-1])
    assert sorted(noise) == noise
    assert sorted(threshold, reverse=True) == threshold


@pytest.mark.parametrize("guarantee", [tg.PureDP(1), tg.ZCDP(1), tg.GaussianDP(1)])
def test_names_need_a_delta(guarantee):
    with pytest.raises(UnsupportedCombination, match="chance, which is a delta"):
        design(asked(epsilon=None, delta=None, guarantee=guarantee))
    with pytest.raises(InvalidParameter, match="part of a delta"):
        Ledger(guarantee, delta_for_names=Fraction(1, 10**9))


def test_names_cannot_cost_more_than_delta():
    for names in (Fraction(1, 10**6), Fraction(1, 2)):
        with pytest.raises(InvalidParameter, match="part of a delta"):
            Ledger(tg.ApproxDP(1, 1e-6), delta_for_names=names)
    assert (0, 0) == deltas(tg.PureDP(1), [None, None])


@pytest.mark.parametrize(
    "changes",
    [{"delta_share": 0}, {"delta_share": 1}, {"delta_share": -0.5}, {"delta_share": "half"},
     {"expected_items": 0}, {"expected_items": 1.5}, {"view": "7d"}],
)  # fmt: skip
def test_impossible_parameters_are_refused(changes):
    with pytest.raises(InvalidParameter):
        Discover(**changes)


@pytest.mark.parametrize(
    ("discover", "changes", "why"),
    [
        (tg.Running(), {"end": None}, "with an end"),
        (None, {"views": [tg.Running()], "end": None}, "Declare the end"),
        (tg.Exponential(half_life=3), {}, "an event fades"),
        (None, {"views": [tg.Exponential(half_life=3)]}, "Expected a view in which items can be"),
        (tg.Difference(tg.Window(3), 3), {}, "an event fades"),
        (None, {"distinct": "ever"}, "count of different values"),
    ],
)
def test_what_cannot_discover_is_refused_with_the_reason(discover, changes, why):
    with pytest.raises(UnsupportedCombination, match=why):
        design(asked(discover, **changes))


def test_items_and_cells_exclude_each_other():
    with pytest.raises(InvalidParameter, match="no cells where items are discovered"):
        asked(cells=["a"])


def test_nothing_rests_on_a_made_up_number_of_cells():
    for unit in (Event(), Contributions(7)):
        for relation in (ADD, REPLACE):
            unknown = Neighbors(unit, relation, -2, 5, 3, None)
            many = replace(unknown, cells=1 << 40)
            names = ("touched_cells", "moved_cells", "event_l1", "event_l2_squared", "shared_cells")
            for name in names:
                assert getattr(unknown, name) == getattr(many, name)
    one, more = (design(asked(Discover(tg.Running(), expected_items=n))) for n in (1, 1 << 20))
    assert one.law == more.law
    assert one.discovery.threshold == more.discovery.threshold


def test_arrays_of_all_cells_are_refused_where_nobody_knows_them(plan):
    for use in (
        lambda: Meter(plan),
        lambda: Reading(plan, [tg.Running()]),
        lambda: totals([[1]], plan, block=True),
        lambda: Gauge.__new__(Gauge)._start(plan, None, keep=False),
    ):
        with pytest.raises(UnsupportedCombination, match="finds its items in the stream"):
            use()


def test_the_noise_of_a_plan_of_its_own_can_be_compared(plan):
    alone = designed_for(plan, tg.Window(24))
    assert alone.noise_std(tg.Window(24), [200])[0] < plan.noise_std("day", [200])[0]


def test_the_statement_says_how_delta_is_spent(plan):
    text = plan.statement()
    assert "shown with a probability of at most 5e-7, also if later events depend" in text
    assert "cells: items that are discovered" in text
    assert "in a stream fixed in advance" in design(asked(tg.Window(24))).statement()
