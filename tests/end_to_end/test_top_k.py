"""A top_k from file to release: ranks at each step, other lengths later, and what is refused."""

import json

import numpy as np
import polars as pl
import pytest
from terminals import in_process as tidegauge
from visits import CONFIG, rows_of_visits, write_visits

COUNT = "count: {}, by: {shop: [north, south]}"
RANKED = CONFIG.replace(COUNT, "top_k: {k: 2}, by: {shop: [north, south, east]}")
assert RANKED != CONFIG


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    shop = write_visits(tmp_path_factory.mktemp("ranked"), rows_of_visits(), RANKED)
    code, out, err = tidegauge("run", "visits.yaml", cwd=shop)
    assert 0 == code, err
    assert "intervals of all cells at once" in out
    return shop


def releases(folder, view="running"):
    files = (folder / "public" / "releases" / "visits" / view).glob("*.parquet")
    return pl.concat([pl.read_parquet(file) for file in sorted(files)])


def export(folder, *words):
    code, out, err = tidegauge("export", "public", "--format", "jsonl", *words, cwd=folder)
    assert 0 == code, err
    return pl.read_ndjson(out.encode())


def test_each_view_and_step_has_its_largest_cells(published):
    for view in ("step", "running", "window_1d"):
        table = releases(published, view)
        assert [1, 2] * 7 * 24 == table["rank"].to_list()
        every = export(published, "--view", view, "--top", "3")
        largest = every.sort("step", "value", descending=[False, True]).group_by(
            "step", maintain_order=True
        )
        assert largest.head(2)["value"].to_list() == table["value"].to_list()
        third = every.filter(pl.col("rank") == 3)["upper"]
        assert (table.filter(pl.col("rank") == 2)["lower"] <= third).to_list() == (
            table.filter(pl.col("rank") == 2)["close"].to_list()
        )


def test_other_lengths_and_views_come_later_and_cost_nothing(published):
    one = export(published, "--view", "2d", "--top", "1")
    assert [1] * 7 * 24 == one["rank"].to_list()
    more = export(published, "--view", "running", "--top", "50")  # there are three
    assert 3 * 7 * 24 == len(more)
    assert not more.filter(pl.col("rank") == 3)["close"].any()


def test_a_published_view_keeps_its_length(published):
    config = published / "visits.yaml"
    try:
        config.write_text(RANKED.replace("k: 2", "k: 1"))
        code, _, err = tidegauge("run", "visits.yaml", cwd=published)
        assert 78 == code
        assert "a name of its own" in err
        other = RANKED.replace("k: 2", "k: 1").replace("[step, running, 1d]", "{first: running}")
        config.write_text(other)
        code, _, err = tidegauge("run", "visits.yaml", cwd=published)
        assert 0 == code, err
        assert [1] * 7 * 24 == releases(published, "first")["rank"].to_list()
    finally:
        config.write_text(RANKED)
    assert 0 == tidegauge("run", "visits.yaml", cwd=published)[0]


def test_a_program_reads_ranks_and_a_picture_shows_the_largest(published):
    code, out, err = tidegauge("run", "visits.yaml", "--json", cwd=published)
    assert 0 == code, err
    latest = json.loads(out)["latest"]
    assert [1, 2] * 3 == [row["rank"] for row in latest]
    assert {"close", "half_width", "cell"} <= set(latest[0])
    code, _, err = tidegauge("plot", "public", "--view", "running", "-o", "a.svg", cwd=published)
    assert 0 == code, err


def test_the_rest_is_ranked_nowhere_and_sums_have_no_rank(published):
    code, _, err = tidegauge(
        "export", "public", "--view", "step", "--top", "2", "--totals", cwd=published
    )
    assert 2 == code
    assert "no rank" in err
    assert {"north", "south", "east"} == set(
        export(published, "--view", "step", "--top", "9")["shop"].to_list()
    )
    said = (published / "public" / "PRIVACY.md").read_text()
    assert "of each the 2 largest cells, ranked by noisy values" in " ".join(said.split())


def test_an_empty_stream_has_ranks_of_noise_and_all_is_close(tmp_path):
    shop = write_visits(tmp_path, [], RANKED)
    assert 0 == tidegauge("run", "visits.yaml", cwd=shop)[0]
    table = releases(shop)
    assert [1, 2] * 7 * 24 == table["rank"].to_list()
    assert table.filter(pl.col("step") == 1)["close"].all()


# --- cells that are discovered

