"""A reading whose cells grow: the public half of a gauge that discovers its items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np

from tidegauge.checks import shown
from tidegauge.errors import InvalidInput
from tidegauge.mechanisms.columns import joined
from tidegauge.mechanisms.plan import GaugePlan
from tidegauge.strategies.decay import Decay
from tidegauge.strategies.strategy import Float64, Int64, State

__all__ = ["GrowingReading"]

_LANES = 1 << 16  # of the past, decoded together


@final
class GrowingReading:
    """Decodes the measurement of visible items, block after block, to any views of the stream.

    Args:
        plan: The plan under which it was measured.
        views: The decays to decode.
        state: The public state at ``step``; None: before the first item. It is taken over, not
            copied, and changed in place.
        step: How many steps the state has seen.
        cells: How many items it has.

    Cost: no privacy; a nanosecond or two a view, item and step, for past steps as for new ones.
    """

    def __init__(
        self,
        plan: GaugePlan,
        views: Sequence[Decay],
        *,
        state: State | None = None,
        step: int = 0,
        cells: int = 0,
    ) -> None:
        for view in views:
            plan.decay(view)
        self._strategy, self._views = plan.strategy, tuple(views)
        self._step, self._cells = step, cells
        self._state = self._strategy.init_decoder(views, cells) if state is None else state

    @property
    def state(self) -> State:
        """Public: what has to be kept between blocks."""
        return self._state

    @property
    def step(self) -> int:
        """How many steps have been decoded."""
        return self._step

    @property
    def cells(self) -> int:
        """How many items there are."""
        return self._cells

    def grow(self, past: Int64) -> None:
        """Take in new items, which follow the known ones, with all that was measured of them.

        Args:
            past: Rows of all steps so far, shape (steps, new).

        Raises:
            InvalidInput: The past of another number of steps.
        """
        steps, new = past.shape
        if steps != self._step:
            raise InvalidInput(
                f"Expected the past of {self._step} steps, got {shown(steps)}. Views would begin "
                "at different steps. Grow before the block is decoded."
            )
        if not new:
            return
        state = self._strategy.init_decoder(self._views, new)
        rows = max(1, _LANES // new)
        for start in range(0, steps, rows):
            block = np.ascontiguousarray(past[start : start + rows])
            out = np.empty((len(self._views), len(block), new))
            self._strategy.decode(state, self._views, block, start, out)
        self._state = joined([self._state, state]) if self._cells else state
        self._cells += new

    def decode(self, measured: Int64, steps: int) -> Float64:
        """Return every view of the next steps, float64 of shape (views, steps, items), in grains.

        Args:
            measured: Rows of these steps, items in the order in which they were taken in.
            steps: How many steps they measure.

        Raises:
            InvalidInput: Another number of items.
        """
        if measured.shape[1] != self._cells:
            raise InvalidInput(
                f"Expected the measurement of {self._cells} items, got {measured.shape[1]}. Values "
                "would be read under the wrong names. Grow first."
            )
        out = np.empty((len(self._views), steps, self._cells))
        if self._cells:
            rows = np.ascontiguousarray(measured)
            self._strategy.decode(self._state, self._views, rows, self._step, out)
        self._step += steps
        return out
