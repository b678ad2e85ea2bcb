"""Odd views: each is planned right, or refused with a message that says what to do."""

import math
import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidegauge as tg
from tidegauge.mechanisms.design import design
from tidegauge.mechanisms.request import request_of
from tidegauge.mechanisms.restoring import restore_gauge
from tidegauge.noise.laplace import DiscreteLaplace
from tidegauge.planning.config import config_of
from tidegauge.planning.described import described
from tidegauge.planning.planner import compared, plan_of
from tidegauge.planning.problems import ConfigError
from tidegauge.planning.verified import plan_from_bytes
from tidegauge.planning.widest import ratio_to_bound
from tidegauge.planning.words import span_in_words, view_in_words
from tidegauge.strategies.decay import full_after
from tidegauge.strategies.dense import DenseToeplitz
from tidegauge.testing import seeded_gauge

HOUR = 3_600_000_000
GAUSSIAN, PURE = {"epsilon": 1.0, "delta": 1e-9}, {"epsilon": 1.0}
LENGTHS = [{"horizon": 1}, {"end": 3}, {"horizon": 8760}, {}]


def planned(views, **options):
    return design(request_of(views=views, **{"unit": "event", **options}))


WEEK_ON_WEEK = tg.Difference(tg.Window(168), 168)
ODD = {
    "a window of one step": tg.Window(1),
    "a window longer than the horizon": tg.Window(10**9),
    "a half-life of 10,000 days": tg.Exponential(half_life=240_000),
    "the same as an average": tg.Exponential(half_life=240_000, average=True),
    "a factor next to 1": tg.Exponential(factor=1 - 1e-12),
    "a power of a half": tg.Polynomial(0.5),
    "weights that increase": tg.Custom((1, 2, 3)),
    "negative weights": tg.Custom((-1, -0.5)),
    "weights that sum to 0": tg.Custom((1, -1)),
    "nothing of this step": tg.Custom((0, 1)),
    "a change of steps": tg.Difference(tg.Step(), 1),
    "a change longer ago than the horizon": tg.Difference(tg.Window(7), 10**9),
    "a change of what hardly changes": tg.Difference(tg.Exponential(factor=1 - 1e-12), 1),
    "a change of a power law": tg.Difference(tg.Polynomial(0.5), 24),
    "week on week": WEEK_ON_WEEK,
}


@pytest.mark.parametrize("view", ODD.values(), ids=ODD)
@pytest.mark.parametrize("guarantee", [GAUSSIAN, PURE], ids=["gaussian", "pure"])
def test_odd_views_are_planned_with_numbers_that_hold(view, guarantee):
    for length in LENGTHS:
        plan = planned({"odd": view}, **guarantee, **length)
        assert restore_gauge(plan.stored()) == plan
        last = plan.last_step or 1 << 30
        steps = sorted({1, 2, min(10**8, last)})
        std, half = plan.noise_std("odd", steps), plan.half_width("odd", steps)
        assert np.isfinite(std).all()
        assert np.isfinite(half).all()
        assert (half >= std).all()
        assert std[-1] > 0
        ratio = ratio_to_bound(plan, view)
        assert 0.95 <= ratio < math.inf


@pytest.mark.parametrize("length", [{"horizon": 8760}, {}])
def test_a_memory_without_an_end_is_planned_like_a_running_sum(length):
    for view in (tg.Window(10**9), tg.Exponential(factor=1 - 1e-12), tg.Exponential(half_life=1e9)):
        odd = ratio_to_bound(planned([view], **GAUSSIAN, **length), view)
        running = ratio_to_bound(planned([tg.Running()], **GAUSSIAN, **length), tg.Running())
        assert odd == pytest.approx(running, rel=0.01)


ENDLESS = [
    (tg.Difference(tg.Window(1 << 40), 1 << 40), tg.Running()),
    (tg.Difference(tg.Exponential(half_life=1e9), 1000), tg.Window(1000)),
    (tg.Difference(tg.Window(1 << 40), 24), tg.Window(24)),
]


