r"""Words as a function of (item, coordinate, attempt, block), whenever an item is first seen.

An item's digest is its BLAKE2b under a secret key, 128 bits. A word is AES-256 of the digest XOR
the number of the coordinate, attempt and block, under a key for each range of 2^18 coordinates. So
all noise of an item, also that of steps before its first event, exists from the start, and no order
of items exists anywhere.

Two items share a word only if their digests differ in the number's half alone: for 2^17 items with
2^21 words each the chance is below 2^-52. AES of distinct numbers is within 2^-60 of a random
function there.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import NDArray

from tidegauge.compiled import lazy_module
from tidegauge.noise.randomness import AesWords, Words

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidegauge.noise import _kernels
else:
    _kernels = lazy_module("tidegauge.noise._kernels")

__all__ = ["ItemWords"]

UInt64 = NDArray[np.uint64]


@final
class ItemWords(Words):
    """Words of the items of a table: cell i stands for the i-th item of it.

    Args:
        words: Where numbers become words, under a key used for nothing else.
        key: 32 secret bytes for the digests.
        digests: Of the table's items, shape (n, 2).
    """

    def __init__(self, words: AesWords, key: bytes, digests: UInt64 | None = None) -> None:
        self._words, self._key = words, key
        self._digests = np.empty((0, 2), np.uint64) if digests is None else digests

    def __repr__(self) -> str:
        return f"ItemWords({self._words!r})"

    def digests(self, items: Iterable[bytes]) -> UInt64:
        """Return the digests of items, shape (n, 2): secret."""
        keyed = hashlib.blake2b(digest_size=16, key=self._key, person=b"tidegauge item 1")
        parts = []
        for item in items:
            one = keyed.copy()
            one.update(item)
            parts.append(one.digest())
        return np.frombuffer(b"".join(parts), "<u8").astype(np.uint64).reshape(-1, 2)

    def of(self, digests: UInt64) -> ItemWords:
        """Return the words of another table, under the same keys."""
        return ItemWords(self._words, self._key, digests)

    def fill(self, inputs: UInt64, outputs: UInt64) -> None:
        """Encrypt the numbers of items and coordinates, each range of these under its own key."""
        self._words.check_live()
        start, stop = 0, len(inputs)
        while start < stop:
            end = _kernels.same_key_until(inputs, start, 63, 18)
            places = inputs[start:end, 0].astype(np.int64)
            numbers = np.take(self._digests, places, axis=0)
            numbers[:, 1] ^= inputs[start:end, 1]
            self._words.encrypt(int(inputs[start, 1]) >> 38, numbers, outputs[start : end + 1])
            start = end

    def close(self) -> None:
        """Erase both keys."""
        self._words.close()
        self._key = b""

    def check_live(self) -> None:
        """Refuse closed words, and those of a fork."""
        self._words.check_live()

    def scratch(self, count: int) -> tuple[UInt64, UInt64, NDArray[np.int64]]:
        """Return reused arrays for ``fill``."""
        return self._words.scratch(count)
