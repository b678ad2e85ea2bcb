"""What a plan says: predicted noise, and the schema of a config."""

import json
import math
import re

import jsonschema
import numpy as np
import pytest
from ruamel.yaml import YAML
from unit.planning.configs import ALL, FLIGHTS, SMALL

from tidegauge.planning.config import config_of
from tidegauge.planning.described import described
from tidegauge.planning.planner import plan_of
from tidegauge.planning.schema import config_schema
from tidegauge.planning.spending import budget_share
from tidegauge.planning.widest import ratio_to_bound
from tidegauge.strategies.decay import Running


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
    widest = plan.gauges[0].mechanism.half_width("window_7d", np.arange(1, 8761)).max()
    assert week["worst"]["half_width"] == pytest.approx(widest)
    assert week["stands_out"] == (
        f"the smallest count in 7 days that stands out is {math.ceil(widest)}"
    )


def test_what_stands_out_does_so_at_every_step(plans):
    """Noise of blocks rises and falls: the last step may have less than most others."""
    gauge = plans["pure"].gauges[0]
    falling = 0
    for name, decay in gauge.views:
        told = view(plans["pure"], name)
        steps = np.arange(1, 8761)
        steps = steps[steps % gauge.every_of(name) == 0]
        widths = gauge.mechanism.half_width(decay, steps)
        widest = told["worst"]["half_width"]
        assert widest == pytest.approx(widths.max())
        assert widest == pytest.approx(
            gauge.mechanism.half_width(decay, [told["worst"]["step"]])[0]
        )
        assert told["worst"]["noise_std"] >= max(told["noise_std"]) * (1 - 1e-12)
        number = int(told["stands_out"].rsplit(" ", 1)[1].replace(",", ""))
        assert widest < number <= widest + 1
        falling += widths[-1] < widest
    assert falling


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
