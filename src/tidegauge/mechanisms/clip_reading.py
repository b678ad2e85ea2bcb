r"""The public half of a gauge whose clip moves: choices, decoding, and the noise of what comes out.

What is measured is y = clip(x, -a, b) in units of the clip, with the same largest integer whatever
the clip. A step's decoded increments are multiplied by what a unit was worth at that step, and
only then filtered: so every view, windows too, is the noisy sum of clipped values. A choice is made
where an epoch begins, and reads the counts of magnitudes published for the epochs before it.

Means centre a value at the middle of its clip, m = (b - a) / 2, in units of r = (a + b) / 2:
a clipped sum is then r y + m n, with n the count of the step, measured beside it.
"""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from tidegauge.mechanisms.clip_plan import UNIT, ClipPlan
from tidegauge.mechanisms.clipping import best_clip, clips_up_to, pooled, weight_so_far
from tidegauge.mechanisms.intervals import tails
from tidegauge.mechanisms.ratio import ratio_interval
from tidegauge.mechanisms.reading import Reading
from tidegauge.noise.quantile import gaussian_half_width
from tidegauge.strategies.decay import Decay, Step
from tidegauge.strategies.filters import filter_views, init_decoder
from tidegauge.strategies.rescaled import covariances, serves_rescaled
from tidegauge.strategies.strategy import Float64, Int64, State

__all__ = ["ClipReading", "one_end"]


def one_end(plan: ClipPlan, epochs: Float64, step: int, end: int, now: int | None) -> int | None:
    """Choose the clip of one end from published counts; see :func:`~.clipping.best_clip`.

    Args:
        plan: What is measured.
        epochs: Noisy counts of all magnitudes in the epochs before, shape (epochs, bins).
        step: The step from which on the clip is in force.
        end: 1 below 0, 2 above.
        now: The clip in force; None: there is none.
    """
    counts, std = pooled(epochs, float(plan.bins.noise_std(Step(), [1])[0]))
    octaves_above, octaves_below = np.split(counts[1:], [plan.above])
    mine, others = octaves_above, octaves_below
    most = plan.bounds.high
    if end == 1:
        mine, others, most = others, mine, -plan.bounds.low
    # what is published next is judged, and a clip that comes early by what is published later
    until = 2 * max(step, plan.lag or 0)
    until = min(until, plan.main.last_step or until)
    # the noise of a sum of clipped values, for a clip of 1: see docs/proofs/moving_clip.md
    parts = 2.0 if plan.of == "mean" else 1.0
    views = [
        (
            weight_so_far(decay, until) / (step - 1),
            float(plan.main.noise_std(decay, [until])[0] / UNIT) ** 2 / parts,
        )
        for _, decay in plan.main.views
    ]
    rest = float(counts[0]) + max(float(others.sum()), 0.0)
    table = clips_up_to(max(most, 0))
    return best_clip(mine, rest, std, table, views, now, waiting=plan.waits(step))


def _factors(plan: ClipPlan, choices: Int64) -> Float64:
    """What a unit is worth under each clip, shape (3, clips): r, m and 1 event; per grain."""
    below, above = choices[:, 1].astype(np.float64), choices[:, 2].astype(np.float64)
    if plan.of == "mean":
        parts = [(below + above) / 2, (above - below) / 2, np.ones(len(below))]
    else:
        parts = [np.maximum(below, above), np.zeros(len(below)), np.zeros(len(below))]
    return np.stack(parts) / UNIT


