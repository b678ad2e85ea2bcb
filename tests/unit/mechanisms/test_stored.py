"""A gauge's plan as plain data and back: the same numbers, and no others believed."""

import json
from fractions import Fraction
from functools import cache, partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegauge.errors import BudgetExceeded, InvalidParameter
from tidegauge.mechanisms.design import design
from tidegauge.mechanisms.plain_data import fraction_of, fraction_text
from tidegauge.mechanisms.request import request_of
from tidegauge.mechanisms.restoring import restore_gauge
from tidegauge.mechanisms.stored import plain, read_as
from tidegauge.privacy.guarantee import GaussianDP
from tidegauge.privacy.unit import Contributions
from tidegauge.strategies.blocks import Blocks, OpenBlocks
from tidegauge.strategies.blt import Blt, Comb, NormalisedBlt
from tidegauge.strategies.decay import (
    Custom,
    Difference,
    Exponential,
    Polynomial,
    Running,
    Step,
    Window,
)
from tidegauge.strategies.decayed import DecayedTree
from tidegauge.strategies.dense import DenseToeplitz
from tidegauge.strategies.identity import Identity
from tidegauge.strategies.named import by_name
from tidegauge.strategies.stepped import PolynomialSum, polynomial_sum
from tidegauge.strategies.trees import window_sum

REQUESTS = {
    Blt: {
        "views": [
            Running(),
            Window(24),
            Exponential(half_life=24),
            Exponential(half_life=24, average=True),
            Polynomial(1.5),
            Difference(Window(24), 24),
            Difference(Exponential(factor=0.5, average=True), 7),
        ],
        "epsilon": 1,
        "delta": 1e-9,
        "end": 8760,
        "cells": 7,
    },
    Comb: {
        "views": [Running(), Window(24), Window(168)],
        "epsilon": 1,
        "delta": 1e-9,
        "horizon": 8760,
        "cells": 7,
    },
    "custom": {
        "views": {"late": Custom([0, 0.25, 1e-100]), "total": Running()},
        "guarantee": GaussianDP(0.3),
    },
    Identity: {
        "views": {"now": Step()},
        "guarantee": GaussianDP(0.1),
        "max_change": (-3, 5),
        "cells": ["a", "b"],
    },
    Blocks: {"views": [Exponential(factor=0.999), Running()], "epsilon": 0.3, "end": 5000},
    DecayedTree: {
        "views": [Exponential(factor=0.9999)],
        "epsilon": 1,
        "strategy": by_name("ExponentialSum"),
    },
    "printed": {
        "views": [Exponential(half_life=30), Exponential(half_life=30, average=True)],
        "epsilon": 1,
        "strategy": by_name("ExponentialSumAsPrinted"),
    },
    "shares by level": {
        "views": [Window(100), Running()],
        "epsilon": 0.5,
        "strategy": by_name("AllWindowSum", {"beta": 2}),
    },
    PolynomialSum: {
        "views": [polynomial_sum(1.5, 0.5, 40).decay],
        "epsilon": 0.5,
        "strategy": by_name("PolynomialSum", {"c": 1.5, "beta": 0.5, "reach": 40}),
    },
    NormalisedBlt: {"views": [Running()], "guarantee": GaussianDP(0.5), "end": 40},
    DenseToeplitz: {
        "views": [Custom([1, -0.5, 0.25, 3])],
        "guarantee": GaussianDP(0.5),
        "end": 12,
        "max_change": (-2, 2),
    },
    OpenBlocks: {
        "views": [Running(), Window(256), Difference(Window(256), 256)],
        "epsilon": 0.1,
        "end": 1 << 16,
    },
}


def made(kind, **changes):
    arguments = {"unit": "event", **REQUESTS[kind], **changes}
    return design(request_of(**arguments))


def as_stored(plan):
    return json.loads(json.dumps(plan.stored()))


def plan_with(strategy):
    """A plan with this strategy in place of the one chosen."""
    from dataclasses import replace

    from tidegauge.noise.laplace import DiscreteLaplace
    from tidegauge.strategies.strategy import Norm

    plan = made(Identity, guarantee=None, epsilon=1)
    scale = strategy.sensitivity(Norm.L1, plan.neighbors) / plan.cost.epsilon
    return replace(plan, strategy=strategy, law=DiscreteLaplace(scale), max_per_step=1)


MAKERS = {
    **{getattr(kind, "__name__", kind): partial(made, kind) for kind in REQUESTS},
    "fixed Blocks": lambda: plan_with(Blocks((1, 4, 16), signed=False)),
    "Blocks as printed": lambda: plan_with(window_sum(8, "paper")),
    "weighted OpenBlocks": lambda: plan_with(OpenBlocks((1, 4), (Running(),), weights=(3, 2))),
}


@cache
def plan_named(name):
    """A plan, made once, and not before a test asks for it."""
    return MAKERS[name]()


def every_plan():
    return [plan_named(name) for name in MAKERS]


@pytest.fixture(params=MAKERS)
def plan(request):
    return plan_named(request.param)


def test_a_plan_comes_back_bit_for_bit(plan):
    restored = restore_gauge(as_stored(plan))
    assert restored == plan
    assert restored.stored() == plan.stored()
    assert restored.fingerprint == plan.fingerprint
    assert restored.strategy == plan.strategy
    assert restored.law.scale == plan.law.scale
    steps = [1, min(100, plan.last_step or 100)]
    for name, _ in plan.views:
        assert restored.noise_std(name, steps).tobytes() == plan.noise_std(name, steps).tobytes()


