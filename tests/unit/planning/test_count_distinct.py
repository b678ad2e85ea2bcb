"""count_distinct in a config, in a plan, and in what is published of it."""

import json
from fractions import Fraction

import pytest
from configs import FLIGHTS

from tidegauge.errors import InvalidParameter
from tidegauge.planning.config import config_of
from tidegauge.planning.constants import declared
from tidegauge.planning.described import described
from tidegauge.planning.planner import plan_of
from tidegauge.planning.problems import ConfigError
from tidegauge.planning.sentences import at_rest, left_out
from tidegauge.planning.statement import privacy_text
from tidegauge.planning.verified import plan_from_bytes
from tidegauge.strategies.blocks import Blocks, OpenBlocks
from tidegauge.strategies.decay import Running, Window
from tidegauge.strategies.distinct import Anchored, Shaped

HEAD = FLIGHTS.split("gauges:")[0]


def text_of(gauge, privacy="epsilon: 1.0\n  delta: 1.0e-9"):
    head = HEAD.replace("epsilon: 1.0\n  delta: 1.0e-9", privacy)
    return f"{head}gauges:\n  aircraft: {gauge}\n"


@pytest.fixture
def read(tmp_path):
    def reader(text):
        path = tmp_path / "c.yaml"
        path.write_text(text)
        return config_of(path)

    return reader


@pytest.fixture
def planned(read):
    return lambda text: plan_of(read(text))


def first_problem(read, text):
    with pytest.raises(ConfigError) as caught:
        read(text)
    return caught.value.problems[0]


def test_a_window_is_the_one_view_and_decides_the_mechanism(planned):
    plan = planned(text_of("{count_distinct: {column: tailnum, window: 1d}, by: {origin: [JFK]}}"))
    (gauge,) = plan.gauges
    assert ("count_distinct", "tailnum", 24) == (gauge.kind, gauge.column, gauge.distinct)
    assert (("window_1d", Window(24)),) == gauge.views
    assert isinstance(gauge.mechanism.strategy, Shaped)
    assert 24 == gauge.mechanism.full_after("window_1d")
    assert ("dep_delay", "tailnum") == planned(
        text_of("{count_distinct: {column: tailnum, window: 1d, where: 'dep_delay > 0'}}")
    ).gauges[0].columns


def test_running_counts_first_occurrences(planned):
    gauge = planned(text_of("{count_distinct: {column: tailnum, window: running}}")).gauges[0]
    assert (("running", Running()),) == gauge.views
    assert "ever" == gauge.distinct == gauge.mechanism.neighbors.distinct


def test_pure_plans_have_pure_strategies(planned):
    windowed = planned(text_of("{count_distinct: {column: tailnum, window: 7d}}", "epsilon: 1.0"))
    assert isinstance(windowed.gauges[0].mechanism.strategy, Anchored)
    ever = planned(text_of("{count_distinct: {column: tailnum, window: running}}", "epsilon: 1.0"))
    assert isinstance(ever.gauges[0].mechanism.strategy, Blocks | OpenBlocks)


def test_the_papers_tree_can_be_asked_for(planned, read):
    asked = "{count_distinct: {column: tailnum, window: running}, strategy: DistinctCount}"
    strategy = planned(text_of(asked)).gauges[0].mechanism.strategy
    assert isinstance(strategy, Blocks)
    assert (1, 2, 4) == strategy.levels[:3]


@pytest.mark.parametrize(
    ("gauge", "expected"),
    [
        ("{count_distinct: {column: v, window: 1d}, views: [7d]}", "no views beside"),
        ("{count_distinct: {column: v, window: 1d}, anticipate: [7d]}", "no anticipate beside"),
        ("{count_distinct: {column: v, window: 1d}, max_per_step: 9}", "no max_per_step beside"),
        ("{count_distinct: {column: v, window: 1d}, by: {o: [a]}, totals: true}", "no totals"),
        (
            "{count_distinct: {column: v, window: 1d}, count: {}}",
            "count, sum, mean, count_distinct or top_k",
        ),
        ("{count_distinct: {column: v}}", "window"),
        ("{count_distinct: {window: 1d}}", "column"),
        ("{count_distinct: {column: v, window: 90m}}", "whole number of steps"),
        ("{count_distinct: {column: v, window: 0h}}", "got"),
        ("{count_distinct: {column: v, window: ever}}", "ever"),
        ("{count_distinct: {column: v, window: 500d}}", "within the stream"),
        ("{count_distinct: {column: v, window: 200000d}}", "at most 1,048,576 steps"),
        ("{count_distinct: {column: v, window: 1d, windows: 1d}}", "Did you mean 'window'"),
        ("{count_distint: {column: v, window: 1d}}", "Did you mean 'count_distinct'"),
    ],
)
def test_what_has_no_meaning_is_refused_at_its_place(read, gauge, expected):
    problem = first_problem(read, text_of(gauge))
    assert expected in problem.message
    assert "aircraft" in problem.source_line