FOUND = RANKED.replace(
    "[north, south, east]}", "discover}, discover: {view: running, expected_items: 500}"
)
FOUND = FOUND.replace("1.0e-9", "1.0e-6")


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Three shops that pass the threshold one after the other, and many that never do."""
    rare = [f"2025-01-07T0{i % 9}:00:00Z,rare {i}" for i in range(50)]
    rows = [row for row in rows_of_visits(each_hour=30) if hash_of(row) or "north" in row]
    shop = write_visits(tmp_path_factory.mktemp("found"), [*rows, *rare], FOUND)
    code, out, err = tidegauge("run", "visits.yaml", cwd=shop)
    assert 0 == code, err
    assert "up to 500 items at once" in out
    return shop


def hash_of(row):
    """Half of the rows, whichever."""
    return sum(row.encode()) % 2


def test_of_discovered_cells_the_named_ones_are_ranked_from_the_first_name_on(found):
    named = pl.read_parquet(found / "public/measurements/visits/*.parquet")
    begin = dict(named.group_by("shop").agg(pl.col("visible_from").min()).iter_rows())
    assert {"north", "south", "east"} == set(begin)
    for view in ("step", "running"):
        table = releases(found, view)
        counts = dict(table.group_by("step").len().iter_rows())
        expected = {s: min(2, sum(b <= s for b in begin.values())) for s in range(1, 169)}
        assert {s: n for s, n in expected.items() if n} == counts
        assert 0 == expected[1] < expected[min(begin.values())]
        assert all(begin[shop] <= step for shop, step in table.select("shop", "step").iter_rows())
        assert table.equals(opened(found, view).table())


def opened(folder, view):
    import tidegauge as tg

    return tg.open(folder / "public").view("visits", view)


def test_intervals_of_discovered_cells_hold_for_as_many_as_are_expected(found):
    view = opened(found, "running")
    steps = np.array([1, 168])
    alone = view.view.gauge.mechanism.with_intervals(1 - 0.05 / 500)
    decay = view.view.decay
    assert view.view.half_width(steps) == pytest.approx(alone.half_width(decay, steps), rel=1e-9)


def test_a_count_of_discovered_cells_can_be_ranked_later(found):
    one = export(found, "--view", "running", "--top", "1")
    assert ["north"] == one.filter(pl.col("step") == 168)["shop"].to_list()
    assert one.equals(export(found, "--view", "running", "--top", "2").filter(pl.col("rank") == 1))
    every = opened(found, "running").largest(None).table()
    assert 3 * 168 == len(every)  # not ranked, their past is there


def test_what_is_ranked_among_what_is_said(found):
    said = " ".join((found / "public" / "PRIVACY.md").read_text().split())
    told = tidegauge("plan", "visits.yaml", cwd=found)[1]
    for text in (said, " ".join(told.split())):
        assert "the 2 largest named cells" in text
        assert "up to 500 items, named or not (of more items, less surely)" in text
    pytest.importorskip("matplotlib")
    code, _, err = tidegauge("plot", "public", "--view", "running", "-o", "a.svg", cwd=found)
    assert 0 == code, err


def test_before_the_first_name_nothing_is_ranked(tmp_path):
    shop = write_visits(tmp_path, [], FOUND)
    code, out, err = tidegauge("run", "visits.yaml", cwd=shop)
    assert 0 == code, err
    assert "nothing is named yet" in out
    assert 0 == len(releases(shop))
    code, out, _ = tidegauge("export", "public", "--view", "running", "--top", "3", cwd=shop)
    assert (0, 1) == (code, len(out.splitlines()))  # the names of the columns
    assert 0 == tidegauge("run", "visits.yaml", "--json", cwd=shop)[0]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("expected_items: 500}", "expected_items: 100000000}", "expected_items than there"),
        ("k: 2", "k: 0", "Expected a whole number from 1"),
        (", delta: 1.0e-6", "", "that chance is a delta"),
    ],
)
def test_mistakes_beside_discovered_cells_are_told(tmp_path, old, new, message):
    assert old in FOUND
    shop = write_visits(tmp_path, [], FOUND.replace(old, new))
    code, _, err = tidegauge("validate", "visits.yaml", cwd=shop)
    assert 78 == code
    assert message in " ".join(err.split()), err


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("k: 2", "k: 0", "Expected a whole number from 1"),
        ("{k: 2}", "{}", "Expected k"),
        ("{k: 2}", "{k: 2, column: shop}", "Expected a known field, got 'column'"),
        (", by: {shop: [north, south, east]}", "", "Expected by beside top_k"),
        ("east]}", "east]}, other: rest", "Expected no other beside top_k"),
        ("east]}", "east]}, totals: true", "Expected no totals beside top_k"),
        ("by: {shop", "by: {rank", "no ranked release has"),
        ("east]}", "east]}, level: 0.999999998", "so many cells"),
        ("top_k: {k: 2}", "top_k: {k: 2}, count: {}", "count_distinct or top_k, got both"),
        ("top_k", "topk", "Did you mean 'top_k'?"),
    ],
)
def test_mistakes_are_told(tmp_path, old, new, message):
    assert old in RANKED
    shop = write_visits(tmp_path, [], RANKED.replace(old, new))
    code, _, err = tidegauge("validate", "visits.yaml", cwd=shop)
    assert 78 == code
    assert message in err, err
