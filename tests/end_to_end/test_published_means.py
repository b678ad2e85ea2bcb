"""A mean from file to release: exact where noise is taken away, and what a reader sees."""

import json
import math

import polars as pl
import pytest
from terminals import in_process as tidegauge
from test_neighbours import assert_look_the_same
from test_neighbours import seen as seen_of_counts
from visits import CONFIG, write_visits

from tidegauge.engine.public import PublicFolder
from tidegauge.errors import UnsupportedCombination
from tidegauge.strategies.decay import Difference, Window

SPEND = "mean: {column: shop, bounds: [0, 10], round_to: 0.1}"
MEANS = CONFIG.replace("count: {}, by: {shop: [north, south]}", SPEND).replace(
    "end: 2025-01-13", "end: 2025-01-08"
)
ROWS = [
    f"2025-01-0{6 + n // 240}T{n // 10 % 24:02d}:{5 * (n % 10):02d}:00Z,{v}"
    for n, v in enumerate([1.9, 2, 2.1, 2.2, "2.00"] * 96)
]
BAD = ["NaN", "inf", "-Infinity", "", "null", "ten", '"2,1"']
BY = MEANS.replace("column: shop", "column: amount").replace(
    "views:", "by: {shop: [north, south]}, totals: true, views:"
)


def silent(strategy, state, law, words, exact, first, once=None):
    """A measurement without noise."""
    rows = strategy.encode(state["encoder"], exact, first)
    return rows if once is None else rows + strategy.add_once(state["encoder"], once)


def no_noise(monkeypatch):
    monkeypatch.setattr("tidegauge.mechanisms.meter.measure", silent)


def write(folder, rows=ROWS, config=MEANS, head=None):
    shop = write_visits(folder, rows, config)
    if head is not None:
        (shop / "visits.csv").write_text("\n".join([head, *rows]) + "\n")
    return shop


def released(folder, view="running"):
    files = (folder / "public" / "releases" / "visits" / view).glob("*.parquet")
    return pl.concat([pl.read_parquet(file) for file in sorted(files)])


def run(folder, *words):
    code, out, err = tidegauge("run", "visits.yaml", *words, cwd=folder)
    assert 0 == code, err
    return out


def test_means_are_those_of_the_numbers_and_one_of_a_million_moves_little(tmp_path, monkeypatch):
    no_noise(monkeypatch)
    bad = [*(f"2025-01-06T05:00:00Z,{text}" for text in BAD), "2025-01-06T05:01:00Z,61370"]
    rows = [*ROWS[10:], *bad, "2025-01-06T05:01:00Z,1e999"]  # nothing in the first hour
    shop = write(tmp_path, rows)
    run(shop)
    table = released(shop)
    assert [472] == table["count"].tail(1).round(6).to_list()
    (last,) = table["value"].tail(1)
    assert last == pytest.approx((470 * 2.04 + 20) / 472)
    assert table["noise_std"].null_count() == len(table)
    first, reason = table.row(0, named=True), "the noisy count is too small for a mean"
    assert (None, reason) == (first["value"], first["reason"])
    assert (0.0, 10.0) == (first["lower"], first["upper"])
    assert table.row(-1, named=True)["reason"] is None


def test_cells_their_mean_together_and_views_that_are_asked_later(tmp_path, monkeypatch):
    no_noise(monkeypatch)
    rows = [f"{row},{('north', 'south', 'east')[n % 3]}" for n, row in enumerate(ROWS)]
    shop = write(tmp_path, rows, BY, "time,amount,shop")
    run(shop)
    frame = pl.read_csv(shop / "visits.csv", try_parse_dates=True)
    folder = PublicFolder(shop / "public")
    view = folder.view("visits", "running")
    for number, cell in enumerate(["north", "south", "east"]):
        of = frame.filter(pl.col("shop") == cell)["amount"]
        assert of.mean() == pytest.approx(view.value[-1, number])
        assert len(of) == pytest.approx(view.numbers.more["count"][-1, number])
    assert frame["amount"].mean() == pytest.approx(view.total().value[-1, 0])
    assert "*" in released(shop, "running/totals")["shop"].to_list()
    late = folder.view("visits", Window(36))
    of = frame.filter(pl.col("time").dt.strftime("%d%H") >= "0612")["amount"]
    assert of.mean() == pytest.approx(late.total().value[-1, 0])
    assert math.isnan(late.noise_std[0])
    assert math.isnan(late.half_width[0])
    table = late.table(totals=True)
    assert table["lower"].is_not_null().all()
    with pytest.raises(UnsupportedCombination, match="no mean"):
        folder.view("visits", Difference(Window(24), 24))


