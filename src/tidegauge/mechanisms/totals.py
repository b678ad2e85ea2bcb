"""Exact totals as they enter a gauge: integers of the right shape, clamped to a declared range."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tidegauge.errors import InvalidInput
from tidegauge.mechanisms.plan import GaugePlan
from tidegauge.strategies.strategy import Int64

__all__ = ["range_of", "totals", "wrong_sign"]

_FEW = 24


def totals(values: ArrayLike, plan: GaugePlan, *, block: bool) -> tuple[Int64, int]:
    """Return exact totals, shape (steps, cells), and how many of them were clamped.

    Integers of any width and floats that are whole numbers are accepted. Clamping a completed
    total to the declared range is 1-Lipschitz, so no sensitivity grows, and it never stops the
    stream. No message shows a value of the data.

    Args:
        values: Shape (steps, cells) of a block, (cells,) of a step; without cells if scalar.
        plan: Declares the cells, the sign of contributions and the range of a total.
        block: Whether ``values`` has an axis of steps.

    Returns:
        A contiguous int64 array that the caller must not change: it may be ``values`` itself.

    Raises:
        InvalidInput: Wrong shape or kind, not whole numbers, or negative where none can be.
    """
    if isinstance(values, bytes | bytearray):
        raise InvalidInput(
            "Expected an array of totals, got bytes. Each byte would be read as a count. "
            "Convert them to numbers first."
        )
    array = array_of(values, "totals")
    array = _shaped(array, plan, block=block)
    kind = array.dtype.kind
    if kind == "f":
        _check_whole(array, plan)
    elif kind not in "iu":
        raise InvalidInput(
            f"Expected totals of an integer dtype, got dtype {array.dtype}. Noise is calibrated "
            "for whole numbers of grains. Convert the totals to int64."
        )
    if not array.size:
        return np.zeros(array.shape, np.int64), 0
    neighbors, most = plan.neighbors, plan.max_per_step
    least, largest = _extremes(array)
    low, high = range_of(plan)
    if (low == 0 and least < 0) or (high == 0 and largest > 0):
        raise wrong_sign(plan)
    if least >= low and largest <= high:
        return np.ascontiguousarray(array, dtype=np.int64), 0
    if neighbors.lasting:
        raise InvalidInput(
            f"Expected at most {most} different values, got more. Their counts cannot be cut off "
            "as sums can: an event would move them otherwise. Count fewer, or in several gauges."
        )
    return _clamped(array, low, high)


def array_of(given: ArrayLike, what: str) -> NDArray[Any]:
    """Return what a user gave as an array.

    Args:
        given: Numbers, in whatever holds them.
        what: What they are, as messages call them.

    Raises:
        InvalidInput: They are no rectangular array, or under a mask; no value is shown.
    """
    try:
        array = np.asarray(given)
    except Exception:  # whatever a foreign object raises may show its data: not passed on
        raise InvalidInput(
            f"Expected a rectangular array of {what}, got what cannot be made one. Which number "
            "belongs where is not known. Give as many of each step, 0 where nothing happened."
        ) from None
    if isinstance(given, np.ma.MaskedArray):
        raise InvalidInput(
            "Expected an array without a mask, got a masked one. Values under the mask would be "
            "counted. Fill them first, with 0 where nothing happened."
        )
    return array


def range_of(plan: GaugePlan) -> tuple[int, int]:
    """Return the least and the largest total that is not clamped, in grains."""
    neighbors, most = plan.neighbors, plan.max_per_step
    return -most if neighbors.low < 0 else 0, most if neighbors.high > 0 else 0


def wrong_sign(plan: GaugePlan) -> InvalidInput:
    """Return what to raise for a total of a sign that was not declared."""
    side, sign = (">= 0", "negative") if plan.neighbors.low == 0 else ("<= 0", "positive")
    return InvalidInput(
        f"Expected totals {side}, got a {sign} one. max_change says that no contribution is "
        f"{sign}. Declare max_change=(low, high) for signed sums."
    )


def _extremes(array: NDArray[Any]) -> tuple[Any, Any]:
    """The least and the largest; of a few numbers by Python, in half of NumPy's time."""
    if array.size <= _FEW:
        values = array.ravel().tolist()
        return min(values), max(values)
    return array.min(), array.max()


def _clamped(array: NDArray[Any], low: int, high: int) -> tuple[Int64, int]:
    """Cut totals off at the ends of the range; an unsigned dtype may not hold a negative end."""
    over = int((array > high).sum() + (array < low).sum())
    if array.dtype.kind == "u":
        return np.minimum(array, np.array(high, np.uint64)).astype(np.int64), over
    return np.clip(array, low, high).astype(np.int64), over


def _shaped(array: NDArray[Any], plan: GaugePlan, *, block: bool) -> NDArray[Any]:
    cells = plan.neighbors.known_cells
    wanted: tuple[int | str, ...] = () if plan.scalar else (cells,)
    if array.ndim == len(wanted) + block and (plan.scalar or array.shape[-1] == cells):
        return array if array.ndim == 2 else array.reshape(-1, cells)
    shape = (("steps",) if block else ()) + wanted
    named = ", ".join(map(str, shape)) + "," * (len(shape) == 1)
    raise InvalidInput(
        f"Expected totals of shape ({named}), got shape {array.shape}. "
        "Every step has one total for every cell. Use update for one step, update_many for a block."
    )


def _check_whole(array: NDArray[Any], plan: GaugePlan) -> None:
    if 2 ** (np.finfo(array.dtype).nmant + 1) < plan.max_per_step:
        raise InvalidInput(
            f"Expected a dtype that counts by ones up to max_per_step={plan.max_per_step}, got "
            f"{array.dtype}. One event could move a total by more than it adds. Use int64."
        )
    if not np.isfinite(array).all():
        raise InvalidInput(
            "Expected finite totals, got NaN or infinity. A total counts or sums what happened in "
            "a step. Drop such events before counting; an empty step has total 0."
        )
    if (array != np.rint(array)).any():
        raise InvalidInput(
            "Expected whole numbers of grains, got fractions. Sensitivity is proved for integers. "
            "Round each contribution to a declared grain, then add them up exactly."
        )
