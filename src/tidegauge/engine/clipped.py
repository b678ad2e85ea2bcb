"""Blocks of a gauge whose clip is found: what was measured and the clip, side by side in each row.

The row of a step holds the measured values, in units of the clip, the counts of magnitudes, if the
clip is chosen from them, and the clip that was in force: how far below and above 0, in grains, and
twice 0 as long as there is none.
So the clip is committed with what was measured under it, and is never computed again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import final

import numpy as np

from tidegauge.mechanisms.clip_meter import ClipMeter, under_clips
from tidegauge.mechanisms.clip_plan import ClipPlan
from tidegauge.mechanisms.clip_reading import ClipReading
from tidegauge.mechanisms.first_meter import FirstMeter
from tidegauge.mechanisms.mean import Values
from tidegauge.planning.parts import PlannedGauge
from tidegauge.strategies.decay import Decay
from tidegauge.strategies.strategy import Float64, Int64, State

__all__ = ["ClippedReading", "ClippedSteps", "DrawnSteps", "noise_under"]


def _parts(plan: ClipPlan, measured: Int64) -> tuple[Int64, Int64, Int64]:
    """The values, the magnitudes and the clips of rows, each of shape (steps, ...)."""
    own = plan.main.neighbors.known_cells
    main, bins, clips = np.split(measured, [own, measured.shape[1] - 2], axis=1)
    return np.ascontiguousarray(main), np.ascontiguousarray(bins), clips


@final
class ClippedReading:
    """Decodes blocks under the clips that stand in them.

    Args:
        gauge: What was measured.
        decays: The views.
    """

    def __init__(self, gauge: PlannedGauge, decays: Sequence[Decay]) -> None:
        plan = gauge.clipped
        views = tuple((str(number), decay) for number, decay in enumerate(decays))
        self._plan = plan
        self._reading = ClipReading(replace(plan, main=replace(plan.main, views=views)))

    @property
    def step(self) -> int:
        """How many steps have been decoded."""
        return self._reading.step

    @property
    def choices(self) -> Int64:
        """Every clip so far: rows (first step, below, above), in grains."""
        return self._reading.choices

    def decode(self, measured: Int64, steps: int) -> Float64:
        """Return every view of the next steps, shape (views, steps, cells or 2 cells), in grains.

        NaN where there was no clip yet.
        """
        return self._reading.follow(*_parts(self._plan, measured), steps)


@final
class ClippedSteps:
    """Measures blocks of a gauge, each step under the clip that was chosen from published numbers.

    Args:
        gauge: What to measure.
        blocks: All blocks that were committed, in order.
        state: The private state after them; None: there are none.
    """

    def __init__(
        self, gauge: PlannedGauge, blocks: Iterable[Int64], state: dict[str, State] | None
    ) -> None:
        plan = gauge.clipped
        self._reading = ClipReading(plan)
        for measured in blocks:
            self._reading.follow(*_parts(plan, measured), len(measured))
        self._meter = ClipMeter(plan, state=state, step=self._reading.step)

    @property
    def state(self) -> dict[str, State]:
        """Private: what has to be kept between steps."""
        return self._meter.state

    @property
    def clamped(self) -> int:
        """How many totals were clamped: for the operator, never for readers."""
        return self._meter.clamped

    def measure(self, given: Values) -> Int64:
        """Measure a block and return its public rows; it is cut where a clip may be chosen."""
        rows = []
        for main, bins, clip, _ in under_clips(self._meter, self._reading, given):
            clips = np.tile(np.array(clip or (0, 0), np.int64), (len(bins), 1))
            rows.append(np.concatenate([main, bins, clips], axis=1))
        return np.concatenate(rows)

    def close(self) -> None:
        """Erase the keys; nothing more is measured."""
        self._meter.close()


@final
class DrawnSteps:
    """Measures blocks of a gauge whose clip is drawn once from the values of its first steps.

    The clip is committed with the block that was measured under it: it is in the private state and
    in each row from then on, and is never drawn again.

    Args:
        gauge: What to measure.
        state: The private state after all blocks that were committed; None: there are none.
        step: How many steps they have.
    """

    def __init__(self, gauge: PlannedGauge, state: dict[str, State] | None, step: int) -> None:
        self._meter = FirstMeter(gauge.clipped, state=state, step=step)

    @property
    def state(self) -> dict[str, State]:
        """Private: what has to be kept between steps."""
        return self._meter.state

    @property
    def clamped(self) -> int:
        """How many totals were clamped: for the operator, never for readers."""
        return self._meter.clamped

    def measure(self, given: Values) -> Int64:
        """Measure a block and return its public rows."""
        main, clips = self._meter.measure(given)
        return np.column_stack([main, np.zeros_like(clips), clips])

    def close(self) -> None:
        """Erase the keys and what waits; nothing more is measured."""
        self._meter.close()


def noise_under(plan: ClipPlan, choices: Int64) -> ClipReading:
    """Return what tells the noise of any view under clips that were chosen."""
    return ClipReading(plan, state={"choices": choices})
