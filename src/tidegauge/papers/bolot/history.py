"""What a predicate of the whole history is given: the events up to now, which nobody can change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from types import BuiltinFunctionType, FunctionType, MappingProxyType
from typing import Any, overload

import numpy as np

from tidegauge.errors import InvalidInput

__all__ = ["History", "frozen"]


class History(Sequence[Any]):
    """The events up to now, oldest first: read-only, so that a predicate cannot change the past.

    Args:
        events: Of one cell; those that come later are not seen.
        length: How many of them there are up to now.

    Examples:
        >>> history = History(["a", "b", "c"], 2)
        >>> len(history), history[-1], history[:-1]
        (2, 'b', ('a',))

    Cost: O(1) memory; a slice is as large as what it is of.
    """

    def __init__(self, events: Sequence[Any], length: int) -> None:
        self._events, self._length = events, length

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Any, ...]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return tuple(self._events[i] for i in range(*index.indices(self._length)))
        if not -self._length <= index < self._length:
            raise IndexError("history index out of range")
        return self._events[index % self._length]

    def __repr__(self) -> str:
        return f"History(of {self._length} events)"


def frozen(event: Any) -> Any:
    """Return an event that nobody can change any more.

    Raises:
        InvalidInput: It can be changed later, and has no form that cannot.

    Examples:
        >>> frozen(["bread", {"milk"}])
        ('bread', frozenset({'milk'}))
    """
    match event:
        case np.ndarray():
            if type(event) is np.ndarray and not event.dtype.hasobject:  # no mask, no matrix
                return np.ndarray(event.shape, event.dtype, event.tobytes())  # never writable
        case Mapping():
            return MappingProxyType({key: frozen(value) for key, value in event.items()})
        case list():
            return tuple(frozen(value) for value in event)
        case tuple():
            parts = tuple(frozen(value) for value in event)
            if all(new is old for new, old in zip(parts, event, strict=True)):
                return event  # as it is: it may have names
            return parts
        case set() | frozenset():
            return frozenset(frozen(value) for value in event)
        case _ if _unchanging(event):
            return event
    raise InvalidInput(
        "Expected events that do not change, got one that can be changed later. The past would "
        "change with it. Use tuples, mappings, arrays of numbers or texts, or frozen dataclasses."
    )


def _unchanging(event: Any) -> bool:
    """Whether an event is equal by value, which none that changes can be, or has no value."""
    if event is None or isinstance(event, Enum | FunctionType | BuiltinFunctionType | type):
        return True
    hashed: Any = type(event).__hash__
    if hashed is object.__hash__:
        return False
    try:
        hash(event)
    except Exception:  # a part that can change, or a foreign error that may show the event
        return False
    if not is_dataclass(event):
        return True
    fixed: bool = getattr(type(event), "__dataclass_params__").frozen  # noqa: B009  # typed nowhere
    parts = (getattr(event, field.name) for field in fields(event))
    return fixed and all(frozen(part) is part for part in parts)
