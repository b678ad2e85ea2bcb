"""What occurred: the exact total of an item at a step, and nothing where nothing occurred."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegauge.errors import InvalidInput
from tidegauge.mechanisms.plan import GaugePlan
from tidegauge.mechanisms.totals import range_of, wrong_sign
from tidegauge.strategies.strategy import Int64

__all__ = ["Occurrences", "checked_occurrences"]


@dataclass(frozen=True, eq=False)
class Occurrences:
    """Triples of a step, an item and an exact total in grains.

    A total of 0 is not nothing: an event of the item occurred. Private.
    """

    steps: Int64 = field(repr=False)
    items: Int64 = field(repr=False)
    amounts: Int64 = field(repr=False)

    @staticmethod
    def sorted(steps: Int64, items: Int64, amounts: Int64) -> Occurrences:
        """Put triples of any order into order of items, then steps."""
        order = np.lexsort((steps, items))
        return Occurrences(steps[order], items[order], amounts[order])

    def of(self, numbers: Int64) -> Occurrences:
        """Return the events of some items, by their places in ``numbers``, in order of steps.

        These are in order of items; ``numbers`` increases.
        """
        if not len(numbers):
            return Occurrences(*[np.zeros(0, np.int64)] * 3)
        low, high = np.searchsorted(self.items, (numbers[0], numbers[-1] + 1))
        places = np.searchsorted(numbers, self.items[low:high])
        mine = np.flatnonzero(numbers[places] == self.items[low:high])
        mine = mine[np.argsort(self.steps[low:high][mine], kind="stable")]
        steps, amounts = self.steps[low:high][mine], self.amounts[low:high][mine]
        return Occurrences(steps, places[mine], amounts)

    def dense(self, start: int, stop: int, width: int) -> tuple[Int64, NDArray[np.uint8]]:
        """Return totals, and whether anything occurred, of shape (steps, width).

        Args:
            start: The first step; events are in order of steps, as ``of`` returns them.
            stop: The step after the last.
            width: How many items there are.
        """
        low, high = np.searchsorted(self.steps, (start, stop))
        where = self.steps[low:high] - start, self.items[low:high]
        exact = np.zeros((stop - start, width), np.int64)
        seen = np.zeros(exact.shape, np.uint8)
        exact[where], seen[where] = self.amounts[low:high], 1
        return exact, seen

    def only(self, wanted: NDArray[np.bool_]) -> Occurrences:
        """Return the events of items that are wanted, in their order."""
        mine = wanted[self.items]
        return Occurrences(self.steps[mine], self.items[mine], self.amounts[mine])

    def followed_by(self, block: Occurrences, first: int) -> Occurrences:
        """Return these and those of a block that begins at ``first``, by steps, then items.

        The order does not depend on where a stream is cut.
        """
        order = np.lexsort((block.items, block.steps))
        return Occurrences(
            np.concatenate([self.steps, block.steps[order] + first]),
            np.concatenate([self.items, block.items[order]]),
            np.concatenate([self.amounts, block.amounts[order]]),
        )


def checked_occurrences(
    plan: GaugePlan, known: int, steps: int, when: Any, items: Any, amounts: Any
) -> tuple[Occurrences, int]:
    """Return the events of a block, clamped as declared, and how many were clamped.

    No message shows a value of the data.

    Args:
        plan: Declares the sign of contributions and the range of a total.
        known: How many items were seen before.
        steps: How many steps the block has.
        when: The step of each, from 0 in the block.
        items: The number of its item.
        amounts: Its exact total.

    Raises:
        InvalidInput: Other arrays, a step or an item out of range or twice, or a total with a sign
            that was not declared.
    """
    arrays = when, items, amounts
    alike = all(
        isinstance(one, np.ndarray) and one.dtype == np.int64 and one.shape == np.shape(when)
        for one in arrays
    )
    if not alike or np.ndim(when) != 1:
        raise InvalidInput(
            "Expected steps, items and amounts as int64 arrays of one shape (n,), got others. "
            "They would not belong together. Convert them first."
        )
    events = Occurrences.sorted(when, items, amounts)
    if len(when) and not (when.min() >= 0 and when.max() < steps):
        raise InvalidInput(
            f"Expected steps in [0, {steps}), got one outside. It would count in another block. "
            "Count steps from the first of the block."
        )
    new = np.unique(events.items[events.items >= known])
    if len(when) and (events.items[0] < 0 or (new != np.arange(known, known + len(new))).any()):
        raise InvalidInput(
            "Expected new items to have the numbers after the known ones without a gap, got "
            "others. Their noise would be that of other items. Number them in order."
        )
    twice = (np.diff(events.items) == 0) & (np.diff(events.steps) == 0)
    if twice.any():
        raise InvalidInput(
            "Expected one total for an item and step, got two. One of them would be lost. "
            "Add them up first."
        )
    low, high = range_of(plan)
    if (low == 0 and (amounts < 0).any()) or (high == 0 and (amounts > 0).any()):
        raise wrong_sign(plan)
    clamped = int((events.amounts < low).sum() + (events.amounts > high).sum())
    return Occurrences(events.steps, events.items, np.clip(events.amounts, low, high)), clamped
