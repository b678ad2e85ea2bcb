import copy
import math
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tidegauge.errors import (
    InvalidInput,
    InvalidParameter,
    LiveState,
    StreamEnded,
    UnsupportedCombination,
)
from tidegauge.papers import perrier
from tidegauge.papers.perrier import (
    BinaryTree,
    ThresholdedSum,
    error_budget,
    first_needed,
    private_threshold,
    smooth_sensitivity,
)
from tidegauge.papers.perrier.plans import plans_of
from tidegauge.papers.system import grains_of
from tidegauge.privacy.guarantee import ApproxDP, GaussianDP
from tidegauge.privacy.unit import Contributions
from tidegauge.testing import seeded_system, seeded_thresholded

BAD_READINGS: list[Any] = [
    [1.0, math.nan],
    [1.0, math.inf],
    [1.0, -math.inf],
    [1.0, None],
    [1.0, "2"],
    ["one", "two"],
    [1.0, -0.01],
    [1.0, 61_370],
    [[1.0], [2.0]],
    [1.0, [2.0]],
    1.0,
    np.ma.masked_array([1.0, 2.0], [False, True]),
    [1j],
    [b"1"],
]


def made(seed: int = 1, **changed: Any) -> ThresholdedSum:
    """A small system whose threshold is good: many readings above it, and a large epsilon."""
    asked: dict[str, Any] = {
        "upper": 100,
        "first": 400,
        "end": 1000,
        "epsilon": 8,
        "delta": Fraction(1, 100),
        "p": Fraction(1, 4),
        "beta_lt": 0.1,
        "grain": 0.01,
    } | changed
    return seeded_thresholded(seed, ThresholdedSum(asked.pop("upper"), **asked))


def readings(count: int = 1000) -> np.ndarray:
    """Values from 0 to 20, in cents, with some at 90."""
    source = np.random.Generator(np.random.PCG64(1))
    values = np.round(source.random(count) * 20, 2)
    values[::50] = 90
    return values


def test_nothing_is_released_before_the_first_sum() -> None:
    system = made()
    early = system.update_many(readings()[:399])
    assert np.isnan(early).all()
    assert (399, None) == (system.step, system.threshold)
    assert not math.isnan(system.update(readings()[399]))
    assert system.threshold is not None


@pytest.mark.parametrize("strategy", ["BinaryTree", None, "AllWindowSum"])
def test_released_sums_are_truncated_sums_and_noise(strategy: str | None) -> None:
    values, system = readings(), made(strategy=strategy)
    released = system.update_many(values)
    assert system.threshold is not None
    assert 12 < system.threshold < 30
    exact = np.cumsum(np.minimum(values, float(system.threshold)))
    for step in (400, 401, 407, 655, 1000):
        assert abs(released[step - 1] - exact[step - 1]) < 6 * system.noise_std(step)
    assert system.noise_std(400) < 6 * float(system.threshold)
    assert abs(released[-1] - values.sum()) > 1000  # the outliers of 90 are cut


def test_blocks_and_single_steps_give_the_same_bytes() -> None:
    whole = made(3).update_many(readings())
    one = made(3)
    assert whole.tobytes() == np.array([one.update(x) for x in readings()]).tobytes()
    parts = made(3)
    blocks = [parts.update_many(block) for block in np.split(readings(), [1, 399, 400, 650])]
    assert whole.tobytes() == np.concatenate(blocks).tobytes()


def test_the_first_sum_has_what_the_threshold_left() -> None:
    for share in (Fraction(1, 2), Fraction(1, 10)):
        system = made(share=share, epsilon=4)
        assert_spends(system)
        assert system._rule.epsilon == 4 * share


def assert_spends(system: ThresholdedSum) -> None:
    """The first readings cost epsilon in all, and so does each later one."""
    for most in (1, 1234, 10_000):
        first, rest = system._plans(most)
        assert rest is not None
        for plan, spent in ((first, system._rule.epsilon), (rest, 0)):
            moved = plan.neighbors.largest * (1 if plan is first else len(plan.strategy.levels))
            assert moved / plan.law.scale + spent <= system.cost.epsilon
            assert most == plan.neighbors.largest


def test_a_first_sum_that_spends_the_thresholds_budget_again_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    system = made()

    def twin(most: int) -> Any:
        return plans_of(system.cost, system.cost.epsilon, 400, 1000, system._strategy, most)

    monkeypatch.setattr(system, "_plans", twin)
    with pytest.raises(AssertionError):
        assert_spends(system)


