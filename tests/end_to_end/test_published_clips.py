"""A clip that is found, from file to release: stored, never chosen twice, exact without noise."""

import json
import shutil

import numpy as np
import polars as pl
import pytest
from terminals import in_process as tidegauge
from test_neighbours import assert_look_the_same
from test_neighbours import seen as seen_of_counts
from test_published_means import ROWS, no_noise, released, run, write
from visits import CONFIG

from tidegauge.engine.public import PublicFolder
from tidegauge.errors import InvalidParameter, UnsupportedCombination
from tidegauge.mechanisms.mean_release import NO_CLIP
from tidegauge.planning.verified import plan_from_bytes
from tidegauge.strategies.decay import Polynomial, Window

FIXED = "column: shop, bounds: [-20, 100000], round_to: 0.01"
SUM = f"sum: {{{FIXED}, clip: {{auto: {{share: 0.1}}}}}}"
CLIP = CONFIG.replace("count: {}, by: {shop: [north, south]}", SUM).replace(
    "end: 2025-01-13", "end: 2025-01-08"
)
MEAN = CLIP.replace("sum:", "mean:")
ODD = [*ROWS, "2025-01-07T10:00:00Z,61370", "2025-01-06T01:00:00Z,NaN", "2025-01-06T01:00:00Z,x"]


def expected_sum(table, rows):
    """The running sum of the values under the clips that the releases name."""
    frame = pl.DataFrame({"step": [int(r[8:10]) * 24 + int(r[11:13]) - 143 for r in rows],
                          "value": [float(r.split(",")[1]) for r in rows]})  # fmt: skip
    clips = {row["step"]: row["clip_high"] for row in table.to_dicts() if row["clip_high"]}
    first = min(clips)
    return sum(min(v, clips[max(s, first)]) for s, v in frame.iter_rows())


def test_a_sum_is_that_of_its_values_under_the_clips_in_force(tmp_path, monkeypatch):
    no_noise(monkeypatch)
    shop = write(tmp_path, ODD, CLIP)
    run(shop)
    table = released(shop)
    waiting = table.filter(pl.col("clip_high").is_null())
    assert 0 < len(waiting) < 30
    assert {NO_CLIP} == set(waiting["reason"])
    for name in ("value", "noise_std", "lower", "upper"):
        assert len(waiting) == table[name].null_count()
    last = table.row(-1, named=True)
    assert last["clip_high"] < 10  # one of 61,370 moves nothing
    assert last["value"] == pytest.approx(expected_sum(table, ODD[:-2]), rel=1e-4)
    assert last["lower"] < last["value"] < last["upper"]


def test_a_mean_under_a_clip_stays_where_nearly_all_values_are(tmp_path, monkeypatch):
    no_noise(monkeypatch)
    shop = write(tmp_path, ODD, MEAN)
    run(shop)
    last = released(shop).row(-1, named=True)
    assert 481 == pytest.approx(last["count"])
    assert 2 < last["value"] < 2.1
    assert None is last["reason"]


@pytest.mark.parametrize("value", ["0", "2.5"])
def test_equal_values_have_a_clip_too(tmp_path, monkeypatch, value):
    no_noise(monkeypatch)
    config = MEAN.replace("epsilon: 1.0, delta: 1.0e-9", "rho: 5000")
    shop = write(tmp_path, [f"{row.split(',')[0]},{value}" for row in ROWS], config)
    run(shop)
    last = released(shop).row(-1, named=True)
    assert last["value"] == pytest.approx(float(value), abs=0.05)


def test_clips_are_stored_and_never_chosen_again(tmp_path, monkeypatch):
    shop = write(tmp_path, ODD, CLIP)
    for until in ("2025-01-06T03:00:00Z", "2025-01-07T00:00:00Z", "2025-01-08T00:00:00Z"):
        run(shop, "--until", until)
    before = {p: p.read_bytes() for p in (shop / "public").rglob("*.parquet")}
    monkeypatch.setattr("tidegauge.mechanisms.clip_reading.best_clip", None)
    shutil.rmtree(shop / "public" / "releases")
    shutil.rmtree(shop / "public" / "measurements")
    run(shop)
    assert before == {p: p.read_bytes() for p in (shop / "public").rglob("*.parquet")}
    for view in ("step", "running", "window_1d"):
        table = PublicFolder(shop / "public").view("visits", view).table()
        published = released(shop, view)
        assert table["clip_high"].equals(published["clip_high"])
        for name in ("value", "noise_std", "lower", "upper"):
            np.testing.assert_allclose(table[name], published[name], rtol=1e-9)


