"""OpenBlocks: sums released with the noise of blocks that are still open; Laplace noise only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import lcm
from typing import TYPE_CHECKING, final

import numpy as np

from tidegauge.checks import integer, shown
from tidegauge.compiled import lazy_module
from tidegauge.errors import InvalidInput, InvalidParameter, UnsupportedCombination
from tidegauge.privacy.unit import Neighbors
from tidegauge.strategies.blocks.combinations import ALL, Paths, Way, base_of
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
    checked_weights,
    largest_total,
    row_coordinates,
    row_count,
    sensitivity,
    sizes,
)
from tidegauge.strategies.blocks.rings import grow, init_rings, moved
from tidegauge.strategies.decay import Decay, Difference, Running, Window
from tidegauge.strategies.strategy import (
    COORDINATES_PER_STEP,
    Float64,
    Int64,
    Norm,
    State,
    Strategy,
)

if TYPE_CHECKING:
    from tidegauge.strategies.blocks import _kernels
else:
    _kernels = lazy_module("tidegauge.strategies.blocks._kernels")

__all__ = ["OpenBlocks"]


_RUNNING_STEPS = 1 << 31


@final
@dataclass(frozen=True)
class OpenBlocks(Strategy):
    r"""Nested blocks; planned sums are released with the noise of open blocks too.

    A sum that is one step short of a block costs two blocks, not a whole row of small ones, if
    the block's noise is there before the block is complete. It is drawn when the block's parent
    opens and kept in private state. The rows of each step are

    * the noisy total of every block that completes, smallest first;
    * for each planned view, the exact sum plus the signed combination of its blocks' noise.

    Together they are ``A x + L z`` with ``A = L R``, R the blocks' indicators: private under
    discrete Laplace noise of scale ``levels * event_l1 / epsilon``, also when the stream is
    chosen from earlier releases (docs/proofs/blocks.md). No such proof is known for Gaussian
    noise: refused. Running sums with levels 1, k, k^2, ... are the k-ary mechanism with
    subtraction (arXiv 2408.07021).

    The noise enters through :meth:`noise_coordinates` and :meth:`mix`, not row by row. Views
    that are not planned are decoded from completed blocks, differences from the view they are of.

    Args:
        levels: Sizes of the blocks: 1 first, each a multiple of the one before; with the views
            at most 64.
        views: The planned views, Running or Window, each once.
        lattice_bits: The rows lie on the lattice 2^-lattice_bits grains; 0 to 40.
        weights: Shares of the levels in the budget, integers that never rise; none: all alike.
            Rows are then in units of 2^-lattice_bits / M grains, M their least common multiple,
            and the noise of level l is multiplied by ``M / weights[l]``.

    Raises:
        InvalidParameter: The sizes are not nested, the weights rise or fall too fast, a view is
            not a sum, or a number is out of range.

    Cost: as :class:`Blocks`, and one row a step for each planned view; in private state, rings for
    the longest planned window of the exact stream and of each level's noise.

    Examples:
        >>> OpenBlocks((1, 9, 81), (Window(1024),)).variance_gain(Window(1024), np.array([5000]))
        array([22.])
    """

    levels: tuple[int, ...]
    views: tuple[Running | Window, ...]
    lattice_bits: int = 0
    weights: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", checked_levels(self.levels, self.lattice_bits))
        object.__setattr__(self, "lattice_bits", int(self.lattice_bits))
        weights = checked_weights(self.weights, self.levels, by_price=True)
        object.__setattr__(self, "weights", weights)
        why = "Rows are multiplied by it. Use weights that divide a small number, such as 60."
        integer(
            "least common multiple of the weights", self._multiple, low=1, high=1 << 12, why=why
        )
        object.__setattr__(self, "views", tuple(self.views))
        if not all(isinstance(view, Running | Window) for view in self.views):
            raise InvalidParameter(
                f"Expected planned views to be Running or Window, got {shown(self.views)}. Other "
                "decays are not sums of blocks. Leave them out: they are decoded from the steps."
            )
        if not self.views or len(set(self.views)) < len(self.views):
            raise InvalidParameter(
                f"Expected each planned view once, got {shown(self.views)}. Every planned view "
                "costs a row a step. Use Blocks where there is none."
            )
        integer(
            "number of levels and views",
            len(self.levels) + len(self.views),
            low=2,
            high=COORDINATES_PER_STEP,
            why="Each is a row of a step, with a number of its own. Use fewer levels or views.",
        )

    @cached_property
    def _multiple(self) -> int:
        return lcm(*self.weights)

    @cached_property
    def _factors(self) -> Int64:
        """What the draws of each level are multiplied by."""
        weights = self.weights or (1,) * len(self.levels)
        return np.array([self._multiple // weight for weight in weights], np.int64)

    @cached_property
    def _units(self) -> Int64:
        return np.full(len(self.levels) + 1, self._multiple << self.lattice_bits, np.int64)

    def _paths(self, view: Decay | None = None) -> Paths:
        """How a planned view, or the change of one, is put together; None: any other view."""
        planned = view is not None and base_of(view) in self.views
        way = Way.OPENED if planned else Way.SIGNED
        return Paths(self.levels, way, self._prices)

    @cached_property
    def _prices(self) -> tuple[float, ...]:
        """Noise variance of a block, in rows' units; none where all are alike."""
        return tuple(float(factor) ** 2 for factor in self._factors) if self.weights else ()

    @property
    def _unit(self) -> float:
        """One unit of the rows, in grains."""
        return 0.5**self.lattice_bits / self._multiple

    @property
    def norms(self) -> frozenset[Norm]:
        """L1 only."""
        return frozenset({Norm.L1})

    @property
    def hard_end(self) -> None:
        """None: an event lies in one block a level however long the stream is."""
        return None

    @property
    def absolute_gain(self) -> Fraction:
        """The longest sum in a row; a running sum counts as 2^31 steps.

        Beyond those, and only if every total is the largest, its row would wrap modulo 2^64:
        useless, but as private as ever.
        """
        spans = [_RUNNING_STEPS if span == ALL else span for span in self._spans]
        return Fraction(self._multiple * max(self.levels[-1], *spans))

    @property
    def largest_total(self) -> int:
        """2^62 lattice units over the longest sum's steps, rounded down to a power of two."""
        return largest_total(int(self.absolute_gain), self.lattice_bits)

    @cached_property
    def _spans(self) -> list[int]:
        return [ALL if isinstance(view, Running) else view.steps for view in self.views]

    @cached_property
    def _span_array(self) -> Int64:
        return np.array(self._spans, np.int64)

    def sensitivity(self, norm: Norm, neighbors: Neighbors) -> Fraction:
        """How far the blocks' totals, each times its level's weight, can move, in lattice units.

        Raises:
            UnsupportedCombination: ``norm`` is L2.
        """
        if norm is not Norm.L1:
            raise UnsupportedCombination(
                f"Expected Norm.L1 for blocks that are still open, got {norm}. Adaptive privacy "
                "is proved for Laplace noise only. Use Blocks, or a guarantee of pure epsilon."
            )
        return sensitivity(self.levels, norm, neighbors, self.weights) * (1 << self.lattice_bits)

    def init_encoder(self, cells: int) -> State:
        """Totals of the open blocks, (levels, cells); running sums as far back as the windows."""
        slots = 1 + min(max(self._spans), 256)
        return {
            "open_sums": np.zeros((len(self.levels), cells), np.int64),
            "history": np.zeros((slots, cells), np.int64),
        }

    def encode(self, state: State, x: Int64, first: int) -> Int64:
        """Exact rows: the blocks that complete, smallest first, then the planned views.

        Raises:
            InvalidInput: ``x`` is not int64 of shape (steps, cells); the state is as it was.
            StreamEnded: Blocks would reach beyond step 2^38; the state is as it was.
        """
        check_totals(x, state["open_sums"].shape[1])
        end = first + len(x)
        check_end(self.levels, end)
        if len(state["history"]) <= min(max(self._spans), end):
            slots = 1 + min(max(self._spans), 1 << (end - 1).bit_length())
            state["history"] = moved(state["history"], slots, first)
        return encode_rows(
            state["open_sums"],
            state["history"],
            x,
            first,
            self.levels,
            self.largest_total,
            self._units,
            self._span_array,
        )

    def coordinates(self, first: int, steps: int) -> Int64:
        """``64 step + level`` for a block, ``64 step + levels + view`` for a planned view.

        They only number the rows; noise is drawn by :meth:`noise_coordinates`.
        """
        return row_coordinates(self.levels, len(self.views), first, steps)

    def noise_coordinates(self, first: int, steps: int) -> Int64:
        """The blocks whose noise this block of steps draws, shape (draws,).

        All children of every parent that opens, level after level; a block of the last level
        when it opens itself. The block of level l that ends with step s (from 0) has the number
        ``64 s + l``, so each block is drawn exactly once, however the stream is cut.

        Raises:
            StreamEnded: Blocks reach beyond step 2^38.
        """
        check_end(self.levels, first + steps)
        parents = (*self.levels[1:], self.levels[-1])
        numbers = []
        for level, (size, parent) in enumerate(zip(self.levels, parents, strict=True)):
            begin, end = -(-first // parent), -(-(first + steps) // parent)
            if begin < end:
                ends = np.arange(begin * parent + size, end * parent + 1, size)
                numbers.append((ends - 1) * COORDINATES_PER_STEP + level)
        return np.concatenate(numbers) if numbers else np.empty(0, np.int64)

    def init_noise(self, cells: int) -> State:
        """The private noise before the first step: running sums of each level's noise."""
        return init_rings(self.levels, self._spans, cells)

    def mix(self, noise_state: State, fresh: Int64, first: int, steps: int) -> Int64:
        """Return the noise of the rows of ``encode``: integer combinations ``L z``.

        Args:
            noise_state: From :meth:`init_noise`; changed in place.
            fresh: Independent draws for :meth:`noise_coordinates`, shape (draws, cells).
            first: Index of the first step, from 0.
            steps: Steps of the block.

        Raises:
            InvalidInput: ``fresh`` has another shape; the state is as it was.

        Returns:
            Shape (rows, cells), C-contiguous, in lattice units; the caller's.
        """
        cells = noise_state["ring"].shape[1]
        draws = (sum(self._draws_by_level(first, steps)), cells)
        if fresh.dtype != np.int64 or fresh.shape != draws:
            raise InvalidInput(
                f"Expected draws of dtype int64 and shape {draws}, got {fresh.dtype} of shape "
                f"{fresh.shape}. Blocks would go without noise. Draw for noise_coordinates."
            )
        grow(noise_state, self.levels, first, steps, opened=True)
        if self.weights:
            counts = self._draws_by_level(first, steps)
            fresh = fresh * np.repeat(self._factors, counts)[:, None]
        out = np.empty(
            (row_count(self.levels, len(self.views), first, steps), fresh.shape[1]), np.int64
        )
        _kernels.mix(
            noise_state["ring"],
            noise_state["layout"],
            fresh,
            first,
            steps,
            sizes(self.levels),
            Paths(self.levels, Way.OPENED, self._prices).level_prices,
            self._span_array,
            out,
        )
        return out

    def _draws_by_level(self, first: int, steps: int) -> list[int]:
        parents = (*self.levels[1:], self.levels[-1])
        return [
            (-(-(first + steps) // parent) + -first // parent) * (parent // size)
            for size, parent in zip(self.levels, parents, strict=True)
        ]

    @property
    def drawn_places(self) -> int:
        """One a level: the blocks' totals; planned views mix the blocks' noise."""
        return len(self.levels)

    def init_decoder(self, views: Sequence[Decay], cells: int) -> State:
        """Running sums of the completed blocks of each level, and the filters' states."""
        return init_decoding(self.levels, views, self.views, cells)

    def decode(
        self, state: State, views: Sequence[Decay], measured: Int64, first: int, out: Float64
    ) -> None:
        """Write every view of a block into ``out``, shape (views, steps, cells), in grains."""
        paths = self._paths()
        decode_rows(state, paths, views, len(self.views), measured, first, self._unit, out)

    def variance_gain(self, view: Decay, steps: Int64) -> Float64:
        """Number of blocks that a sum takes; the sum of squared weights of another decay.

        Each over the square of its level's weight.
        """
        return view_gain(self._paths(view), view, steps) * self._unit**2

    def worst_variance_gain(self, view: Decay, horizon: int) -> float:
        """The most blocks that a sum takes up to the horizon; another decay in the limit."""
        return view_worst(self._paths(view), view, horizon) * self._unit**2

    def noise_terms(self, view: Decay, step: int) -> tuple[Float64, Int64]:
        """A sum of blocks: a weight for each level, as often as it has blocks."""
        weights, counts = view_terms(self._paths(view), view, step)
        return weights * self._unit, counts

    def gain_tells_terms(self, view: Decay) -> bool:
        """Not of changes, nor with weights: rows of one variance may weigh draws differently."""
        return not isinstance(view, Difference) and not self.weights
