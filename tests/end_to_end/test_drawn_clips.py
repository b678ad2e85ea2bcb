"""A clip of first values, from file to release: drawn once, stored, and paid for."""

import json
import re
import shutil
from datetime import timedelta
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from terminals import in_process as tidegauge
from test_neighbours import assert_look_the_same
from test_neighbours import seen as seen_of_counts
from test_published_means import ROWS, no_noise, released, run, write
from visits import CONFIG, START

from tidegauge.engine.public import PublicFolder
from tidegauge.engine.releases import NO_CLIP
from tidegauge.mechanisms import first_meter
from tidegauge.planning.verified import plan_from_bytes
from tidegauge.privacy.guarantee import ApproxDP
from tidegauge.strategies.decay import Window

FIXED = "column: shop, bounds: [0, 100000], round_to: 0.01"
SUM = f"sum: {{{FIXED}, clip: {{perrier: {{first: 12h, quantile: 0.1}}}}}}"
DRAWN = CONFIG.replace("count: {}, by: {shop: [north, south]}", SUM).replace(
    "end: 2025-01-13", "end: 2025-01-08"
)
MEAN = DRAWN.replace("sum:", "mean:")
ODD = [*ROWS, "2025-01-07T10:00:00Z,61370", "2025-01-06T01:00:00Z,NaN", "2025-01-06T01:00:00Z,x",
       "2025-01-06T02:00:00Z,"]  # fmt: skip


def clip_of(monkeypatch, grains):
    """Fix the clip; return the values that it was drawn from, one list a draw."""
    seen = []

    def draw(rule, values, most):
        seen.append(sorted(values.tolist()))
        return grains

    monkeypatch.setattr(first_meter, "measure_threshold", draw)
    return seen


def test_a_sum_is_that_of_its_values_under_the_clip(tmp_path, monkeypatch):
    no_noise(monkeypatch)
    seen = clip_of(monkeypatch, 215)
    shop = write(tmp_path, ODD, DRAWN)
    run(shop)
    table = released(shop)
    waiting, later = table.head(12), table.tail(-12)
    assert {NO_CLIP} == set(waiting["reason"])
    for name in ("value", "noise_std", "lower", "upper", "clip_low", "clip_high"):
        assert 12 == table[name].null_count() == waiting[name].null_count()
    assert {(0.0, 2.15)} == set(zip(later["clip_low"], later["clip_high"], strict=True))
    first = released(shop, "step").row(12, named=True)  # what waited counts there
    assert first["value"] == pytest.approx(130 * (1.9 + 2 + 2.1 + 2.15 + 2) / 5, rel=1e-4)
    last = table.row(-1, named=True)
    expected = 96 * (1.9 + 2 + 2.1 + 2.15 + 2) + 2.15
    assert last["value"] == pytest.approx(expected, rel=1e-4)
    assert last["lower"] < last["value"] < last["upper"]
    assert [sorted(24 * [190, 200, 210, 220, 200])] == seen


@pytest.mark.parametrize("config", [DRAWN, MEAN])
def test_what_waited_counts_whole_whatever_a_step_may_have(tmp_path, monkeypatch, config):
    no_noise(monkeypatch)
    clip_of(monkeypatch, 215)
    shop = write(tmp_path, ROWS, config.replace("}}}, ", "}}}, max_per_step: 10, "))
    run(shop)
    first, last = (released(shop).row(at, named=True) for at in (12, -1))
    each = (1.9 + 2 + 2.1 + 2.15 + 2) / 5
    for row, events in ((first, 130), (last, 480)):
        if config == MEAN:
            assert row["count"] == pytest.approx(events, rel=1e-4)
        assert row["value"] == pytest.approx(each * (1 if config == MEAN else events), rel=1e-4)
    assert "most events of a cell and step: 10" in (shop / "public" / "PRIVACY.md").read_text()


def test_a_mean_under_it_stays_where_nearly_all_values_are(tmp_path, monkeypatch):
    no_noise(monkeypatch)
    clip_of(monkeypatch, 300)
    shop = write(tmp_path, ODD, MEAN)
    run(shop)
    table = released(shop)
    assert {NO_CLIP} == set(table["reason"].head(12))
    last = table.row(-1, named=True)
    assert 481 == pytest.approx(last["count"])
    assert 2 < last["value"] < 2.1


