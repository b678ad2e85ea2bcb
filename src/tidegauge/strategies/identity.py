"""The identity: each step is measured by itself, and views add up the noisy steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np

from tidegauge.checks import integer
from tidegauge.errors import InvalidInput, UnsupportedCombination
from tidegauge.privacy.rounding import sqrt_up
from tidegauge.privacy.unit import Neighbors
from tidegauge.strategies import filters, study
from tidegauge.strategies.decay import Decay
from tidegauge.strategies.strategy import (
    Float64,
    Int64,
    Norm,
    RowPerStep,
    State,
)

__all__ = ["Identity"]

_NONE = np.empty(0)
_LATTICE = "Coordinates are 64-bit integers. Measure in other grains."


@final
@dataclass(frozen=True)
class Identity(RowPerStep):
    r"""C = I: coordinates are the totals themselves, on the lattice 2^-lattice_bits.

    The best strategy under pure epsilon for short memories (windows up to about 64, factors up to
    .999, every polynomial decay); the error of a running sum grows as the root of its length.

    Guarantee:
        The sensitivity is exact for every unit: an event moves one step by ``event_l1`` or
        ``sqrt(event_l2_squared)``; k events move k times that, or under L2 sqrt(k) times if no two
        share a step. It holds for ever.

    Args:
        lattice_bits: The lattice is 2^-lattice_bits grains; 0 to 40. Laplace noise needs 0.

    Raises:
        InvalidParameter: ``lattice_bits`` is out of range.

    Examples:
        >>> strategy = Identity(0)
        >>> strategy.encode(strategy.init_encoder(1), np.array([[3], [5]]), 0).ravel()
        array([3, 5])
    """

    lattice_bits: int

    def __post_init__(self) -> None:
        bits = integer("lattice_bits", self.lattice_bits, low=0, high=40, why=_LATTICE)
        object.__setattr__(self, "lattice_bits", bits)

    @property
    def norms(self) -> frozenset[Norm]:
        """L2 always; L1 on whole grains."""
        return frozenset(Norm) if self.lattice_bits == 0 else frozenset({Norm.L2})

    @property
    def hard_end(self) -> None:
        """None: the sensitivity holds for ever."""
        return None

    @property
    def absolute_gain(self) -> Fraction:
        """1."""
        return Fraction(1)

    @property
    def largest_total(self) -> int:
        """2^(62 - lattice_bits)."""
        return 1 << (62 - self.lattice_bits)

    def sensitivity(self, norm: Norm, neighbors: Neighbors) -> Fraction:
        """How far the coordinates can move, in lattice units; exact up to the root's rounding.

        Raises:
            UnsupportedCombination: L1 on a lattice finer than the grain.

        Examples:
            >>> from tidegauge.privacy.unit import Contributions, NeighboringRelation
            >>> unit = Contributions(9, min_separation=1)
            >>> apart = Neighbors(unit, NeighboringRelation.ADD_OR_REMOVE_ONE, 0, 1, 1, 1)
            >>> Identity(0).sensitivity(Norm.L2, apart)
            Fraction(3, 1)
        """
        if norm not in self.norms:
            raise UnsupportedCombination(
                f"Expected lattice_bits=0 under L1, got lattice_bits={self.lattice_bits}. Laplace "
                "noise lies on whole grains. Use lattice_bits=0, or make the grain finer."
            )
        events = neighbors.unit.max_events
        scale = 1 << self.lattice_bits
        if norm is Norm.L1:
            return Fraction(events * neighbors.event_l1 * scale)
        times = events if neighbors.unit.min_separation else events**2
        return sqrt_up(Fraction(times * neighbors.event_l2_squared)) * scale

    def init_encoder(self, cells: int) -> State:
        """Nothing but the number of cells has to be kept."""
        return {"cells": np.array([cells])}

    def encode(self, state: State, x: Int64, first: int) -> Int64:
        """The totals in lattice units, clamped to the largest."""
        if x.dtype != np.int64 or x.ndim != 2 or x.shape[1] != state["cells"][0]:
            raise InvalidInput(
                f"Expected totals of dtype int64 and shape (steps, {state['cells'][0]}), got "
                f"{x.dtype} of shape {x.shape}. They would be measured in the wrong cells. "
                "Convert them first."
            )
        clamped = np.minimum(np.maximum(x, -self.largest_total), self.largest_total)
        return np.ascontiguousarray(clamped) << self.lattice_bits

    def largest_once(self, most: int) -> int:
        """The largest |x| for :meth:`add_once` if no total is beyond ``most``, in grains."""
        return max(0, self.largest_total - most)

    def add_once(self, state: State, more: Int64) -> Int64:
        """Return what coordinates of a step grow by if its totals do, shape (1, cells)."""
        return np.ascontiguousarray(more[None]) << self.lattice_bits

    def init_decoder(self, views: Sequence[Decay], cells: int) -> State:
        """The state of the views."""
        return filters.init_decoder(views, cells, 0)

    def decode(
        self, state: State, views: Sequence[Decay], measured: Int64, first: int, out: Float64
    ) -> None:
        """Filter the noisy steps."""
        filters.decode_views(
            state,
            views,
            measured,
            first,
            out,
            gaps=_NONE,
            weights=_NONE,
            unit=2.0**-self.lattice_bits,
        )

    def variance_gain(self, view: Decay, steps: Int64) -> Float64:
        """The sum of the first ``steps`` squared weights of the decay, in closed form.

        Examples:
            >>> from tidegauge.strategies.decay import Window
            >>> Identity(0).variance_gain(Window(3), np.array([1, 2, 10**9]))
            array([1., 2., 3.])
        """
        return study.energy(view, steps) * 4.0**-self.lattice_bits

    def worst_variance_gain(self, view: Decay, horizon: int) -> float:
        """The gain grows with the step: the last one, or the limit."""
        return study.worst_energy(view, horizon) * 4.0**-self.lattice_bits

    def noise_terms(self, view: Decay, step: int) -> tuple[Float64, Int64]:
        """The weights of the noisy steps in a view; old ones in groups (see ``noise_groups``)."""
        weights, counts = study.noise_terms(view, step)
        return weights * 2.0**-self.lattice_bits, counts
