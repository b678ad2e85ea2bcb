"""A reader takes a measurement as it was published, and nothing else; nothing crashes it."""

import hashlib

import numpy as np
import polars as pl
import pytest
from recovery import stand

from tidegauge.engine.public import PublicFolder
from tidegauge.errors import InvalidInput
from tidegauge.strategies.blocks import Blocks, OpenBlocks
from tidegauge.strategies.decay import Custom

NAME = "measurements/flights/000000000001.parquet"


@pytest.fixture(scope="module", params=[False, True], ids=["gaussian", "pure"])
def place(request, tmp_path_factory):
    place = stand.Place(tmp_path_factory.mktemp("published"))
    place.run(stand.plan_of(pure=request.param), stand.rows())
    return place


def sum_of(table):
    return hashlib.sha256(np.ascontiguousarray(table["measured"].to_numpy(), "<i8")).hexdigest()


def nulled(table):
    first = pl.Series([[None, *table["measured"][0][1:]]], dtype=table["measured"].dtype)
    return table.with_columns(measured=first.append(table["measured"][1:]))


def measured_as(kind):
    return lambda table: table.with_columns(pl.col("measured").cast(kind))


def same(table):
    return table


CHANGES = {
    "steps fewer": (same, {"steps": "24"}),
    "steps more": (same, {"steps": "96"}),
    "steps no number": (same, {"steps": "x"}),
    "steps left out": (same, {"steps": None}),
    "steps beyond memory": (same, {"steps": "1000000000000"}),
    "steps negative": (same, {"steps": "-1"}),
    "no steps": (lambda table: table.head(0), {"steps": "0"}),
    "another lattice": (same, {"lattice_bits": "99"}),
    "another gauge": (same, {"gauge": "other"}),
    "another plan": (same, {"fingerprint": "sha256:0"}),
    "no metadata": (same, dict.fromkeys(["steps", "sha256", "gauge", "lattice_bits"])),
    "no rows of noise": (lambda table: table.drop("measured"), {}),
    "no steps column": (lambda table: table.drop("step"), {}),
    "floats": (measured_as(pl.Array(pl.Float64, 4)), {}),
    "lists": (measured_as(pl.List(pl.Int64)), {}),
    "text": (lambda table: table.with_columns(measured=pl.lit("x")), {}),
    "nulls": (nulled, {}),
    "fewer cells": (
        lambda table: table.with_columns(
            pl.Series("measured", table["measured"].to_numpy()[:, 1:], dtype=pl.Array(pl.Int64, 3))
        ), {},
    ),
    "steps reversed": (lambda table: table.with_columns(pl.col("step").reverse()), {}),
    "a step beyond time": (lambda table: table.with_columns(pl.col("step") + (1 << 62)), {}),
    "steps of floats": (lambda table: table.with_columns(pl.col("step").cast(pl.Float64)), {}),
    "rows of one step as another's": (
        lambda table: table.with_columns(step=pl.col("step") - 1, row=pl.col("row") + 64), {},
    ),
    "fewer rows": (lambda table: table.head(10), {}),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_measurement_is_refused(place, change):
    path = place.public / NAME
    before = path.read_bytes()
    table, about = pl.read_parquet(path), pl.read_parquet_metadata(path)
    make, changes = CHANGES[change]
    table = make(table)
    if table.schema.get("measured") == pl.Array(pl.Int64, 4) and change != "nulls":
        about["sha256"] = sum_of(table)  # whoever changes a file can add it up
    about = {k: v for k, v in (about | changes).items() if v is not None and k != "ARROW:schema"}
    try:
        table.write_parquet(path, metadata=about)
        with pytest.raises(InvalidInput, match="Fetch the folder again"):
            PublicFolder(place.public).view("flights", "running")
    finally:
        path.write_bytes(before)


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1" + bytes(100) + b"PAR1"])
def test_what_is_no_measurement_is_refused(place, data):
    path = place.public / NAME
    before = path.read_bytes()
    path.write_bytes(data)
    try:
        with pytest.raises(InvalidInput, match="Fetch the folder again"):
            PublicFolder(place.public).view("flights", "running")
    finally:
        path.write_bytes(before)


def test_what_is_as_it_was_published_is_read(place):
    assert 48 == len(PublicFolder(place.public).view("flights", "running").grains)


def test_a_view_of_own_weights_is_full_once_it_has_seen_all_of_them(place):
    folder = PublicFolder(place.public)
    if isinstance(folder.plan.gauges[0].mechanism.strategy, Blocks | OpenBlocks):
        pytest.skip("blocks decode no weights of one's own")
    view = folder.view("flights", Custom((1.0, 0.5, 0.25)))
    assert [False, False, True, True] == view.complete[:4].tolist()


def test_a_view_is_shown_in_one_line_without_its_numbers(place):
    shown = repr(PublicFolder(place.public).view("flights", "running"))
    assert "PublishedView('running' of 'flights', 48 steps, 4 cells)" == shown
