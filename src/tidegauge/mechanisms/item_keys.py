"""The keys of the noise of items: which key serves which steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import final

from tidegauge.errors import InvalidParameter
from tidegauge.mechanisms.plan import GaugePlan
from tidegauge.noise.randomness import Words, stored_words
from tidegauge.strategies.strategy import MOST_STEPS

__all__ = ["ItemKeys"]


@final
class ItemKeys:
    """Words for the noise of every item and step, the same whenever they are asked for.

    Args:
        plan: Of the gauge.
        keys: First step and key of each incarnation.
        gauge: Its name.
        step: The present one.

    Raises:
        InvalidParameter: The keys do not cover all steps up to the present one.
    """

    def __init__(
        self, plan: GaugePlan, keys: Sequence[tuple[int, bytes]], gauge: str, step: int
    ) -> None:
        firsts = [first for first, _ in keys]
        if firsts[:1] != [0] or any(b <= a for a, b in pairwise(firsts)) or firsts[-1] > step:
            raise InvalidParameter(
                "Expected keys that begin at step 0 and at increasing ones up to the present, got "
                "others. Noise of earlier steps would change. Give every key that was stored."
            )
        context = "tidegauge items 1", gauge, plan.fingerprint, plan.law.scale
        bits = plan.strategy.lattice_bits
        self._words = [stored_words(key, *context, bits) for _, key in keys]
        self._firsts = [*firsts, MOST_STEPS + 1]

    def of(self, first: int, end: int, since: int) -> Iterator[tuple[Words, int, int]]:
        """Give the words of steps ``first`` to ``end - 1``, with the range that each serves.

        Args:
            first: The first step.
            end: The step after the last.
            since: The step whose key serves all steps before it as well.
        """
        for words, (start, stop) in zip(self._words, pairwise(self._firsts), strict=True):
            low, high = max(start if start > since else 0, first), min(stop, end)
            if stop > since and low < high:
                yield words, low, high

    def close(self) -> None:
        """Erase the keys here."""
        for words in self._words:
            words.close()

    def __repr__(self) -> str:
        return f"ItemKeys({len(self._words)} keys)"