def test_a_plan_comes_back_from_its_bytes(planned):
    for window in ("1d", "running", "1h"):
        plan = planned(text_of(f"{{count_distinct: {{column: tailnum, window: {window}}}}}"))
        assert plan == plan_from_bytes(plan.canonical())
        assert Fraction(1) == plan.gauges[0].round_to


def changed(plan, change):
    data = json.loads(plan.canonical())
    change(data["gauges"][0])
    return json.dumps(data).encode()


def another_window(gauge):
    gauge["views"][0][1]["steps"] = gauge["mechanism"]["views"][0][1]["steps"] = 48


def longer_window(gauge):
    another_window(gauge)
    gauge["mechanism"]["neighbors"]["distinct"] = 48


def longer_with_its_strategy(gauge):
    longer_window(gauge)
    gauge["mechanism"]["strategy"]["window"] = 48


def rows(gauge):
    gauge["kind"], gauge["column"] = "count", None


def silent(gauge):
    del gauge["mechanism"]["neighbors"]["distinct"]


def more_views(gauge):
    gauge["views"].append(["step", {"is": "Step"}])
    gauge["mechanism"]["views"].append(["step", {"is": "Step"}])


def of_nothing(gauge):
    gauge["column"] = None


@pytest.mark.parametrize(
    "change",
    [another_window, longer_window, longer_with_its_strategy, rows, silent, more_views, of_nothing],
)
def test_a_plan_that_was_changed_is_refused(planned, change):
    plan = planned(text_of("{count_distinct: {column: tailnum, window: 1d}}"))
    with pytest.raises(InvalidParameter):
        plan_from_bytes(changed(plan, change))


def test_another_window_is_another_declaration(planned):
    one, other = (
        planned(text_of(f"{{count_distinct: {{column: tailnum, window: {window}}}}}"))
        for window in ("1d", "2d")
    )
    assert one.declaration != other.declaration
    assert one.fingerprint != other.fingerprint
    with pytest.raises(InvalidParameter):
        one.reading(other)


def test_a_weaker_strategy_in_a_plan_is_refused(planned):
    """Values seen for the first time behind a comb, or charged as if an event moved one step."""
    plan = planned(text_of("{count_distinct: {column: tailnum, window: running}}"))

    def cheaper(gauge):
        scale = Fraction(gauge["mechanism"]["law"]["scale"])
        gauge["mechanism"]["law"]["scale"] = str(scale * Fraction(3, 4))

    with pytest.raises(InvalidParameter, match="noise scale"):
        plan_from_bytes(changed(plan, cheaper))


def test_it_is_told_in_words(planned):
    plan = planned(text_of("{count_distinct: {column: tailnum, window: 1d}}"))
    text = privacy_text(plan)
    assert "number of different values of tailnum" in text
    assert any("keyed hashes of the values" in line for line in at_rest(plan))
    assert "byte for byte" in " ".join(left_out(plan))
    assert "aircraft, most different values in a cell" in declared(plan)
    told = described(plan)["gauges"][0]
    assert "count_distinct" == told["kind"]
    assert "number of different values of tailnum in 1 day" in told["views"][0]["stands_out"]
    assert 1 <= told["views"][0]["ratio"] < 1.15


def test_an_id_pays_for_its_events(planned):
    text = text_of("{count_distinct: {column: tailnum, window: 1d}}")
    ids = text.replace("unit: event", "unit: {id: who, max_contributions: 5, per: lifetime}")
    one, five = (
        planned(t).gauges[0].mechanism.noise_std("window_1d", [500])[0] for t in (text, ids)
    )
    assert 5 * one == pytest.approx(five, rel=5e-3)
