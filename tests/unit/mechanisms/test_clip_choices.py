"""A clip that moves: what is chosen, what is told of it, and what is refused."""

import numpy as np
import pytest
from test_clipped import plan_of, seeded, silent

import tidegauge as tg
from tidegauge.mechanisms import clip_meter
from tidegauge.mechanisms.clip_plan import UNIT
from tidegauge.mechanisms.clipping import best_clip, clips_up_to, tails
from tidegauge.mechanisms.mean import Values
from tidegauge.privacy.statement import named


def test_a_monster_among_small_values_leaves_the_mean_near_them():
    """Turnaround times near 2 hours with one of 61,370: the mean of 15,000 is 2, not 7."""
    plan = plan_of("mean", (0, 100_000), horizon=200)
    gauge, rng = seeded(9, plan), np.random.default_rng(1)
    values, steps = rng.integers(1, 4, 15_000), np.sort(rng.integers(0, 200, 15_000))
    values[3000] = 61_370
    release = gauge.update_many(values, steps, 200)["running"]
    assert release.value[-1] == pytest.approx(2, abs=0.2)
    assert release.upper[-1] - release.lower[-1] < 0.5
    assert release.clip[1][-1] < 50


@pytest.mark.parametrize("value", [0, 1, 7, 5000])
def test_values_all_equal_are_found(value):
    plan = plan_of("mean")
    gauge = seeded(4, plan)
    release = gauge.update_many([value] * 48_000, np.repeat(range(48), 1000), 48)["running"]
    assert abs(release.value[-1] - value) <= 0.1 * value + 0.1


def test_two_ends_are_found_apart():
    plan, rng = plan_of("sum", (-100_000, 100_000)), np.random.default_rng(6)
    gauge = seeded(4, plan)
    values = np.where(rng.random(40_000) < 0.6, -rng.exponential(10, 40_000),
                      rng.exponential(400, 40_000))  # fmt: skip
    steps = np.repeat(range(40), 1000)
    release = gauge.update_many(np.rint(values).astype(int), steps, 40)["running"]
    low, high = (int(end[-1]) for end in release.clip)
    assert -200 < low < -20
    assert 800 < high < 8000


def test_a_tail_is_not_led_astray_by_noise_far_above_all_values():
    rng, clips = np.random.default_rng(2), clips_up_to(1 << 20)
    exact = np.r_[np.full(7, 2000.0), 900, 200, 20, np.zeros(11)]
    found = [
        best_clip(exact + 60 * rng.normal(size=21), 0.0, 60.0, clips, [(1.0, 30.0**2)])
        for _ in range(400)
    ]
    assert np.quantile(found, 0.02) > 128
    assert np.quantile(found, 0.98) < 2048
    assert tails(np.array([3.0, -2, 1]), 5.0) is None


def test_few_events_wait_and_releases_say_so():
    plan = plan_of("mean", horizon=None)
    gauge = seeded(4, plan)
    release = gauge.update([5, 6, 7])["running"]
    assert np.isnan(release.value)
    assert release.reason is not None
    assert (float(release.lower), float(release.upper)) == (0, 5000)
    assert 0 == len(gauge.choices)


def test_memory_for_what_waits_does_not_grow():
    plan = plan_of("sum")
    meter = silent(plan)
    before = sum(array.nbytes for array in meter._waiting.values())
    meter.measure(Values(np.arange(9000) % 5000, None, None, 1, 1), None)
    assert before == sum(array.nbytes for array in meter._waiting.values())
    assert clip_meter._ROWS < 9000


def test_the_budget_is_shared_and_adds_up():
    plan = plan_of(share=0.1)
    assert float(plan.main.cost.mu) ** 2 == pytest.approx(0.9, rel=1e-6)
    assert float(plan.bins.cost.mu) ** 2 == pytest.approx(0.1, rel=1e-6)
    assert plan.charged() is not None
    text = plan.in_words()
    assert "10 %" in text
    assert "count as the clip" in text
    assert "pays" not in text, "a plan tells that, not a statement"
    assert plan.pays_below() == pytest.approx(0.9**0.5)


def of_the_values_alone(plan):
    """A statement that forgets what the counts of magnitudes cost."""
    return f"{plan.main.statement()}\n{plan.in_words()}\n"


def says_all(text, plan):
    spent = named(plan.charged().total())
    constants = "bounds: -50, 5000", "max_events_per_step: 300", "1/8", "views: running"
    return all(said in text for said in (spent, "**magnitudes**", *constants))


@pytest.mark.parametrize("of", ["sum", "mean"])
def test_a_statement_tells_all_that_is_spent_and_declared(of):
    asked = {"views": [tg.Running()], "unit": "event", "epsilon": 1, "delta": 1e-9}
    gauge = tg.ClippedGauge(
        of, bounds=(-50, 5000), cells=["north", "south"], max_events_per_step=300, **asked
    )
    assert gauge.ledger.total() == gauge.plan.charged().total()
    text = gauge.statement()
    assert says_all(text, gauge.plan)
    assert not says_all(of_the_values_alone(gauge.plan), gauge.plan)
    assert "cells: north, south" in text
    assert "moves" in text
    assert str(UNIT) not in text


@pytest.mark.parametrize(
    ("changes", "error"),
    [({"bounds": (5, 10)}, tg.InvalidParameter), ({"bounds": (-9, -3)}, tg.InvalidParameter),
     ({"of": "median"}, tg.InvalidParameter), ({"share": 0.9}, tg.InvalidParameter),
     ({"guarantee": tg.PureDP(1)}, tg.UnsupportedCombination),
     ({"views": [tg.Polynomial(1)]}, tg.UnsupportedCombination),
     ({"views": [tg.Difference(tg.Window(3), 3)]}, tg.UnsupportedCombination),
     ({"unit": tg.Contributions(3, min_separation=2)}, tg.UnsupportedCombination)],
)  # fmt: skip
def test_what_is_not_proved_is_refused(changes, error):
    with pytest.raises(error, match="Expected"):
        plan_of(**changes)


def test_ids_with_several_events_pay_for_all_of_them():
    one, three = (plan_of(unit=unit).main for unit in ("event", tg.Contributions(3)))
    assert float(three.law.scale / one.law.scale) == pytest.approx(3, rel=1e-3)


def test_beyond_the_end_nothing_is_measured():
    gauge = seeded(1, plan_of(end=4, horizon=4))
    gauge.update_many([1], [0], 4)
    with pytest.raises(tg.StreamEnded):
        gauge.update([1])
