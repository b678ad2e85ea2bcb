"""The decoders of a run, one for each gauge: where they stand, and when that is worth storing."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import final

import numpy as np

from tidegauge.engine.clipped import ClippedReading
from tidegauge.engine.found import FoundBlock, FoundReading
from tidegauge.engine.measurements import AnyBlock
from tidegauge.mechanisms.reading import Reading
from tidegauge.mechanisms.selector import ChosenReading
from tidegauge.planning.plan import Plan
from tidegauge.strategies.decay import Decay
from tidegauge.strategies.strategy import Float64, Int64, State

__all__ = ["Decoders"]

_CHECKPOINT_BYTES = 1 << 25  # of measurement that a resumed run decodes again, at least
_CHECKPOINT_SIZES = 4  # of measurement for each byte of a stored decoder, at least
_VIEWS = "published"  # marks a decoder's stored state with the views that it serves


@final
class Decoders:
    """Decodes committed blocks in order, to the views of every gauge.

    Args:
        plan: Under which they were measured.
        views: The decays of each gauge, by its name.
    """

    def __init__(self, plan: Plan, views: Mapping[str, Sequence[Decay]]) -> None:
        self._plan, self._views = plan, views
        self._readings = {name: self._reading(name) for name in views}
        self._since = dict.fromkeys(views, 0)  # bytes decoded since a stored state

    def decode(self, name: str, block: AnyBlock) -> Float64:
        """Return every view of the next block of a gauge, shape (views, steps, cells), in grains.

        Raises:
            StoreBehind: Cells are missing that were visible before.
        """
        self._since[name] += block.measured.nbytes
        reading = self._readings[name]
        if isinstance(reading, FoundReading):
            assert isinstance(block, FoundBlock)
            return reading.decode(block)
        return reading.decode(block.measured, block.steps)

    def behind(self, first: int) -> list[str]:
        """Return the gauges whose block that begins with this step is still to be decoded."""
        return [name for name, reading in self._readings.items() if reading.step <= first]

    def clips(self, name: str) -> Int64 | None:
        """Return every clip of a gauge so far; None: it has none that is found."""
        reading = self._readings[name]
        return reading.choices if isinstance(reading, ClippedReading) else None

    def checkpoints(self) -> dict[str, State]:
        """Return the states that are worth storing with the next block.

        A state is worth it once four times its size was decoded, and at least 32 MB: what is
        stored is then at most a quarter more, and a resumed run has little to decode again.
        """
        due: dict[str, State] = {}
        for name, reading in self._readings.items():
            if not isinstance(reading, Reading):
                continue  # decoded from the beginning: there is no room for names or clips
            size = sum(array.nbytes for array in reading.state.values())
            if self._since[name] >= max(_CHECKPOINT_BYTES, _CHECKPOINT_SIZES * size):
                due[name] = {**reading.state, _VIEWS: self._views_sum(name)}
                self._since[name] = 0
        return due

    def restore(self, name: str, stored: tuple[int, State] | None) -> None:
        """Take a stored state, if it serves these views; else decode from the beginning."""
        if stored is None:
            return
        step, state = stored
        views = state.pop(_VIEWS, None)
        if views is not None and np.array_equal(views, self._views_sum(name)):
            self._readings[name] = self._reading(name, state, step)

    def _reading(
        self, name: str, state: State | None = None, step: int = 0
    ) -> Reading | FoundReading | ChosenReading | ClippedReading:
        gauge, decays = self._plan.gauge(name), self._views[name]
        if gauge.discover is not None:
            return FoundReading(gauge, decays)
        if gauge.clip is not None:
            return ClippedReading(gauge, decays)
        if gauge.select is not None:
            return ChosenReading(gauge.mechanism, step=step)
        return Reading(gauge.mechanism, decays, state=state, step=step)

    def _views_sum(self, name: str) -> Int64:
        text = repr(list(self._views[name]))
        return np.frombuffer(hashlib.sha256(text.encode()).digest(), "<i8").copy()
