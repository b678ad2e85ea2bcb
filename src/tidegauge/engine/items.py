"""Items: the cells of a gauge whose values are not known in advance, numbered as they are seen.

An item is a row's values in the ``by`` columns, as text, known and discovered columns alike. What
is an item is the same in every kind of source:

* a null or an empty text is none, and the row counts nowhere in the gauge; neither is a value of
  more than 1,024 bytes in UTF-8;
* texts are compared byte for byte: composed and decomposed letters are two items, and so are
  ``" 1"`` and ``"1"``, or ``1.0`` and ``1``; the integer 1 and the text "1" are one;
* anything else is one, whatever characters are in it: commas, newlines, NUL.

Numbers are private. Those of earlier runs stay; new ones follow in the order of the rows, and are
put in an order of their own, by first step and bytes, before anything is measured.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tidegauge.planning.parts import UNKNOWN_CELLS

if TYPE_CHECKING:
    import polars as pl

__all__ = ["LONGEST", "Items", "ordered", "places"]

Int64 = NDArray[np.int64]
Bool = NDArray[np.bool_]

LONGEST = 1024
"""Bytes of a value, in UTF-8; a longer one is no item."""

_NUMBER = "number"


class Items:
    """Numbers the items of one gauge.

    Args:
        by: Each column and its known values; none where they are discovered.
        other: Name of the rest of the known values; None: it is left out.
        known: The items of earlier runs in the order of their numbers, as text, one column for
            each of ``by``; None: there are none.

    Attributes:
        counters: What was left out and why, for the operator alone.

    Examples:
        >>> import polars as pl
        >>> items = Items([("dest", ())], None)
        >>> items.numbers(pl.DataFrame({"dest": ["b", "a", None, "b", ""]})).tolist()
        [0, 1, -1, 0, -1]
        >>> items.table["dest"].to_list()
        ['b', 'a']
    """

    def __init__(
        self,
        by: Sequence[tuple[str, tuple[str, ...]]],
        other: str | None,
        known: pl.DataFrame | None = None,
    ) -> None:
        import polars as pl

        self.counters: Counter[str] = Counter()
        self._by, self._other = by, other
        self._keys = [str(place) for place in range(len(by))]  # no name of a column is in the way
        self._table = pl.DataFrame(schema=dict.fromkeys(self._keys, pl.String))
        if known is not None:
            self._table = known.rename(dict(zip(known.columns, self._keys, strict=True)))
        self._table = self._table.with_row_index(_NUMBER)

    @property
    def table(self) -> pl.DataFrame:
        """The items in the order of their numbers, under the names of the columns."""
        names = {key: column for key, (column, _) in zip(self._keys, self._by, strict=True)}
        return self._table.drop(_NUMBER).rename(names)

    def numbers(self, frame: pl.DataFrame) -> Int64:
        """Return the number of each row's item, shape (rows,); -1 where it has none."""
        import polars as pl

        there = np.ones(frame.height, np.bool_)
        texts = {}
        for key, (column, values) in zip(self._keys, self._by, strict=True):
            series = frame[column]
            texts[key], found = self._known(series, values) if values else self._found(series)
            there &= found
        rows = pl.DataFrame(texts).filter(pl.Series(there, dtype=pl.Boolean))
        numbers = np.full(frame.height, -1, np.int64)
        numbers[there] = self._numbered(rows)
        return numbers

    def ties(self, numbers: Int64) -> Int64:
        """Return a word of each item that depends on nothing but its text; 0 for none."""
        words = self._table.select(self._keys).hash_rows(seed=0).to_numpy().view(np.int64)
        return np.where(numbers >= 0, np.append(words, 0)[numbers], 0)

    def ranks(self) -> Int64:
        """Return the rank of each item so far by the bytes of its values, column by column."""
        ranks = np.empty(self._table.height, np.int64)
        ranks[ordered(self._table.select(self._keys))] = np.arange(self._table.height)
        return ranks

    def _known(self, column: pl.Series, values: tuple[str, ...]) -> tuple[pl.Series, Bool]:
        """The text of a column of known values, the rest under its own name."""
        import polars as pl

        codes = places(column, pl.Enum(values))
        here = codes < len(values)
        if self._other is not None:
            here[:] = True
        self.counters["other"] += int(len(here) - here.sum())
        names = pl.Series([*values, self._other or ""])
        return names.gather(pl.Series(codes)), here

    def _found(self, column: pl.Series) -> tuple[pl.Series, Bool]:
        """The text of a column of discovered values, and which rows have one."""
        import polars as pl

        if column.dtype.is_float():  # of sources that tell no types; others are refused
            column = pl.Series(column.name, [None] * len(column), dtype=pl.String)
        text = column if column.dtype == pl.String else column.cast(pl.String, strict=False)
        size = text.str.len_bytes().fill_null(0).to_numpy()
        self.counters["no_item"] += int((size == 0).sum())
        self.counters["long_item"] += int((size > LONGEST).sum())
        return text, (size > 0) & (size <= LONGEST)

    def _numbered(self, rows: pl.DataFrame) -> Int64:
        import polars as pl

        def numbers() -> pl.Series:
            found = rows.join(self._table, on=self._keys, how="left", maintain_order="left")
            return found[_NUMBER]

        known = numbers()
        if known.null_count():
            new = rows.filter(known.is_null()).unique(maintain_order=True)
            new = new.with_row_index(_NUMBER, offset=self._table.height)
            self._table = pl.concat([self._table, new])
            known = numbers()
        if self._table.height > UNKNOWN_CELLS:
            raise MemoryError("more items than numbers for them")
        return known.cast(pl.Int64).to_numpy()


def ordered(names: pl.DataFrame) -> Int64:
    """Return the order of names by their bytes, column by column."""
    import polars as pl

    if not names.height:
        return np.empty(0, np.int64)
    return names.select(pl.arg_sort_by(names.columns)).to_series().to_numpy().astype(np.int64)


def places(column: pl.Series, values: pl.Enum) -> Int64:
    """Return the position of each row's text among declared values; their number for the rest."""
    import polars as pl

    if column.dtype != pl.String:
        column = column.cast(pl.String, strict=False)
    codes = column.cast(values, strict=False).to_physical()
    return codes.fill_null(len(values.categories)).to_numpy().astype(np.int64)
