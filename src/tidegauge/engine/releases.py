"""Releases as a table: the columns that every reader gets, in every format."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tidegauge.engine.clipped import noise_under
from tidegauge.engine.ranked import ranked
from tidegauge.mechanisms.intervals import BANDS
from tidegauge.mechanisms.mean import MeanReading
from tidegauge.mechanisms.mean_release import NO_CLIP, TOO_FEW
from tidegauge.mechanisms.plan import GaugePlan
from tidegauge.mechanisms.stored import plain
from tidegauge.planning.parts import ALL_CELLS, for_all
from tidegauge.planning.plan import Clock, PlannedGauge
from tidegauge.strategies.decay import Decay, full_after
from tidegauge.strategies.strategy import Float64, Int64

if TYPE_CHECKING:
    import polars as pl

    from tidegauge.engine.found import Shown
    from tidegauge.mechanisms.selector import Chosen

__all__ = ["TOTALS", "Numbers", "Published", "published_views"]

TOTALS = "totals"
"""The folder, inside a view's, of the sums of all cells: asked later, they change no file."""


@dataclass(frozen=True, eq=False)
class Numbers:
    """What a view says at some steps, in the column's units.

    Attributes:
        value: Of shape (steps, cells); NaN where there is none, and ``reason`` says why.
        noise_std: Of shape (steps, 1); None: the values have none, for they are ratios.
        lower: Lower ends of the intervals, shape (steps, cells).
        upper: Upper ends.
        more: Further columns by their names, shape (steps, cells) or (steps, 1).
        reason: Why a value is missing; None: none is.
        waits: At which steps there is nothing, for no clip is known yet, shape (steps, 1).
    """

    value: Float64
    noise_std: Float64 | None
    lower: Float64
    upper: Float64
    more: dict[str, Float64] = field(default_factory=dict)
    reason: str | None = None
    waits: NDArray[np.bool_] | None = None


