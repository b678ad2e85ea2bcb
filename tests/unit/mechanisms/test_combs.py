"""Which strategy is planned: with and without a comb, and by the importance of views."""

import pytest

from tidegauge.mechanisms import candidates
from tidegauge.mechanisms.design import compare, design
from tidegauge.mechanisms.request import request_of
from tidegauge.privacy.guarantee import GaussianDP
from tidegauge.privacy.unit import Contributions
from tidegauge.strategies.blt import Blt, Comb
from tidegauge.strategies.decay import Exponential, Running, Window

WINDOWS = {"total": Running(), "day": Window(24), "week": Window(168)}
ONE = {"guarantee": GaussianDP(1), "unit": "event", "views": WINDOWS, "horizon": 8760}


def planned(**changes):
    request = request_of(**{**ONE, **changes})
    return request, design(request)


def test_a_comb_is_planned_for_windows():
    _, plan = planned()
    assert isinstance(plan.strategy, Comb)
    assert 24 == plan.strategy.lag
    assert "comb" in plan.statement()


def test_no_comb_is_planned_beyond_the_memory(monkeypatch):
    monkeypatch.setattr(candidates, "_COMB_MEMORY", 16 * 24 * 100)
    assert isinstance(planned(cells=100)[1].strategy, Comb)
    assert isinstance(planned(cells=101)[1].strategy, Blt)


@pytest.mark.parametrize(
    ("unit", "kind"),
    [(Contributions(50), Comb), (Contributions(2, 1), Comb), (Contributions(50, 1), Blt)],
)
def test_the_better_of_both_is_planned_for_ids(unit, kind, monkeypatch):
    request, plan = planned(unit=unit)
    assert isinstance(plan.strategy, kind)
    best = compare([request])[0].chosen.score
    monkeypatch.setattr(candidates, "_LONGEST_LAG", 0)
    alone = compare([request])[0].chosen
    assert isinstance(alone.plan.strategy, Blt)
    assert best <= alone.score * (1 + 1e-9)


def test_a_comb_takes_no_noise_of_its_denominator():
    _, plan = planned(views={"day": Window(24)})
    assert float(plan.noise_std("day", [1000])[0]) == pytest.approx(2.30, rel=0.01)


def test_an_important_view_gets_less_noise():
    _, even = planned()
    request, leaning = planned(importance={"day": 1.2})
    _, same = planned(importance={"day": 1, "total": 1.0})
    assert same == even
    assert leaning.noise_std("day", [8760])[0] < 0.93 * even.noise_std("day", [8760])[0]
    assert leaning.noise_std("total", [8760])[0] > even.noise_std("total", [8760])[0]
    assert request.importance == (("day", 1.2),)


def test_the_importance_of_a_decay_is_that_of_its_most_important_view():
    views = {"a": Window(24), "b": Window(24), "total": Running()}
    _, plan = planned(views=views, importance={"b": 1.2, "a": 0.5})
    assert plan.strategy == planned(views=views, importance={"a": 1.2})[1].strategy


def test_importance_is_judged_under_pure_epsilon_too():
    views = {"total": Running(), "recent": Exponential(half_life=2)}
    pure = {"guarantee": None, "epsilon": 1, "views": views, "horizon": 1000}
    _, even = planned(**pure)
    _, leaning = planned(**pure, importance={"recent": 100})
    assert leaning.noise_std("recent", [1000])[0] < even.noise_std("recent", [1000])[0]


def test_what_is_anticipated_counts_once():
    from dataclasses import replace

    request = request_of(**{**ONE, "views": {"total": Running()}})
    request = replace(request, anticipate=(Window(24),), importance=(("total", 1.0),))
    assert design(request).strategy.lag == 24