def test_events_that_are_sets_have_one_value_each(tmp_path, monkeypatch):
    no_noise(monkeypatch)
    config = MEANS.replace("column: shop", "column: amount").replace(
        "event_time: time", "event_time: time\nevent: basket"
    )
    rows = [f"{row},{n // 4}" for n, row in enumerate(ROWS)]
    shop = write(tmp_path, rows, config, "time,amount,basket")
    run(shop)
    frame = pl.read_csv(shop / "visits.csv")
    whole = frame.group_by("basket").agg(pl.col("amount").sum())["amount"]
    last = released(shop).row(-1, named=True)
    assert whole.mean() == pytest.approx(last["value"])
    assert len(whole) == pytest.approx(last["count"])


def test_an_id_brings_no_more_values_than_its_bound(tmp_path, monkeypatch):
    no_noise(monkeypatch)
    unit = "unit: {id: who, max_contributions: 2, per: lifetime}"
    config = MEANS.replace("column: shop", "column: amount").replace("unit: event", unit)
    rows = [f"{row},c{n % 100}" for n, row in enumerate(ROWS)]
    shop = write(tmp_path, rows, config, "time,amount,who")
    run(shop)
    assert 200 == pytest.approx(released(shop)["count"][-1])


@pytest.mark.parametrize("values", [["2.5"] * 480, ["0"] * 480, ["0.30000000000000004"] * 480])
def test_equal_values_have_their_value_as_mean(tmp_path, monkeypatch, values):
    no_noise(monkeypatch)
    rows = [f"{row.split(',')[0]},{v}" for row, v in zip(ROWS, values, strict=True)]
    shop = write(tmp_path, rows)
    run(shop)
    assert released(shop)["value"][-1] == pytest.approx(float(values[0]), abs=1e-9)


def test_a_run_in_parts_releases_what_one_run_does(tmp_path, monkeypatch):
    no_noise(monkeypatch)
    whole, parts = (write(tmp_path / name) for name in ("whole", "parts"))
    run(whole)
    for until in ("2025-01-06T05:00:00Z", "2025-01-07T00:00:00Z", "2025-01-08T00:00:00Z"):
        run(parts, "--until", until)
    for view in ("step", "running", "window_1d"):
        assert released(whole, view).equals(released(parts, view))


def test_people_and_programs_read_means_with_their_bands(tmp_path):
    shop = write(tmp_path)
    assert "] of " in run(shop)
    latest = json.loads(run(shop, "--json"))["latest"]
    assert ["step", "running", "window_1d"] == [row["view"] for row in latest]
    assert all(row["lower"] <= row["upper"] and row["count_std"] > 0 for row in latest)
    code, out, err = tidegauge("plan", "visits.yaml", cwd=shop)
    assert 0 == code, err
    assert "of 1,000 events" in out
    assert "No lower bound is known for means" in out
    code, out, err = tidegauge("export", "public", "--view", "2d", "--format", "csv", cwd=shop)
    assert 0 == code, err
    assert "No lower bound is known" in err
    assert out.startswith("gauge,view,step,step_start,step_end,value,noise_std,lower,upper,count,")
    for words in (("plot", "public", "-o", "a.svg"), ("plan", "visits.yaml", "--plot", "b.svg")):
        code, _, err = tidegauge(*words, cwd=shop)
        assert 0 == code, err


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("plan", "visits.yaml", "--for-error", "running=1"), 2),
        (("export", "public", "--view", "{difference: 1d, of: 1d}"), 78),
        (("export", "public", "--view", "running", "--top", "1"), 2),
    ],
)
def test_what_cannot_be_asked_of_a_mean(tmp_path_factory, words, code):
    shop = write(tmp_path_factory.mktemp("asked"))
    run(shop, "-q")
    ended, _, err = tidegauge(*words, cwd=shop)
    assert code == ended, err


@pytest.mark.parametrize("odd", ["2025-01-06T10:00:00Z,61370", "2025-01-06T10:00:00Z,NaN", ""])
def test_streams_with_other_values_look_the_same(tmp_path, hidden_values, odd):
    """T10: with the measurement hidden, nothing tells which values there were, or how many."""
    first = seen_of_counts(write(tmp_path / "first"))
    assert_look_the_same(first, seen_of_counts(write(tmp_path / "other", [*ROWS, odd])))
