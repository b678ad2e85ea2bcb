"""The tree of decayed sums of Bolot et al.: its left nodes, of which each step completes one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, final

import numpy as np

from tidegauge.checks import integer
from tidegauge.compiled import lazy_module
from tidegauge.errors import InvalidInput, InvalidParameter, UnsupportedCombination
from tidegauge.privacy.rounding import sqrt_up
from tidegauge.privacy.unit import Neighbors
from tidegauge.strategies.decay import Decay, Exponential, Step
from tidegauge.strategies.decayed.table import UNIT_BITS, Table, powers, table_of
from tidegauge.strategies.strategy import (
    Float64,
    Int64,
    Norm,
    State,
    Strategy,
    step_coordinates,
)

if TYPE_CHECKING:
    from tidegauge.strategies.decayed import _kernels
else:
    _kernels = lazy_module("tidegauge.strategies.decayed._kernels")

__all__ = ["DecayedTree", "printed_sensitivity"]

_LEVELS = 40  # the lowest bits of 1 .. 2^39
_LEAST_BITS, _MOST_BITS = 10, 30
_NEGLIGIBLE = 1e-12
_PRINTED_BITS = 32


def printed_sensitivity(alpha: float | Fraction) -> Fraction:
    r"""Return the paper's bound :math:`\lambda` on the sensitivity, rounded up.

    .. math:: \lambda = \frac{\ln(2 \alpha / (1 - \alpha)) + 1/2 + \ln 2}{\alpha \ln 2}

    It is claimed for alpha in (2/3, 1), and holds there; below about 0.1454 it does not.

    Examples:
        >>> round(float(printed_sensitivity(0.9)), 8)
        6.54585836

    References:
        Bolot, Fawaz, Muthukrishnan, Nikolov and Taft 2013, section 4.1.
    """
    a = float(alpha)
    bound = (math.log(2 * a / (1 - a)) + 0.5 + math.log(2)) / (a * math.log(2))
    return Fraction(math.ceil(bound * (1 << _PRINTED_BITS)) + 1, 1 << _PRINTED_BITS)


@final
@dataclass(frozen=True)
class DecayedTree(Strategy):
    r"""One row a step: step t completes the node of the ``lowest bit of t`` latest steps.

    .. math:: (C x)_t = \sum_{i = t - b + 1}^{t} w_{t - i} x_i, \quad b = t \mathbin{\&} -t

    These are the left nodes of every binary tree over the stream, each tree's root counted as
    left: all that the sums of the first j steps ever need. The decayed sum at j is that of the
    nodes given by the binary digits of j, each decayed to j.

    Guarantee:
        L1 and L2 sensitivity are exact for one event, and attained at step 1, which lies in nodes
        that end at 1, 2, 4, 8, ...: :math:`S = \sum_k w_{2^k - 1}`. For ever. Of ids with several
        events, the sum over the events. Proof: ``docs/proofs/bolot.md``.

    Args:
        gap: One minus the factor alpha, an integer over 2^64, in [2^40, 2^64).
        lattice_bits: F; weights are multiples of 2^-F. 10 to 30.
        printed: Charge the paper's lambda in place of the sensitivity: more noise than needed.

    Raises:
        InvalidParameter: A number is out of range, coordinates would overflow, or the printed
            lambda is below the sensitivity.

    Cost:
        Memory: 40 integers a cell, 80 floats a cell to decode, and tables of the root of the
        decay's memory. Time: a multiplication a level of the decay's memory.

    Examples:
        >>> tree = DecayedTree.of(Exponential(factor=0.5), 10)
        >>> tree.encode(tree.init_encoder(1), np.array([[4], [4], [4], [4]]), 0).ravel() / 1024
        array([4. , 6. , 4. , 7.5])

    References:
        Bolot, Fawaz, Muthukrishnan, Nikolov and Taft 2013, Algorithm 3.
    """

    gap: int
    lattice_bits: int
    printed: bool = False

    def __post_init__(self) -> None:
        why = "It is one minus the factor, over 2^64. Use a factor in (0, 1 - 2^-24]."
        gap = integer("gap", self.gap, low=1 << 40, high=(1 << UNIT_BITS) - 1, why=why)
        why = "Weights are multiples of 2^-lattice_bits. Use fewer where totals are large."
        bits = integer("lattice_bits", self.lattice_bits, low=_LEAST_BITS, high=_MOST_BITS, why=why)
        object.__setattr__(self, "gap", gap)
        object.__setattr__(self, "lattice_bits", bits)
        if self.largest_total < 1:
            raise InvalidParameter(
                f"Expected lattice_bits that leave room for a total, got {bits}. Coordinates "
                "would overflow. Use fewer lattice_bits, or a shorter half-life."
            )
        if self.printed and self._printed < self._ages_l1:
            raise InvalidParameter(
                "Expected a factor for which the printed lambda covers the sensitivity, got "
                f"alpha={1 - gap / 2**UNIT_BITS:.6g}. Below about 0.1454 the noise would be too "
                "small. Leave as_printed out."
            )

    @staticmethod
    def of(decay: Exponential, lattice_bits: int, *, printed: bool = False) -> DecayedTree:
        """Return the tree of a decay."""
        return DecayedTree(_gap_of(decay), lattice_bits, printed)

    @property
    def norms(self) -> frozenset[Norm]:
        """Both; the printed lambda bounds L1 alone."""
        return frozenset({Norm.L1}) if self.printed else frozenset(Norm)

    @property
    def hard_end(self) -> None:
        """None: the sensitivity holds for ever."""
        return None

    @property
    def absolute_gain(self) -> Fraction:
        """All weights together."""
        return Fraction(self._total, 1 << self.lattice_bits)

    @property
    def largest_total(self) -> int:
        """2^62 over the sum of the weights."""
        return (1 << 62) // self._total

    @cached_property
    def _table(self) -> Table:
        return table_of(self.gap)

    @cached_property
    def _total(self) -> int:
        return self._table.total(self.lattice_bits)

    @cached_property
    def _ages(self) -> tuple[int, ...]:
        """The weights of step 1 in the nodes that hold it, w at 0, 1, 3, 7, ..."""
        return tuple(
            self._table.weight((1 << level) - 1, self.lattice_bits) for level in range(_LEVELS)
        )

    @property
    def _ages_l1(self) -> int:
        return sum(self._ages)

    @cached_property
    def _printed(self) -> int:
        factor = 1 - Fraction(self.gap, 1 << UNIT_BITS)
        return math.ceil(printed_sensitivity(factor) * (1 << self.lattice_bits))

    def sensitivity(self, norm: Norm, neighbors: Neighbors) -> Fraction:
        """How far the coordinates can move, in lattice units; exact for one event."""
        if norm not in self.norms:
            raise UnsupportedCombination(
                "Expected L1 with the printed lambda, got L2. The paper bounds no other norm. "
                "Leave as_printed out."
            )
        events = neighbors.unit.max_events
        if norm is Norm.L1:
            each = self._printed if self.printed else self._ages_l1
            return Fraction(events * neighbors.event_l1 * each)
        squares = sum(weight**2 for weight in self._ages)
        return sqrt_up(Fraction(events**2 * neighbors.event_l2_squared * squares))

    def init_encoder(self, cells: int) -> State:
        """The open node of each level."""
        return {"open": np.zeros((_LEVELS, cells), np.int64)}

    def encode(self, state: State, x: Int64, first: int) -> Int64:
        """The nodes that these steps complete."""
        step_coordinates(first, len(x))  # refuses a step that has no number
        if x.dtype != np.int64 or x.ndim != 2 or x.shape[1] != state["open"].shape[1]:
            raise InvalidInput(
                f"Expected totals of dtype int64 and shape (steps, {state['open'].shape[1]}), got "
                f"{x.dtype} of shape {x.shape}. They would be measured in the wrong cells. "
                "Convert them first."
            )
        table = self._table
        out = np.empty(x.shape, np.int64)
        _kernels.encode(
            state["open"], x, first, table.high, table.low, self.lattice_bits, table.shift,
            self.largest_total, out,
        )  # fmt: skip
        return out

    def coordinates(self, first: int, steps: int) -> Int64:
        """One row a step."""
        return step_coordinates(first, steps)

    def gain_tells_terms(self, view: Decay) -> bool:
        """Always: equal gains weigh draws alike, and gains fall after every odd step."""
        return True

    @property
    def drawn_places(self) -> int:
        """1: every row."""
        return 1

    def init_decoder(self, views: Sequence[Decay], cells: int) -> State:
        """The latest node and decayed sum of each level.

        Raises:
            UnsupportedCombination: A view is neither the tree's own decay nor a step.
        """
        for view in views:
            self._check(view)
        names = ("nodes", "sums", "inner")
        return {name: np.zeros((_LEVELS, cells)) for name in names}

    def decode(
        self, state: State, views: Sequence[Decay], measured: Int64, first: int, out: Float64
    ) -> None:
        """The decayed sum of each step, from one node and one earlier sum."""
        unit = 2.0**-self.lattice_bits
        own = np.empty(measured.shape)
        _kernels.decode(state["nodes"], state["sums"], measured, first, self._powers, unit, own)
        single = any(isinstance(view, Step) for view in views)
        if single:
            steps = np.empty(measured.shape)
            _kernels.decode_steps(state["inner"], measured, first, self._powers, unit, steps)
        for place, view in enumerate(views):
            out[place] = own * view.scale if isinstance(view, Exponential) else steps

    @cached_property
    def _powers(self) -> Float64:
        """The factor to the powers 1, 2, 4, ...; shape (levels,)."""
        return np.array(powers(self.gap, _LEVELS))

    def variance_gain(self, view: Decay, steps: Int64) -> Float64:
        r"""Sum over the binary digits of t: the square of what is left of each node at t."""
        self._check(view)
        unit = 0.25**self.lattice_bits
        if isinstance(view, Step):
            inner = np.concatenate([[1.0], 1 + np.cumsum(self._powers**2)])
            levels = np.array([(int(t) & -int(t)).bit_length() - 1 for t in steps], np.int64)
            return np.asarray(inner[levels] * unit)
        assert isinstance(view, Exponential)
        total = np.zeros(len(steps))
        for _, left in self._digits(steps):
            total += left**2
        return total * (view.scale**2 * unit)

    def _digits(self, steps: Int64) -> list[tuple[Int64, Float64]]:
        """For each binary digit, from the lowest: the digit, and what is left of its node, or 0."""
        left = np.ones(len(steps))
        found = []
        for level in range(_LEVELS - 1):
            digit = steps >> level & 1
            found.append((digit, np.where(digit == 1, left, 0.0)))
            left = np.where(digit == 1, left * self._powers[level], left)
        return found

    def worst_variance_gain(self, view: Decay, horizon: int) -> float:
        """The gain at the last step up to the horizon whose binary digits are all 1.

        Its nodes have the least ages there can be, and no step before it has more of them.
        """
        if isinstance(view, Step):
            worst = 1 << (horizon.bit_length() - 1)  # the largest node
        else:
            worst = (1 << ((horizon + 1).bit_length() - 1)) - 1
        return float(self.variance_gain(view, np.array([worst]))[0])

    def noise_terms(self, view: Decay, step: int) -> tuple[Float64, Int64]:
        """What is left of each node at ``step``; each once."""
        self._check(view)
        unit = 0.5**self.lattice_bits
        if isinstance(view, Step):
            level = (step & -step).bit_length() - 1
            weights = np.concatenate([[1.0], self._powers[:level]])
        else:
            assert isinstance(view, Exponential)
            left = (left for _, left in self._digits(np.array([step])))
            weights = np.concatenate(list(left)) * view.scale
        weights, counts = np.unique(weights, return_counts=True)
        kept = weights > _NEGLIGIBLE * weights.max()
        return weights[kept] * unit, counts[kept].astype(np.int64)

    def _check(self, view: Decay) -> None:
        own = isinstance(view, Exponential) and _gap_of(view) == self.gap
        if not own and not isinstance(view, Step):
            raise UnsupportedCombination(
                f"Expected the exponential decay that the tree was made for, got {view.name}. Its "
                "nodes hold sums that are decayed already. Plan a gauge for that view."
            )


def _gap_of(decay: Exponential) -> int:
    return round(Fraction(decay.gap) * (1 << UNIT_BITS))