def test_first_readings_are_truncated_too() -> None:
    values = np.zeros(1000)
    values[:40] = 100  # of 400, below the quantile of lambda p: 85 of 400
    system = made(beta_lt=0.4)
    released = system.update_many(values)
    assert system.threshold is not None
    assert float(system.threshold) < 50
    assert released[399] < 40 * float(system.threshold) + 8 * system.noise_std(400) + 1e-9
    assert released[399] < 2500


def test_an_outlier_leaves_the_average_where_it_is() -> None:
    source = np.random.Generator(np.random.PCG64(2))
    values = np.round(source.normal(2, 0.1, 30_000), 2)
    values[[17, 25_000]] = 61_370
    system = made(
        upper=100_000, first=20_000, end=30_000, epsilon=2, p=0.05, delta=None, beta_lt=0.006
    )
    average = system.update_many(values)[19_999:] / np.arange(20_000, 30_001)
    assert system.threshold is not None
    assert abs(float(system.threshold) - 2.2) < 0.2
    np.testing.assert_allclose(average, 2, atol=0.1)


def test_all_zero_and_all_equal() -> None:
    zero = made(first=900, p=0.5, end=1000)
    released = zero.update_many(np.zeros(1000))
    assert 0 == zero.threshold
    assert (released[899:] == 0).all()
    assert (0, 0) == (zero.noise_std(950), zero.sensitivity)
    equal = made(first=900, p=0.5, end=1000)
    equal.update_many(np.full(1000, 7.25))
    assert equal.threshold is not None
    assert abs(float(equal.threshold) - 7.25) < 0.5
    top = made()
    top.update_many(np.full(1000, 100))
    assert 100 == top.threshold


def test_thresholds_are_clamped_on_both_sides() -> None:
    few = [50.0, 50.0, 50.0]
    found = {private_threshold(few, 100, 1, 0.01, p=0.9, beta_lt=0.4, grain=1) for _ in range(40)}
    assert {0.0, 100.0} <= found
    assert all(0 <= threshold <= 100 and threshold == int(threshold) for threshold in found)


def test_money_is_counted_in_whole_grains() -> None:
    cents = np.array([0.1 + 0.2, 0.3, 0.29, 19.99, 1.005])
    assert [30, 30, 29, 1999] == grains_of(cents, 100, 100)[:4].tolist()
    exact = made(grain=0.01, epsilon=13, delta=Fraction(1, 1000), share=Fraction(1, 4))
    released = exact.update_many(np.tile([0.1, 0.2, 0.3, 19.99], 250))
    in_cents = released[399:] * 100
    np.testing.assert_allclose(in_cents, np.rint(in_cents), atol=1e-6)  # noise too


@pytest.mark.parametrize("bad", BAD_READINGS, ids=str)
def test_what_is_no_reading_is_refused_and_nothing_changes(bad: Any) -> None:
    system = made(end=1001)
    system.update_many(readings()[:398])
    for take in (lambda: system.update_many(bad), lambda: private_threshold(bad, 100, 1, 1e-6)):
        with pytest.raises(InvalidInput) as refused:
            take()
        assert "61370" not in str(refused.value).replace(",", "")
    assert 398 == system.step
    same = made(end=1001).update_many(readings())
    assert same[398:].tobytes() == system.update_many(readings()[398:]).tobytes()


def test_one_reading_is_a_number() -> None:
    for bad in (None, "1", math.nan, [1.0], -1, 101):
        with pytest.raises(InvalidInput):
            made().update(bad)  # type: ignore[arg-type]  # refused


def test_the_stream_ends_where_it_was_declared() -> None:
    system = made()
    system.update_many(readings())
    with pytest.raises(StreamEnded):
        system.update(1.0)
    short = made()
    with pytest.raises(StreamEnded):
        short.update_many(readings(1001))
    assert np.isnan(short.update_many(readings()[:100])).all()  # shorter than first: nothing
    assert 100 == short.step


def test_the_first_sum_alone() -> None:
    system = made(first=400, end=400)
    released = system.update_many(readings()[:400])
    assert [399, 0] == [int(np.isnan(released).sum()), system.sensitivity]
    assert system.noise_std(400) > 0
    with pytest.raises(StreamEnded):
        system.update(1.0)


def test_a_stream_without_an_end() -> None:
    system = made(end=None, strategy=None, delta=1e-6)
    released = system.update_many(readings(2000))
    assert 399 == np.isnan(released).sum()
    assert system.noise_std(1 << 20) > system.noise_std(2000)


