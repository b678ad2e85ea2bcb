"""Candidates: all are told, what they would give is true, and verdicts give the real reason."""

import dataclasses
import math

import numpy as np
import pytest

import tidegauge as tg
from tidegauge.errors import InvalidParameter, UnsupportedCombination
from tidegauge.mechanisms.design import compare, design, plan
from tidegauge.mechanisms.request import request_of
from tidegauge.privacy.costs import GaussianCost, PureCost

MIXED = {"week": tg.Window(7), "total": tg.Running(), "each": tg.Step()}
BUDGETS = {
    "approx": {"epsilon": 1, "delta": 1e-9},
    "pure": {"epsilon": 1},
    "zcdp": {"guarantee": tg.ZCDP(0.5)},
    "gaussian": {"guarantee": tg.GaussianDP(1)},
}


def planned(views=MIXED, **changes):
    asked = {"views": views, "unit": "event", "epsilon": 1, "delta": 1e-9, "end": 300}
    return plan(**(asked | changes))


@pytest.fixture(scope="module")
def mixed():
    return planned()


@pytest.mark.parametrize("budget", BUDGETS)
def test_the_chosen_candidate_is_what_a_gauge_measures(budget):
    asked = {"views": MIXED, "unit": "event", "end": 300, **BUDGETS[budget]}
    found = plan(**asked)
    assert [True] == [c.chosen for c in found.candidates if c.chosen]
    assert found.plan == found.chosen.plan == design(request_of(**asked)) == tg.Gauge(**asked).plan


def test_both_kinds_of_noise_are_tried_where_a_delta_is_given_and_one_where_it_is_not(mixed):
    kinds = {c.noise: type(c.cost) for c in mixed.candidates}
    assert {"rounded Gaussian": GaussianCost, "discrete Laplace": PureCost} == kinds
    pure = plan(views=MIXED, unit="event", epsilon=1, end=300)
    assert {"discrete Laplace"} == {c.noise for c in pure.candidates}
    for only in (tg.ZCDP(0.5), tg.GaussianDP(1)):
        found = plan(views=MIXED, unit="event", guarantee=only, end=300)
        assert {"rounded Gaussian"} == {c.noise for c in found.candidates}


def test_predictions_are_the_noise_of_the_candidates_own_plan_at_its_worst_step(mixed):
    steps = np.arange(1, 301)
    assert len(mixed.candidates) >= 4
    for candidate in mixed.candidates:
        assert ["week", "total", "each"] == [view.view for view in candidate.views]
        for view in candidate.views:
            worst = candidate.plan.noise_std(view.view, steps).max()
            assert view.worst_std == pytest.approx(worst, rel=1e-3)


def test_no_candidate_lies_below_its_lower_bound(mixed):
    for candidate in mixed.candidates:
        assert min(view.ratio for view in candidate.views) > 0.999
        assert candidate.worst_ratio == candidate.worst.ratio


@pytest.mark.parametrize("epsilon", [0.01, 1, 5, 20])
def test_the_bound_of_laplace_noise_is_that_of_whole_grains_and_a_step_attains_it(epsilon):
    found = plan(views=[tg.Step(), tg.Running()], unit="event", epsilon=epsilon, end=64)
    itself = found.candidates[0]
    assert itself.views[0].ratio == pytest.approx(1, rel=2e-3)  # scales are rounded up
    for candidate in found.candidates:
        assert min(view.ratio for view in candidate.views) > 1 - 1e-6


def test_the_chosen_candidate_has_the_least_noise_over_the_bounds_and_verdicts_say_so(mixed):
    bounds = {view.view: view.lower_bound for view in mixed.chosen.views}

    def excess(candidate):  # independent of ``score``: relative to the bounds of one candidate
        return max(view.worst_std / bounds[view.view] for view in candidate.views)

    least = excess(mixed.chosen)
    for candidate in mixed.candidates:
        assert least <= excess(candidate) * (1 + 1e-9)
        if not candidate.chosen:
            times = excess(candidate) / least
            assert f"would have {times:,.2f} times the noise" == candidate.verdict


def test_the_choice_is_explained_in_one_sentence_with_the_next_best(mixed):
    text = mixed.explain()
    assert text.count(". ") == 0
    assert text.endswith(".")
    second = sorted(mixed.candidates, key=lambda candidate: candidate.score)[1]
    for part in (mixed.chosen.strategy, mixed.chosen.worst.view, second.strategy, second.verdict):
        assert part in text
    alone = plan(views=[tg.Step()], unit="event", guarantee=tg.GaussianDP(1))
    assert alone.explain().endswith("; nothing else can be used.")
    for found in (text, alone.explain()):
        assert (
            "the least of any factorization mechanism with noise of this kind at this cost" in found
        )


