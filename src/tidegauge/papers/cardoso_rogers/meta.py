"""MetaAlgo: a one-shot algorithm on every block of steps, put together like a running sum."""

from __future__ import annotations

from fractions import Fraction
from math import sqrt
from typing import Any, final

import numpy as np

from tidegauge.checks import integer, shown
from tidegauge.errors import InvalidInput, InvalidParameter
from tidegauge.mechanisms.oneshot import LATTICE_BITS
from tidegauge.papers.cardoso_rogers.algorithms import (
    KnownGauss,
    KnownGumb,
    OneShot,
    UnkGauss,
    UnkGumb,
    made_for,
)
from tidegauge.papers.cardoso_rogers.digits import level_count
from tidegauge.papers.cardoso_rogers.events import (
    LARGEST_TOTAL,
    Items,
    ItemSystem,
    Shown,
    counts_of,
    domain_of,
)
from tidegauge.privacy.guarantee import Guarantee
from tidegauge.strategies.blocks.levels import power_levels
from tidegauge.strategies.strategy import MOST_STEPS

__all__ = ["MetaAlgo"]

_KINDS: dict[str, type[OneShot]] = {
    "known_gauss": KnownGauss,
    "known_gumb": KnownGumb,
    "unk_gauss": UnkGauss,
    "unk_gumb": UnkGumb,
}


