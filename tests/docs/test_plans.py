"""docs/plans.json: what it says is recomputed from its integers, by the code of its page."""

import json
import math
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from tidegauge.strategies.blt.variance import variance_gain, variance_limit
from tidegauge.strategies.bounds import asymptotic_set_bound, lower_bound
from tidegauge.strategies.decay import Exponential, Polynomial, Running, Step, Window

DOCS = Path(__file__).resolve().parents[2] / "docs"
PLANS = json.loads((DOCS / "plans.json").read_text())["plans"]
UNIT = 1 << 64
SHORT = 1 << 10
"""Steps over which the page's own code is run, a number at a time."""


def decay_of(view):
    if isinstance(view, str):
        return {"step": Step(), "running": Running()}[view]
    if "polynomial" in view:
        return Polynomial(view["polynomial"], view["reach"])
    return Window(view["window"]) if "window" in view else Exponential(half_life=view["half_life"])


def integers(plan):
    comb = plan["comb"]
    teeth = comb and (Fraction(comb["numerator"], comb["denominator"]), comb["lag"])
    return tuple(map(int, plan["gaps"])), tuple(map(int, plan["weights"])), teeth


def column_squared(plan):
    """The squared norm of a column for ever, in exact rationals, term by term."""
    gaps, weights, comb = integers(plan)
    poles = [1 - Fraction(gap, UNIT) for gap in gaps]
    sizes = [Fraction(weight, UNIT) for weight in weights]
    pairs = [(w * v, p, q) for w, p in zip(sizes, poles, strict=True)
             for v, q in zip(sizes, poles, strict=True)]  # fmt: skip
    own = 1 + sum(product / (1 - p * q) for product, p, q in pairs)
    if comb is None:
        return own
    beta, lag = comb
    first = sum(w * p ** (lag - 1) for w, p in zip(sizes, poles, strict=True))
    later = first + sum(product * q**lag / (1 - p * q) for product, p, q in pairs)
    return (1 + beta**2) * own - 2 * beta * later


def std(plan, view):
    """The std at the view's worst step, at mu = 1, and the bound there."""
    gaps, weights, comb = integers(plan)
    decay, column = decay_of(view["view"]), math.sqrt(column_squared(plan))
    if view["steps"] is None:
        return column * math.sqrt(variance_limit(gaps, weights, decay, comb)), [None]
    gains = variance_gain(gaps, weights, decay, np.array(view["steps"]), comb)
    return [column * math.sqrt(gain) for gain in gains], view["steps"]


def wrong(plan):
    """What a plan says and its integers do not."""
    found = []
    exact = column_squared(plan)
    if not exact <= Fraction(plan["sensitivity"]) ** 2 <= exact * (1 + Fraction(1, 10**9)):
        found.append("sensitivity")
    ratios = []
    for view in plan["views"]:
        stds, steps = std(plan, view)
        decay = decay_of(view["view"])
        horizons = [plan["horizon"] or 1 << 20] if steps == [None] else steps
        bounds = [lower_bound(decay, horizon) for horizon in horizons]
        judged = [(s / b, s, b) for s, b in zip(np.atleast_1d(stds), bounds, strict=True)]
        ratios.append(max(judged)[0])
        close = [
            ratio for ratio, s, b in judged
            if (s, b, ratio) == pytest.approx((view["std"], view["bound"], view["ratio"]), rel=1e-6)
        ]  # fmt: skip
        if not close or max(judged)[0] > view["ratio"] * (1 + 1e-6):
            found.append(view["view"])
    if max(ratios) != pytest.approx(plan["worst_ratio"], rel=1e-6):
        found.append("worst_ratio")
    return found


def test_there_are_fifty_different_sets():
    assert 50 == len(PLANS) == len({plan["name"] for plan in PLANS})


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan["name"])
def test_what_the_file_says_follows_from_its_integers(plan):
    assert [] == wrong(plan)
    assert 1 <= (plan["set_bound"] or 1) <= plan["worst_ratio"]


@pytest.mark.parametrize("which", ["gaps", "weights"])
def test_another_integer_would_be_noticed(which):
    plan = json.loads(json.dumps(PLANS[4]))
    plan[which][0] = str(int(plan[which][0]) * 1001 // 1000)
    assert wrong(plan)


def test_bounds_of_sets_are_of_the_sets():
    for plan in PLANS:
        if plan["set_bound"] is not None and len(plan["views"]) < 4:
            views = [decay_of(view["view"]) for view in plan["views"]]
            bound, _ = asymptotic_set_bound(views, plan["horizon"])
            assert bound == pytest.approx(plan["set_bound"], rel=1e-3)


@pytest.fixture(scope="module")
def page():
    """The names that the code of the page defines."""
    (block,) = re.findall(r"```python\n(.*?)```", (DOCS / "plans.md").read_text(), re.S)
    names = {}
    exec(
        compile(block.replace("docs/plans.json", str(DOCS / "plans.json")), "plans.md", "exec"),
        names,
    )
    return names


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan["name"])
def test_the_decoder_of_the_page_undoes_its_encoder(page, plan):
    encoder, decoder = page["Encoder"](plan), page["Decoder"](plan)
    stream = [int(x) for x in np.random.default_rng(1).integers(0, 50, 300)]
    assert stream == pytest.approx([decoder.step(encoder.step(x)) for x in stream], abs=1e-6)


@pytest.mark.parametrize(
    "plan", [p for p in PLANS if p["horizon"] in (256, 365, 1024)], ids=lambda plan: plan["name"]
)
def test_the_noise_of_the_page_is_what_the_file_says(page, plan):
    """One unit of noise at the first step, decoded to a view, gives the row of its matrix."""
    decoder, encoder = page["Decoder"](plan), page["Encoder"](plan)
    response = np.array([decoder.step(v) for v in [1.0] + [0.0] * (SHORT - 1)])
    column = np.array([encoder.step(x) for x in [1.0] + [0.0] * (SHORT - 1)])
    assert np.linalg.norm(column) <= plan["sensitivity"]
    assert np.linalg.norm(column) == pytest.approx(plan["sensitivity"], rel=0.02)
    for view in plan["views"]:
        (steps,) = view["steps"] or [SHORT]
        row = np.convolve(response, decay_of(view["view"]).weights(SHORT))[:steps]
        assert np.linalg.norm(row) * plan["sensitivity"] == pytest.approx(view["std"], rel=1e-3)
