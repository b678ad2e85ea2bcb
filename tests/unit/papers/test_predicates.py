import datetime
import itertools
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest

from tidegauge.errors import InvalidInput, InvalidParameter, LiveState, UnsupportedCombination
from tidegauge.papers.bolot import (
    DecayedHistogram,
    ExponentialSum,
    History,
    HolisticPredicateSum,
    PredicateSum,
    changed_values,
)
from tidegauge.papers.system import GRAINS
from tidegauge.planning.where import condition
from tidegauge.privacy.guarantee import GaussianDP
from tidegauge.strategies.decay import Exponential, Running, Window
from tidegauge.testing import seeded_system


def first(history: History) -> bool:
    return history[-1] not in history[:-1]


def since_change(history: History) -> bool:
    """Whether the last two events are alike: replacing one changes two steps."""
    return len(history) > 1 and history[-1] == history[-2]


def majority(history: History) -> float:
    return sum(history) * 2 > len(history)


# individual predicates


def test_a_predicate_of_one_event_costs_what_the_decayed_sum_costs() -> None:
    decay = Exponential(factor=0.99)
    with (
        PredicateSum(bool, 1, decay=decay, strategy="ExponentialSum") as ours,
        ExponentialSum(0.99, 1) as theirs,
    ):
        assert theirs.noise_std(255) == ours.noise_std(255)
        assert theirs.sensitivity == ours.sensitivity


def test_functions_and_expressions_give_the_same_sums() -> None:
    delays = [3, 40, None, 17, -5]
    function = seeded_system(1, PredicateSum(lambda d: d is not None and d > 15, 1e5))
    expression = seeded_system(1, PredicateSum(_of_column("delay > 15"), 1e5))
    assert function.update_many(delays).tobytes() == expression.update_many(delays).tobytes()
    exact = seeded_system(1, PredicateSum(lambda d: (d or 0) / 40 if (d or 0) > 0 else 0, 1e5))
    expected = np.cumsum([3 / 40, 1, 0, 17 / 40, 0])
    np.testing.assert_allclose(exact.update_many(delays), expected, atol=1e-2)


def _of_column(text: str) -> Any:
    holds = condition(text)
    return lambda delay: holds({"delay": delay})


def _raises(event: object) -> float:
    raise ValueError(f"private {event}")


BAD_PREDICATES: list[Any] = [
    lambda event: float("nan"),
    lambda event: -0.001,
    lambda event: 1.001,
    lambda event: "0.5",
    lambda event: None,
    lambda event: np.array([0.5, 0.5]),
    _raises,
]


@pytest.mark.parametrize("predicate", BAD_PREDICATES)
def test_a_bad_predicate_is_refused_leaves_no_trace_and_shows_nothing(predicate: Any) -> None:
    good = [0.25, 0.5]
    for kind in ("individual", "holistic"):
        bad_now = False

        def chosen(event: Any) -> Any:
            return predicate(event) if bad_now else 0.5  # noqa: B023  # read when called

        made = (
            PredicateSum(chosen, 1) if kind == "individual" else HolisticPredicateSum(chosen, 2, 1)
        )
        system = seeded_system(9, made)
        first_values = system.update_many(good)
        bad_now = True
        with pytest.raises(InvalidInput) as error:
            system.update_many(["private 7351", "private 7352"])
        assert "735" not in str(error.value)
        assert error.value.__cause__ is None
        bad_now = False
        later = system.update_many(good)
        again = seeded_system(
            9,
            PredicateSum(chosen, 1) if kind == "individual" else HolisticPredicateSum(chosen, 2, 1),
        )
        whole = again.update_many([*good, *good])
        assert whole.tobytes() == np.concatenate([first_values, later]).tobytes()


def test_what_is_no_predicate_or_no_sequence_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="function"):
        PredicateSum("delay > 15", 1)  # type: ignore[arg-type]  # refused
    with pytest.raises(InvalidParameter, match="strategy"):
        PredicateSum(bool, 1, strategy="Exponential")
    with pytest.raises(UnsupportedCombination, match="ExponentialSum"):
        PredicateSum(bool, 1, strategy="ExponentialSum")  # of a running sum
    for events in ("text", {"a": 1}, 5, None):
        with pytest.raises(InvalidInput, match="sequence"):
            PredicateSum(bool, 1).update_many(events)  # type: ignore[arg-type]  # refused


