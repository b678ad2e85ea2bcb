"""What one row adds to one gauge: a cell of its step, and grains; from that row alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tidegauge.engine.distinct import Values
from tidegauge.engine.hashed import checked_key
from tidegauge.engine.items import Items, places
from tidegauge.errors import SourceUnavailable
from tidegauge.planning.parts import UNKNOWN_CELLS

if TYPE_CHECKING:
    import polars as pl

    from tidegauge.planning.plan import Plan, PlannedGauge

__all__ = ["Contributor", "check_types"]

Int64 = NDArray[np.int64]
Bool = NDArray[np.bool_]

_WIDEST = 1 << 40  # grains of one row: no bound of a gauge lies beyond


class Contributor:
    """Turns rows into (step, cell, grains) of one gauge.

    Args:
        gauge: What is counted.
        key: The store's secret, under which counted values are hashed; None: there are none.
        known: The items that were discovered before, in the order of their numbers, if any.
        sets: Whether an event is a set of rows: their amounts are clamped when they are added up.

    Attributes:
        cells: How many cells the gauge has, or may come to have.
        items: The cells that are discovered; None: all are known.
        counters: What was left out and why, for the operator alone.
    """

    def __init__(
        self,
        gauge: PlannedGauge,
        key: bytes | None = None,
        known: pl.DataFrame | None = None,
        *,
        sets: bool = False,
    ) -> None:
        self.name = gauge.name
        self._bounds = (-_WIDEST, _WIDEST) if sets else (gauge.low, gauge.high)
        self.cells, self.items = len(gauge.cells), None
        if gauge.discover is not None:
            self.cells = UNKNOWN_CELLS
            self.items = Items(gauge.by, gauge.other, known)
        self.counters: Counter[str] = Counter()
        self._gauge = gauge
        self._values = None
        if gauge.distinct is not None:
            self._values = Values(checked_key(key))
        self._where = None
        if gauge.where is not None:
            from tidegauge.planning.where import expression

            self._where = expression(gauge.where)
        import polars as pl

        self._by = [(column, pl.Enum(values)) for column, values in gauge.by]

    @property
    def ranks(self) -> Int64:
        """The rank of each cell by the bytes of its values, column by column; shape (cells,).

        Of discovered cells, those so far: more may come, and two never change places.
        """
        return self._ranks if self.items is None else self.items.ranks()

    @cached_property
    def _ranks(self) -> Int64:
        texts = [tuple(value.encode() for value in cell) for cell in self._gauge.cells]
        return np.argsort(sorted(range(self.cells), key=texts.__getitem__))

    def contributions(self, frame: pl.DataFrame, steps: Int64) -> tuple[Int64, Int64 | None]:
        """Return each row's place among steps x cells and its grains.

        Args:
            frame: The rows.
            steps: Each row's step, from step 0; shape (rows,).

        Returns:
            int64 of shape (rows,), -1 where the row adds nothing, and grains; None: 1 each. For a
            count of different values, hashes in place of grains.
        """
        keys = steps
        if self.items is not None:
            cells = self.items.numbers(frame)
            keys = np.where(cells >= 0, steps * self.cells + cells, -1)
        elif self._by:
            cells, known = self._cells(frame)
            keys = steps * self.cells + cells
            if known is not None:
                keys = np.where(known, keys, -1)
        amounts = None
        if self._gauge.kind in ("sum", "mean"):
            from tidegauge.engine.grains import grains

            gauge = self._gauge
            assert gauge.column is not None
            amounts, numbers = grains(frame[gauge.column], gauge.round_to, *self._bounds)
            self.counters[f"{self.name}: no_number"] += int(len(numbers) - numbers.sum())
            keys = np.where(numbers, keys, -1)
        if self._values is not None:
            assert self._gauge.column is not None
            amounts, known = self._values.hashes(frame[self._gauge.column])
            self.counters[f"{self.name}: no_value"] += int(len(known) - known.sum())
            keys = np.where(known, keys, -1)
        if self._where is not None:
            keys = np.where(_holds(frame, self._where), keys, -1)
        return keys, amounts

    def ties(self, keys: Int64) -> Int64:
        """Return what tells equally old rows of one id apart, shape (rows,): their cells.

        It depends on the row alone; numbers of items do not, so it is of their texts.
        """
        if self.items is None:
            return keys
        return self.items.ties(np.where(keys >= 0, keys % self.cells, -1))

    def counts(self) -> dict[str, int]:
        """Return what was left out and why, for the operator alone."""
        if self.items is None:
            return dict(self.counters)
        own = {f"{self.name}: {reason}": n for reason, n in self.items.counters.items()}
        return {**self.counters, **own}

    def _cells(self, frame: pl.DataFrame) -> tuple[Int64, Bool | None]:
        """Return each row's cell, and which rows have one (None: all)."""
        cells = np.zeros(frame.height, np.int64)
        known: Bool | None = None
        for column, values in self._by:
            codes = places(frame[column], values)
            rest = len(values.categories)
            if self._gauge.other is None:
                here = codes < rest
                self.counters[f"{self.name}: other"] += int(len(here) - here.sum())
                known = here if known is None else known & here
                cells = cells * rest + codes
            else:
                cells = cells * (rest + 1) + codes
        return cells, known