@pytest.mark.parametrize(
    "changed",
    [
        {"upper": 0},
        {"upper": -1},
        {"upper": math.nan},
        {"upper": math.inf},
        {"upper": "100"},
        {"upper": 100.005},
        {"upper": 1e12},
        {"grain": 0},
        {"grain": -1},
        {"grain": 3},
        {"first": 0},
        {"first": -1},
        {"first": 1001},
        {"first": 1.5},
        {"first": None},
        {"end": 0},
        {"end": 399},
        {"end": "1000"},
        {"epsilon": 0},
        {"epsilon": -1},
        {"epsilon": math.nan},
        {"epsilon": None},
        {"delta": 0},
        {"delta": 1},
        {"delta": "0"},
        {"end": None, "delta": None},
        {"share": 0},
        {"share": 1},
        {"p": 0},
        {"p": 1},
        {"lam": 0},
        {"lam": 1},
        {"beta_lt": 0},
        {"beta_lt": 0.5},
        {"strategy": "no such"},
        {"unit": "household"},
        {"unit": None},
    ],
    ids=str,
)
def test_impossible_parameters_are_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        made(**changed)


def test_what_is_not_proved_is_refused() -> None:
    with pytest.raises(UnsupportedCombination, match="both sides"):
        made(unit=Contributions(20))
    with pytest.raises(UnsupportedCombination):
        made(epsilon=30)
    with pytest.raises(UnsupportedCombination):
        made(beta_lt=0.0001)
    with pytest.raises(UnsupportedCombination, match="with an end"):
        made(end=None)
    with pytest.raises(UnsupportedCombination):
        made(strategy="WindowSum")


def test_cost_sensitivity_and_noise_are_known_in_advance() -> None:
    system = made(delta=None, end=1000)
    assert ApproxDP(8, Fraction(1, 10**6)) == system.cost
    assert 1000 == system.sensitivity  # 10 levels of 600 steps, of 100 each
    assert "Mechanism 1" in system.source
    with pytest.raises(InvalidParameter, match="before there is one"):
        system.noise_std(400)
    for bad in (-1, 101, math.nan, "1"):
        with pytest.raises(InvalidParameter):
            system.noise_std(400, bad)  # type: ignore[arg-type]  # refused
    for step in (0, 399, 1001):
        with pytest.raises(InvalidParameter):
            system.noise_std(step, 10)
    np.testing.assert_allclose(system.noise_std(400, 10), math.sqrt(2) * 10 / 4, rtol=1e-4)
    last = math.hypot(math.sqrt(2) * 10 / 4, math.sqrt(2 * 9) * 10 * 10 / 8)
    np.testing.assert_allclose(system.noise_std(400 + 511, 10), last, rtol=1e-4)
    system.update_many(readings())
    assert system.threshold is not None
    assert 10 * system.threshold == system.sensitivity
    assert system.noise_std(400) == system.noise_std(400, system.threshold)


def test_the_rest_may_be_gaussian() -> None:
    ours, theirs = made(strategy=None, delta=1e-6, epsilon=1), made(delta=1e-6, epsilon=1)
    assert ours.noise_std(999, 10) < theirs.noise_std(999, 10)


def test_a_live_system_is_not_copied_and_ends_when_it_is_closed() -> None:
    system = made()
    system.update_many(readings()[:10])
    for act in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(LiveState):
            act(system)
    system._turn._owner += 1
    with pytest.raises(LiveState, match="fork"):
        system.update(1.0)
    system._turn._owner -= 1
    with system:
        assert "step=10" in repr(system)
    with pytest.raises(LiveState, match="closed"):
        system.update(1.0)
    assert not system._buffer.any()
    system.close()
    whole = made()
    whole.update_many(readings())
    whole.close()
    with pytest.raises(LiveState):
        whole.update(1.0)


def test_an_interruption_at_the_threshold_ends_the_system() -> None:
    system = made()

    def interrupted(*_: Any) -> int:
        raise KeyboardInterrupt

    system._draw = interrupted
    with pytest.raises(KeyboardInterrupt):
        system.update_many(readings())
    with pytest.raises(LiveState, match="interrupted"):
        system.update_many(readings()[:1])


def test_nothing_of_the_data_is_shown() -> None:
    system = made()
    system.update_many(np.full(500, 61.37))
    shown = repr(system) + str(system) + repr(system._rule)
    assert "61" not in shown
    assert not len(system._buffer)


def test_the_plain_tree() -> None:
    values = readings(63)
    tree = seeded_system(1, BinaryTree(100, end=63, epsilon=1000, grain=0.01))
    released = tree.update_many(values)
    for step in (1, 31, 32, 63):
        assert abs(released[step - 1] - values[:step].sum()) < 7 * tree.noise_std(step)
    assert 6 * 100 == tree.sensitivity
    with BinaryTree(1440, end=1 << 10, guarantee=GaussianDP(1)) as gaussian:
        np.testing.assert_allclose(float(gaussian.sensitivity), 1440 * math.sqrt(11), rtol=1e-6)
        assert "BT" in gaussian.source
    with BinaryTree(1000, end=8, epsilon=1, grain=50, cells=2) as wide:
        assert (3, 2) == wide.update_many(np.full((3, 2), 999.0)).shape
        with pytest.raises(InvalidInput, match="1000"):
            wide.update([1, 1001])
        assert 4000 == wide.sensitivity


