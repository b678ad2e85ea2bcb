"""Sums of predicates of the whole history, with a declared sensitivity."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any, final

import numpy as np

from tidegauge.checks import integer
from tidegauge.errors import InvalidInput, LiveState
from tidegauge.papers.bolot.history import History, frozen
from tidegauge.papers.bolot.predicate import events_of_cells, function_of, value_of
from tidegauge.papers.system import System, grains_of, plan_of
from tidegauge.privacy.guarantee import Guarantee
from tidegauge.strategies.decay import Decay, Running
from tidegauge.strategies.named import by_name
from tidegauge.strategies.strategy import Float64

__all__ = ["HolisticPredicateSum", "changed_values"]

_MOST_CHANGED = 1 << 20


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
        self._predicate = function_of(predicate)
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
        """Measure events, whatever the predicate takes, and release the decayed sum at each.

        Args:
            readings: A sequence with the event of each step; of several cells, with one for each.

        Returns:
            float64 of shape (steps,) or (steps, cells). Errors are those of :meth:`update`.
        """
        if len(self._events[0]) != self.step:
            raise LiveState(
                "Expected a system with its history, got one that was closed. Predicates of the "
                "history have nothing to go on from. Make another system, at its own cost."
            )
        steps = events_of_cells(readings, self.cells)
        fixed = [[frozen(event) for event in step] for step in steps]
        try:
            for step in fixed:
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

    Examples:
        Whether an event came before: replacing either of two changes the second value alone.

        >>> changed_values(lambda history: history[-1] in history[:-1], [["a", "a"]], ["a", "b"])
        1.0

    Cost: asks the predicate (events of a sample)^2 x events to replace by times, for each sample.
    """
    most = 0.0
    streams = [[frozen(event) for event in sample] for sample in samples]
    others = [frozen(event) for event in events]
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
    found = [value_of(predicate, History(events, n)) for n in range(first + 1, len(events) + 1)]
    return np.array(found, np.float64)
