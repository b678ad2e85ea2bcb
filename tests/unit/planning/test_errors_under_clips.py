"""The least budget for an error under a clip that is found: releases under such a clip keep it."""

from dataclasses import replace

import numpy as np
import pytest
from configs import FLIGHTS

from tidegauge.errors import InvalidParameter
from tidegauge.mechanisms.clip_plan import UNIT
from tidegauge.mechanisms.clip_reading import ClipReading
from tidegauge.planning.config import config_of
from tidegauge.planning.described import described
from tidegauge.planning.planner import plan_of
from tidegauge.planning.target import budget_for, targets_of
from tidegauge.planning.verified import plan_from_bytes

HEAD = FLIGHTS.split("gauges:")[0]
GAUGE = "{column: arr_delay, bounds: [LOW, 1440], round_to: 0.5, clip: auto}"


@pytest.fixture
def read(tmp_path):
    def reader(kind, low):
        path = tmp_path / "c.yaml"
        gauge = GAUGE.replace("LOW", low)
        path.write_text(f"{HEAD}gauges:\n  late: {{{kind}: {gauge}, views: [running, 7d]}}\n")
        return config_of(path)

    return reader


def published(gauge, view, step, clip, events):
    """Half of an interval at a step, with one clip in force since the second step."""
    plan, grain = gauge.clipped, float(gauge.round_to)
    low = min(clip, -gauge.low)
    choices = np.array([[2, low, clip]])
    reading = ClipReading(plan, state={"choices": choices, "due": 1 << 40}, step=step)
    steps, widths = np.array([step]), []
    if plan.of == "sum":
        return float(reading.half_width(view, steps)[0]) * grain
    for mean in np.linspace(-low, clip, 101):
        decoded = np.array([[mean * events, events]])
        _, lower, upper, *_ = reading.means(view, steps, decoded)
        widths.append(max(upper[0, 0] - mean, mean - lower[0, 0]))
    return max(widths) * grain


@pytest.mark.parametrize(("kind", "low"), [("sum", "0"), ("sum", "-60"), ("mean", "0"),
                                          ("mean", "-60")])  # fmt: skip
def test_the_error_that_was_asked_is_that_of_releases_under_this_clip(read, kind, low):
    config, clip = read(kind, low), 200
    asked, events = ("2000", 1) if kind == "sum" else ("3,events=900", 900)
    found = budget_for(config, targets_of(config, [f"window_7d={asked},clip=200"]))
    ((width, step),) = found.widths
    (gauge,) = plan_of(found.config).gauges
    half = published(gauge, "window_7d", step, clip * 2, events)
    assert width == pytest.approx(half, rel=0.02)
    assert width <= float(asked.split(",")[0]) < 1.01 * width


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("running=20", "Noise is made for the clip"),
        ("running=20,clip=2000", "at most 1440"),
        ("running=20,clip=-2", "each above 0"),
        ("running=20,clip=200,events=10", "nothing else"),
        ("runing=20,clip=200", "Did you mean"),
    ],
)
def test_an_error_that_nothing_is_known_of_is_refused(read, asked, message):
    config = read("sum", "0")
    with pytest.raises(InvalidParameter, match=message):
        targets_of(config, [asked])


def test_a_plan_says_when_the_bound_has_less_noise_than_most_clips(tmp_path):
    """Single steps at a small delta: Laplace noise serves the bound, and no clip that moves."""
    gauge = GAUGE.replace("LOW", "0")
    words = {}
    for views in ("[step]", "[running]"):
        path = tmp_path / "c.yaml"
        path.write_text(f"{HEAD}gauges:\n  late: {{mean: {gauge}, views: {views}}}\n")
        plan = plan_of(config_of(path))
        words[views] = described(plan)["gauges"][0]["clip"]
        bound = path.read_text().replace(", clip: auto", "")
        path.write_text(bound)
        fixed = plan_of(config_of(path)).gauges[0].mechanism
        (decay,) = [decay for _, decay in plan.gauges[0].views]
        found = plan.gauges[0].mechanism
        parts = [
            float(p.half_width(decay, [100])[0]) / r for p, r in ((fixed, 1440), (found, UNIT))
        ]
        exactly = 1e-3 if views == "[step]" else 5e-3  # the share alone; their fits differ a bit
        assert words[views]["pays_below"] == pytest.approx(parts[0] / parts[1] * 1440, rel=exactly)
        assert words[views]["pays_below"] <= plan.gauges[0].clipped.pays_below() * 1440
    assert "Laplace noise. Learning the clip pays if" in words["[step]"]["says"]
    assert words["[step]"]["pays_below"] < 0.5 * 1440
    assert "Laplace" not in words["[running]"]["says"]


@pytest.mark.parametrize(("asked", "share"), [("3", "0.5"), ("0.3", "0.5"), ("0.3", "0.05")])
def test_an_error_that_no_drawn_clip_reaches_is_refused_for_that(tmp_path, asked, share):
    """The threshold takes no large epsilon; its own limits are no numbers that somebody wrote."""
    path = tmp_path / "c.yaml"
    clip = f"clip: {{perrier: {{first: 7d, share: {share}}}}}"
    gauge = f"{{column: arr_delay, bounds: [0, 1440], {clip}}}"
    path.write_text(f"{HEAD}gauges:\n  late: {{sum: {gauge}, views: [running]}}\n")
    config = config_of(path)
    with pytest.raises(InvalidParameter, match=r"can be reached.*smaller share, or clip: auto"):
        budget_for(config, targets_of(config, [f"running={asked},clip=500"]))


def test_a_plan_that_counts_magnitudes_in_another_way_is_refused_for_that(read):
    """So did an earlier version: its rows must not be read as counts of epochs."""
    plan = plan_of(read("sum", "0"))
    (gauge,) = plan.gauges
    mechanism = replace(gauge.clip.mechanism, max_per_step=1 << 20)
    other = replace(gauge, clip=replace(gauge.clip, mechanism=mechanism))
    with pytest.raises(InvalidParameter, match=r"An earlier version .* begin a new store"):
        plan_from_bytes(replace(plan, gauges=(other,)).canonical())
