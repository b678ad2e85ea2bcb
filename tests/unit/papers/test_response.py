import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tidegauge.errors import InvalidInput, InvalidParameter, LiveState, UnsupportedCombination
from tidegauge.mechanisms.reading import Reading
from tidegauge.mechanisms.restoring import restore_gauge, verify_gauge
from tidegauge.noise.intervals import exp_bracket
from tidegauge.noise.laplace import DiscreteLaplace
from tidegauge.noise.randomness import AesWords
from tidegauge.noise.resolver import Tape
from tidegauge.noise.response import BitFlips, response_half_width
from tidegauge.papers.bolot import RandomizedResponse
from tidegauge.privacy.guarantee import ZCDP, PureDP
from tidegauge.strategies.decay import Custom, Decay, Exponential, Running, Window
from tidegauge.strategies.identity import Identity
from tidegauge.strategies.responses import Responses
from tidegauge.testing import seeded_meter, seeded_system

EPSILONS = [Fraction(1, 100), Fraction(1, 2), Fraction(1), Fraction(5), Fraction(30)]


def loss(chance: float) -> float:
    """The largest logarithm of a change of odds, of bits flipped with a chance."""
    return abs(math.log(chance / (1 - chance)))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_words_flip_with_the_chance_that_costs_epsilon(epsilon: Fraction) -> None:
    threshold = int(BitFlips(1 / epsilon)._threshold)
    low, high = exp_bracket(epsilon, 128)  # e^-epsilon
    assert Fraction(threshold, 1 << 64) <= Fraction(high, (1 << 128) + high)
    assert Fraction(threshold + 1, 1 << 64) > Fraction(low, (1 << 128) + low)
    np.testing.assert_allclose(loss(BitFlips(1 / epsilon).chance), float(epsilon), rtol=1e-9)


def test_the_printed_chance_costs_twice_what_is_claimed() -> None:
    """The paper flips with chance 1/2 - epsilon/2, which is no epsilon-DP."""
    for epsilon, expected in ((0.5, 1.0986), (0.9, 2.944)):
        printed = 0.5 - epsilon / 2
        assert round(loss(printed), 4 if epsilon == 0.5 else 3) == expected
        assert loss(printed) > epsilon * 2
        np.testing.assert_allclose(loss(printed), math.log((1 + epsilon) / (1 - epsilon)))
    assert loss(0.5 - 1e-6) == pytest.approx(4e-6, rel=1e-3)  # about 2 epsilon where it is small
    assert 0.5 - 1 / 2 <= 0  # and nothing from epsilon = 1 on


def test_undecided_words_are_resolved_by_the_same_uniform() -> None:
    law = BitFlips(Fraction(2))
    threshold = int(law._threshold)
    words = np.array([[threshold - 1, 0], [threshold, 0], [threshold + 1, 0]], dtype=np.uint64)
    for bits in ([0, 0, 0], [1, 1, 1]):
        values, pending = np.array([9, *bits]), np.empty(3, np.int64)
        count = law.attempt(words, values, 1, np.empty(0, np.int64), pending)
        assert ([9, bits[0] ^ 1, bits[1], bits[2]], -1, -1 - 2) == (
            values.tolist(),
            count,
            pending[0],
        )

    class Tied(AesWords):
        """Words whose first is the threshold itself."""

        later = 0

        def fill(self, inputs, outputs):  # type: ignore[no-untyped-def]
            first = (inputs[:, 1] & np.uint64(15)) == 0
            outputs[:-1] = self.later
            outputs[:-1][first] = threshold

    low, _ = exp_bracket(Fraction(1, 2), 192)
    exact = Fraction(low, (1 << 192) + low)  # the next 128 bits decide
    tail = int(exact * (1 << 192)) - (threshold << 128)
    for later, flipped in ((0, 1), ((1 << 64) - 1, 0)):
        tied = Tied(bytes(32))
        tied.later = later
        assert flipped == law.resolve(Tape(tied, 3, 64, 0, 1))
    assert 0 < tail < 1 << 128
    assert [1, 0, 0, 1] == [law.meet(v, d) for v, d in ((0, 1), (1, 1), (0, 0), (1, 0))]


def test_flips_meet_bits_alone() -> None:
    values = np.array([[0], [2]])
    with pytest.raises(InvalidParameter, match="bits"):
        BitFlips(Fraction(1)).add(AesWords(bytes(32)), values, np.array([0, 64]))
    assert [[0], [2]] == values.tolist()


@pytest.mark.parametrize("bit", [0, 1])
@pytest.mark.parametrize(
    "decay", [Running(), Window(3), Exponential(factor=0.9), Custom((1.0, -0.5))]
)
def test_estimates_are_unbiased_with_the_predicted_noise(decay: Decay, bit: int) -> None:
    system = seeded_system(5, RandomizedResponse(1, decay=decay, cells=100_000))
    released = system.update_many(np.full((5, 100_000), bit))
    for step in range(1, 6):
        errors = released[step - 1] - bit * decay.weights(step).sum()
        std = system.noise_std(step)
        assert abs(errors.mean()) < 5 * std / math.sqrt(100_000)
        np.testing.assert_allclose(errors.std(), std, rtol=0.02)
        for gamma in (0.5, 0.05, 1e-4):
            assert (np.abs(errors) > system.error_at(gamma, step)).mean() <= gamma


