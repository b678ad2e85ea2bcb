r"""Means of a column per cell and view: two coordinates of one gauge, with equal noise.

Measured are S, the sum of x - c, and D N, the count of the same events, each worth D grains: c is
the middle of the bounds, rounded to a grain, and D the largest distance of a bound from it. A mean
is c + D S / (D N) of any view of the two, since both are weighted alike. An event moves both by D
at most, :math:`\sqrt 2 D` together; so both coordinates have :math:`\sqrt 2` times the noise that
one of them alone would have, and neither is free. Proof: ``docs/proofs/mean.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from tidegauge.checks import integer, shown
from tidegauge.errors import InvalidInput, InvalidParameter, UnsupportedCombination
from tidegauge.mechanisms.accumulator import Accumulator
from tidegauge.mechanisms.intervals import tails
from tidegauge.mechanisms.plan import GaugePlan
from tidegauge.mechanisms.ratio import laplace_widths, ratio_interval, widest_half
from tidegauge.mechanisms.request import EVENTS_PER_STEP, Request, cells_of, request_of
from tidegauge.mechanisms.totals import array_of
from tidegauge.noise.laplace import DiscreteLaplace
from tidegauge.strategies.decay import Decay, Difference
from tidegauge.strategies.strategy import MOST_STEPS, Float64, Int64

__all__ = [
    "Bounds",
    "MeanReading",
    "Values",
    "bounds_of",
    "mean_request",
    "refuse_without_mean",
]

_LARGEST_BOUND = 1 << 39
_LARGEST_NUMBER = 1 << 40  # what one event adds to a sum: twice a bound at most
_WHY_BOUND = "Values beyond it count as the bound; noise is made for it. Give whole grains."


@final
@dataclass(frozen=True)
class Bounds:
    """What a value may be, in grains; what lies beyond counts as the bound.

    Args:
        low: The least value.
        high: The largest value, above ``low``.

    Raises:
        InvalidParameter: Not two whole numbers, below 2^39 in size, the first one smaller.

    Examples:
        >>> Bounds(-30, 1500).centre, Bounds(-30, 1500).reach
        (735, 765)
    """

    low: int
    high: int

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            number = getattr(self, name)
            most = _LARGEST_BOUND
            number = integer(f"bounds.{name}", number, low=-most, high=most, why=_WHY_BOUND)
            object.__setattr__(self, name, number)
        if self.low >= self.high:
            raise InvalidParameter(
                f"Expected bounds with low < high, got low={self.low} and high={self.high}. "
                "Every value would count as the same. Declare what values can be, in grains."
            )

    @property
    def centre(self) -> int:
        """c: the middle, rounded down to a grain."""
        return (self.low + self.high) // 2

    @property
    def reach(self) -> int:
        """D: how far a value can be from the centre."""
        return max(self.high - self.centre, self.centre - self.low)


def bounds_of(bounds: Any) -> Bounds:
    """Return checked bounds from a pair.

    Raises:
        InvalidParameter: Not a pair of whole numbers, or not in order.
    """
    if isinstance(bounds, Bounds):
        return bounds
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        raise InvalidParameter(
            f"Expected bounds to be a pair (low, high), got {shown(bounds)}. {_WHY_BOUND}"
        )
    return Bounds(*bounds)


def mean_request(
    *, bounds: Bounds, cells: Any = None, max_events: Any = None, **asked: Any
) -> Request:
    """Return the request of the gauge that measures sums and counts: cells of sums, then counts.

    Args:
        bounds: What a value may be.
        cells: How many cells, or their names; None: one.
        max_events: Most events of one cell and step; totals are clamped to theirs.
        **asked: What :func:`~tidegauge.mechanisms.request.request_of` takes.

    Raises:
        InvalidParameter: An argument is impossible.
        UnsupportedCombination: A view has no mean.
    """
    number = cells_of(cells)[0]
    if max_events is None:
        max_events = EVENTS_PER_STEP
    why = "Totals are clamped to those of so many events. Give the most that one step can have."
    events = integer("max_events_per_step", max_events, low=1, high=1 << 22, why=why)
    reach = bounds.reach
    request = request_of(
        cells=2 * number, max_change=(-reach, reach), max_cells=2, paired=True,
        max_per_step=events * reach, **asked,
    )  # fmt: skip
    for name, decay in request.views:
        refuse_without_mean(name, decay)
    return request


def refuse_without_mean(name: str, decay: Decay) -> None:
    """Refuse a view of which a ratio of sum and count is no mean.

    Raises:
        UnsupportedCombination: It has weights below zero.
    """
    if isinstance(decay, Difference) or (decay.weights(1 << 12) < 0).any():
        raise UnsupportedCombination(
            f"Expected a view whose weights are at least 0, got {shown(name)}. Events that count "
            "less than nothing have no mean. Subtract two means that were published, or leave it "
            "out."
        )


@final
class Values:
    """Checked values of a block, sorted into steps and cells.

    Args:
        values: Whole numbers of grains, shape (events,).
        steps: The index of each one's step in the block, from 0; None: all of the first.
        cells: The index of each one's cell, from 0; None: all of the first.
        length: How many steps the block has.
        number: How many cells there are.

    Raises:
        InvalidInput: Not whole numbers of this shape, or an index out of range; no value is shown.
        InvalidParameter: The length is no number of steps.
    """

    def __init__(
        self, values: ArrayLike, steps: ArrayLike | None, cells: ArrayLike | None,
        length: int, number: int,
    ) -> None:  # fmt: skip
        why = "It is the number of steps of the block. Give a whole number."
        length = integer("length", length, low=0, high=MOST_STEPS, why=why)
        self.values = _whole("values", values)
        self.length, self.number = length, number
        shape = self.values.shape
        self.steps = _places("steps", steps, shape, length)
        self.cells = _places("cells", cells, shape, number)

    def part(self, start: int, stop: int) -> Values:
        """Return the values of some of the steps, as a block of its own."""
        if start == 0 and stop == self.length:
            return self
        inside = (start <= self.steps) & (self.steps < stop)
        part = object.__new__(Values)
        part.values, part.cells = self.values[inside], self.cells[inside]
        part.steps, part.length, part.number = self.steps[inside] - start, stop - start, self.number
        return part

    def totals(self, each: Int64) -> Int64:
        """Add up one number for each event, by step and cell; shape (length, number).

        The sums are exact, and then cut off at 2^62 in size: they never wrap, and one event moves
        a sum no further than by its own number.

        Args:
            each: At most 2^40 in size, shape (events,).
        """
        sums = Accumulator(_LARGEST_NUMBER)
        sums.grow(self.length * self.number)
        sums.add(self.steps * self.number + self.cells, each)
        return sums.result().reshape(self.length, self.number)


def _whole(name: str, given: Any) -> Int64:
    array = array_of(given, name)
    fits = array.ndim == 1 and (array.dtype.kind in "iu" or not array.size)
    if array.dtype.kind == "f" and array.ndim == 1 and array.size:
        fits = bool(np.isfinite(array).all() and (array == np.rint(array)).all())
        fits = fits and bool((np.abs(array) < 2.0**53).all())
    if not fits:
        raise InvalidInput(
            f"Expected {name} to be whole numbers of shape (events,), got others. Noise is "
            "calibrated for whole grains. Leave out missing ones, and round the rest to grains."
        )
    if array.dtype.kind == "u":
        array = np.minimum(array, np.array((1 << 63) - 1, np.uint64))
    return array.astype(np.int64)


def _places(name: str, given: ArrayLike | None, shape: tuple[int, ...], most: int) -> Int64:
    places = np.zeros(shape, np.int64) if given is None else _whole(name, given)
    if places.shape != shape or (places.size and not 0 <= places.min() <= places.max() < most):
        raise InvalidInput(
            f"Expected one of {name} in [0, {most}) for each value, got others. An event belongs "
            "to one step and one cell. Give indices from 0."
        )
    return places


@final
class MeanReading:
    """The public half of a mean: decoded sums and counts to means with their intervals.

    Args:
        plan: Of the measurement: sums in the first half of the cells, counts in the second.
        bounds: What a value may be.
    """

    def __init__(self, plan: GaugePlan, bounds: Bounds) -> None:
        self._plan, self._bounds = plan, bounds

    def means(
        self, view: str | Decay, steps: ArrayLike, decoded: Float64, summed: int = 1
    ) -> tuple[Float64, ...]:
        """Return value, lower, upper, count and count_std of a view.

        Args:
            view: A view's name, or a decay.
            steps: The step of each row, counted from 1; shape (steps,).
            decoded: What the plan's measurement is decoded to, shape (steps, 2 cells), in grains.
            summed: How many measured cells each of them adds up.

        Returns:
            Arrays of shape (steps, cells); counts are of events.
        """
        plan, bounds = self._plan, self._bounds
        cells = decoded.shape[1] // 2
        widths = self._widths(view, np.asarray(steps), summed)
        reach, centre = float(bounds.reach), float(bounds.centre)
        ends = (bounds.low - centre) / reach, (bounds.high - centre) / reach
        value, lower, upper, _ = ratio_interval(
            decoded[:, :cells], decoded[:, cells:], widths, ends
        )
        std = plan.noise_std(view, steps, summed)[:, None] / reach
        std = np.broadcast_to(std, value.shape)
        means = (centre + reach * ratio for ratio in (value, lower, upper))
        return (*means, decoded[:, cells:] / reach, std)

    def _widths(
        self, view: str | Decay, steps: Int64, summed: int
    ) -> tuple[Float64, Float64, Float64]:
        """The squared half-width of A - rho B as a polynomial of rho; each of shape (steps, 1)."""
        plan = self._plan
        one, two = (plan.half_width(view, steps, summed=n * summed)[:, None] for n in (1, 2))
        if not isinstance(plan.law, DiscreteLaplace):
            return one**2, np.zeros_like(one), two**2 - one**2
        tail = tails(plan.level, plan.band, steps, plan.known_end)[:, None]
        lattice = float(plan.decay(view).weights(1 << 12).max())
        return laplace_widths(one, two, tail, lattice)

    def half_width(self, view: str | Decay, step: int, events: ArrayLike) -> Float64:
        """Return half of the width of the interval of a mean of so many events, at its widest.

        Wherever the mean lies; where the noisy numbers are the true ones.

        Args:
            view: A view's name, or a decay.
            step: The step, counted from 1.
            events: How many events the view weighs, any shape.

        Returns:
            In grains; at most half the width of the bounds.
        """
        bounds, steps = self._bounds, np.array([step])
        reach, centre = float(bounds.reach), float(bounds.centre)
        ends = (bounds.low - centre) / reach, (bounds.high - centre) / reach
        count = np.atleast_1d(np.asarray(events, dtype=np.float64)).ravel() * reach
        s, c, t = (float(width[0, 0]) for width in self._widths(view, steps, 1))
        return reach * widest_half(count, (s, c, t), ends).reshape(np.shape(events))
