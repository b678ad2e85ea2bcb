"""The meter: the private half of a gauge. It alone holds a key and the encoder's state."""

from __future__ import annotations

from typing import final

import numpy as np
from numpy.typing import ArrayLike

from tidegauge.mechanisms.measure import measure, private_state
from tidegauge.mechanisms.plan import GaugePlan
from tidegauge.mechanisms.totals import totals
from tidegauge.mechanisms.turn import Turn, no_copies, refuse_beyond_end
from tidegauge.noise.randomness import Words, open_words
from tidegauge.strategies.rescaled import serves_rescaled
from tidegauge.strategies.strategy import Int64, State

__all__ = ["Meter", "warm_up"]

_LANES = 1 << 17  # coordinates that are drawn anew together
_WARM_UP_CELLS = 4096  # enough lanes for a draw to be rejected and drawn again


def warm_up(plan: GaugePlan) -> None:
    """Compile what a block needs, on zeros under a throw-away key.

    The first use after an installation takes seconds: an interruption there must not find a meter
    inside a block.
    """
    state = private_state(plan.strategy, _WARM_UP_CELLS)
    zeros = np.zeros((1, _WARM_UP_CELLS), np.int64)
    measured = measure(plan.strategy, state, plan.law, open_words("tidegauge warm-up"), zeros, 0)
    decays = [decay for _, decay in plan.views]
    reading = plan.strategy.init_decoder(decays, _WARM_UP_CELLS)
    out = np.empty((len(decays), 1, _WARM_UP_CELLS))
    plan.strategy.decode(reading, decays, measured, 0, out)


@final
class Meter:
    """Measures a stream of exact totals, each step once, under a fresh key.

    Guarantee:
        No coordinate is drawn twice and no draw is used for two: a meter cannot be copied, pickled
        or used in a fork; one lock, taken for a block and given back at its end, keeps out a
        second thread and everything after an interruption.

    Args:
        plan: What to measure, and with which noise.
        state: The private state at ``step``; None: before the first step. It is taken over, not
            copied, and changed in place.
        step: How many steps the state has seen.

    Raises:
        LiveState: In use: copied, forked, interrupted, or by two threads at once.

    Examples:
        >>> from tidegauge.mechanisms.design import design
        >>> from tidegauge.mechanisms.request import request_of
        >>> from tidegauge.strategies.decay import Running
        >>> meter = Meter(design(request_of(views=[Running()], unit="event", epsilon=1, cells=2)))
        >>> meter.measure([[3, 4], [5, 6]]).shape[1], meter.step
        (2, 2)
    """

    def __init__(
        self, plan: GaugePlan, *, state: dict[str, State] | None = None, step: int = 0
    ) -> None:
        warm_up(plan)
        law, bits = plan.law, plan.strategy.lattice_bits
        words = open_words("tidegauge measurement 1", plan.fingerprint, law.scale, bits)
        self._start(plan, words, state, step)

    def _start(
        self, plan: GaugePlan, words: Words, state: dict[str, State] | None, step: int
    ) -> None:
        self._plan, self._words, self._step = plan, words, step
        self._state = (
            private_state(plan.strategy, plan.neighbors.known_cells) if state is None else state
        )
        self._turn = Turn("meter", "start again from what was stored")
        self._clamped = 0

    @property
    def state(self) -> dict[str, State]:
        """Private: what has to be kept between steps. Changed in place by ``measure``."""
        return self._state

    @property
    def step(self) -> int:
        """How many steps have been measured."""
        return self._step

    @property
    def clamped(self) -> int:
        """How many totals were clamped: for the operator, never for readers."""
        return self._clamped

    def measure(self, exact: ArrayLike, once: Int64 | None = None) -> Int64:
        """Measure a block of totals of shape (steps, cells); return the public rows.

        Args:
            exact: Totals; they are clamped to ``max_per_step``.
            once: What the first step has beyond its totals, once in a stream: clamped to what the
                strategy has room for beside any totals; shape (cells,).

        Raises:
            InvalidInput: Not whole numbers of this shape; nothing was measured.
            StreamEnded: The block reaches beyond the last step; nothing was measured.
            LiveState: See the class.
        """
        plan = self._plan
        checked, clamped = totals(exact, plan, block=True)
        if once is not None:
            assert serves_rescaled(plan.strategy), "others have no room for it"
            most = plan.strategy.largest_once(plan.max_per_step)
            clamped += int((np.abs(once) > most).sum())
            once = np.clip(once, -most, most)
        rows = self.advance(checked, once)
        self._clamped += clamped
        return rows

    def advance(self, checked: Int64, once: Int64 | None = None) -> Int64:
        """Measure a block that :func:`~.totals.totals` has checked; see :meth:`measure`."""
        plan = self._plan
        with self._turn:
            end = self._step + len(checked)
            refuse_beyond_end(plan.last_step, end)
            if once is None:
                rows = self._noisy(checked, self._step)
            else:
                head = self._noisy(checked[:1], self._step, once)
                rows = np.concatenate([head, self._noisy(checked[1:], self._step + 1)])
            self._step = end
        return rows

    def _noisy(self, checked: Int64, first: int, once: Int64 | None = None) -> Int64:
        plan = self._plan
        given = plan.strategy, self._state, plan.law, self._words, checked, first
        return measure(*given) if once is None else measure(*given, once=once)

    def begin_again(self) -> None:
        """Draw noise that is drawn ahead of its steps anew: a further release begins here.

        The blocks that are open have noise that another release may show under other totals. All
        of it is replaced by that of a stream of its own, under this meter's key.
        """
        plan, cells = self._plan, self._plan.neighbors.known_cells
        if "noise" not in self._state:
            return
        state, length = private_state(plan.strategy, cells), max(1, _LANES // cells)
        for low in range(0, self._step, length):
            nothing = np.zeros((min(length, self._step - low), cells), np.int64)
            measure(plan.strategy, state, plan.law, self._words, nothing, low)
        self._state["noise"] = state["noise"]

    def close(self) -> None:
        """Erase the key; the meter measures nothing more."""
        self._words.close()

    __copy__ = __deepcopy__ = __reduce__ = __reduce_ex__ = __getstate__ = no_copies("meter")

    def __repr__(self) -> str:
        return f"Meter(step={self._step}, words={self._words!r})"
