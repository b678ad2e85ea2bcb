"""Dense Toeplitz strategies: C is a list of integers, one for each lag of a short stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, final

import numpy as np

from tidegauge.checks import integer, shown
from tidegauge.compiled import lazy_module
from tidegauge.errors import InvalidInput, InvalidParameter, StreamEnded
from tidegauge.privacy.rounding import sqrt_up
from tidegauge.privacy.unit import Neighbors
from tidegauge.strategies import filters
from tidegauge.strategies.decay import Decay
from tidegauge.strategies.strategy import (
    Float64,
    Int64,
    Norm,
    RowPerStep,
    State,
    refuse_l1,
)

if TYPE_CHECKING:
    from tidegauge.strategies.dense import _kernels
else:
    _kernels = lazy_module("tidegauge.strategies.dense._kernels")

__all__ = ["LONGEST", "DenseToeplitz"]

LONGEST = 1 << 12
"""Most steps of a dense strategy: each step costs as much as all before it."""

_LATTICE = (-20, 40)
_LARGEST_BITS = 46
_SPACE = 1 << 62
_FIRST_ROWS = 64
_NEGLIGIBLE = 1e-12


@final
@dataclass(frozen=True)
class DenseToeplitz(RowPerStep):
    r"""C is a lower-triangular Toeplitz matrix of integers over 2^lattice_bits; nothing is rounded.

    .. math:: (C x)_t = \sum_{k \le t} c_k x_{t-k}

    With the root of a decay (:func:`~tidegauge.strategies.dense.square_root`) no factorization
    does noticeably better for that decay, if its memory is shorter than the stream. Not for long
    streams: time and memory of a step grow with the steps before it. Not for running sums, where
    a column-normalised filter is better, and not for pure epsilon.

    Guarantee:
        Neighboring streams' coordinates differ by at most ``sensitivity`` in L2, up to
        ``hard_end`` steps, on every path of an adaptively chosen stream; exactly, for one event.
        Proof: ``docs/proofs/dense.md``.

    Args:
        coefficients: c_0, c_1, ..., in lattice units a grain; 1 to 4096 integers of magnitude
            below 2^46, the first of them positive. There are as many steps.
        lattice_bits: Coordinates lie on the lattice 2^-lattice_bits grains; -20 to 40.

    Raises:
        InvalidParameter: A number is out of range, or the coefficients leave no room for totals.

    Memory: 8 bytes (private) and 8 bytes (public) a step and cell. Time: about 1 ns a cell and
    earlier step, on each side.

    Examples:
        >>> dense = DenseToeplitz((4, 2, 1), lattice_bits=2)
        >>> dense.encode(dense.init_encoder(1), np.array([[1], [0], [2]]), 0).ravel() / 4  # grains
        array([1.  , 0.5 , 2.25])

    References:
        Fichtenberger, Henzinger and Upadhyay (2023), "Constant matters: fine-grained error bound
        on differentially private continual observation".
    """

    coefficients: tuple[int, ...]
    lattice_bits: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "coefficients", _checked(self.coefficients))
        low, high = _LATTICE
        why = "Coordinates are 64-bit integers. Measure in other grains."
        bits = integer("lattice_bits", self.lattice_bits, low=low, high=high, why=why)
        object.__setattr__(self, "lattice_bits", bits)
        if self.largest_total < 1:
            raise InvalidParameter(
                f"Expected coefficients whose magnitudes sum to at most 2^62, got "
                f"{float(self._absolute_sum):.3g}. Coordinates would overflow. Use fewer "
                "lattice_bits."
            )

    @property
    def norms(self) -> frozenset[Norm]:
        """L2 only."""
        return frozenset({Norm.L2})

    @property
    def hard_end(self) -> int:
        """As many steps as there are coefficients."""
        return len(self.coefficients)

    @cached_property
    def _absolute_sum(self) -> int:
        return sum(map(abs, self.coefficients))

    @cached_property
    def absolute_gain(self) -> Fraction:
        """sum_k |c_k|, exactly."""
        return self._absolute_sum / Fraction(2) ** self.lattice_bits

    @cached_property
    def largest_total(self) -> int:
        """The largest |x| for which no coordinate can leave 2^62 lattice units, in grains."""
        return min(_SPACE // self._absolute_sum, _SPACE)

    def sensitivity(self, norm: Norm, neighbors: Neighbors) -> Fraction:
        r"""How far the coordinates can move in L2, in lattice units; only the root is rounded up.

        One event moves them by its change times :math:`(\sum_k c_k^2)^{1/2}`, and k events by at
        most k times that; where c is positive and falls, by the closest pattern that the least
        distance allows.

        Raises:
            UnsupportedCombination: The norm is L1.

        Examples:
            >>> from tidegauge.privacy.unit import Event, NeighboringRelation
            >>> one = Neighbors(Event(), NeighboringRelation.ADD_OR_REMOVE_ONE, 0, 1, 1, 1)
            >>> DenseToeplitz((4, 3), 2).sensitivity(Norm.L2, one)
            Fraction(5, 1)
        """
        refuse_l1(norm)
        unit = neighbors.unit
        pattern = _pattern_squared(self.coefficients, unit.max_events, unit.min_separation)
        return sqrt_up(Fraction(neighbors.event_l2_squared * pattern))

    def init_encoder(self, cells: int) -> State:
        """Room for the first totals; grows with the stream."""
        return {"history": np.zeros((min(_FIRST_ROWS, self.hard_end), cells), np.int64)}

    def encode(self, state: State, x: Int64, first: int) -> Int64:
        """Multiply by C, in integers.

        Raises:
            StreamEnded: The block reaches beyond ``hard_end``; the state is as it was.
            InvalidInput: The array is not int64, C-contiguous, (steps, cells) of this state.
        """
        end = first + len(x)
        if end > self.hard_end:
            raise StreamEnded(
                f"Expected at most {self.hard_end} steps, got step {end}. The strategy has no "
                "coefficients beyond. Declare a longer stream from the start."
            )
        cells = state["history"].shape[1]
        if x.dtype != np.int64 or x.ndim != 2 or x.shape[1] != cells or not x.flags.c_contiguous:
            raise InvalidInput(
                f"Expected totals of dtype int64 and shape (steps, {cells}), C-contiguous, got "
                f"{x.dtype} of shape {x.shape}. Other bytes would be read as counts. "
                "Convert them first."
            )
        history = self._grown(state, end)
        out = np.empty_like(x)
        _kernels.encode(x, history, self._integers, self.largest_total, first, out)
        return out

    def init_decoder(self, views: Sequence[Decay], cells: int) -> State:
        """Room for the first increments, and the states of the views."""
        room = np.zeros((min(_FIRST_ROWS, self.hard_end), cells))
        return {**filters.init_decoder(views, cells, 0), "history": room}

    def decode(
        self, state: State, views: Sequence[Decay], measured: Int64, first: int, out: Float64
    ) -> None:
        """Recover the private increments by substitution in float64 and filter them."""
        if measured.shape[1] != state["history"].shape[1]:
            raise InvalidInput(
                f"Expected a measurement of {state['history'].shape[1]} cells, got shape "
                f"{measured.shape}. Memory beside the arrays would be overwritten. Give arrays of "
                "one shape."
            )
        history = self._grown(state, first + len(measured))
        increments = np.empty(measured.shape)
        _kernels.decode(measured, history, self._floats, first, increments)
        filters.filter_views(state, views, increments, first, out)

    def _grown(self, state: State, needed: int) -> Any:
        """The history with at least ``needed`` rows; it doubles until it has all."""
        history = state["history"]
        if len(history) < needed:
            rows = min(self.hard_end, max(needed, 2 * len(history)))
            larger = np.zeros((rows, history.shape[1]), history.dtype)
            larger[: len(history)] = history
            state["history"] = history = larger
        return history

    def variance_gain(self, view: Decay, steps: Int64) -> Float64:
        """The sum of the first ``steps`` squared weights of the noise in a view."""
        gains: Float64 = self._energy(view)[np.minimum(steps, self.hard_end) - 1]
        return gains

    def worst_variance_gain(self, view: Decay, horizon: int) -> float:
        """The gain grows with the step: that of the horizon, or of the last step."""
        return float(self._energy(view)[min(horizon, self.hard_end) - 1])

    def noise_terms(self, view: Decay, step: int) -> tuple[Float64, Int64]:
        """The sizes of a row of B, one by one."""
        weights = np.abs(_response(self.coefficients, view)[:step])
        kept = weights[weights > _NEGLIGIBLE * weights.max()]
        return kept, np.ones(len(kept), np.int64)

    def _energy(self, view: Decay) -> Float64:
        return np.cumsum(_response(self.coefficients, view) ** 2)

    @cached_property
    def _integers(self) -> Int64:
        return np.array(self.coefficients, np.int64)

    @cached_property
    def _floats(self) -> Float64:
        return np.array([float(c) for c in self.coefficients])


@lru_cache(maxsize=64)
def _response(coefficients: tuple[int, ...], view: Decay) -> Float64:
    """Return b = f / C: weights of the noise in a view, newest first, in grains a lattice unit."""
    steps = len(coefficients)
    c = np.array([float(value) for value in coefficients])
    b = view.weights(steps)
    for n in range(steps):
        b[n] /= c[0]
        b[n + 1 :] -= b[n] * c[1 : steps - n]
    return b


def _checked(given: Sequence[int]) -> tuple[int, ...]:
    values: object = given
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise InvalidParameter(
            f"Expected coefficients to be a list of integers, got {shown(given)}. They are the "
            "weights of this step, the one before it, and so on. Give a list."
        )
    why = "Each is one step of the stream, and costs as much as all before it. Use a BLT."
    integer("number of coefficients", len(given), low=1, high=LONGEST, why=why)
    most = (1 << _LARGEST_BITS) - 1
    why = "It is the weight of one lag in lattice units. Give an integer."
    checked = tuple(
        integer(f"coefficients[{k}]", value, low=-most, high=most, why=why)
        for k, value in enumerate(given)
    )
    why = "The newest step has to be seen, or nothing can be decoded. Give a positive integer."
    integer("coefficients[0]", checked[0], low=1, high=most, why=why)
    return checked


def _pattern_squared(coefficients: tuple[int, ...], events: int, separation: int) -> int:
    """An upper bound on the squared norm of what k events of one grain each do, exact for one."""
    alone = sum(c * c for c in coefficients)
    falls = coefficients[-1] >= 0 and all(a >= b for a, b in pairwise(coefficients))
    if separation == 0 or not falls:
        return events**2 * alone
    steps = len(coefficients)
    span = min(events, -(-steps // separation)) * separation  # more do not fit
    total = list(coefficients)
    for t in range(separation, steps):
        total[t] += total[t - separation] - (coefficients[t - span] if t >= span else 0)
    return sum(value * value for value in total)
