r"""Column-normalised filters: a stream with an end need not pay for columns that it cuts short.

A column of C that begins r steps before the end has the norm

.. math:: D(r) = \Bigl( \sum_{n<r} c_n^2 \Bigr)^{1/2}:

late events move fewer coordinates than early ones. The encoder multiplies each step's total by
about 1/D(r), so that every event moves the coordinates equally far, and the decoder divides by
it: late steps come with less noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from math import isqrt
from typing import final

import numpy as np

from tidegauge.checks import integer
from tidegauge.errors import InvalidParameter
from tidegauge.privacy.rounding import sqrt_up
from tidegauge.privacy.unit import Neighbors
from tidegauge.strategies import filters
from tidegauge.strategies.blt import normalised_variance as variance
from tidegauge.strategies.blt.blt import Blt
from tidegauge.strategies.blt.fitting import fit
from tidegauge.strategies.blt.fixed_point import rounding_error
from tidegauge.strategies.blt.patterns import column_gain_squared
from tidegauge.strategies.decay import Decay, Running, Step
from tidegauge.strategies.strategy import (
    Float64,
    Int64,
    Norm,
    RowPerStep,
    State,
    refuse_l1,
)

__all__ = ["LONGEST", "NormalisedBlt", "fit_normalised"]

LONGEST = 1 << 16
"""Most steps of a column-normalised filter; beyond, little is left to gain."""

_MULTIPLIER_BITS = 20
_MULTIPLIER = 1 << _MULTIPLIER_BITS
_LATTICE = (0, 40)
_SINGLE_STEPS = 32  # the last steps have multipliers of their own,
_GROWTH = 32  # earlier ones share one in pieces of 1/32 of the distance to the end
_LOOKED = 512  # steps of a long stream, for views that are no running sum
_DESIGN = 4  # the horizon, in lengths of the stream, for which a filter is fitted


@final
@dataclass(frozen=True)
class NormalisedBlt(RowPerStep):
    r"""A buffered Toeplitz filter of totals that are multiplied, step by step, by integers.

    .. math:: C' x = C (a x / 2^{20}), \qquad a_s \approx 2^{20} / D(T - s)

    Better than :class:`Blt` by about 7 % at 2^8 steps and 5 % at 2^12 for a running sum; not for
    other views, whose worst step is early, and not without an end.

    Guarantee:
        Neighboring streams' coordinates differ by at most ``sensitivity`` in L2, roundings
        included, up to ``hard_end`` steps, on every path of an adaptively chosen stream. Proof:
        ``docs/proofs/normalised.md``.

    Args:
        gaps: Integers over 2^64 that define the filter, as those of :class:`Blt`.
        weights: Integers over 2^64, as those of :class:`Blt`.
        lengths: How many steps share each multiplier, from the first step on; positive, at most
            2^16 in all. The stream has so many steps.
        multipliers: Integers over 2^20, positive, at most 2^20.
        lattice_bits: Coordinates lie on the lattice 2^-lattice_bits grains; 0 to 40.

    Raises:
        InvalidParameter: A number is out of range, or the lattice leaves no room for totals.

    Memory and time: those of :class:`Blt`.

    Examples:
        >>> halves = NormalisedBlt((1 << 62,), (1 << 62,), (1, 1), (1 << 19, 1 << 20), 2)
        >>> halves.encode(halves.init_encoder(1), np.array([[8], [4]]), 0).ravel() / 4  # grains
        array([4., 5.])

    References:
        The normalised square root of arXiv 2509.14334, for filters with few buffers.
    """

    gaps: tuple[int, ...]
    weights: tuple[int, ...]
    lengths: tuple[int, ...]
    multipliers: tuple[int, ...]
    lattice_bits: int

    def __post_init__(self) -> None:
        low, high = _LATTICE
        why = "Coordinates are 64-bit integers. Measure in other grains."
        bits = integer("lattice_bits", self.lattice_bits, low=low, high=high, why=why)
        object.__setattr__(self, "lattice_bits", bits)
        if len(self.lengths) != len(self.multipliers) or not self.lengths:
            raise InvalidParameter(
                f"Expected as many lengths as multipliers, and at least one, got "
                f"{len(self.lengths)} and {len(self.multipliers)}. Steps would have no "
                "multiplier. Give one for each piece of the stream."
            )
        for name, most, why in (
            ("lengths", LONGEST, "So many steps share a multiplier. Give positive integers."),
            ("multipliers", _MULTIPLIER, "Totals are multiplied by it over 2^20. Give integers."),
        ):
            values = tuple(
                integer(f"{name}[{i}]", value, low=1, high=most, why=why)
                for i, value in enumerate(getattr(self, name))
            )
            object.__setattr__(self, name, values)
        why = "They are the steps of the stream. Use a Blt for a longer one."
        integer("sum of lengths", sum(self.lengths), low=1, high=LONGEST, why=why)
        object.__setattr__(self, "gaps", self._filter.gaps)
        object.__setattr__(self, "weights", self._filter.weights)
        if self.largest_total < 1:
            raise InvalidParameter(
                f"Expected a lattice on which a total of 1 fits 62 bits, got lattice_bits="
                f"{self.lattice_bits}. Coordinates would overflow. Use fewer lattice_bits."
            )

    @cached_property
    def _filter(self) -> Blt:
        """The filter of the multiplied totals; its grains are 2^-20 of ours."""
        bits = self.lattice_bits - _MULTIPLIER_BITS
        return Blt(self.gaps, self.weights, bits, sum(self.lengths))

    @property
    def norms(self) -> frozenset[Norm]:
        """L2 only."""
        return frozenset({Norm.L2})

    @property
    def hard_end(self) -> int:
        """The sum of ``lengths``: beyond, columns would be longer than they were normalised for."""
        return sum(self.lengths)

    @cached_property
    def absolute_gain(self) -> Fraction:
        """sum_k |c_k|: no multiplier is larger than 1."""
        return self._filter.absolute_gain

    @cached_property
    def largest_total(self) -> int:
        """The largest |x| for which neither states nor coordinates can overflow, in grains."""
        return self._filter.largest_total // max(self.multipliers)

    @cached_property
    def largest_column_squared(self) -> Fraction:
        """The squared norm of the longest column of C', in grains, rounded up."""
        starts = [0, *accumulate(self.lengths)][:-1]
        return max(
            Fraction(multiplier, _MULTIPLIER) ** 2
            * column_gain_squared(self.gaps, self.weights, self.hard_end - start)
            for start, multiplier in zip(starts, self.multipliers, strict=True)
        )

    def sensitivity(self, norm: Norm, neighbors: Neighbors) -> Fraction:
        r"""How far the coordinates can move in L2, in lattice units, rounded up.

        .. math:: \Delta = k \, \delta \max_s \| C' e_s \| + e \sqrt{N}

        with k the events of a unit, :math:`\delta` the L2 norm of one event's change, N = hard
        end times touched cells and e what roundings can move one coordinate. A least distance
        between events is not made use of.

        Raises:
            UnsupportedCombination: The norm is L1.
        """
        refuse_l1(norm)
        events = neighbors.unit.max_events
        column = self.largest_column_squared
        moved = sqrt_up(neighbors.event_l2_squared * events**2 * column)
        rounded = rounding_error(self.gaps, self._filter.lattice_bits) * sqrt_up(
            Fraction(self.hard_end * neighbors.touched_cells)
        )
        return (moved + rounded / _MULTIPLIER) * (1 << self.lattice_bits)

    def init_encoder(self, cells: int) -> State:
        """All states zero: 128 bits a buffer and cell."""
        return self._filter.init_encoder(cells)

    def encode(self, state: State, x: Int64, first: int) -> Int64:
        """Multiply the clamped totals, exactly, and encode the block in 128-bit fixed point.

        Raises:
            StreamEnded: The block reaches beyond ``hard_end``; the state is as it was.
            InvalidInput: The array is not int64, C-contiguous, (steps, cells) of this state.
        """
        if x.dtype != np.int64 or x.ndim != 2:
            return self._filter.encode(state, x, first)  # refuses it
        clamped = np.clip(x, -self.largest_total, self.largest_total)
        factors = self._multiplier_of_step[first : first + len(x), None]
        fitting = clamped[: len(factors)] * factors
        if len(fitting) < len(x):
            return self._filter.encode(state, x, first)  # refuses it
        return self._filter.encode(state, fitting, first)

    def init_decoder(self, views: Sequence[Decay], cells: int) -> State:
        """The decoder's own states and those of the views, all zero."""
        return {
            **filters.init_decoder(views, cells, 0),
            **self._filter.init_decoder([], cells),
        }

    def decode(
        self, state: State, views: Sequence[Decay], measured: Int64, first: int, out: Float64
    ) -> None:
        """Recover the multiplied increments, divide them, and filter them; all in float64."""
        increments = np.empty(measured.shape)
        self._filter.decode(state, [Step()], measured, first, increments[None])
        increments /= self._multiplier_of_step[first : first + len(measured), None]
        filters.filter_views(state, views, increments, first, out)

    def variance_gain(self, view: Decay, steps: Int64) -> Float64:
        """The squared row norms of B: closed forms for a running sum, row by row for others.

        Cost: 10 ms once for a running sum; O(T log T) a step for others.
        """
        limited = np.minimum(steps, self.hard_end)
        if isinstance(view, Running):
            gains = self._running_gains[limited - 1]
        else:
            rows = (self._row(view, int(step)) for step in limited)
            gains = np.array([float(row @ row) for row in rows])
        return np.asarray(gains * 4.0**-self.lattice_bits)

    def worst_variance_gain(self, view: Decay, horizon: int) -> float:
        """The largest gain of all steps up to the horizon.

        It does not grow with the step: of a running sum, the worst is near the middle. Of other
        views and more than 1024 steps, the last ones with each multiplier are looked at, where
        noise is about to fall, and 512 others.

        Cost: that of :meth:`variance_gain` at 1024 steps: 0.1 to 3 s for views that are no sum.
        """
        last = min(horizon, self.hard_end)
        looked = np.arange(1, last + 1)
        if not isinstance(view, Running) and last > 2 * _LOOKED:
            spread = np.arange(_LOOKED + 1) * (last - 1) // _LOOKED + 1
            turns = np.cumsum(self.lengths)
            looked = np.unique(np.concatenate([spread, turns[turns <= last]]))
        return float(self.variance_gain(view, looked).max())

    def noise_terms(self, view: Decay, step: int) -> tuple[Float64, Int64]:
        """The sizes of a row of B, one by one."""
        weights = np.abs(self._row(view, step)) * 2.0**-self.lattice_bits
        kept = weights[weights > 1e-12 * weights.max()]
        return kept, np.ones(len(kept), np.int64)

    @cached_property
    def _multiplier_of_step(self) -> Int64:
        return np.repeat(np.array(self.multipliers), self.lengths)

    @cached_property
    def _scale_of_step(self) -> Float64:
        """What the decoder multiplies by: about D(T - s)."""
        return _MULTIPLIER / self._multiplier_of_step

    @cached_property
    def _running_gains(self) -> Float64:
        scales = _MULTIPLIER / np.array(self.multipliers)
        return variance.running_gains(self.gaps, self.weights, self.lengths, scales)

    def _row(self, view: Decay, step: int) -> Float64:
        return variance.noise_row(self.gaps, self.weights, self._scale_of_step, view, step)