@pytest.mark.parametrize("drawn", [0, 1, 10_000_000])
def test_a_threshold_at_the_ends_is_a_clip_too(tmp_path, monkeypatch, drawn):
    no_noise(monkeypatch)
    clip_of(monkeypatch, drawn)
    shop = write(tmp_path, ROWS, DRAWN)
    run(shop)
    last = released(shop).row(-1, named=True)
    assert max(drawn, 1) / 100 == last["clip_high"]
    assert last["value"] == pytest.approx(4.8 if drawn < 2 else 480 * 2.04, rel=1e-3)


@pytest.mark.parametrize("value", ["0", "61370"])
def test_values_that_are_all_equal_or_too_few_end_no_run(tmp_path, value):
    rows = [f"{row.split(',')[0]},{value}" for row in ROWS]
    for name, some in (("all", rows), ("one", rows[:1]), ("late", rows[200:]), ("none", [])):
        shop = write(tmp_path / name, some, MEAN)
        run(shop)
        (clip,) = set(released(shop)["clip_high"].tail(-12))
        assert 0.01 <= clip <= 100_000


def test_with_enough_values_one_far_away_moves_nothing(tmp_path, monkeypatch):
    no_noise(monkeypatch)
    rng = np.random.default_rng(2)
    steps = rng.integers(0, 13 * 60, 25_000)
    values = rng.exponential(2, len(steps))
    rows = [f"{START + timedelta(minutes=int(m)):%Y-%m-%dT%H:%M:%SZ},{v:.2f}"
            for m, v in zip(steps, values, strict=True)]  # fmt: skip
    shop = write(tmp_path, [*rows, "2025-01-06T01:00:00Z,61370"], MEAN)
    run(shop)
    last = released(shop).row(-1, named=True)
    assert 2 * np.log(10) < last["clip_high"] < 8
    assert last["value"] == pytest.approx(2 * (1 - np.exp(-last["clip_high"] / 2)), rel=0.03)


def test_a_clip_is_drawn_once_and_stored(tmp_path, monkeypatch):
    shop = write(tmp_path, ODD, DRAWN)
    for until in ("2025-01-06T03:00:00Z", "2025-01-06T12:00:00Z", "2025-01-06T14:00:00Z"):
        run(shop, "--until", until)
    (clip,) = set(released(shop)["clip_high"].tail(2))
    monkeypatch.setattr(first_meter, "measure_threshold", None)
    run(shop, "--until", "2025-01-07T00:00:00Z")
    before = {p: p.read_bytes() for p in (shop / "public").rglob("*.parquet")}
    shutil.rmtree(shop / "public" / "releases")
    shutil.rmtree(shop / "public" / "measurements")
    run(shop)
    assert (
        before.items() <= {p: p.read_bytes() for p in (shop / "public").rglob("*.parquet")}.items()
    )
    assert {clip} == set(released(shop)["clip_high"].tail(-12))
    for view in ("step", "running", "window_1d"):
        table = PublicFolder(shop / "public").view("visits", view).table()
        for name in ("clip_high", "value", "noise_std", "lower", "upper"):
            np.testing.assert_allclose(table[name], released(shop, view)[name], rtol=1e-9)


class ForgetsItsClip(first_meter.FirstMeter):
    """Broken twin: goes on with another clip after every stop."""

    @property
    def state(self):
        return {**super().state, "first": {**self._first, "clip": np.zeros(1, np.int64)}}


@pytest.mark.parametrize("kind", [first_meter.FirstMeter, ForgetsItsClip])
def test_a_run_in_parts_releases_what_one_run_does(tmp_path, monkeypatch, kind):
    from tidegauge.engine import clipped

    no_noise(monkeypatch)
    monkeypatch.setattr(clipped, "FirstMeter", kind)
    whole, parts = (write(tmp_path / name, ODD, MEAN) for name in ("whole", "parts"))
    clip_of(monkeypatch, 250)
    run(whole)
    draws = clip_of(monkeypatch, 250)
    for until in ("2025-01-06T01:00:00Z", "2025-01-06T12:00:00Z", "2025-01-06T13:00:00Z"):
        run(parts, "--until", until)
    run(parts)
    for view in ("step", "running", "window_1d"):
        one, other = released(whole, view), released(parts, view)
        for name in ("value", "lower", "upper", "count", "clip_high"):
            np.testing.assert_allclose(one[name], other[name], rtol=1e-9)
    assert len(draws) == 1 if kind is first_meter.FirstMeter else len(draws) > 1


