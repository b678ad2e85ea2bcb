"""PRIVACY.md: every sentence is true of every plan, and one page of it is enough to sign."""

import json
import math
import re
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import product
from pathlib import Path
from statistics import NormalDist
from tempfile import TemporaryDirectory

import pytest
from unit.planning.configs import ALL, FLIGHTS

from tidegauge.engine.documents import documents, ledger_data, spend_of, unit_sentence
from tidegauge.planning.config import config_of
from tidegauge.planning.constants import declared
from tidegauge.planning.planner import plan_of
from tidegauge.planning.promise import guarantee_of_all, odds, promise
from tidegauge.planning.sentences import at_rest, duties, left_out, not_covered
from tidegauge.planning.spending import epsilon_of, k_events
from tidegauge.planning.statement import Further, first_page, privacy_data, privacy_text
from tidegauge.planning.verified import plan_from_bytes
from tidegauge.privacy.conversion import epsilon_from_mu, epsilon_from_rho
from tidegauge.privacy.guarantee import ZCDP, ApproxDP, GaussianDP, PureDP

GOLDEN = Path(__file__).parent / "golden"
FURTHER = (Further("2026-01-01", 5), Further("2026-02-01", 9))


@cache
def planned(text):
    with TemporaryDirectory() as folder:
        path = Path(folder) / "c.yaml"
        path.write_text(text)
        return plan_of(config_of(path))


# --- a matrix of plans, and what a statement must and must not say of each


@dataclass(frozen=True)
class Case:
    """One plan and its releases."""

    unit: str = "event"
    relation: str = "add_or_remove_one"
    guarantee: str = "epsilon: 1, delta: 1e-9"
    gauges: str = "count"
    clock: str = "time"
    releases: int = 1

    @property
    def plan(self):
        units = {
            "event": "event",
            "id": "{id: who, max_contributions: 3, per: lifetime}",
            "id, weekly": "{id: who, max_contributions: 3, per: %s}",
        }
        per = "7" if self.clock == "records" else "7d"
        clocks = {
            "time": "event_time: at\nstep: 1d\nstart: 2025-01-06T00:00:00Z\n"
            "end: 2025-02-03T00:00:00Z\n",
            "endless": "event_time: at\ntimezone: UTC\nstep: 1d\nstart: 2025-01-06T00:00:00Z\n",
            "records": "step: record\nend: 28\n",
        }
        gauges = {
            "count": "  n: count\n",
            "where": '  n: {count: {where: "a > 0"}, by: {shop: [x, y]}, other: drop}\n',
            "sum": "  s: {sum: {column: euros, bounds: [-1, 9], round_to: 0.01}}\n",
        }
        gauges["both"] = gauges["where"] + gauges["sum"]
        return planned(
            "sources: [a.csv]\n" + clocks[self.clock]
            + f"privacy: {{unit: {units[self.unit].replace('%s', per)}, "
            f"neighboring_relation: {self.relation}, {self.guarantee}}}\n"
            f"gauges:\n{gauges[self.gauges]}"
        )  # fmt: skip

    @property
    def text(self):
        return written(self)


@cache
def written(case):
    return privacy_text(case.plan, FURTHER[: case.releases - 1])


UNITS = ("event", "id", "id, weekly")
RELATIONS = ("add_or_remove_one", "replace_one")
GUARANTEES = ("epsilon: 0.5", "epsilon: 1, delta: 1e-9", "rho: 0.5", "mu: 1")
CASES = [
    *(Case(*three, releases=n) for three in product(UNITS, RELATIONS, GUARANTEES) for n in (1, 2)),
    *(
        Case(unit, relation, gauges=gauges, clock=clock)
        for unit, relation, gauges, clock in product(
            UNITS, RELATIONS, ("count", "where", "sum", "both"), ("time", "endless", "records")
        )
        if (gauges == "both" and clock != "time") or (unit, clock) == ("event", "records")
    ),
    Case(releases=3),
]
IDS = [", ".join(map(str, vars(case).values())) for case in CASES]

PERIOD = {"time": "7 days", "endless": "7 days", "records": "7 records"}
START = {"time": "2025-01-06T00:00:00Z", "endless": "2025-01-06T00:00:00Z", "records": "the first"}


def period(case):
    return f"the periods of {PERIOD[case.clock]} counted from {START[case.clock]}"


