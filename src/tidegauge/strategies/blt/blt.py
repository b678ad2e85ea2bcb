"""Buffered linear Toeplitz strategies: a few exponentials of the past in every coordinate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import final

import numpy as np

from tidegauge.checks import integer
from tidegauge.errors import InvalidParameter, StreamEnded
from tidegauge.privacy.rounding import sqrt_up
from tidegauge.privacy.unit import Neighbors
from tidegauge.strategies import filters, study
from tidegauge.strategies.blt import fixed_point, variance
from tidegauge.strategies.blt.buffers import UNIT, checked_buffers
from tidegauge.strategies.blt.fixed_point import rounding_error
from tidegauge.strategies.blt.patterns import pattern_gain_squared
from tidegauge.strategies.bounds import worst_step
from tidegauge.strategies.decay import Decay
from tidegauge.strategies.strategy import (
    MOST_STEPS,
    Float64,
    Int64,
    Norm,
    RowPerStep,
    State,
    UInt64,
    refuse_l1,
)

__all__ = ["Blt"]

_CHARGED = (1, MOST_STEPS)
_LATTICE = (-20, 40)
_MOST_COEFFICIENTS = 1 << 28


@final
@dataclass(frozen=True)
class Blt(RowPerStep):
    r"""Each coordinate is the step's total plus a sum of exponentials of the past.

    .. math:: (C x)_t = x_t + \sum_j u_j(t), \qquad
        c_0 = 1, \; c_k = \sum_j w_j \theta_j^{k-1}, \; \theta_j = 1 - g_j

    One measurement serves every view, for ever, with an error that grows like the logarithm of a
    running sum's or a window's length. Not for pure epsilon, whose L1 norm would be much larger,
    and not for streams of a few steps, where ``Identity`` is as good.

    Guarantee:
        Neighboring streams' coordinates differ by at most ``sensitivity`` in L2, roundings
        included, up to ``hard_end`` steps, on every path of an adaptively chosen stream. Proof:
        ``docs/proofs/blt.md``.

    Args:
        gaps: Integers g_j over 2^64, in (0, 2^64), increasing; 1 to 8 of them.
        weights: Integers w_j over 2^64, positive, with sum_j w_j / (2^64 - g_j) < 1, so that c
            falls and the decoder is stable.
        lattice_bits: Coordinates lie on the lattice 2^-lattice_bits grains; -20 to 40.
        charged_steps: Steps whose roundings the sensitivity counts, and the last that can be run;
            at most 2^38. With h = 2^-30 grains, that many cost 0.05 % of an event of one grain.

    Raises:
        InvalidParameter: A number is out of range, or the lattice leaves no room for totals.

    Memory: 16 bytes (private) and 8 bytes (public) a buffer and cell. Time: about 2 ns a buffer,
    cell and step to encode, 0.4 ns to decode.

    Examples:
        >>> blt = Blt((1 << 60,), (1 << 62,), lattice_bits=2, charged_steps=1024)
        >>> blt.encode(blt.init_encoder(1), np.array([[4], [0], [0]]), 0).ravel() / 4  # grains
        array([4.  , 1.  , 0.75])
        >>> blt.coefficients(3)
        array([1.      , 0.25    , 0.234375])

    References:
        Dvijotham, McMahan, Pillutla, Steinke and Thakurta (2024), "Efficient and near-optimal noise
        generation for streaming differential privacy".
    """

    gaps: tuple[int, ...]
    weights: tuple[int, ...]
    lattice_bits: int
    charged_steps: int = _CHARGED[1]

    def __post_init__(self) -> None:
        gaps, weights = checked_buffers(self.gaps, self.weights)
        object.__setattr__(self, "gaps", gaps)
        object.__setattr__(self, "weights", weights)
        for name, (low, high), why in (
            ("lattice_bits", _LATTICE, "Coordinates are 64-bit integers. Measure in other grains."),
            ("charged_steps", _CHARGED, "Each one's roundings are paid for. Give the last step."),
        ):
            number = integer(name, getattr(self, name), low=low, high=high, why=why)
            object.__setattr__(self, name, number)
        if self.largest_total < 1:
            raise InvalidParameter(
                f"Expected a lattice on which a total of 1 fits 62 bits, got lattice_bits="
                f"{self.lattice_bits} and a filter that sums to {float(self.absolute_gain):.3g}. "
                "Coordinates would overflow. Use fewer lattice_bits, or larger gaps."
            )

    @property
    def norms(self) -> frozenset[Norm]:
        """L2 only."""
        return frozenset({Norm.L2})

    @property
    def hard_end(self) -> int:
        """``charged_steps``."""
        return self.charged_steps

    @cached_property
    def absolute_gain(self) -> Fraction:
        """sum_k |c_k| = 1 + sum_j w_j / g_j, exactly."""
        pairs = zip(self.weights, self.gaps, strict=True)
        return sum((Fraction(weight, gap) for weight, gap in pairs), Fraction(1))

    @cached_property
    def largest_total(self) -> int:
        """The largest |x| for which neither states nor coordinates can overflow, in grains."""
        return fixed_point.largest_total(self.absolute_gain, self.gaps, self.lattice_bits)

    def sensitivity(self, norm: Norm, neighbors: Neighbors) -> Fraction:
        r"""How far the coordinates can move in L2, in lattice units, rounded up.

        .. math:: \Delta = \delta \, \| C \text{ pattern} \| + e \sqrt{N},
            \qquad N = \text{hard end} \times \text{touched cells}

        with :math:`\delta` the L2 norm of one event's change and e of
        :func:`~tidegauge.strategies.blt.fixed_point.rounding_error`.

        Raises:
            UnsupportedCombination: The norm is L1.

        Examples:
            >>> from tidegauge.privacy.unit import Event, NeighboringRelation
            >>> one = Neighbors(Event(), NeighboringRelation.ADD_OR_REMOVE_ONE, 0, 1, 1, 1)
            >>> blt = Blt((1 << 63,), (1 << 62,), lattice_bits=40, charged_steps=1 << 20)
            >>> round(float(blt.sensitivity(Norm.L2, one)) / 2**40, 6)  # grains; sqrt(13/12)
            1.040833
        """
        refuse_l1(norm)
        unit = neighbors.unit
        pattern = pattern_gain_squared(
            self.gaps, self.weights, unit.max_events, unit.min_separation
        )
        moved = sqrt_up(neighbors.event_l2_squared * pattern)
        return moved * Fraction(2) ** self.lattice_bits + self.rounding(neighbors)

    def rounding(self, neighbors: Neighbors) -> Fraction:
        """The part e sqrt(N) of the sensitivity that pays for roundings, in lattice units."""
        error = rounding_error(self.gaps, self.lattice_bits) * Fraction(2) ** self.lattice_bits
        return error * sqrt_up(Fraction(self.hard_end * neighbors.touched_cells))

    def init_encoder(self, cells: int) -> State:
        """All states zero: 128 bits a buffer and cell."""
        return fixed_point.init_encoder(len(self.gaps), cells)

    def encode(self, state: State, x: Int64, first: int) -> Int64:
        """Encode a block in 128-bit fixed point.

        Raises:
            StreamEnded: The block reaches beyond ``hard_end``; the state is as it was.
        """
        self.refuse_beyond_end(first + len(x))
        gaps, weights = self._words
        return fixed_point.encode(state, x, gaps, weights, self.largest_total, self.lattice_bits)

    def largest_once(self, most: int) -> int:
        """The largest |x| for :meth:`add_once` if no total is beyond ``most``, in grains."""
        return fixed_point.largest_once(self.absolute_gain, self.gaps, self.lattice_bits, most)

    def add_once(self, state: State, more: Int64) -> Int64:
        """Add to the totals of the step that was encoded last, once in a stream.

        Args:
            state: After that step.
            more: At most :meth:`largest_once` in size; rounded down to whole lattice units.

        Returns:
            What its coordinates grow by, shape (1, cells).
        """
        gaps, weights = self._words
        return fixed_point.add_once(state, more, gaps, weights, self.lattice_bits)

    def refuse_beyond_end(self, last: int) -> None:
        """Refuse a block whose last step, from 1, lies beyond ``hard_end``.

        Raises:
            StreamEnded: It does.
        """
        if last > self.hard_end:
            raise StreamEnded(
                f"Expected at most {self.hard_end} steps, got step {last}. Roundings "
                "beyond are not paid for. Declare a longer stream from the start."
            )

    def init_decoder(self, views: Sequence[Decay], cells: int) -> State:
        """The decoder's own states and those of the views, all zero."""
        return filters.init_decoder(views, cells, len(self.gaps))

    def decode(
        self, state: State, views: Sequence[Decay], measured: Int64, first: int, out: Float64
    ) -> None:
        """Recover the private increments in float64 and filter them."""
        gaps, weights = self.floats
        unit = 2.0**-self.lattice_bits
        filters.decode_views(
            state, views, measured, first, out, gaps=gaps, weights=weights, unit=unit
        )

    def variance_gain(self, view: Decay, steps: Int64) -> Float64:
        """The squared row norms of B, in closed form (see :mod:`.variance`)."""
        gain = variance.variance_gain(self.gaps, self.weights, view, steps)
        return gain * 4.0**-self.lattice_bits

    def worst_variance_gain(self, view: Decay, horizon: int) -> float:
        """The gain grows with the step: the last one, or the limit."""
        last = worst_step(view, horizon)
        if last is not None:
            return float(self.variance_gain(view, np.array([last]))[0])
        limit = variance.variance_limit(self.gaps, self.weights, view)
        return limit * 4.0**-self.lattice_bits

    def noise_terms(self, view: Decay, step: int) -> tuple[Float64, Int64]:
        """The sizes of a row of B; old ones in groups (see ``noise_groups``)."""
        return study.noise_groups(lambda steps: self.variance_gain(view, steps), step)

    def coefficients(self, n: int) -> Float64:
        """c_0 ... c_(n-1), correctly rounded to a few units in the last place."""
        integer("n", n, low=1, high=_MOST_COEFFICIENTS, why="Each is computed. Ask for fewer.")
        gaps, weights = self.floats
        lags = np.arange(n - 1, dtype=np.float64)
        pairs = zip(weights, np.log1p(-gaps), strict=True)
        tail = sum((weight * np.exp(rate * lags) for weight, rate in pairs), np.zeros(n - 1))
        return np.concatenate([np.ones(1), tail])

    @cached_property
    def floats(self) -> tuple[Float64, Float64]:
        """Gaps and weights as floats, for the decoder."""
        return np.array([g / UNIT for g in self.gaps]), np.array([w / UNIT for w in self.weights])

    @cached_property
    def _words(self) -> tuple[UInt64, UInt64]:
        return np.array(self.gaps, dtype=np.uint64), np.array(self.weights, dtype=np.uint64)
