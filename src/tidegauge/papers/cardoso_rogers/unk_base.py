"""UnkBase: running counts of items that nobody knows in advance."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, sqrt
from typing import Any, final

import numpy as np

from tidegauge.checks import integer, shown
from tidegauge.errors import InvalidParameter
from tidegauge.mechanisms.item_noise import ItemNoise
from tidegauge.mechanisms.oneshot import LATTICE_BITS
from tidegauge.mechanisms.selection import std_for
from tidegauge.papers.cardoso_rogers.accounting import (
    budget_of,
    constant_quantile,
    item_rho,
    moved_items,
    normal_quantile,
    worst_quantile,
)
from tidegauge.papers.cardoso_rogers.digits import digit_sum, level_count
from tidegauge.papers.cardoso_rogers.events import (
    LARGEST_TOTAL,
    Items,
    ItemSystem,
    Shown,
    counts_of,
    encoded,
)
from tidegauge.privacy.guarantee import Guarantee
from tidegauge.privacy.rounding import sqrt_up
from tidegauge.strategies.strategy import MOST_STEPS

__all__ = ["THRESHOLDS", "UnkBase"]

THRESHOLDS = ("constant", "per_step", "naive")
"""How the chance of a false release is shared out among the steps."""


@final
class UnkBase(ItemSystem):
    r"""Releases at every step the items whose noisy running count passes a threshold.

    Every item there could ever be has the noise of :class:`~.base_mech.BaseMech` from the first
    step on, as a function of the item under a secret key, the same at all steps. An item that is
    not shown leaves no trace in the release.

    Guarantee:
        (epsilon, delta)-DP for one event, a set of at most ``max_items`` items, over all steps
        together. A share of delta pays for the thresholds: it bounds the chance that an item that
        only one of two neighboring streams has is shown at any step. Also when later events were
        chosen after reading earlier releases. Proof: docs/proofs/cardoso_rogers.md.

    Args:
        base: Of the blocks; see :func:`~.digits.best_base`.
        end: The last step.
        guarantee: :class:`~tidegauge.ApproxDP`; the others have no delta for unknown items.
        max_items: Most items of one event; of a larger set the first by their bytes count.
        max_change: Most that one event adds to one item, for mappings whose counts are not of
            events but of what these contain.
        delta_share: The thresholds' part of delta.
        threshold: ``"constant"``, the union bound over the digit sums of all steps;
            ``"per_step"``, lower where the noise is, and higher at the worst steps; ``"naive"``,
            that of the worst step at all of them.
        neighboring_relation: ``"add_or_remove_one"`` or ``"replace_one"``, which moves twice as
            many items.

    Raises:
        InvalidParameter: A parameter is impossible.
        UnsupportedCombination: A guarantee without delta.

    Cost: one draw an item seen and step, in blocks; memory for each item seen and level.

    Examples:
        >>> from tidegauge import ApproxDP
        >>> system = UnkBase(4, 1000, ApproxDP(1, 1e-6), max_items=1)
        >>> [round(system.threshold(step)) for step in (1, 1000)], system.update(["ale"]).items
        ([195, 195], ())

    References:
        Cardoso and Rogers 2022, section 4, as corrected in ``docs/errata.md``.
    """

    def __init__(
        self,
        base: int,
        end: int,
        guarantee: Guarantee,
        *,
        max_items: int,
        max_change: int = 1,
        delta_share: float | Fraction = Fraction(1, 2),
        threshold: str = "constant",
        neighboring_relation: str = "add_or_remove_one",
    ) -> None:
        last = integer("end", end, low=1, high=MOST_STEPS, why="Give the number of the last step.")
        why = "Noise and thresholds are made for it. Declare the most there can be."
        self._max_items = integer("max_items", max_items, low=1, high=1 << 40, why=why)
        self._change = integer("max_change", max_change, low=1, high=1 << 30, why=why)
        if threshold not in THRESHOLDS:
            raise InvalidParameter(
                f"Expected threshold to be one of {shown(THRESHOLDS)}, got {shown(threshold)}. "
                'Nothing else is proved. Write "constant".'
            )
        levels = level_count(base, last)
        budget = budget_of(guarantee, gaussian=True, unknown=True, delta_share=delta_share)
        moved = moved_items(self._max_items, neighboring_relation)
        price = Fraction(moved * self._change**2 * levels, 2)
        self._std = std_for(budget.rho, price)
        assert item_rho(base, last, moved, self._std, self._change) <= budget.rho
        self._moved, self._way = moved, threshold
        self._chance = budget.delta / moved
        self._noise = ItemNoise(base, last, self._std)
        if threshold == "constant":
            self._quantile = constant_quantile(base, last, self._chance)
        elif threshold == "naive":
            self._quantile = worst_quantile(base, last, self._chance)
        else:
            self._quantile = normal_quantile(self._chance / last)
        self._items = Items()
        self._counts = np.zeros(0, np.int64)
        self._begin(base, last, guarantee)

    @property
    def source(self) -> str:
        """Cardoso and Rogers 2022, section 4."""
        return "Cardoso and Rogers 2022, section 4 (UnkBase)"

    @property
    def sensitivity(self) -> float:
        """How far one event moves all blocks together, in L2."""
        return self._change * sqrt(self._moved * len(self._noise.levels))

    def threshold(self, step: int) -> float:
        """Return the noisy count that an item must exceed to be shown at a step; public."""
        why = "Steps are counted from 1, and nothing is measured after the last."
        number = integer("step", step, low=1, high=self._end, why=why)
        return self._lattice_threshold(number) / (1 << LATTICE_BITS)

    def close(self) -> None:
        """Erase the keys and the counts."""
        self._noise.close()
        self._counts = np.zeros(0, np.int64)

    @property
    def _block_std(self) -> float:
        return self._noise.law.std / (1 << LATTICE_BITS)

    def _lattice_threshold(self, step: int) -> int:
        """The largest noisy count that is not shown, in lattice units, rounded up.

        A sum of n rounded draws exceeds the sum of the real ones by at most n / 2 lattice units.
        """
        blocks = digit_sum(self.base, step)
        real = self._quantile
        if self._way == "per_step":
            real *= sqrt_up(Fraction(blocks))
        return ceil((self._change + self._std * real) * (1 << LATTICE_BITS) + Fraction(blocks, 2))

    def _checked_step(self, step: Any) -> dict[str, int]:
        return counts_of(step, self._max_items)

    def _check_live(self) -> None:
        self._noise.check_live()

    def _released(self, counts: dict[str, int]) -> Shown:
        self._noise.advance()
        new = self._items.missing(counts)
        if new:
            self._items.add(new)
            self._noise.add([encoded(item) for item in new])
            self._counts = _longer(self._counts, len(self._items))
        exact = self._counts[: len(self._items)]
        places = self._items.places(counts)
        exact[places] += np.fromiter(counts.values(), np.int64, len(counts))
        np.minimum(exact, LARGEST_TOTAL, out=exact)
        noisy = self._noise.of(exact)
        mask = noisy > self._lattice_threshold(self._step + 1)
        return self._items.shown(mask, noisy / (1 << LATTICE_BITS))


def _longer(counts: np.ndarray[Any, np.dtype[np.int64]], size: int) -> Any:
    """The counts with room for so many, at least doubled where it is short."""
    if size <= len(counts):
        return counts
    return np.pad(counts, (0, max(size, 2 * len(counts)) - len(counts)))