@pytest.mark.parametrize("length", [{"horizon": 100_000}, {}])
@pytest.mark.parametrize(("view", "like"), ENDLESS, ids=lambda view: view.name)
def test_a_change_of_what_never_ends_in_sight_is_designed_for_as_what_it_is_there(
    view, like, length
):
    odd, plain = (
        tg.plan(views=[each], unit="event", guarantee=tg.GaussianDP(1), **length).plan
        for each in (view, like)
    )
    steps = np.array([1, 10, 1000, 100_000])
    assert odd.noise_std(view, steps) == pytest.approx(plain.noise_std(like, steps), rel=0.02)
    assert 1 <= ratio_to_bound(odd, view) < 1.3


REFUSED = {
    "a half-life of an instant": (lambda: tg.Exponential(half_life=1e-9 / 3600), r"Use Step\(\)"),
    "an endless half-life": (lambda: tg.Exponential(half_life=math.inf), "half_life"),
    "no half-life": (lambda: tg.Exponential(half_life=0), r"Use Step\(\)"),
    "factor 0": (lambda: tg.Exponential(factor=0), r"Use Step\(\) for 0"),
    "factor 1": (lambda: tg.Exponential(factor=1), r"Running\(\) for 1"),
    "c = 0": (lambda: tg.Polynomial(0), r"Use Running\(\) for no decay"),
    "c = 50": (lambda: tg.Polynomial(50), r"Step\(\) or Exponential\(\)"),
    "no weights": (lambda: tg.Custom(()), "values"),
    "weights of 0": (lambda: tg.Custom((0, 0)), "largest of the values"),
    "a window of 0": (lambda: tg.Window(0), "whole number of steps"),
    "a window and a half": (lambda: tg.Window(1.5), "whole number of steps"),
    "half an average": (lambda: tg.Exponential(factor=0.5, average=1), "True or False"),
    "a change of a running sum": (lambda: tg.Difference(tg.Running(), 7), r"Write Window\(7\)"),
    "a change of a change": (lambda: tg.Difference(WEEK_ON_WEEK, 7), "Differences of differences"),
    "a change of nothing": (lambda: tg.Difference("7d", 7), "difference of a decay"),
    "a change in no time": (lambda: tg.Difference(tg.Step(), 0), "lag"),
    "a change in half a step": (lambda: tg.Difference(tg.Step(), 0.5), "lag"),
    "a change of steps long ago": (lambda: tg.Difference(tg.Step(), (1 << 20) + 1), "lag"),
    "a view asked twice": (lambda: planned([tg.Window(7), tg.Window(7)], **PURE), "each view once"),
}


@pytest.mark.parametrize(("make", "says"), REFUSED.values(), ids=REFUSED)
def test_impossible_views_are_refused(make, says):
    with pytest.raises(tg.InvalidParameter, match=says) as error:
        make()
    assert str(error.value).startswith("Expected ")


def test_two_names_of_one_view_give_the_same_numbers():
    gauge = seeded_gauge(
        1, views={"a": tg.Window(7), "b": tg.Window(7)}, unit="event", horizon=50, **GAUSSIAN
    )
    assert gauge.plan.strategy == planned([tg.Window(7)], horizon=50, **GAUSSIAN).strategy
    releases = gauge.update_many(np.arange(20))
    assert releases["a"].value.tobytes() == releases["b"].value.tobytes()


@pytest.mark.parametrize("guarantee", [GAUSSIAN, PURE], ids=["gaussian", "pure"])
def test_a_hundred_views_are_planned(guarantee):
    views = {f"w{n}": tg.Window(n) for n in range(1, 71)}
    views |= {f"h{n}": tg.Exponential(half_life=n) for n in range(1, 21)}
    views |= {f"d{n}": tg.Difference(tg.Window(n), n) for n in range(1, 11)}
    plan = planned(views, horizon=8760, **guarantee)
    assert restore_gauge(plan.stored()) == plan
    gauge = seeded_gauge(3, views=views, unit="event", horizon=8760, **guarantee)
    releases = gauge.update_many(np.zeros(100, np.int64))
    assert set(views) == set(releases)
    for release in releases.values():
        assert np.abs(release.value / release.noise_std).max() < 8


