"""A buffered Toeplitz strategy behind a comb: the best there is for windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import final

import numpy as np

from tidegauge.checks import exact, integer, shown
from tidegauge.errors import InvalidParameter, UnsupportedCombination
from tidegauge.privacy.rounding import sqrt_up
from tidegauge.privacy.unit import Neighbors
from tidegauge.strategies import filters, study
from tidegauge.strategies.blt import fixed_point, variance
from tidegauge.strategies.blt.blt import Blt
from tidegauge.strategies.blt.comb_patterns import comb_pattern_gain_squared
from tidegauge.strategies.bounds import worst_step
from tidegauge.strategies.decay import Decay
from tidegauge.strategies.strategy import (
    MOST_STEPS,
    Float64,
    Int64,
    Norm,
    RowPerStep,
    State,
    refuse_l1,
)

__all__ = ["LONGEST_LAG", "Comb", "beta_of"]

LONGEST_LAG = 1 << 16
_STEEPEST = 32


def beta_of(value: object) -> Fraction:
    """Return the weight of a comb's tooth as an exact fraction.

    Raises:
        InvalidParameter: It is not a number of 32nds between 0 and 1.

    Examples:
        >>> beta_of(0.375)
        Fraction(3, 8)
    """
    why = "It is what the encoder takes away of an old total. Give the fraction of a fit."
    beta = exact("beta", value, above=0, below=1, why=why)
    if _STEEPEST % beta.denominator:
        raise InvalidParameter(
            f"Expected beta in 32nds, got {shown(beta)}. The encoder works in whole numbers, and "
            "its totals grow by the denominator. Round to the next 32nd."
        )
    return beta


@final
@dataclass(frozen=True)
class Comb(RowPerStep):
    r"""A ``Blt`` that is fed differences: of each total and a part of that of ``lag`` steps ago.

    .. math:: C = c_d \, C_0(z) (1 - \beta z^W), \qquad
        y_t = c_d x_t - c_n x_{t - W}, \quad \beta = c_n / c_d

    with :math:`C_0` of the Blt and whole numbers :math:`y`, so its fixed point and its roundings
    are the Blt's. The decoder adds :math:`\beta` times its own increment of W steps ago. For a
    window of W steps it comes within about 1 % of the lower bound, a Blt alone within 7 to 9 %.

    Guarantee:
        Neighboring streams' coordinates differ by at most ``sensitivity`` in L2, roundings
        included, up to ``hard_end`` steps, on every path of an adaptively chosen stream. Proof:
        ``docs/proofs/blt.md``.

    Args:
        gaps: Of the Blt.
        weights: Of the Blt.
        beta: A number of 32nds, strictly between 0 and 1.
        lag: W in steps; 1 to 65536.
        lattice_bits: Of the Blt.
        charged_steps: Of the Blt.

    Raises:
        InvalidParameter: A number is out of range, or the lattice leaves no room for totals.

    Memory: that of the Blt, 8 W bytes (private) and 8 W bytes (public) a cell. Time: about 2 ns a
    cell and step more than the Blt.

    Examples:
        >>> comb = Comb((1 << 60,), (1 << 62,), Fraction(1, 2), 2, lattice_bits=2)
        >>> comb.encode(comb.init_encoder(1), np.array([[4], [0], [0]]), 0).ravel() / 4  # grains
        array([ 8.  ,  2.  , -2.25])

    References:
        The filter as for :class:`Blt`; the comb, its encoder in whole numbers and its sensitivity
        are ours.
    """

    gaps: tuple[int, ...]
    weights: tuple[int, ...]
    beta: Fraction
    lag: int
    lattice_bits: int
    charged_steps: int = MOST_STEPS

    def __post_init__(self) -> None:
        object.__setattr__(self, "beta", beta_of(self.beta))
        why = "So many totals are kept a cell. Give the shortest window's length."
        object.__setattr__(self, "lag", integer("lag", self.lag, low=1, high=LONGEST_LAG, why=why))
        for name in ("gaps", "weights", "lattice_bits", "charged_steps"):
            object.__setattr__(self, name, getattr(self.blt, name))
        if self.largest_total < 1:
            raise InvalidParameter(
                f"Expected a lattice on which a total of {self._growth} fits 62 bits, got "
                f"lattice_bits={self.lattice_bits}. Coordinates would overflow. "
                "Use fewer lattice_bits, or larger gaps."
            )

    @cached_property
    def blt(self) -> Blt:
        """C_0: what the differences are fed to."""
        return Blt(self.gaps, self.weights, self.lattice_bits, self.charged_steps)

    @property
    def _growth(self) -> int:
        """c_n + c_d: how much larger than a total a difference can be."""
        return self.beta.numerator + self.beta.denominator

    @property
    def norms(self) -> frozenset[Norm]:
        """L2 only."""
        return self.blt.norms

    @property
    def hard_end(self) -> int:
        """``charged_steps``."""
        return self.charged_steps

    @property
    def absolute_gain(self) -> Fraction:
        """(c_n + c_d) times that of the Blt: an upper bound."""
        return self._growth * self.blt.absolute_gain

    @cached_property
    def largest_total(self) -> int:
        """The largest |x| for which no difference is too large for the Blt, in grains."""
        return self.blt.largest_total // self._growth

    def sensitivity(self, norm: Norm, neighbors: Neighbors) -> Fraction:
        r"""How far the coordinates can move in L2, in lattice units, rounded up.

        .. math:: \Delta = \delta \, c_d \, \| C_0 (1 - \beta z^W) \text{ pattern} \| + e \sqrt{N}

        with the terms of :meth:`Blt.sensitivity`; for one event the squared norm is
        :math:`(1 + \beta^2) R_0(0) - 2 \beta R_0(W)`.

        Raises:
            UnsupportedCombination: The norm is L1.

        Examples:
            >>> from tidegauge.privacy.unit import Event, NeighboringRelation
            >>> one = Neighbors(Event(), NeighboringRelation.ADD_OR_REMOVE_ONE, 0, 1, 1, 1)
            >>> comb = Comb((1 << 63,), (1 << 62,), Fraction(1, 2), 1, 40, 1 << 20)
            >>> round(float(comb.sensitivity(Norm.L2, one)) / 2**40, 6)  # grains; sqrt(17/4)
            2.061553
        """
        refuse_l1(norm)
        if neighbors.distinct is not None:
            raise UnsupportedCombination(
                "Expected a stream of sums, got a count of different values. Behind a comb two "
                "opposite changes do not fall short of two that stand alone. Use no comb."
            )
        unit = neighbors.unit
        pattern = comb_pattern_gain_squared(
            self.gaps, self.weights, self.beta, self.lag, unit.max_events, unit.min_separation
        )
        moved = self.beta.denominator * sqrt_up(neighbors.event_l2_squared * pattern)
        return moved * Fraction(2) ** self.lattice_bits + self.blt.rounding(neighbors)

    def init_encoder(self, cells: int) -> State:
        """The states of the Blt, and the totals of the last ``lag`` steps; all zero."""
        ring = np.zeros((self.lag, cells), dtype=np.int64)
        return {**self.blt.init_encoder(cells), "ring": ring}

    def encode(self, state: State, x: Int64, first: int) -> Int64:
        """Take differences in whole numbers and encode them in 128-bit fixed point.

        Raises:
            StreamEnded: The block reaches beyond ``hard_end``; the state is as it was.
        """
        self.blt.refuse_beyond_end(first + len(x))
        fixed_point.checked(state, x)
        differences = fixed_point.comb(state, x, first, self.beta, self.largest_total)
        return self.blt.encode(state, differences, first)

    def init_decoder(self, views: Sequence[Decay], cells: int) -> State:
        """The decoder's own states, its last increments, and the states of the views."""
        return filters.init_decoder(views, cells, len(self.gaps), self.lag)

    def decode(
        self, state: State, views: Sequence[Decay], measured: Int64, first: int, out: Float64
    ) -> None:
        """Recover the private increments in float64 and filter them."""
        gaps, weights = self.blt.floats
        filters.decode_views(
            state,
            views,
            measured,
            first,
            out,
            gaps=gaps,
            weights=weights,
            unit=self._unit,
            comb=(float(self.beta), self.lag),
        )

    @property
    def _unit(self) -> float:
        """A lattice unit of C_0's output, in grains of a total: exact."""
        unit: float = 2.0**-self.lattice_bits
        return unit / self.beta.denominator

    def variance_gain(self, view: Decay, steps: Int64) -> Float64:
        """The squared row norms of B, in closed form (see :mod:`.variance`)."""
        teeth = self.beta, self.lag
        gain = variance.variance_gain(self.gaps, self.weights, view, steps, teeth)
        return gain * self._unit**2

    def worst_variance_gain(self, view: Decay, horizon: int) -> float:
        """The gain grows with the step: the last one, or the limit."""
        last = worst_step(view, horizon)
        if last is not None:
            return float(self.variance_gain(view, np.array([last]))[0])
        limit = variance.variance_limit(self.gaps, self.weights, view, (self.beta, self.lag))
        return limit * self._unit**2

    def noise_terms(self, view: Decay, step: int) -> tuple[Float64, Int64]:
        """The sizes of a row of B; old ones in groups (see ``noise_groups``)."""
        return study.noise_groups(lambda steps: self.variance_gain(view, steps), step)

    def coefficients(self, n: int) -> Float64:
        """c_0 ... c_(n-1), correctly rounded to a few units in the last place."""
        c = self.blt.coefficients(n)
        c[self.lag :] -= float(self.beta) * c[: max(0, n - self.lag)]
        return c * self.beta.denominator