@final
class MetaAlgo(ItemSystem):
    """Runs a one-shot algorithm on each block of a base's digits, and adds up what it shows.

    A block is one run on the events of its steps alone. The count of an item at a step is the sum
    over the blocks of the step's digits; where a block does not show it, it counts 0 there, so that
    items of unknown domains and beyond the top k are counted too low.

    Guarantee:
        For one event, over all steps: an event lies in at most one block of each level, and costs
        as many runs as the last step has digits. Proof: docs/proofs/cardoso_rogers.md.

    Args:
        algorithm: ``"known_gauss"``, ``"known_gumb"``, ``"unk_gauss"`` or ``"unk_gumb"``, made for
            ``guarantee`` with ``options``; or one made with noise of your own, without both.
        base: Of the blocks; see :func:`~.digits.best_base`.
        end: The last step.
        guarantee: See :func:`~.one_shot.known_gauss` and its neighbors.
        items: All items, for algorithms that know them.
        **options: Those of the algorithm: ``max_items``, ``k``, ``kbar``, ``delta_share``,
            ``neighboring_relation``.

    Raises:
        InvalidParameter: A parameter is impossible.
        UnsupportedCombination: The guarantee is not for such noise.

    Cost: one run a step; memory for each item seen and level.

    Examples:
        >>> from tidegauge import ZCDP
        >>> system = MetaAlgo(
        ...     "known_gumb", 4, 1000, ZCDP(0.5), items=["ale", "bread", "cheese"], k=2
        ... )
        >>> len(system.update({"ale", "cheese"}).items)
        2
        >>> MetaAlgo(KnownGumb(10, k=5), 2, 1000, items=["ale", "bread"]).cost
        ZCDP(rho=0.5)

    References:
        Cardoso and Rogers 2022, Algorithm 3.
    """

    def __init__(
        self,
        algorithm: str | OneShot,
        base: int,
        end: int,
        guarantee: Guarantee | None = None,
        *,
        items: Any = None,
        **options: Any,
    ) -> None:
        last = integer("end", end, low=1, high=MOST_STEPS, why="Give the number of the last step.")
        levels = level_count(base, last)
        self.algorithm = _made(algorithm, guarantee, levels, options)
        if (items is None) is not self.algorithm.unknown:
            raise InvalidParameter(
                f"Expected items exactly if they are known, got items={shown(items)} for "
                f"{type(self.algorithm).__name__}. Whether an item may be shown that nobody named "
                "decides about thresholds. Name them, or leave them out."
            )
        self._domain = None if items is None else domain_of(items)
        self._items = Items(self._domain or ())
        self._levels = power_levels(base, last)
        room = len(self._items)
        self._open = np.zeros((levels, room), np.int64)  # exact counts of the blocks under way
        self._sums = np.zeros((levels, room), np.int64)  # noisy counts of the digits' blocks
        self._runs = np.zeros((levels, room), np.int64)  # in how many of them an item is shown
        self._noise = self.algorithm.noise()
        self._max_items = getattr(self.algorithm, "max_items", None)
        cost = self.algorithm.cost_of_runs(levels) if guarantee is None else guarantee
        self._begin(base, last, cost)

    @property
    def source(self) -> str:
        """Cardoso and Rogers 2022, Algorithm 3."""
        return "Cardoso and Rogers 2022, Algorithm 3 (MetaAlgo)"

    @property
    def rho(self) -> Fraction:
        """The zCDP cost of all noise together."""
        return len(self._levels) * self.algorithm.rho

    @property
    def threshold_delta(self) -> Fraction:
        """The chance that an item of one stream alone is ever shown; 0 for known items."""
        return len(self._levels) * self.algorithm.threshold_delta

    def close(self) -> None:
        """Erase the keys and the counts."""
        self._noise.close()
        self._open[:] = 0

    @property
    def _block_std(self) -> float:
        unit = 1 << LATTICE_BITS
        return sqrt(float(self.algorithm.std) ** 2 + 1 / (12 * unit * unit))

    def _checked_step(self, step: Any) -> dict[str, int]:
        counts = counts_of(step, self._max_items)
        if self._domain is not None and not counts.keys() <= self._domain.keys():
            raise InvalidInput(
                "Expected items that were declared, got another one. It belongs to no count. "
                "Declare it, or drop it from every event."
            )
        return counts

    def _check_live(self) -> None:
        self._noise.check_live()

    def _released(self, counts: dict[str, int]) -> Shown:
        new = self._items.missing(counts)
        if new:
            self._items.add(new)
            self._grow()
        size = len(self._items)
        self._open[:, self._items.places(counts)] += np.fromiter(counts.values(), np.int64)
        # of the blocks that end here no sum will take another one: smaller ones are parts of it
        step = self._step + 1
        level = max(j for j, block in enumerate(self._levels) if step % block == 0)
        histogram = np.minimum(self._open[level, :size], LARGEST_TOTAL)
        seen = np.flatnonzero(histogram) if self.algorithm.unknown else np.arange(size)
        names = [self._items.names[i] for i in seen.tolist()] if self.algorithm.unknown else ()
        places, noisy = self.algorithm.run(self._noise, histogram[seen], names)
        self._sums[:level], self._runs[:level], self._open[: level + 1] = 0, 0, 0
        self._sums[level, seen[places]] += noisy
        self._runs[level, seen[places]] += 1
        totals = self._sums[:, :size].sum(axis=0) / (1 << LATTICE_BITS)
        return self._items.shown(self._runs[:, :size].sum(axis=0) > 0, totals)

    def _grow(self) -> None:
        room = self._open.shape[1]
        if len(self._items) > room:
            wide = ((0, 0), (0, max(len(self._items), 2 * room) - room))
            self._open, self._sums, self._runs = (
                np.pad(one, wide) for one in (self._open, self._sums, self._runs)
            )


def _made(
    algorithm: Any, guarantee: Guarantee | None, levels: int, options: dict[str, Any]
) -> OneShot:
    """The algorithm with the noise of one block."""
    if isinstance(algorithm, OneShot):
        if guarantee is not None or options:
            raise InvalidParameter(
                "Expected an algorithm with its own noise, or a guarantee, got both. They could "
                "disagree. Leave one of the two out."
            )
        return algorithm
    kind = _KINDS.get(algorithm) if isinstance(algorithm, str) else None
    if kind is None:
        raise InvalidParameter(
            f"Expected algorithm to be one of {sorted(_KINDS)}, got {shown(algorithm)}. Nothing "
            'else is proved. Write "known_gumb".'
        )
    try:
        if "delta" in options:  # it would be another than that of the guarantee
            raise TypeError
        return made_for(kind, guarantee, levels, **options)  # type: ignore[arg-type]  # refused there
    except TypeError:
        raise InvalidParameter(
            f"Expected the options of {algorithm}, got {shown(sorted(options))}. One is missing or "
            "unknown. See its function."
        ) from None