CONFIG = """\
sources: [a.csv]
event_time: at
step: 1h
start: 2025-01-01T00:00:00Z
end: 2025-02-01T00:00:00Z
privacy: {unit: event, epsilon: 1}
gauges: {visits: {count: , by: {shop: [a, b]}, views: %s}}
"""


def config(tmp_path, views):
    (tmp_path / "c.yaml").write_text(CONFIG % views)
    return config_of(tmp_path / "c.yaml")


@pytest.mark.parametrize(
    ("views", "says"),
    [
        ("[90m]", "whole number of steps of 1h"),
        ("[{half_life: 1us}]", "Use Step"),
        ("[{half_life: inf}]", "duration"),
        ("[{factor: 0}]", "factor > 0"),
        ("[{factor: 1}]", "factor < 1"),
        ("[{polynomial: 0}]", "c > 0"),
        ("[{polynomial: 50}]", r"\[0.01, 16\]"),
        ("[{custom: [0, 0]}]", "largest of the values"),
        ("[{custom: 3}]", "a list"),
        ("[7d, 7d]", "each view once"),
        ("[{difference: 7d}]", "difference and of together"),
        ("[{window: 7d, of: step}]", "difference and of together"),
        ("[{difference: 90m, of: step}]", "whole number of steps of 1h"),
        ("[{difference: 7d, of: running}]", "Write 7d"),
        ("[{difference: 7d, of: {difference: 1d, of: step}}]", "Differences of differences"),
        ("[{difference: 7d, of: {window: 7d, every: 1d}}]", "Move it out"),
        ("[{difference: 7d, of: 90m}]", "whole number of steps of 1h"),
        ("[{difference: 7d, of: {windw: 7d}}]", "windw"),
        ("[{window: 7d, average: true}]", "average beside half_life or factor"),
        ("[{half_life: 7d, average: 1}]", "true or false"),
        ("[step], totals: maybe", "true or false"),
        ("[step], other: '*', totals: true", "rename the value"),
    ],
)
def test_a_config_refuses_what_it_cannot_mean(tmp_path, views, says):
    with pytest.raises(ConfigError, match=says):
        config(tmp_path, views)


@pytest.mark.parametrize(
    ("view", "name", "decay"),
    [
        ("{difference: 7d, of: 7d}", "difference_7d_of_window_7d", WEEK_ON_WEEK),
        ("{difference: 1d, of: step}", "difference_1d_of_step", tg.Difference(tg.Step(), 24)),
        (
            "{half_life: 1d, average: true}",
            "half_life_1d_average",
            tg.Exponential(half_life=24, average=True),
        ),
        ("{custom: [3, 0.5, -1]}", "custom_3", tg.Custom((3, 0.5, -1))),
        (
            "{difference: 1w, of: {factor: 0.5, average: true}, every: 1d}",
            "difference_1w_of_factor_0.5_average_every_1d",
            tg.Difference(tg.Exponential(factor=0.5, average=True), 168),
        ),
    ],
)
def test_a_config_names_its_views(tmp_path, view, name, decay):
    plan = plan_of(config(tmp_path, f"[{view}, running]"))
    assert (name, decay) == plan.gauges[0].views[0]
    assert plan_from_bytes(plan.canonical()) == plan


def test_a_view_that_is_only_anticipated_is_designed_for_and_not_published(tmp_path):
    text = CONFIG % "[step], anticipate: [{difference: 1d, of: 1d}, {custom: [1, -1]}]"
    (tmp_path / "c.yaml").write_text(text)
    plan = plan_of(config_of(tmp_path / "c.yaml")).gauges[0]
    assert ("step",) == tuple(name for name, _ in plan.views)
    assert (tg.Difference(tg.Window(24), 24), tg.Custom((1, -1))) == plan.anticipate


def test_an_anticipated_view_that_is_published_changes_nothing(tmp_path):
    plain = plan_of(config(tmp_path, "[7d, running]"))
    twice = plan_of(config(tmp_path, "[7d, running], anticipate: [7d, 7d, 168h]"))
    assert plain.gauges[0].mechanism == twice.gauges[0].mechanism
    assert plain.fingerprint == twice.fingerprint