@final
class ClipReading:
    """Chooses clips and decodes what was measured under them; sees no data.

    Args:
        plan: What was measured.
        state: What :attr:`state` was at ``step``; None: before the first step. It is taken over.
        step: How many steps it has seen.

    Cost: no privacy. Memory: that of two readings, and three numbers for every change of the clip,
    of which there is at most one for every doubling of the steps.
    """

    def __init__(
        self, plan: ClipPlan, *, state: dict[str, Any] | None = None, step: int = 0
    ) -> None:
        self._plan = plan
        self._views = [decay for _, decay in plan.main.views]
        kept = {} if state is None else state
        self._main = Reading(plan.main, [Step()], state=kept.get("main"), step=step)
        columns = plan.cells * (2 if plan.of == "mean" else 1)
        self._filter: State = kept.get("views") or init_decoder(self._views, columns, 0)
        self._bins = None  # where the clip is told in the rows alone, and never chosen here
        count = 0
        if plan.magnitudes is not None:
            epochs, count = plan.epochs_before(step + 1), plan.bins.neighbors.known_cells
            self._bins = Reading(plan.bins, [Step()], state=kept.get("bins"), step=epochs)
        # of each epoch that has ended: noisy counts of magnitudes
        self._epochs: Float64 = kept.get("epochs", np.zeros((0, count)))
        # rows of (first step, below, above): what is in force from that step on, from 1
        self._choices: Int64 = kept.get("choices", np.zeros((0, 3), dtype=np.int64))
        self._due: int = int(kept.get("due", plan.next_epoch(1)))

    @property
    def state(self) -> dict[str, Any]:
        """Public: what has to be kept between blocks, plain arrays."""
        return {
            "main": self._main.state,
            **({} if self._bins is None else {"bins": self._bins.state}),
            "views": self._filter,
            "epochs": self._epochs,
            "choices": self._choices,
            "due": self._due,
        }

    @property
    def step(self) -> int:
        """How many steps have been decoded."""
        return self._main.step

    @property
    def choices(self) -> Int64:
        """Every clip that was in force: rows (first step, below, above), in grains; stored."""
        return self._choices.copy()

    @property
    def clip(self) -> tuple[int, int] | None:
        """How far below and above 0 values count as they are, from the next step on; None: wait.

        Until it is known, events are kept, and they count at the first step that has a clip.
        """
        self._choose()
        return (
            None
            if not len(self._choices)
            else (int(self._choices[-1][1]), int(self._choices[-1][2]))
        )

    @property
    def steps_until_a_choice(self) -> int:
        """For how many steps from the next one on the clip stays as it is: to the epoch's end."""
        return self._due - self.step - 1

    def _choose(self) -> None:
        """Choose the clip of the next step, if one is due, from what was published before it."""
        step = self.step + 1
        if step < self._due:
            return
        plan = self._plan
        now = self._choices[-1] if len(self._choices) else None
        low, high = (
            one_end(plan, self._epochs, step, end, None if now is None else int(now[end]))
            for end in (1, 2)
        )
        self._due = plan.next_epoch(step)
        if low is None and high is None and now is None:
            return
        kept = (0, 0) if now is None else (int(now[1]), int(now[2]))
        clip = (kept[0] if low is None else low, kept[1] if high is None else high)
        if sum(clip) == 0:  # all values are near 0: the least clip that is one
            clip = (0, 1) if plan.bounds.high > 0 else (1, 0)
        self._take(clip)

    def _take(self, clip: tuple[int, int]) -> None:
        """Have a clip in force from the next step on."""
        now = self._choices[-1, 1:].tolist() if len(self._choices) else None
        if now is None:
            self._begin(clip)
        if now != list(clip):
            row = np.array([[self.step + 1, *clip]], dtype=np.int64)
            self._choices = np.concatenate([self._choices, row])

    def follow(self, measured: Int64, magnitudes: Int64, clips: Int64, steps: int) -> Float64:
        """Decode the next steps under clips that were chosen and stored; nothing is chosen anew.

        Args:
            measured: The rows of the clipped values, one a step.
            magnitudes: The rows of the counts of magnitudes, one a step; read where epochs end.
            clips: What was in force, rows (below, above); twice 0 where there was none; (steps, 2).
            steps: How many steps these are.

        Returns:
            What :meth:`decode` does.
        """
        columns = self._plan.cells * (2 if self._plan.of == "mean" else 1)
        pieces, done = [np.empty((len(self._views), 0, columns))], 0
        other = np.flatnonzero((clips[1:] != clips[:-1]).any(axis=1)) + 1
        while done < steps:
            clip = int(clips[done, 0]), int(clips[done, 1])
            if self.step + 1 >= self._due:
                self._due = self._plan.next_epoch(self.step + 1)
            if clip != (0, 0):
                self._take(clip)
            stop = min([steps, done + self.steps_until_a_choice, *other[other > done][:1].tolist()])
            part = slice(done, stop)
            pieces.append(self.decode(measured[part], magnitudes[part], stop - done))
            done = stop
        return np.concatenate(pieces, axis=1)

    def _begin(self, clip: tuple[int, int]) -> None:
        """Take what was filtered of the steps before the first clip in units of that clip.

        They hold noise alone, which later noise was made to undo: leaving it out would cost a third
        more noise in a long sum.
        """
        reach, middle, count = _factors(self._plan, np.array([[0, *clip]], dtype=np.int64))[:, 0]
        for name, array in self._filter.items():
            if self._plan.of == "mean":
                sums, counts = np.split(array, 2, axis=-1)
                parts = [reach * sums + middle * counts, count * counts]
                self._filter[name] = np.concatenate(parts, axis=-1)
            else:
                self._filter[name] = reach * array

    def decode(self, measured: Int64, magnitudes: Int64, steps: int) -> Float64:
        """Return every view of the next steps, shape (views, steps, cells or 2 cells).

        In grains; for means, sums in the first half and counts of events in the second.

        Args:
            measured: The rows of the clipped values, measured under :attr:`clip`.
            magnitudes: The rows of the counts of magnitudes.
            steps: How many steps these are; they lie in one epoch.
        """
        first = self.step
        increments = self._main.decode(measured, steps)[0]
        known = len(self._choices) > 0
        reach, middle, count = self._factors()[:, -1] if known else np.array([1.0, 0.0, 1.0])
        if self._plan.of == "mean":
            sums, counts = np.split(increments, 2, axis=1)
            scaled = np.concatenate([reach * sums + middle * counts, count * counts], axis=1)
        else:
            scaled = reach * increments
        out = np.empty((len(self._views), *scaled.shape))
        filter_views(self._filter, self._views, np.ascontiguousarray(scaled), first, out)
        if steps and self._bins is not None and self._plan.ends_an_epoch(self.step):
            ended = self._bins.decode(magnitudes[-1:], 1)[0]
            self._epochs = np.concatenate([self._epochs, ended])
        return out if known else np.full_like(out, np.nan)

    def _factors(self) -> Float64:
        return _factors(self._plan, self._choices)

    def covariances(self, decay: Decay, steps: Int64) -> Float64:
        """Return covariances of the noise at steps that were decoded, shape (steps, 3, 3).

        Of the parts that r, m and 1 are factors of: see the module. The noise of a sum has the
        variance [0, 0]; of a mean's sum, [0, 0] + [1, 1]; of its count, [2, 2].
        """
        strategy = self._plan.main.strategy
        assert serves_rescaled(strategy), "others were refused"
        if not len(self._choices):
            return np.full((len(steps), 3, 3), np.nan)
        changes = self._choices[1:, 0] - 1  # the first clip counts from the first step on
        parts = covariances(strategy, decay, steps, changes, self._factors())
        return parts * self._plan.main.law.std**2

    def noise_std(self, view: str | Decay, steps: Int64, summed: int = 1) -> Float64:
        """Return the standard deviation of a view's sum at steps that were decoded.

        Args:
            view: A view's name, or a decay.
            steps: Counted from 1.
            summed: How many cells are added up: they share the clip, and their noise is
                independent. NaN at steps that had no clip yet.
        """
        parts = self.covariances(self._plan.main.decay(view), steps) * summed
        both = self._plan.of == "mean"
        std = np.sqrt(parts[:, 0, 0] + both * parts[:, 1, 1])
        return np.where(self.waits(steps), np.nan, std)

    def half_width(self, view: str | Decay, steps: Int64, summed: int = 1) -> Float64:
        """Return half the width of a sum's interval; see :meth:`noise_std`."""
        return gaussian_half_width(self.noise_std(view, steps, summed), self._tail(steps))

    def _tail(self, steps: Int64) -> Float64:
        plan = self._plan.main
        return tails(plan.level, plan.band, steps, plan.known_end)

    def means(
        self, view: str | Decay, steps: Int64, decoded: Float64, summed: int = 1
    ) -> tuple[Float64, ...]:
        """Return value, lower, upper, count and count_std of means, each of (steps, cells).

        Where there was no clip yet all that is known are the bounds; the rest is NaN.
        """
        cells = decoded.shape[1] // 2
        parts = self.covariances(self._plan.main.decay(view), steps) * summed
        size = gaussian_half_width(np.ones(len(steps)), self._tail(steps)) ** 2
        s = (size * (parts[:, 0, 0] + parts[:, 1, 1]))[:, None]
        c, t = (size * parts[:, 1, 2])[:, None], (size * parts[:, 2, 2])[:, None]
        # what counted up to a step was within the widest clip up to it
        widest = np.maximum.accumulate(np.r_[[[0, 0]], self._choices[:, 1:]])
        place = np.searchsorted(self._choices[:, 0], steps, side="right")
        below, above = (widest[place, end, None].astype(np.float64) for end in (0, 1))
        value, lower, upper, _ = ratio_interval(
            decoded[:, :cells], decoded[:, cells:], (s, c, t), (-below, above)
        )
        waits = self.waits(steps)[:, None]
        ends = float(self._plan.bounds.low), float(self._plan.bounds.high)
        lower, upper = np.where(waits, ends[0], lower), np.where(waits, ends[1], upper)
        std = np.broadcast_to(np.sqrt(parts[:, 2, 2])[:, None], value.shape)
        value, count, std = (
            np.where(waits, np.nan, array) for array in (value, decoded[:, cells:], std)
        )
        return value, lower, upper, count, std

    def waits(self, steps: Int64) -> NDArray[np.bool_]:
        """Return for each of ``steps`` whether there was no clip yet, so that nothing is known."""
        first = self._choices[0, 0] if len(self._choices) else np.inf
        return np.asarray(steps < first)

    def clips(self, steps: Int64) -> tuple[Int64, Int64]:
        """Return the least and the largest value that counts as it is, at each of ``steps``."""
        rows = np.concatenate([np.zeros((1, 3), np.int64), self._choices])
        chosen = rows[np.searchsorted(self._choices[:, 0], steps, side="right")]
        return -chosen[:, 1], chosen[:, 2]
