"""What a plan promises and says where a clip is drawn from first values: all of it, and no less."""

import json
import math
import re
from fractions import Fraction
from statistics import NormalDist

import pytest
from dp_accounting import dp_event
from dp_accounting.pld.pld_privacy_accountant import PLDAccountant
from unit.planning.test_privacy_text import planned, spends_of

from tidegauge.engine.documents import ledger_data
from tidegauge.mechanisms.clip_plan import UNIT
from tidegauge.planning.constants import declared
from tidegauge.planning.described import described
from tidegauge.planning.promise import guarantee_of_all, odds
from tidegauge.planning.spending import delta_of, epsilon_of, k_events
from tidegauge.planning.statement import Further, privacy_data, privacy_text
from tidegauge.planning.verified import plan_from_bytes
from tidegauge.privacy.guarantee import ApproxDP
from tidegauge.strategies.rescaled import EVENTS_ONCE

TEXT = """\
sources: [a.csv]
event_time: at
step: 1d
start: 2025-01-06T00:00:00Z
end: 2025-02-03T00:00:00Z
privacy: {unit: UNIT, neighboring_relation: RELATION, epsilon: 1, delta: 1e-6}
gauges:
  spend: {mean: {column: euros, bounds: [0, 9000], clip: {perrier: {first: 7d, share: 0.3}}}}
  visits: {count: {}, budget_weight: 3}
"""
UNITS = ("event", "{id: who, max_contributions: 4, per: lifetime}")
RELATIONS = ("add_or_remove_one", "replace_one")


@pytest.fixture(scope="module", params=[(u, r) for u in UNITS for r in RELATIONS], ids=str)
def plan(request):
    unit, relation = request.param
    return planned(TEXT.replace("UNIT", unit).replace("RELATION", relation))


def test_a_plan_is_read_back_as_it_was(plan):
    again = plan_from_bytes(plan.canonical())
    assert (again, again.fingerprint) == (plan, plan.fingerprint)
    assert plan.thresholds == ApproxDP(Fraction(3, 40), Fraction(1, 8 * 10**6))


@pytest.mark.parametrize("releases", [1, 2])
def test_a_stranger_finds_no_more_than_is_claimed(plan, releases):
    data = json.loads(json.dumps(ledger_data(plan, spends_of(plan, releases))))
    accountant = PLDAccountant()
    for fields in data["events"]["events"]:
        rest = {k: v for k, v in fields.items() if k not in ("class_name", "module_name")}
        accountant.compose(getattr(dp_event, fields["class_name"])(**rest))
    claimed, delta = float(data["epsilon"]), float(data["delta"])
    assert 3 * releases == len(data["charges"])
    assert delta == pytest.approx(1e-6 + (releases - 1) * 1.25e-7)
    assert 0.9 * claimed < accountant.get_epsilon(delta - float(data["thresholds"])) <= claimed


def test_releases_add_up(plan):
    once, twice = (guarantee_of_all(plan, n) for n in (1, 2))
    assert once == plan.guarantee
    assert (twice.epsilon, twice.delta) >= (epsilon_of(plan, 2), delta_of(plan, 2))
    noise = epsilon_of(plan, 1) - plan.thresholds.epsilon
    assert epsilon_of(plan, 2) > noise + 2 * plan.thresholds.epsilon
    assert plan.charged().total(2).delta == twice.delta


def test_odds_are_of_noise_and_clip_together(plan):
    """At least those of noise beside randomised response of the clip's epsilon, read exactly."""
    told = float(re.search(r"right at most (\S+) times", odds(plan))[1]) / 100
    normal, mu = NormalDist(), float(plan.spent_on_noise().mu)
    heads = 1 / (1 + math.exp(-float(plan.thresholds.epsilon)))

    def power(alarm, low=-40.0, high=40.0):
        """Of the best test: a threshold on noise and the answer's logarithm."""
        for _ in range(80):
            cut = (low + high) / 2
            parts = [(heads, -1), (1 - heads, 1)]  # chance under P; under Q the other way round
            shift = float(plan.thresholds.epsilon) / mu
            tails = [normal.cdf(-(cut + sign * shift)) for _, sign in parts]
            false = (1 - heads) * tails[0] + heads * tails[1]
            low, high = (cut, high) if false > alarm else (low, cut)
        return sum(p * normal.cdf(mu - (cut + sign * shift)) for p, sign in parts)

    assert power(0.05) <= told < power(0.05) + 0.03
    assert told > normal.cdf(normal.inv_cdf(0.05) + mu)


def test_several_units_pay_for_both(plan):
    for row in k_events(plan):
        assert row.epsilon > row.events * plan.thresholds.epsilon
        assert row.delta > delta_of(plan)


@pytest.mark.parametrize("releases", [1, 2])
def test_the_statement_says_what_is_spent_on_which(plan, releases):
    further = [Further("2026-01-02", 3)] * (releases - 1)
    text, data = privacy_text(plan, further), privacy_data(plan, further)
    page = text.split("# Details")[0]
    spent = plan.spent_on_thresholds(releases)
    assert f"the clip of spend, drawn from first values, spends ({float(spent.epsilon):g}" in page
    assert "both add up" in page
    assert "Spent: mu" not in text  # no sentence takes what noise spends for all of it
    assert "first 7 steps" in text
    assert "drawn from the values of the first 7 steps, with 30 % and 50 %" in text
    assert "the values of the first steps, each with its cell" in text
    assert repr(spent) == data["guarantee"]["spent_on_thresholds"]
    assert data["guarantee"]["epsilon"] >= "0.99"


def test_the_plan_tells_both_and_how_many_values_are_needed(plan):
    told = described(plan)
    assert "on noise" in told["spent"]
    assert "on clips" in told["spent"]
    assert "spends (0.075" in told["thresholds"]
    (spend, _) = told["gauges"]
    assert "values in the first 7 steps" in spend["clip"]["says"]
    assert (0.3, 6300) == (spend["clip"]["share"], spend["clip"]["pays_below"])
    assert spend["clip"]["can_pay"]
    assert spend["max_per_step"] == 1 << 20


def test_a_cap_of_a_step_is_what_was_declared_and_what_waits_has_room_beside_it(plan):
    capped = TEXT.replace("0.3}}}}", "0.3}}}, max_per_step: 600}")
    found = planned(capped.replace("UNIT", UNITS[0]).replace("RELATION", RELATIONS[0]))
    for gauge, most in ((plan.gauges[0], 1 << 20), (found.gauges[0], 600)):
        mechanism = gauge.mechanism
        assert mechanism.max_per_step == most * UNIT
        room = mechanism.strategy.largest_once(mechanism.max_per_step)
        assert room >= EVENTS_ONCE * mechanism.neighbors.largest
    assert declared(found)["spend, most events of a cell and step"] == "600"
