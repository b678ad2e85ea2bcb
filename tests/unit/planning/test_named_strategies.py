"""``strategy:`` of a config, from its text to the plan."""

import math

import pytest
from unit.planning.configs import SMALL

from tidegauge.errors import InvalidParameter, UnsupportedCombination
from tidegauge.mechanisms.restoring import restore_gauge
from tidegauge.planning.config import config_of
from tidegauge.planning.described import described
from tidegauge.planning.planner import compared, plan_of
from tidegauge.planning.problems import ConfigError
from tidegauge.planning.verified import plan_from_bytes
from tidegauge.strategies.blocks import Blocks
from tidegauge.strategies.decayed import DecayedTree
from tidegauge.strategies.distinct import Anchored
from tidegauge.strategies.identity import Identity
from tidegauge.strategies.named import NAMED, ByName
from tidegauge.strategies.responses import Responses
from tidegauge.strategies.stepped import PolynomialSum

PURE = SMALL.replace("epsilon: 1, delta: 1e-9", "epsilon: 1")


@pytest.fixture
def read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def read(strategy, views="[{half_life: 1d}]", text=PURE):
        gauge = f"\n  departures: {{count: , views: {views}, strategy: {strategy}}}"
        (tmp_path / "c.yaml").write_text(text.replace("{departures: count}", gauge))
        return config_of("c.yaml")

    return read


def test_a_named_strategy_is_the_only_candidate(read):
    config = read("ExponentialSum")
    assert ByName("ExponentialSum") == config.gauges[0].strategy
    (found,) = compared(config)
    assert 1 == len(found.candidates)
    assert isinstance(found.plan.strategy, DecayedTree)
    plan = plan_of(config)
    assert plan == plan_from_bytes(plan.canonical())
    printed = compared(read("ExponentialSumAsPrinted"))[0].chosen
    assert 1.5 < printed.views[0].worst_std / found.chosen.views[0].worst_std < 2.5


def test_with_gaussian_noise_the_whole_plan_is_gaussian_or_laplace_as_is_best(read):
    (found,) = compared(read("ExponentialSum", text=SMALL))
    assert ["chosen"] == [c.verdict for c in found.candidates if c.chosen]
    assert 2 == len(found.candidates)


@pytest.mark.parametrize("name", [name for name, entry in NAMED.items() if entry.offered])
def test_without_a_name_every_offered_strategy_that_fits_is_compared(read, name):
    views = "[{half_life: 1d}]" if "Exponential" in name else "[7d]"
    config = read("ExponentialSum", views)
    text = PURE.replace("{departures: count}", f"{{departures: {{count: , views: {views}}}}}")
    config = _written(text)
    words = {candidate.strategy for candidate in compared(config)[0].candidates}
    assert (NAMED[name].words in words) is (name in _FIT[views])


_FIT = {
    "[{half_life: 1d}]": {"ExponentialSum", "ExponentialSumAsPrinted"},
    "[7d]": {name for name, entry in NAMED.items() if entry.offered and "Window" in name},
}


def _written(text):
    from pathlib import Path

    Path("c.yaml").write_text(text)
    return config_of("c.yaml")


@pytest.mark.parametrize("views", ["[7d]", "[{half_life: 1d}, {half_life: 2d}]", "[step]"])
def test_a_strategy_that_does_not_serve_the_views_says_so(read, views):
    with pytest.raises(UnsupportedCombination) as error:
        plan_of(read("ExponentialSum", views))
    assert "departures" in str(error.value)
    assert "one exponential decay" in str(error.value)


@pytest.mark.parametrize(
    ("strategy", "said"),
    [
        ("ExponentialSums", "Did you mean 'ExponentialSum'?"),
        ("Quicksort", "Use one of"),
        ("{ExponentialSum: {alpha: 2}}", "Expected an option"),
        ("{AllWindowSum: {bata: 2}}", "Did you mean 'beta'?"),
        ("{AllWindowSum: {beta: two}}", "Expected a number"),
        ("{AllWindowSum: 2}", "Expected"),
        ("[ExponentialSum]", "Expected"),
        ("{ExponentialSum: {}, WindowSum: {}}", "Expected"),
        ("", "Expected text"),
    ],
)
def test_a_wrong_name_or_option_is_a_problem_at_its_place(read, strategy, said):
    with pytest.raises(ConfigError) as error:
        read(strategy)
    (problem,) = error.value.problems
    assert said in problem.message


def test_options_reach_the_strategy(read):
    tight, loose = (
        compared(read(f"{{AllWindowSum: {{beta: {beta}}}}}", "[7d]"))[0].plan for beta in (1.1, 2)
    )
    assert tight.strategy != loose.strategy


