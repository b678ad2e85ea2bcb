"""A strategy: a factorization ``decay = B C`` that runs step by step.

::

    exact x --encode--> C x --(+ noise, elsewhere)--> v --decode--> every view

``encode`` is the only half that sees data; it stays in integers and its output lies on the
lattice ``2**-lattice_bits`` grains. ``decode`` sees only the measurement ``v`` and may use floats.

State is a dict of plain arrays that can be copied and stored. Both halves change the state that
they are given, in place, and nothing else. Steps count from 0 inside this package (``first`` is
the index of the first step of a block) and from 1 wherever a user reads them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from enum import Enum
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from tidegauge.checks import integer
from tidegauge.errors import StreamEnded, UnsupportedCombination
from tidegauge.privacy.unit import Event, NeighboringRelation, Neighbors
from tidegauge.strategies.decay import Decay, Step
from tidegauge.strategies.weights import Float64

__all__ = [
    "COORDINATES_PER_STEP",
    "MOST_STEPS",
    "Float64",
    "Int64",
    "Norm",
    "RowPerStep",
    "State",
    "Strategy",
    "UInt64",
    "refuse_l1",
    "step_coordinates",
]

Int64 = NDArray[np.int64]
UInt64 = NDArray[np.uint64]
State = dict[str, NDArray[Any]]

COORDINATES_PER_STEP = 64
"""A row of the measurement has the number ``step * 64 + level``: unique, and never reused."""

MOST_STEPS = 1 << 38
"""Steps whose rows have numbers below 2^44, the width of a coordinate in the noise's addresses."""

_MOST_DENSE = 1 << 12
_MOST_COMPUTED = 1 << 28
_CHUNK = 1 << 20  # steps whose variances are computed together


def step_coordinates(first: int, steps: int) -> Int64:
    """Return the numbers of the rows of a strategy that measures one row a step.

    Raises:
        StreamEnded: A step lies beyond the last one that has a number.

    Examples:
        >>> step_coordinates(2, 3)
        array([128, 192, 256])
    """
    if first + steps > MOST_STEPS:
        raise StreamEnded(
            f"Expected at most {MOST_STEPS} steps, got step {first + steps}. Noise would be used "
            "twice. Start a new gauge."
        )
    start, stop = first * COORDINATES_PER_STEP, (first + steps) * COORDINATES_PER_STEP
    return np.arange(start, stop, COORDINATES_PER_STEP, dtype=np.int64)


class Norm(Enum):
    """In which norm a strategy's sensitivity is charged."""

    L1 = "L1"  # discrete Laplace noise, pure epsilon-DP
    L2 = "L2"  # rounded Gaussian noise, Gaussian DP


def refuse_l1(norm: Norm) -> None:
    """Refuse to bound how far a filter moves in L1.

    Raises:
        UnsupportedCombination: The norm is L1.
    """
    if norm is not Norm.L2:
        raise UnsupportedCombination(
            "Expected the L2 norm, got L1. A filter with long memory has a large L1 norm. "
            "Use Gaussian noise, or blocks or the identity under pure epsilon."
        )