VIEWS = st.one_of(
    st.just(tg.Step()),
    st.builds(tg.Window, st.integers(1, 40)),
    st.builds(tg.Exponential, half_life=st.floats(0.1, 50, allow_nan=False), average=st.booleans()),
    st.builds(tg.Custom, st.lists(st.sampled_from([-2.0, -1.0, 0.5, 3.0]), min_size=1, max_size=9)),
)


@given(VIEWS, st.integers(1, 60), st.lists(st.integers(0, 9), min_size=1, max_size=80))
@settings(max_examples=40)
def test_a_change_is_the_view_minus_the_view_before(view, lag, counts):
    change = tg.Difference(view, lag)
    gauge = seeded_gauge(7, views={"view": view, "change": change}, unit="event", keep=True, **PURE)
    releases = gauge.update_many(counts)
    value = releases["view"].value
    before = np.concatenate([np.zeros(lag), value])[: len(value)]
    assert releases["change"].value.tolist() == (value - before).tolist()
    early = min(lag, len(value))
    same = releases["view"].noise_std[:early]
    np.testing.assert_allclose(releases["change"].noise_std[:early], same, rtol=1e-12)
    assert gauge.view(change).value.tobytes() == releases["change"].value.tobytes()
    assert full_after(change) == lag + full_after(view)


def test_a_total_has_a_noise_and_an_interval_of_its_own():
    for guarantee in (GAUSSIAN, PURE):
        gauge = seeded_gauge(
            5, views=[tg.Window(3)], unit="event", horizon=50, cells=5000, **guarantee
        )
        release = gauge.update_many(np.zeros((60, 5000), np.int64))["window_3"]
        total = release.total()
        np.testing.assert_allclose(total.value, release.value.sum(axis=1), rtol=1e-12)
        np.testing.assert_allclose(total.noise_std, release.noise_std[:, 0] * 5000**0.5)
        assert np.abs(total.value / total.noise_std).max() < 5
        widths = (total.upper - total.lower) / total.noise_std
        assert widths == pytest.approx(2 * 1.96, rel=0.001)  # many draws are nearly normal
        assert (60,) == total.columns()["value"].shape
    with pytest.raises(tg.InvalidParameter, match="nothing to add up"):
        release.total().total()


def test_words_for_changes_and_averages():
    average = tg.Exponential(half_life=24, average=True)
    assert "a decayed average per step, weights halve every 1 day" == view_in_words(average, HOUR)
    assert "per step, averaged with decaying weights" == span_in_words(average, HOUR)
    assert "the last 7 days, minus the same 7 days earlier" == view_in_words(WEEK_ON_WEEK, HOUR)
    assert "in 7 days more or less than 7 days earlier" == span_in_words(WEEK_ON_WEEK, HOUR)


def test_a_release_is_read_every_so_often():
    gauge = seeded_gauge(5, views=[tg.Window(7)], unit="event", cells=2, keep=True, **GAUSSIAN)
    first, second = gauge.update_many(np.ones((9, 2), np.int64)), gauge.update_many([[1, 2]] * 11)
    whole = gauge.view("window_7")
    weekly = whole.every(7)
    assert [7, 14] == weekly.steps.tolist() == weekly.columns()["step"][::2].tolist()
    assert whole.value[[6, 13]].tolist() == weekly.value.tolist()
    assert whole.noise_std[[6, 13]].tolist() == weekly.noise_std.tolist()
    assert whole.total().lower[[6, 13]].tolist() == weekly.total().lower.tolist()
    assert [7] == first["window_7"].every(7).steps.tolist()
    assert [14] == second["window_7"].every(7).steps.tolist()
    for release in (weekly, gauge.update([1, 1])["window_7"]):
        with pytest.raises(tg.InvalidParameter, match="each step of a block"):
            release.every(7)


def test_the_ratio_of_a_view_read_once_a_day_is_to_the_bound_of_that(tmp_path):
    views = "[{window: 1d, every: 1d}, 1d]"
    for pure in (CONFIG, CONFIG.replace("epsilon: 1", "epsilon: 1, delta: 1e-9")):
        (tmp_path / "c.yaml").write_text(pure % views)
        plan = plan_of(config_of(tmp_path / "c.yaml"))
        daily, each = described(plan)["gauges"][0]["views"]
        assert daily["noise_std"][-1] == each["noise_std"][-1]
        assert daily["ratio"] > 2 * each["ratio"]


