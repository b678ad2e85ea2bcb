"""The gauge as a user meets it: shapes, names, blocks, later views, and what it refuses to do."""

import copy
import os
import pickle

import numpy as np
import pytest
from dp_accounting import dp_event, pld

import tidegauge as tg
from tidegauge.testing import seeded_gauge

VIEWS = {
    "step": tg.Step(),
    "total": tg.Running(),
    "week": tg.Window(7),
    "recent": tg.Exponential(half_life=3),
    "slow": tg.Polynomial(1.0),
    "custom": tg.Custom((1.0, 0.5, 0.25)),
}
GUARANTEES = [
    {"epsilon": 1.0, "delta": 1e-9},
    {"guarantee": tg.ZCDP(0.5)},
    {"guarantee": tg.GaussianDP(1.0)},
    {"guarantee": tg.ApproxDP(2.0, 1e-6)},
    {"epsilon": 1.0},
    {"guarantee": tg.PureDP(0.5)},
]


def make(seed=1, **changes):
    options = {
        "views": VIEWS, "unit": "event", "cells": 3, "horizon": 64, "epsilon": 1.0, "delta": 1e-9,
    }  # fmt: skip
    if "guarantee" in changes:
        del options["epsilon"], options["delta"]
    return seeded_gauge(seed, **(options | changes))


def history(steps, cells=3, high=50):
    return np.random.default_rng(0).integers(0, high, (steps, cells))


@pytest.mark.parametrize("guarantee", GUARANTEES, ids=str)
def test_every_guarantee_gives_every_view_in_the_promised_shape(guarantee):
    changes = {"epsilon": None, "delta": None, "guarantee": None} | guarantee
    gauge = make(**changes)
    releases = gauge.update_many(history(20))
    assert list(VIEWS) == list(releases)
    for release in releases.values():
        assert (20, 3) == release.value.shape == release.lower.shape == release.noise_std.shape
        assert (release.lower < release.value).all()
        assert (release.value < release.upper).all()
    one = gauge.update([1, 2, 3])
    assert (3,) == one["total"].value.shape == one["total"].noise_std.shape


@pytest.mark.parametrize("cut", [1, 2, 7, 19])
@pytest.mark.parametrize("guarantee", [GUARANTEES[0], GUARANTEES[4]], ids=["gaussian", "pure"])
def test_releases_do_not_depend_on_how_the_stream_is_cut(cut, guarantee):
    changes = {"epsilon": None, "delta": None, "guarantee": None} | guarantee
    x = history(40)
    whole = make(**changes).update_many(x)
    gauge = make(**changes)
    parts = [gauge.update_many(x[i : i + cut]) for i in range(0, 40, cut)]
    for name in VIEWS:
        pieces = np.concatenate([part[name].value for part in parts])
        assert whole[name].value.tobytes() == pieces.tobytes()


def test_single_updates_equal_a_block():
    x = history(12)
    whole = make().update_many(x)
    gauge = make()
    for step, row in enumerate(x):
        for name, release in gauge.update(row).items():
            assert whole[name].value[step].tobytes() == release.value.tobytes()
            assert step + 1 == release.first_step
            assert whole[name].upper[step].tobytes() == release.upper.tobytes()


def test_large_blocks_cross_tiles_without_a_seam():
    x = history(3000, cells=12)
    whole = make(cells=12, horizon=3000).update_many(x)
    gauge = make(cells=12, horizon=3000)
    halves = [gauge.update_many(x[:1001]), gauge.update_many(x[1001:])]
    for name in VIEWS:
        both = np.concatenate([half[name].value for half in halves])
        assert whole[name].value.tobytes() == both.tobytes()


def test_scalar_gauge_takes_one_number_a_step():
    gauge = make(cells=None)
    assert () == gauge.update(5)["total"].value.shape
    assert (4,) == gauge.update_many([1, 2, 3, 4])["total"].value.shape
    assert float(gauge.update(1)["week"].lower) < float(gauge.update(1)["week"].upper) + 1000


