"""Odd values from file to release: an outlier first, money in floats, bounds that are none."""

import pytest
from terminals import in_process as tidegauge
from test_published_clips import CLIP
from test_published_means import ROWS, no_noise, released, run, write

SURE = CLIP.replace("epsilon: 1.0, delta: 1.0e-9", "rho: 5")


@pytest.mark.parametrize("first", ["61370", "1e300", "-1e300"])
@pytest.mark.parametrize("kind", ["sum", "mean"])
def test_one_outlier_in_the_first_hour_moves_no_more_than_a_clip(
    tmp_path, monkeypatch, first, kind
):
    no_noise(monkeypatch)
    shop = write(
        tmp_path, [f"2025-01-06T00:00:01Z,{first}", *ROWS], SURE.replace("sum:", f"{kind}:")
    )
    run(shop)
    last = released(shop).row(-1, named=True)
    mean = last["value"] if kind == "mean" else last["value"] / 481
    assert mean == pytest.approx(2.04, abs=0.25)
    assert last["clip_high"] < 100


def test_money_in_floats_is_money_in_cents(tmp_path, monkeypatch):
    no_noise(monkeypatch)
    found = []
    for name, text in (("cents", "0.30"), ("floats", str(0.1 + 0.2)), ("powers", "3e-1")):
        rows = [f"{row.split(',')[0]},{text}" for row in ROWS]
        shop = write(tmp_path / name, rows, SURE)
        run(shop)
        found.append(released(shop).drop_nulls("value")["value"].to_list())
    assert found[0] == found[1] == found[2]
    assert found[0][-1] == pytest.approx(480 * 0.3, rel=1e-4)


@pytest.mark.parametrize("kind", ["sum", "mean"])
@pytest.mark.parametrize(
    ("bounds", "says"),
    [("[0, 0]", "between"), ("[10, -10]", "Swap them"), ("[0, NaN]", "a number")],
)
def test_bounds_that_are_none_are_refused_at_their_place(tmp_path, kind, bounds, says):
    config = CLIP.replace("[-20, 100000]", bounds).replace("sum:", f"{kind}:")
    code, _, err = tidegauge("validate", "visits.yaml", cwd=write(tmp_path, ROWS, config))
    assert 78 == code
    assert says in err.replace("\n", " ")


def test_a_step_that_waits_for_a_clip_is_a_gap_in_a_picture(tmp_path, monkeypatch):
    from tidegauge import plots

    panels = []
    monkeypatch.setattr(plots, "releases_figure", lambda times, found, **_: panels.extend(found))
    no_noise(monkeypatch)
    shop = write(tmp_path, ROWS, SURE.replace("sum:", "mean:"))
    run(shop)
    assert 100_000 == released(shop)["upper"][0]  # all that is possible
    code, _, err = tidegauge("plot", "public", "-o", "a.svg", cwd=shop)
    assert 0 == code, err
    assert panels
    for panel in panels:
        heights = [height for height in panel.upper if height == height]
        assert heights
        assert max(heights) < 1000
