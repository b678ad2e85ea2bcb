"""Ranked cells: their order, their marks, and intervals that hold for all cells at once."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recovery import stand

from tidegauge.engine.found import Shown
from tidegauge.engine.ranked import ranked
from tidegauge.engine.releases import Published
from tidegauge.planning.config import config_of
from tidegauge.planning.parts import for_all
from tidegauge.planning.planner import plan_of
from tidegauge.strategies.decay import Step

NAMES = ("b", "a", "\u00e9", "Z", "zz", "")


def table_of(values, half):
    """Releases of steps and cells that are named by two columns."""
    steps, cells = values.shape
    return pl.DataFrame(
        {
            "x": pl.Series([NAMES[i % 6] for i in range(cells)] * steps, dtype=pl.Enum(NAMES)),
            "y": pl.Series([str(i // 6) for i in range(cells)] * steps),
            "step": np.repeat(np.arange(1, steps + 1), cells),
            "value": values.ravel(),
            "noise_std": np.ones(values.size),
            "lower": values.ravel() - half,
            "upper": values.ravel() + half,
            "level": np.full(values.size, 0.95),
        }
    )


@settings(max_examples=50)
@given(st.data(), st.integers(1, 9), st.integers(1, 4), st.integers(1, 12))
def test_rows_are_the_largest_in_order_with_their_marks(data, cells, steps, top):
    few = st.sampled_from([-1.5, -0.0, 0.0, 1.0, 2.5, 7.0])
    values = np.array([[data.draw(few) for _ in range(cells)] for _ in range(steps)])
    got = ranked(table_of(values, 1.0), ["x", "y"], top)
    assert ["x", "y", "step", "rank", "value", "noise_std", "lower", "upper", "close", "level"] == (
        got.columns
    )
    expected = []
    for step, row in enumerate(values, 1):
        named = [(-v, NAMES[i % 6].encode(), str(i // 6).encode()) for i, v in enumerate(row)]
        named.sort()
        for rank, (minus, x, y) in enumerate(named[:top], 1):
            close = rank < cells and -minus - 1.0 <= -named[rank][0] + 1.0
            expected.append((x.decode(), y.decode(), step, rank, -minus, close))
    assert expected == list(got.select("x", "y", "step", "rank", "value", "close").iter_rows())


# --- what the marks and intervals promise

CELLS, STEPS, TOP = 60, 400, 8


def shown(top=TOP, share=None):
    """A view of ranked cells, whose noise is that of its plan; its truth and its releases."""
    names = tuple(f"{i:02}" for i in range(CELLS))
    planned = stand.plan_of(views=(("step", Step()),), cells=names, end=STEPS)
    gauge = replace(planned.gauges[0], every=(), top=top)
    view = Published(planned.clock, gauge, "step", Step(), top=top)
    if share is not None:
        view.__dict__["_intervals"] = share(gauge)
    return view


def misses(view, apart=5.5):
    """The share of steps with a wrong cut, and of those with a shown interval beside the truth."""
    rng = np.random.default_rng(7)
    std = float(view.noise_std(np.array([1]))[0])
    truth = np.zeros(CELLS + 1)  # the last is the rest, which stays far behind
    truth[:TOP] = std * apart * np.arange(TOP, 0, -1)
    truth[-1] = -1e9
    table = view.table(0, truth + rng.normal(0, std, (STEPS, CELLS + 1)))
    of = (
        table["kind"]
        .cast(pl.String)
        .replace_strict({**{f"{i:02}": truth[i] for i in range(CELLS)}, "other": truth[-1]})
    )
    table = table.with_columns(truth=of)
    outside = (pl.col("truth") < pl.col("lower")) | (pl.col("truth") > pl.col("upper"))
    uncovered = table.group_by("step").agg(outside.any())["truth"].mean()
    wrong = 0
    for _, step in table.group_by("step"):
        for rank in step.filter(~pl.col("close"))["rank"]:
            first = set(step.filter(pl.col("rank") <= rank)["kind"])
            rest = [t for i, t in enumerate(truth[:-1]) if f"{i:02}" not in first]
            if step.filter(pl.col("rank") <= rank)["truth"].min() <= max(rest):
                wrong += 1
                break
    return wrong / STEPS, uncovered


@pytest.mark.parametrize("apart", [0.5, 5.5])
def test_cuts_and_intervals_hold_for_all_cells_at_once(apart):
    wrong, uncovered = misses(shown(), apart)
    assert wrong <= 0.05 + 3 * np.sqrt(0.05 / STEPS)
    assert uncovered <= 0.05 + 3 * np.sqrt(0.05 / STEPS)


def test_intervals_of_one_cell_beside_the_largest_are_caught():
    """Of sixty values the largest have large noise, too."""
    _, uncovered = misses(shown(share=lambda gauge: gauge.mechanism))
    assert uncovered > 0.05 + 3 * np.sqrt(0.05 / STEPS)


def test_marks_by_the_std_alone_are_caught():
    """Values half a std apart are not told apart: marks from narrow intervals cut wrongly."""
    narrow = shown(share=lambda gauge: gauge.mechanism.with_intervals(0.1))
    wrong, _ = misses(narrow, 0.5)
    assert wrong > 0.05 + 3 * np.sqrt(0.05 / STEPS)


def test_intervals_of_ranked_cells_share_the_miss_over_cells():
    view = shown()
    steps = np.array([1, STEPS])
    miss = 0.05 / (CELLS + 1)
    alone = view.gauge.mechanism.with_intervals(1 - miss)
    expected = alone.half_width(Step(), steps)
    assert view.half_width(steps) == pytest.approx(expected, rel=1e-9)
    assert (view.gauge.shown.half_width(Step(), steps) == view.half_width(steps)).all()


def test_a_definition_tells_how_many_are_shown():
    assert shown().definition != shown(top=3).definition
    assert "top" not in replace(shown(), top=None).definition


# --- cells that are discovered: those are named whose noise is large

FOUND = """\
sources: [v.csv]
event_time: time
step: 1h
start: 2025-01-06T00:00:00Z
end: 2025-01-13T00:00:00Z
privacy: {unit: event, epsilon: 1, delta: 1e-6}
gauges:
  g: {top_k: {k: 3}, by: {kind: discover}, views: [step], discover: {expected_items: 60}}
