"""The noise of running sums of items: of every item, whether or not it has been seen."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import final

import numpy as np

from tidegauge.mechanisms.measure import measure_items
from tidegauge.mechanisms.oneshot import LATTICE_BITS
from tidegauge.mechanisms.turn import no_copies
from tidegauge.noise.gaussian import RoundedGaussian
from tidegauge.noise.item_words import ItemWords
from tidegauge.noise.randomness import AesWords, derive, fresh_key
from tidegauge.strategies.blocks.levels import power_levels
from tidegauge.strategies.strategy import COORDINATES_PER_STEP, Int64

__all__ = ["ItemNoise", "digit_blocks"]

_FIRST_ROOM = 64


def digit_blocks(levels: tuple[int, ...], step: int) -> list[tuple[int, int]]:
    """Return level and last step of the blocks that make up the first steps, largest first.

    As many of each level as the digit of ``step`` in the base of the levels.

    Examples:
        >>> digit_blocks((1, 3, 9), 14)
        [(2, 9), (1, 12), (0, 13), (0, 14)]
    """
    blocks, end = [], 0
    for level in range(len(levels) - 1, -1, -1):
        while end + levels[level] <= step:
            end += levels[level]
            blocks.append((level, end))
    return blocks


@final
class ItemNoise:
    r"""The noise of BaseMech for each item of a table that grows, the same whenever it is added.

    The noise of block (j, l) of an item is a rounded Gaussian that is a function of (item, j, l)
    under fresh secret keys. At step t an item's noise is the sum over the blocks of the digits of
    t. What is kept for level j is the sum over the blocks of it and of larger ones.

    Args:
        base: Of the digits.
        end: The last step; it has the most digits.
        std: Of the noise of one block, in counts.

    Cost: one draw an item and step, and memory for each item and level. An item that is added
    takes one draw for each digit block.
    """

    def __init__(self, base: int, end: int, std: Fraction) -> None:
        self.levels = power_levels(base, end)
        self.law = RoundedGaussian(std * (1 << LATTICE_BITS))
        scale = self.law.scale
        purposes = [("tidegauge item noise 1", part, scale) for part in ("words", "digests")]
        keys = [derive(fresh_key(), *purpose) for purpose in purposes]
        self._start(AesWords(keys[0]), keys[1])

    def _start(self, words: AesWords, key: bytes) -> None:
        self._words = ItemWords(words, key)
        self.step = 0
        self._forget()

    def _forget(self) -> None:
        self._size = 0
        self._digests = np.empty((_FIRST_ROOM, 2), np.uint64)
        self._sums = np.zeros((len(self.levels), _FIRST_ROOM), np.int64)

    def advance(self) -> None:
        """Go to the next step: the block that completes now takes the place of smaller ones."""
        self._words.check_live()
        self.step += 1
        level = max(j for j, size in enumerate(self.levels) if self.step % size == 0)
        if self._size:
            words = self._words.of(self._digests[: self._size])
            coordinate = np.array([self._coordinate(level, self.step)], np.int64)
            self.law.add(words, self._sums[level : level + 1, : self._size], coordinate)
            self._sums[:level, : self._size] = self._sums[level, : self._size]

    def add(self, items: Sequence[bytes]) -> None:
        """Append items to the table, with their noise as if they had been there from the start."""
        first, self._size = self._size, self._size + len(items)
        self._grow()
        self._digests[first : self._size] = self._words.digests(items)
        blocks = digit_blocks(self.levels, self.step)
        if not blocks:
            return
        words = self._words.of(self._digests[first : self._size])
        coordinates = np.array([self._coordinate(*block) for block in blocks], np.int64)
        drawn = self.law.draw(words, coordinates, len(items))
        for (level, _), row in zip(blocks, drawn, strict=True):
            self._sums[: level + 1, first : self._size] += row

    def replace(self, items: Sequence[bytes]) -> None:
        """Take other items in place of those of the table; one that returns has its old noise."""
        self._forget()
        self.add(items)

    def of(self, exact: Int64) -> Int64:
        """Return the noisy counts of the table's items on the lattice, shape (n,)."""
        return measure_items(exact, self._sums[0, : self._size], LATTICE_BITS)

    def check_live(self) -> None:
        """Refuse noise that was closed, or belongs to another process.

        Raises:
            LiveState: It can draw nothing here.
        """
        self._words.check_live()

    def close(self) -> None:
        """Erase the keys and all noise."""
        self._words.close()
        self._forget()

    @staticmethod
    def _coordinate(level: int, end: int) -> int:
        return COORDINATES_PER_STEP * (end - 1) + level

    def _grow(self) -> None:
        room = self._sums.shape[1]
        if self._size > room:
            more = max(2 * room, self._size) - room
            self._digests = np.pad(self._digests, ((0, more), (0, 0)))
            self._sums = np.pad(self._sums, ((0, 0), (0, more)))

    __copy__ = __deepcopy__ = __reduce__ = __reduce_ex__ = __getstate__ = no_copies(
        "source of noise"
    )

    def __repr__(self) -> str:
        return f"ItemNoise(step={self.step}, words={self._words!r})"