READ_DAILY = [
    "[{window: 1d, every: 1d}]",
    "[{window: 7d, every: 5h}, running]",
    "[{half_life: 1d, every: 1d}]",
]


@pytest.mark.parametrize("views", READ_DAILY)
@pytest.mark.parametrize("budget", ["epsilon: 1", "mu: 1"])
@pytest.mark.parametrize("end", ["end: 2025-02-01T00:00:00Z\n", ""], ids=["end", "endless"])
def test_what_is_compared_is_of_the_steps_that_are_read(tmp_path, views, budget, end):
    text = CONFIG.replace("end: 2025-02-01T00:00:00Z\n", end).replace("epsilon: 1", budget)
    (tmp_path / "c.yaml").write_text(text % views)
    config = config_of(tmp_path / "c.yaml")
    plan, (found,) = plan_of(config), compared(config)
    told = described(plan)["gauges"][0]["views"]
    for view, prediction in zip(told, found.chosen.views, strict=True):
        assert view["ratio"] == pytest.approx(prediction.ratio, rel=1e-9)
        assert max(view["noise_std"]) <= prediction.worst_std * (1 + 1e-6)
    ratio = max(view["ratio"] for view in told)
    assert f"has {ratio:.2f} times the least of any factorization" in found.explain()
    daily = plan.gauges[0].every_of(told[0]["name"])
    for candidate in found.candidates:
        first = candidate.views[0]
        steps = np.arange(daily, (plan.clock.end or 5000) + 1, daily)
        worst = candidate.plan.noise_std(first.decay, steps).max()
        assert worst == pytest.approx(first.worst_std, rel=2e-3)
        if first.decay == tg.Window(24):  # each day's sum, published: one event moves one of them
            assert first.lower_bound <= noise_of_a_day(budget) * (1 + 1e-9)


def noise_of_a_day(budget):
    return 1.0 if "mu" in budget else DiscreteLaplace(Fraction(1)).std


@pytest.mark.parametrize("guarantee", [GAUSSIAN, PURE], ids=["gaussian", "pure"])
@pytest.mark.parametrize(
    ("view", "end"),
    [
        (tg.Window(4999), 5000),
        (tg.Difference(tg.Window(5000), 5000), 6000),
        (tg.Difference(tg.Exponential(half_life=10_000), 5000), 6000),
        (tg.Exponential(half_life=4000), 5000),
        (tg.Polynomial(0.3, 1 << 20), 5000),
        (tg.Window(60), 64),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_a_stream_with_an_end_is_judged_at_its_end(view, end, guarantee):
    found = tg.plan(views=[view], unit="event", end=end, **guarantee)
    stds = [
        candidate.plan.noise_std(view, np.arange(1, end + 1)).max()
        for candidate in found.candidates
    ]
    for candidate, std in zip(found.candidates, stds, strict=True):
        (prediction,) = candidate.views
        assert prediction.worst_std == pytest.approx(std, rel=1e-9)
        assert prediction.lower_bound <= std * (1 + 1e-9)
        times = std / found.chosen.views[0].worst_std
        shown = f"{times:,.2f}" if times < 100 else f"{times:,.0f}"
        if not candidate.chosen and times >= 1:
            assert candidate.verdict == f"would have {shown} times the noise"


def test_a_dense_strategy_that_is_hardly_better_says_so():
    views, budget = [tg.Window(169)], {"unit": "event", "guarantee": tg.GaussianDP(1)}
    told = []
    for end in (300, 359):
        found = tg.plan(views=views, end=end, **budget)
        for candidate in found.candidates:
            less = 1 - candidate.views[0].worst_std / found.chosen.views[0].worst_std
            if less > 1e-9:
                assert type(candidate.plan.strategy) is DenseToeplitz
                assert less <= 0.01
                words = f"would have {100 * less:.2g} % less noise, but keeps all in memory"
                assert words == candidate.verdict
                told.append(found.explain().endswith(f"{words}."))
            elif not candidate.chosen:
                assert re.fullmatch(r"would have [\d,.]+ times the noise", candidate.verdict)
    assert True in told