def _holds(frame: pl.DataFrame, predicate: pl.Expr) -> Bool:
    """Return where a predicate is TRUE; a row that it cannot judge is not, and stops no other."""
    import polars as pl

    try:
        held = frame.select(predicate.alias("held"))["held"]
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        if frame.height <= 1:
            return np.zeros(frame.height, np.bool_)
        half = frame.height // 2
        parts = (_holds(frame.head(half), predicate), _holds(frame.tail(-half), predicate))
        return np.concatenate(parts)
    result: Bool = held.fill_null(False).to_numpy()
    return result


def check_types(plan: Plan, parts: Sequence[tuple[str, dict[str, pl.DataType]]]) -> None:
    """Refuse a source whose own types cannot mean what the plan declares, before any row is read.

    Args:
        plan: Says which column is a time, a number, an id or a cell.
        parts: Name of each part of a source, and the types of its columns.

    Raises:
        SourceUnavailable: A column has a type that no row of it could be read from.
    """
    for part, types in parts:
        for column, kind in types.items():
            if kind.is_nested():
                raise _wrong(part, column, "single values", kind)
        if plan.time is not None:
            _check_time(part, plan.time.column, types[plan.time.column], plan)
        for gauge in plan.gauges:
            _check_gauge(part, gauge, types)
        if plan.unit is not None:
            _check_plain(part, plan.unit.column, types[plan.unit.column])
        if plan.event is not None:
            _check_plain(part, plan.event, types[plan.event])


def _check_gauge(part: str, gauge: PlannedGauge, types: dict[str, pl.DataType]) -> None:
    if gauge.column is not None and gauge.distinct is not None:
        _check_plain(part, gauge.column, types[gauge.column])
    elif gauge.column is not None:
        kind = types[gauge.column]
        if not (kind.is_numeric() or _is_text(kind)):
            raise _wrong(part, gauge.column, "numbers or text", kind)
    for column, _ in gauge.by:
        _check_plain(part, column, types[column])
    _check_where(part, gauge, types)


def _check_time(part: str, column: str, kind: Any, plan: Plan) -> None:
    import polars as pl

    assert plan.time is not None
    if isinstance(kind, pl.Datetime | pl.Date):
        zoned = isinstance(kind, pl.Datetime) and kind.time_zone is not None
        if not zoned and plan.time.timezone is None:
            raise SourceUnavailable(
                f"Expected the times in {column!r} of {part} to carry a zone, got local times. "
                'Their steps would be unknown. Declare "timezone:", for example UTC.'
            )
    elif not (_is_text(kind) or (kind.is_numeric() and plan.time.format != "iso")):
        raise _wrong(part, column, "times" if plan.time.format == "iso" else "numbers", kind)


def _check_plain(part: str, column: str, kind: Any) -> None:
    import polars as pl

    if kind.is_float() or kind == pl.Decimal:
        raise SourceUnavailable(
            f"Expected text, integers or truth values in {column!r} of {part}, got type "
            f"{kind.base_type()}. Ids and cells are compared as text, and 1.0 is not 1: an id "
            "would be two. Cast the column to integers or to text."
        )
    if not (_is_text(kind) or kind.is_integer() or kind == pl.Boolean):
        raise _wrong(part, column, "text, integers or truth values", kind)


def _check_where(part: str, gauge: PlannedGauge, types: dict[str, pl.DataType]) -> None:
    """Refuse columns whose types a predicate cannot judge: polars would raise at every row."""
    import polars as pl

    from tidegauge.planning.where import columns

    for column in () if gauge.where is None else columns(gauge.where):
        kind = types[column]
        plain = (pl.String, pl.Null, pl.Boolean, pl.Date, pl.Datetime, pl.Time)
        if not (kind in plain or kind.is_numeric()):
            raise _wrong(part, column, "text, numbers, truth values or times", kind)


def _is_text(kind: Any) -> bool:
    import polars as pl

    return kind in (pl.String, pl.Null, pl.Categorical, pl.Enum)


def _wrong(part: str, column: str, expected: str, kind: Any) -> SourceUnavailable:
    return SourceUnavailable(
        f"Expected {expected} in {column!r} of {part}, got type {kind.base_type()}. No row of it "
        "could be counted. Name another column, or convert it."
    )
