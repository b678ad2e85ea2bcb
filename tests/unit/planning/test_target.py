"""The least budget for an error: it meets the error, the next smaller number does not."""

import math
import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from unit.planning.configs import BASKETS, FLIGHTS, RECORDS, SMALL

from tidegauge.errors import InvalidParameter
from tidegauge.planning.config import config_of
from tidegauge.planning.described import described
from tidegauge.planning.planner import plan_of
from tidegauge.planning.target import budget_for, targets_of
from tidegauge.planning.widest import last_step, noise_curve, worst_half_width
from tidegauge.strategies.blt import Blt, Comb
from tidegauge.strategies.decay import Running

HOURLY = SMALL.replace("privacy:", "end: 2013-02-01T00:00:00Z\nprivacy:").replace(
    "{departures: count}", "{departures: {count: , views: [step, running, 1d]}}"
)
SEVERAL = HOURLY.replace("gauges: {", "gauges: {others: {count: , views: [1d], budget_weight: 3}, ")


def config(tmp_path, text):
    (tmp_path / "c.yaml").write_text(text)
    return config_of(tmp_path / "c.yaml")


def solved(tmp_path, text, *errors):
    read = config(tmp_path, text)
    return budget_for(read, targets_of(read, errors))


def widths(tmp_path, text, budget, amount, gauge=-1):
    """The largest half-widths of a gauge's views, of a config in which a budget is written."""
    number = rf"{budget.field}: [0-9.e-]+"
    plan = plan_of(config(tmp_path, re.sub(number, f"{budget.field}: {amount}", text)))
    planned = plan.gauges[gauge]
    found = {}
    for name, decay in planned.views:
        every = planned.every_of(name)
        steps = np.arange(every, plan.clock.end + 1, every)
        found[name] = planned.mechanism.half_width(decay, steps).max() * float(planned.round_to)
    return found


def next_below(written):
    _, digits, exponent = Decimal(written).as_tuple()
    number = int("".join(map(str, digits)))
    while number < 1000:
        number, exponent = number * 10, exponent - 1
    if number == 1000:
        number, exponent = 10000, exponent - 1
    return f"{Decimal(number - 1).scaleb(exponent)}".replace("E", "e")


BUDGETS = ["epsilon: 1, delta: 1e-9", "epsilon: 1", "rho: 0.5", "mu: 1"]


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize(("view", "error"), [("window_1d", 25), ("running", 60), ("step", 2.5)])
def test_the_budget_meets_the_error_and_the_next_smaller_number_does_not(
    tmp_path, budget, view, error
):
    text = HOURLY.replace("epsilon: 1, delta: 1e-9", budget)
    found = solved(tmp_path, text, f"{view}={error}")
    assert widths(tmp_path, text, found, found.written)[view] <= error
    assert widths(tmp_path, text, found, next_below(found.written))[view] > error
    assert len(found.written.replace(".", "").lstrip("0").split("e")[0]) <= 4
    ((width, step),) = found.widths
    assert width == pytest.approx(widths(tmp_path, text, found, found.written)[view])
    assert 1 <= step <= 744


def test_delta_and_everything_else_is_kept(tmp_path):
    before = config(tmp_path, HOURLY)
    found = solved(tmp_path, HOURLY, "running=60")
    assert found.config.guarantee.delta == before.guarantee.delta
    assert found.config.gauges == before.gauges
    assert found.config.clock == before.clock
    assert Fraction(found.written) == found.value == found.config.guarantee.epsilon


def test_several_errors_are_all_met_and_the_hardest_decides(tmp_path):
    both = solved(tmp_path, HOURLY, "running=60", "step=2.5")
    alone = [solved(tmp_path, HOURLY, error) for error in ("running=60", "step=2.5")]
    assert both.value == max(one.value for one in alone)
    assert 2 == len(both.widths)


def test_a_gauge_among_several_gets_what_its_share_gives(tmp_path):
    found = solved(tmp_path, SEVERAL, "others.window_1d=25")
    assert widths(tmp_path, SEVERAL, found, found.written, gauge=0)["window_1d"] <= 25
    assert widths(tmp_path, SEVERAL, found, next_below(found.written), gauge=0)["window_1d"] > 25
    small = solved(tmp_path, SEVERAL, "departures.window_1d=25")
    assert small.value > found.value  # a quarter of the budget, not three


