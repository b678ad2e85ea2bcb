import re
from fractions import Fraction

import pytest

from tidegauge.privacy.conversion import k_event_table, mu_from_epsilon_delta
from tidegauge.privacy.guarantee import ZCDP, ApproxDP, GaussianDP, PureDP
from tidegauge.privacy.statement import privacy_statement
from tidegauge.privacy.unit import Contributions, Event, NeighboringRelation

ADD, REPLACE = NeighboringRelation.ADD_OR_REMOVE_ONE, NeighboringRelation.REPLACE_ONE
DECLARED = {"cells": "UA, B6, other", "step": "1 hour", "max_per_step": 1 << 20}
GAUGES = {"departures": "rounded Gaussian noise, mu = 0.182."}


def text_of(guarantee, unit=Event(), relation=ADD, **more):  # noqa: B008 - frozen
    return privacy_statement(guarantee, unit, relation, gauges=GAUGES, declared=DECLARED, **more)


@pytest.mark.parametrize("guarantee", [PureDP(1), ZCDP(0.5), GaussianDP(1), ApproxDP(1, 1e-9)])
@pytest.mark.parametrize("unit", [Event(), Contributions(20), Contributions(3, 24)])
@pytest.mark.parametrize("relation", NeighboringRelation)
def test_every_statement_says_who_how_far_what_was_declared_and_what_is_left_open(
    guarantee, unit, relation
):
    text = text_of(guarantee, unit, relation)
    assert relation.value in text
    assert repr(guarantee) in text
    for name, value in DECLARED.items():
        assert f"* {name}: {value}" in text.split("Declared, not protected")[1]
    not_covered = text.split("## Not covered")[1]
    assert "Any other store, gauge or plan over the same data" in not_covered
    assert "A changed time" in not_covered
    assert ("took place at all" in not_covered) == (relation is REPLACE)
    if isinstance(unit, Contributions):
        assert f"at most {unit.max_events} events over the whole life" in text
        assert ("steps apart" in text) == (unit.min_separation > 0)


def table_of(text):
    rows = re.findall(r"^\| ([\dx ]+) \| (\S+) \| (\S+) \|$", text, flags=re.MULTILINE)
    return [(events, Fraction(epsilon), Fraction(delta)) for events, epsilon, delta in rows]


def test_the_table_is_never_below_the_exact_curve():
    spent = GaussianDP(mu_from_epsilon_delta(1, 1e-9))
    shown = table_of(text_of(ApproxDP(1, 1e-9), spent=spent))
    exact = k_event_table(spent, 1e-9)
    assert [str(row.events) for row in exact] == [events for events, _, _ in shown]
    for row, (_, epsilon, delta) in zip(exact, shown, strict=True):
        assert row.epsilon <= epsilon <= row.epsilon * Fraction(101, 100)
        assert row.delta == delta


def test_an_epsilon_delta_statement_shows_its_mu_and_epsilon_again():
    spent = GaussianDP(mu_from_epsilon_delta(1, 1e-9))
    text = text_of(ApproxDP(1, 1e-9), spent=spent)
    assert "mu = 0.182, epsilon = 1 at delta = 1e-9" in text
    assert "a factor of 2.72, except with probability at most 1e-9" in text
    assert "single draw" in text


def test_a_pure_statement_has_no_delta():
    text = text_of(PureDP(1), spent=PureDP(1))
    assert "except with probability" not in text
    assert table_of(text) == [("2", 2, 0), ("5", 5, 0), ("10", 10, 0), ("20", 20, 0), ("50", 50, 0)]


def test_an_id_with_contributions_is_told_about_multiples_of_its_bound():
    assert "| 2 x 20 | 2 | 0 |" in text_of(PureDP(1), Contributions(20))
