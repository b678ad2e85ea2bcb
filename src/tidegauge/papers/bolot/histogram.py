"""DecayedHistogram: a decayed sum for each of several known categories."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from tidegauge.errors import InvalidInput, InvalidParameter
from tidegauge.mechanisms.request import cells_of
from tidegauge.papers.system import System, grains_of, plan_of
from tidegauge.privacy.guarantee import Guarantee
from tidegauge.strategies.decay import Decay, Running
from tidegauge.strategies.named import by_name
from tidegauge.strategies.strategy import Float64, Int64

__all__ = ["DecayedHistogram"]


@final
class DecayedHistogram(System):
    """Releases a decayed sum for every category, at every step.

    Each step has one event: a category and a reading in [0, 1]. Categories without the event get a
    0, so that all of them decay alike and their steps tell nothing. Replacing an event may move two
    categories, and both are paid for: twice the noise of one decayed sum, not the same as the paper
    has it.

    Args:
        categories: Their names, known in advance and public.
        epsilon: Pure epsilon-DP for one event, replaced by any other; this or ``guarantee``.
        decay: What is released; default: the running sum.
        guarantee: Any other guarantee.
        other: The category for events of unknown ones; default: they are refused.
        neighboring_relation: ``"replace_one"``, or ``"add_or_remove_one"``: an event is there, or
            its step has nothing of it. Then one category moves.
        strategy: The name of a paper's strategy; default: the best there is.
        horizon: Steps to design for.

    Raises:
        InvalidParameter: A parameter is impossible.
        UnsupportedCombination: The strategy does not serve the decay.

    Examples:
        >>> with DecayedHistogram(["red", "green"], epsilon=1) as colours:
        ...     released = colours.update_many(["red", ("green", 0.5), None])
        >>> released.shape
        (3, 2)

    References:
        Bolot et al. 2013, section 6.3, Theorem 11, as corrected in ``docs/errata.md``.
    """

    def __init__(
        self,
        categories: Sequence[str],
        epsilon: float | Fraction | None = None,
        *,
        decay: Decay | None = None,
        guarantee: Guarantee | None = None,
        other: str | None = None,
        neighboring_relation: str = "replace_one",
        strategy: str | None = None,
        horizon: int | None = None,
    ) -> None:
        number, names, _ = cells_of(categories)
        if names is None:
            raise InvalidParameter(
                "Expected the names of the categories, got a number. Events are sorted by them. "
                "Give a list of text."
            )
        if other is not None and other not in names:
            raise InvalidParameter(
                "Expected other to be one of the categories, got another name. Unknown categories "
                "are counted there. Add it to the list."
            )
        self._places = {name: place for place, name in enumerate(names)}
        self._other = None if other is None else self._places[other]
        self._start(
            plan_of(
                Running() if decay is None else decay,
                epsilon=epsilon,
                guarantee=guarantee,
                cells=number,
                strategy=None if strategy is None else by_name(strategy),
                neighboring_relation=neighboring_relation,
                horizon=horizon,
            )
        )
        self._scalar = False  # one category is still an axis

    @property
    def categories(self) -> tuple[str, ...]:
        """Their names, in the order of the released values."""
        return tuple(self._places)

    @property
    def source(self) -> str:
        """Where it stands in the paper."""
        return "Bolot et al. 2013, section 6.3"

    def update(self, reading: Any) -> Float64:
        """Measure one event and release every category.

        Args:
            reading: A category, a pair of a category and a reading in [0, 1], or None for a step
                without an event.

        Returns:
            float64 of shape (categories,).

        Raises:
            InvalidInput: No such event; the system is as it was.
            StreamEnded: The last step is reached; the system is as it was.
            LiveState: Interrupted, forked, or in use by another thread.
        """
        value: Float64 = self._released(self._exact([reading], block=True))[0]
        return value

    def _exact(self, readings: ArrayLike, *, block: bool) -> Int64:
        if isinstance(readings, str | bytes) or not isinstance(readings, Iterable):
            raise InvalidInput(
                "Expected a sequence of events, got one that is none. Each step has one event. Use "
                "update for one step, update_many for a block."
            )
        events: list[Any] = list(readings)
        values = np.zeros((len(events), self.cells))
        for step, event in enumerate(events):
            if event is not None:
                place, reading = self._event(event)
                values[step, place] = reading
        return grains_of(values)

    def _event(self, event: Any) -> tuple[int, float]:
        pair = (event, 1.0) if isinstance(event, str) else event
        if isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str):
            place = self._places.get(pair[0], self._other)
            if place is not None and _is_reading(pair[1]):
                return place, float(pair[1])
        raise InvalidInput(
            "Expected a known category, or a pair of one and a reading in [0, 1], got another "
            "event. It belongs to no cell. Declare its category, or one for others."
        )


def _is_reading(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and bool(0 <= value <= 1)
