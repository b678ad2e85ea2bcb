"""What both laws share: a block of lanes, its retries, and its lanes for the exact resolver.

A lane is one draw of an array ``values[rows, cells]``: lane ``row * cells + cell``. All lanes make
attempt 0 in tiles; the rejected ones of the whole call make attempt 1 together, and so on. Each
attempt of a lane takes the same number of words, whatever comes out.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tidegauge.checks import shown
from tidegauge.compiled import lazy_module
from tidegauge.errors import InvalidParameter
from tidegauge.noise.randomness import Words
from tidegauge.noise.resolver import Tape

if TYPE_CHECKING:
    from tidegauge.noise import _kernels
else:
    _kernels = lazy_module("tidegauge.noise._kernels")

__all__ = ["Law", "check_scale", "guided"]

Int64 = NDArray[np.int64]
UInt64 = NDArray[np.uint64]

_TILE = 1 << 14  # words of 16 bytes: half a megabyte of buffers, which the caches hold
_NONE = np.empty(0, dtype=np.int64)
_MOST_ATTEMPTS = 1 << 16
_MOST_COORDINATES = 1 << 44


class Law(ABC):
    """A law of integers that is added to exact coordinates, drawn from ``Words``."""

    scale: Fraction

    @property
    @abstractmethod
    def variance(self) -> float:
        """The variance of the implemented law, in squared lattice units."""

    @property
    def std(self) -> float:
        """The standard deviation of the implemented law, in lattice units."""
        return math.sqrt(self.variance)

    @property
    @abstractmethod
    def words_each(self) -> int:
        """How many 128-bit words one attempt of one lane takes: a constant of the law."""

    @abstractmethod
    def attempt(
        self, words: UInt64, values: Int64, start: int, lanes: Int64, pending: Int64
    ) -> int:
        """Add the decided draws of one attempt; list the other lanes (see ``_kernels``).

        Args:
            words: The words of each lane, shape (n, 2 * words_each).
            values: All lanes of the call, shape (rows * cells,), changed in place.
            start: The first lane, if ``lanes`` is empty.
            lanes: The lanes, shape (n,); empty: ``start .. start + n - 1``.
            pending: Room for the lanes that are not decided, shape (n,) at least.

        Returns:
            How many of ``pending`` were written, negated if any is undecided.
        """

    @abstractmethod
    def resolve(self, tape: Tape) -> int | None:
        """Return the draw of one attempt of one lane exactly, None if it is rejected."""

    def meet(self, value: int, draw: int) -> int:
        """Return what a draw makes of a value: their sum, modulo 2**64."""
        return _wrapped(value + draw)

    def add(
        self, words: Words, values: Int64, coordinates: Int64, numbers: Int64 | None = None
    ) -> None:
        """Add an independent draw to every value, in place, modulo 2**64.

        The same words, cell and coordinate give the same draw in any block: never add to one
        coordinate twice under one source of words.

        Args:
            words: The source; its key must serve this law and scale only.
            values: Exact coordinates, shape (rows, cells), int64, C-contiguous.
            coordinates: The number of each row, shape (rows,), int64, distinct, in [0, 2**44).
            numbers: That of each cell, shape (cells,), int64, increasing from 0 or more; None:
                0, 1, 2, ..

        Raises:
            InvalidParameter: A shape, type or number is not as described; nothing was added.
            LiveState: The words are closed or belong to another process.
        """
        _check(values, coordinates)
        if numbers is None:
            numbers = np.arange(values.shape[1])
        else:
            _check_numbers(numbers, values.shape[1])
        flat = values.reshape(-1)
        lanes = _NONE  # the first attempt is for all of them
        for number in range(_MOST_ATTEMPTS):
            pending, unsure = self._tiles(words, flat, coordinates, numbers, lanes, number)
            lanes = pending
            if unsure:
                lanes = self._resolve(words, flat, coordinates, numbers, pending, number)
            if not len(lanes):
                return
        raise ArithmeticError(
            f"Expected a draw within {_MOST_ATTEMPTS} attempts, got none. Random words never do "
            "this: their source is broken, and so is the noise. Publish nothing more from it."
        )

    def draw(self, words: Words, coordinates: Int64, cells: int) -> Int64:
        """Return independent draws, shape (rows, cells), lattice units (see ``add``).

        Examples:
            >>> from tidegauge.noise.gaussian import RoundedGaussian
            >>> from tidegauge.noise.randomness import open_words
            >>> words = open_words("example", "rounded gaussian", Fraction(1000))
            >>> RoundedGaussian(Fraction(1000)).draw(words, np.array([0, 64]), cells=3).shape
            (2, 3)
        """
        values = np.zeros((len(coordinates), cells), dtype=np.int64)
        self.add(words, values, coordinates)
        return values

    def _tiles(
        self,
        words: Words,
        flat: Int64,
        coordinates: Int64,
        numbers: Int64,
        lanes: Int64,
        number: int,
    ) -> tuple[Int64, bool]:
        """Make an attempt of the lanes, or the first of all; return those left, and any unsure."""
        each = self.words_each
        tile = _TILE // each
        end = len(lanes) if number else len(flat)
        found, unsure = [], False
        for start in range(0, end, tile):
            stop = min(start + tile, end)
            inputs, outputs, pending = words.scratch((stop - start) * each)
            some = lanes[start:stop]
            if number:
                _kernels.number_lanes(coordinates, numbers, some, number, each, inputs)
            else:
                _kernels.number_range(coordinates, numbers, start, stop, each, inputs)
            words.fill(inputs, outputs)
            parts = outputs[:-1].reshape(-1, 2 * each)
            count = self.attempt(parts, flat, start, some, pending)
            if count:
                unsure |= count < 0
                found.append(pending[: abs(count)].copy())
        if len(found) == 1:
            return found[0], unsure
        return np.concatenate(found) if found else _NONE, unsure

    def _resolve(
        self,
        words: Words,
        flat: Int64,
        coordinates: Int64,
        numbers: Int64,
        pending: Int64,
        number: int,
    ) -> Int64:
        """Decide the undecided lanes of attempt ``number``; return all the rejected ones."""
        rejected = []
        for entry in pending.tolist():
            draw, lane = None, max(entry, -1 - entry)
            if entry < 0:
                row, cell = divmod(lane, len(numbers))
                tape = Tape(
                    words, int(numbers[cell]), int(coordinates[row]), number, self.words_each
                )
                draw = self.resolve(tape)
            if draw is None:
                rejected.append(lane)
            else:
                flat[lane] = self.meet(int(flat[lane]), draw)
        return np.array(rejected, dtype=np.int64)


def _wrapped(value: int) -> int:
    """Return the value modulo 2**64, as int64 has it."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def _check(values: Any, coordinates: Any) -> None:
    """Refuse arrays that the kernels would misread, and coordinates that would share noise."""
    if not (
        isinstance(values, np.ndarray)
        and values.dtype == np.int64
        and values.ndim == 2
        and values.flags.c_contiguous
        and values.flags.writeable
    ):
        raise InvalidParameter(
            "Expected values to be a writeable C-contiguous int64 array of shape (rows, cells), "
            "got something else. Noise could be added to a copy. Make such an array first."
        )
    if not (
        isinstance(coordinates, np.ndarray)
        and coordinates.dtype == np.int64
        and coordinates.shape == values.shape[:1]
    ):
        raise InvalidParameter(
            "Expected coordinates to be an int64 array with one number for each row of values, "
            "got something else. Rows would share noise. Number the rows."
        )
    rows = len(coordinates)
    if not rows:
        return
    low, high = int(coordinates[0]), int(coordinates[-1])
    if rows > 1 and not _kernels.rise(coordinates):
        low, high = int(coordinates.min()), int(coordinates.max())
        if len(np.unique(coordinates)) < rows:
            raise InvalidParameter(
                "Expected distinct coordinates, got one twice. Two rows would get the same noise, "
                "and their difference would be exact. Number each row once."
            )
    if low < 0 or high >= _MOST_COORDINATES:
        raise InvalidParameter(
            "Expected coordinates in [0, 2**44), got one outside. Its words would be those of "
            "another coordinate. End the stream before step 2**38."
        )