def test_without_the_first_steps_nothing_is_released(tmp_path):
    config = re.sub("\nend: .*", "\nhorizon: 2d", DRAWN)
    shop = write(tmp_path, ROWS, config)
    run(shop, "--until", "2025-01-06T12:00:00Z")
    table = released(shop)
    assert {(None, NO_CLIP)} == set(zip(table["value"], table["reason"], strict=True))
    run(shop, "--until", "2025-01-06T13:00:00Z")
    assert released(shop)["value"].null_count() == 12


def test_other_views_come_later(tmp_path, monkeypatch):
    no_noise(monkeypatch)
    clip_of(monkeypatch, 1000)
    shop = write(tmp_path, ROWS, DRAWN)
    run(shop)
    last = PublicFolder(shop / "public").view("visits", Window(12)).last().row(0, named=True)
    assert last["value"] == pytest.approx(120 * 2.04, rel=1e-3)


def test_the_ledger_and_the_statement_name_what_the_clip_costs(tmp_path):
    shop = write(tmp_path, ROWS, DRAWN)
    assert "clip" in run(shop)
    plan = plan_from_bytes((shop / "public" / "plan.json").read_bytes())
    half = Fraction(1, 2)
    assert plan.thresholds == ApproxDP(half, half / 10**9)
    assert {"visits", "visits, threshold"} == {charge.name for charge in plan.charged().charges}
    text = (shop / "public" / "PRIVACY.md").read_text()
    page = text.split("# Details")[0]
    assert "the clip of visits, drawn from first values, spends (0.5, 5e-10)" in page
    assert "Values beyond the clip count as the clip." in text
    assert "values of the first 12 steps" in text
    assert "not of what the clip cuts off" in text
    ledger = json.loads((shop / "public" / "ledger.json").read_text())
    told = [float(ledger[name]) for name in ("epsilon", "delta", "thresholds")]
    assert pytest.approx([1, 1e-9, 5e-10], rel=1e-6) == told
    assert 2 == len(ledger["charges"])
    latest = json.loads(run(shop, "--json"))["latest"]
    assert {"clip_low", "clip_high", "reason"} <= set(latest[0])
    for words in (
        ("plot", "public", "-o", "a.svg"),
        ("plan", "visits.yaml", "--plot", "b.svg"),
        ("plan", "visits.yaml", "--compare"),
        ("plan", "visits.yaml", "--statement"),
        ("status", "visits.tidegauge"),
        ("export", "public", "--view", "2d"),
    ):
        code, out, err = tidegauge(*words, cwd=shop)
        assert 0 == code, err
        if words[0] == "status":
            assert "epsilon = 0.5, delta = 5e-10" in out
    assert "about" in tidegauge("plan", "visits.yaml", cwd=shop)[1]


def test_ids_pay_for_all_of_their_events_and_gauges_for_their_part(tmp_path):
    config = DRAWN.replace("unit: event", "unit: {id: shop, max_contributions: 5, per: lifetime}")
    config = config.replace("store:", "  others: {count: {}, budget_weight: 3}\nstore:")
    config = config.replace("column: shop", "column: amount")
    shop = write(tmp_path, [], config, "time,shop,amount")
    code, _, err = tidegauge("plan", "visits.yaml", "-o", "plan.json", cwd=shop)
    assert 0 == code, err
    plan = plan_from_bytes((shop / "plan.json").read_bytes())
    clip = plan.gauge("visits").clip
    assert (Fraction(1, 8), Fraction(1, 40)) == (clip.cost.epsilon, clip.rule.epsilon)
    assert clip.rule.delta < clip.cost.delta / 5
    assert plan.charged().total().epsilon <= 1
    assert plan.charged().total().delta <= Fraction(1, 10**9)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[0, 100000]", "[-5, 100000]", "bounds from 0 on"),
        ("[0, 100000]", "[5, 100000]", "bounds around 0"),
        ("epsilon: 1.0, delta: 1.0e-9", "epsilon: 1.0", "got epsilon alone"),
        ("epsilon: 1.0, delta: 1.0e-9", "rho: 0.1", "got rho alone"),
        ("epsilon: 1.0, delta: 1.0e-9", "mu: 1", "got mu alone"),
        ("first: 12h", "first: 2d", "first before the end"),
        ("first: 12h", "first: 12", "duration with its unit"),
        ("first: 12h", "first: 90m", "1h"),
        ("first: 12h, ", "", "Expected first, got nothing"),
        ("first: 12h", "last: 12h", "known field"),
        ("quantile: 0.1", "quantile: 1", "share of values"),
        ("quantile: 0.1", "beta_lt: 0.5", "beta_lt below 1/2"),
        ("quantile: 0.1", "share: 1", "rest of it"),
        ("quantile: 0.1", "delta_share: 0", "rest of it"),
        ("{perrier:", "{auto: {}, perrier:", "one of auto and perrier"),
        ("views: [step", "views: [{polynomial: 1.5}", "half-lives"),
        ("store:", "  b: {count: {}, by: {shop: discover}}\nstore:", "discover"),
    ],
)
def test_what_has_no_meaning_is_refused(tmp_path, old, new, message):
    assert old in DRAWN
    shop = write(tmp_path, ROWS, DRAWN.replace(old, new))
    code, _, err = tidegauge("validate", "visits.yaml", cwd=shop)
    assert 78 == code
    assert message in err.replace("\n", " ")