def test_scalar_and_one_cell_are_the_same_numbers():
    x = history(30, cells=1)
    scalar = make(cells=None).update_many(x[:, 0])["week"].value
    one = make(cells=1).update_many(x)["week"].value[:, 0]
    assert scalar.tobytes() == one.tobytes()


def test_named_cells_are_found_by_name():
    gauge = make(cells=["a", "b", "c"])
    release = gauge.update_many(history(5))["total"]
    assert (release.value[:, 1] == release.cell("b").value).all()
    assert (release.upper[:, 1] == release.cell("b").upper).all()
    assert (release.value[:, 1] == release.cell(1).value).all()
    for unknown in ("z", 3, -1, True, None):
        with pytest.raises(tg.InvalidParameter, match="Known here"):
            release.cell(unknown)
    with pytest.raises(tg.InvalidParameter, match="no cells"):
        release.cell("a").cell("a")


def test_cells_may_be_named_by_any_iterable_of_text():
    for names in (("a", "b"), np.array(["a", "b"]), iter(["a", "b"])):
        assert ("a", "b") == make(cells=names).update([1, 2])["total"].names


@pytest.mark.parametrize("cells", [None, 2, ["a", "b"]])
def test_columns_are_a_frame_of_one_row_a_step_and_cell(cells):
    gauge = make(cells=cells)
    release = gauge.update_many(history(5, 2) if cells else history(5, 2)[:, 0])["week"]
    columns = release.columns()
    rows = 10 if cells else 5
    assert {rows} == {len(column) for column in columns.values()}
    assert (release.value.ravel() == columns["value"]).all()
    assert (columns["lower"] < columns["upper"]).all()
    assert ("cell" in columns) == (cells is not None)
    one = gauge.update([1, 2] if cells else 1)["week"].columns()
    assert (2 if cells else 1) == len(one["value"])


def test_a_release_is_printed_with_its_values():
    release = make(cells=None).update(5)["total"]
    assert f"{float(release.value):.1f}".removesuffix("0") in str(release)


def test_views_in_a_list_name_themselves():
    gauge = make(views=[tg.Step(), tg.Running(), tg.Window(7), tg.Exponential(half_life=24)])
    assert ["step", "running", "window_7", "half_life_24"] == list(gauge.update([1, 2, 3]))


@pytest.mark.parametrize("guarantee", [GUARANTEES[0], GUARANTEES[4]], ids=["gaussian", "pure"])
@pytest.mark.parametrize(
    "later",
    [
        tg.Window(5),
        tg.Window(1000),
        tg.Exponential(factor=0.9),
        tg.Running(),
        tg.Custom((2.0, 1.0)),
    ],
)
def test_a_view_thought_of_later_is_decoded_from_the_start(later, guarantee):
    changes = {"epsilon": None, "delta": None, "guarantee": None} | guarantee
    x = history(40)
    gauge = make(keep=True, **changes)
    gauge.update_many(x[:25])
    gauge.update_many(x[25:])
    release = gauge.view(later)
    assert (40, 3) == release.value.shape
    truth = np.array([[later.weights(t + 1) @ x[t::-1, c] for c in range(3)] for t in range(40)])
    assert (np.abs(release.value - truth) < 7 * release.noise_std).all()
    assert (release.noise_std > 0).all()
    assert float(release.noise_std[-1, 0]) == gauge.noise_std(later, 40)


def test_a_planned_view_decoded_later_is_the_same_bytes():
    x = history(40)
    gauge = make(keep=True)
    released = gauge.update_many(x)
    for name, decay in VIEWS.items():
        assert released[name].value.tobytes() == gauge.view(decay).value.tobytes()


def test_later_views_need_a_kept_measurement():
    with pytest.raises(tg.InvalidParameter, match="keep=True"):
        make().view(tg.Window(3))


def test_windows_say_when_they_are_complete():
    releases = make().update_many(history(10))
    assert [False] * 6 + [True] * 4 == releases["week"].complete.tolist()
    assert [False] * 2 + [True] * 8 == releases["custom"].complete.tolist()
    assert releases["total"].complete.all()


