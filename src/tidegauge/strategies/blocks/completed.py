"""Blocks: the noisy total of every block, published when it completes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import final

import numpy as np

from tidegauge.checks import shown
from tidegauge.errors import InvalidParameter
from tidegauge.privacy.unit import Neighbors
from tidegauge.strategies.blocks.combinations import Paths, Way
from tidegauge.strategies.blocks.decoding import (
    decode_rows,
    init_decoding,
    read_sums,
    view_gain,
    view_terms,
    view_worst,
)
from tidegauge.strategies.blocks.encoding import encode_rows
from tidegauge.strategies.blocks.levels import (
    check_end,
    check_totals,
    checked_levels,
    checked_weights,
    largest_total,
    power_levels,
    row_coordinates,
    sensitivity,
)
from tidegauge.strategies.decay import Decay, Difference
from tidegauge.strategies.strategy import Float64, Int64, Norm, State, Strategy

__all__ = ["Blocks"]

_NO_VIEWS = np.empty(0, np.int64)


@final
@dataclass(frozen=True)
class Blocks(Strategy):
    r"""Nested blocks of steps; the measurement is each block's total when it completes.

    Level l cuts the stream into blocks of ``levels[l]`` steps. Every event lies in exactly one
    block of each level, so the guarantee holds for ever: L1 sensitivity is the number of levels,
    L2 its root. Running sums and windows are put together from the fewest completed blocks;
    other decays are filters of the noisy steps.

    ``signed=False`` with the levels of :meth:`base` is BaseMech (Cardoso and Rogers 2021), and
    the binary mechanism for base 2; ``levels=(1,)`` is noise on each step. With ``weights`` the
    rows of level l are ``weights[l]`` times the totals, so that under one law of noise a level has
    its share of the budget: L1 sensitivity is their sum. Proof: docs/proofs/blocks.md.

    Args:
        levels: Sizes of the blocks: 1 first, each a multiple of the one before; at most 64.
        signed: Blocks may be subtracted; never more blocks than without.
        lattice_bits: The measurement lies on the lattice 2^-lattice_bits grains; 0 to 40.
        weights: Integers that multiply the rows of each level, never rising; none: all 1.
        printed: Windows by the formula that Bolot et al. print (:attr:`.Way.PRINTED`), for
            comparison; the sizes must be powers of two and ``signed`` false.

    Raises:
        InvalidParameter: The sizes are not nested, the weights rise or fall too fast, or a number
            is out of range.

    Cost: 1 + 1/b_1 + 1/b_2 + ... rows a step on average, and a few look-ups a level, view and step;
    memory for each cell and level as long as the longest window and two of its parents, in blocks
    (at most doubled). Nothing grows beyond that with the stream.

    Examples:
        >>> from tidegauge.strategies.decay import Window
        >>> Blocks((1, 16, 256)).variance_gain(Window(256), np.array([1000]))
        array([31.])
    """

    levels: tuple[int, ...]
    signed: bool = True
    lattice_bits: int = 0
    weights: tuple[int, ...] = ()
    printed: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", checked_levels(self.levels, self.lattice_bits))
        object.__setattr__(self, "lattice_bits", int(self.lattice_bits))
        weights = checked_weights(self.weights, self.levels, by_price=self.signed)
        object.__setattr__(self, "weights", weights)
        if self._longest_row << self.lattice_bits > 1 << 62:
            raise InvalidParameter(
                f"Expected rows of at most 2**{62 - self.lattice_bits} steps, got weights "
                f"{shown(weights)} for levels {shown(self.levels)}. Totals would leave int64. Use "
                "a coarser lattice or smaller weights."
            )
        powers = all(b == 2 * a for a, b in pairwise(self.levels))
        if self.printed and (self.signed or not powers):
            raise InvalidParameter(
                "Expected levels 1, 2, 4, ... and signed=False for the printed formula, got levels "
                f"{shown(self.levels)} and signed={self.signed}. It is stated for binary trees. "
                "Leave printed out."
            )

    @property
    def _longest_row(self) -> int:
        weights = self.weights or (1,) * len(self.levels)
        return max(size * weight for size, weight in zip(self.levels, weights, strict=True))

    @cached_property
    def _paths(self) -> Paths:
        way = Way.PRINTED if self.printed else Way.SIGNED if self.signed else Way.UNSIGNED
        return Paths(self.levels, way, tuple(weight**-2.0 for weight in self.weights))

    @cached_property
    def _units(self) -> Int64:
        weights = self.weights or (1,) * len(self.levels)
        return np.array([*weights, 1], np.int64) << self.lattice_bits

    @cached_property
    def _scales(self) -> Float64:
        return np.array([1 / weight for weight in self.weights])

    @staticmethod
    def base(base: int, horizon: int, lattice_bits: int = 0) -> Blocks:
        """The r-ary mechanism for running sums up to ``horizon``.

        Examples:
            >>> Blocks.base(2, 8).levels
            (1, 2, 4, 8)
        """
        return Blocks(power_levels(base, horizon), False, lattice_bits)

    @property
    def norms(self) -> frozenset[Norm]:
        """Both: only completed blocks are used, each of them measured once."""
        return frozenset(Norm)

    @property
    def hard_end(self) -> None:
        """None: an event lies in one block a level however long the stream is."""
        return None

    @property
    def absolute_gain(self) -> Fraction:
        """The size of the largest block; of its row, where rows have weights."""
        return Fraction(self._longest_row)

    @property
    def largest_total(self) -> int:
        """2^62 lattice units over the longest row's steps, rounded down to a power of two."""
        return largest_total(self._longest_row, self.lattice_bits)

    def sensitivity(self, norm: Norm, neighbors: Neighbors) -> Fraction:
        """How far the blocks' totals can move, in lattice units, rounded up."""
        return sensitivity(self.levels, norm, neighbors, self.weights) * (1 << self.lattice_bits)

    def init_encoder(self, cells: int) -> State:
        """The totals of the open blocks, shape (levels, cells)."""
        return {"open_sums": np.zeros((len(self.levels), cells), np.int64)}

    def encode(self, state: State, x: Int64, first: int) -> Int64:
        """Exact totals of the blocks that complete, smallest first within each step.

        Raises:
            InvalidInput: ``x`` is not int64 of shape (steps, cells); the state is as it was.
            StreamEnded: Blocks would reach beyond step 2^38; the state is as it was.
        """
        check_totals(x, state["open_sums"].shape[1])
        check_end(self.levels, first + len(x))
        return encode_rows(
            state["open_sums"],
            np.empty((0, x.shape[1]), np.int64),
            x,
            first,
            self.levels,
            self.largest_total,
            self._units,
            _NO_VIEWS,
        )

    def coordinates(self, first: int, steps: int) -> Int64:
        """The block of level l that ends with step s (from 0) has the number ``64 s + l``."""
        return row_coordinates(self.levels, 0, first, steps)

    @property
    def drawn_places(self) -> int:
        """One a level: every row."""
        return len(self.levels)

    def init_decoder(self, views: Sequence[Decay], cells: int) -> State:
        """Running sums of the completed blocks of each level, and the filters' states."""
        return init_decoding(self.levels, views, (), cells)

    def decode(
        self, state: State, views: Sequence[Decay], measured: Int64, first: int, out: Float64
    ) -> None:
        """Write every view of a block into ``out``, shape (views, steps, cells), in grains."""
        unit = 0.5**self.lattice_bits
        decode_rows(state, self._paths, views, 0, measured, first, unit, out, self._scales)

    def windows(self, state: State, lengths: Int64, step: int) -> Float64:
        """Return the sums over the last ``lengths`` of the first ``step`` steps, in grains.

        The values that decoding each window would give at this step, without having asked for it.

        Args:
            state: Of a decoder that has seen ``step`` steps, and one of whose views is a window
                at least as long as the longest of them.
            lengths: Steps of each window, shape (windows,).
            step: Counted from 1.

        Returns:
            Shape (windows, cells).

        Raises:
            InvalidParameter: A length is not between 1 and what the decoder keeps.

        Cost: O(levels) a window and cell.
        """
        longest = int(state["reach"][1])
        if len(lengths) and not 1 <= lengths.min() <= lengths.max() <= longest:
            raise InvalidParameter(
                f"Expected windows of 1 to {longest} steps, got one outside. Blocks further back "
                "are not kept. Keep a longer window from the start."
            )
        unit = 0.5**self.lattice_bits
        return read_sums(state, self._paths, lengths, step, unit, self._scales)

    def variance_gain(self, view: Decay, steps: Int64) -> Float64:
        """Number of blocks that a sum takes; the sum of squared weights of another decay.

        Each over the square of its level's weight.
        """
        gain = view_gain(self._paths, view, steps)
        return gain * 0.25**self.lattice_bits

    def worst_variance_gain(self, view: Decay, horizon: int) -> float:
        """The most blocks that a sum takes up to the horizon; another decay in the limit."""
        worst = view_worst(self._paths, view, horizon)
        return worst * 0.25**self.lattice_bits

    def noise_terms(self, view: Decay, step: int) -> tuple[Float64, Int64]:
        """A sum of blocks: a weight for each level, as often as it has blocks."""
        weights, counts = view_terms(self._paths, view, step)
        return weights * 0.5**self.lattice_bits, counts

    def gain_tells_terms(self, view: Decay) -> bool:
        """Not of changes, nor with weights: rows of one variance may weigh draws differently."""
        return not isinstance(view, Difference) and not self.weights