def test_of_ranked_cells_the_interval_of_all_at_once_is_meant(tmp_path):
    cells = "by: {kind: [a, b, c, d]}"
    ranked = HOURLY.replace("count: ", f"top_k: {{k: 2}}, {cells}")
    budget = solved(tmp_path, ranked, "window_1d=100")
    assert budget.value > solved(tmp_path, HOURLY, "window_1d=100").value
    plan = plan_of(budget.config)
    ((found, _),) = budget.widths
    (shown,) = [v for v in described(plan)["gauges"][0]["views"] if v["name"] == "window_1d"]
    assert found == pytest.approx(shown["worst"]["half_width"])
    assert found <= 100


def test_sums_are_meant_in_the_unit_of_their_column(tmp_path):
    found = solved(tmp_path, BASKETS, "money.week=5000")
    text = BASKETS
    assert 4900 < widths(tmp_path, text, found, found.written)["week"] <= 5000
    assert "rho" == found.field


def test_records_as_steps(tmp_path):
    found = solved(tmp_path, RECORDS, "running=40")
    assert widths(tmp_path, RECORDS, found, found.written)["running"] <= 40
    assert widths(tmp_path, RECORDS, found, next_below(found.written))["running"] > 40


@pytest.mark.parametrize(
    ("error", "hint"),
    [
        ("runing=5", "Did you mean 'running'?"),
        ("window_2d=5", "Did you mean 'window_1d'?"),
        ("week=5", "The views here are step, running, window_1d."),
        ("running", "Did you mean 'running'?"),
        ("departures=5", "The views here are step, running, window_1d."),
        ("=5", "The views here are step, running, window_1d."),
    ],
)
def test_views_that_are_not_published_are_refused_with_those_that_are(tmp_path, error, hint):
    with pytest.raises(InvalidParameter, match=re.escape(hint)):
        targets_of(config(tmp_path, HOURLY), [error])


def test_of_several_gauges_the_gauge_is_named(tmp_path):
    read = config(tmp_path, SEVERAL)
    with pytest.raises(InvalidParameter, match=r"others\.window_1d"):
        targets_of(read, ["window_1d=5"])
    with pytest.raises(InvalidParameter, match=r"Did you mean 'departures\.step'"):
        targets_of(read, ["departure.step=5"])
    (target,) = targets_of(read, ["others.window_1d=5"])
    assert (0, "window_1d", 5) == (target.gauge, target.view.name, target.error)


@pytest.mark.parametrize(
    "number", ["0", "-1", "nan", "inf", "-inf", "", "x", "1_0", "0x5", "1e", "5 6", "007"]
)
def test_errors_that_are_no_numbers_above_0_are_refused(tmp_path, number):
    with pytest.raises(InvalidParameter, match="number above 0"):
        targets_of(config(tmp_path, HOURLY), [f"running={number}"])


@pytest.mark.parametrize("budget", ["rho: 0.5", "mu: 1"])
def test_an_error_that_no_budget_reaches_is_refused(tmp_path, budget):
    text = HOURLY.replace("epsilon: 1, delta: 1e-9", budget)
    with pytest.raises(InvalidParameter, match=r"can be reached, got running=1e-09\. No (rho|mu) "):
        solved(tmp_path, text, "running=1e-9")


def test_an_error_larger_than_any_noise_takes_the_least_budget_there_is(tmp_path):
    found = solved(tmp_path, HOURLY, "running=1e15")
    assert "1e-9" == found.written


@pytest.mark.parametrize(
    "end", ["2013-01-01T01:00:00Z", "2013-01-01T02:00:00Z", "2013-01-01T03:00:00Z"]
)
def test_streams_of_a_few_steps(tmp_path, end):
    text = HOURLY.replace("2013-02-01T00:00:00Z", end)
    found = solved(tmp_path, text, "running=10")
    assert widths(tmp_path, text, found, found.written)["running"] <= 10


