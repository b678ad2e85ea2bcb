"""The writer of the public folder: it reads what is committed, decodes it, and puts files.

Every file is a function of the plan and of the committed measurement alone, is put whole, and has
a name that says its first step; so publishing again after a crash gives the same bytes. A block's
measurement is put after its releases: where it is, the releases are.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, final

import numpy as np

from tidegauge.engine.documents import documents, spends_in, unit_sentence
from tidegauge.engine.files import folder, put, safe_name, writing
from tidegauge.engine.releases import Published, published_views
from tidegauge.engine.store import Block, Spend, Store
from tidegauge.errors import StoreBehind, StoreMismatch
from tidegauge.mechanisms.reading import Reading
from tidegauge.plan.plan import Plan
from tidegauge.strategies.strategy import COORDINATES_PER_STEP, Float64, Int64, State

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Publisher", "block_name", "measurement_sum"]

_CHECKPOINT_BYTES = 1 << 25  # of measurement that a resumed run decodes again, at least
_CHECKPOINT_SIZES = 4  # of measurement for each byte of a stored decoder, at least
_BLOCK = re.compile(r"[0-9]{12}\.parquet")
_VIEWS = "published"  # marks a decoder's stored state with the views that it serves

Emit = Callable[["pl.DataFrame"], None]


def block_name(first: int) -> str:
    """Return the name of a block's files: its first step, counted from 1, in 12 digits.

    Examples:
        >>> block_name(0)
        '000000000001.parquet'
    """
    return f"{first + 1:012d}.parquet"


def measurement_sum(measured: Int64) -> str:
    """Return the SHA-256 of a block's rows, as it stands beside them."""
    return hashlib.sha256(np.ascontiguousarray(measured, "<i8").tobytes()).hexdigest()