def test_the_plans_above_hold_every_strategy():
    every = {
        Identity,
        Blt,
        Comb,
        NormalisedBlt,
        DenseToeplitz,
        Blocks,
        OpenBlocks,
        DecayedTree,
        PolynomialSum,
    }
    assert {type(plan.strategy) for plan in every_plan()} == every


def test_an_id_unit_comes_back():
    plan = made(Blt, unit=Contributions(20, min_separation=2))
    assert restore_gauge(as_stored(plan)) == plan


def test_restoring_fits_nothing(monkeypatch):
    from tidegauge.strategies import blt

    stored = [as_stored(plan) for plan in every_plan()]
    monkeypatch.setattr(blt, "fit", None)
    assert [restore_gauge(data) for data in stored] == every_plan()


def numbers(value, path=()):
    """Every place of an integer or a fraction in plain data."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from numbers(inner, (*path, key))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from numbers(inner, (*path, i))
    elif isinstance(value, int) and not isinstance(value, bool):
        yield path, value
    elif isinstance(value, str) and "/" in value:
        yield path, fraction_of(value)


def changed(data, path, value):
    copy = json.loads(json.dumps(data))
    place = copy
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = fraction_text(value) if isinstance(value, Fraction) else value
    return copy


def test_noise_below_sensitivity_over_cost_is_refused(plan):
    data = as_stored(plan)
    less = plan.law.scale * (1 - Fraction(1, 10**6))
    with pytest.raises(InvalidParameter, match="Expected a noise scale"):
        restore_gauge(changed(data, ("law", "scale"), less))


def test_no_single_changed_number_weakens_the_promise(plan):
    from tidegauge.strategies.strategy import Norm

    data = as_stored(plan)
    for path, value in numbers(data):
        for other in (value * 2, value * 3 + 1, value - 1, -value):
            try:
                restored = restore_gauge(changed(data, path, other))
            except (InvalidParameter, BudgetExceeded):
                continue
            norm = Norm.L2 if type(restored.cost).__name__ == "GaussianCost" else Norm.L1
            amount = restored.cost.mu if norm is Norm.L2 else restored.cost.epsilon
            needed = restored.strategy.sensitivity(norm, restored.neighbors)
            assert restored.law.scale * amount >= needed, path
            assert restored.charged().left >= 0, path


def test_a_cost_beyond_the_guarantee_is_refused():
    data = as_stored(made(Identity))
    with pytest.raises(BudgetExceeded):
        restore_gauge(changed(data, ("cost", "mu_squared"), Fraction(1, 99)))


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("version",), 3, "version 3"),
        (("strategy", "is"), "Magic", "Magic"),
        (("strategy", "extra"), 1, "known fields only"),
        (("law", "is"), "DiscreteLaplace", "Expected noise of the kind that is charged"),
        (("law", "scale"), "0.5", "fraction"),
        (("law", "scale"), "2/4", "lowest terms"),
        (("law", "scale"), 3.0, "fraction"),
        (("law", "scale"), None, "fraction"),
        (("views",), [], "at least one view"),
        (("views",), 7, "list"),
        (("views",), [["a", {"is": "Step"}], ["a", {"is": "Step"}]], "once"),
        (("views",), [[["a"], {"is": "Step"}]], "name and a decay"),
        (("views",), [["a", {"is": "Event"}]], "Event"),
        (("cells",), ["a"], "as many names as cells"),
        (("cells",), ["a", "a"], "each cell once"),
        (("scalar",), 1, "true or false"),
        (("end",), 7.5, "integer"),
        (("max_per_step",), True, "integer"),
        (("max_per_step",), 1 << 62, "max_per_step"),
        (("neighbors", "relation"), "none", "neighboring_relation"),
        (("neighbors", "unit"), {"is": "Event", "max_events": 5}, "known fields"),
        (("level",), "1/1", "level"),
        (("guarantee",), {"is": "Fraction"}, "Fraction"),
    ],
)
def test_what_was_not_written_by_us_is_refused(path, value, message):
    data = as_stored(made(Identity))
    with pytest.raises(InvalidParameter, match=message):
        restore_gauge(changed(data, path, value))


@pytest.mark.parametrize("name", sorted(as_stored(made(Identity))))
def test_a_missing_field_is_refused(name):
    data = as_stored(made(Identity))
    del data[name]
    with pytest.raises(InvalidParameter, match="got nothing of it"):
        restore_gauge(data)


@pytest.mark.parametrize("data", [None, 1, "plan", []])
def test_what_is_no_mapping_is_refused(data):
    with pytest.raises(InvalidParameter, match="to be a mapping"):
        restore_gauge(data)


@given(st.fractions())
def test_every_fraction_comes_back(value):
    assert fraction_of(fraction_text(value)) == value


@given(
    st.one_of(
        st.builds(Exponential, half_life=st.floats(0.1, 1e9)),
        st.builds(Exponential, factor=st.floats(0.01, 0.999999)),
        st.builds(Polynomial, st.floats(0.01, 16), st.integers(1, 1 << 30)),
        st.builds(Custom, st.lists(st.floats(0.001, 1e9), min_size=1, max_size=5)),
        st.builds(Window, st.integers(1, 1 << 40)),
    )
)
def test_every_decay_comes_back_with_its_name(decay):
    restored = read_as(json.loads(json.dumps(plain(decay))), type(decay))
    assert restored == decay
    assert restored.name == decay.name


def test_what_is_no_part_of_a_plan_has_no_stored_form():
    with pytest.raises(InvalidParameter, match="no stored form"):
        plain(1.5)
