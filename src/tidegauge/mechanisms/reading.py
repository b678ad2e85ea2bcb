"""The reading: the public half of a gauge. It turns a measurement into views and sees no data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np

from tidegauge.mechanisms.plan import GaugePlan
from tidegauge.strategies.decay import Decay
from tidegauge.strategies.strategy import Float64, Int64, State

__all__ = ["Reading"]


@final
class Reading:
    """Decodes a measurement, block after block, to any views of the stream.

    Args:
        plan: The plan under which it was measured.
        views: The decays to decode.
        state: The public state at ``step``; None: before the first step. It is taken over, not
            copied, and changed in place.
        step: How many steps the state has seen.

    Cost: no privacy; a nanosecond or two a view, cell and step.

    Examples:
        >>> from tidegauge.mechanisms.design import design
        >>> from tidegauge.mechanisms.meter import Meter
        >>> from tidegauge.mechanisms.request import request_of
        >>> from tidegauge.strategies.decay import Running, Window
        >>> plan = design(request_of(views=[Running()], unit="event", epsilon=1, cells=2))
        >>> reading = Reading(plan, [Running(), Window(7)])
        >>> reading.decode(Meter(plan).measure([[3, 4]]), 1).shape, reading.step
        ((2, 1, 2), 1)
    """

    def __init__(
        self, plan: GaugePlan, views: Sequence[Decay], *, state: State | None = None, step: int = 0
    ) -> None:
        for view in views:
            plan.decay(view)
        self._strategy, self._cells = plan.strategy, plan.neighbors.known_cells
        self._views, self._step = tuple(views), step
        self._state = self._strategy.init_decoder(views, self._cells) if state is None else state

    @property
    def state(self) -> State:
        """Public: what has to be kept between blocks. Changed in place by ``decode``."""
        return self._state

    @property
    def step(self) -> int:
        """How many steps have been decoded."""
        return self._step

    def decode(self, measured: Int64, steps: int, out: Float64 | None = None) -> Float64:
        """Return every view of the next steps, float64 of shape (views, steps, cells), in grains.

        Args:
            measured: The rows of these steps, as a meter returned them.
            steps: How many steps they measure.
            out: Written, if given: an array of that shape whose views are contiguous.
        """
        if out is None:
            out = np.empty((len(self._views), steps, self._cells))
        self._strategy.decode(self._state, self._views, measured, self._step, out)
        self._step += steps
        return out
