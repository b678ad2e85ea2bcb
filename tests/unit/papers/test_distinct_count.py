"""DistinctCount: what goes in, what comes out, what is refused; the state stays private."""

import itertools
import threading

import numpy as np
import pytest

from tidegauge.errors import (
    InvalidInput,
    InvalidParameter,
    LiveState,
    StreamEnded,
    UnsupportedCombination,
)
from tidegauge.mechanisms import meter as metering
from tidegauge.papers.bolot import DistinctCount
from tidegauge.privacy.guarantee import ZCDP, GaussianDP
from tidegauge.strategies.blocks import Blocks
from tidegauge.strategies.distinct import Anchored, Shaped

STREAM = [["a", "b"], ["a"], [], ["c", 1, "1"], ["b"], [], [], ["\u00e9", "e\u0301"]]


@pytest.fixture
def exact(monkeypatch):
    """Measurements without noise."""

    def silent(strategy, state, law, words, totals, first):
        return strategy.encode(state["encoder"], totals, first)

    monkeypatch.setattr(metering, "measure", silent)


def slow(stream, window):
    found = []
    for t in range(len(stream)):
        seen = stream[0 if window is None else max(0, t - window + 1) : t + 1]
        found.append(len({str(value) for step in seen for value in step}))
    return found


@pytest.mark.parametrize("window", [None, 1, 2, 3, 5, 20])
def test_counts_are_those_of_different_values(exact, window):
    for options in ({"guarantee": GaussianDP(1)}, *([] if window is None else [{"epsilon": 1}])):
        with DistinctCount(**options, window=window, end=64) as system:
            out = system.update_many(STREAM)
            later = [float(system.update(step)) for step in STREAM]
        expected = slow(STREAM * 2, window)
        assert expected == pytest.approx([*out, *later], abs=1e-4)


def test_blocks_and_single_steps_agree(exact):
    rng = np.random.default_rng(2)
    stream = [rng.integers(0, 12, rng.integers(0, 4)).tolist() for _ in range(60)]
    for window, size in itertools.product((1, 4, 11), (1, 3, 60)):
        system = DistinctCount(guarantee=GaussianDP(1), window=window)
        out = [system.update_many(stream[i : i + size]) for i in range(0, 60, size)]
        assert slow(stream, window) == pytest.approx(np.concatenate(out), abs=1e-4)


def test_both_relations_since_the_start_cost_two_in_l1_and_its_root_in_l2():
    for relation in ("replace_one", "add_or_remove_one"):
        paper = DistinctCount(1, end=8, tree="paper", neighboring_relation=relation)
        assert isinstance(paper.plan.strategy, Blocks)
        assert 2 * 4 == paper.sensitivity  # levels 1, 2, 4, 8
        gaussian = DistinctCount(guarantee=ZCDP(0.5), end=8, tree="paper")
        assert float(gaussian.sensitivity) == pytest.approx((2 * 4) ** 0.5, rel=1e-6)


def test_the_best_strategies_are_better_than_the_papers_tree():
    for options in ({"epsilon": 1}, {"guarantee": GaussianDP(1)}):
        stds = []
        for tree in ("best", "paper"):
            system = DistinctCount(**options, end=1024, tree=tree)
            stds.append(max(system.noise_std(t) for t in (255, 511, 767, 1023)))
        assert 3 * stds[0] < stds[1]


def test_windows_have_strategies_of_their_own():
    assert isinstance(DistinctCount(1, window=256).plan.strategy, Anchored)
    shaped = DistinctCount(
        guarantee=GaussianDP(1), window=256, neighboring_relation="add_or_remove_one"
    )
    assert isinstance(shaped.plan.strategy, Shaped)
    assert shaped.noise_std(10**6) <= 3.6
    assert shaped.error_at(0.05, 10**6) == pytest.approx(1.96 * shaped.noise_std(10**6), rel=1e-3)
    three = DistinctCount(
        guarantee=GaussianDP(1), window=256, values=3, neighboring_relation="add_or_remove_one"
    )
    assert three.noise_std(10**6) == pytest.approx(3 * shaped.noise_std(10**6), rel=5e-3)
    with pytest.raises(UnsupportedCombination, match="DistinctCount"):
        DistinctCount(1, window=256, tree="paper")