def test_the_error_bound_is_no_worse_than_hoeffdings_and_grows() -> None:
    with RandomizedResponse(1) as system:
        for step in (1, 10, 1000):
            width = 1 / math.tanh(0.5)
            hoeffding = width * math.sqrt(step * math.log(2 / 0.05) / 2)
            assert 1.9 * system.noise_std(step) * (step > 5) < system.error_at(0.05, step)
            assert system.error_at(0.05, step) <= hoeffding * 1.0001


def test_the_noise_is_half_of_the_discrete_laplace_at_epsilon_one() -> None:
    with RandomizedResponse(1) as system:
        np.testing.assert_allclose(system.noise_std(1) ** 2, 0.9207, atol=5e-5)
        np.testing.assert_allclose(system.noise_std(7) ** 2, 7 * 1.8413 / 2, rtol=1e-4)
        assert 1 == system.sensitivity


def test_steps_and_blocks_give_the_same_bytes() -> None:
    bits = np.arange(30).reshape(10, 3) % 2
    decay = Window(4)
    whole = seeded_system(3, RandomizedResponse(1, decay=decay, cells=3)).update_many(bits)
    one = seeded_system(3, RandomizedResponse(1, decay=decay, cells=3))
    assert whole.tobytes() == np.array([one.update(x) for x in bits]).tobytes()


@pytest.mark.parametrize("bad", [[0.5, 1], [2, 0], [np.nan, 0], [-1, 0], ["1", "0"], [[1, 0]]])
def test_readings_that_are_no_bits_are_refused_and_leave_no_trace(bad: object) -> None:
    system = RandomizedResponse(1)
    with pytest.raises(InvalidInput, match="Expected"):
        system.update_many(bad)  # type: ignore[arg-type]  # refused
    assert 0 == system.step


@pytest.mark.parametrize(
    "make",
    [
        lambda: RandomizedResponse(guarantee=ZCDP(Fraction(1))),
        lambda: RandomizedResponse(33),
    ],
)
def test_other_guarantees_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(UnsupportedCombination, match="pure"):
        make()


@pytest.mark.parametrize("bit", [0, 1])
def test_a_restored_plan_is_read_without_bias(bit: int) -> None:
    """As a gauge reads it: the bias is taken out by what decodes."""
    cells = 50_000
    with RandomizedResponse(Fraction(1, 2), decay=Window(3), cells=cells) as system:
        plan = restore_gauge(system.plan.stored())
    assert plan == system.plan
    assert "randomised response" in plan.statement()
    measured = seeded_meter(3, plan).measure(np.full((4, cells), bit))
    assert {0, 1} == set(np.unique(measured))
    values = Reading(plan, [Window(3)]).decode(measured, 4)[0]
    std = plan.noise_std(Window(3), [4])[0]
    assert abs(values[3].mean() - 3 * bit) < 5 * std / math.sqrt(cells)
    assert (np.abs(values[3] - 3 * bit) > plan.half_width(Window(3), [4])).mean() <= 0.05
    raw = Reading(replace(plan, strategy=Identity(0)), [Window(3)]).decode(measured, 4)[0]
    assert abs(raw[3].mean() - 3 * bit) > 50 * std / math.sqrt(cells)  # the broken twin


@pytest.mark.parametrize(
    "changed",
    [
        {"strategy": Identity(0)},  # whose readings would be biased
        {"strategy": Responses(Fraction(3))},  # another bias
        {"law": DiscreteLaplace(Fraction(1))},  # noise that is no flip
        {"law": BitFlips(Fraction(1, 2)), "strategy": Responses(Fraction(1, 2))},  # unpaid
        {"max_per_step": 2},
    ],
)
def test_a_plan_of_other_flips_than_it_claims_is_refused(changed: dict[str, Any]) -> None:
    with RandomizedResponse(guarantee=PureDP(Fraction(1))) as system:
        plan = replace(system.plan, **changed)
    with pytest.raises(InvalidParameter, match="Expected"):
        verify_gauge(plan)


def test_totals_beyond_a_bit_count_as_one() -> None:
    strategy = Responses(Fraction(1))
    rows = strategy.encode(strategy.init_encoder(2), np.array([[-3, 0], [1, 7]]), 0)
    assert [[0, 0], [1, 1]] == rows.tolist()


def test_the_width_of_a_longer_sum_is_no_smaller() -> None:
    """What lets widths be reused from a later step."""
    weights, widths = 0.9 ** np.arange(40), []
    for n in range(1, 41):
        counts = np.ones(n, np.int64)
        widths.append(response_half_width(1.3, weights[:n], counts, 0.05))
    assert (np.diff(widths) >= -1e-9).all()
    assert 0 == response_half_width(1.3, np.zeros(2), np.ones(2, np.int64), 0.05)


def test_an_interruption_inside_a_block_ends_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    system = seeded_system(7, RandomizedResponse(1, cells=9))
    system.update_many(np.ones((3, 9)))
    with monkeypatch.context() as patched:
        patched.setattr(Responses, "decode", interrupted)
        with pytest.raises(KeyboardInterrupt):
            system.update_many(np.ones((50, 9)))
    with pytest.raises(LiveState, match="interrupted"):
        system.update(np.ones(9))
    assert 53 == system._meter.step  # nothing more is measured
