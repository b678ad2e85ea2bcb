"""What `plan` shows: noise and intervals equal the mechanism's, ratios equal the fit's."""

import pytest

import tidegauge as tg
from tidegauge.cli.outlook import outlook
from tidegauge.engine.ratio import ratio_to_bound
from tidegauge.strategies.fit import fit

VIEWS = {"running": tg.Running(), "day": tg.Window(24), "recent": tg.Exponential(half_life=24)}


def plan_of(**changes):
    call = {
        "views": VIEWS,
        "unit": "event",
        "epsilon": 1,
        "delta": 1e-9,
        "horizon": 8760,
        "end": 8760,
    }
    return tg.Gauge(**(call | changes)).plan


def test_the_first_middle_and_last_step_have_the_noise_of_the_mechanism():
    plan = plan_of()
    (row,) = outlook("visits", [("day", tg.Window(24))], plan, 0.5, 8760)
    assert (1, 4380, 8760) == row.steps
    expected = [0.5 * float(plan.noise_std(tg.Window(24), [step])[0]) for step in row.steps]
    assert expected == list(row.noise_std)
    assert row.half_width == pytest.approx(1.959964 * row.noise_std[-1], rel=1e-6)


def test_ratios_of_gaussian_noise_are_those_of_the_fit():
    plan = plan_of()
    fitted = fit(list(VIEWS.values()), 8760)
    for decay, expected in zip(VIEWS.values(), fitted.ratios, strict=True):
        assert expected == pytest.approx(ratio_to_bound(plan, decay), rel=1e-3)


@pytest.mark.parametrize(
    "changes",
    [
        {"max_change": 7, "max_cells": 3, "cells": 9},
        {"unit": tg.Contributions(20)},
        {"neighboring_relation": "replace_one", "cells": 5},
        {"epsilon": 0.1},
    ],
)
def test_ratios_do_not_depend_on_who_is_protected_or_how_much_each_may_add(changes):
    for decay in VIEWS.values():
        once = ratio_to_bound(plan_of(), decay)
        assert once == pytest.approx(ratio_to_bound(plan_of(**changes), decay), rel=1e-3)


def test_no_ratio_is_below_one():
    for guarantee in ({}, {"delta": None}, {"delta": None, "views": {"step": tg.Step()}}):
        plan = plan_of(**guarantee)
        for _, decay in plan.views:
            assert ratio_to_bound(plan, decay) >= 1 - 1e-9