RULES = {
    # who
    "Protected is one event: it is": lambda c: c.unit == "event" and c.relation == RELATIONS[0],
    "its values and cells are these or any others, its step the same (`replace_one`)": (
        lambda c: c.unit == "event" and c.relation == RELATIONS[1]
    ),
    "or nothing of it is (`add_or_remove_one`)": lambda c: c.relation == RELATIONS[0],
    "the values and cells of its events are these or any others, their steps the same": (
        lambda c: c.unit != "event" and c.relation == RELATIONS[1]
    ),
    "with at most 3 events over the whole life of the stream": lambda c: c.unit == "id",
    "with at most 3 events in it": lambda c: c.unit == "id, weekly",
    "Of an id with more rows that a gauge counts, only the first 3 count": (
        lambda c: c.unit == "id" and c.relation == RELATIONS[0]
    ),
    "Of an id with more rows, only the first 3 count, so that it is protected whole": (
        lambda c: c.unit == "id" and c.relation == RELATIONS[1]
    ),
    "Of an id with more rows that a gauge counts in a period, only the first 3 count": (
        lambda c: c.unit == "id, weekly" and c.relation == RELATIONS[0]
    ),
    "Of an id with more rows in a period, only the first 3 count": (
        lambda c: c.unit == "id, weekly" and c.relation == RELATIONS[1]
    ),
    "a record that is taken away keeps its place": (
        lambda c: c.clock == "records" and c.relation == RELATIONS[0]
    ),
    "find out whether one event was in the data, and": (
        lambda c: c.unit == "event" and c.relation == RELATIONS[0]
    ),
    "find out whether one id was in the data, and": (
        lambda c: c.unit == "id" and c.relation == RELATIONS[0]
    ),
    "any other in its step": lambda c: c.unit == "event" and c.relation == RELATIONS[1],
    "any others in their steps": lambda c: c.unit != "event" and c.relation == RELATIONS[1],
    "counted from": lambda c: c.unit == "id, weekly",
    # what is left open
    "Whether an event took place at all": (
        lambda c: c.unit == "event" and c.relation == RELATIONS[1]
    ),
    "Whether an id was in the data at all": (
        lambda c: c.unit != "event" and c.relation == RELATIONS[1]
    ),
    "How many records there were.": lambda c: c.clock == "records" and c.relation == RELATIONS[0],
    "A person with several events:": lambda c: c.unit == "event",
    "A person with several ids:": lambda c: c.unit == "id",
    "A person with several ids, or in several periods:": lambda c: c.unit == "id, weekly",
    "An event that changes or moves": lambda c: c.unit == "event" and c.relation == RELATIONS[0],
    "An id whose events change or move": lambda c: c.unit != "event" and c.relation == RELATIONS[0],
    "Another plan over the same data": lambda c: True,
    "time, memory and power": lambda c: True,
    "| events |": lambda c: c.unit == "event",
    "| ids |": lambda c: c.unit == "id",
    "| ids or periods |": lambda c: c.unit == "id, weekly",
    # how well
    "change the odds on whether": lambda c: is_pure(c),
    "Rényi divergence": lambda c: c.guarantee == "rho: 0.5",
    "times as likely, plus 1e-9": lambda c: "delta" in c.guarantee,
    "single draw": lambda c: c.guarantee != "epsilon: 0.5" and not is_pure(c),
    "any smaller delta has a larger epsilon": lambda c: c.guarantee in ("rho: 0.5", "mu: 1"),
    "delta is unused": lambda c: "delta" in c.guarantee and is_pure(c),
    # how often
    "ERRATUM": lambda c: c.releases > 1,
    "None so far": lambda c: c.releases == 1,
    "The plan is run once": lambda c: c.releases == 1,
    "is ever published": lambda c: c.releases == 1,
    "Promised was": lambda c: c.releases > 1,
    "What was promised holds for each release by itself": lambda c: c.releases > 1,
    "was or will be published by the 2 releases": lambda c: c.releases == 2,
    "was or will be published by the 3 releases": lambda c: c.releases == 3,
    "from this gauge under": lambda c: c.releases == 1 and c.gauges != "both",
    "from these gauges, together, under": lambda c: c.releases == 1 and c.gauges == "both",
    # on what it rests
    "Each event is delivered once": lambda c: c.unit == "event",
    "Column who has one id for each one": lambda c: c.unit != "event",
    "under keyed hashes of the ids": lambda c: c.unit != "event",
    "erased when the last step is measured": lambda c: c.clock != "endless",
    "for there is no end": lambda c: c.clock == "endless",
    "noisy numbers, the plan, this statement": lambda c: True,
    "noisy numbers alone": lambda c: False,
    # the numbers
    "the number of rows (": lambda c: c.gauges == "count",
    'the number of rows where `("a" > 0.0)` by shop': lambda c: c.gauges in ("where", "both"),
    "the sum of euros (": lambda c: c.gauges in ("sum", "both"),
    "A value outside the bounds": lambda c: c.gauges in ("sum", "both"),
    "rows without a number": lambda c: c.gauges in ("sum", "both"),
    "where other is dropped": lambda c: c.gauges in ("where", "both"),
    "counts as the largest": lambda c: True,
    "The intervals cover the noise alone": lambda c: True,
    "rows that cannot be read": lambda c: True,
    "rows without a stamp in at": lambda c: c.clock != "records",
    "whose stamp has no zone": lambda c: c.clock == "time",
    "rows outside the steps": lambda c: c.clock != "records",
    "rows without an id in who": lambda c: c.unit != "event",
    "having been": lambda c: False,
    "being what": lambda c: False,
}  # fmt: skip


