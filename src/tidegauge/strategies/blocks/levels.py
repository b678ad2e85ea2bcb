"""What all block strategies share: sizes of levels, rows, sensitivity."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from tidegauge.checks import integer, shown
from tidegauge.compiled import lazy_module
from tidegauge.errors import InvalidInput, InvalidParameter, StreamEnded
from tidegauge.privacy.rounding import sqrt_up
from tidegauge.privacy.unit import Contributions, Neighbors
from tidegauge.strategies.strategy import COORDINATES_PER_STEP, MOST_STEPS, Int64, Norm

if TYPE_CHECKING:
    from tidegauge.strategies.blocks import _kernels
else:
    _kernels = lazy_module("tidegauge.strategies.blocks._kernels")

__all__ = [
    "check_end",
    "check_totals",
    "checked_levels",
    "checked_weights",
    "largest_total",
    "power_levels",
    "row_coordinates",
    "row_count",
    "sensitivity",
    "sizes",
]
_RANGE_BITS = 62
_WEIGHT_BITS = 20


def checked_levels(levels: Sequence[int], lattice_bits: int = 0) -> tuple[int, ...]:
    """Return sizes of levels, or refuse them: 1 first, each a proper multiple of the one before.

    Raises:
        InvalidParameter: The sizes are not nested, or more than 64.

    Examples:
        >>> checked_levels([1, 9, 81])
        (1, 9, 81)
    """
    given: object = levels
    if isinstance(given, str) or not isinstance(given, Sequence) or not given:
        raise InvalidParameter(
            f"Expected levels to be block sizes such as (1, 16, 256), got {shown(levels)}. "
            "There is nothing to measure. Name at least one size."
        )
    integer(
        "number of levels",
        len(levels),
        low=1,
        high=COORDINATES_PER_STEP,
        why="Each is a row of a step, with a number of its own. Use larger ratios.",
    )
    why = "A level is a number of steps. Use sizes such as (1, 16, 256)."
    sizes = tuple(
        integer(f"levels[{place}]", size, low=1, high=MOST_STEPS, why=why)
        for place, size in enumerate(levels)
    )
    nested = all(b % a == 0 and b > a for a, b in pairwise(sizes))
    if sizes[0] != 1 or not nested:
        raise InvalidParameter(
            f"Expected levels to begin with 1 and each to be a multiple of the one before, got "
            f"{shown(sizes)}. A step would lie in no block, or in two of one level. Use sizes "
            "such as (1, 16, 256)."
        )
    why = "Rows are 64-bit integers. Measure in other grains."
    integer("lattice_bits", lattice_bits, low=0, high=40, why=why)
    if sizes[-1] << lattice_bits > 1 << _RANGE_BITS:
        raise InvalidParameter(
            f"Expected a last level of at most 2**{_RANGE_BITS - lattice_bits} steps, got "
            f"{sizes[-1]}. Its total would leave int64. Use a coarser lattice or smaller blocks."
        )
    return sizes


def checked_weights(
    weights: Sequence[int], levels: tuple[int, ...], *, by_price: bool
) -> tuple[int, ...]:
    """Return row weights of levels, none where all are 1, or refuse them.

    Args:
        weights: One positive integer a level, never rising; none: all 1.
        levels: Sizes of the blocks.
        by_price: Sums take the cheapest blocks, which are as easy to find as the fewest only if
            no block costs more than its parts together.

    Raises:
        InvalidParameter: They are not such integers.

    Examples:
        >>> checked_weights([3, 2, 2], (1, 4, 16), by_price=True)
        (3, 2, 2)
    """
    given: object = weights
    if (
        isinstance(given, str)
        or not isinstance(given, Sequence)
        or len(given) not in (0, len(levels))
    ):
        raise InvalidParameter(
            f"Expected a weight for each of {len(levels)} levels, got {shown(weights)}. Rows would "
            "be measured with another weight than they are charged. Leave them out for equal ones."
        )
    why = "A row is so many times its block's total. Use integers such as (3, 2, 1)."
    found = tuple(
        integer(f"weights[{place}]", weight, low=1, high=1 << _WEIGHT_BITS, why=why)
        for place, weight in enumerate(weights)
    )
    if any(b > a for a, b in pairwise(found)):
        raise InvalidParameter(
            f"Expected weights that never rise from level to level, got {shown(found)}. Longer "
            "blocks would carry less noise than shorter ones, and sums would not be found among "
            "a few paths. Give longer blocks the smaller share."
        )
    parts = zip(pairwise(found), pairwise(levels), strict=False)  # none without weights
    if by_price and any(a * a * size > b * b * parent for (a, b), (size, parent) in parts):
        raise InvalidParameter(
            f"Expected no block to have a larger noise variance than its parts together, got "
            f"weights {shown(found)} for levels {shown(levels)}. The cheapest sums would not be "
            "found. Use weights closer together, or signed=False."
        )
    return () if set(found) == {1} else found


def power_levels(base: int, horizon: int) -> tuple[int, ...]:
    """Return the levels of the base-r mechanism: one for each digit of ``horizon``.

    Source: Cardoso and Rogers, "Differentially private histograms under continual observation"
    (2021), BaseMech; base 2 is the binary mechanism of Chan, Shi and Song (2011). Counted by
    integers: logarithms of floats give one level too few at powers of ten.

    Examples:
        >>> power_levels(10, 1000)
        (1, 10, 100, 1000)
    """
    why = "Every level is so many blocks of the one before. Use 2 for the binary mechanism."
    integer("base", base, low=2, high=MOST_STEPS, why=why)
    why = "The number of levels follows from it. Give the length of the stream."
    integer("horizon", horizon, low=1, high=MOST_STEPS, why=why)
    sizes = [1]
    while sizes[-1] * base <= horizon:
        sizes.append(sizes[-1] * base)
    return tuple(sizes)


def largest_total(longest: int, lattice_bits: int) -> int:
    """Largest power of two whose sums over ``longest`` steps stay within 2^62 lattice units."""
    return 1 << (_RANGE_BITS - lattice_bits - (longest - 1).bit_length())


@lru_cache(maxsize=256)
def sizes(levels: tuple[int, ...]) -> Int64:
    """The levels as an array, shape (levels,); shared, never written."""
    return np.array(levels, np.int64)


def check_totals(x: Int64, cells: int) -> None:
    """Refuse totals that are not int64 of shape (steps, cells).

    Raises:
        InvalidInput: They would be measured in the wrong cells.
    """
    if x.dtype != np.int64 or x.ndim != 2 or x.shape[1] != cells:
        raise InvalidInput(
            f"Expected totals of dtype int64 and shape (steps, {cells}), got {x.dtype} of shape "
            f"{x.shape}. They would be measured in the wrong cells. Convert them first."
        )


def check_end(levels: tuple[int, ...], end: int) -> None:
    """Refuse steps beyond the last block that has numbers of its own.

    Raises:
        StreamEnded: The blocks around step ``end`` reach beyond step 2^38.
    """
    if -(-end // levels[-1]) * levels[-1] > MOST_STEPS:
        raise StreamEnded(
            f"Expected at most {MOST_STEPS} steps, got step {end} in a block of {levels[-1]}. "
            "Noise would be used twice. Start a new gauge."
        )


def row_count(levels: tuple[int, ...], planned: int, first: int, steps: int) -> int:
    """Number of rows of a block of steps: blocks that complete, and planned views."""
    return steps * planned + sum([(first + steps) // size - first // size for size in levels])


def row_coordinates(levels: tuple[int, ...], planned: int, first: int, steps: int) -> Int64:
    """Number each row ``step * 64 + place``: levels first, then planned views.

    Raises:
        StreamEnded: The blocks reach beyond the last step that has a number.
    """
    check_end(levels, first + steps)
    if steps == 1:  # a live step
        count = row_count(levels, 0, first, 1)
        places = [*range(count), *range(len(levels), len(levels) + planned)]
        return np.array([first * COORDINATES_PER_STEP + place for place in places], np.int64)
    numbers = np.empty(row_count(levels, planned, first, steps), np.int64)
    _kernels.number_rows(first, steps, sizes(levels), planned, COORDINATES_PER_STEP, numbers)
    return numbers


def sensitivity(
    levels: tuple[int, ...], norm: Norm, neighbors: Neighbors, weights: tuple[int, ...] = ()
) -> Fraction:
    r"""How far the vector of all blocks can move, in grains, rounded up.

    Every event lies in one block of each level. L1: the changes of k events add up, whatever
    their places: k times the sum of the weights w_l times ``event_l1``. L2: at most
    ``c_l = min(k, (b_l - 1) // sep + 1)`` events of an id share a block of level l, and the sum of
    squares is largest when blocks are filled one after another:

    .. math::
        \Delta_2^2 = \delta_2^2 \sum_l w_l^2 (\lfloor k / c_l \rfloor c_l^2 + (k \bmod c_l)^2).
    """
    unit = neighbors.unit
    if not isinstance(norm, Norm):
        raise InvalidParameter(
            f"Expected norm to be Norm.L1 or Norm.L2, got {shown(norm)}. The two differ, and the "
            "smaller one would pass for the larger. Name it."
        )
    row_weights = weights or (1,) * len(levels)
    if norm is Norm.L1:
        return Fraction(unit.max_events * sum(row_weights) * neighbors.event_l1)
    squares = sum(
        weight**2 * _largest_square(unit.max_events, _sharing(unit, size))
        for size, weight in zip(levels, row_weights, strict=True)
    )
    return sqrt_up(Fraction(squares * neighbors.event_l2_squared))


def _sharing(unit: object, size: int) -> int:
    """Most events of one unit that a block of ``size`` steps can hold."""
    if not isinstance(unit, Contributions):
        return 1
    if unit.min_separation == 0:
        return unit.max_events
    return min(unit.max_events, (size - 1) // unit.min_separation + 1)


def _largest_square(events: int, sharing: int) -> int:
    whole, rest = divmod(events, sharing)
    return whole * sharing**2 + rest**2