"""


@pytest.fixture
def discovered(tmp_path):
    """The planned gauge, and its view of given cells."""
    (tmp_path / "c.yaml").write_text(FOUND)
    plan = plan_of(config_of(tmp_path / "c.yaml"))
    return plan.gauges[0], Published(plan.clock, plan.gauges[0], "step", Step(), top=3)


def misses_of_named(view, items, steps=300):
    """The share of steps at which a shown interval leaves out the truth, 0, of ``items`` items."""
    rng = np.random.default_rng(11)
    std = float(view.noise_std(np.array([1]))[0])
    names = pl.DataFrame({"0": [f"{i:03}" for i in range(items)]})
    wrong = 0
    for noise in rng.normal(0, std, (steps, items)):
        named = noise > 1.5 * std  # a name is shown because its noise is large
        shown = Shown(names.filter(named), np.zeros(named.sum(), np.int64))
        table = replace(view, shown=shown).table(0, noise[np.newaxis, named])
        assert min(3, named.sum()) == len(table)
        wrong += table.select((pl.col("lower") > 0).any()).item()
    return wrong / steps


def test_intervals_of_named_cells_hold_for_as_many_items_as_are_expected(discovered):
    gauge, view = discovered
    assert misses_of_named(view, 60) <= 0.025 + 3 * np.sqrt(0.025 / 300)  # above: half of 0.05
    assert (gauge.shown.half_width(Step(), [1]) == view.half_width(np.array([1]))).all()


def test_with_more_items_they_are_weaker_as_is_said(discovered):
    _, view = discovered
    assert misses_of_named(view, 600) > 0.1


def test_intervals_for_as_many_cells_as_are_named_are_caught(discovered):
    gauge, view = discovered

    class Narrow(Published):
        """Intervals that cover four cells at once: of sixty items about four are named."""

        _intervals = for_all(gauge.mechanism, 4)

    twin = Narrow(view.clock, gauge, "step", Step(), top=3)
    assert misses_of_named(twin, 60) > 0.025 + 3 * np.sqrt(0.025 / 300)