TABLE = ["2", "5", "10", "20", "50"]


@cache
def is_pure(case):
    return isinstance(case.plan.charged().total(), PureDP)


@cache
def spent_of(case):
    """What all releases spend: mu, or epsilon of a pure one; by root of squares and by sum."""
    costs = [charge.cost for charge in case.plan.charged().charges] * case.releases
    if is_pure(case):
        return sum(float(cost.epsilon) for cost in costs)
    return math.sqrt(sum(float(cost.mu_squared) for cost in costs))


@cache
def least_epsilon(case, units=1):
    """The epsilon at delta = 1e-9 that so many units lose."""
    spent = units * spent_of(case)
    return spent if is_pure(case) else float(epsilon_from_mu(spent, 1e-9))


def figures(text, case):
    """Every figure of a statement: what it is, as it is told, and the least that is true."""
    spent, normal = spent_of(case), NormalDist()
    if is_pure(case):
        most = min(0.05 * math.exp(spent), 1 - 0.95 * math.exp(-spent))
    else:
        most = normal.cdf(normal.inv_cdf(0.05) + spent)
    yield "odds", re.search(r"right at most (\S+) times in 100", text)[1], 100 * most
    numbers = re.search(r"In numbers: (.*)", text)[1].split("Promised")[0]
    least = {"epsilon": spent, "mu": spent, "rho": spent**2 / 2}
    for name, value in re.findall(r"\b(epsilon|mu|rho) = (\d[\d.e-]*\d|\d)", numbers):
        yield name, value, least[name]
    for value in re.findall(r"\(epsilon, delta\) = \(([^,]*), 1e-9\)", numbers)[-1:]:
        yield "epsilon at delta", value, least_epsilon(case)
    for k, epsilon, _ in table_of(text):
        yield f"{k} units", epsilon, least_epsilon(case, int(k))


def table_of(text):
    return re.findall(r"^\| (\d+) \| (\S+) \| (\S+) \|$", text, re.M)


