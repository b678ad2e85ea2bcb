"""The selector: the private half of a gauge that shows k of its cells at a time.

Theory of operation. All cells are measured and decoded like those of any gauge, and nothing of it
leaves but the running counts of the cells that are shown. Which those are follows from the exact
counts, by picks and tests with noise of their own: the noise of a hidden cell has entered nothing
that anybody saw. A cell that returns has the noise that it would have had, for it was measured all
the time. What is kept between blocks is the measurement's state, the exact counts, the cells that
are shown, how many switches were made, and the noisy threshold of the run of tests that is on: it
is stored with the block, and never drawn a second time for one run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn, final

import numpy as np

from tidegauge.errors import InvalidParameter, LiveState
from tidegauge.mechanisms.meter import Meter
from tidegauge.mechanisms.oneshot import LATTICE_BITS, AboveThreshold, NoisyOrder
from tidegauge.mechanisms.plan import GaugePlan
from tidegauge.mechanisms.reading import Reading
from tidegauge.mechanisms.totals import totals
from tidegauge.strategies.decay import Running
from tidegauge.strategies.strategy import Float64, Int64, State

__all__ = ["Chosen", "ChosenReading", "Selector"]

_LARGEST = 1 << 40  # a count is cut off there, so that picks and values stay within int64
_NO_THRESHOLD = np.iinfo(np.int64).min


@final
@dataclass(frozen=True, eq=False)
class Chosen:
    """What a block makes public.

    Attributes:
        used: How many switches were made so far, at each step; shape (steps,).
        cells: The numbers of the cells that are shown, increasing; shape (steps, k).
        measured: Their noisy running counts on the lattice 2^-20; shape (steps, k).
    """

    used: Int64
    cells: Int64
    measured: Int64

    @property
    def packed(self) -> Int64:
        """All of it as one array, shape (steps, 1 + 2 k): as it is stored."""
        return np.concatenate([self.used[:, np.newaxis], self.cells, self.measured], axis=1)

    @staticmethod
    def unpacked(rows: Int64) -> Chosen:
        """Return what was packed."""
        k = rows.shape[1] // 2
        return Chosen(rows[:, 0], rows[:, 1 : 1 + k], rows[:, 1 + k :])

    def dense(self, cells: int) -> Float64:
        """Return the counts in grains as a table of all cells; NaN where one is hidden."""
        table = np.full((len(self.used), cells), np.nan)
        np.put_along_axis(table, self.cells, self.measured / (1 << LATTICE_BITS), axis=1)
        return table

    def __repr__(self) -> str:
        return f"Chosen({len(self.used)} steps, {self.cells.shape[1]} cells)"


@final
class Selector:
    """Measures a stream of exact totals, and tells the counts of the cells that are shown.

    Guarantee:
        Everything in ``Chosen`` costs the plan's ``cost`` and its selection's, together, also when
        later totals were chosen after reading earlier results. Proof: ``docs/proofs/sparse.md``.

    Args:
        plan: A plan with a selection.
        state: The private state at ``step``; None: before the first step. It is taken over.
        step: How many steps the state has seen.

    Raises:
        InvalidParameter: The plan selects nothing.
        LiveState: In use: copied, forked, interrupted, or by two threads at once.

    Cost: about 30 ns a cell and step; each choice 0.2 microseconds a cell. Memory: what a meter and
    a reading of all cells take, and 16 bytes a cell and step of a block.
    """

    def __init__(
        self,
        plan: GaugePlan,
        *,
        state: dict[str, State] | None = None,
        step: int = 0,
    ) -> None:
        if plan.selection is None:
            raise InvalidParameter(
                "Expected a plan that selects cells, got one that shows all. There is nothing to "
                "choose. Use a Meter."
            )
        self._plan, self._selection, self._step = plan, plan.selection, step
        parts = dict(state or {})
        reading, choice = parts.pop("reading", None), parts.pop("choice", None)
        self._meter = Meter(plan, state=parts or None, step=step)
        self._reading = Reading(plan, [Running()], state=reading, step=step)
        cells, k = plan.neighbors.known_cells, self._selection.k
        self._counts = np.zeros(cells, np.int64) if choice is None else choice["counts"]
        self._shown = np.arange(k) if choice is None else choice["shown"]
        self._used = 0 if choice is None else int(choice["used"][0])
        threshold = _NO_THRESHOLD if choice is None else int(choice["threshold"][0])
        self._order = NoisyOrder(self._selection.scale)
        self._tests = AboveThreshold(
            self._selection.epsilon,
            self._selection.lead_change(plan.neighbors),
            monotone=False,
            threshold=None if threshold == _NO_THRESHOLD else threshold,
        )
        self._clamped = 0
        self._broken = False  # true within a block, and for ever after one that was interrupted

    @property
    def step(self) -> int:
        """How many steps have been measured."""
        return self._step

    @property
    def clamped(self) -> int:
        """How many totals were clamped: for the operator, never for readers."""
        return self._clamped

    @property
    def state(self) -> dict[str, State]:
        """Private: what has to be kept between blocks."""
        threshold = self._tests.threshold
        choice = {
            "counts": self._counts,
            "shown": self._shown,
            "used": np.array([self._used]),
            "threshold": np.array([_NO_THRESHOLD if threshold is None else threshold]),
        }
        return {**self._meter.state, "reading": self._reading.state, "choice": choice}

    def measure(self, exact: Int64) -> Chosen:
        """Measure a block of totals of shape (steps, cells); return what is shown.

        Raises:
            InvalidInput: Not whole numbers of this shape; nothing was measured.
            StreamEnded: The block reaches beyond the last step; nothing was measured.
            LiveState: See the class.
        """
        checked, clamped = totals(exact, self._plan, block=True)
        if self._broken:
            raise LiveState(
                "Expected a selector between two blocks, got one inside a block: it was "
                "interrupted. Its noise may be ahead of its releases. Start again from what was "
                "stored."
            )
        rows = self._meter.advance(checked)
        self._broken = True
        self._clamped += clamped
        values = self._reading.decode(rows, len(checked))[0]  # private but for cells that are shown
        counts = np.minimum(self._counts + np.cumsum(checked, axis=0), _LARGEST)
        used, cells = self._choices(counts)
        if len(counts):
            self._counts = counts[-1].copy()
        self._step += len(counts)
        self._broken = False
        noisy = np.rint(np.take_along_axis(values, cells, axis=1) * (1 << LATTICE_BITS))
        return Chosen(used, cells, noisy.astype(np.int64))

    def begin_again(self) -> None:
        """Begin the run of tests that is on anew: no threshold may serve two releases.

        Where steps are released again that were released before, all is charged again.
        """
        self._meter.begin_again()
        if self._tests.threshold is not None:
            self._tests.restart(self._selection.margin)

    def close(self) -> None:
        """Erase all keys; nothing more is measured."""
        for one in (self._meter, self._order, self._tests):
            one.close()
        self._counts[:] = 0

    def _choices(self, counts: Int64) -> tuple[Int64, Int64]:
        """How many switches were made at each step, and which cells are shown."""
        steps, at = len(counts), 0
        used, cells = np.empty(steps, np.int64), np.empty((steps, self._selection.k), np.int64)
        if self._step == 0 and steps:
            self._choose(counts[0])
            used[0], cells[0], at = self._used, self._shown, 1
        while at < steps:  # one turn a switch
            passed = None
            if self._used < self._selection.switches:
                passed = self._tests.first(self._leads(counts[at:]))
            end = steps if passed is None else at + passed
            used[at:end], cells[at:end] = self._used, self._shown
            if passed is not None:
                self._used += 1
                self._choose(counts[end])
                used[end], cells[end] = self._used, self._shown
            at = end + 1
        return used, cells

    def _choose(self, counts: Int64) -> None:
        """Choose the cells anew, and begin a run of tests if another switch is paid for."""
        order = self._order.of(counts << LATTICE_BITS)
        self._shown = np.sort(order[: self._selection.k])
        if self._used < self._selection.switches:
            self._tests.restart(self._selection.margin)

    def _leads(self, counts: Int64) -> Int64:
        """By how much the best cell that is hidden leads the least that is shown, at each step."""
        hidden = np.ones(counts.shape[1], bool)
        hidden[self._shown] = False
        leads: Int64 = counts[:, hidden].max(axis=1) - counts[:, self._shown].min(axis=1)
        return leads

    def _refuse_copy(self, *_: object) -> NoReturn:
        raise LiveState(
            "Expected one live selector, got an attempt to copy or pickle it. Two copies would "
            "draw the same noise for different data. Copy what it chose, or make another one."
        )

    __copy__ = __deepcopy__ = __reduce__ = __reduce_ex__ = __getstate__ = _refuse_copy

    def __repr__(self) -> str:
        return f"Selector(step={self._step})"


@final
class ChosenReading:
    """The public half: a table of all cells, with the counts of those that are shown.

    Args:
        plan: A plan with a selection.
        step: How many steps were read before.
    """

    def __init__(self, plan: GaugePlan, *, step: int = 0) -> None:
        self._cells, self._step = plan.neighbors.known_cells, step

    @property
    def state(self) -> State:
        """Nothing has to be kept between blocks."""
        return {}

    @property
    def step(self) -> int:
        """How many steps have been read."""
        return self._step

    def decode(self, measured: Int64, steps: int) -> Float64:
        """Return the running counts, shape (1, steps, cells), in grains; NaN where hidden."""
        self._step += steps
        return Chosen.unpacked(measured).dense(self._cells)[np.newaxis]