def fit_normalised(end: int, lattice_bits: int = 30) -> NormalisedBlt:
    """Return the filter and multipliers for a running sum over a stream of ``end`` steps.

    The filter is the one fitted for four times the stream's length, since a normalised column is
    cut short long before it has faded. Store the result: a fit is made once.

    Args:
        end: Steps of the stream; 1 to 2^16.
        lattice_bits: Of the strategy; 0 to 40.

    Raises:
        InvalidParameter: A number is out of range.

    Cost: 0.1 s.

    Examples:
        >>> from tidegauge.strategies.bounds import lower_bound
        >>> best = fit_normalised(256)
        >>> round(best.max_error(Running(), 256) / lower_bound(Running(), 256), 2)
        1.07
    """
    why = "Columns are normalised for the stream's length. Use a Blt for a longer one."
    integer("end", end, low=1, high=LONGEST, why=why)
    fitted = fit([Running()], _DESIGN * end)
    lengths, multipliers, left = _pieces(end), [], end
    for length in lengths:
        column = column_gain_squared(fitted.gaps, fitted.weights, left)
        multipliers.append(isqrt(int(_MULTIPLIER**2 / column)))
        left -= length
    return NormalisedBlt(fitted.gaps, fitted.weights, lengths, tuple(multipliers), lattice_bits)


def _pieces(end: int) -> tuple[int, ...]:
    lengths: list[int] = []
    left = end
    while left:
        lengths.append(max(1, left // _GROWTH) if left > _SINGLE_STEPS else 1)
        left -= lengths[-1]
    return tuple(lengths)