# holistic predicates


def test_a_k_sensitive_predicate_has_k_times_the_noise() -> None:
    for k in (1, 2, 5):
        for decay in (Running(), Window(16), Exponential(factor=0.9)):
            one = PredicateSum(bool, 1, decay=decay, horizon=64)
            holistic = HolisticPredicateSum(first, k, 1, decay=decay, horizon=64)
            np.testing.assert_allclose(k * one.noise_std(40), holistic.noise_std(40), rtol=1e-6)
            assert k * one.sensitivity == holistic.sensitivity
    gaussian = HolisticPredicateSum(first, 4, guarantee=GaussianDP(Fraction(1)), decay=Window(2))
    single = PredicateSum(bool, guarantee=GaussianDP(Fraction(1)), decay=Window(2))
    assert single.noise_std(9) < gaussian.noise_std(9) <= 4 * single.noise_std(9)


@pytest.mark.parametrize(
    ("predicate", "k"), [(first, 2), (since_change, 2), (lambda history: history[-1] % 2, 1)]
)
def test_samples_find_the_sensitivity(predicate: Any, k: int) -> None:
    samples = list(itertools.product(range(3), repeat=4))
    assert k == changed_values(predicate, samples, range(3))


def test_a_wrong_k_is_caught_on_samples() -> None:
    """A majority changes at every later step: no small k is right."""
    samples = list(itertools.product((0, 1), repeat=7))
    declared = 2
    assert declared < changed_values(majority, samples, (0, 1))


def test_a_predicate_that_keeps_state_is_caught_on_samples() -> None:
    calls = itertools.count()
    with pytest.raises(InvalidInput, match="history alone"):
        changed_values(lambda history: next(calls) % 2, [[1, 2, 3]], [1])


def test_the_history_cannot_be_changed_by_a_predicate() -> None:
    def greedy(history: Any) -> float:
        history[0]["amount"] = 0
        return 1

    def grows(history: Any) -> float:
        history.append(1)
        return 1

    for predicate in (greedy, grows, lambda history: history.__setitem__(0, 1) or 1):
        system = HolisticPredicateSum(predicate, 1, 1)
        with pytest.raises(InvalidInput):
            system.update({"amount": 5})
        assert 0 == system.step == len(system._events[0])


def test_events_changed_by_the_caller_do_not_change_the_past() -> None:
    seen: list[Any] = []

    def predicate(history: History) -> float:
        seen.append(tuple(repr(event) for event in history))
        return 0

    system = HolisticPredicateSum(predicate, 1, 1)
    events: list[Any] = [[1], {"a": [1]}, np.array([1]), {1}, (1, [1])]
    for event in events:
        system.update(event)
    kept = seen[-1]
    events[0].append(2)
    events[1]["a"].append(2)
    events[2][0] = 2
    events[3].add(2)
    events[4][1].append(2)
    system.update(0)
    assert kept == seen[-1][:-1]

    class Changeable:
        __hash__ = None  # type: ignore[assignment]  # what can change has none

    with pytest.raises(InvalidInput, match="do not change"):
        system.update(Changeable())
    assert len(events) + 1 == system.step


class Plain:
    """Hashable by identity, and can be changed."""

    def __init__(self) -> None:
        self.seen = False


@dataclass(frozen=True)
class Holder:
    part: Any


@dataclass(unsafe_hash=True)
class Loose:
    part: Any


class Kind(Enum):
    HUMAN = 1


class Named(NamedTuple):
    name: str


@pytest.mark.parametrize(
    "event",
    [
        Plain(),
        (Plain(),),
        [Plain()],
        {"a": Plain()},
        Holder(Plain()),
        Loose(1),
        np.ma.array([1]),
        np.array([{"a": 1}], object),
    ],
)
def test_objects_that_can_change_are_refused(event: Any) -> None:
    system = HolisticPredicateSum(lambda history: 1, 1, 1)
    with pytest.raises(InvalidInput, match="do not change"):
        system.update(event)
    assert 0 == system.step == len(system._events[0])


def test_what_cannot_change_is_taken_as_it_is() -> None:
    events = [None, Kind.HUMAN, first, Named("a"), Holder((1, "a")), frozenset({1}), Fraction(1, 2)]
    events += [b"a", True, 1.5, np.float32(2), np.datetime64(3, "s"), datetime.date(2026, 1, 2)]
    seen: list[Any] = []

    def predicate(history: History) -> float:
        seen[:] = history
        return 0

    HolisticPredicateSum(predicate, 1, 1).update_many(events)
    assert events == seen
    assert "a" == seen[3].name