def mistakes(text, case):
    """What a statement says wrongly of a case, or leaves out."""
    found = [
        sentence for sentence, holds in RULES.items() if (sentence in text) != bool(holds(case))
    ]
    for name, told, least in figures(text, case):
        if not least * (1 - 1e-6) <= float(told) <= 1.02 * least + 0.05:
            found.append(f"{name}: {told}, not {least}")
    if [k for k, _, delta in table_of(text) if (delta == "0") == is_pure(case)] != TABLE:
        found.append("rows of the table")
    if case.unit == "id, weekly" and text.count(period(case)) < 4:
        found.append("a period without its start")
    return found


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_every_sentence_is_true_of_every_plan(case):
    assert [] == mistakes(case.text, case)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_the_statement_of_another_plan_would_be_found_false(case):
    """The broken twin: each statement judged by the rules of a case that differs in one thing."""
    others = [
        *(replace(case, unit=unit) for unit in UNITS),
        *(replace(case, relation=relation) for relation in RELATIONS),
        *(replace(case, releases=n) for n in (1, 2)),
    ]
    if case.gauges == "count" and case.clock == "time":
        others += [replace(case, guarantee=guarantee) for guarantee in GUARANTEES]
    for other in others:
        if other != case:
            assert mistakes(other.text, case), other


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_one_page_is_enough_to_sign(case):
    page = first_page(case.text)
    assert len(page.split()) <= 380
    assert len(page.splitlines()) <= 40
    for words in (
        "Protected is", "right at most", "In numbers:", "This covers everything",
        "## What is not", "## What the operator sees to", case.plan.sha256, "signature: ____",
    ):  # fmt: skip
        assert words in page
    head, *_ = case.text.splitlines()
    assert ("ERRATUM" in head) == (case.releases > 1)
    for one in FURTHER[: case.releases - 1]:
        assert f"{one.day}: a further release was accepted, from step {one.step} on." in page


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_the_statement_for_programs_and_every_sentence_of_its_parts_are_in_the_text(case):
    plan, further = case.plan, FURTHER[: case.releases - 1]
    data = json.loads(json.dumps(privacy_data(plan, further)))
    for sentence in (
        *not_covered(plan), *duties(plan, case.releases), *left_out(plan), *at_rest(plan),
        *data["not_covered"], *data["assumed"], *data["left_out"], *data["at_rest"],
        *data["errata"], *(f"{key}: {value}" for key, value in declared(plan).items()),
    ):  # fmt: skip
        assert f"* {sentence}" in case.text
    assert data["odds"] in case.text
    assert data["protected"] in case.text
    assert promise(plan, case.releases) in case.text
    assert data["releases"] == case.releases
    spent = spent_of(case)
    known = {"epsilon": spent if is_pure(case) else float(epsilon_from_mu(spent, 1e-9))}
    if not is_pure(case):
        known["mu"] = spent
    for name, value in known.items():
        assert value * (1 - 1e-9) <= float(data["guarantee"][name]) <= value * (1 + 1e-6)
    assert unit_sentence(plan).endswith(f"({case.relation})")
    assert (period(case) in unit_sentence(plan)) == (case.unit == "id, weekly")


# --- one by one


@pytest.mark.parametrize("name", ["flights", "baskets", "records"])
def test_the_statement_is_as_it_was_reviewed(name):
    # of the accepted numbers: a fit may differ in its last digits on another machine
    plan = plan_from_bytes((GOLDEN / f"{name}.plan.json").read_bytes())
    assert privacy_text(plan) == (GOLDEN / f"{name}.PRIVACY.md").read_text()


def test_odds_are_those_of_the_trade_off():
    assert "right at most 7.2 times in 100" in odds(planned(ALL["flights"]))
    assert "right at most 8.3 times in 100" in odds(planned(ALL["records"]))  # 5 e^0.5
    assert "right at most 13.6 times in 100" in odds(planned(ALL["records"]), 2)  # 5 e


def test_a_mixed_spend_is_read_through_its_divergence():
    """No planner mixes kinds of noise, but a ledger can: rho is then all that is known."""
    plan = planned(ALL["flights"])

    class Other:
        delta_for_names, guarantee, event = Fraction(0), plan.guarantee, None

        def spent_on_noise(self, releases=1):
            return ZCDP(Fraction(1, 100) * releases)

        def spent_on_thresholds(self, releases=1):
            return None

        unit, clock, relation, privacy_unit = (
            plan.unit, plan.clock, plan.relation, plan.privacy_unit,
        )  # fmt: skip

    told = float(re.search(r"right at most (\S+) times", odds(Other()))[1]) / 100
    gaussian = NormalDist().cdf(NormalDist().inv_cdf(0.05) + math.sqrt(2 / 100))
    assert gaussian <= told < 0.2  # a Gaussian of this rho is one of those it has to cover
    epsilon = float(epsilon_from_rho(0.01, 0.01))
    assert told <= 0.05 * math.exp(epsilon) + 0.01 + 0.001