def _check_numbers(numbers: Any, cells: int) -> None:
    """Refuse numbers of cells that the kernels would misread, or that would share noise."""
    if not (
        isinstance(numbers, np.ndarray)
        and numbers.dtype == np.int64
        and numbers.shape == (cells,)
        and numbers.flags.c_contiguous
        and (not cells or numbers[0] >= 0)
        and (np.diff(numbers) > 0).all()
    ):
        raise InvalidParameter(
            "Expected numbers to be an int64 array that gives each cell a larger one than the last,"
            " from 0 on, got something else. Two cells would get the same noise. Number them."
        )


def check_scale(scale: Any, low: Fraction, high: Fraction, low_name: str, high_name: str) -> None:
    """Refuse a scale that is not an exact number in the range."""
    if isinstance(scale, bool) or not isinstance(scale, (int, Fraction)):
        raise InvalidParameter(
            f"Expected scale to be a Fraction, got {shown(scale)}. A rounded scale would not be "
            "the one that was proved. Convert it, rounding up."
        )
    if not low <= scale <= high:
        raise InvalidParameter(
            f"Expected scale in [{low_name}, {high_name}], got {shown(scale)}. A smaller one hides "
            "nothing, a larger one could overflow int64. Change epsilon or the lattice."
        )


def guided(entries: list[int], bits: int, guide_bits: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return entries up to the first 2**bits - 1, and an index near a word by its leading bits."""
    entries = entries[: entries.index((1 << bits) - 1) + 1]
    table = np.array(entries, dtype=np.uint64)
    starts = np.arange(1 << guide_bits, dtype=np.uint64) << np.uint64(bits - guide_bits)
    middles = starts + np.uint64(1 << (bits - guide_bits - 1))
    return table, np.searchsorted(table, middles).astype(np.int16)