def test_what_is_anticipated_is_predicted_and_not_published():
    request = dataclasses.replace(
        request_of(views=MIXED, unit="event", epsilon=1, end=300), anticipate=(tg.Window(30),)
    )
    (found,) = compare([request])
    names = [(view.view, view.published) for view in found.chosen.views]
    assert [("week", True), ("total", True), ("each", True), ("window_30", False)] == names
    assert list(MIXED.items()) == list(found.plan.views)


def requests(*views, epsilon=2, weights=None, **changes):
    made = [
        request_of(views=[v], unit="event", epsilon=epsilon, delta=1e-9, end=8192) for v in views
    ]
    return [
        dataclasses.replace(
            r, name=f"g{i}", budget_weight=(weights or [1] * len(made))[i], **changes
        )
        for i, r in enumerate(made)
    ]


def test_a_whole_plan_has_one_kind_of_noise_and_the_reason_names_the_gauge_that_decided():
    alone = [compare([request])[0].chosen.noise for request in requests(tg.Step(), tg.Running())]
    assert ["discrete Laplace", "rounded Gaussian"] == alone
    step, running = compare(requests(tg.Step(), tg.Running()))
    assert step.chosen.noise == running.chosen.noise == "rounded Gaussian"
    (best,) = [c for c in step.candidates if "needs" in c.verdict]
    assert best.noise == "discrete Laplace"
    assert "on all gauges, with which g1 would have" in best.verdict
    assert best.score < step.chosen.score  # by itself it would be better


def test_shares_follow_the_weights_in_every_candidate():
    light, heavy = compare(requests(tg.Running(), tg.Running(), weights=[1, 3]))
    for one, three in zip(light.candidates, heavy.candidates, strict=True):
        if isinstance(one.cost, GaussianCost):
            assert three.cost.mu_squared == 3 * one.cost.mu_squared
        else:
            assert three.cost.epsilon == 3 * one.cost.epsilon


def test_what_cannot_be_used_is_told_with_its_reason():
    found = planned({"total": tg.Running()}, max_per_step=1 << 38, max_change=1 << 18, end=None,
                    horizon=1 << 16)  # fmt: skip
    refused = [c for c in found.candidates if c.plan is None]
    assert refused
    for candidate in refused:
        assert candidate.verdict.startswith("refused: its ")
        assert (math.inf, (), None) == (candidate.worst_ratio, candidate.views, candidate.worst)
        assert not candidate.chosen
    assert found.chosen.plan is not None


def test_a_request_that_no_candidate_fits_is_refused():
    with pytest.raises(UnsupportedCombination, match="overflow"):
        planned(max_per_step=1 << 62)
    with pytest.raises(UnsupportedCombination, match=r"^Gauge g0: .*overflow"):
        compare(requests(tg.Running(), max_per_step=1 << 62))


@pytest.mark.parametrize("end", [1, 2, 3, 63, 64, 65, 10**9])
@pytest.mark.parametrize("budget", ["approx", "pure"])
def test_streams_of_every_length_are_planned(end, budget):
    found = plan(views=MIXED, unit="event", end=end, **BUDGETS[budget])
    for candidate in found.candidates:
        for view in candidate.views:
            assert 0.999 < view.ratio < math.inf
    assert found.plan.noise_std("total", [end]) > 0


def test_a_hundred_views_are_planned():
    views = {f"w{i}": tg.Window(i) for i in range(1, 101)}
    found = planned(views)
    assert 100 == len(found.chosen.views)
    assert found.chosen.worst_ratio < 10  # of a hundred gauges that share the budget


@pytest.mark.parametrize(
    "wrong",
    [
        {"views": []},
        {"epsilon": -1},
        {"epsilon": math.nan},
        {"end": 0},
        {"cells": 0},
        {"unit": "row"},
    ],
)
def test_what_a_gauge_refuses_is_refused_alike(wrong):
    asked = {"views": MIXED, "unit": "event", "epsilon": 1, "end": 300} | wrong
    with pytest.raises(InvalidParameter) as mine:
        plan(**asked)
    with pytest.raises(InvalidParameter) as theirs:
        tg.Gauge(**asked)
    assert str(mine.value) == str(theirs.value)


def test_without_a_length_pure_epsilon_is_judged_at_many_lengths():
    unknown = plan(views=[tg.Running()], unit="event", epsilon=1)
    assert unknown.plan.strategy.weights  # larger blocks get less of the budget
    for steps in (1 << 10, 1 << 17, 1 << 24):  # more of them in test_block_design.py
        gain = unknown.plan.strategy.worst_variance_gain(tg.Running(), steps)
        known = plan(views=[tg.Running()], unit="event", epsilon=1, horizon=steps)
        assert not known.plan.strategy.weights
        ours = gain**0.5 * unknown.plan.law.std
        assert ours < 1.5 * known.chosen.worst.worst_std
