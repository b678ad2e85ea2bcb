"""Released noise of the systems of Bolot et al. against ``noise_std``, with cells as runs."""

import numpy as np
import pytest

from tidegauge.mechanisms.design import design
from tidegauge.mechanisms.plan import GaugePlan
from tidegauge.mechanisms.reading import Reading
from tidegauge.mechanisms.request import request_of
from tidegauge.papers.bolot import (
    AllWindowSum,
    DecayedHistogram,
    DistinctCount,
    ExponentialSum,
    HolisticPredicateSum,
    InputPerturbation,
    PolynomialSum,
    PredicateSum,
    RandomizedResponse,
    WindowSum,
)
from tidegauge.papers.system import System
from tidegauge.privacy.guarantee import GaussianDP
from tidegauge.strategies.decay import Exponential, Polynomial, Running, Window
from tidegauge.testing import seeded_meter, seeded_system

pytestmark = pytest.mark.statistical

RUNS = 100_000
"""Of one draw of discrete Laplace noise, whose tails are the heaviest here, the measured std is off
by sqrt(5 / 4 / 100,000) = 0.35 %: two per cent are 5.7 times that."""
STEPS = (1, 3, 7, 8, 23)
SYSTEMS = {
    "WindowSum": lambda: WindowSum(6, 1, cells=RUNS),
    "WindowSum, as printed": lambda: WindowSum(8, 1, cells=RUNS, as_printed=True),
    "AllWindowSum": lambda: AllWindowSum(1, longest=7, cells=RUNS),
    "AllWindowSum, as printed": lambda: AllWindowSum(1, 2, longest=7, cells=RUNS, as_printed=True),
    "PolynomialSum": lambda: PolynomialSum(1.5, 0.5, 1, reach=32, cells=RUNS),
    "PolynomialSum, as printed": lambda: PolynomialSum(
        2, 0.25, 1, reach=16, cells=RUNS, as_printed=True
    ),
    "InputPerturbation": lambda: InputPerturbation(1, Window(8), cells=RUNS),
    "ExponentialSum, 0.9": lambda: ExponentialSum(0.9, 1, cells=RUNS),
    "ExponentialSum, 0.9999": lambda: ExponentialSum(0.9999, 1, cells=RUNS),
    "ExponentialSum, as printed": lambda: ExponentialSum(0.9, 1, cells=RUNS, as_printed=True),
    "ExponentialSum, small epsilon": lambda: ExponentialSum(0.5, 0.01, cells=RUNS),
    **{
        f"RandomizedResponse, {decay.name}": lambda decay=decay: RandomizedResponse(
            0.5, decay=decay, cells=RUNS
        )
        for decay in (Running(), Window(8), Exponential(factor=0.9), Polynomial(1.5, reach=1024))
    },
}


def errors(system: System) -> np.ndarray:
    """Released minus exact at the steps, shape (steps, runs)."""
    bits = np.arange(STEPS[-1]) % 3 == 1
    weights = system.decay.weights(len(bits))
    exact = np.convolve(weights, bits)[: len(bits)]
    released = system.update_many(np.repeat(bits[:, None], RUNS, axis=1).astype(float))
    return (released - exact[:, None])[np.array(STEPS) - 1]


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_measured_std_is_the_predicted_one(name: str) -> None:
    system = seeded_system(11, SYSTEMS[name]())
    for step, error in zip(STEPS, errors(system), strict=True):
        std = system.noise_std(step)
        np.testing.assert_allclose(error.std(), std, rtol=0.02)
        assert abs(error.mean()) < 5 * std / RUNS**0.5
        exceeded = (np.abs(error) > system.error_at(0.05, step)).mean()
        if not isinstance(system, RandomizedResponse):  # whose law depends on the bits: a bound
            assert abs(exceeded - 0.05) < 5 * (0.05 * 0.95 / RUNS) ** 0.5
        else:
            assert exceeded < 0.05


def test_a_scale_that_is_three_percent_off_is_noticed() -> None:
    system = seeded_system(11, SYSTEMS["ExponentialSum, 0.9"]())
    last = errors(system)[-1]
    with pytest.raises(AssertionError):
        np.testing.assert_allclose(last.std() * 1.03, system.noise_std(STEPS[-1]), rtol=0.02)


def test_histograms_have_the_predicted_noise_in_every_category() -> None:
    names = [f"c{place}" for place in range(RUNS)]
    system = seeded_system(4, DecayedHistogram(names, 1, decay=Exponential(factor=0.9)))
    released = system.update_many(["c0"] * STEPS[-1])
    for step in STEPS:
        np.testing.assert_allclose(released[step - 1, 1:].std(), system.noise_std(step), rtol=0.02)


@pytest.mark.parametrize("kind", ["individual", "holistic"])
def test_predicates_have_the_predicted_noise(kind: str) -> None:
    """Each predicate of each history is called in Python, so there are fewer runs.

    Of one draw of discrete Laplace noise, the law with the heaviest tails here, the measured std
    is off by sqrt(5 / 4 / 40,000) = 0.56 %: two per cent are 3.6 times that.
    """
    runs = 40_000
    if kind == "individual":
        made = PredicateSum(lambda event: event, 1, decay=Window(6), cells=runs)
    else:
        made = HolisticPredicateSum(lambda history: history[-1], 3, 1, decay=Window(6), cells=runs)
    system = seeded_system(4, made)
    released = np.concatenate([system.update_many([[0] * runs]) for _ in range(STEPS[-1])])
    for step in STEPS:
        np.testing.assert_allclose(released[step - 1].std(), system.noise_std(step), rtol=0.02)


def _many_cells(single: GaugePlan, window: int | None) -> GaugePlan:
    """The plan of a count of different values, in as many cells as runs."""
    (name, decay) = single.views[0]
    plan = design(
        request_of(
            views={name: decay},
            unit="event",
            guarantee=single.guarantee,
            cells=RUNS,
            neighboring_relation="add_or_remove_one",
            max_change=1,
            max_per_step=single.max_per_step,
            distinct="ever" if window is None else window,
            end=single.end,
        )
    )
    assert type(single.strategy) is type(plan.strategy)
    return plan


@pytest.mark.parametrize("window", [None, 1, 5, 8])
@pytest.mark.parametrize("promised", [{"epsilon": 1}, {"guarantee": GaussianDP(1)}])
def test_counts_of_different_values_have_the_predicted_noise(window, promised) -> None:
    system = DistinctCount(
        **promised, window=window, end=STEPS[-1], neighboring_relation="add_or_remove_one"
    )
    plan = _many_cells(system.plan, window)
    counts = np.repeat((np.arange(STEPS[-1]) % 4)[:, None], RUNS, axis=1)
    exact = np.cumsum(counts, axis=0) if window is None else counts
    rows = seeded_meter(11, plan).advance(counts)
    released = Reading(plan, [system.decay]).decode(rows, len(counts))[0]
    for step in STEPS:
        error, std = released[step - 1] - exact[step - 1], system.noise_std(step)
        np.testing.assert_allclose(error.std(), std, rtol=0.02)
        assert abs(error.mean()) < 5 * std / RUNS**0.5
