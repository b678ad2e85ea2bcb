"""``strategy:`` of a config, from its text to the plan."""

import pytest
from unit.planning.configs import SMALL

from tidegauge.errors import UnsupportedCombination
from tidegauge.planning.config import config_of
from tidegauge.planning.plan import Plan
from tidegauge.planning.planner import compared, plan_of
from tidegauge.planning.problems import ConfigError
from tidegauge.strategies.decayed import DecayedTree
from tidegauge.strategies.named import NAMED, ByName

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
    assert plan == Plan.from_bytes(plan.canonical())
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
