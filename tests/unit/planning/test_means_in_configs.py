"""mean in a config, in a plan, and in what is published of it."""

from dataclasses import replace
from fractions import Fraction

import pytest
from configs import FLIGHTS

from tidegauge.errors import InvalidParameter
from tidegauge.mechanisms.mean import Bounds, MeanReading
from tidegauge.planning.config import config_of
from tidegauge.planning.constants import declared
from tidegauge.planning.described import described
from tidegauge.planning.planner import plan_of
from tidegauge.planning.problems import ConfigError
from tidegauge.planning.sentences import left_out
from tidegauge.planning.statement import privacy_text
from tidegauge.planning.target import budget_for, targets_of
from tidegauge.planning.verified import plan_from_bytes
from tidegauge.privacy.guarantee import ApproxDP

HEAD = FLIGHTS.split("gauges:")[0]
DELAY = "mean: {column: arr_delay, bounds: [-30, 120], round_to: 0.5}"


def text_of(rest=", by: {origin: [JFK, LGA]}, views: [running, 7d]", delay=DELAY, head=HEAD):
    return f"{head}gauges:\n  delay: {{{delay}{rest}}}\n"


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


def test_a_mean_measures_sums_and_counts_with_one_noise(planned):
    plan = planned(text_of())
    (gauge,) = plan.gauges
    assert ("mean", "arr_delay", -60, 240) == (gauge.kind, gauge.column, gauge.low, gauge.high)
    assert Bounds(-60, 240) == gauge.bounds
    assert (3, 6) == (len(gauge.cells), gauge.lanes)
    neighbors = gauge.mechanism.neighbors
    assert neighbors.paired
    assert 2 * 150**2 == neighbors.event_l2_squared
    assert 150 << 20 == gauge.mechanism.max_per_step
    again = plan_from_bytes(plan.canonical())
    assert plan == again


def test_ids_sets_of_rows_and_replaced_events_have_their_price(planned):
    ids = HEAD.replace("unit: event", "unit: {id: tailnum, max_contributions: 3, per: lifetime}")
    assert 3 == planned(text_of(head=ids)).privacy_unit.max_events
    replaced = HEAD.replace("add_or_remove_one", "replace_one")
    neighbors = planned(text_of(head=replaced)).gauges[0].mechanism.neighbors
    assert neighbors.event_l2_squared == max(4 * 150**2, 300**2)
    sets = HEAD.replace("step: 1h", "event: flight\nstep: 1h")
    gauge = planned(text_of(", by: {origin: [JFK, LGA]}, max_items: 2", head=sets)).gauges[0]
    assert 4 * 150**2 == gauge.mechanism.neighbors.event_l2_squared


def test_the_plan_tells_how_far_a_mean_of_so_many_events_may_be_off(planned):
    (gauge,) = described(planned(text_of()))["gauges"]
    for view in gauge["views"]:
        half = view["half_width_of"]
        assert ["10", "100", "1000"] == list(half)
        assert 75 >= half["10"] >= half["100"] > half["1000"] > 0
        assert {"ratio", "stands_out", "noise_std"}.isdisjoint(view)


def test_the_statement_says_how_a_mean_comes_to_be_and_what_is_cut(planned):
    plan = planned(text_of(", max_per_step: 1000"))
    told = declared(plan)
    assert "[-30, 120] in multiples of 0.5" == told["delay, bounds"]
    assert "1,000" == told["delay, most events of a cell and step"]
    text = privacy_text(plan)
    assert "distances from 45, the middle of the bounds" in text
    assert "A value outside the bounds of its mean counts as the nearest bound." in text
    assert "without a number in a column that is averaged" in "".join(left_out(plan))


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        (", views: [{difference: 7d, of: 7d}]", "weights are at least 0"),
        (", views: [{custom: [1, -1]}]", "weights are at least 0"),
        (", strategy: WindowSum", "counts and sums"),
        (", by: {count: [a]}", "no release of means has"),
        (", by: {origin: discover}", "counts and sums alone"),
        (", max_per_step: 0.5", "most events of one cell and step"),
        (", repeats: 2", "event beside repeats"),
        (", sum: {column: a, bounds: [0, 1]}", "got both"),
        (", other: REST", "without"),
        (", totals: true", "Without cells"),
    ],
)
def test_what_has_no_meaning_beside_a_mean_is_refused(read, rest, message):
    with pytest.raises(ConfigError) as caught:
        read(text_of(rest))
    assert any(message in problem.message for problem in caught.value.problems)


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ("[0, 0]", "with values between"),
        ("[5, 5]", "with values between"),
        ("[10, -10]", "Swap them"),
        ("[0, 0.25]", "multiples of round_to"),
        ("[0, 1e15]", "at most 2^39"),
        ("[0, .inf]", "a number"),
        ("[0, NaN]", "a number"),
        ("[0]", "two bounds"),
        ("[0, ten]", "a number"),
    ],
)
def test_bounds_that_are_none_are_refused(read, bounds, message):
    with pytest.raises(ConfigError) as caught:
        read(text_of("", DELAY.replace("[-30, 120]", bounds)))
    assert any(message in problem.message for problem in caught.value.problems)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("running=5", "how many events"),
        ("running=5,events=0", "each above 0"),
        ("running=5,events=10,events=20", "each above 0"),
        ("running=5,events=10,clip=20", "nothing else"),
        ("running=5000,events=10", "any budget would do"),
    ],
)
def test_an_error_of_a_mean_is_asked_for_so_many_events(read, asked, message):
    with pytest.raises(InvalidParameter, match=message):
        targets_of(read(text_of()), [asked])


def test_the_least_budget_for_an_error_of_a_mean_gives_it(read, planned):
    config = read(text_of())
    found = budget_for(config, targets_of(config, ["running=5,events=2000"]))
    plan = plan_of(found.config)
    gauge = plan.gauges[0]
    reading = MeanReading(gauge.mechanism, gauge.bounds)
    ((width, step),) = found.widths
    half = float(reading.half_width("running", step, 2000)) * float(gauge.round_to)
    assert half == pytest.approx(width)
    assert 0.99 * 5 < width <= 5
    less = replace(config, guarantee=ApproxDP(found.value * Fraction(999, 1000), Fraction("1e-9")))
    gauge = plan_of(less).gauges[0]
    again = MeanReading(gauge.mechanism, gauge.bounds).half_width("running", step, 2000)
    assert float(again) * float(gauge.round_to) > 5


@pytest.mark.parametrize(
    "change",
    [
        {"low": 240},
        {"low": -61},
        {"kind": "sum"},
        {"by": (("count", ("JFK", "LGA")),)},
        {"column": None},
    ],
)
def test_a_plan_that_was_changed_is_refused(planned, change):
    plan = planned(text_of())
    other = replace(plan, gauges=(replace(plan.gauges[0], **change),))
    with pytest.raises(InvalidParameter):
        plan_from_bytes(other.canonical())
