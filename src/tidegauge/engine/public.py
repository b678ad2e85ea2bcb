"""The public folder as a reader sees it: every view, planned or thought of later, from it alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import final

import numpy as np

from tidegauge.checks import integer, shown
from tidegauge.engine.blocks import Block, block_name, is_block_name
from tidegauge.engine.clipped import ClippedReading
from tidegauge.engine.documents import spends_in
from tidegauge.engine.files import safe_name
from tidegauge.engine.found import FoundBlock, Shown
from tidegauge.engine.measurements import AnyBlock, read_measurement
from tidegauge.engine.published_view import PublishedView
from tidegauge.engine.releases import Published
from tidegauge.errors import BudgetExceeded, InvalidInput, InvalidParameter
from tidegauge.mechanisms.growing import GrowingReading
from tidegauge.mechanisms.mean import refuse_without_mean
from tidegauge.mechanisms.reading import Reading
from tidegauge.mechanisms.selector import Chosen, ChosenReading
from tidegauge.planning.durations import steps_in
from tidegauge.planning.plan import PlannedGauge
from tidegauge.planning.promise import promise
from tidegauge.planning.verified import plan_from_bytes
from tidegauge.strategies.decay import Decay, Window
from tidegauge.strategies.rescaled import refuse_rescaled
from tidegauge.strategies.strategy import Float64, Int64

__all__ = ["PublicFolder"]

_CELLS = 256  # discovered cells that are decoded together
_PLACE = "place"
_FETCH = "Fetch the folder again from its publisher."


@final
class PublicFolder:
    """A public folder, opened by anybody: it needs no store and spends nothing.

    Args:
        path: The folder that a run wrote.
        remedy: What to do about a file in it that was changed; a publisher has other ways.

    Raises:
        InvalidInput: There is no such folder, or what is in it does not belong together.

    Examples:
        A view of the last two weeks, which nobody had planned::

            tg.open("public/").view("departures", tg.Window(14 * 24)).table()
    """

    def __init__(self, path: str | Path, *, remedy: str = _FETCH) -> None:
        self.path, self._remedy = Path(path), remedy
        try:
            data = (self.path / "plan.json").read_bytes()
        except OSError:
            raise InvalidInput(
                f"Expected a public folder at {path}, got no plan.json in it. Without the plan the "
                "numbers mean nothing. Name the folder that `public:` of the config names."
            ) from None
        try:
            self.plan = plan_from_bytes(data)
        except (InvalidParameter, BudgetExceeded) as problem:
            raise InvalidInput(
                f"Expected {self.path / 'plan.json'} as it was published, got another file. "
                f"Without the plan the numbers mean nothing. {remedy} "
                f"What is wrong with it: {problem}"
            ) from None

    @property
    def gauges(self) -> tuple[str, ...]:
        """The names of the gauges."""
        return tuple(gauge.name for gauge in self.plan.gauges)

    def views(self, gauge: str) -> tuple[str, ...]:
        """The names of a gauge's published views."""
        return tuple(name for name, _ in self.plan.gauge(gauge).views)

    def statement(self) -> str:
        """Return the privacy statement, as Markdown."""
        return (self.path / "PRIVACY.md").read_text()

    @property
    def releases(self) -> int:
        """How many releases of the plan the folder's ledger charges: 1 unless a further one was.

        Raises:
            InvalidInput: There is no ledger that can be read.
        """
        try:
            return len(spends_in((self.path / "ledger.json").read_bytes()))
        except (OSError, ValueError):
            raise InvalidInput(
                f"Expected ledger.json in {self.path} as it was published, got none that can be "
                "read. How often the plan was released is not known, nor what is promised. Fetch "
                "the folder again from its publisher."
            ) from None

    def promise(self) -> str:
        """Return the guarantee of all releases together, in one sentence.

        Raises:
            InvalidInput: There is no ledger that can be read.
        """
        return promise(self.plan, self.releases)

    def blocks(self, gauge: str) -> Iterator[AnyBlock]:
        """Read a gauge's measurement, block by block, in order.

        Raises:
            InvalidInput: A block is missing, was changed, or belongs to another plan.

        Cost: reads each file once; memory: one block, 8 bytes a cell and step, at most 1 MB; of
        discovered cells more, by the past of those that are new.
        """
        step = 0
        for path in self._measurements(gauge):
            if path.name != block_name(step):
                raise self._changed(path.with_name(block_name(step)))
            block = self._block(path, gauge, step)
            yield block
            step += block.steps

    def _measurements(self, gauge: str) -> list[Path]:
        """The files of a gauge's measurement, in order."""
        folder = self.path / "measurements" / safe_name(self.plan.gauge(gauge).name)
        return sorted(folder.glob("*.parquet"))

    def view(
        self,
        gauge: str,
        view: str | Decay,
        *,
        every: int | None = None,
        level: float | None = None,
        band: str | None = None,
    ) -> PublishedView:
        """Return a view over all published steps, decoded from the measurement.

        Args:
            gauge: The gauge's name.
            view: The name of a published view, any decay, or a length such as ``"14d"``: a window.
            every: Read it at every so many steps only; default: as planned, or at each.
            level: The coverage of the intervals; default: the plan's.
            band: ``"pointwise"`` or ``"simultaneous"``; default: the plan's.

        Raises:
            InvalidParameter: No such gauge or view.
            UnsupportedCombination: It is no view of a mean.
            InvalidInput: The folder's measurement was changed.

        Cost: no privacy; a nanosecond or two a cell and step. Memory: 8 bytes a cell and step.
        """
        planned = self.plan.gauge(gauge)
        name, decay = _named(planned, view, self.plan.clock.step_us)
        if every is None:
            every = planned.every_of(name) if isinstance(view, str) else 1
        every = integer("every", every, low=1, high=1 << 40, why="A number of steps.")
        if planned.kind == "mean":
            refuse_without_mean(name, decay)
        if planned.clip is not None:
            refuse_rescaled(name, decay)
        values, shown, clips = self._decoded(planned, decay)
        planned = replace(planned, mechanism=planned.mechanism.with_intervals(level, band))
        published = Published(
            self.plan.clock,
            planned,
            name,
            decay,
            every,
            shown=shown,
            past=True,
            top=planned.top,
            clips=clips,
        )
        if planned.select is not None:
            published = replace(published, chosen=self._chosen(planned))
        return PublishedView(published, values)

    def _decoded(
        self, gauge: PlannedGauge, decay: Decay
    ) -> tuple[Float64, Shown | None, Int64 | None]:
        """A view at all published steps, its cells if discovered, and its clips if they move."""
        if gauge.discover is not None:
            return (*self._found(gauge, decay), None)
        reading: Reading | ChosenReading | ClippedReading
        if gauge.clip is not None:
            reading = ClippedReading(gauge, (decay,))
        elif gauge.select is None:
            reading = Reading(gauge.mechanism, (decay,))
        else:
            gauge.mechanism.decay(decay)
            reading = ChosenReading(gauge.mechanism)
        known = (block for block in self.blocks(gauge.name) if isinstance(block, Block))
        parts = [reading.decode(block.measured, block.steps)[0] for block in known]
        values = np.concatenate(parts) if parts else np.empty((0, gauge.lanes))
        clips = reading.choices if isinstance(reading, ClippedReading) else None
        return values, None, clips

    def _chosen(self, gauge: PlannedGauge) -> Chosen:
        """Which cells are shown at each published step."""
        assert gauge.select is not None
        none = np.empty((0, 1 + 2 * gauge.select.k), np.int64)
        known = [block.measured for block in self.blocks(gauge.name) if isinstance(block, Block)]
        return Chosen.unpacked(np.concatenate([none, *known]))

    def _found(self, gauge: PlannedGauge, decay: Decay) -> tuple[Float64, Shown]:
        """The same of discovered cells: at all steps, whenever they were named."""
        import polars as pl

        gauge.mechanism.decay(decay)
        files = self._measurements(gauge.name)
        if not files:
            empty = pl.DataFrame(schema={str(i): pl.String for i in range(len(gauge.by))})
            return np.empty((0, 0)), Shown(empty, np.empty(0, np.int64))
        if not is_block_name(files[-1].name):
            raise self._changed(files[-1])
        last = self._block(files[-1], gauge.name, int(files[-1].stem) - 1)
        assert isinstance(last, FoundBlock)
        names, cells = last.shown.names, last.shown.names.height  # all that there are
        places = names.with_row_index(_PLACE)
        measured = np.empty((last.first + last.steps, cells), np.int64)
        for block in self.blocks(gauge.name):
            assert isinstance(block, FoundBlock)
            here = block.shown.names.join(
                places, on=names.columns, how="inner", maintain_order="left"
            )[_PLACE]
            if len(here) != len(block.new):
                raise self._changed(files[-1])
            at = here.to_numpy()
            measured[: block.first, at[block.new]] = block.past
            measured[block.first : block.first + block.steps, at] = block.measured
        values = measured.view(np.float64)  # in its place: a view is as large as what it is of
        for start in range(0, cells, _CELLS):
            part = slice(start, min(start + _CELLS, cells))
            reading = GrowingReading(gauge.mechanism, (decay,), cells=part.stop - start)
            rows = np.ascontiguousarray(measured[:, part])
            values[:, part] = reading.decode(rows, len(rows))[0]
        return values, last.shown

    def _block(self, path: Path, gauge: str, step: int) -> AnyBlock:
        """Read one file, and check that it is what was published."""
        try:
            return read_measurement(path, self.plan, self.plan.gauge(gauge), step)
        except ValueError:
            raise self._changed(path) from None

    def _changed(self, path: Path) -> InvalidInput:
        return InvalidInput(
            f"Expected {path} as it was published under this plan, got another file, or none. Its "
            f"numbers cannot be trusted. {self._remedy}"
        )

    def __repr__(self) -> str:
        return f"PublicFolder({str(self.path)!r}, gauges={list(self.gauges)})"


def _named(gauge: PlannedGauge, view: str | Decay, step_us: int | None) -> tuple[str, Decay]:
    """Return name and decay of a published view, or of any other."""
    if not isinstance(view, str):
        return view.name, view
    for name, decay in gauge.views:
        if name == view:
            return name, decay
    if step_us is not None and view[:1].isdigit():
        return f"window_{view}", Window(steps_in(view, step_us))
    raise InvalidParameter(
        f"Expected the name of a view, got {shown(view)}. Any decay can be decoded, but this name "
        f"is none of the published views. Use one of {shown([name for name, _ in gauge.views])}, "
        "or a decay such as Window(24)."
    )
