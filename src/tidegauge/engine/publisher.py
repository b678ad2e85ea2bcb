"""The writer of the public folder: it reads what is committed, decodes it, and puts files.

Every file is a function of the plan and of the committed measurement alone, is put whole, and has
a name that says its first step; so publishing again after a crash gives the same bytes. A block's
measurement is put after its releases: where it is, the releases are. Each file's metadata say which
measurement it is made of: a file of another one is never completed, nor left as if it were ours.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, final

from tidegauge.engine.blocks import Block, block_name, is_block_name
from tidegauge.engine.claim import Claim
from tidegauge.engine.decoders import Decoders
from tidegauge.engine.documents import documents, unit_sentence
from tidegauge.engine.files import folder, put, put_new, safe_name, sweep
from tidegauge.engine.found import FoundBlock
from tidegauge.engine.measurements import AnyBlock, measurement_about, measurement_table
from tidegauge.engine.origin import has_origin, origin
from tidegauge.engine.releases import TOTALS, Published, published_views
from tidegauge.engine.spends import Spend
from tidegauge.engine.store import Store
from tidegauge.errors import StoreBehind, StoreMismatch
from tidegauge.mechanisms.selector import Chosen
from tidegauge.planning.plan import Plan
from tidegauge.strategies.strategy import Float64, State

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Publisher"]

_MAKERS = 2  # files that are made at a time: each takes some 15 MB
_WAITING = 4  # files that may wait, made or not, while the next block is measured: some 3 MB each

Emit = Callable[["pl.DataFrame"], None]
Made = tuple[bytes, "pl.DataFrame | None"]  # a file, and its releases if a sink wants them
File = tuple[Path, Callable[[], Made]]  # where a file goes, and how it is made


@final
class Publisher:
    """Publishes committed blocks in order; it never sees the source, nor any private state.

    Its threads end with the ``with`` block that holds it.

    Args:
        path: The public folder; made if there is none.
        plan: What is published.
        version: Of the library; for the metadata.
        emit: Called with each new table of releases before its file is put; for sinks.

    Attributes:
        claim: The store's claim to the folder.
    """

    def __init__(
        self,
        path: Path,
        plan: Plan,
        *,
        version: str,
        emit: Emit | None = None,
    ) -> None:
        self.path = path
        self.claim = Claim(path, plan)
        self._plan, self._emit = plan, emit
        self._about = {
            "fingerprint": plan.fingerprint,
            "unit": unit_sentence(plan),
            "version": version,
        }
        self._views = {gauge.name: published_views(plan.clock, gauge) for gauge in plan.gauges}
        decays = {name: [view.decay for view in views] for name, views in self._views.items()}
        self._decoders = Decoders(plan, decays)
        self._places = {name: self._places_of(name) for name in self._views}
        self._makers = ThreadPoolExecutor(_MAKERS)
        self._waiting: deque[tuple[Path, Future[Made]]] = deque()

    def __enter__(self) -> Publisher:
        return self

    def __exit__(self, *_: object) -> None:
        """End the threads; files that nobody asked for yet are not made."""
        self._makers.shutdown(cancel_futures=True)

    def prepare(self, spends: Sequence[Spend]) -> None:
        """Write everything but measurements and releases; put an earlier release aside.

        Args:
            spends: Every release that was charged.

        Raises:
            StoreMismatch: Another plan is published here.
            StoreBehind: The folder's ledger has a release that is not among them, or another store
                was faster.
            WriteFailed: The disk does not take it.
        """
        texts = documents(self._plan, spends)
        self.claim.take(spends, texts.pop("ledger.json"))
        texts["plan.json"] = self._plan.canonical()
        sweep(self.path, "ledger.json")
        for name, content in texts.items():
            sweep(self.path, name)  # sinks, and whatever else lies here, are others'
            put(self.path / name, content)
        for gauge in self._plan.gauges:
            sweep(folder(self._measurements(gauge.name)))
            for view in self._parts(gauge.name):
                sweep(folder(self._releases(view)))

    def refuse_other_views(self) -> None:
        """Refuse a view that is published under this name and is another.

        What was published stays as it is, so two views would stand under one name. The files know
        what they are, also of a view that was left out for a while.

        Raises:
            StoreMismatch: One is.
        """
        import polars as pl

        for view in (part for gauge in self._plan.gauges for part in self._parts(gauge.name)):
            place = self._releases(view)
            path = place / max(filter(is_block_name, _names(place)), default="")
            try:
                about = pl.read_parquet_metadata(path)
            except (OSError, pl.exceptions.PolarsError):
                continue  # a damaged file is noticed where files are compared
            ours = {"fingerprint": self._plan.fingerprint, "file": self._place(path)}
            if ours.items() <= about.items() and about.get("view") != view.definition:
                raise StoreMismatch(
                    f"Expected view {view.name!r} of {view.gauge.name!r} as {place} has it, which "
                    f"is {about.get('view')}, got {view.definition}. What is published stays, and "
                    "two views would stand under one name. Give the new one a name of its own."
                )

    def resume(self, store: Store) -> int:
        """Publish committed blocks of which a file is missing; return how many.

        Afterwards the decoders stand at the last committed step. The files of every block that is
        decoded on the way are compared with it, and of one block before the first missing one.

        Raises:
            StoreBehind: A file is damaged, or of another measurement.
        """
        spans = store.spans()
        missing = self._missing(spans)
        start = min(missing, default=store.step)
        compared = max((first for first, _ in spans if first < start), default=0)
        for gauge in self._plan.gauges:
            self._decoders.restore(gauge.name, store.reading(gauge.name, compared))
        for first, steps in spans:
            blocks = {name: store.block(name, first) for name in self._decoders.behind(first)}
            if first in missing:
                self.publish(first, steps, blocks)
            else:
                self._there(first, steps, blocks)
                for name, block in blocks.items():
                    self._decoders.decode(name, block)
        self.settle()
        return len(missing)

    def publish(self, first: int, steps: int, blocks: Mapping[str, AnyBlock]) -> None:
        """Publish one block of all gauges, as read back from the store, but for its last files.

        Files are put one after the other, while the next ones are made on other cores; the last
        ones are put by the next call, or by :meth:`settle`.

        Raises:
            StoreBehind: Another store has taken the folder, or has other numbers in it.
        """
        self.claim.refuse_taken()
        there = self._there(first, steps, blocks)
        for path, make in self._files(first, steps, blocks):
            if path not in there:
                self._waiting.append((path, self._makers.submit(make)))
            if len(self._waiting) > _WAITING:
                self._put_next()

    def settle(self) -> None:
        """Put the files that are still waiting.

        Raises:
            StoreBehind: Another store has taken the folder.
        """
        if self._waiting:
            self.claim.refuse_taken()
        while self._waiting:
            self._put_next()

    def _put_next(self) -> None:
        path, made = self._waiting.popleft()
        data, table = made.result()
        if self._emit is not None and table is not None:
            self._emit(table)
        if not put_new(path, data, named=False):
            raise _other_numbers(path)

    def _files(self, first: int, steps: int, blocks: Mapping[str, AnyBlock]) -> Iterator[File]:
        """Each file of a block, in the order in which they are put: measurements are the last."""
        for gauge in self._plan.gauges:
            block = blocks[gauge.name]
            decoded = self._decoders.decode(gauge.name, block)
            shown = block.shown if isinstance(block, FoundBlock) else None
            clips = self._decoders.clips(gauge.name)
            places: dict[tuple[int, bool], list[pl.Series]] = {}
            for view, values in zip(self._views[gauge.name], decoded, strict=True):
                if len(view.steps(first, steps)):
                    for part in view.parts:
                        now = part if shown is None else replace(part, shown=shown)
                        now = now if clips is None else replace(now, clips=clips)
                        if gauge.select is not None and isinstance(block, Block):
                            chosen = Chosen.unpacked(block.measured)
                            now = replace(part, chosen=chosen, origin=first)
                        alike = part.every, part.total
                        if alike not in places:
                            places[alike] = now.places(first, steps)
                        yield self._release_file(now, first, values, places[alike], block.sum)
        for gauge in self._plan.gauges:
            yield self._measurement_file(gauge.name, blocks[gauge.name])

    def checkpoints(self) -> dict[str, State]:
        """Return the decoders' states that are worth storing with the next block."""
        return self._decoders.checkpoints()

    def _missing(self, spans: Sequence[tuple[int, int]]) -> set[int]:
        """The first steps of blocks of which a file is not there."""
        missing: set[int] = set()
        for gauge in self._plan.gauges:
            there = _names(self._measurements(gauge.name))
            missing |= {first for first, _ in spans if block_name(first) not in there}
            for view in self._parts(gauge.name):
                there = _names(self._releases(view))
                missing |= {
                    first
                    for first, steps in spans
                    if block_name(first) not in there and len(view.steps(first, steps))
                }
        return missing

    def _measurements(self, gauge: str) -> Path:
        return self.path / "measurements" / safe_name(gauge)

    def _parts(self, gauge: str) -> list[Published]:
        """What has files of its own: every view, and the sums of all cells beside it."""
        return [part for view in self._views[gauge] for part in view.parts]

    def _releases(self, view: Published) -> Path:
        path = self.path / "releases" / safe_name(view.gauge.name) / safe_name(view.name)
        return path / TOTALS if view.total else path

    def _release_file(
        self,
        view: Published,
        first: int,
        values: Float64,
        places: Sequence[pl.Series],
        measurement: str,
    ) -> File:
        path = self._releases(view) / block_name(first)
        about = {**origin(self._place(path), measurement), "view": view.definition}
        return path, partial(self._release, view, first, values, places, about)

    def _release(
        self,
        view: Published,
        first: int,
        values: Float64,
        places: Sequence[pl.Series],
        about: dict[str, str],
    ) -> Made:
        table = view.table(first, values, places)
        mechanism = view.gauge.mechanism
        about = self._about | about | {"level": str(mechanism.level), "band": mechanism.band}
        return _parquet(table, about), None if self._emit is None else table

    def _place(self, path: Path) -> str:
        return path.relative_to(self.path).as_posix()

    def _places_of(self, gauge: str) -> list[tuple[str, int]]:
        """Each folder of a gauge's files, inside the public one, and how many steps apart."""
        releases = [(self._place(self._releases(view)), view.every) for view in self._parts(gauge)]
        return [(self._place(self._measurements(gauge)), 1), *releases]

    def _there(self, first: int, steps: int, blocks: Mapping[str, AnyBlock]) -> set[Path]:
        """The files of a block that are there; refuse one of another measurement.

        All are compared before the first one is put: beside another's numbers, it would be a
        second release.
        """
        found = set()
        for name, block in blocks.items():
            for place, every in self._places[name]:
                if (first + steps) // every == first // every:
                    continue  # no step of the block is published there
                file = f"{place}/{block_name(first)}"
                with suppress(FileNotFoundError):
                    if not has_origin(f"{self.path}/{file}", file, block.sum):
                        raise _other_numbers(self.path / file)
                    found.add(self.path / file)
        return found

    def _measurement_file(self, gauge: str, block: AnyBlock) -> File:
        path = self._measurements(gauge) / block_name(block.first)
        return path, partial(self._measurement, gauge, block)

    def _measurement(self, gauge: str, block: AnyBlock) -> Made:
        planned = self._plan.gauge(gauge)
        place = self._place(self._measurements(gauge) / block_name(block.first))
        about = self._about | measurement_about(planned, block) | origin(place, block.sum)
        return _parquet(measurement_table(planned, block), about), None


def _other_numbers(path: Path) -> StoreBehind:
    return StoreBehind(
        f"Expected at {path} what this store measured, or nothing, got another "
        "file. Two measurements of one step are a second release. If the file "
        "is damaged, remove it and run again: it is written anew as it was. If another "
        "store wrote it, publish into a folder of its own."
    )


def _parquet(table: pl.DataFrame, about: dict[str, str]) -> bytes:
    """A table of one block as a file, made in memory: only whole files touch the disk."""
    buffer = BytesIO()
    table.write_parquet(buffer, compression="snappy", metadata=about)
    return buffer.getvalue()


def _names(path: Path) -> set[str]:
    return set(os.listdir(path)) if path.is_dir() else set()
