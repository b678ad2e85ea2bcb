"""States as bytes: exact, small, and nothing in them that could run.

::

    "TGS1" | number of arrays (4 bytes) | headers | the arrays, each from a multiple of 8 on
    header = length of name (2) | name | kind ("i8", "u8", "f8", "b1") | axes (1) | 8 bytes an axis

Numbers are little-endian, arrays C-contiguous. The packed form of equal states is equal.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping

import numpy as np

from tidegauge.errors import StoreBehind
from tidegauge.strategies.strategy import State

__all__ = ["pack", "unpack"]

_MAGIC = b"TGS1"
_KINDS = {
    "i8": np.dtype("<i8"), "u8": np.dtype("<u8"), "f8": np.dtype("<f8"), "b1": np.dtype("?"),
}  # fmt: skip
_NAMES = {dtype: kind for kind, dtype in _KINDS.items()}


def pack(states: Mapping[str, State]) -> bytes:
    """Return named states, each a dict of arrays, as bytes.

    Args:
        states: int64, uint64, float64 or bool arrays of any shape; names without "/".

    Examples:
        >>> unpack(pack({"encoder": {"sums": np.arange(3)}}))
        {'encoder': {'sums': array([0, 1, 2])}}
    """
    arrays = [
        (f"{outer}/{inner}".encode(), array)
        for outer, state in sorted(states.items())
        for inner, array in sorted(state.items() or [("", np.empty(0, bool))])  # keeps the name
    ]
    headers = [_MAGIC, struct.pack("<I", len(arrays))]
    for name, array in arrays:
        headers += [struct.pack("<H", len(name)), name, _NAMES[array.dtype].encode()]
        headers += [struct.pack(f"<B{array.ndim}Q", array.ndim, *array.shape)]
    parts = [_padded(b"".join(headers))]
    parts += [_padded(array.tobytes()) for _, array in arrays]
    return b"".join(parts)


def unpack(data: bytes) -> dict[str, State]:
    """Return what was packed; its arrays are writable and the caller's own.

    Raises:
        StoreBehind: The bytes are damaged.
    """
    try:
        return _unpacked(data)
    except (struct.error, ValueError, KeyError, UnicodeDecodeError):
        raise StoreBehind(
            "Expected a stored state, got bytes that are none. The store is damaged. Bring back "
            "an undamaged copy that is not older than what was published."
        ) from None


def _unpacked(data: bytes) -> dict[str, State]:
    if data[:4] != _MAGIC:
        raise ValueError
    (count,) = struct.unpack_from("<I", data, 4)
    at = 8
    headers: list[tuple[str, np.dtype[np.generic], tuple[int, ...]]] = []
    for _ in range(count):
        (length,) = struct.unpack_from("<H", data, at)
        name = data[at + 2 : at + 2 + length].decode()
        at += 2 + length
        dtype = _KINDS[data[at : at + 2].decode()]
        (axes,) = struct.unpack_from("<B", data, at + 2)
        shape = struct.unpack_from(f"<{axes}Q", data, at + 3)
        at += 3 + 8 * axes
        headers.append((name, dtype, shape))
    states: dict[str, State] = {}
    at += -at % 8
    for name, dtype, shape in headers:
        outer, inner = name.split("/", 1)
        items = math.prod(shape)
        flat = np.frombuffer(data, dtype, items, at)
        state = states.setdefault(outer, {})
        if inner:
            state[inner] = flat.reshape(shape).copy()
        at += items * dtype.itemsize
        at += -at % 8
    if at != len(data):
        raise ValueError
    return states


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 8)
