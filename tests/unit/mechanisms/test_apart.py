"""The paper's systems of single views beside the candidates: told, and never chosen."""

import math
from fractions import Fraction

import pytest

from tidegauge.mechanisms.apart import with_views_apart
from tidegauge.mechanisms.design import compare, design
from tidegauge.mechanisms.request import request_of
from tidegauge.privacy.costs import GaussianCost
from tidegauge.privacy.guarantee import ApproxDP, GaussianDP, PureDP
from tidegauge.strategies.decay import Exponential, Polynomial, Running, Step, Window
from tidegauge.strategies.named import by_name

VIEWS = {
    "step": Step(),
    "all": Running(),
    "week": Window(168),
    "day": Exponential(half_life=24),
    "slow": Polynomial(1.5, reach=100),
}


def asked(guarantee, **more):
    given = {"views": VIEWS, "unit": "event", "guarantee": guarantee, "end": 1000, **more}
    return request_of(**given)


@pytest.mark.parametrize(
    ("guarantee", "kinds"),
    [
        (PureDP(Fraction(1)), 1),
        (GaussianDP(Fraction(1)), 1),
        (ApproxDP(Fraction(1), Fraction(1, 10**9)), 2),
    ],
)
def test_each_view_has_its_system_with_noise_of_each_kind(guarantee, kinds):
    request = asked(guarantee)
    (before,) = compare([request])
    after = with_views_apart(request, before)
    assert before.candidates == after.candidates[: len(before.candidates)]
    more = after.candidates[len(before.candidates) :]
    assert ["all", "week", "day"] * kinds == [c.worst.view for c in more]
    assert before.chosen == after.chosen
    assert all(c.plan is None and c.rank == math.inf for c in more)
    assert before.explain() == after.explain()


@pytest.mark.parametrize("guarantee", [PureDP(Fraction(1)), GaussianDP(Fraction(1))])
def test_the_noise_is_that_of_a_gauge_with_a_fifth_of_the_budget(guarantee):
    request = asked(guarantee)
    (before,) = compare([request])
    rows = with_views_apart(request, before).candidates[len(before.candidates) :]
    stds = {view.view: view for c in before.candidates for view in c.views}
    names = {"all": "AllWindowSum", "week": "WindowSum", "day": "ExponentialSum"}
    gaussian = isinstance(before.chosen.cost, GaussianCost)
    share = GaussianDP(math.sqrt(1 / 5)) if gaussian else PureDP(Fraction(1, 5))
    for row in rows:
        (view,) = row.views
        alone = asked(share, views={view.view: view.decay}, strategy=by_name(names[view.view]))
        std = max(design(alone).noise_std(view.decay, range(1, 1001)))
        assert math.isclose(view.worst_std, std, rel_tol=1e-6)
        assert view.lower_bound == stds[view.view].lower_bound  # of all of the budget
        assert row.worst_ratio > 1


def test_what_is_refused_says_why():
    request = asked(PureDP(Fraction(1)), views={"a": Exponential(half_life=10**8), "b": Step()})
    (before,) = compare([request])
    last = with_views_apart(request, before).candidates[-1]
    assert last.verdict.startswith("refused: ")
    assert last.worst is None


@pytest.mark.parametrize(
    "more",
    [
        {"views": {"week": Window(168)}},
        {"strategy": by_name("AllWindowSum")},
        {"views": {"ever": Running()}, "distinct": "ever"},
    ],
)
def test_nothing_is_added_where_all_is_told(more):
    request = asked(PureDP(Fraction(1)), **more)
    (before,) = compare([request])
    assert before == with_views_apart(request, before)