@pytest.mark.parametrize("releases", [1, 2, 3, 10])
@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_what_holds_for_all_releases_is_what_they_spend_or_more(guarantee, releases):
    plan = Case(guarantee=guarantee).plan
    whole, spent = guarantee_of_all(plan, releases), plan.charged().total(releases)
    assert type(whole) is type(plan.guarantee)
    match whole:
        case PureDP(epsilon=epsilon):
            assert epsilon == releases * plan.guarantee.epsilon
            assert spent.epsilon <= epsilon
        case GaussianDP(mu=mu):
            assert releases * plan.guarantee.mu**2 <= mu**2
        case ApproxDP(epsilon=epsilon):
            assert epsilon >= epsilon_of(plan, releases)
        case _:
            assert whole.rho == releases * plan.guarantee.rho
    if isinstance(spent, GaussianDP):
        assert spent.mu**2 >= releases * sum(c.cost.mu_squared for c in plan.charged().charges)
    assert [row.events for row in k_events(plan, releases)] == [2, 5, 10, 20, 50]


@pytest.mark.parametrize("name", ALL)
def test_the_statement_names_every_declared_constant(name):
    plan = planned(ALL[name])
    section = privacy_text(plan).split("## Declared, not protected")[1].split("\n## ")[0]
    for gauge in plan.gauges:
        for _, values in gauge.by:
            assert all(f"`{value}`" in section for value in values)
        assert gauge.where is None or f"`{gauge.where}`" in section
        assert f"{gauge.name}, largest total" in section
    assert all(f"* {key}: {value}" in section for key, value in declared(plan).items())


def test_many_known_values_stay_on_few_lines():
    values = ", ".join(f"s{i}" for i in range(5000))
    text = privacy_text(planned(FLIGHTS.replace("UA, B6, EV, DL, AA, MQ", values)))
    assert "and 4,988 more (plan.json)" in text
    assert len(text.split("\n")) < 110


# --- the ledger, for a stranger


def spends_of(plan, releases):
    return [spend_of(plan, "a", 3 * n, f"2026-01-0{1 + n}") for n in range(releases)]


@pytest.mark.parametrize("releases", [1, 2])
@pytest.mark.parametrize("name", [*ALL, "pure"])
def test_a_stranger_recomputes_epsilon_with_another_library(name, releases):
    from dp_accounting import dp_event, privacy_accountant
    from dp_accounting.pld.pld_privacy_accountant import PLDAccountant

    plan = planned((ALL | {"pure": FLIGHTS.replace("  delta: 1.0e-9\n", "")})[name])
    data = json.loads(json.dumps(ledger_data(plan, spends_of(plan, releases))))

    def event(fields):
        kind = getattr(dp_event, fields["class_name"])
        rest = {k: v for k, v in fields.items() if k not in ("class_name", "module_name")}
        if "events" in rest:
            rest["events"] = [event(inner) for inner in rest["events"]]
        return kind(**rest)

    relation = privacy_accountant.NeighboringRelation[data["accountant_relation"]]
    accountant = PLDAccountant(relation)
    accountant.compose(event(data["events"]))
    delta = float(Fraction(data["delta"]))
    claimed = float(Fraction(data["epsilon"]))
    assert accountant.get_epsilon(delta) == pytest.approx(claimed, rel=2e-3)
    assert claimed >= float(epsilon_of(plan, releases)) * (1 - 1e-12)


def test_a_second_release_is_charged_again():
    plan = planned(ALL["baskets"])
    data = ledger_data(plan, spends_of(plan, 2))
    assert [charge["gauge"] for charge in data["charges"]] == ["baskets", "money"] * 2
    assert [charge["from_step"] for charge in data["charges"]] == [1, 1, 4, 4]
    assert len(data["events"]["events"]) == 4
    assert data["within_guarantee"] is False


def test_all_three_documents_tell_one_epsilon_after_a_second_release():
    plan = planned(ALL["flights"])
    texts = documents(plan, spends_of(plan, 2))
    data, ledger = (json.loads(texts[f"{name}.json"]) for name in ("privacy", "ledger"))
    assert data["guarantee"]["epsilon"] == ledger["epsilon"]
    assert 2 == data["releases"] == ledger["releases"]
    (told,) = re.findall(
        r"In numbers: \(epsilon, delta\) = \(([\d.]+),", texts["PRIVACY.md"].decode()
    )
    assert 0 <= float(told) - float(ledger["epsilon"]) < 0.01
    assert float(told) > 1