def test_a_run_in_parts_releases_what_one_run_does(tmp_path, monkeypatch):
    no_noise(monkeypatch)
    whole, parts = (write(tmp_path / name, ODD, MEAN) for name in ("whole", "parts"))
    run(whole)
    for until in ("2025-01-06T01:00:00Z", "2025-01-06T05:00:00Z", "2025-01-08T00:00:00Z"):
        run(parts, "--until", until)
    for view in ("step", "running", "window_1d"):
        one, other = released(whole, view), released(parts, view)
        assert one["clip_high"].equals(other["clip_high"])
        for name in ("value", "lower", "upper", "count"):
            np.testing.assert_allclose(one[name], other[name], rtol=1e-9)


def test_other_views_come_later_if_their_noise_is_known(tmp_path, monkeypatch):
    no_noise(monkeypatch)
    shop = write(tmp_path, ROWS, CLIP)
    run(shop)
    folder = PublicFolder(shop / "public")
    view = folder.view("visits", Window(12))
    assert np.isnan(view.noise_std).all()
    last = view.last().row(0, named=True)
    assert last["value"] == pytest.approx(120 * 2.04, rel=0.02)
    with pytest.raises(UnsupportedCombination, match="half-lives"):
        folder.view("visits", Polynomial(1.5, reach=48))
    code, _, err = tidegauge("export", "public", "--view", "running", "--top", "1", cwd=shop)
    assert 2 == code, err


def test_the_ledger_and_the_statement_name_what_the_clip_costs(tmp_path):
    shop = write(tmp_path, ROWS, CLIP)
    assert "clip" in run(shop)
    plan = plan_from_bytes((shop / "public" / "plan.json").read_bytes())
    costs = {charge.name: float(charge.cost.mu_squared) for charge in plan.charged().charges}
    assert costs["visits, magnitudes"] == pytest.approx(sum(costs.values()) / 10, rel=1e-6)
    text = (shop / "public" / "PRIVACY.md").read_text()
    assert "Values beyond the clip count as the clip." in text
    assert "10 % of the budget of the gauge" in text
    assert "visits, magnitudes" in (shop / "public" / "ledger.json").read_text()
    latest = json.loads(run(shop, "--json"))["latest"]
    assert {"clip_low", "clip_high", "reason"} <= set(latest[0])
    for words in (
        ("plot", "public", "-o", "a.svg"),
        ("plan", "visits.yaml", "--plot", "b.svg"),
        ("status", "visits.tidegauge"),
        ("export", "public", "--view", "2d"),
    ):
        code, _, err = tidegauge(*words, cwd=shop)
        assert 0 == code, err


def test_a_plan_says_when_learning_a_clip_cannot_pay(tmp_path):
    shop = write(tmp_path, ROWS, CLIP.replace("[-20, 100000], round_to: 0.01", "[0, 1]"))
    code, out, err = tidegauge("plan", "visits.yaml", cwd=shop)
    assert 0 == code, err
    assert "learning the clip cannot pay" in out
    (shop / "visits.yaml").write_text(CLIP)
    assert "cannot pay" not in tidegauge("plan", "visits.yaml", cwd=shop)[1]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[-20, 100000]", "[1, 5]", "bounds around 0"),
        ("share: 0.1", "share: 0.9", "share from 0.01 to 0.5"),
        ("{auto: {share: 0.1}}", "perrier", "Expected auto"),
        ("{auto: {share: 0.1}}", "{}", "one of auto and perrier"),
        (", delta: 1.0e-9", "", "a delta beside clip"),
        ("views: [step", "views: [{polynomial: 1.5}", "half-lives"),
        ("views:", "strategy: WindowSum, views:", "no strategy beside clip"),
        ("views:", "by: {clip_low: [a]}, views:", "no clipped release has"),
        ("views:", "by: {a: discover}, views:", "known values beside clip"),
        ("views:", "by: {a: [b]}, totals: true, views:", "no totals beside clip"),
        ("views:", "max_per_step: 1.5, views:", "from 1 to 2^22"),
    ],
)
def test_what_has_no_meaning_beside_a_clip_is_refused(tmp_path, old, new, message):
    shop = write(tmp_path, ROWS, CLIP.replace(old, new))
    code, _, err = tidegauge("validate", "visits.yaml", cwd=shop)
    assert 78 == code
    assert message in err.replace("\n", " ")


