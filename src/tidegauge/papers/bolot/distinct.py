"""DistinctCount: how many different values there were, since the start or in a window."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from fractions import Fraction
from threading import Lock
from typing import Any, final

import numpy as np

from tidegauge.checks import integer, shown
from tidegauge.errors import (
    InvalidInput,
    InvalidParameter,
    LiveState,
    StreamEnded,
    UnsupportedCombination,
)
from tidegauge.mechanisms.design import design
from tidegauge.mechanisms.request import request_of
from tidegauge.mechanisms.totals import totals
from tidegauge.papers.system import System
from tidegauge.privacy.guarantee import Guarantee
from tidegauge.privacy.unit import LONGEST_WINDOW
from tidegauge.strategies.decay import Running, Window
from tidegauge.strategies.named import by_name
from tidegauge.strategies.strategy import Float64

__all__ = ["DistinctCount"]

_MOST_VALUES = 1 << 30
_MOST_EACH = 1 << 20
_WHY_WINDOW = "It is a number of whole steps. Leave it out for everything since the start."
_WHY_VALUES = "Noise is made for that many values of one event. Declare the most."


@final
class DistinctCount(System):
    r"""Releases how many different values occurred, since the start or in the last W steps.

    Since the start, as in the paper: the predicate "this value is new" is summed up. Removing or
    replacing one event changes it at two steps at most, in opposite ways. In a window, which the
    paper leaves open: the count itself is measured; removing one occurrence lowers it by one on a
    single interval of at most W steps, so that it costs what a window sum costs.

    A step has any number of events, each with one value or, if declared, with more. Values are
    texts or integers; 1 and "1" are one value, composed and decomposed letters are two.

    Args:
        epsilon: Pure epsilon-DP for one event; this or ``guarantee``.
        guarantee: Any other guarantee; ``GaussianDP`` and ``ZCDP`` take rounded Gaussian noise.
        window: W, in steps; None: since the start.
        values: Most values of one event, D_0; costs as much more.
        neighboring_relation: ``"replace_one"`` (the paper's: an event's values change) or
            ``"add_or_remove_one"``.
        horizon: Steps to design for.
        end: The last step.
        tree: ``"best"``, or ``"paper"``: the binary tree of the paper; not in a window.

    Raises:
        InvalidParameter: A number is out of range.
        UnsupportedCombination: The paper's tree in a window.

    Cost:
        Privacy: all of the guarantee, at once. Memory: one entry for each value, in a window for
        each that occurred in it, private. Time: O(values of the step).

    Examples:
        >>> with DistinctCount(epsilon=1, window=2, neighboring_relation="add_or_remove_one") as d:
        ...     released = d.update_many([["a", "b"], ["b"], [], []])
        >>> released.shape, round(d.noise_std(256), 2)
        ((4,), 2.8)
        >>> float(d.sensitivity)
        2.0

    References:
        Bolot et al. 2013, section 6, Theorem 10, as corrected in ``docs/errata.md``; the window:
        ``docs/proofs/distinct.md``.
    """

    def __init__(
        self,
        epsilon: float | Fraction | None = None,
        *,
        guarantee: Guarantee | None = None,
        window: int | None = None,
        values: int = 1,
        neighboring_relation: str = "replace_one",
        horizon: int | None = None,
        end: int | None = None,
        tree: str = "best",
    ) -> None:
        if tree not in ("best", "paper"):
            raise InvalidParameter(
                f'Expected tree to be "best" or "paper", got {shown(tree)}. It says what is '
                "measured. Leave it out for the least noise."
            )
        if window is not None:
            window = integer("window", window, low=1, high=LONGEST_WINDOW, why=_WHY_WINDOW)
        if window is not None and tree == "paper":
            raise UnsupportedCombination(
                "Expected no tree of the paper for a window, got DistinctCount with one. The paper "
                "leaves windows open. Leave tree out."
            )
        values = integer("values", values, low=1, high=_MOST_EACH, why=_WHY_VALUES)
        summed = window in (None, 1)
        request = request_of(
            views={"released": Running() if window is None else Window(window)},
            unit="event",
            epsilon=epsilon,
            guarantee=guarantee,
            horizon=horizon,
            end=end,
            neighboring_relation=neighboring_relation,
            max_change=values,
            max_per_step=None if summed else _MOST_VALUES,
            distinct="ever" if window is None else window,
            strategy=by_name("DistinctCount") if tree == "paper" else None,
        )
        self._each = values
        self._seen: _Ever | _Recent = _Ever() if window is None else _Recent(window)
        self._busy = Lock()
        self._start(design(request), unit=1)

    @property
    def source(self) -> str:
        """Where it stands in the paper."""
        return "Bolot et al. 2013, Theorem 10"

    def update(self, reading: Any) -> Float64:
        """Measure one step and release the count.

        Args:
            reading: The values of the step's events: texts or integers; a value may come twice.

        Returns:
            float64 of shape ().

        Raises:
            InvalidInput: Not values of this kind; the system is as it was.
            StreamEnded: The last step is reached; the system is as it was.
            LiveState: Interrupted, forked, or in use by another thread.
        """
        value: Float64 = self._counted([reading])[0]
        return value

    def update_many(self, readings: Any) -> Float64:
        """Measure a block of steps and release the count at each.

        Args:
            readings: A sequence with the values of each step.

        Returns:
            float64 of shape (steps,). Errors are those of :meth:`update`.
        """
        if isinstance(readings, str | bytes) or not isinstance(readings, Sequence | np.ndarray):
            raise InvalidInput(
                "Expected a sequence of steps, each with its values, got something else. Which "
                "values belong to one step is not known. Give a list of lists."
            )
        return self._counted(list(readings))

    def _counted(self, steps: list[Any]) -> Float64:
        block = [_values(step) for step in steps]
        if not self._busy.acquire(blocking=False):
            raise LiveState(
                "Expected a system between two blocks, got one in use by another thread. Counts "
                "of two threads would not see each other's values. Use one thread."
            )
        try:
            return self._measured(block)
        finally:
            self._busy.release()

    def _measured(self, block: list[frozenset[str]]) -> Float64:
        if self._seen.step != self._meter.step:
            raise LiveState(
                "Expected a system that remembers every measured step, got one that was "
                "interrupted inside a block. Its counts would miss values, and noise is made for "
                "right counts. Make another system, at its own cost."
            )
        last, plan = self._meter.step + len(block), self._plan
        if plan.last_step is not None and last > plan.last_step:
            raise StreamEnded(
                f"Expected steps up to {plan.last_step}, got {last}. The guarantee was computed "
                "for these steps only. Make a system with a later end."
            )
        counts = np.array(self._seen.counts(block), np.int64)
        released = self._released(totals(counts, plan, block=True)[0])
        self._seen.take(block)
        return released


class _Ever:
    """The values seen since the start, and in how many steps; ``step`` moves last."""

    def __init__(self) -> None:
        self.step = 0
        self._values: set[str] = set()

    def counts(self, block: Sequence[frozenset[str]]) -> list[int]:
        """How many values are new at each step; the state stays as it is."""
        new: set[str] = set()
        found = []
        for values in block:
            first = values - self._values - new
            new |= first
            found.append(len(first))
        return found

    def take(self, block: Sequence[frozenset[str]]) -> None:
        """Remember the values of a block."""
        self._values.update(*block)
        self.step += len(block)


class _Recent:
    """The values of the last W - 1 steps, each where it was seen last; ``step`` moves last."""

    def __init__(self, window: int) -> None:
        self._window, self.step = window, 0
        self._last: dict[str, int] = {}

    def counts(self, block: Sequence[frozenset[str]]) -> list[int]:
        """How many values are present at each step; the state stays as it is."""
        last = dict(self._last)
        present, gone = len(last), dict[int, int]()
        for seen in last.values():
            gone[seen + self._window] = gone.get(seen + self._window, 0) + 1
        found = []
        for step, values in enumerate(block, self.step):
            present -= gone.pop(step, 0)
            for value in values:
                left = last.get(value, step - self._window) + self._window
                if left > step:
                    gone[left] -= 1
                else:
                    present += 1
                last[value] = step
            gone[step + self._window] = gone.get(step + self._window, 0) + len(values)
            found.append(present)
        return found

    def take(self, block: Sequence[frozenset[str]]) -> None:
        """Remember the values of a block, and forget those that the next step does not see."""
        for step, values in enumerate(block, self.step):
            self._last.update(dict.fromkeys(values, step))
        end = self.step + len(block)
        edge = end - self._window
        self._last = {value: step for value, step in self._last.items() if step > edge}
        self.step = end


def _values(step: Any) -> frozenset[str]:
    """The values of one step as texts; no message shows one."""
    if isinstance(step, str | bytes) or not isinstance(step, Collection):
        raise InvalidInput(
            "Expected the values of a step in a list, got a single value or none. A text would be "
            'read letter by letter. Write ["a"], or [] for a step without events.'
        )
    found = set()
    for value in step:
        if isinstance(value, np.integer) or (
            isinstance(value, int) and not isinstance(value, bool)
        ):
            found.add(str(int(value)))
        elif isinstance(value, str):
            found.add(str(value))
        else:
            raise InvalidInput(
                f"Expected values that are texts or integers, got a {type(value).__name__}. Equal "
                "ones could not be told from different ones. Convert them, and leave nulls out."
            )
    return frozenset(found)
