import copy
import pickle
from fractions import Fraction
from typing import final

import numpy as np
import pytest

from tidegauge.errors import InvalidInput, InvalidParameter, LiveState, StreamEnded
from tidegauge.papers.system import GRAINS, System, grains_of, plan_of
from tidegauge.privacy.guarantee import GaussianDP, Guarantee
from tidegauge.strategies.decay import Window
from tidegauge.testing import seeded_system


@final
class Plain(System):
    """The stream itself, in windows of three steps."""

    def __init__(
        self, epsilon: float | None = 1.0, guarantee: Guarantee | None = None, cells: int = 1
    ) -> None:
        self._start(
            plan_of(
                Window(3),
                epsilon=epsilon,
                guarantee=guarantee,
                cells=cells,
                strategy=None,
                end=1000,
            )
        )

    @property
    def source(self) -> str:
        return "no paper"


def test_a_system_releases_the_decayed_sum_of_reals() -> None:
    readings = np.linspace(0, 1, 300)
    system = seeded_system(1, Plain(epsilon=1e5))
    released = system.update_many(readings)
    exact = np.convolve(readings, [1, 1, 1])[:300]
    assert (300,) == released.shape
    np.testing.assert_allclose(released, exact, atol=3e-3)
    assert 300 == system.step


def test_steps_and_blocks_give_the_same_bytes() -> None:
    readings = np.linspace(0, 1, 20).reshape(10, 2)
    whole = seeded_system(3, Plain(cells=2)).update_many(readings)
    one = seeded_system(3, Plain(cells=2))
    assert whole.tobytes() == np.array([one.update(x) for x in readings]).tobytes()


def test_replacing_a_reading_costs_the_same_whatever_the_number_of_cells() -> None:
    for cells in (1, 5):
        assert 1 == Plain(cells=cells).sensitivity
        np.testing.assert_allclose(Plain(cells=cells).noise_std(3), np.sqrt(6), rtol=1e-6)
    gaussian = Plain(epsilon=None, guarantee=GaussianDP(Fraction(2)))
    assert 0.1 < gaussian.noise_std(3) < np.sqrt(3) / 2  # no more than the stream itself


def test_the_error_is_the_quantile_of_the_noise() -> None:
    system = Plain()
    np.testing.assert_allclose(system.error_at(0.05, 1), np.log(20), rtol=1e-4)  # one Laplace draw
    assert system.error_at(0.05, 3) > system.error_at(0.1, 3) > system.error_at(0.1, 1)


@pytest.mark.parametrize(
    "bad",
    [
        [0.5, np.nan],
        [0.5, np.inf],
        [-0.1, 0.5],
        [0.5, 1.0001],
        [0.5, 0.5j],
        ["0.5", "0.1"],
        [[0.5, 0.5]],
        0.5,
        [0.5, [0.1]],
        np.ma.masked_array([0.5, 0.5], [False, True]),
    ],
)
def test_bad_readings_are_refused_and_leave_no_trace(bad: object) -> None:
    system = seeded_system(7, Plain())
    with pytest.raises(InvalidInput, match="Expected"):
        system.update_many(bad)  # type: ignore[arg-type]  # refused
    assert 0 == system.step
    untouched = seeded_system(7, Plain())
    assert untouched.update_many([0.5, 0.5]).tobytes() == system.update_many([0.5, 0.5]).tobytes()


def test_no_message_shows_a_reading() -> None:
    with pytest.raises(InvalidInput) as error:
        Plain().update(7.125)
    assert "7.125" not in str(error.value)


def test_rounding_to_grains_keeps_neighbors_within_one() -> None:
    assert [0, GRAINS, GRAINS // 2] == grains_of(np.array([0.0, 1.0, 0.5])).tolist()


def test_a_system_ends_and_cannot_be_copied() -> None:
    system = Plain()
    with pytest.raises(StreamEnded):
        system.update_many(np.zeros(1001))
    assert 0 == system.step
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(LiveState):
            copied(system)
    with pytest.raises(InvalidParameter):
        system.noise_std(0)
    with pytest.raises(InvalidParameter):
        system.error_at(2.0, 1)
    system.close()
    with pytest.raises(LiveState):
        system.update(0.5)


def test_a_system_that_was_interrupted_goes_no_further() -> None:
    system = Plain()
    system._meter.measure([[1]])  # as if the block had ended before it was decoded
    with pytest.raises(LiveState, match="interrupted"):
        system.update(0.5)
