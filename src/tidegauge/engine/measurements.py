"""Files of measurements: a block as its file has it, and the block of a file that was read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tidegauge.engine.blocks import Block
from tidegauge.engine.chosen import chosen_block, chosen_table, lattice_bits
from tidegauge.engine.found import FoundBlock, block_of_table
from tidegauge.errors import InvalidInput
from tidegauge.planning.plan import Plan, PlannedGauge

if TYPE_CHECKING:
    import polars as pl

__all__ = ["AnyBlock", "measurement_about", "measurement_table", "read_measurement"]

AnyBlock = Block | FoundBlock


def measurement_table(gauge: PlannedGauge, block: AnyBlock) -> pl.DataFrame:
    """Return a block as its file has it; of known cells one row a measured row."""
    import polars as pl

    if isinstance(block, FoundBlock):
        return block.table(gauge)
    if gauge.select is not None:
        return chosen_table(block)
    measured = pl.Series(block.measured, dtype=pl.Array(pl.Int64, block.measured.shape[1]))
    places = _places(gauge, block.first, block.steps)
    return pl.DataFrame({**places, "measured": measured})


def measurement_about(gauge: PlannedGauge, block: AnyBlock) -> dict[str, str]:
    """Return what the file's metadata say of the block, beside where it lies and its sum."""
    return {
        "gauge": gauge.name,
        "first_step": str(block.first + 1),
        "steps": str(block.steps),
        "lattice_bits": str(lattice_bits(gauge)),
    }


def read_measurement(path: Path, plan: Plan, gauge: PlannedGauge, first: int) -> AnyBlock:
    """Return the block of a file, checked against its metadata and the plan.

    Args:
        path: The file.
        plan: Under which it was published.
        gauge: Whose measurement it is.
        first: The first step of the block, from 0.

    Raises:
        ValueError: It is not as it was published, or cannot be read.
    """
    import polars as pl

    try:
        about = pl.read_parquet_metadata(path)
        table = pl.read_parquet(path)
        if gauge.discover is not None:
            block: AnyBlock = block_of_table(gauge, first, int(about["steps"]), table)
        elif gauge.select is not None:
            block = chosen_block(gauge, first, table)
        else:
            block = _known(gauge, first, table)
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise ValueError("a file that cannot be read") from error
    except (InvalidInput, KeyError) as error:
        raise ValueError("not a measurement of this gauge") from error
    expected = measurement_about(gauge, block) | {
        "fingerprint": plan.fingerprint,
        "sha256": block.sum,
    }
    if any(about.get(name) != value for name, value in expected.items()) or block.steps < 1:
        raise ValueError("metadata of another block")
    return block


def _known(gauge: PlannedGauge, first: int, table: pl.DataFrame) -> Block:
    """The block of a table of known cells."""
    import polars as pl

    row = pl.Array(pl.Int64, gauge.lanes)
    if table.schema != {"step": pl.Int64, "row": pl.Int64, "measured": row} or not len(table):
        raise ValueError("not a table of measured rows")
    # writable as what a meter measures: the kernels that decode it are compiled for one kind
    measured, last = table["measured"].to_numpy(writable=True), table["step"].max()
    # each step has a row of its own, so the rows themselves say how many steps they are of
    if measured.dtype != np.int64 or not isinstance(last, int) or last - first > len(table):
        raise ValueError("not a table of measured rows")
    block = Block(first, last - first, np.ascontiguousarray(measured))
    for name, places in _places(gauge, first, block.steps).items():
        if not np.array_equal(table[name].to_numpy(), places):
            raise ValueError("rows of other steps")
    return block


def _places(gauge: PlannedGauge, first: int, steps: int) -> dict[str, np.ndarray]:
    """The step of each measured row, from 1, and its place among those of the step."""
    strategy = gauge.mechanism.strategy
    numbers = strategy.coordinates(first, steps)
    each = strategy.coordinates_per_step
    return {"step": numbers // each + 1, "row": numbers % each}
