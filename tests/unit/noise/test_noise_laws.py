"""What both laws promise besides their distribution: ranges, random access, constant words."""

import dataclasses
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from twins import noise as twins

from tidegauge.errors import InvalidParameter, LiveState
from tidegauge.noise import law as law_module
from tidegauge.noise.gaussian import RoundedGaussian
from tidegauge.noise.laplace import DiscreteLaplace
from tidegauge.testing import SeededWords

laws = pytest.mark.parametrize("law", twins.LAWS, ids=str)
both = pytest.mark.parametrize("kind", [RoundedGaussian, DiscreteLaplace])


@both
@pytest.mark.parametrize("scale", [0, -1, Fraction(1, 10**6), 2**56, 1.5, "1", True, None])
def test_scale_outside_what_is_proved_is_refused(kind, scale):
    with pytest.raises(InvalidParameter, match="Expected scale"):
        kind(scale)


@both
def test_law_is_frozen(kind):
    with pytest.raises(dataclasses.FrozenInstanceError):
        kind(Fraction(1)).scale = Fraction(2)


@pytest.mark.parametrize("s", [Fraction(1, 16), Fraction(1, 4), 1, 2, Fraction(39, 10), 4, 5, 30])
def test_variance_of_the_rounded_gaussian_is_the_sum_over_its_law(s):
    with mpmath.workdps(60):
        root = mpmath.mpf(Fraction(s).numerator) / Fraction(s).denominator * mpmath.sqrt(2)
        total = mpmath.fsum(
            (2 * j - 1) * mpmath.erfc((j - mpmath.mpf(1) / 2) / root)
            for j in range(1, int(40 * s) + 8)
        )
        assert abs(RoundedGaussian(Fraction(s)).variance / float(total) - 1) < 1e-14


@pytest.mark.parametrize("t", [Fraction(1, 512), Fraction(1, 4), 1, 10, 10**6, 2**50])
def test_variance_of_the_discrete_laplace_is_the_sum_over_its_law(t):
    with mpmath.workdps(60):
        q = mpmath.exp(-mpmath.mpf(Fraction(t).denominator) / Fraction(t).numerator)
        assert abs(DiscreteLaplace(Fraction(t)).variance / float(2 * q / (1 - q) ** 2) - 1) < 1e-14


@laws
def test_std_squared_is_the_variance(law):
    assert math.isclose(law.variance, law.std**2, rel_tol=1e-15)
    assert law.std > 0


@laws
def test_draw_depends_on_its_cell_and_coordinate_alone(law):
    coordinates = np.array([0, 1, 64, 1 << 18, (1 << 44) - 1])
    whole = law.draw(SeededWords(3), coordinates, 300)
    source = SeededWords(3)
    order = np.array([3, 0, 4])
    assert whole[order, :7].tolist() == law.draw(source, coordinates[order], 7).tolist()
    for row in (4, 2):
        again = law.draw(source, coordinates[row : row + 1], 300)
        assert whole[row].tolist() == again[0].tolist()


@laws
def test_draw_is_the_same_in_tiles_of_any_size(law, monkeypatch):
    coordinates = 64 * np.arange(7)
    whole = law.draw(SeededWords(4), coordinates, 100)
    monkeypatch.setattr(law_module, "_TILE", 37)
    assert whole.tolist() == law.draw(SeededWords(4), coordinates, 100).tolist()


@laws
def test_every_attempt_takes_the_same_number_of_words(law):
    source = twins.ForcedWords(lambda *_: None)
    law.draw(source, 64 * np.arange(4), 200)
    attempts = {}
    for cell, coordinate, attempt, block in source.filled:
        attempts.setdefault((cell, coordinate, attempt), []).append(block)
    resolved = [blocks for blocks in attempts.values() if blocks != list(range(law.words_each))]
    assert len(resolved) <= 1  # an undecided lane, once in millions
    first = [key for key in attempts if key[2] == 0]
    assert len(first) == 800


def test_rejected_lanes_move_on_to_the_next_attempt_together():
    law = RoundedGaussian(Fraction(1000))
    source = twins.ForcedWords(
        # word of acceptance all ones, y large: certainly rejected
        lambda cell, coordinate, attempt, block: (
            ((1 << 16) - 1 | 1 << 62, (1 << 64) - 1) if cell % 3 == 0 and attempt < 5 else None
        )
    )
    draws = law.draw(source, np.array([0, 64]), 9)
    attempts = {}
    for cell, coordinate, attempt, _ in source.filled:
        attempts.setdefault((cell, coordinate), []).append(attempt)
    for (cell, _), numbers in attempts.items():
        assert numbers == (list(range(6)) if cell % 3 == 0 else [0])
    assert (draws != 0).all()


