"""Doubles for tests: noise that can be repeated, and so protects nobody."""

from __future__ import annotations

import hashlib
from typing import final

import numpy as np
from numpy.typing import NDArray

from tidegauge.noise.randomness import AesWords, Words

__all__ = ["SeededWords"]


@final
class SeededWords(Words):
    """INSECURE: words from a known seed, for tests only; the same construction as the real ones.

    Args:
        seed: Any integer; the same seed gives the same words in every run.

    Examples:
        >>> SeededWords(1)
        SeededWords(INSECURE)
    """

    def __init__(self, seed: int) -> None:
        self._words = AesWords(hashlib.sha256(f"INSECURE tidegauge seed {seed}".encode()).digest())

    def __repr__(self) -> str:
        return "SeededWords(INSECURE)"

    def fill(self, inputs: NDArray[np.uint64], outputs: NDArray[np.uint64]) -> None:
        """Write the word of each input number."""
        self._words.fill(inputs, outputs)

    def buffers(
        self, blocks: int
    ) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.int64]]:
        """Return reused arrays for ``fill``."""
        return self._words.buffers(blocks)

    def close(self) -> None:
        """Erase the key."""
        self._words.close()
