import re
from fractions import Fraction

import pytest

from tidegauge.privacy.conversion import mu_from_epsilon_delta, odds_exceeded
from tidegauge.privacy.guarantee import ZCDP, ApproxDP, GaussianDP, PureDP
from tidegauge.privacy.k_events import k_event_table
from tidegauge.privacy.protected import Protected
from tidegauge.privacy.statement import privacy_statement
from tidegauge.privacy.unit import Contributions, Event, NeighboringRelation

ADD, REPLACE = NeighboringRelation.ADD_OR_REMOVE_ONE, NeighboringRelation.REPLACE_ONE
ONE_OF = "one of its pairs: any smaller delta has a larger epsilon"
NUMBERS = {
    PureDP: "epsilon = 1.",
    ZCDP: f"rho = 0.5 (zCDP); (epsilon, delta) = (6.48, 1e-9), {ONE_OF}.",
    GaussianDP: f"mu = 1 (Gaussian DP); (epsilon, delta) = (6.18, 1e-9), {ONE_OF}.",
    ApproxDP: "(epsilon, delta) = (1, 1e-9).",
}
DECLARED = {"cells": "UA, B6, other", "step": "1 hour", "max_per_step": 1 << 20}
GAUGES = {"departures": "rounded Gaussian noise, mu = 0.182."}


def text_of(guarantee, unit=Event(), relation=ADD, **more):  # noqa: B008 - frozen
    return privacy_statement(
        guarantee, Protected(unit, relation), gauges=GAUGES, declared=DECLARED, **more
    )


@pytest.mark.parametrize("guarantee", [PureDP(1), ZCDP(0.5), GaussianDP(1), ApproxDP(1, 1e-9)])
@pytest.mark.parametrize("unit", [Event(), Contributions(20), Contributions(3, 24)])
@pytest.mark.parametrize("relation", NeighboringRelation)
def test_every_statement_says_who_how_far_what_was_declared_and_what_is_left_open(
    guarantee, unit, relation
):
    text = text_of(guarantee, unit, relation)
    assert relation.value in text
    assert f"In numbers: {NUMBERS[type(guarantee)]}" in text
    for name, value in DECLARED.items():
        assert f"* {name}: {value}" in text.split("Declared, not protected")[1]
    not_covered = text.split("## Not covered")[1].split("\n## ")[0]
    assert "Any other gauge, store or plan over the same data" in not_covered
    assert ("changes or moves" in text or "change or move" in text) == (relation is ADD)
    assert ("at which step" in not_covered) == (relation is REPLACE)  # one of the two, never both
    subject = "an id was in the data" if isinstance(unit, Contributions) else "an event took place"
    assert (f"Whether {subject} at all" in not_covered) == (relation is REPLACE)
    if isinstance(unit, Contributions):
        assert f"at most {unit.max_events} events over the whole life" in text
        assert ("steps apart" in text) == (unit.min_separation > 0)


def table_of(text):
    rows = re.findall(r"^\| (\d+) \| (\S+) \| (\S+) \|$", text, flags=re.MULTILINE)
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
    assert "In numbers: (epsilon, delta) = (1, 1e-9); spent: mu = 0.182 (Gaussian DP)." in text
    assert (
        "whether one event was in the data makes no result more than 2.72 times as likely, plus "
        "1e-9, one way or the other."
    ) in text
    assert "single draw" in text


def test_the_odds_of_a_gaussian_spend_are_those_of_the_exact_trade_off():
    mu = mu_from_epsilon_delta(1, 1e-9)
    words = text_of(ApproxDP(1, 1e-9), spent=GaussianDP(mu)).split("Seen as odds:")[1]
    shown = Fraction(re.search(r"with probability at most (\S+)\.", words)[1])
    assert odds_exceeded(mu, 1) <= shown <= odds_exceeded(mu, 1) * Fraction(101, 100)
    assert "a factor of 2.72 with" in words
    assert "Seen as odds" not in text_of(ApproxDP(0.1, 0.9), spent=GaussianDP(4))  # nothing to say


def test_a_pure_spend_under_a_delta_says_that_delta_is_unused():
    text = text_of(ApproxDP(1, 1e-9), spent=PureDP(Fraction(1, 2)))
    assert "(epsilon, delta) = (1, 1e-9); spent: epsilon = 0.5; delta is unused." in text
    assert "| 2 | 1 | 0 |" in text
    assert "unused" not in text_of(PureDP(1), spent=PureDP(1))


def test_declared_values_are_written_plainly_and_none_is_left_out():
    text = privacy_statement(
        PureDP(1), Protected(Event(), ADD), gauges=GAUGES,
        declared={"cells": ["UA", "B6"], "end": None, "low": 0, "max_change": (-1, 2)},
    )  # fmt: skip
    declared = text.split("Declared, not protected")[1]
    assert ["* cells: UA, B6", "* low: 0", "* max_change: -1, 2"] == re.findall(
        r"^\* .*$", declared, flags=re.MULTILINE
    )


def test_one_gauge_is_spoken_of_as_one():
    assert "published from this gauge: every" in text_of(PureDP(1))
    protected, gauges = Protected(Event(), ADD), {"a": "b.", "c": "d."}
    both = privacy_statement(PureDP(1), protected, gauges=gauges, declared={})
    assert "published from these gauges, together: every" in both


def test_a_separation_of_one_step_is_said_without_a_number():
    assert "20 events over the whole life of the stream, no two in one step:" in text_of(
        PureDP(1), Contributions(20, 1)
    )
    assert "one id, with at most 1 event over" in text_of(PureDP(1), Contributions(1))


def test_a_pure_statement_has_no_delta():
    text = text_of(PureDP(1), spent=PureDP(1))
    assert "delta =" not in text
    assert table_of(text) == [("2", 2, 0), ("5", 5, 0), ("10", 10, 0), ("20", 20, 0), ("50", 50, 0)]


def test_an_id_beyond_its_bound_counts_as_several_in_a_gauge_that_trusts_its_caller():
    text = text_of(PureDP(1), Contributions(20))
    assert "| ids | epsilon | delta |" in text
    assert "An id with more than 20 events: it counts as several ids." in text
    assert "only the first" not in text