def test_a_clip_that_no_epsilon_pays_for_is_refused(tmp_path):
    shop = write(tmp_path, ROWS, DRAWN.replace("epsilon: 1.0", "epsilon: 90"))
    code, _, err = tidegauge("plan", "visits.yaml", cwd=shop)
    assert 78 == code
    assert "first values" in err


@pytest.mark.parametrize(
    ("name", "value"),
    [("first", 13), ("share", "1/4"), ("quantile", "1/20"), ("cost", {"epsilon": "1/2",
      "delta": "1/3000000000"}), ("first", 48)],
)  # fmt: skip
def test_a_plan_file_with_another_clip_is_refused_or_another_plan(tmp_path, name, value):
    shop = write(tmp_path, ROWS, DRAWN)
    assert 0 == tidegauge("plan", "visits.yaml", "-o", "plan.json", cwd=shop)[0]
    data = json.loads((shop / "plan.json").read_text())
    original = plan_from_bytes((shop / "plan.json").read_bytes())
    data["gauges"][0]["clip"][name] = value
    changed = json.dumps(data, sort_keys=True, separators=(",", ":"))
    (shop / "plan.json").write_text(changed)
    code, _, _ = tidegauge("plan", "plan.json", cwd=shop)
    if name in ("share", "cost") or value == 48:
        assert 78 == code
    else:
        other = plan_from_bytes(changed.encode())
        assert original.fingerprint != other.fingerprint
        assert original.declaration != other.declaration


NEIGHBOURS = {
    "one far away": [*ROWS, "2025-01-06T10:00:00Z,61370"],
    "no number": [*ROWS, "2025-01-06T10:00:00Z,NaN"],
    "one less": ROWS[1:],
    "none in the first steps": ROWS[120:],
    "none at all": [],
}


@pytest.fixture(scope="module")
def looks():
    """What is seen of the first stream, looked at once."""
    return {}


@pytest.mark.parametrize("other", NEIGHBOURS)
def test_streams_with_other_values_look_the_same(
    tmp_path, hidden_values, monkeypatch, looks, other
):
    """T10: with measurement and clip hidden, nothing tells which values there were, or how many."""
    clip_of(monkeypatch, 400)
    if not looks:
        looks["first"] = seen_of_counts(write(tmp_path / "first", ROWS, DRAWN))
    seen = seen_of_counts(write(tmp_path / "other", NEIGHBOURS[other], DRAWN))
    assert_look_the_same(looks["first"], seen)


def test_records_as_steps_are_the_papers_stream(tmp_path, monkeypatch):
    no_noise(monkeypatch)
    clip_of(monkeypatch, 215)
    config = re.sub("event_time.*\nstep.*\nstart.*\nend.*\n", "step: record\nend: 480\n", DRAWN)
    config = config.replace("12h", "100").replace(", 1d]", "]")
    shop = write(tmp_path, ROWS, config)
    run(shop)
    table = released(shop)
    assert 100 == table["value"].null_count()
    expected = 96 * (1.9 + 2 + 2.1 + 2.15 + 2)
    assert table["value"][-1] == pytest.approx(expected, rel=1e-4)
    assert isinstance(table, pl.DataFrame)
