"""The private half of a gauge whose clip is drawn from the values of its first steps."""

from __future__ import annotations

from typing import final

import numpy as np

from tidegauge.mechanisms.clip_meter import clipped_units
from tidegauge.mechanisms.clip_plan import ClipPlan
from tidegauge.mechanisms.mean import Values
from tidegauge.mechanisms.measure import measure_threshold
from tidegauge.mechanisms.meter import Meter
from tidegauge.mechanisms.turn import Turn, no_copies, refuse_beyond_end
from tidegauge.strategies.strategy import Int64, State

__all__ = ["FirstMeter"]

_MAIN = "main."
_FIRST = "first"  # of its private state: the values that wait, and the clip once it is drawn


@final
class FirstMeter:
    """Measures values under a clip that it draws, once, from those of the first steps.

    While they wait, noise alone is measured. At the step after the first ones the clip is drawn,
    all that waited counts beside that step's own total, and the values are forgotten.

    Guarantee:
        The clip costs ``plan.threshold.cost``, and all that is measured ``plan.main.cost``: both
        parameters of the two add up, also for streams chosen after reading releases. How many
        values there were in the first steps, and where, stays private. Proof:
        ``docs/proofs/perrier.md``.

    Args:
        plan: What to measure; its clip is drawn from first values.
        state: What :attr:`state` was at ``step``; None: before the first step. It is taken over.
        step: How many steps it has seen.

    Cost:
        Memory, and room in the store until the clip is drawn: 16 bytes for each value of the first
        steps. Drawing takes O(n log n): some 30 ms for 65,536 values.
    """

    def __init__(
        self, plan: ClipPlan, *, state: dict[str, State] | None = None, step: int = 0
    ) -> None:
        kept = {} if state is None else state
        main = {
            name.removeprefix(_MAIN): part for name, part in kept.items() if name.startswith(_MAIN)
        }
        self._start(plan, Meter(plan.main, state=main or None, step=step), kept.get(_FIRST))

    def _start(self, plan: ClipPlan, main: Meter, first: State | None = None) -> None:
        assert plan.threshold is not None, "the clip is chosen from magnitudes"
        self._plan, self._main, self._threshold = plan, main, plan.threshold
        self._turn = Turn("meter", "start again from what was stored")
        none = np.zeros(0, np.int64)
        self._first: State = first or {"values": none, "cells": none, "clip": np.zeros(1, np.int64)}

    @property
    def state(self) -> dict[str, State]:
        """Private: what has to be kept between steps, plain arrays."""
        kept = {_FIRST: self._first}
        return kept | {f"{_MAIN}{name}": state for name, state in self._main.state.items()}

    @property
    def clamped(self) -> int:
        """How many totals were clamped: for the operator, never for readers."""
        return self._main.clamped

    def measure(self, given: Values) -> tuple[Int64, Int64]:
        """Measure a block; return its public rows, and the clip of each step.

        Args:
            given: Checked values of the block.

        Returns:
            int64 of shape (rows, coordinates) and of shape (steps,), 0 while there is no clip.

        Raises:
            StreamEnded: The block reaches beyond the last step; nothing was kept or measured.
            LiveState: Copied, forked, interrupted, or in use by two threads at once.
        """
        with self._turn:
            # before values are kept: they would count twice if the block came again
            refuse_beyond_end(self._plan.last_step, self._main.step + given.length)
            waits = min(max(self._threshold.asked.first - self._main.step, 0), given.length)
            step = self._main.step + waits
            early, late = given.part(0, waits), given.part(waits, given.length)
            self._wait(early)
            nothing = np.zeros((waits, self._plan.main.neighbors.known_cells), np.int64)
            clips = np.zeros(given.length, np.int64)
            if not late.length:
                return self._main.measure(nothing), clips
            clips[waits:] = clip = self._clip()
            values, once = self._within(late), self._waited(clip, step)
            exact = clipped_units(self._plan.of, late, values, (0, clip))
            rows = self._main.measure(nothing), self._main.measure(exact, once)
            self._forget()
            return np.concatenate(rows), clips

    def close(self) -> None:
        """Erase the key and the values that wait."""
        self._main.close()
        self._forget()

    __copy__ = __deepcopy__ = __reduce__ = __reduce_ex__ = __getstate__ = no_copies("meter")

    def _within(self, given: Values) -> Int64:
        return np.clip(given.values, 0, self._plan.bounds.high)

    def _wait(self, given: Values) -> None:
        if len(given.values):
            more = {"values": self._within(given), "cells": given.cells}
            for name, values in more.items():
                self._first[name] = np.concatenate([self._first[name], values])

    def _clip(self) -> int:
        """The clip, drawn now if it was not; at least a grain, for a step needs a unit."""
        if not self._first["clip"][0]:
            values, most = self._first["values"], self._plan.bounds.high
            self._first["clip"][0] = max(measure_threshold(self._threshold.rule, values, most), 1)
        return int(self._first["clip"][0])

    def _waited(self, clip: int, step: int) -> Int64 | None:
        """What came in the first steps, to be counted after so many; shape (coordinates,).

        After the first ones, and then whether or not anything came: the data decide nothing.
        """
        if step != self._threshold.asked.first:
            return None
        first = Values(self._first["values"], None, self._first["cells"], 1, self._plan.cells)
        units: Int64 = clipped_units(self._plan.of, first, first.values, (0, clip))[0]
        return units

    def _forget(self) -> None:
        for name in ("values", "cells"):
            self._first[name][...] = 0
            self._first[name] = np.zeros(0, np.int64)