def test_measured_noise_is_the_predicted_one():
    for options in ({"epsilon": 1, "window": 8}, {"guarantee": GaussianDP(1), "window": 32}):
        system = DistinctCount(**options)
        out = system.update_many([[]] * 40_000)[1000:]
        assert system.noise_std(20_000) == pytest.approx(out.std(), rel=0.25)
        assert abs(out.mean()) < system.noise_std(20_000)


@pytest.mark.parametrize(
    "step", ["ab", b"ab", 7, None, [None], [1.5], [True], [["a"]], [b"a"], {"a": 1.0}.values()]
)
def test_what_is_no_list_of_values_is_refused_and_changes_nothing(exact, step):
    system = DistinctCount(guarantee=GaussianDP(1), window=3)
    system.update(["a"])
    for call in (lambda: system.update(step), lambda: system.update_many([["b"], step])):
        with pytest.raises(InvalidInput) as refused:
            call()
        assert "ab" not in str(refused.value).replace("able", "")
    assert 1 == system.step
    assert system.update([]) == pytest.approx(1, abs=1e-4)  # nothing of b


def test_a_block_beyond_the_end_is_refused_and_changes_nothing(exact):
    system = DistinctCount(guarantee=GaussianDP(1), window=3, end=3)
    system.update(["a"])
    with pytest.raises(StreamEnded):
        system.update_many([["b"], ["c"], ["d"]])
    assert [2, 2] == pytest.approx(system.update_many([["e"], []]), abs=1e-4)
    for steps in ("abc", 7, None):
        with pytest.raises(InvalidInput):
            system.update_many(steps)


@pytest.mark.parametrize(
    "options",
    [
        {"window": 0}, {"window": 2.5}, {"window": (1 << 20) + 1}, {"values": 0}, {"tree": "oak"},
        {"neighboring_relation": "none"}, {"end": 0}, {"epsilon": 0}, {"epsilon": None},
    ],
)  # fmt: skip
def test_impossible_parameters_are_refused(options):
    with pytest.raises(InvalidParameter):
        DistinctCount(**({"epsilon": 1} | options))


def test_nothing_of_the_values_shows():
    system = DistinctCount(1, window=3)
    system.update(["N-SECRET-42"])
    assert "SECRET" not in repr(system)
    assert "SECRET" not in system.plan.statement()


@pytest.mark.parametrize("window", [None, 4])
@pytest.mark.parametrize("place", ["before", "inside", "after the release"])
def test_an_interruption_while_values_are_remembered_ends_the_system(monkeypatch, window, place):
    """Going on would count a window that slid no further, or miss values for good."""
    system = DistinctCount(guarantee=GaussianDP(1), window=window)
    system.update(["a"])
    take = type(system._seen).take

    class Interrupting(list):
        def __iter__(self):
            yield next(super().__iter__())
            raise KeyboardInterrupt

    def interrupted(seen, block):
        if place == "inside":
            take(seen, Interrupting(block))
        raise KeyboardInterrupt

    def released_and_interrupted(system, exact):
        release(system, exact)
        raise KeyboardInterrupt

    release = DistinctCount._released
    late = place == "after the release"
    kind, name = (DistinctCount, "_released") if late else (type(system._seen), "take")
    with monkeypatch.context() as patched:
        patched.setattr(kind, name, released_and_interrupted if late else interrupted)
        with pytest.raises(KeyboardInterrupt):
            system.update_many([["b"], ["c"], []])
    for _ in range(2):
        with pytest.raises(LiveState, match="interrupted"):
            system.update(["d"])
    assert 4 == system.step


def test_a_second_thread_inside_a_block_is_refused(monkeypatch):
    """Both would count from one state, and one event would count in both."""
    system = DistinctCount(guarantee=GaussianDP(1), window=4)
    count, refused = system._seen.counts, []

    def slow_count(block):
        def second():
            with pytest.raises(LiveState, match="thread"):
                system.update(["b"])
            refused.append(True)

        other = threading.Thread(target=second)
        other.start()
        other.join()
        return count(block)

    monkeypatch.setattr(system._seen, "counts", slow_count)
    system.update(["a"])
    assert [True] == refused
    assert 1 == system.step