class Strategy(ABC):
    """A factorization run step by step; subclasses are frozen dataclasses and final."""

    lattice_bits: int

    @property
    @abstractmethod
    def norms(self) -> frozenset[Norm]:
        """The norms, and so the noise, under which this strategy is proved private."""

    @property
    @abstractmethod
    def hard_end(self) -> int | None:
        """Number of steps beyond which the sensitivity would fail; None: it holds for ever."""

    @property
    @abstractmethod
    def absolute_gain(self) -> Fraction:
        """An upper bound on ``max_t sum_s |C_ts|``: how far ``C x`` can grow, in grains a grain."""

    @property
    @abstractmethod
    def largest_total(self) -> int:
        """The largest |x| that ``encode`` represents, in grains; larger totals are clamped to it.

        Coordinates then stay within 2^62, so that noise up to 2^62 cannot leave int64.
        """

    @abstractmethod
    def sensitivity(self, norm: Norm, neighbors: Neighbors) -> Fraction:
        """How far ``C x`` can move when one privacy unit changes, in lattice units, rounded up."""

    @abstractmethod
    def init_encoder(self, cells: int) -> State:
        """The private state before the first step."""

    @abstractmethod
    def encode(self, state: State, x: Int64, first: int) -> Int64:
        """Encode a block of exact totals, shape (steps, cells), C-contiguous int64 in grains.

        Returns:
            The exact coordinates, shape (rows, cells), C-contiguous, in lattice units. The array
            belongs to the caller (noise is added to it in place).
        """

    @abstractmethod
    def coordinates(self, first: int, steps: int) -> Int64:
        """The numbers ``step * 64 + level`` of the rows of ``encode``, shape (rows,); public."""

    @abstractmethod
    def init_decoder(self, views: Sequence[Decay], cells: int) -> State:
        """The public state before the first step."""

    @abstractmethod
    def decode(
        self, state: State, views: Sequence[Decay], measured: Int64, first: int, out: Float64
    ) -> None:
        """Write every view of a block into ``out``, shape (views, steps, cells), in grains."""

    @abstractmethod
    def variance_gain(self, view: Decay, steps: Int64) -> Float64:
        """Variance of a view at each of ``steps`` (counted from 1) over the noise's variance.

        In grains^2 for noise of variance 1 lattice unit^2.
        """

    @abstractmethod
    def worst_variance_gain(self, view: Decay, horizon: int) -> float:
        """The largest ``variance_gain`` that the view is judged by: up to the horizon, or for ever.

        A view whose memory is shorter than the horizon is judged in the limit.
        """

    @abstractmethod
    def noise_terms(self, view: Decay, step: int) -> tuple[Float64, Int64]:
        """The law of a view's noise at ``step`` (from 1): weights and how often each occurs.

        The noise is the sum of ``count`` independent draws times ``weight``, in grains for draws
        in lattice units. Weights below 1e-12 of the largest may be left out.
        """

    @property
    def coordinates_per_step(self) -> int:
        """How many numbers ``coordinates`` keeps for each step; all stay below 2^44."""
        return COORDINATES_PER_STEP

    @abstractmethod
    def gain_tells_terms(self, view: Decay) -> bool:
        """Whether two steps of one ``variance_gain`` have one law, and a larger one a wider law.

        Half-widths are then remembered by gain. Not so where draws come and go from step to step
        with different weights.
        """

    @property
    @abstractmethod
    def drawn_places(self) -> int:
        """Rows of a step whose noise is drawn for them alone: places 0, 1, ... of ``coordinates``.

        Rows at later places carry combinations of that noise.
        """

    @final
    def noise_std(self, view: Decay, steps: Int64, law_std: float) -> Float64:
        """The std of a view at each of ``steps`` (from 1), in grains.

        Args:
            view: The decay.
            steps: Steps counted from 1, shape (n,).
            law_std: The std of one draw of noise, in lattice units.
        """
        return np.sqrt(self.variance_gain(view, steps)) * law_std

    @final
    def max_error(self, view: Decay, steps: int, norm: Norm | None = None) -> float:
        """Return the largest std of a view over the first ``steps`` steps, in grains.

        One event adds at most one grain to one cell; the guarantee is mu = 1 (L2) or epsilon = 1
        (L1). Cost: O(steps) time.

        Args:
            view: The decay.
            steps: From 1 to 2^28.
            norm: None: L2 where the strategy is proved under it.

        Raises:
            InvalidParameter: ``steps`` is out of range.
            UnsupportedCombination: The strategy is not proved under the norm.
        """
        law_std = self._unit_std(norm)
        return max(
            float(self.noise_std(view, block, law_std).max()) for block in _blocks_of_steps(steps)
        )

    @final
    def mean_squared_error(self, view: Decay, steps: int, norm: Norm | None = None) -> float:
        """Return the mean variance over the first ``steps`` steps, in grains squared.

        Noise, arguments and errors are those of :meth:`max_error`.
        """
        gains = (self.variance_gain(view, block) for block in _blocks_of_steps(steps))
        return self._unit_std(norm) ** 2 * sum(float(gain.sum()) for gain in gains) / steps

    @final
    def _unit_std(self, norm: Norm | None) -> float:
        """The noise's std in lattice units at mu or epsilon 1, for one event of one grain."""
        if norm is None:
            norm = Norm.L2 if Norm.L2 in self.norms else Norm.L1
        one = Neighbors(Event(), NeighboringRelation.ADD_OR_REMOVE_ONE, 0, 1, 1, 1)
        sensitivity = float(self.sensitivity(norm, one))
        return sensitivity if norm is Norm.L2 else sensitivity * 2**0.5

    @final
    def encoder_matrix(self, steps: int) -> Float64:
        """Return every row of ``encode``, shape (rows, steps), in grains a grain.

        Impulse ``s`` runs through cell ``s``. Impulses have the largest magnitude that the
        strategy takes, so that its roundings vanish.

        Raises:
            InvalidParameter: ``steps`` is not in [1, 4096].
        """
        _checked_dense(steps)
        size = self.largest_total
        impulses = size * np.eye(steps, dtype=np.int64)
        coordinates = self.encode(self.init_encoder(steps), impulses, 0)
        unit: float = 2.0**-self.lattice_bits
        matrix: Float64 = coordinates.astype(np.float64) * (unit / size)
        return matrix

    @final
    def decoder_matrix(self, view: Decay, steps: int) -> Float64:
        """Return B of one view, shape (steps, rows), in grains a grain of measurement.

        Raises:
            InvalidParameter: ``steps`` is not in [1, 4096].
        """
        _checked_dense(steps)
        rows = len(self.coordinates(0, steps))
        scale = 1 << max(0, self.lattice_bits)  # impulses of one grain, or of one lattice step
        impulses = scale * np.eye(rows, dtype=np.int64)
        out = np.empty((1, steps, rows))
        self.decode(self.init_decoder([view], rows), [view], impulses, 0, out)
        unit: float = 2.0**-self.lattice_bits
        matrix: Float64 = out[0] / (scale * unit)
        return matrix

    @final
    def matrices(self, steps: int) -> tuple[Float64, Float64]:
        """``(C, C^+)``: the rows whose noise is their own, and the decoder of the step view.

        Both materialised by running the strategy's own code; for tests and for study.

        Raises:
            InvalidParameter: ``steps`` is not in [1, 4096].
        """
        _checked_dense(steps)
        drawn = self.coordinates(0, steps) % self.coordinates_per_step < self.drawn_places
        return self.encoder_matrix(steps)[drawn], self.decoder_matrix(Step(), steps)[:, drawn]


class RowPerStep(Strategy):
    """A strategy that measures one row a step, in which draws come and never go.

    Its coordinates are one for each step, and the noise of a view at a later step has all draws of
    an earlier one, or more of one kind.
    """

    @final
    def coordinates(self, first: int, steps: int) -> Int64:
        """One row a step."""
        return step_coordinates(first, steps)

    @final
    def gain_tells_terms(self, view: Decay) -> bool:
        """Always: a larger gain has the draws of a smaller one, and more."""
        return True

    @property
    @final
    def drawn_places(self) -> int:
        """1: every row."""
        return 1


def _checked_dense(steps: int) -> None:
    why = "The matrix would be too large. Ask for fewer steps."
    integer("steps", steps, low=1, high=_MOST_DENSE, why=why)


def _blocks_of_steps(steps: int) -> Iterator[Int64]:
    """The numbers of the first steps, from 1, a block at a time."""
    integer("steps", steps, low=1, high=_MOST_COMPUTED, why="Each is computed. Ask for fewer.")
    for start in range(0, steps, _CHUNK):
        yield np.arange(start + 1, min(start + _CHUNK, steps) + 1)
