"""What is published of a gauge whose cells are chosen: who is shown, and the counts of those."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tidegauge.engine.blocks import Block
from tidegauge.mechanisms.oneshot import LATTICE_BITS
from tidegauge.mechanisms.selector import Chosen
from tidegauge.planning.plan import PlannedGauge

if TYPE_CHECKING:
    import polars as pl

__all__ = ["chosen_block", "chosen_table", "lattice_bits"]


def lattice_bits(gauge: PlannedGauge) -> int:
    """Return of how fine a lattice the published numbers of a gauge are: 2^-bits."""
    return gauge.mechanism.strategy.lattice_bits if gauge.select is None else LATTICE_BITS


def chosen_table(block: Block) -> pl.DataFrame:
    """Return a block as its file has it: one row a step.

    ``switches``: how many were made so far. ``cells``: the numbers of the cells that are shown,
    from 0 in the order of the plan. ``measured``: their noisy running counts.
    """
    import polars as pl

    chosen = Chosen.unpacked(block.measured)
    shape = pl.Array(pl.Int64, chosen.cells.shape[1])
    return pl.DataFrame(
        {
            "step": np.arange(block.first + 1, block.first + block.steps + 1),
            "switches": chosen.used,
            "cells": pl.Series(np.ascontiguousarray(chosen.cells), dtype=shape),
            "measured": pl.Series(np.ascontiguousarray(chosen.measured), dtype=shape),
        }
    )


def chosen_block(gauge: PlannedGauge, first: int, table: pl.DataFrame) -> Block:
    """Return the block of such a file.

    Args:
        gauge: Whose cells are chosen.
        first: The first step, from 0.
        table: As it was read.

    Raises:
        ValueError: It is not one that was written here.
    """
    import polars as pl

    assert gauge.select is not None
    shape = pl.Array(pl.Int64, gauge.select.k)
    kinds = {"step": pl.Int64, "switches": pl.Int64, "cells": shape, "measured": shape}
    if table.schema != kinds or not len(table) or any(map(pl.Series.null_count, table)):
        raise ValueError("not a table of chosen cells")
    used, cells = table["switches"].to_numpy(), table["cells"].to_numpy()
    steps = np.arange(first + 1, first + len(table) + 1)
    inside = cells.min() >= 0 and cells.max() < len(gauge.cells) and (np.diff(cells) > 0).all()
    falls = used[0] < 0 or used[-1] > gauge.select.switches or (np.diff(used) < 0).any()
    if not np.array_equal(table["step"].to_numpy(), steps) or not inside or falls:
        raise ValueError("not a table of chosen cells")
    return Block(first, len(table), Chosen(used, cells, table["measured"].to_numpy()).packed)
