"""Sums of a predicate of one event, and how a predicate is asked: nothing of an event is shown."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from tidegauge.checks import shown
from tidegauge.errors import InvalidInput, InvalidParameter
from tidegauge.papers.system import System, grains_of, plan_of
from tidegauge.privacy.guarantee import Guarantee
from tidegauge.strategies.decay import Decay, Running
from tidegauge.strategies.named import by_name
from tidegauge.strategies.strategy import Float64, Int64

__all__ = ["PredicateSum", "events_of_cells", "function_of", "value_of"]

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
        self._predicate = function_of(predicate)
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
        events = events_of_cells(readings, self.cells)
        values = [value_of(self._predicate, event) for step in events for event in step]
        return grains_of(np.array(values, np.float64).reshape(-1, self.cells))


def function_of(predicate: Any) -> Callable[[Any], Any]:
    """Return what was given as a predicate, if it is a function."""
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


def events_of_cells(readings: Any, cells: int) -> list[list[Any]]:
    """Return the events of each step, one for every cell; of one cell they come without an axis."""
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


def value_of(predicate: Callable[[Any], Any], event: Any) -> float:
    """Return a predicate's value, checked; nothing of the event is shown."""
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
