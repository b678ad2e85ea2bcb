r"""The largest cells of each step, in their order, and which of them could as well be in another.

Post-processing of published numbers: of noisy values alone, so it costs nothing. Neither rank nor
mark says more than the intervals do, and those speak of the noise alone.

At each step cells are ordered by their noisy values; equal ones by the bytes of their names. The
intervals beside ranked cells cover *all* cells of the step at once with probability ``level``, the
cells that are not shown included: to be among the largest, noise helps, so that an interval made
for one cell that was chosen beforehand would be too narrow.

Where cells are discovered, those that are named at a step are ranked, and nobody knows how many
there are. Each item has noise of its own from the first step on, whether or not it is named or
ever occurs; so the intervals cover as many items at once as are expected, a public number, hidden
ones included. That a name is shown because its noise was large is covered, too. With more items
than expected what may be missed grows in proportion.

``close`` at rank r says that its interval overlaps that of rank r + 1, shown or not. Where it is
false there is a cut: with probability ``level``, at all such places of a step at once, every cell
up to rank r truly has more than every cell behind it, of those that are named at that step. (All
intervals of a step are equally wide, so they overlap with none further down if not with the next.)
Between two cuts nothing is said of the order. When all totals are 0, the order is that of the
noise, and everything is close, but for that probability.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

__all__ = ["ranked"]


def ranked(table: pl.DataFrame, by: Sequence[str], top: int) -> pl.DataFrame:
    """Return the first rows of each step by value, with their rank and whether the next is close.

    Args:
        table: One row for each step and visible cell, step by step, with the columns of releases;
            all intervals of a step are equally wide.
        by: The columns whose values name a cell.
        top: How many of each step are kept; fewer if there are fewer.
    """
    import polars as pl

    order = [pl.col("step"), pl.col("value") + 0.0, *(pl.col(name).cast(pl.String) for name in by)]
    table = table.sort(order, descending=[False, True, *(False for _ in by)])
    rank = pl.int_range(1, pl.len() + 1).over("step").alias("rank")
    close = (pl.col("lower") <= pl.col("upper").shift(-1)).over("step").fill_null(False)
    table = table.with_columns(rank, close.alias("close")).filter(pl.col("rank") <= top)
    names = [name for name in table.columns if name not in ("rank", "close")]
    at, after = names.index("value"), names.index("upper") + 1
    return table.select(*names[:at], "rank", *names[at:after], "close", *names[after:])