def _gauge(text, guarantee="epsilon: 1"):
    head = SMALL.replace("epsilon: 1, delta: 1e-9", guarantee)
    return head.replace("{departures: count}", f"{{departures: {{{text}}}}}")


WHERE = "count: {where: 'delay > 15'}"
BY = "count: , by: {carrier: [UA, B6]}"
SERVED = [
    (WHERE, "PredicateSum", "[7d]", Blocks),
    (WHERE, "PredicateSum", "[step, running]", Blocks),
    (WHERE, "PredicateSum", "[{half_life: 1d}]", DecayedTree),
    ("sum: {column: x, bounds: [0, 5], where: 'x > 1'}", "PredicateSum", "[7d]", Blocks),
    (BY, "DecayedHistogram", "[7d, 1d]", Blocks),
    (BY, "DecayedHistogram", "[{factor: 0.9}]", DecayedTree),
    ("count: , max_per_step: 1", "RandomizedResponse", "[step, 7d, {half_life: 1d}]", Responses),
    (f"{BY}, max_per_step: 1, totals: true", "RandomizedResponse", "[7d]", Responses),
    ("count_distinct: {column: x, window: running}", "DistinctCount", None, Blocks),
    ("count_distinct: {column: x, window: 1d}", "DistinctCount", None, Anchored),
    ("count: ", "{PolynomialSum: {c: 1.5, reach: 64}}", None, PolynomialSum),
    ("count: ", "InputPerturbation", "[7d]", Identity),
]


@pytest.mark.parametrize(("gauge", "strategy", "views", "kind"), SERVED)
def test_every_system_of_the_paper_can_be_asked_for(read, gauge, strategy, views, kind):
    shown = "" if views is None else f", views: {views}"
    config = _written(_gauge(f"{gauge}, strategy: {strategy}{shown}"))
    plan = plan_of(config)
    assert isinstance(plan.gauges[0].mechanism.strategy, kind)
    assert plan == plan_from_bytes(plan.canonical())
    assert all(1 <= view["ratio"] < math.inf for view in described(plan)["gauges"][0]["views"])


@pytest.mark.parametrize(
    ("gauge", "strategy", "said"),
    [
        ("count: ", "PredicateSum", "count: {where: ...}"),
        ("count: ", "DecayedHistogram", "by: {column: [value, ...]}"),
        ("count: ", "RandomizedResponse", "max_per_step: 1"),
        ("count: , max_per_step: 2", "RandomizedResponse", "max_per_step: 1"),
        ("sum: {column: x, bounds: [0, 1]}, max_per_step: 1", "RandomizedResponse", "bits"),
        ("count: ", "DistinctCount", "count_distinct"),
        ("count_distinct: {column: x, window: 1d}", "PredicateSum", "where"),
        ("count_distinct: {column: x, window: 1d}", "DecayedHistogram", "by"),
        ("count: ", "HolisticPredicateSum", "tidegauge.papers.bolot.HolisticPredicateSum"),
        ("count: ", "PolynomialSum", "options c"),
    ],
)
def test_a_gauge_that_a_name_is_not_for_is_refused_with_what_to_write(read, gauge, strategy, said):
    with pytest.raises(ConfigError) as error:
        _written(_gauge(f"{gauge}, strategy: {strategy}"))
    (problem,) = error.value.problems
    assert said in problem.message


@pytest.mark.parametrize("strategy", ["PredicateSum", "DecayedHistogram"])
def test_polynomial_views_have_no_tree_but_the_one_that_rounds(read, strategy):
    text = f"{WHERE}, by: {{carrier: [UA]}}, views: [{{polynomial: 1.5}}], strategy: {strategy}"
    with pytest.raises(UnsupportedCombination, match="PolynomialSum"):
        plan_of(_written(_gauge(text, "epsilon: 1") + "end: 2014-01-01T00:00:00Z\n"))


def test_flips_are_pure_and_told_as_what_they_are(read):
    text = "count: , max_per_step: 1, views: [7d], strategy: RandomizedResponse"
    with pytest.raises(UnsupportedCombination, match="pure"):
        plan_of(_written(_gauge(text, "rho: 1")))
    config = _written(_gauge(text, "epsilon: 1, delta: 1e-9"))
    (found,) = compared(config)
    assert "randomised response" == found.chosen.noise
    plan = plan_of(config)
    mechanism = plan.gauges[0].mechanism
    stored = mechanism.stored()
    stored["strategy"]["scale"] = "1/2"  # another bias than that of the flips
    with pytest.raises(InvalidParameter, match="bias"):
        restore_gauge(stored)
    stored["law"]["scale"] = "1/2"  # flips that do not pay
    with pytest.raises(InvalidParameter, match="noise scale"):
        restore_gauge(stored)
