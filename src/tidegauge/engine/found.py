"""Measured steps of a gauge that discovers its cells: the visible cells alone, in public order.

A block has a row of steps for each visible cell, in the order of its names' bytes, and for a cell
that became visible in it all steps before the block as well. Numbers of items, the order in which
they came and everything of hidden ones stay behind: none of it is in a block.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import NDArray

from tidegauge.engine.items import ordered
from tidegauge.engine.packing import pack, unpack
from tidegauge.errors import InvalidInput, StoreBehind
from tidegauge.mechanisms.growing import GrowingReading
from tidegauge.strategies.decay import Decay
from tidegauge.strategies.strategy import Float64, Int64

if TYPE_CHECKING:
    import polars as pl

    from tidegauge.mechanisms.finder import Found
    from tidegauge.planning.plan import PlannedGauge

__all__ = ["FoundBlock", "FoundReading", "Shown", "block_of", "block_of_table"]

Bool = NDArray[np.bool_]

_PART = "found"


@final
@dataclass(frozen=True, eq=False)
class Shown:
    """The visible cells, in the order of their names' bytes, column by column.

    Attributes:
        names: Their values as text, a column for each ``by`` column, shape (cells, columns).
        visible_from: The step from which each is published, from 0; int64 of shape (cells,).
    """

    names: pl.DataFrame
    visible_from: Int64

    @property
    def cells(self) -> tuple[tuple[str, ...], ...]:
        """The names, a tuple a cell."""
        return tuple(self.names.rows())


@final
@dataclass(frozen=True, eq=False)
class FoundBlock:
    """Measured steps of one gauge whose cells are discovered, as they were committed: public.

    Attributes:
        first: The first step, from 0.
        steps: How many.
        shown: The cells that are visible at its end.
        new: Which of them became visible in it, bool of shape (cells,).
        measured: int64 of shape (steps, cells), in lattice units.
        past: The same of the new cells at all steps before, int64 of shape (first, new cells).
    """

    first: int
    steps: int
    shown: Shown
    new: Bool
    measured: Int64
    past: Int64

    @cached_property
    def packed(self) -> bytes:
        """The block as bytes; those of equal blocks are equal."""
        names = self.shown.names
        texts = [value.encode() for column in names.iter_columns() for value in column.to_list()]
        text = b"".join(texts)
        state = {
            "sizes": np.array(list(map(len, texts)), np.int64).reshape(names.width, names.height),
            "text": np.frombuffer(text + bytes(-len(text) % 8), "<u8"),
            "visible_from": np.ascontiguousarray(self.shown.visible_from, "<i8"),
            "new": np.ascontiguousarray(self.new),
            "measured": np.ascontiguousarray(self.measured, "<i8"),
            "past": np.ascontiguousarray(self.past, "<i8"),
        }
        return pack({_PART: state})

    @cached_property
    def sum(self) -> str:
        """SHA-256 of the block."""
        return hashlib.sha256(self.packed).hexdigest()

    @classmethod
    def unpacked(cls, first: int, steps: int, data: bytes) -> FoundBlock:
        """Return the block of its bytes.

        Raises:
            StoreBehind: They are damaged.
        """
        import polars as pl

        state = unpack(data)[_PART]
        sizes, text = state["sizes"], state["text"].tobytes()
        ends = np.concatenate([[0], np.cumsum(sizes)]).tolist()
        texts = [text[low:high].decode() for low, high in pairwise(ends)]
        width, height = sizes.shape
        names = {
            str(i): pl.Series(texts[i * height : (i + 1) * height], dtype=pl.String)
            for i in range(width)
        }
        shown = Shown(pl.DataFrame(names), state["visible_from"])
        return cls(first, steps, shown, state["new"], state["measured"], state["past"])

    def table(self, gauge: PlannedGauge) -> pl.DataFrame:
        """Return the block as it is published: a row a cell, its past with it where it is new."""
        import polars as pl

        lengths = self.steps + self.first * self.new
        flat = np.empty(int(lengths.sum()), np.int64)
        ends = np.cumsum(lengths)
        starts = ends - lengths
        for number, at in enumerate(starts[self.new].tolist()):
            flat[at : at + self.first] = self.past[:, number]
        for number, end in enumerate(ends.tolist()):
            flat[end - self.steps : end] = self.measured[:, number]
        names = [
            column.alias(name)
            for column, (name, _) in zip(self.shown.names.iter_columns(), gauge.by, strict=True)
        ]
        return pl.DataFrame(
            [
                *names,
                pl.Series("first_step", np.where(self.new, 1, self.first + 1), dtype=pl.Int64),
                pl.Series("visible_from", self.shown.visible_from + 1, dtype=pl.Int64),
                _lists(flat, lengths).alias("measured"),
            ]
        )


def _lists(flat: Int64, lengths: Int64) -> pl.Series:
    """A column of lists: the first has the first so many numbers, and so on."""
    import polars as pl

    cells = pl.DataFrame({"cell": np.repeat(np.arange(len(lengths)), lengths), "v": flat})
    grouped = cells.group_by("cell", maintain_order=True).agg("v")["v"]
    return grouped.cast(pl.List(pl.Int64))


def block_of(first: int, steps: int, names: pl.DataFrame, found: Found) -> FoundBlock:
    """Return the public block of what was found: visible cells alone, by their names' bytes.

    Args:
        first: The first step, from 0.
        steps: How many.
        names: All items in the order of their numbers.
        found: What the finder measured.
    """
    import polars as pl

    named = pl.DataFrame(
        {str(i): column for i, column in enumerate(names[found.numbers].iter_columns())}
    )
    order = ordered(named)
    new = found.new[order]
    column = np.cumsum(found.new) - 1  # of the past, for each new cell
    return FoundBlock(
        first,
        steps,
        Shown(named[order], found.visible_from[order]),
        new,
        np.ascontiguousarray(found.measured[:, order]),
        np.ascontiguousarray(found.past[:, column[order][new]]),
    )


def block_of_table(gauge: PlannedGauge, first: int, steps: int, table: pl.DataFrame) -> FoundBlock:
    """Return the block that a published table is of; nonsense in it makes another block.

    Raises:
        InvalidInput: Its shape is another.
    """
    import polars as pl

    names = {name: pl.String for name, _ in gauge.by}
    kinds = {"first_step": pl.Int64, "visible_from": pl.Int64, "measured": pl.List(pl.Int64)}
    if table.schema != {**names, **kinds}:
        raise InvalidInput("Expected a measurement of discovered cells, got another table.")
    if table.null_count().sum_horizontal().sum():
        raise InvalidInput("Expected a value in every field, got nulls.")
    new = table["visible_from"].to_numpy() > first
    lengths = table["measured"].list.len().to_numpy().astype(np.int64)
    if not np.array_equal(lengths, steps + first * new):
        raise InvalidInput("Expected a number for each step, got more or fewer.")
    flat, ends = table["measured"].explode().to_numpy(), np.cumsum(lengths)
    past, measured = (
        np.empty((first, int(new.sum())), np.int64),
        np.empty((steps, len(new)), np.int64),
    )
    for number, end in enumerate(ends[new].tolist()):
        past[:, number] = flat[end - steps - first : end - steps]
    for number, end in enumerate(ends.tolist()):
        measured[:, number] = flat[end - steps : end]
    texts = {str(i): table[name] for i, (name, _) in enumerate(gauge.by)}
    shown = Shown(pl.DataFrame(texts), table["visible_from"].to_numpy() - 1)
    return FoundBlock(first, steps, shown, new, measured, past)


@final
class FoundReading:
    """Decodes found blocks, one after the other, while their cells grow in number.

    Args:
        gauge: Whose.
        views: The decays to decode.
    """

    def __init__(self, gauge: PlannedGauge, views: Sequence[Decay]) -> None:
        self._reading = GrowingReading(gauge.mechanism, views)
        self._names: pl.DataFrame | None = None  # in the order in which they became visible
        self._order = np.empty(0, np.int64)  # puts them into the order of their bytes

    @property
    def step(self) -> int:
        """How many steps have been decoded."""
        return self._reading.step

    def decode(self, block: FoundBlock) -> Float64:
        """Return every view of a block, float64 of shape (views, steps, cells), as in its names.

        Raises:
            StoreBehind: Cells are missing that were visible before.
        """
        names = block.shown.names
        old, new = names.filter(~block.new), names.filter(block.new)
        before = names.clear() if self._names is None else self._names
        if not old.equals(before[self._order]):
            raise StoreBehind(
                "Expected every cell that was visible before, got a block without one. The store "
                "is damaged. Bring back an undamaged copy that is not older than what was "
                "published."
            )
        self._names = before.vstack(new)
        self._order = ordered(self._names)
        if new.height:
            self._reading.grow(block.past)
        place = np.argsort(self._order)
        measured = np.ascontiguousarray(block.measured[:, place])
        decoded: Float64 = self._reading.decode(measured, block.steps)[:, :, self._order]
        return decoded