def test_noise_is_fresh_in_every_gauge_and_every_cell():
    def gauge():
        return tg.Gauge(views=[tg.Running()], unit="event", cells=50, epsilon=1, delta=1e-6)

    zeros = np.zeros((4, 50), np.int64)
    first, second = (g.update_many(zeros)["running"].value for g in (gauge(), gauge()))
    assert 400 == len(np.unique(np.concatenate([first, second])))


def test_a_live_gauge_cannot_be_copied_or_pickled():
    gauge = make()
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(tg.LiveState, match="copy or pickle"):
            attempt(gauge)


def test_a_forked_gauge_refuses_to_measure():
    gauge = make()
    gauge.update([1, 2, 3])
    child = os.fork()
    if child == 0:
        try:
            gauge.update([1, 2, 3])
        except tg.LiveState:
            os._exit(17)
        os._exit(0)
    assert 17 == os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_an_interrupted_gauge_refuses_to_go_on(monkeypatch):
    gauge = make()
    before = gauge.update([1, 2, 3])["total"].value

    def interrupt(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(type(gauge.plan.strategy), "decode", interrupt)
        with pytest.raises(KeyboardInterrupt):
            gauge.update([4, 5, 6])
    assert 1 == gauge.step
    assert before is not None
    with pytest.raises(tg.LiveState, match="interrupted"):
        gauge.update([4, 5, 6])


def test_repr_shows_plan_and_progress_but_no_data():
    gauge = make()
    gauge.update([987654, 987655, 987656])
    text = repr(gauge)
    assert "9876" not in text
    assert "step=1" in text
    assert "INSECURE" in text


def test_releases_show_no_value_in_their_repr():
    release = make().update([987654, 987654, 987654])["total"]
    assert "9876" not in repr(release)
    assert "total" in repr(release)


def test_a_release_is_public_and_can_be_pickled():
    release = make().update_many(history(8))["week"]
    again = pickle.loads(pickle.dumps(release))
    assert release.value.tobytes() == again.value.tobytes()
    assert release.upper.tobytes() == again.upper.tobytes()


def test_the_ledger_is_spent_once_and_recomputed_by_a_stranger():
    gauge = make(epsilon=1.0, delta=1e-6, horizon=5000)
    gauge.update_many(history(5))
    assert 0 == gauge.ledger.left
    accountant = pld.PLDAccountant()
    event = gauge.ledger.events()["events"][0]
    assert "GaussianDpEvent" == event["class_name"]
    accountant.compose(dp_event.GaussianDpEvent(event["noise_multiplier"]))
    assert 0.99 < accountant.get_epsilon(1e-6) < 1.001


@pytest.mark.parametrize("wrong", ["nothing", 3, None, tg.Running])
def test_what_is_neither_a_view_nor_a_decay_is_refused(wrong):
    gauge = make(keep=True)
    for ask in (lambda: gauge.view(wrong), lambda: gauge.noise_std(wrong, 1)):
        with pytest.raises(tg.InvalidParameter, match="name of a view or a decay"):
            ask()


def test_a_planned_view_is_found_by_name_afterwards():
    gauge = make(keep=True)
    released = gauge.update_many(history(9))
    assert released["week"].value.tobytes() == gauge.view("week").value.tobytes()


def test_the_end_is_kept():
    gauge = make(end=10, horizon=None)
    gauge.update_many(history(9))
    with pytest.raises(tg.StreamEnded, match="up to 10"):
        gauge.update_many(history(2))
    gauge.update([1, 2, 3])
    with pytest.raises(tg.StreamEnded):
        gauge.update([1, 2, 3])


def test_the_statement_says_what_is_promised_and_what_is_not():
    text = make(cells=["a", "b", "c"]).statement()
    for words in (
        "whether one event was in the data makes no result more than 2.72 times as likely, plus",
        "add_or_remove_one",
        "| 20 |",
        "Declared, not protected",
        "max_per_step: 1048576",
        "Not covered",
    ):
        assert words in text, words


def test_fingerprint_covers_the_noise_but_not_the_published_views():
    assert make().plan.fingerprint == make(seed=2).plan.fingerprint
    assert make().plan.fingerprint != make(epsilon=1.1).plan.fingerprint
    assert make().plan.fingerprint != make(max_change=2).plan.fingerprint
