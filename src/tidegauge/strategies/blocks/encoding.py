"""From exact totals to exact rows: blocks that complete, then planned sums."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tidegauge.compiled import lazy_module
from tidegauge.strategies.blocks.levels import row_count, sizes
from tidegauge.strategies.strategy import Int64

if TYPE_CHECKING:
    from tidegauge.strategies.blocks import _kernels
else:
    _kernels = lazy_module("tidegauge.strategies.blocks._kernels")

__all__ = ["encode_rows"]


def encode_rows(
    open_sums: Int64,
    history: Int64,
    x: Int64,
    first: int,
    levels: tuple[int, ...],
    largest: int,
    units: Int64,
    spans: Int64,
) -> Int64:
    """Return the rows of a block of steps, and advance the sums.

    Args:
        open_sums: Totals of the open blocks, shape (levels, cells); changed in place.
        history: Ring of running sums as far back as the spans, shape (slots, cells); changed in
            place. No slots where there are no spans.
        x: Exact totals in grains, shape (steps, cells); clamped to ``[-largest, largest]``.
        first: Index of the first step, from 0.
        levels: Sizes of the blocks.
        largest: Largest total that is represented.
        units: What the totals of each level, and last the planned sums, are multiplied by.
        spans: Steps that each planned view sums up (0: everything), shape (views,).

    Returns:
        Shape (rows, cells), C-contiguous; the caller's.
    """
    rows = row_count(levels, len(spans), first, len(x))
    out = np.empty((rows, open_sums.shape[1]), np.int64)
    _kernels.encode(open_sums, history, x, first, sizes(levels), largest, units, spans, out)
    return out
