"""Sums of predicates: of one event, or of the whole history with a declared sensitivity."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from fractions import Fraction
from types import BuiltinFunctionType, FunctionType, MappingProxyType
from typing import Any, final, overload

import numpy as np
from numpy.typing import ArrayLike

from tidegauge.checks import integer, shown
from tidegauge.errors import InvalidInput, InvalidParameter, LiveState
from tidegauge.papers.system import System, grains_of, plan_of
from tidegauge.privacy.guarantee import Guarantee
from tidegauge.strategies.decay import Decay, Running
from tidegauge.strategies.named import by_name
from tidegauge.strategies.strategy import Float64, Int64

__all__ = ["History", "HolisticPredicateSum", "PredicateSum", "changed_values"]

_MOST_CHANGED = 1 << 20
_REALS = (bool, int, float, Fraction, np.bool_, np.integer, np.floating)


@final
class PredicateSum(System):
    """Releases a decayed sum of a predicate of each event.

    A predicate sees one event and nothing else, so that one event moves one value: the cost is that
    of the decayed sum (Theorem 8). With several cells each has events of its own, one a step, and
    the predicate is applied in every cell.

    Args:
        predicate: A function from an event to a real in [0, 1], or True and False.
            ``tidegauge.planning.where.condition`` makes one of an expression.
        epsilon: Pure epsilon-DP for one event, replaced by any other; this or ``guarantee``.
        decay: What is released; default: the running sum.
        guarantee: Any other guarantee.
        strategy: The name of a paper's strategy; default: the best there is.
        horizon: Steps to design for.
        cells: Streams of events side by side.

    Raises:
        InvalidParameter: A parameter is impossible, or ``predicate`` cannot be called.
        UnsupportedCombination: The strategy does not serve the decay.

    Examples:
        >>> with PredicateSum(lambda delay: delay > 15, epsilon=1) as late:
        ...     released = late.update_many([3, 40, 17])
        >>> released.shape
        (3,)

    References:
        Bolot et al. 2013, section 6.1, Theorem 8.
    """

    def __init__(
        self,
        predicate: Callable[[Any], Any],
        epsilon: float | Fraction | None = None,
        *,
        decay: Decay | None = None,
        guarantee: Guarantee | None = None,
        strategy: str | None = None,
        horizon: int | None = None,
        cells: int = 1,
    ) -> None:
        self._predicate = _callable(predicate)
        self._start(
            plan_of(
                Running() if decay is None else decay,
                epsilon=epsilon,
                guarantee=guarantee,
                cells=cells,
                strategy=None if strategy is None else by_name(strategy),
                horizon=horizon,
            )
        )

    @property
    def source(self) -> str:
        """Where it stands in the paper."""
        return "Bolot et al. 2013, section 6.1"

    def update(self, reading: Any) -> Float64:
        """Measure one event, whatever the predicate takes, and release the decayed sum.

        Of several cells: a sequence with the event of each.

        Raises:
            InvalidInput: The predicate raised, or gave no real in [0, 1]; the system is as it was.
            StreamEnded: The last step is reached; the system is as it was.
            LiveState: Interrupted, forked, or in use by another thread.
        """
        value: Float64 = self._released(self._exact([reading], block=True))[0]
        return value

    def _exact(self, readings: ArrayLike, *, block: bool) -> Int64:
        events = _events_of_cells(readings, self.cells)
        values = [_value(self._predicate, event) for step in events for event in step]
        return grains_of(np.array(values, np.float64).reshape(-1, self.cells))


class History(Sequence[Any]):
    """The events up to now, oldest first: read-only, so that a predicate cannot change the past."""

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


@final
class HolisticPredicateSum(System):
    """Releases a decayed sum of a predicate of the whole history, with a declared sensitivity.

    A predicate is k-sensitive if replacing one event changes its value at no more than k steps.
    Nobody can check that on private data: it is declared, and the noise is k times as large.
    :func:`changed_values` finds a wrong k on samples, in tests. With several cells each has events
    and a history of its own: an event changes the values of its cell alone.

    Args:
        predicate: A function from a :class:`History` (the event of the step is its last) to a real
            in [0, 1]. It must depend on the history alone, and keep nothing of it.
        k: Its sensitivity.
        epsilon: Pure epsilon-DP for one event, replaced by any other; this or ``guarantee``.
        decay: What is released; default: the running sum.
        guarantee: Any other guarantee.
        strategy: The name of a paper's strategy; default: the best there is.
        horizon: Steps to design for.
        cells: Streams of events side by side.

    Raises:
        InvalidParameter: A parameter is impossible.
        UnsupportedCombination: The strategy does not serve the decay.

    Cost:
        Privacy: all of the guarantee, at once; noise is k times that of an individual predicate
        under discrete Laplace noise. Memory: the whole history, until the system is closed.

    Examples:
        A first occurrence: replacing an event changes itself and one later step.

        >>> def first(history):
        ...     return history[-1] not in history[:-1]
        >>> with HolisticPredicateSum(first, k=2, epsilon=1) as distinct:
        ...     released = distinct.update_many(["a", "b", "a"])
        >>> changed_values(first, [["a", "b", "a"]], ["a", "b", "c"])
        2.0

    References:
        Bolot et al. 2013, section 6.2, Theorem 9.
    """

    def __init__(
        self,
        predicate: Callable[[History], Any],
        k: int,
        epsilon: float | Fraction | None = None,
        *,
        decay: Decay | None = None,
        guarantee: Guarantee | None = None,
        strategy: str | None = None,
        horizon: int | None = None,
        cells: int = 1,
    ) -> None:
        self._predicate = _callable(predicate)
        why = "One event changes the predicate at so many steps at most. Declare at least 1."
        k = integer("k", k, low=1, high=_MOST_CHANGED, why=why)
        self._start(
            plan_of(
                Running() if decay is None else decay,
                epsilon=epsilon,
                guarantee=guarantee,
                cells=cells,
                strategy=None if strategy is None else by_name(strategy),
                horizon=horizon,
                changed_steps=k,
                either_sign=cells != 1,  # one cell: "replace_one"
            )
        )
        self._events: list[list[Any]] = [[] for _ in range(self.cells)]

    @property
    def source(self) -> str:
        """Where it stands in the paper."""
        return "Bolot et al. 2013, section 6.2"

    def update(self, reading: Any) -> Float64:
        """Measure one event and release the decayed sum; see :meth:`PredicateSum.update`.

        Raises:
            InvalidInput: The predicate raised or gave no real in [0, 1], or the event can be
                changed later and is no mapping, list, set or array, as an object of an ordinary
                class can; the system is as it was.
        """
        value: Float64 = self.update_many([reading])[0]
        return value

    def update_many(self, readings: Any) -> Float64:
        """Measure events, whatever the predicate takes, and release the decayed sum at each."""
        if len(self._events[0]) != self.step:
            raise LiveState(
                "Expected a system with its history, got one that was closed. Predicates of the "
                "history have nothing to go on from. Make another system, at its own cost."
            )
        steps = _events_of_cells(readings, self.cells)
        frozen = [[_frozen(event) for event in step] for step in steps]
        try:
            for step in frozen:
                for events, event in zip(self._events, step, strict=True):
                    events.append(event)
            first, predicate = self.step, self._predicate
            values = [_values(predicate, events, first) for events in self._events]
            return self._released(grains_of(np.ascontiguousarray(np.transpose(values))))
        finally:
            for events in self._events:  # what was not measured is no part of the past
                del events[self.step :]

    def close(self) -> None:
        """Erase the key and the history."""
        super().close()
        for events in self._events:
            events.clear()


def changed_values(
    predicate: Callable[[History], Any],
    samples: Iterable[Sequence[Any]],
    events: Iterable[Any],
) -> float:
    """Return the most that replacing one event changes a predicate's values, over all steps.

    Every event of every sample is replaced by each of ``events``. For a test: where the result is
    above the k that was declared, the declaration is wrong. It says nothing of what was not tried.

    Args:
        predicate: Of a history.
        samples: Streams made for the test, never private data.
        events: What an event may be replaced by; an iterator is read once.

    Returns:
        The largest number of steps whose value changes, or the largest sum of absolute changes, if
        that is more.

    Raises:
        InvalidInput: The predicate raises, gives no real in [0, 1], or gives another value when it
            is asked again; or there is no event to replace, or none to replace it by.
    """
    most = 0.0
    streams = [[_frozen(event) for event in sample] for sample in samples]
    others = [_frozen(event) for event in events]
    if not others or not any(streams):
        raise InvalidInput(
            f"Expected samples with events and events to replace them by, got {len(streams)} "
            f"samples with {sum(map(len, streams))} events, and {len(others)} to replace them by. "
            "Nothing would be tried, and every k would pass. Give some of each."
        )
    for stream in streams:
        values = _values(predicate, stream, 0)
        if not np.array_equal(values, _values(predicate, stream, 0)):
            raise InvalidInput(
                "Expected a predicate that depends on the history alone, got one that gave two "
                "values for one history. No sensitivity holds for it. Keep nothing between calls."
            )
        for place, other in itertools.product(range(len(stream)), others):
            changed = [*stream[:place], other, *stream[place + 1 :]]
            moved = np.abs(_values(predicate, changed, 0) - values)
            most = max(most, float((moved > 0).sum()), float(moved.sum()))
    return most


def _values(predicate: Callable[[History], Any], events: Sequence[Any], first: int) -> Float64:
    """The predicate after each event from index ``first`` on."""
    found = [_value(predicate, History(events, n)) for n in range(first + 1, len(events) + 1)]
    return np.array(found, np.float64)


def _callable(predicate: Any) -> Callable[[Any], Any]:
    if not callable(predicate):
        raise InvalidParameter(
            f"Expected predicate to be a function, got {shown(predicate)}. It gives each event its "
            "value in [0, 1]. Write a function, or condition(text) for an expression."
        )
    found: Callable[[Any], Any] = predicate
    return found


def _events(readings: Any) -> list[Any]:
    if isinstance(readings, str | bytes | Mapping) or not isinstance(readings, Iterable):
        raise InvalidInput(
            "Expected a sequence of events, got one that is none. Each step has one event. Use "
            "update for one step, update_many for a block."
        )
    return list(readings)


def _events_of_cells(readings: Any, cells: int) -> list[list[Any]]:
    """The events of each step, one for every cell; of one cell they come without an axis."""
    steps = _events(readings)
    if cells == 1:
        return [[event] for event in steps]
    found = [_events(step) for step in steps]
    if any(len(step) != cells for step in found):
        raise InvalidInput(
            f"Expected {cells} events at every step, one for each cell, got another number. They "
            "would be counted in the wrong cells. Give None, or what counts 0, where there is none."
        )
    return found


def _value(predicate: Callable[[Any], Any], event: Any) -> float:
    """A predicate's value, checked; nothing of the event is shown."""
    try:
        value = predicate(event)
        number = float(value) if isinstance(value, _REALS) else math.nan
    except Exception:  # what it says may show the event: not passed on
        raise InvalidInput(
            "Expected a predicate with a value for every event, got one that raised. The step "
            "would be left out, and that would show. Return 0 for what does not count."
        ) from None
    if not 0 <= number <= 1:  # false of NaN as well
        raise InvalidInput(
            "Expected a predicate with values in [0, 1], got another, or one that is no number. "
            "Noise is made for a change of at most 1. Scale it, or clamp it."
        )
    return number


def _frozen(event: Any) -> Any:
    """An event that nobody can change any more."""
    match event:
        case np.ndarray():
            if type(event) is np.ndarray and not event.dtype.hasobject:  # no mask, no matrix
                return np.ndarray(event.shape, event.dtype, event.tobytes())  # never writable
        case Mapping():
            return MappingProxyType({key: _frozen(value) for key, value in event.items()})
        case list():
            return tuple(_frozen(value) for value in event)
        case tuple():
            parts = tuple(_frozen(value) for value in event)
            if all(new is old for new, old in zip(parts, event, strict=True)):
                return event  # as it is: it may have names
            return parts
        case set() | frozenset():
            return frozenset(_frozen(value) for value in event)
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
    frozen: bool = getattr(type(event), "__dataclass_params__").frozen  # noqa: B009  # typed nowhere
    parts = (getattr(event, field.name) for field in fields(event))
    return frozen and all(_frozen(part) is part for part in parts)