@final
class Publisher:
    """Publishes committed blocks in order; it never sees the source, nor any private state.

    Args:
        path: The public folder; made if there is none.
        plan: What is published.
        version: Of the library; for the metadata.
        emit: Called with each new table of releases before its file is put; for sinks.
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
        self._plan, self._emit = plan, emit
        self._about = {
            "fingerprint": plan.fingerprint,
            "unit": unit_sentence(plan),
            "version": version,
        }
        self._views = {gauge.name: published_views(plan.clock, gauge) for gauge in plan.gauges}
        self._readings = {gauge.name: self._reading(gauge.name) for gauge in plan.gauges}
        self._since = dict.fromkeys(self._readings, 0)  # bytes decoded since a stored state

    def spends(self) -> list[Spend]:
        """Return every release that the folder's ledger charges; none where nothing is published.

        Raises:
            StoreMismatch: It is no ledger, it is another plan's, or measurements lie here without.
        """
        self._refuse_another_plan()
        ledger = self.path / "ledger.json"
        if not ledger.exists() and not self._latest():
            return []
        try:
            return spends_in(ledger.read_bytes())
        except (OSError, ValueError):
            raise StoreMismatch(
                f"Expected at {ledger} the account of what is published beside it, got none that "
                "can be read. What was spent is not known. Bring that file back as it was, or "
                "publish into a folder of its own."
            ) from None

    def check(self, step: int, spends: Sequence[Spend]) -> None:
        """Refuse a folder of another plan or store, or one that is ahead of the store.

        Args:
            step: How many steps the store has committed.
            spends: Every release that the store has charged.

        Raises:
            StoreMismatch: Another plan is published here, or the ledger cannot be read.
            StoreBehind: Steps or releases are published that the store does not know.
        """
        charged = self.spends()
        latest = self._latest()
        if latest > step:
            raise StoreBehind(
                f"Expected a store that knows what {self.path} has published, which is step "
                f"{latest} and more, got one of {step} steps. Going on would publish other numbers "
                "for the same steps. Bring back the store that published them, publish into "
                "another folder if this one is of other data, or accept a second release "
                "(--accept-second-release): it is charged to the ledger in full, once more."
            )
        self._refuse_forgotten(charged, spends)

    def prepare(self, spends: Sequence[Spend]) -> None:
        """Write everything but measurements and releases; put an earlier release aside.

        Args:
            spends: Every release that was charged.

        Raises:
            StoreMismatch: Another plan is published here.
            StoreBehind: The folder's ledger has a release that is not among them.
            WriteFailed: The disk does not take it.
        """
        folder(self.path)
        before = self.spends()
        self._refuse_forgotten(before, spends)
        if 0 < len(before) < len(spends):
            self._supersede(len(before))
        for name, content in documents(self._plan, spends).items():
            put(self.path / name, content)
        put(self.path / "plan.json", self._plan.canonical())
        for gauge in self._plan.gauges:
            folder(self._measurements(gauge.name))
            for view in self._views[gauge.name]:
                folder(self._releases(view))

    def resume(self, store: Store) -> int:
        """Publish committed blocks of which a file is missing; return how many.

        Afterwards the decoders stand at the last committed step.
        """
        spans = store.spans()
        missing = self._missing(spans)
        for gauge in self._plan.gauges:
            start = min(missing, default=store.step)
            self._restore(gauge.name, store.reading(gauge.name, start))
        for first, steps in spans:
            behind = [n for n, reading in self._readings.items() if reading.step <= first]
            blocks = {name: store.block(name, first) for name in behind}
            if first in missing:
                self.publish(first, steps, blocks)
            else:
                for name, block in blocks.items():
                    self._decode(name, block)
        return len(missing)

    def publish(self, first: int, steps: int, blocks: Mapping[str, Block]) -> None:
        """Publish one block of all gauges, as read back from the store."""
        for gauge in self._plan.gauges:
            block = blocks[gauge.name]
            decoded = self._decode(gauge.name, block)
            for view, values in zip(self._views[gauge.name], decoded, strict=True):
                if len(view.steps(first, steps)):
                    self._put_releases(view, first, values)
        for gauge in self._plan.gauges:
            self._put_measurement(gauge.name, blocks[gauge.name])

    def checkpoints(self) -> dict[str, State]:
        """Return the decoders' states that are worth storing with the next block.

        A state is worth it once four times its size was decoded, and at least 32 MB: what is
        stored is then at most a quarter more, and a resumed run has little to decode again.
        """
        due: dict[str, State] = {}
        for name, reading in self._readings.items():
            size = sum(array.nbytes for array in reading.state.values())
            if self._since[name] >= max(_CHECKPOINT_BYTES, _CHECKPOINT_SIZES * size):
                due[name] = {**reading.state, _VIEWS: self._views_sum(name)}
                self._since[name] = 0
        return due

    def _reading(self, name: str, state: State | None = None, step: int = 0) -> Reading:
        decays = [view.decay for view in self._views[name]]
        return Reading(self._plan.gauge(name).mechanism, decays, state=state, step=step)

    def _restore(self, name: str, stored: tuple[int, State] | None) -> None:
        """Take a stored state, if it serves these views; else decode from the beginning."""
        if stored is None:
            return
        step, state = stored
        views = state.pop(_VIEWS, None)
        if views is not None and np.array_equal(views, self._views_sum(name)):
            self._readings[name] = self._reading(name, state, step)

    def _views_sum(self, name: str) -> Int64:
        text = repr([view.decay for view in self._views[name]])
        return np.frombuffer(hashlib.sha256(text.encode()).digest(), "<i8").copy()

    def _decode(self, name: str, block: Block) -> Float64:
        self._since[name] += block.measured.nbytes
        return self._readings[name].decode(block.measured, block.steps)

    def _missing(self, spans: Sequence[tuple[int, int]]) -> set[int]:
        """The first steps of blocks of which a file is not there."""
        missing: set[int] = set()
        for gauge in self._plan.gauges:
            there = _names(self._measurements(gauge.name))
            missing |= {first for first, _ in spans if block_name(first) not in there}
            for view in self._views[gauge.name]:
                there = _names(self._releases(view))
                missing |= {
                    first
                    for first, steps in spans
                    if block_name(first) not in there and len(view.steps(first, steps))
                }
        return missing

    def _measurements(self, gauge: str) -> Path:
        return self.path / "measurements" / safe_name(gauge)

    def _releases(self, view: Published) -> Path:
        return self.path / "releases" / safe_name(view.gauge.name) / safe_name(view.name)

    def _put_releases(self, view: Published, first: int, values: Float64) -> None:
        table = view.table(first, values)
        if self._emit is not None:
            self._emit(table)
        mechanism = view.gauge.mechanism
        about = self._about | {"level": str(mechanism.level), "band": mechanism.band}
        put(self._releases(view) / block_name(first), _parquet(table, about), named=False)

    def _put_measurement(self, gauge: str, block: Block) -> None:
        import polars as pl

        strategy = self._plan.gauge(gauge).mechanism.strategy
        numbers = strategy.coordinates(block.first, block.steps)
        cells = block.measured.shape[1]
        table = pl.DataFrame(
            {
                "step": numbers // COORDINATES_PER_STEP + 1,
                "row": numbers % COORDINATES_PER_STEP,
                "measured": pl.Series(block.measured, dtype=pl.Array(pl.Int64, cells)),
            }
        )
        about = self._about | {
            "gauge": gauge,
            "first_step": str(block.first + 1),
            "steps": str(block.steps),
            "lattice_bits": str(strategy.lattice_bits),
            "sha256": measurement_sum(block.measured),
        }
        path = self._measurements(gauge) / block_name(block.first)
        put(path, _parquet(table, about), named=False)

    def _refuse_another_plan(self) -> None:
        """Refuse a folder that holds another plan's numbers."""
        path = self.path / "plan.json"
        if not path.exists():
            return
        other = Plan.from_bytes(path.read_bytes()).fingerprint
        if other != self._plan.fingerprint:
            raise StoreMismatch(
                f"Expected in {self.path} the plan with fingerprint {self._plan.fingerprint}, got "
                f"one with {other}. Readers would take one for the other. Publish into a folder "
                "of its own."
            )

    def _refuse_forgotten(self, charged: Sequence[Spend], spends: Sequence[Spend]) -> None:
        """Refuse a store that does not know of a release that the folder's ledger charges."""
        known = {spend.id for spend in spends}
        missing = [spend for spend in charged if spend.id not in known]
        if missing:
            raise StoreBehind(
                f"Expected the store that publishes into {self.path}, which is named "
                f"{charged[-1].store}, got one that does not know {len(missing)} of the "
                f"{len(charged)} releases in its ledger. They would be forgotten. Bring back that "
                "store, publish into another folder, or accept a second release "
                "(--accept-second-release): it is charged to the ledger in full, once more."
            )

    def _latest(self) -> int:
        """The first step, from 1, of the last block that is published; 0 if there is none."""
        return max(
            (
                int(name.removesuffix(".parquet"))
                for gauge in self._plan.gauges
                for name in _names(self._measurements(gauge.name))
                if _BLOCK.fullmatch(name)
            ),
            default=0,
        )

    def _supersede(self, before: int) -> None:
        """Put aside what earlier releases published: it stays as it was, under another name."""
        aside = folder(self.path / "superseded" / str(before))
        with writing(aside):
            for name in ("releases", "measurements", "ledger.json"):  # the ledger is the last
                if (self.path / name).exists():
                    os.replace(self.path / name, aside / name)


def _parquet(table: pl.DataFrame, about: dict[str, str]) -> bytes:
    """A table of one block as a file, made in memory: only whole files touch the disk."""
    buffer = BytesIO()
    table.write_parquet(buffer, compression="snappy", metadata=about)
    return buffer.getvalue()


def _names(path: Path) -> set[str]:
    return set(os.listdir(path)) if path.is_dir() else set()