def test_kept_arrays_cannot_be_made_writable() -> None:
    event = np.array([[1.0, 2.0], [3.0, 4.0]]).T
    kept: list[Any] = []

    def predicate(history: History) -> float:
        kept[:] = history
        return 0

    HolisticPredicateSum(predicate, 1, 1).update(event)
    np.testing.assert_array_equal(event, kept[0], strict=True)
    HolisticPredicateSum(predicate, 1, 1).update(np.zeros((0, 3)))
    assert (0, 3) == kept[0].shape
    HolisticPredicateSum(predicate, 1, 1).update(event)
    for base in (kept[0], kept[0].base):
        with pytest.raises((ValueError, AttributeError)):
            base.setflags(write=True)


def test_samples_from_iterators_are_all_tried() -> None:
    samples = list(itertools.product((0, 1), repeat=5))
    whole = changed_values(majority, samples, (0, 1))
    assert whole == changed_values(majority, iter(samples), iter((0, 1)))
    assert 1 < whole


@pytest.mark.parametrize(("samples", "events"), [([], [1]), ([[]], [1]), ([[1, 2]], [])])
def test_samples_that_try_nothing_are_refused(samples: Any, events: Any) -> None:
    with pytest.raises(InvalidInput, match="every k would pass"):
        changed_values(first, samples, events)


def test_a_history_reads_like_a_sequence() -> None:
    history = History([1, 2, 3, 4], 3)
    assert [1, 2, 3] == list(history)
    assert (3, 3, (2, 3), 3) == (history[-1], history[2], history[1:], len(history))
    assert "4" not in repr(history)
    for index in (3, -4):
        with pytest.raises(IndexError):
            history[index]


@pytest.mark.parametrize("k", [0, -1, 1.5, True, None])
def test_a_k_that_is_none_is_refused(k: Any) -> None:
    with pytest.raises(InvalidParameter, match="k"):
        HolisticPredicateSum(first, k, 1)


def test_closing_forgets_the_history() -> None:
    system = HolisticPredicateSum(first, 2, 1)
    system.update("a")
    system.close()
    assert [[]] == system._events
    with pytest.raises(LiveState):
        system.update("b")


# histograms


def test_absent_categories_decay_like_the_others() -> None:
    events = ["a", ("b", 0.5), None, "a", "b", "c"]
    system = seeded_system(2, DecayedHistogram(["a", "b", "c"], 1e5, decay=Exponential(factor=0.5)))
    released = system.update_many(events)
    exact = np.zeros((6, 3))
    exact[[0, 3], 0], exact[[1, 4], 1], exact[5, 2] = 1, [0.5, 1], 1
    for step in range(1, 6):
        exact[step] += exact[step - 1] / 2
    np.testing.assert_allclose(released, exact, atol=1e-2)


def test_replacing_an_event_pays_for_both_categories() -> None:
    """The paper's Theorem 11 charges one: that guarantee would be twice as weak as claimed."""
    decay = Window(16)
    many = DecayedHistogram(["a", "b", "c"], 1, decay=decay, horizon=64)
    one = PredicateSum(bool, 1, decay=decay, horizon=64)
    assert 2 * one.sensitivity == many.sensitivity
    np.testing.assert_allclose(2 * one.noise_std(40), many.noise_std(40), rtol=1e-5)
    apart = DecayedHistogram(
        ["a", "b", "c"], 1, decay=decay, horizon=64, neighboring_relation="add_or_remove_one"
    )
    assert one.sensitivity == apart.sensitivity
    assert one.sensitivity == DecayedHistogram(["a"], 1, decay=decay, horizon=64).sensitivity


def test_the_charge_is_what_two_neighboring_streams_move() -> None:
    system = DecayedHistogram(["a", "b"], 1, decay=Window(8), horizon=64)
    strategy, worst = system.plan.strategy, 0.0
    streams = [[None] * step + [event] + [None] * 9 for step in range(5) for event in ("a", "b")]
    for x, y in itertools.combinations(streams, 2):
        if x.index("a" if "a" in x else "b") == y.index("a" if "a" in y else "b"):
            rows = [
                strategy.encode(strategy.init_encoder(2), system._exact(s, block=True), 0)
                for s in (x, y)
            ]
            worst = max(worst, float(np.abs(rows[0] - rows[1]).sum()))
    charged = float(system.sensitivity) * GRAINS * 2.0**strategy.lattice_bits
    assert 0.5 * charged < worst <= charged