def test_the_smooth_sensitivity_refuses_what_is_none() -> None:
    for values, rank, b, upper in (
        ([1, 2], 0, 0.1, 5),
        ([1, 2], 3, 0.1, 5),
        ([1, 2], 1, 0, 5),
        ([1, 2], 1, math.nan, 5),
        ([1, 2], 1, 0.1, 0),
        ([1, 2], 1, 0.1, -5),
        ([1, 2], 1, 0.1, 1e200),
    ):
        with pytest.raises(InvalidParameter):
            smooth_sensitivity(values, rank, b, upper)
    for bad in ([], [6], [-1], [math.nan], [[1]], "12", [None]):
        with pytest.raises(InvalidInput):
            smooth_sensitivity(bad, 1, 0.1, 5)  # type: ignore[arg-type]  # refused
    with pytest.raises(UnsupportedCombination):
        smooth_sensitivity([1], 1, 1e-12, 5)


def test_the_error_budget() -> None:
    found = error_budget(1440, 10**6, 1, 150, quantile=150)
    assert 0.02 == pytest.approx(found.beta)
    assert 54_602 == found.first == first_needed()
    assert found.risk <= 0.006
    assert found.worst_gain < 1 < (found.light_gain or 0)
    assert error_budget(1440, 10**6, 1, 150).light_gain is None
    assert error_budget(1440, 10**6, 1, 1440).outliers == 0
    rule = found.margin / found.kappa
    np.testing.assert_allclose(rule, (math.log(1 / 0.012) + math.log(1 / 0.004)) / 0.25, rtol=1e-9)
    for changed in ({"upper": 0}, {"end": 1}, {"epsilon": 0}, {"threshold": 1441}, {"delta": 0}):
        with pytest.raises(InvalidParameter):
            error_budget(**{"upper": 1440, "end": 10**6, "epsilon": 1, "threshold": 150} | changed)
    with pytest.raises(InvalidParameter, match="lam"):
        first_needed(0.005, 0.9999, 1e-6)
    for name in ("beta_qt", "beta_rt", "beta_out", "beta_lap", "p", "lam"):
        for value in (0, 1, -0.1, math.nan):
            with pytest.raises(InvalidParameter):
                error_budget(1440, 10**6, 1, 150, **{name: value})


def test_names_are_public() -> None:
    assert set(perrier.__all__) <= set(dir(perrier))
    for name in perrier.__all__:
        assert len(getattr(perrier, name).__doc__) > 40
    with pytest.raises(AttributeError):
        _ = perrier.nothing


# --- what is refused -------------------------------------------------------------------------


@pytest.mark.parametrize("truths", [[True], np.array([False, True])])
def test_a_threshold_of_booleans_is_refused(truths):
    with pytest.raises(InvalidInput, match="got booleans"):
        private_threshold(truths, 1440, 1, 1e-6, grain=1)
    with pytest.raises(InvalidInput, match="got booleans"):
        smooth_sensitivity(truths, 1, 0.5, 1440)


@pytest.mark.parametrize("chances", [{"beta_rt": 0.4, "beta_out": 0.6}, {"beta_out": 0.985}])
def test_chances_that_are_one_together_are_refused(chances):
    with pytest.raises(InvalidParameter, match="chances below 1 together"):
        error_budget(1440, 10**6, 1, 150, **chances)
    assert error_budget(1440, 10**6, 1, 150, beta_out=0.98).beta < 1


@pytest.mark.parametrize(("p", "lam"), [(1e-9, 0.85), (1e-12, 1e-9), (1e-300, 0.85)])
def test_shares_that_no_stream_can_show_are_what_is_refused(p, lam):
    with pytest.raises(InvalidParameter, match=r"larger p, lam and beta_qt, got p="):
        error_budget(1440, 10**6, 1, 150, p=p, lam=lam)


@pytest.mark.parametrize(("p", "lam"), [(0.005, 1e-6), (0.005, 1e-300), (1e-9, 1e-9)])
def test_of_the_rarest_readings_one_has_to_be_there(p, lam):
    first = first_needed(p, lam)
    assert first * math.log1p(-p) == pytest.approx(math.log(0.006), rel=1e-3)
    assert perrier.quantile_risk(first, p, lam) == pytest.approx(0.006, rel=3e-3)
