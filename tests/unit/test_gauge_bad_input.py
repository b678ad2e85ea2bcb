"""Whatever is wrong is refused with a message that helps, and leaves the gauge as it was."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import tidegauge as tg
from tidegauge.testing import seeded_gauge

BIG = 1 << 62


def make(**changes):
    options = {
        "views": [tg.Running(), tg.Window(3)], "unit": "event", "cells": 2, "horizon": 50,
        "epsilon": 1.0, "delta": 1e-9,
    }  # fmt: skip
    return seeded_gauge(5, **(options | changes))


BAD_TOTALS = {
    "not a number": ([1.0, np.nan], "finite"),
    "infinite": ([1.0, np.inf], "finite"),
    "fraction": ([1.0, 1.5], "whole numbers"),
    "halves of floats": (np.array([1, 2], np.float16), "counts by ones"),
    "masked": (np.ma.array([1, 2], mask=[0, 1]), "mask"),
    "negative": ([3, -1], ">= 0"),
    "negative float": ([3.0, -1.0], ">= 0"),
    "too few cells": ([1], "shape"),
    "too many cells": ([1, 2, 3], "shape"),
    "a block": ([[1, 2]], "shape"),
    "a number": (4, "shape"),
    "objects": ([object(), 1], "dtype"),
    "too large for int64": ([2**80, 1], "dtype"),
    "text": (["1", "2"], "dtype"),
    "bytes": (b"12", "bytes"),
    "booleans": ([True, False], "dtype"),
    "complex": ([1j, 2], "dtype"),
    "dates": (np.array(["2013-01-01", "2013-01-02"], "datetime64[D]"), "dtype"),
    "a bytearray": (bytearray(b"12"), "bytes"),
    "a broken array": (type("Broken", (), {"__array__": lambda *a, **k: 1 / 0})(), "array"),
    "nothing": (None, "shape|dtype"),
    "ragged": ([[1, 2], [3]], "rectangular|shape"),
    "empty": ([], "shape"),
}


@pytest.mark.parametrize(("bad", "says"), BAD_TOTALS.values(), ids=BAD_TOTALS)
def test_bad_totals_are_refused_and_change_nothing(bad, says):
    good = np.arange(12).reshape(6, 2)
    clean = make().update_many(good)["running"].value
    gauge = make()
    for row in good:
        with pytest.raises(tg.InvalidInput, match=says) as error:
            gauge.update(bad)
        assert "Expected" in str(error.value)
        released = gauge.update(row)
    assert clean[-1].tobytes() == released["running"].value.tobytes()


@pytest.mark.parametrize("place", [(0, 0), (5, 1)])
def test_one_bad_total_refuses_the_whole_block(place):
    good = np.arange(12, dtype=float).reshape(6, 2)
    bad = good.copy()
    bad[place] = np.nan
    gauge = make()
    with pytest.raises(tg.InvalidInput):
        gauge.update_many(bad)
    assert 0 == gauge.step
    assert make().update_many(good)["running"].value.tobytes() == (
        gauge.update_many(good)["running"].value.tobytes()
    )


def test_messages_never_show_a_total():
    for bad in ([-987654321, 0], [987654321.5, 0.0], [98765432123456789012345, 0]):
        with pytest.raises(tg.InvalidInput) as error:
            make().update(bad)
        assert "98765" not in str(error.value)


@pytest.mark.parametrize(
    "dtype", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint64, np.float32, np.float64]
)
def test_every_whole_number_dtype_gives_the_same_bytes(dtype):
    x = np.arange(20).reshape(10, 2)
    expected = make().update_many(x)["window_3"].value
    assert expected.tobytes() == make().update_many(x.astype(dtype))["window_3"].value.tobytes()


def test_fortran_order_and_strides_do_not_matter():
    x = np.arange(40).reshape(20, 2)
    expected = make().update_many(x[::2])["window_3"].value
    assert (
        expected.tobytes()
        == make().update_many(np.asfortranarray(x[::2]))["window_3"].value.tobytes()
    )


@pytest.mark.parametrize(
    "value", [2**31, 2**62, 2**63 - 1, np.uint64(2**63), np.uint64(2**64 - 1), 1e300]
)
def test_totals_over_the_cap_are_clamped_and_counted(value):
    gauge = make(max_per_step=1000)
    clean = make(max_per_step=1000)
    clamped = gauge.update(np.array([value, value]))["running"].value
    assert clean.update([1000, 1000])["running"].value.tobytes() == clamped.tobytes()
    assert (2, 0) == (gauge.clamped, clean.clamped)


@pytest.mark.parametrize("value", [-(2**31), -(2**63), -(2**62), -1e300])
def test_signed_sums_are_clamped_on_both_sides(value):
    gauge = make(max_change=(-5, 10), max_per_step=1000)
    clean = make(max_change=(-5, 10), max_per_step=1000)
    clamped = gauge.update(np.array([value, 7]))["running"].value
    assert clean.update([-1000, 7])["running"].value.tobytes() == clamped.tobytes()
    assert 1 == gauge.clamped


def test_an_empty_block_is_measured_as_nothing():
    gauge = make()
    release = gauge.update_many(np.zeros((0, 2), np.int64))["running"]
    assert (0, 2) == release.value.shape == release.upper.shape
    assert 0 == gauge.step


def test_the_input_is_never_changed():
    x = np.arange(20).reshape(10, 2)
    before = x.copy()
    make().update_many(x)
    assert (before == x).all()


BAD_PARAMETERS = {
    "zero cells": ({"cells": 0}, "cells"),
    "negative cells": ({"cells": -1}, "cells"),
    "fractional cells": ({"cells": 2.5}, "cells"),
    "no names": ({"cells": []}, "cells"),
    "repeated names": ({"cells": ["a", "a"]}, "twice"),
    "names that are no text": ({"cells": ["a", 1]}, "cells"),
    "one text": ({"cells": "abc"}, "cells"),
    "no views": ({"views": []}, "view"),
    "no views by name": ({"views": {}}, "view"),
    "a view that is none": ({"views": [7]}, "view"),
    "a view asked twice": ({"views": [tg.Window(3), tg.Window(3)]}, "twice"),
    "a class for a view": ({"views": [tg.Running]}, "view"),
    "a view name that is no text": ({"views": {1: tg.Running()}}, "view"),
    "an empty view name": ({"views": {"": tg.Running()}}, "view"),
    "a single decay": ({"views": tg.Running()}, "views"),
    "unknown unit": ({"unit": "user"}, "unit"),
    "no unit": ({"unit": None}, "unit"),
    "unknown relation": ({"neighboring_relation": "swap"}, "neighboring_relation"),
    "horizon 0": ({"horizon": 0}, "horizon"),
    "horizon 1.5": ({"horizon": 1.5}, "horizon"),
    "end 0": ({"end": 0}, "end"),
    "change 0": ({"max_change": 0}, "contribution"),
    "change upside down": ({"max_change": (5, -5)}, "max_change"),
    "change 2**63": ({"max_change": 2**63}, "max_change|high"),
    "more cells an event than there are": ({"max_cells": 3}, "max_cells"),
    "cap 0": ({"max_per_step": 0}, "max_per_step"),
    "cap 2**63": ({"max_per_step": 2**63}, "max_per_step"),
    "epsilon -1": ({"epsilon": -1}, "epsilon"),
    "epsilon 0": ({"epsilon": 0}, "epsilon"),
    "epsilon nan": ({"epsilon": float("nan")}, "epsilon"),
    "epsilon inf": ({"epsilon": float("inf")}, "epsilon"),
    "epsilon text": ({"epsilon": "1"}, "epsilon"),
    "delta 0": ({"delta": 0}, "delta"),
    "delta 1": ({"delta": 1}, "delta"),
    "delta 2": ({"delta": 2}, "delta"),
    "delta alone": ({"epsilon": None}, "epsilon"),
    "two guarantees": ({"guarantee": tg.ZCDP(1)}, "guarantee"),
    "a number for a guarantee": ({"epsilon": None, "delta": None, "guarantee": 1.0}, "guarantee"),
    "level 0": ({"level": 0}, "level"),
    "level 1": ({"level": 1}, "level"),
    "level too near 1": ({"level": 1 - 1e-12}, "level"),
    "level too near 0": ({"level": Fraction(1, 10**400)}, "level"),
    "importance of nothing": ({"importance": {"week": 2}}, "names of views"),
    "importance 0": ({"importance": {"running": 0}}, "importance"),
    "importance 1000": ({"importance": {"running": 1000}}, "importance"),
    "importance nan": ({"importance": {"running": float("nan")}}, "importance"),
    "importance of all": ({"importance": 2}, "mapping"),
    "a number of thousands of digits": ({"horizon": -(10**5000)}, "horizon"),
    "three changes": ({"max_change": (0, 1, 2)}, "max_change"),
}


@pytest.mark.parametrize(("change", "says"), BAD_PARAMETERS.values(), ids=BAD_PARAMETERS)
def test_impossible_parameters_are_refused_with_a_message(change, says):
    with pytest.raises(tg.InvalidParameter, match=says) as error:
        make(**change)
    assert str(error.value).startswith("Expected ")
    assert str(error.value).endswith(".")


ODD_HORIZONS = [1, 2, 3, 4, 7, 8, 9, 255, 256, 257, 10**9]


@pytest.mark.parametrize("horizon", ODD_HORIZONS)
@pytest.mark.parametrize("pure", [False, True], ids=["gaussian", "pure"])
def test_odd_horizons_are_planned(horizon, pure):
    gauge = make(horizon=horizon, delta=None if pure else 1e-9)
    assert gauge.noise_std("running", horizon) > 0
    gauge.update_many(np.ones((5, 2), np.int64))
    assert 5 == gauge.step


ODD_VIEWS = [
    tg.Window(1), tg.Window(10**6), tg.Window(1 << 40), tg.Exponential(half_life=1e9),
    tg.Exponential(factor=1 - 1e-12), tg.Exponential(factor=1e-12), tg.Polynomial(0.5),
    tg.Polynomial(16.0), tg.Custom((1.0,)), tg.Custom((0.0, 1.0)), tg.Custom((1.0, -1.0)),
]  # fmt: skip


@pytest.mark.parametrize("view", ODD_VIEWS, ids=repr)
@pytest.mark.parametrize("pure", [False, True], ids=["gaussian", "pure"])
def test_odd_views_are_planned_and_released(view, pure):
    gauge = make(views={"odd": view}, delta=None if pure else 1e-9)
    x = np.arange(60).reshape(30, 2)
    release = gauge.update_many(x)["odd"]
    truth = np.array([[view.weights(t + 1) @ x[t::-1, c] for c in range(2)] for t in range(30)])
    assert (np.abs(release.value - truth) <= 7 * release.noise_std).all()


@pytest.mark.parametrize(
    "bad",
    [
        lambda: tg.Exponential(half_life=1e-9),
        lambda: tg.Exponential(half_life=float("inf")),
        lambda: tg.Exponential(factor=0),
        lambda: tg.Exponential(factor=1),
        lambda: tg.Exponential(),
        lambda: tg.Exponential(half_life=1, factor=0.5),
        lambda: tg.Polynomial(0),
        lambda: tg.Polynomial(50),
        lambda: tg.Polynomial(float("nan")),
        lambda: tg.Window(0),
        lambda: tg.Window(2.5),
        lambda: tg.Window(-3),
        lambda: tg.Custom(()),
        lambda: tg.Custom((float("nan"),)),
        lambda: tg.Custom((0.0, 0.0)),
    ],
)
def test_impossible_views_are_refused_with_a_message(bad):
    with pytest.raises(tg.InvalidParameter, match="Expected"):
        bad()


def test_a_hundred_views_share_one_measurement():
    views = {f"w{w}": tg.Window(w) for w in range(1, 101)}
    gauge = make(views=views)
    releases = gauge.update_many(np.ones((120, 2), np.int64))
    assert 100 == len(releases)
    one = releases["w100"]
    assert (np.abs(one.value[-1] - 100) < 6 * one.noise_std[-1]).all()


def test_the_same_decay_may_have_two_names():
    releases = make(views={"a": tg.Window(3), "b": tg.Window(3)}).update([1, 2])
    assert releases["a"].value.tobytes() == releases["b"].value.tobytes()


def test_asking_for_an_unknown_view_or_step_is_refused():
    gauge = make()
    with pytest.raises(tg.InvalidParameter, match="Use one of"):
        gauge.noise_std("nothing", 1)
    for step in (0, -1, 1.5, 2**38 + 1):
        with pytest.raises(tg.InvalidParameter, match="step"):
            gauge.noise_std("running", step)


def test_sums_that_could_overflow_are_refused_when_planned():
    with pytest.raises(tg.UnsupportedCombination, match="max_per_step"):
        make(guarantee=tg.ZCDP(1), epsilon=None, delta=None, max_per_step=1 << 61)


def test_large_but_possible_sums_are_planned():
    gauge = make(max_change=1 << 31, max_per_step=1 << 50)
    release = gauge.update([1 << 50, 3])["running"]
    assert abs(release.value[0] - (1 << 50)) < 7 * release.noise_std[0]


def test_noise_of_a_step_after_the_end_is_refused():
    gauge = make(end=10, horizon=None)
    assert gauge.noise_std("running", 10) > 0
    with pytest.raises(tg.InvalidParameter, match="step"):
        gauge.noise_std("running", 11)
    with pytest.raises(tg.InvalidParameter, match="step"):
        gauge.plan.noise_std("running", [0, 1])


NUMPY_INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]


@pytest.mark.parametrize("dtype", NUMPY_INTEGERS)
@pytest.mark.parametrize(
    "guarantee", [{"epsilon": 1 / 3}, {"guarantee": tg.GaussianDP(1)}], ids=str
)
def test_numpy_integers_plan_what_plain_ones_do(dtype, guarantee):
    def plan(number):
        options = {
            "unit": tg.Contributions(number(20), number(3)), "cells": number(50),
            "max_cells": number(4), "max_change": number(100), "max_per_step": number(120),
            "horizon": number(90), "end": number(100), "epsilon": None, "delta": None,
        }  # fmt: skip
        return make(views=[tg.Window(number(5)), tg.Step()], **(options | guarantee)).plan

    assert plan(int).describe() == plan(dtype).describe()
    assert plan(int).law == plan(dtype).law


@pytest.mark.parametrize("dtype", NUMPY_INTEGERS)
def test_guarantees_of_numpy_integers_are_exact(dtype):
    assert tg.PureDP(100) == tg.PureDP(dtype(100))
    assert tg.ZCDP(100) == tg.ZCDP(dtype(100))
    assert tg.GaussianDP(100) == tg.GaussianDP(dtype(100))


@pytest.mark.parametrize(
    "number", [10**400, Fraction(10**400), Decimal("sNaN"), Decimal("NaN"), Decimal("Infinity")]
)
def test_extreme_numbers_are_refused_with_a_message(number):
    with pytest.raises(tg.InvalidParameter, match="epsilon"):
        make(epsilon=number)


@pytest.mark.parametrize(("epsilon", "change"), [(600, 1), (1e-4, 1 << 38)])
def test_a_gauge_that_one_kind_of_noise_cannot_serve_takes_the_other(epsilon, change):
    gauge = make(views=[tg.Running()], epsilon=epsilon, max_change=change, max_per_step=change)
    assert gauge.update([1, 2])["running"].value.shape == (2,)


def test_totals_of_the_wrong_sign_are_refused_on_both_sides():
    with pytest.raises(tg.InvalidInput, match="<= 0"):
        make(max_change=(-5, 0)).update([-1, 1])


def test_sums_that_double_precision_would_blur_are_refused():
    with pytest.raises(tg.UnsupportedCombination, match="max_per_step"):
        make(max_per_step=1 << 50, horizon=4000, end=4000)


def test_a_guarantee_for_ever_over_too_long_a_memory_asks_for_an_end():
    long = {"views": [tg.Running()], "guarantee": tg.ZCDP(0.5), "epsilon": None, "delta": None}
    with pytest.raises(tg.UnsupportedCombination, match="declare an end"):
        make(horizon=2**34, **long)
    assert make(horizon=None, end=2**34, **long).noise_std("running", 2**34) > 0


def test_keep_is_yes_or_no():
    with pytest.raises(tg.InvalidParameter, match="keep"):
        tg.Gauge(views=[tg.Step()], unit="event", epsilon=1, keep="no")
