"""What a plan says: predicted noise, the statement, the ledger, the schema."""

import json
import math
import re
from fractions import Fraction
from pathlib import Path

import jsonschema
import pytest
from ruamel.yaml import YAML
from unit.planning.configs import ALL, FLIGHTS, SMALL

from tidegauge.planning.config import config_of
from tidegauge.planning.plan import Plan
from tidegauge.planning.planner import plan_of
from tidegauge.planning.promise import (
    assumptions,
    declared,
    ledger_data,
    odds,
    privacy_data,
    privacy_text,
)
from tidegauge.planning.schema import config_schema
from tidegauge.planning.words import budget_share, described, epsilon_of, mu_of, ratio_to_bound
from tidegauge.strategies.decay import Running

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture(scope="module")
def plans(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plans")

    def plan(text):
        (folder / "c.yaml").write_text(text)
        return plan_of(config_of(folder / "c.yaml"))

    return {name: plan(text) for name, text in ALL.items()} | {
        "pure": plan(FLIGHTS.replace("  delta: 1.0e-9\n", ""))
    }


def view(plan, name, gauge=0):
    return next(v for v in described(plan)["gauges"][gauge]["views"] if v["name"] == name)


# --- predicted noise


def test_predicted_noise_is_that_of_the_mechanism(plans):
    plan = plans["flights"]
    week = view(plan, "window_7d")
    assert week["steps"] == [1, 4380, 8760]
    expected = plan.gauges[0].mechanism.noise_std("window_7d", [1, 4380, 8760])
    assert week["noise_std"] == expected.tolist()
    half = week["half_width"][-1]
    assert half == pytest.approx(1.959964 * week["noise_std"][-1])
    assert week["stands_out"] == (
        f"the smallest count in 7 days that stands out is {math.ceil(half)}"
    )


def test_a_view_read_at_aligned_ends_is_predicted_there(plans):
    assert view(plans["flights"], "window_1d_every_1d")["steps"] == [24, 4392, 8760]


def test_sums_are_predicted_in_their_own_unit(plans):
    plan = plans["baskets"]
    week = view(plan, "week", gauge=1)
    grains = plan.gauges[1].mechanism.noise_std("week", week["steps"])
    assert week["noise_std"] == pytest.approx((grains / 100).tolist())
    assert re.fullmatch(
        r"the smallest sum of sales_value in 7 days that stands out is [0-9,]+(\.[0-9]{1,2})?",
        week["stands_out"],
    )


def test_an_unknown_horizon_is_told_over_four_decades_and_more(plans):
    assert view(plans["small"], "running")["steps"][-1] == 1 << 20
    assert described(plans["small"])["horizon"] is None


@pytest.mark.parametrize("name", [*ALL, "pure"])
def test_no_view_beats_the_lower_bound_of_its_form(plans, name):
    for gauge in described(plans[name])["gauges"]:
        for found in gauge["views"]:
            assert 0.999 < found["ratio"] < 40, found["name"]


def test_the_ratio_is_that_of_the_least_std_at_equal_privacy(plans):
    from tidegauge.strategies.bounds import lower_bound

    mechanism = plans["flights"].gauges[0].mechanism
    std = mechanism.noise_std(Running(), [8760])[0]
    least = lower_bound(Running(), 8760) / float(mechanism.cost.mu)
    assert ratio_to_bound(mechanism, Running()) == pytest.approx(std / least, rel=1e-6)


def test_shares_of_the_budget_are_those_of_the_weights(plans):
    plan = plans["baskets"]
    assert [budget_share(plan, gauge) for gauge in plan.gauges] == [0.25, 0.75]


def test_what_plan_tells_is_plain_data(plans):
    for plan in plans.values():
        assert json.loads(json.dumps(described(plan))) == described(plan)


# --- the statement


@pytest.mark.parametrize("name", ["flights", "baskets", "records"])
def test_the_statement_is_as_it_was_reviewed(name):
    # of the accepted numbers: a fit may differ in its last digits on another machine
    text = privacy_text(Plan.from_bytes((GOLDEN / f"{name}.plan.json").read_bytes()))
    path = GOLDEN / f"{name}.PRIVACY.md"
    assert text == path.read_text()


def test_odds_are_those_of_the_trade_off(plans):
    assert "right at most 7.2 times in 100" in odds(plans["flights"])
    assert "right at most 8.3 times in 100" in odds(plans["records"])  # 5 e^0.5
    assert "all events (at most 20) of any one id in any one period of 7 days" in (
        odds(plans["baskets"])
    )


@pytest.mark.parametrize("name", ALL)
def test_the_statement_names_every_declared_constant(plans, name):
    plan = plans[name]
    text = privacy_text(plan)
    section = text.split("## Declared, not protected")[1].split("## Not covered")[0]
    for gauge in plan.gauges:
        for _, values in gauge.by:
            assert all(f"`{value}`" in section for value in values)
        assert gauge.where is None or f"`{gauge.where}`" in section
        assert f"{gauge.name}, largest total" in section
    assert all(f"* {key}: {value}" in section for key, value in declared(plan).items())
    for sentence in assumptions(plan):
        assert f"* {sentence}" in text
    assert plan.sha256 in text
    assert f"({plan.relation.value})" not in text.split("## More events")[1]


def test_many_known_values_stay_on_one_page(tmp_path):
    values = ", ".join(f"s{i}" for i in range(5000))
    (tmp_path / "c.yaml").write_text(FLIGHTS.replace("UA, B6, EV, DL, AA, MQ", values))
    text = privacy_text(plan_of(config_of(tmp_path / "c.yaml")))
    assert "and 4,988 more (plan.json)" in text
    assert len(text.split("\n")) < 90


def test_errata_are_told(plans):
    text = privacy_text(plans["flights"], ["2026-01-01: the first week was published twice."])
    assert "* 2026-01-01: the first week was published twice." in text
    assert "None so far" not in text
    assert "None so far" in privacy_text(plans["flights"])


def test_the_statement_for_programs_says_the_same(plans):
    plan = plans["flights"]
    data = json.loads(json.dumps(privacy_data(plan)))
    assert data["plan"] == plan.sha256
    assert data["unit"] == "event"
    assert data["odds"] == odds(plan)
    assert data["declared_not_protected"] == declared(plan)
    assert data["guarantee"]["promised_epsilon"] == "1"
    assert Fraction(data["guarantee"]["mu"]) >= mu_of(plan)
    assert [row["events"] for row in data["k_events"]] == [2, 5, 10, 20, 50]


# --- the ledger, for a stranger


@pytest.mark.parametrize("name", [*ALL, "pure"])
def test_a_stranger_recomputes_epsilon_with_another_library(plans, name):
    from dp_accounting import dp_event, privacy_accountant
    from dp_accounting.pld.pld_privacy_accountant import PLDAccountant

    data = json.loads(json.dumps(ledger_data(plans[name])))

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
    assert claimed >= float(epsilon_of(plans[name])) * (1 - 1e-12)


def test_a_second_release_is_charged_again(plans):
    data = ledger_data(plans["baskets"], releases=2)
    assert [charge["gauge"] for charge in data["charges"]] == ["baskets", "money"] * 2
    assert len(data["events"]["events"]) == 4
    assert data["within_guarantee"] is False


# --- the schema


def as_json(value):
    if isinstance(value, dict):
        return {str(key): as_json(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [as_json(inner) for inner in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return value.isoformat()


@pytest.mark.parametrize("text", ALL.values(), ids=ALL)
def test_the_schema_takes_what_we_take(text):
    schema = config_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(as_json(YAML(typ="safe").load(text)), schema)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("about:", "abuot:"),
        ("  unit: event\n", ""),
        ("epsilon: 1.0", "epsilon: one"),
        ("half_life: 1d", "halflife: 1d"),
        ("[UA, B6,", "[1, B6,"),
        ("add_or_remove_one", "swap"),
        ("step: 1h\n", ""),
        ("[step,", "[[step],"),
    ],
)
def test_the_schema_refuses_what_we_refuse(old, new):
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(
            as_json(YAML(typ="safe").load(FLIGHTS.replace(old, new))), config_schema()
        )


def test_every_field_of_the_schema_is_a_field_of_the_config():
    fields = set(config_schema()["properties"])
    assert set(as_json(YAML(typ="safe").load(FLIGHTS))) <= fields
    assert set(as_json(YAML(typ="safe").load(SMALL))) <= fields
