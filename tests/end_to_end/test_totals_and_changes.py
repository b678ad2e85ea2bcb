"""Totals over cells, changes and averages: published, thought of later, and read back."""

import numpy as np
import polars as pl
import pytest
from terminals import in_process as tidegauge
from visits import CONFIG, rows_of_visits, write_visits

import tidegauge as tg
from tidegauge.planning.verified import plan_from_bytes

VIEWS = (
    "[step, running, 1d, {difference: 1d, of: 1d}, {half_life: 6h, average: true}, "
    "{custom: [3, 2, 1]}, {difference: 1d, of: {window: 1d}, every: 1d}]"
)
FULL = CONFIG.replace("[step, running, 1d]", VIEWS).replace(
    "visits: {count", "visits: {totals: true, count"
)
KEY = ["view", "step", "shop"]


def run(folder):
    code, _, err = tidegauge("run", "visits.yaml", cwd=folder)
    assert 0 == code, err
    return folder / "public"


@pytest.fixture(scope="module", params=["delta: 1.0e-9", "pure"])
def published(tmp_path_factory, request):
    config = FULL if request.param != "pure" else FULL.replace(", delta: 1.0e-9", "")
    config += "sinks: [{parquet: {path: all.parquet}}]\n"
    folder = tmp_path_factory.mktemp("totals")
    run(write_visits(folder, rows_of_visits(), config))
    return folder


@pytest.fixture(scope="module")
def releases(published):
    return pl.read_parquet(published / "all.parquet").sort(KEY)


