"""Blocks: the noisy total of every block, published when it completes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np

from tidegauge.privacy.unit import Neighbors
from tidegauge.strategies.blocks.decoding import (
    decode_rows,
    init_decoding,
    view_gain,
    view_terms,
    view_worst,
)
from tidegauge.strategies.blocks.encoding import encode_rows
from tidegauge.strategies.blocks.levels import (
    check_end,
    check_totals,
    checked_levels,
    largest_total,
    power_levels,
    row_coordinates,
    sensitivity,
)
from tidegauge.strategies.decay import Decay
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
    the binary mechanism for base 2; ``levels=(1,)`` is noise on each step. Proof:
    docs/proofs/blocks.md.

    Args:
        levels: Sizes of the blocks: 1 first, each a multiple of the one before; at most 64.
        signed: Blocks may be subtracted; never more blocks than without.
        lattice_bits: The measurement lies on the lattice 2^-lattice_bits grains; 0 to 40.

    Raises:
        InvalidParameter: The sizes are not nested, or a number is out of range.

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

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", checked_levels(self.levels, self.lattice_bits))
        object.__setattr__(self, "lattice_bits", int(self.lattice_bits))

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
        """The size of the largest block."""
        return Fraction(self.levels[-1])

    @property
    def largest_total(self) -> int:
        """2^62 lattice units over the largest block's steps, rounded down to a power of two."""
        return largest_total(self.levels[-1], self.lattice_bits)

    def sensitivity(self, norm: Norm, neighbors: Neighbors) -> Fraction:
        """How far the blocks' totals can move, in lattice units, rounded up."""
        return sensitivity(self.levels, norm, neighbors) * (1 << self.lattice_bits)

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
            self.lattice_bits,
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
        decode_rows(state, self.levels, views, 0, self.signed, measured, first, unit, out)

    def variance_gain(self, view: Decay, steps: Int64) -> Float64:
        """Number of blocks that a sum takes; the sum of squared weights of another decay."""
        gain = view_gain(self.levels, view, steps, self.signed, opened=False)
        return gain * 0.25**self.lattice_bits

    def worst_variance_gain(self, view: Decay, horizon: int) -> float:
        """The most blocks that a sum takes up to the horizon; another decay in the limit."""
        worst = view_worst(self.levels, view, horizon, self.signed, False)
        return worst * 0.25**self.lattice_bits

    def noise_terms(self, view: Decay, step: int) -> tuple[Float64, Int64]:
        """A sum of blocks: one weight, as often as there are blocks."""
        weights, counts = view_terms(self.levels, view, step, self.signed, False)
        return weights * 0.5**self.lattice_bits, counts
