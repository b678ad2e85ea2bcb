"""Events that are sets of rows: configs, their mistakes, plans and statements."""

from dataclasses import replace

import pytest
from unit.planning.configs import BASKETS, RECORDS, SMALL

from tidegauge.errors import InvalidParameter
from tidegauge.planning.config import config_of
from tidegauge.planning.described import described
from tidegauge.planning.planner import plan_of
from tidegauge.planning.problems import ConfigError
from tidegauge.planning.statement import privacy_data, privacy_text
from tidegauge.planning.verified import plan_from_bytes

SETS = SMALL.replace("step: 1h", "step: 1h\nend: 2013-01-03T00:00:00Z\nevent: basket_id").replace(
    "{departures: count}",
    """
  products:
    count: {where: "sales > 0"}
    by: {department: [GROCERY, MEAT, PRODUCE]}
    max_items: 2
    repeats: 3
  baskets: count
  money: {sum: {column: sales, bounds: [0, 100]}, by: {department: [MEAT]}, max_items: 9}
  kinds: {count_distinct: {column: product, window: 1d}, max_items: 4}
  shops: {count_distinct: {column: shop, window: running}, by: {town: [A]}, max_items: 1}
""",
)


@pytest.fixture
def read(tmp_path):
    def reader(text):
        path = tmp_path / "c.yaml"
        path.write_text(text)
        return config_of(path)

    return reader


def problems(read, text):
    with pytest.raises(ConfigError) as caught:
        read(text)
    return caught.value.problems


def test_a_config_says_how_much_of_an_event_counts(read):
    config = read(SETS)
    assert "basket_id" == config.event
    found = {gauge.name: (gauge.max_items, gauge.high) for gauge in config.gauges}
    expected = {
        "products": (2, 3), "baskets": (1, 1), "money": (2, 100), "kinds": (1, 4), "shops": (1, 1),
    }  # fmt: skip
    assert expected == found  # of money there are two cells
    once = read(SETS.replace("repeats: 3", "repeats: once"))
    assert 1 == once.gauges[0].high
    assert read(SMALL).event is None
    alone = SMALL.replace("departures: count", "departures: {count: , max_items: 1, repeats: once}")
    assert read(SMALL).gauges == read(alone).gauges


@pytest.mark.parametrize(
    ("old", "new", "told", "message"),
    [
        ("event: basket_id", "evnt: basket_id", "evnt", "Did you mean 'event'?"),
        ("max_items: 2", "max_item: 2", "max_item: 2", "Did you mean 'max_items'?"),
        ("repeats: 3", "repeat: 3", "repeat: 3", "Did you mean 'repeats'?"),
        ("event: basket_id", "event: ''", "''", "Expected"),
        ("repeats: 3", "repeats: 0", "0\n  baskets", "Expected once or a number above 0"),
        ("repeats: 3", "repeats: each", "each", "Write once, or 3."),
        ("max_items: 2", "max_items: 0", "0\n    repeats", "Expected a whole number from 1"),
        ("    max_items: 2\n", "", "products", "Expected max_items where an event is a set"),
        (", max_items: 4", "", "kinds", "many values"),
        ("A]}, max_items: 1", "A]}, max_items: 2", "max_items: 2}\n\n", "is not proved"),
        ("max_items: 9}", "max_items: 9, repeats: 2}", "repeats: 2", "clamped to bounds"),
        ("max_items: 4}", "max_items: 4, repeats: 2}", "repeats: 2", "count once each"),
        ("baskets: count", "baskets: {count: , max_items: 2}", "max_items: 2}", "is one cell"),
        ("event: basket_id\n", "", "max_items: 2", "Expected event beside max_items"),
        ("event: basket_id\n", "", "repeats: 3", "Expected event beside repeats"),
    ],
)
def test_each_mistake_has_its_place_and_its_remedy(read, old, new, told, message):
    assert old in SETS
    text = SETS.replace(old, new)
    before = text[: text.index(told)].split("\n")
    found = {(one.line, one.column): one.message for one in problems(read, text)}
    assert message in found.get((len(before), 1 + len(before[-1])), ""), found


def test_records_that_are_steps_are_in_no_sets(read):
    (found,) = problems(read, f"event: basket_id\n{RECORDS}")
    assert "Rows of one event would be several steps" in found.message


def test_noise_is_made_for_the_cells_of_an_event(read):
    plan = plan_of(read(SETS))
    assert plan == plan_from_bytes(plan.canonical())
    neighbors = {gauge.name: gauge.mechanism.neighbors for gauge in plan.gauges}
    assert (2 * 3, 2 * 3**2) == (
        neighbors["products"].event_l1,
        neighbors["products"].event_l2_squared,
    )
    assert (1, 200) == (neighbors["baskets"].event_l1, neighbors["money"].event_l1)
    assert (4, 1) == (neighbors["kinds"].high, neighbors["kinds"].max_cells)
    replaced = plan_of(
        read(SETS.replace("unit: event", "unit: event, neighboring_relation: replace_one"))
    )
    assert 4 * 3**2 == replaced.gauge("products").mechanism.neighbors.event_l2_squared
    assert "basket_id" in plan.columns
    rows = plan_of(read(SMALL.replace("step: 1h", "step: 1h\nend: 2013-01-03T00:00:00Z")))
    assert b'"event":' not in rows.canonical()
    assert plan.fingerprint != replace(plan, event="other").fingerprint


@pytest.mark.parametrize("change", ["no event", "more cells", "no cells", "two values"])
def test_a_changed_plan_is_refused(read, change):
    plan = plan_of(read(SETS))

    def changed(name, **fields):
        gauges = [replace(g, **fields) if g.name == name else g for g in plan.gauges]
        return replace(plan, gauges=tuple(gauges))

    other = {
        "no event": replace(plan, event=None),
        "more cells": changed("products", max_items=3),
        "no cells": changed("products", max_items=0),
        "two values": changed("shops", high=2),
    }[change]
    with pytest.raises(InvalidParameter):
        plan_from_bytes(other.canonical())


def test_a_plan_tells_what_of_its_ratio_is_for_sets(read):
    told = {gauge["name"]: gauge.get("sets") for gauge in described(plan_of(read(SETS)))["gauges"]}
    for name in ("products", "money"):
        assert told[name] == "of its ratio a factor of 1.41 is for events in 2 cells"
    assert told["baskets"] is told["kinds"] is told["shops"] is None


def test_the_statement_says_what_an_event_is(read):
    text = " ".join(privacy_text(plan_of(read(SETS))).split())
    for sentence in (
        "An event is all rows with one basket_id, taken together, at the step of the earliest.",
        "Column basket_id has one id for each event, never used again",
        "event: all rows of one basket_id, at the step of the earliest",
        "products, of one event: at most 2 cells: the smallest by bytes; up to 3 times in each",
        "baskets, of one event: once in each",
        "clamped to the bounds",
        "kinds, of one event: at most 4 values: the smallest by a keyed hash",
        "the number of events",
        "rows without an event in basket_id",
        "keyed hashes of the ids of all events so far",
    ):
        assert sentence in text, sentence
    assert "basket_id" == privacy_data(plan_of(read(SETS)))["event"]
    baskets = BASKETS.replace("step: 1d", "step: 1d\nevent: basket").replace(
        "other: drop}", "other: drop, max_items: 2}"
    )
    text = privacy_text(plan_of(read(baskets)))
    assert "An event is all rows with one household and basket, taken together" in text
    assert "Of an id with more events in a period, only the first 20 count" in text
