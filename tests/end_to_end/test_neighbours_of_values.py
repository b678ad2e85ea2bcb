"""T10 for values: with the measurement hidden, no reader sees which there were, or how many.

Means, and sums and means under a clip that is found, from every kind of source.
"""

import json

import numpy as np
import polars as pl
import pytest
from test_neighbours import assert_look_the_same, seen
from test_published_clips import CLIP
from test_published_means import MEANS, ROWS
from visits import write_visits

VALUES = [(row.split(",")[0], float(row.split(",")[1])) for row in ROWS]
AT = "2025-01-06T10:00:00Z"
ODD = {
    "one row less": VALUES[1:],
    "one row more": [*VALUES, (AT, 2.0)],
    "far beyond all": [*VALUES, (AT, 61370.0)],
    "below 0": [*VALUES, (AT, -3.0)],
    "NaN": [*VALUES, (AT, float("nan"))],
    "infinity": [*VALUES, (AT, float("-inf"))],
    "none": [*VALUES, (AT, None)],
    "all 0": [(time, 0.0) for time, _ in VALUES],
    "all equal": [(time, 2.0) for time, _ in VALUES],
    "no rows": [],
    "another order": VALUES[::-1],
}
TEXTS = {"ten", '"2,1"', "1e999", "0x10", "", "\x00"}
CONFIGS = {"mean": MEANS, "clipped sum": CLIP, "clipped mean": CLIP.replace("sum:", "mean:")}


def write_values(folder, kind, values, config):
    """Write values and their config into a folder."""
    if kind == "csv":
        return write_visits(folder, [f"{t},{'' if v is None else v}" for t, v in values], config)
    folder.mkdir()
    name = "visits.parquet" if kind == "parquet" else "visits.jsonl"
    (folder / "visits.yaml").write_text(config.replace("visits.csv", name))
    if kind == "parquet":
        frame = pl.DataFrame(values, schema={"time": pl.String, "shop": pl.Float64}, orient="row")
        stamp = pl.col("time").str.to_datetime("%Y-%m-%dT%H:%M:%SZ", time_zone="UTC")
        frame.with_columns(stamp).write_parquet(folder / name)
    else:
        lines = [json.dumps({"time": time, "shop": value}) for time, value in values]
        (folder / name).write_text("".join(f"{line}\n" for line in lines))
    return folder


@pytest.fixture
def hidden(hidden_values, monkeypatch):
    """Numbers that depend on nothing, and large enough for a clip to be chosen by them."""
    from tidegauge.mechanisms import meter

    measure = meter.measure

    def counted(strategy, state, law, words, exact, first, once=None):
        rows = measure(strategy, state, law, words, exact, first, once=once)
        return (rows % 97) * (np.int64(50) << strategy.lattice_bits)

    monkeypatch.setattr(meter, "measure", counted)


def under_a_clip(folder):
    """Whether the last release says that a clip is in force."""
    (file,) = [*(folder / "public" / "releases" / "visits" / "running").glob("*.parquet")][-1:]
    return pl.read_parquet(file)["clip_high"][-1] is not None


@pytest.mark.usefixtures("hidden")
@pytest.mark.parametrize("what", CONFIGS)
def test_neighbouring_values_look_the_same(what, tmp_path):
    """The sources take turns; of a clipped mean, which has all parts, all odd values are tried."""
    kinds = ("csv", "jsonl", "parquet")
    first = {
        kind: seen(write_values(tmp_path / kind, kind, VALUES, CONFIGS[what])) for kind in kinds
    }
    assert {0} == {json.loads(talk)[0] for talks, _ in first.values() for talk in talks}
    start = list(CONFIGS).index(what)
    if what != "mean":
        assert under_a_clip(tmp_path / "csv")
    for number, (name, values) in enumerate([*ODD.items()][:: 1 if "d mean" in what else 3]):
        kind = kinds[(start + number) % len(kinds)]
        other = seen(write_values(tmp_path / f"{number}", kind, values, CONFIGS[what]))
        for one, two in zip(first[kind][0], other[0], strict=True):
            assert one == two, name
        assert_look_the_same(first[kind], other)


@pytest.mark.usefixtures("hidden")
def test_texts_that_are_no_numbers_look_the_same(tmp_path):
    rows = [f"{time},{value}" for time, value in VALUES]
    one = seen(write_visits(tmp_path / "one", rows, CLIP))
    odd = [f"{AT},{text}" for text in sorted(TEXTS)]
    assert_look_the_same(one, seen(write_visits(tmp_path / "two", [*rows, *odd], CLIP)))


@pytest.mark.usefixtures("hidden")
@pytest.mark.parametrize("columns", [1, 20])
def test_a_value_that_is_not_hidden_is_seen(tmp_path, monkeypatch, columns):
    """The broken twins: the clipped values, or the counts of magnitudes, are let through."""
    from tidegauge.mechanisms import meter

    hidden = meter.measure

    def leaking(strategy, state, law, words, exact, first, once=None):
        rows = hidden(strategy, state, law, words, exact, first, once=once)
        if (exact.shape[1] > 1) == (columns > 1) and exact.any():
            rows[:] += np.abs(exact).sum()
        return rows

    monkeypatch.setattr(meter, "measure", leaking)
    one = seen(write_values(tmp_path / "one", "csv", VALUES, CLIP))
    two = seen(write_values(tmp_path / "two", "csv", ODD["far beyond all"], CLIP))
    assert list(one[1]) == list(two[1])
    assert one[1] != two[1]