def test_a_plan_file_with_another_clip_is_refused(tmp_path):
    shop = write(tmp_path, ROWS, CLIP)
    assert 0 == tidegauge("plan", "visits.yaml", "-o", "plan.json", cwd=shop)[0]
    data = json.loads((shop / "plan.json").read_text())
    data["gauges"][0]["clip"]["mechanism"]["neighbors"]["high"] = 2
    (shop / "plan.json").write_text(json.dumps(data))
    assert 78 == tidegauge("plan", "plan.json", cwd=shop)[0]


@pytest.mark.parametrize("odd", ["2025-01-06T10:00:00Z,61370", "2025-01-06T10:00:00Z,NaN"])
def test_streams_with_other_values_look_the_same(tmp_path, hidden_values, odd):
    """T10: with the measurement hidden, nothing tells which values there were, or how many."""
    first = seen_of_counts(write(tmp_path / "first", ROWS, CLIP))
    assert_look_the_same(first, seen_of_counts(write(tmp_path / "other", [*ROWS, odd], CLIP)))


@pytest.mark.parametrize("config", [CLIP, MEAN])
def test_totals_over_cells_share_the_clip_and_have_the_noise_of_all_of_them(tmp_path, config):
    by = config.replace("views:", "by: {shop: [north, south]}, views:")
    by = by.replace("column: shop", "column: amount")
    shop = write(tmp_path, _of_cells(), by, head="time,amount,shop")
    run(shop)
    folder = PublicFolder(shop / "public")
    view = folder.view("visits", "running")
    each, total = view.numbers, view.total().numbers
    waits = np.isnan(each.more["clip_high"][:, 0])
    assert 0 < waits.sum() < len(waits)
    assert np.array_equal(np.isnan(total.value[:, 0]), waits)
    if config is CLIP:
        assert np.allclose(total.value[:, 0], each.value.sum(axis=1), equal_nan=True)
        std = total.noise_std[:, 0] / each.noise_std[:, 0]
        assert std[~waits] == pytest.approx(np.sqrt(3))  # other is a cell
    else:
        counts = each.more["count"].sum(axis=1)
        assert np.allclose(total.more["count"][:, 0], counts, equal_nan=True)
        std = total.more["count_std"][:, 0] / each.more["count_std"][:, 0]
        assert std[~waits] == pytest.approx(np.sqrt(3))  # other is a cell
        half = (total.upper[-1, 0] - total.lower[-1, 0]) / 2  # 1.96 stds: noise is fresh each time
        assert abs(total.value[-1, 0] - 2) < 3 * half
    code, out, err = tidegauge(
        "export", "public", "--view", "running", "--totals", "--format", "csv", cwd=shop
    )
    assert code == 0, err
    assert "*" in out


def _of_cells():
    return [f"{row.rpartition(',')[0]},{1 + n % 7 / 3:.2f},{'north' if n % 3 else 'south'}"
            for n, row in enumerate(ROWS * 4)]  # fmt: skip


def test_no_lower_bound_is_told_of_means_and_clips(tmp_path):
    fixed = MEAN.replace(", clip: {auto: {share: 0.1}}", "")
    for name, config in {"clip": CLIP, "mean": MEAN, "fixed": fixed}.items():
        shop = write(tmp_path / name, ROWS, config)
        run(shop)
        view = PublicFolder(shop / "public").view("visits", "running")
        for told in (view.ratio, view.ratio_if_planned):
            with pytest.raises(InvalidParameter, match="No lower bound is known"):
                told()


@pytest.mark.parametrize("share", ["1/2", "1/11", "0", "1"])
def test_a_plan_file_with_another_share_is_refused(tmp_path, share):
    rows = "rows: {count: {}, views: [running], budget_weight: 3}"
    two = CLIP.replace("gauges:", f"gauges:\n  {rows}")
    shop = write(tmp_path, ROWS, two)
    code, _, err = tidegauge("plan", "visits.yaml", "-o", "plan.json", cwd=shop)
    assert code == 0, err
    assert 0 == tidegauge("plan", "plan.json", cwd=shop)[0]
    data = json.loads((shop / "plan.json").read_text())
    assert data["gauges"][1]["clip"]["share"] == "1/10"
    data["gauges"][1]["clip"]["share"] = share
    (shop / "plan.json").write_text(json.dumps(data))
    assert 78 == tidegauge("plan", "plan.json", cwd=shop)[0]


def test_a_stream_of_one_step_has_no_clip(tmp_path):
    shop = write(tmp_path, ROWS, CLIP.replace("end: 2025-01-08T00", "end: 2025-01-06T01"))
    code, _, err = tidegauge("plan", "visits.yaml", cwd=shop)
    assert code == 78
    assert "an end of two steps or more beside clip" in err
