"""Cells that are discovered: what an older store may do, and which noise a second release has."""

import shutil
from itertools import combinations

import numpy as np
import polars as pl
import pytest
import stand

from tidegauge.engine import run as running
from tidegauge.engine.found import FoundBlock
from tidegauge.engine.public import PublicFolder
from tidegauge.errors import StoreBehind
from tidegauge.mechanisms.finder import Finder


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


def late_rows(hidden):
    """Kinds that occur often from hour 10 on, some of them once before; and one row more."""
    at = [(hour, "old") for hour in range(20) for _ in range(30)]
    at += [(hour, f"once {hour}") for hour in range(5)]
    names = [*(f"once {hour}" for hour in range(5)), *(f"zebra {n}" for n in range(5))]
    at += [(hour, name) for hour in range(10, 20) for name in names for _ in range(30)]
    at += [(10, "alice")] if hidden else []
    times = pl.Series("at", [stand.START + hour * stand.HOUR for hour, _ in at])
    kinds = pl.Series("kind", [kind for _, kind in at])
    ids = pl.Series("id", [str(number) for number in range(len(at))])
    return pl.DataFrame([times.cast(pl.Datetime("us", "UTC")), kinds, ids])


def branches(root):
    """What three releases show, of one store that was restored twice at step 10."""
    plan, place = stand.found_plan_of(), stand.Place(root)
    place.run(plan, late_rows(False), until=until(10))
    shutil.copytree(root / "private", root / "backup")
    shown, releases = set(measured(place.public)), []
    for hidden in (False, True, False):
        if releases:
            shutil.rmtree(root / "private")
            shutil.copytree(root / "backup", root / "private")
        # in two openings: the second one goes on with what the first one stored
        for hour in (15, 20):
            place.run(plan, late_rows(hidden), until=until(hour), accept_second_release=True)
        releases.append(measured(place.public))
    return shown, releases


def test_no_row_of_noise_from_before_a_further_release_is_shown_twice(tmp_path):
    """Equal numbers would tell that an item had the same number: that no other one was before."""
    shown, releases = branches(tmp_path)
    assert ("old",) in shown
    for one, other in combinations(releases, 2):
        assert one["old",][:10] == other["old",][:10]  # public already
        for name in one.keys() - shown:
            for steps in (other[name] for name in other.keys() - shown):
                apart = np.array(one[name][:10]) != np.array(steps[:10])
                assert apart.mean() > 0.5


def _nothing(finder):
    """Numbers that were given to others keep their noise: the rows move to other items."""


def _new_ones_only(finder):
    """Items that were seen and not shown keep their noise: it tells that they were seen."""
    finder._again = finder.step


@pytest.mark.parametrize("broken", [_nothing, _new_ones_only])
def test_rows_that_are_shown_twice_would_be_noticed(broken, tmp_path, monkeypatch):
    monkeypatch.setattr(Finder, "begin_again", broken)
    with pytest.raises(AssertionError):
        test_no_row_of_noise_from_before_a_further_release_is_shown_twice(tmp_path)


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