def test_the_cell_of_all_is_the_sum_with_a_noise_of_its_own(published, releases):
    assert {"*", "north", "south", "other"} == set(releases["shop"])
    each = releases.filter(pl.col("shop") != "*").group_by("view", "step", maintain_order=True)
    sums = each.agg(pl.sum("value"), pl.first("noise_std")).sort("view", "step")
    total = releases.filter(pl.col("shop") == "*")
    np.testing.assert_allclose(total["value"], sums["value"], rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(total["noise_std"], sums["noise_std"] * 3**0.5, rtol=1e-12)
    assert (total["upper"] > total["lower"]).all()
    folder = published / "public" / "releases" / "visits" / "window_1d"
    inside = pl.read_parquet(folder / "totals" / "000000000001.parquet")
    assert ["*"] == inside["shop"].cast(pl.String).unique().to_list()
    assert "*" not in pl.read_parquet(folder / "000000000001.parquet")["shop"].to_list()


def test_a_change_is_the_difference_of_two_releases_and_complete_after_both(releases):
    north = releases.filter(pl.col("shop") == "north")
    day = north.filter(pl.col("view") == "window_1d").sort("step")
    change = north.filter(pl.col("view") == "difference_1d_of_window_1d").sort("step")
    expected = day["value"] - day["value"].shift(24).fill_null(0.0)
    np.testing.assert_allclose(change["value"], expected, rtol=1e-12, atol=1e-9)
    assert change["complete"].to_list() == [step >= 48 for step in range(1, 169)]
    early, late = change["noise_std"][20], change["noise_std"][100]
    assert early == day["noise_std"][20]
    assert late > 1.2 * early


def test_a_change_is_read_every_day_if_asked(releases):
    daily = releases.filter(pl.col("view") == "difference_1d_of_window_1d_every_1d")
    each = releases.filter(pl.col("view") == "difference_1d_of_window_1d")
    assert [24, 48, 72, 96, 120, 144, 168] == sorted(set(daily["step"]))
    same = each.filter(pl.col("step") % 24 == 0)
    for column in ("value", "noise_std", "lower", "upper", "complete"):
        assert same[column].to_list() == daily[column].to_list()


def test_changes_thought_of_later_are_what_they_would_have_been(published, releases):
    folder = tg.open(published / "public")
    later = folder.view("visits", tg.Difference(tg.Window(24), 24))
    stored = releases.filter(pl.col("view") == "difference_1d_of_window_1d")
    for cell, values in zip(later.cells, later.value.T, strict=True):
        assert stored.filter(pl.col("shop") == cell[0])["value"].to_list() == values.tolist()
    total = stored.filter(pl.col("shop") == "*")
    assert (("*",),) == later.total().cells
    assert total["value"].to_list() == later.total().value[:, 0].tolist()
    assert total["noise_std"].to_list() == later.total().noise_std.tolist()
    assert later.is_planned
    assert later.table(totals=False)["shop"].n_unique() == 3
    order = later.table()["shop"].to_list()[:4]
    assert ["north", "south", "other", "*"] == order


@pytest.mark.parametrize(
    "view", ["{difference: 2d, of: {half_life: 3h}}", "{difference: 1h, of: step}"]
)
def test_export_tells_the_ratio_of_a_change_and_what_planning_would_give(published, view):
    words = ("export", "public", "--view", view, "--totals", "-o", "change.parquet", "--force")
    code, _, err = tidegauge(*words, cwd=published)
    assert 0 == code, err
    assert "was not planned" in err
    assert "planning for this view alone would have given" in err
    ratio, best = (
        float(err.split(before)[1].split(after)[0])
        for before, after in (("mechanism is ", ";"), ("have given ", ".\n"))
    )
    assert 1 <= best <= ratio
    table = pl.read_parquet(published / "change.parquet")
    assert 168 * 4 == len(table)
    assert table["view"][0].startswith("difference_")


def test_the_plan_tells_the_noise_of_totals(published):
    code, out, _ = tidegauge("plan", "visits.yaml", cwd=published)
    assert 0 == code
    assert "running, cell *" in out


def test_the_end_of_a_run_shows_totals(tmp_path):
    folder = write_visits(tmp_path / "shop", rows_of_visits(), FULL)
    code, out, _ = tidegauge("run", "visits.yaml", cwd=folder)
    assert 0 == code
    assert any(line.split()[:1] == ["*"] for line in out.replace("│", " ").splitlines())


def test_totals_thought_of_later_change_no_file(tmp_path):
    rows = rows_of_visits()
    folder = write_visits(tmp_path / "shop", rows, FULL.replace("totals: true, ", ""))
    public = run(folder)
    before = {path: path.read_bytes() for path in public.rglob("*.parquet")}
    fingerprint = plan_from_bytes((public / "plan.json").read_bytes()).fingerprint
    (folder / "visits.yaml").write_text(FULL)
    run(folder)
    plan = plan_from_bytes((public / "plan.json").read_bytes())
    assert plan.gauges[0].totals
    assert fingerprint == plan.fingerprint
    assert {path: path.read_bytes() for path in before} == before
    more = {path.parent.name for path in public.rglob("*.parquet")} - {
        path.parent.name for path in before
    }
    assert {"totals"} == more


def test_without_the_rest_the_total_is_of_the_listed_cells(tmp_path):
    config = FULL.replace("views:", "other: drop, views:")
    public = run(write_visits(tmp_path / "shop", rows_of_visits(), config))
    view = tg.open(public).view("visits", "running")
    np.testing.assert_allclose(view.total().value[:, 0], view.value.sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(view.total().noise_std, view.noise_std * 2**0.5, rtol=1e-12)


def test_totals_need_cells(tmp_path):
    config = FULL.replace("by: {shop: [north, south]}, ", "")
    folder = write_visits(tmp_path / "shop", rows_of_visits(), config)
    code, _, err = tidegauge("validate", "visits.yaml", cwd=folder)
    assert 78 == code
    assert "Expected totals beside by" in err
    run(write_visits(folder, rows_of_visits(), config.replace("totals: true, ", "")))
    code, _, err = tidegauge("export", "public", "--view", "step", "--totals", cwd=folder)
    assert 2 == code
    assert "nothing to add up" in err