@pytest.mark.parametrize("band", ["pointwise", "simultaneous"])
def test_without_an_end_the_half_width_that_a_plan_tells_gives_back_its_budget(tmp_path, band):
    text = SMALL.replace("{departures: count}", "{departures: {count: , views: [running, 7h]}}")
    text = text.replace("epsilon: 1, delta: 1e-9", "mu: 1").replace(
        "count:", f"band: {band}, count:"
    )
    told = described(plan_of(config(tmp_path, text)))["gauges"][0]["views"][0]
    assert ("running", 1 << 20) == (told["name"], told["steps"][-1])
    found = solved(tmp_path, text, f"running={told['half_width'][-1] * (1 + 1e-9)}")
    assert "1" == found.written
    assert [1 << 20] == [step for _, step in found.widths]


def test_without_an_end_noise_is_drawn_up_to_the_steps_that_are_designed_for(tmp_path):
    text = SMALL.replace("{departures: count}", "{departures: {count: , views: [running, 7h]}}")
    for length, last in (("", 1 << 20), ("horizon: 10000h\n", 10_000)):
        changed = text.replace("epsilon: 1, delta: 1e-9", "mu: 1").replace(
            "privacy:", f"{length}privacy:"
        )
        (gauge,) = plan_of(config(tmp_path, changed)).gauges
        assert isinstance(gauge.mechanism.strategy, Blt | Comb)
        assert last == last_step(gauge.mechanism) == noise_curve(gauge.mechanism, Running())[0][-1]


# --- the widest step


@pytest.mark.parametrize("text", [FLIGHTS, RECORDS, BASKETS], ids=["flights", "records", "baskets"])
def test_the_widest_step_is_that_of_all_published_ones(tmp_path, text):
    plan = plan_of(config(tmp_path, text))
    for gauge in plan.gauges:
        for name, decay in gauge.views:
            every = gauge.every_of(name)
            steps = np.arange(every, plan.clock.end + 1, every)
            width, step = worst_half_width(gauge.mechanism, decay, every)
            assert width == pytest.approx(gauge.mechanism.half_width(decay, steps).max())
            assert step in steps


def test_of_streams_too_long_to_look_at_each_step_no_step_is_wider(tmp_path):
    text = RECORDS.replace("end: 1000", "end: 400000")
    (gauge,) = plan_of(config(tmp_path, text)).gauges
    assert "blocks" in gauge.mechanism.measures
    for name, decay in gauge.views:
        width, _ = worst_half_width(gauge.mechanism, decay)
        std = gauge.mechanism.strategy.noise_std(
            decay, np.arange(1, 400_001), gauge.mechanism.law.std
        )
        worst = int(np.argmax(std)) + 1
        assert width >= gauge.mechanism.half_width(name, [worst])[0] * (1 - 1e-9)
        assert width < 1.2 * gauge.mechanism.half_width(name, [worst])[0]


@pytest.mark.parametrize("end", [1, 2, 399, 400, 401, 1000, 200_000])
def test_the_noise_over_steps_covers_every_part(tmp_path, end):
    text = RECORDS.replace("end: 1000", f"end: {end}")
    (gauge,) = plan_of(config(tmp_path, text)).gauges
    for name, decay in gauge.views:
        steps, least, most = noise_curve(gauge.mechanism, decay)
        assert (min(end, 400), end) == (len(steps), steps[-1])
        assert (least <= most).all()
        assert (np.diff(steps) > 0).all()
        every_std = gauge.mechanism.noise_std(name, np.arange(1, end + 1))
        for low, high, first, last in zip(least, most, [0, *steps[:-1]], steps, strict=True):
            part = every_std[first:last]
            assert part.min() * (1 - 1e-9) <= low <= high <= part.max() * (1 + 1e-9)
            if last - first <= 128:
                assert (part.min(), part.max()) == pytest.approx((low, high))


def test_views_that_are_read_every_so_often_are_drawn_at_those_steps(tmp_path):
    (gauge,) = plan_of(config(tmp_path, FLIGHTS)).gauges
    steps, _, _ = noise_curve(gauge.mechanism, gauge.mechanism.decay("window_1d_every_1d"), 24)
    assert (steps % 24 == 0).all()
    assert 8760 == steps[-1]
    assert math.isclose(365, len(steps))
