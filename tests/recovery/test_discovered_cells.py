"""Cells that are discovered: what an older store may do, and which noise a second release has."""

import shutil

import numpy as np
import polars as pl
import pytest
import stand

from tidegauge.engine import run as running
from tidegauge.engine.found import FoundBlock
from tidegauge.engine.public import PublicFolder
from tidegauge.errors import StoreBehind


@pytest.fixture(autouse=True)
def short_blocks(monkeypatch):
    monkeypatch.setattr(running, "_FOUND_LANES", 10 * 8)


def until(hour):
    return stand.datetime(2013, 1, 1 + hour // 24, hour % 24)


def measured(public, gauge="flights"):
    """Every measured number: of each cell a list of steps, from the files alone."""
    found = {}
    for block in PublicFolder(public).blocks(gauge):
        assert isinstance(block, FoundBlock)
        past = iter(block.past.T)
        for cell, name in enumerate(block.shown.cells):
            if block.new[cell]:
                found[name] = next(past).tolist()
            found[name] += block.measured[:, cell].tolist()
    return found


def test_a_second_release_has_other_noise_from_the_step_on_from_which_it_measures(tmp_path):
    plan, place = stand.found_plan_of(), stand.Place(tmp_path)
    place.run(plan, stand.rows(), until=until(20))
    shutil.copytree(tmp_path / "private", tmp_path / "backup")
    place.run(plan, stand.rows(), until=until(40))
    first, files = measured(place.public), place.numbers()
    shutil.rmtree(tmp_path / "private")
    shutil.copytree(tmp_path / "backup", tmp_path / "private")
    with pytest.raises(StoreBehind):
        place.run(plan, stand.rows(), until=until(40))
    assert files == place.numbers()
    place.run(plan, stand.rows(), until=until(40), accept_second_release=True)
    second = measured(place.public)
    for name in set(first) & set(second):
        assert first[name][:20] == second[name][:20]  # of the openings that committed them
        apart = np.array(first[name][20:]) != np.array(second[name][20:])
        assert apart.mean() > 0.8
    kept = {name.removeprefix("superseded/1/"): data for name, data in place.files().items()
            if name.startswith("superseded/1/")}  # fmt: skip
    assert all(kept[name] == data for name, data in files.items())


def test_a_run_in_pieces_shows_what_its_keys_say_and_every_cell_has_all_steps(tmp_path):
    plan, place = stand.found_plan_of(), stand.Place(tmp_path)
    for hour in (1, 7, 8, 19, 20, 33, 48):
        place.run(plan, stand.rows(), until=until(hour))
    found = measured(place.public)
    assert found
    assert {48} == {len(steps) for steps in found.values()}
    released = pl.read_parquet(place.public / "releases/flights/running/*")
    whole = PublicFolder(place.public).view("flights", "running").table()
    shown = whole.join(released, on=["step", "kind"], how="semi", maintain_order="left")
    assert released.equals(shown)


def test_a_window_discovers_as_well(tmp_path):
    from tidegauge.strategies.decay import Window

    plan, place = stand.found_plan_of(view=Window(24)), stand.Place(tmp_path)
    place.run(plan, stand.rows(), until=until(30))
    place.run(plan, stand.rows())
    assert set(measured(place.public)) <= {(kind,) for kind in (*stand.KINDS, "XX")}
    assert measured(place.public)