@pytest.mark.parametrize(
    "bad", ["d", ("a", 1.5), ("a", -1), ("a", float("nan")), ("a", "1"), 5, ("a", 1, 1), ["a"]]
)
def test_events_of_no_category_are_refused_and_leave_no_trace(bad: Any) -> None:
    system = DecayedHistogram(["a", "b"], 1)
    with pytest.raises(InvalidInput, match="Expected"):
        system.update_many(["a", bad])
    assert 0 == system.step


def test_unknown_categories_may_have_a_cell_of_their_own() -> None:
    system = seeded_system(1, DecayedHistogram(["a", "rest"], 1e5, other="rest"))
    np.testing.assert_allclose(system.update_many(["x", "y"])[-1], [0, 2], atol=0.01)
    assert ("a", "rest") == system.categories
    for categories, other in ((["a"], "b"), (3, None), ([], None), (["a", "a"], None)):
        with pytest.raises(InvalidParameter):
            DecayedHistogram(categories, 1, other=other)  # type: ignore[arg-type]  # refused
    with pytest.raises(InvalidInput):
        system.update_many("ab")


def test_a_frozen_object_is_an_event() -> None:
    @dataclass(frozen=True)
    class Flight:
        delay: int

    system = HolisticPredicateSum(lambda h: h[-1].delay > 3, 1, 1)
    assert (2,) == system.update_many([Flight(1), Flight(5)]).shape


@pytest.mark.parametrize("kind", ["individual", "holistic"])
def test_every_cell_has_a_predicate_sum_of_its_own(kind: str) -> None:
    """The same noise in each cell, and the exact sums under it."""
    events = [["a", "b", "b"], ["a", "a", "c"], ["a", "a", "b"]]
    exact = {"individual": [2, 2, 0], "holistic": [1, 2, 2]}[kind]
    made = (
        PredicateSum(lambda event: event == "a", 1, cells=3, decay=Window(2))
        if kind == "individual"
        else HolisticPredicateSum(first, 2, 1, cells=3)
    )
    counted: list[Any] = []
    system = seeded_system(1, made)
    measured = system._meter.advance

    def seen(exact: Any) -> Any:
        counted.append(exact)
        return measured(exact)

    system._meter.advance = seen  # type: ignore[method-assign]  # to see what is measured
    released = np.concatenate([system.update_many(events[:2]), [system.update(events[2])]])
    assert released.shape == (3, 3)
    sums = np.concatenate(counted) / GRAINS
    sums = sums[-2:].sum(axis=0) if kind == "individual" else sums.sum(axis=0)
    assert exact == sums.tolist()
    if kind == "individual":
        alone = PredicateSum(bool, 1, decay=Window(2))
    else:
        alone = HolisticPredicateSum(first, 2, 1)
    assert system.noise_std(3) == pytest.approx(alone.noise_std(3), rel=0.01)


def test_cells_of_a_history_pay_for_changes_of_either_sign() -> None:
    """A unit that takes one value away and brings another: the comb's worst under L2."""
    several = HolisticPredicateSum(first, 2, guarantee=GaussianDP(1), cells=2)
    neighbors = several.plan.neighbors
    assert (-GRAINS, GRAINS) == (neighbors.low, neighbors.high)
    assert (1, 2) == (neighbors.unit.min_separation, neighbors.unit.max_events)


@pytest.mark.parametrize("bad", [[["a"]], [["a", "b", "c"]], ["ab"], [3], [["a", "b"], ["c"]]])
@pytest.mark.parametrize("kind", ["individual", "holistic"])
def test_steps_without_an_event_for_every_cell_leave_no_trace(bad: Any, kind: str) -> None:
    system = (
        PredicateSum(bool, 1, cells=2)
        if kind == "individual"
        else HolisticPredicateSum(lambda history: 1, 1, 1, cells=2)
    )
    with pytest.raises(InvalidInput, match="Expected"):
        system.update_many(bad)
    assert 0 == system.step
    assert system.update_many([["a", "b"]]).shape == (1, 2)
