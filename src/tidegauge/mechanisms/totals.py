"""Exact totals as they enter a gauge: integers of the right shape, clamped to a declared range."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tidegauge.errors import InvalidInput
from tidegauge.mechanisms.plan import GaugePlan
from tidegauge.strategies.strategy import Int64

__all__ = ["clamp", "totals"]

_LARGEST_FLOAT = 2.0**63


def totals(values: ArrayLike, plan: GaugePlan, *, block: bool) -> NDArray[Any]:
    """Return the totals as an array (steps, cells) of whole numbers, or refuse all of them.

    Integers of any width and floats that are whole numbers are accepted. No message shows a
    value of the data.

    Raises:
        InvalidInput: Wrong shape or kind, not whole numbers, or negative where none can be.
    """
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InvalidInput(
            "Expected a rectangular array of totals, got rows of different lengths. "
            "A step has one total for every cell. Fill the missing ones with 0."
        ) from error
    array = _shaped(array, plan, block=block)
    if array.dtype.kind == "f":
        _check_whole(array)
    elif array.dtype.kind not in "iu":
        raise InvalidInput(
            f"Expected totals of an integer dtype, got dtype {array.dtype}. Noise is calibrated "
            "for whole numbers of grains. Convert the totals to int64."
        )
    if plan.neighbors.low == 0 and array.size and array.dtype.kind != "u" and array.min() < 0:
        raise InvalidInput(
            f"Expected totals >= 0, got a negative one. max_change={plan.neighbors.high} says that "
            "no contribution is negative. Declare max_change=(low, high) for signed sums."
        )
    return array


def _shaped(array: NDArray[Any], plan: GaugePlan, *, block: bool) -> NDArray[Any]:
    cells = plan.neighbors.cells
    wanted: tuple[int | str, ...] = () if plan.scalar else (cells,)
    if array.ndim == len(wanted) + block and (plan.scalar or array.shape[-1] == cells):
        return array.reshape(-1 if block else 1, cells) if plan.scalar or not block else array
    shape = (("steps",) if block else ()) + wanted
    raise InvalidInput(
        f"Expected totals of shape ({', '.join(map(str, shape))}), got shape {array.shape}. "
        "Every step has one total for every cell. Use update for one step, update_many for a block."
    )


def _check_whole(array: NDArray[Any]) -> None:
    if not np.isfinite(array).all():
        raise InvalidInput(
            "Expected finite totals, got NaN or infinity. A total counts or sums what happened in "
            "a step. Drop such events before counting; an empty step has total 0."
        )
    if (np.abs(array) >= _LARGEST_FLOAT).any() or (array != np.rint(array)).any():
        raise InvalidInput(
            "Expected whole numbers of grains, got fractions. Sensitivity is proved for integers. "
            "Round each contribution to a declared grain, then add them up exactly."
        )


def clamp(block: NDArray[Any], plan: GaugePlan) -> tuple[Int64, int]:
    """Return the block as contiguous int64 inside the declared range, and how many were outside.

    Clamping a completed total is 1-Lipschitz, so no sensitivity grows; it never stops the stream.
    """
    high = plan.max_per_step if plan.neighbors.high > 0 else 0
    low = -plan.max_per_step if plan.neighbors.low < 0 else 0
    inside = block.max(initial=0) <= high and (
        block.dtype.kind == "u" or block.min(initial=0) >= low
    )
    if inside:
        return np.ascontiguousarray(block, dtype=np.int64), 0
    over = int((block > high).sum())
    if block.dtype.kind == "u":  # an unsigned dtype may not hold a negative bound
        return np.minimum(block, np.array(high, np.uint64)).astype(np.int64), over
    over += int((block < low).sum())
    return np.clip(block.astype(np.int64), low, high), over