@dataclass(frozen=True)
class Published:
    """One view of one gauge as it is published.

    Attributes:
        clock: Of the plan.
        gauge: What was measured.
        name: The view's name.
        decay: Its decay.
        every: It is read at every so many steps, at the ends of aligned stretches.
        total: It is of one cell, ``*``: the sum of all.
        shown: The cells, where they are discovered: each has releases from its own step on.
        past: Discovered cells have rows of the steps before they were named, too, unless ranked.
        top: How many cells are shown at a step, the largest in their order; None: all.
        clips: Where a clip is found, every one so far: rows (first step, below, above), in grains.
        chosen: Where cells are chosen, which they are, and how many switches were made.
        origin: The step, from 0, at which ``chosen`` begins.
    """

    clock: Clock
    gauge: PlannedGauge
    name: str
    decay: Decay
    every: int = 1
    total: bool = False
    shown: Shown | None = None
    past: bool = False
    top: int | None = None
    clips: Int64 | None = None
    chosen: Chosen | None = None
    origin: int = 0

    @cached_property
    def parts(self) -> tuple[Published, ...]:
        """What is published of the view: itself and, if the plan says so, the sum of all cells."""
        return (self, replace(self, total=True)) if self.gauge.totals else (self,)

    @property
    def definition(self) -> str:
        """What the view is, as it stands in the metadata of its files: its decay, and when."""
        ranked = {} if self.top is None else {"top": self.top}
        data = {"decay": plain(self.decay), "every": self.every, **ranked}
        return json.dumps(data, sort_keys=True)

    @property
    def cells(self) -> tuple[tuple[str, ...], ...]:
        """The cells, each a value for each of the ``by`` columns."""
        if self.shown is not None:
            return self.shown.cells
        return ((ALL_CELLS,) * len(self.gauge.by),) if self.total else self.gauge.cells

    @property
    def summed(self) -> int:
        """How many measured cells each published one adds up."""
        return len(self.gauge.cells) if self.total else 1

    def steps(self, first: int, steps: int) -> Int64:
        """Return which of the steps are published, counted from 1: public, whatever was measured.

        Args:
            first: The first step of a block, from 0.
            steps: How many it has.
        """
        numbers = np.arange(first + 1, first + steps + 1)
        aligned: Int64 = numbers[numbers % self.every == 0]
        return aligned

    def complete(self, numbers: Int64) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Return for each step (from 1) whether the view has seen all that it weighs."""
        return np.asarray(numbers >= full_after(self.decay))

    @cached_property
    def grain(self) -> float:
        """The value of one grain, in the units of the column."""
        return float(self.gauge.round_to)

    def noise_std(self, numbers: Int64) -> Float64:
        """Return the noise's standard deviation at each step (from 1), in the column's units.

        Of a mean, which is a ratio, and under a clip that is found: NaN, see :meth:`numbers`.
        """
        if self.gauge.kind == "mean" or self.gauge.clip is not None:
            return np.full(len(numbers), np.nan)
        return self.gauge.mechanism.noise_std(self.decay, numbers, self.summed) * self.grain

    def half_width(self, numbers: Int64) -> Float64:
        """Return half the interval's width at each step (from 1), in the column's units.

        Of a mean it depends on how many events there are, and under a clip that is found on the
        clip: NaN, see :meth:`numbers`.
        """
        if self.gauge.kind == "mean" or self.gauge.clip is not None:
            return np.full(len(numbers), np.nan)
        return self._intervals.half_width(self.decay, numbers, self.summed) * self.grain

    @cached_property
    def _intervals(self) -> GaugePlan:
        """The mechanism with the intervals that are shown: of ranked cells, of all at once."""
        mechanism = self.gauge.mechanism
        return mechanism if self.top is None else for_all(mechanism, self.gauge.ranked)

    def of(self, values: Float64) -> Float64:
        """Return values of all measured cells, shape (steps, cells), for the published ones."""
        if not self.total:
            return values
        if self.gauge.kind == "mean":  # all sums, and all counts
            return np.asarray(values.reshape(len(values), 2, -1).sum(axis=2))
        return np.asarray(values.sum(axis=1, keepdims=True))

    def numbers(self, numbers: Int64, grains: Float64) -> Numbers:
        """Return what the view says at some steps.

        Args:
            numbers: The steps, from 1.
            grains: The decoded view there, shape (steps, measured numbers), in grains.
        """
        if self.clips is not None:
            return self._clipped(numbers, grains, self.clips)
        whole = self.of(grains)
        if self.gauge.kind == "mean":
            reading = MeanReading(self.gauge.mechanism, self.gauge.bounds)
            found = reading.means(self.decay, numbers, whole, self.summed)
            value, lower, upper = (array * self.grain + 0.0 for array in found[:3])
            more = {"count": found[3], "count_std": found[4]}
            return Numbers(value, None, lower, upper, more, TOO_FEW)
        value = whole * self.grain + 0.0  # no -0.0
        half = self.half_width(numbers)[:, np.newaxis]
        return Numbers(value, self.noise_std(numbers)[:, np.newaxis], value - half, value + half)

    def _clipped(self, numbers: Int64, grains: Float64, clips: Int64) -> Numbers:
        """The same under a clip that is found."""
        reading = noise_under(self.gauge.clipped, clips)
        low, high = reading.clips(numbers)
        waits = reading.waits(numbers)[:, np.newaxis]
        whole = self.of(grains)
        ends = {"clip_low": low[:, np.newaxis], "clip_high": high[:, np.newaxis]}
        more = {name: np.where(waits, np.nan, one * self.grain) for name, one in ends.items()}
        if self.gauge.kind == "mean":
            found = reading.means(self.decay, numbers, whole, self.summed)
            value, lower, upper = (array * self.grain + 0.0 for array in found[:3])
            more = {"count": found[3], "count_std": found[4], **more}
            return Numbers(value, None, lower, upper, more, TOO_FEW, waits)
        noise = reading.noise_std(self.decay, numbers, self.summed)[:, np.newaxis] * self.grain
        half = reading.half_width(self.decay, numbers, self.summed)[:, np.newaxis] * self.grain
        value = whole * self.grain + 0.0  # no -0.0
        shown = (value, np.broadcast_to(noise, value.shape), value - half, value + half)
        value, noise, lower, upper = (np.where(waits, np.nan, array) for array in shown)
        return Numbers(value, noise, lower, upper, more, NO_CLIP, waits)

    def places(self, first: int, steps: int) -> list[pl.Series]:
        """Return the columns that say where and when, one row a published step and cell.

        They are the same for every view of a gauge with the same ``every`` and ``total``.

        Args:
            first: The first step of a block, from 0.
            steps: How many it has.
        """
        import polars as pl

        numbers = self.steps(first, steps)
        at, cell = self._rows(numbers)
        return [*self._cells(cell), pl.Series("step", numbers[at]), *self._times(numbers[at])]

    def table(
        self, first: int, values: Float64, places: Sequence[pl.Series] | None = None
    ) -> pl.DataFrame:
        """Return the releases of a block: one row a published step and shown cell, step by step.

        Args:
            first: The first step of the block, from 0.
            values: The decoded view, shape (steps, cells), in grains.
            places: What :meth:`places` returns for these steps, if it is known already.
        """
        import polars as pl

        numbers = self.steps(first, len(values))
        found = self.numbers(numbers, values[-(first + 1) % self.every :: self.every])
        rows = partial(self._of_rows, numbers, found.value.shape)
        value = rows(found.value)
        count = len(value)
        std = np.full((1, 1), np.nan) if found.noise_std is None else found.noise_std
        missing = found.reason is not None
        waits = None if found.waits is None else rows(found.waits)
        columns = [
            _constant("gauge", self.gauge.name, count),
            _constant("view", self.name, count),
            *(self.places(first, len(values)) if places is None else places),
            pl.Series("value", value, nan_to_null=missing),
            pl.Series("noise_std", rows(std), nan_to_null=missing),
            pl.Series("lower", rows(found.lower), nan_to_null=missing),
            pl.Series("upper", rows(found.upper), nan_to_null=missing),
            *(pl.Series(n, rows(array), nan_to_null=missing) for n, array in found.more.items()),
            pl.Series("level", [self.gauge.mechanism.level]).new_from_index(0, count),
            _constant("band", self.gauge.mechanism.band, count, BANDS),  # it may change later
            pl.Series("complete", rows(self.complete(numbers)[:, np.newaxis])),
            _reasons(value, found.reason, waits),
        ]
        if self.gauge.select is not None and self.chosen is not None:
            left = self.gauge.select.switches - self.chosen.used[numbers - 1 - self.origin]
            columns.append(pl.Series("switches_left", rows(left[:, np.newaxis])))
        table = pl.DataFrame(columns)
        if self.top is None or self.total:
            return table
        return ranked(table, [name for name, _ in self.gauge.by], self.top)

    def _rows(self, numbers: Int64) -> tuple[Int64, Int64]:
        """The place of each row's step among ``numbers``, and its cell; step by step."""
        if self.shown is not None:
            begin = self.shown.visible_from * (not self.past or self.top is not None)
            at, cell = np.nonzero(numbers[:, np.newaxis] > begin)
            return at.astype(np.int64), cell.astype(np.int64)
        if self.chosen is not None:
            shown = self.chosen.cells[numbers - 1 - self.origin]
            return np.repeat(np.arange(len(numbers)), shown.shape[1]), shown.reshape(-1)
        cells = len(self.cells)
        return np.repeat(np.arange(len(numbers)), cells), np.tile(np.arange(cells), len(numbers))

    def _of_rows(self, numbers: Int64, shape: tuple[int, ...], array: Any) -> Any:
        """What stands in each row, of an array of shape (steps, cells) or (steps, 1)."""
        wide = np.broadcast_to(array, shape)
        whole = self.shown is None and self.chosen is None
        return wide.reshape(-1) if whole else wide[self._rows(numbers)]

    @cached_property
    def _names(self) -> list[pl.Series]:
        """The cells' values in each of the ``by`` columns, which a live step asks for anew."""
        import polars as pl

        if self.shown is not None:
            names = zip(self.shown.names.iter_columns(), self.gauge.by, strict=True)
            return [column.alias(name) for column, (name, _) in names]
        columns = []
        for position, (name, _) in enumerate(self.gauge.by):
            values = [cell[position] for cell in self.cells]
            columns.append(pl.Series(name, values, dtype=pl.Enum(list(dict.fromkeys(values)))))
        return columns

    def _cells(self, order: Int64) -> list[pl.Series]:
        """One column for each of the ``by`` columns, under its own name."""
        return [names.gather(order) for names in self._names]

    def _times(self, numbers: Int64) -> list[pl.Series]:
        """Begin and end of each step in UTC, half open; null where a step is a record."""
        import polars as pl

        kind = pl.Datetime("us", "UTC")
        if self.clock.step_us is None:
            empty = pl.Series("step_start", [None], dtype=kind)
            empty = empty.new_from_index(0, len(numbers))
            return [empty, empty.alias("step_end")]
        start = self.clock.start_us + (numbers - 1) * self.clock.step_us
        return [
            pl.Series("step_start", start).cast(kind),
            pl.Series("step_end", start + self.clock.step_us).cast(kind),
        ]


def _constant(name: str, value: str, rows: int, values: Sequence[str] | None = None) -> pl.Series:
    """A column of one of several values, or of the only one."""
    import polars as pl

    kind = pl.Enum([value] if values is None else values)
    return pl.Series(name, [value], dtype=kind).new_from_index(0, rows)


def _reasons(
    value: Float64, reason: str | None, waits: NDArray[np.bool_] | None = None
) -> pl.Series:
    """Why each value is missing; null where it is there."""
    import polars as pl

    if reason is None:
        return pl.Series("reason", [None], dtype=pl.String).new_from_index(0, len(value))
    missing = pl.Series(np.isnan(value))
    text = pl.lit(reason)
    if waits is not None:
        text = pl.when(pl.Series(waits)).then(pl.lit(NO_CLIP)).otherwise(text)
    told = pl.when(missing).then(text)
    return pl.select(told.alias("reason")).to_series()


def published_views(clock: Clock, gauge: PlannedGauge) -> list[Published]:
    """Return the views of a gauge that the plan publishes."""
    return [
        Published(clock, gauge, name, decay, gauge.every_of(name), top=gauge.top)
        for name, decay in gauge.views
    ]