def test_words_that_reject_for_ever_are_an_error_not_a_loop(monkeypatch):
    monkeypatch.setattr(law_module, "_MOST_ATTEMPTS", 50)
    source = twins.ForcedWords(lambda *_: ((1 << 16) - 1 | 1 << 62, (1 << 64) - 1))
    with pytest.raises(ArithmeticError, match="broken"):
        RoundedGaussian(Fraction(1000)).draw(source, np.array([0]), 1)


@laws
def test_noise_is_added_in_place_to_the_values(law):
    coordinates = np.array([5, 6])
    values = np.arange(40).reshape(2, 20) - 7
    expected = values + law.draw(SeededWords(5), coordinates, 20)
    law.add(SeededWords(5), values, coordinates)
    assert expected.tolist() == values.tolist()


@laws
@pytest.mark.parametrize("edge", [1 << 62, -(1 << 62), (1 << 63) - 1, -(1 << 63)])
def test_values_at_the_edge_wrap_modulo_2_64_and_never_saturate(law, edge):
    draws = law.draw(SeededWords(6), np.array([0]), 50)[0].tolist()
    values = np.full((1, 50), edge)
    law.add(SeededWords(6), values, np.array([0]))
    expected = [(edge + draw + (1 << 63)) % (1 << 64) - (1 << 63) for draw in draws]
    assert expected == values[0].tolist()


def test_resolved_lane_wraps_as_the_kernel_does():
    assert law_module._wrapped((1 << 63) + 5) == -(1 << 63) + 5
    assert law_module._wrapped(-(1 << 63) - 1) == (1 << 63) - 1


@laws
def test_nothing_to_draw_draws_nothing(law):
    assert law.draw(SeededWords(1), np.empty(0, dtype=np.int64), 5).shape == (0, 5)
    assert law.draw(SeededWords(1), np.array([1, 2]), 0).shape == (2, 0)


def _read_only():
    values = np.zeros((1, 2), dtype=np.int64)
    values.flags.writeable = False
    return values


@pytest.mark.parametrize(
    "values",
    [
        np.zeros((1, 2), dtype=np.int32),
        np.zeros((1, 2)),
        np.zeros(2, dtype=np.int64),
        np.zeros((2, 1, 2), dtype=np.int64)[:, 0].T[:1],
        np.zeros((1, 4), dtype=np.int64)[:, ::2],
        np.zeros((1, 2), dtype=object),
        [[0, 0]],
        _read_only(),
    ],
    ids=["int32", "float", "1-d", "transposed", "strided", "object", "list", "read-only"],
)
def test_values_that_a_kernel_would_misread_are_refused(values):
    with pytest.raises(InvalidParameter, match="Expected values"):
        RoundedGaussian(Fraction(10)).add(SeededWords(1), values, np.array([0]))


@pytest.mark.parametrize(
    "coordinates",
    [
        np.array([0, 0]),
        np.array([7, 5, 7])[[0, 2]],
        np.array([-1, 0]),
        np.array([0, 1 << 44]),
        np.array([0]),
        np.array([0.0, 1.0]),
        [0, 1],
    ],
)
def test_coordinates_that_would_share_noise_are_refused_before_anything_is_added(coordinates):
    values = np.zeros((2, 3), dtype=np.int64)
    with pytest.raises(InvalidParameter, match="coordinates"):
        RoundedGaussian(Fraction(10)).add(SeededWords(1), values, coordinates)
    assert not values.any()


def test_closed_words_add_nothing():
    source = SeededWords(1)
    source.close()
    values = np.zeros((1, 3), dtype=np.int64)
    with pytest.raises(LiveState):
        RoundedGaussian(Fraction(10)).add(source, values, np.array([0]))
    assert not values.any()


@laws
def test_numbers_of_cells_are_addresses(law):
    """Some columns of a draw of many cells, in any selection, are those draws."""
    words, coordinates = SeededWords(8), np.arange(5) * 64
    whole = law.draw(words, coordinates, 3000)
    for numbers in (np.array([7]), np.arange(2040, 2060), np.array([0, 5, 2047, 2048, 2999])):
        values = np.full((5, len(numbers)), 100)
        law.add(words, values, coordinates, numbers)
        assert (values - 100 == whole[:, numbers]).all()


@pytest.mark.parametrize(
    "numbers",
    [np.array([0]), np.array([1, 1]), np.array([2, 1]), np.array([-1, 0]), np.array([0.0, 1.0]),
     [0, 1]],
    ids=str,
)  # fmt: skip
def test_numbers_that_would_share_noise_are_refused(numbers):
    values = np.zeros((1, 2), np.int64)
    with pytest.raises(InvalidParameter, match="Two cells would get the same noise"):
        RoundedGaussian(Fraction(10)).add(SeededWords(1), values, np.array([0]), numbers)
    assert not values.any()
