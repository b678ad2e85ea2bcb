"""Means in memory: a private mean of a column, step by step, in any mix of views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from tidegauge.checks import shown
from tidegauge.mechanisms.design import design
from tidegauge.mechanisms.live import LiveGauge
from tidegauge.mechanisms.mean import Bounds, MeanReading, Values, bounds_of, mean_request
from tidegauge.mechanisms.mean_release import MeanRelease, mean_release
from tidegauge.mechanisms.meter import Meter
from tidegauge.mechanisms.plan import GaugePlan
from tidegauge.mechanisms.reading import Reading
from tidegauge.mechanisms.request import cells_of
from tidegauge.privacy.guarantee import Guarantee
from tidegauge.privacy.unit import PrivacyUnit
from tidegauge.strategies.decay import Decay
from tidegauge.strategies.strategy import Float64

__all__ = ["MeanGauge"]


@final
class MeanGauge(LiveGauge[GaugePlan]):
    """A private mean of a column of values over many cells, released step by step in any views.

    The budget is spent once, when the gauge is made. Values beyond the bounds count as the bound.
    A mean of few events is mostly noise: its interval says so, and where the noisy count is not
    above its own half-width there is no value, with a reason.

    Args:
        views: Names and decays, or a list of decays that name themselves; weights at least 0.
        bounds: The least and the largest value, in grains: they decide the noise.
        unit: Who is protected: ``"event"``, or ``Contributions(k)``. There is no default.
        epsilon: As for :class:`tidegauge.Gauge`, like ``delta`` and ``guarantee``.
        delta: See ``epsilon``.
        guarantee: See ``epsilon``.
        cells: How many cells, or their names. Left out: a scalar gauge.
        horizon: For how many steps the accuracy is designed.
        end: The last step, counted from 1.
        neighboring_relation: ``"add_or_remove_one"`` or ``"replace_one"``.
        max_events_per_step: Totals of a cell and step are clamped to those of so many events.
        level: Coverage of the intervals.
        band: ``"pointwise"`` or ``"simultaneous"``.

    Raises:
        InvalidParameter: A parameter is impossible.
        UnsupportedCombination: A view has no mean, or no proven mechanism serves it.

    Cost:
        Privacy: all of the guarantee, at once. Time and memory: twice those of a gauge of sums.

    Examples:
        >>> import numpy as np
        >>> import tidegauge as tg
        >>> gauge = tg.MeanGauge(views=[tg.Running()], bounds=(0, 100), epsilon=1.0, delta=1e-9,
        ...                      unit="event", horizon=365)
        >>> release = gauge.update(np.full(5000, 30))["running"]
        >>> bool(20 < release.lower < 40), round(gauge.half_width("running", 1, 5000), 2)
        (True, 0.37)

    References:
        Intervals of ratios: Fieller (1954).
    """

    def __init__(
        self,
        *,
        views: Mapping[str, Decay] | Sequence[Decay],
        bounds: tuple[int, int],
        unit: PrivacyUnit | str,
        epsilon: float | Fraction | None = None,
        delta: float | Fraction | None = None,
        guarantee: Guarantee | None = None,
        cells: int | Sequence[str] | None = None,
        horizon: int | None = None,
        end: int | None = None,
        neighboring_relation: str = "add_or_remove_one",
        max_events_per_step: int | None = None,
        level: float = 0.95,
        band: str = "pointwise",
    ) -> None:
        self._bounds: Bounds = bounds_of(bounds)
        self._number, self._names, self._scalar = cells_of(cells)
        request = mean_request(
            bounds=self._bounds, cells=cells, max_events=max_events_per_step, views=views,
            unit=unit, epsilon=epsilon, delta=delta, guarantee=guarantee, horizon=horizon, end=end,
            neighboring_relation=neighboring_relation, level=level, band=band,
        )  # fmt: skip
        plan = design(request)
        self._start(plan, Meter(plan))

    def _start(self, plan: GaugePlan, meter: Meter) -> None:
        self._begin(plan)
        self._meter = meter
        self._reading = Reading(plan, [decay for _, decay in plan.views])
        self._means = MeanReading(plan, self._bounds)

    @property
    def step(self) -> int:
        """How many steps have been measured and released."""
        return self._reading.step

    def update(self, values: ArrayLike, cells: ArrayLike | None = None) -> dict[str, MeanRelease]:
        """Measure the values of one step and release every view of it.

        Args:
            values: The step's values, in grains; integers of shape (events,), maybe none.
            cells: The cell of each one by its index, shape (events,); None: the first.

        Raises:
            InvalidInput: Not integers of this shape; the gauge is as it was.
            StreamEnded: The end is reached; the gauge is as it was.
            LiveState: The gauge was forked, interrupted, or is in use by another thread.

        Examples:
            >>> import tidegauge as tg
            >>> gauge = tg.MeanGauge(views=[tg.Step()], bounds=(-10, 10), epsilon=1, unit="event")
            >>> bool(-10 <= gauge.update([3, -4, 5] * 400)["step"].value <= 10)
            True
        """
        return self._measure(Values(values, None, cells, 1, self._number), block=False)

    def update_many(
        self, values: ArrayLike, steps: ArrayLike, length: int, cells: ArrayLike | None = None
    ) -> dict[str, MeanRelease]:
        """Measure a block of steps and release every view of each.

        Args:
            values: All values, in grains; integers of shape (events,), in any order.
            steps: The step of each one by its index in the block, from 0.
            length: How many steps the block has, empty ones too.
            cells: The cell of each one by its index; None: the first.

        Raises:
            InvalidInput: Not integers of this shape; the gauge is as it was.
            StreamEnded: The block reaches beyond the end; the gauge is as it was.
            LiveState: The gauge was forked, interrupted, or is in use by another thread.

        Examples:
            >>> import tidegauge as tg
            >>> gauge = tg.MeanGauge(views=[tg.Window(7)], bounds=(-10, 10), epsilon=1,
            ...                      unit="event", cells=["a", "b"])
            >>> gauge.update_many([3, -4, 5], [0, 0, 2], 3, cells=[0, 1, 1])["window_7"].value.shape
            (3, 2)
        """
        return self._measure(Values(values, steps, cells, length, self._number), block=True)

    def half_width(self, view: str | Decay, step: int, events: ArrayLike) -> Any:
        """Return half of the width of the interval of a mean of so many events; reads no data.

        The widest, wherever between the bounds the mean lies: half of upper - lower, not the
        distance to the further end, which of few events may be more. At most half the bounds'.

        Args:
            view: The name of a view, or any decay.
            step: The step, counted from 1.
            events: How many events the view weighs: a number, or an array.

        Examples:
            >>> import tidegauge as tg
            >>> gauge = tg.MeanGauge(views=[tg.Step()], bounds=(0, 100), epsilon=1, unit="event")
            >>> gauge.half_width("step", 1, [10, 100, 1000]).round(1)
            array([37.1,  4. ,  0.4])
        """
        half = self._means.half_width(view, step, events)
        return half if np.ndim(events) else float(half)

    def statement(self) -> str:
        """Return what is promised, in words, with every declared constant."""
        bounds, most = self._bounds, self._plan.max_per_step // self._bounds.reach
        instead = {
            "cells": ", ".join(self._names) if self._names else self._number,
            "max_change": None,  # of what is measured: sums and counts, around the centre
            "max_cells": None,
            "max_per_step": None,
            "bounds": (bounds.low, bounds.high),
            "max_events_per_step": most,
        }
        return self._plan.statement(instead)

    def close(self) -> None:
        """Erase the key; nothing more can be measured. ``with`` a gauge does it at the end."""
        self._meter.close()

    def _measure(self, given: Values, *, block: bool) -> dict[str, MeanRelease]:
        bounds = self._bounds
        centred = np.clip(given.values, bounds.low, bounds.high) - bounds.centre
        counts = given.totals(np.full(len(centred), bounds.reach, dtype=np.int64))  # at most 2^62
        exact = np.concatenate([given.totals(centred), counts], axis=1)
        with self._turn:
            first = self._reading.step + 1
            decoded = self._reading.decode(self._meter.measure(exact), given.length)
        return {
            name: self._release(name, first, values, block)
            for (name, _), values in zip(self._plan.views, decoded, strict=True)
        }

    def _release(self, name: str, first: int, decoded: Float64, block: bool) -> MeanRelease:
        steps = first + np.arange(len(decoded))
        means = self._means.means(name, steps, decoded)
        return mean_release(
            self._plan, name, first, means, names=self._names, scalar=self._scalar, block=block
        )

    def __repr__(self) -> str:
        names = ", ".join(shown(name) for name, _ in self._plan.views[:8])
        return (
            f"MeanGauge(views=[{names}], cells={self._number}, step={self.step}, "
            f"guarantee={self._plan.guarantee})"
        )
