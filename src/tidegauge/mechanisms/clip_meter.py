"""The private half of a gauge whose clip moves: exact integers in, two measurements out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import final

import numpy as np

from tidegauge.mechanisms.accumulator import MOST
from tidegauge.mechanisms.clip_plan import UNIT, ClipPlan
from tidegauge.mechanisms.clip_reading import ClipReading
from tidegauge.mechanisms.clipping import bins_of, clips_up_to
from tidegauge.mechanisms.mean import Values
from tidegauge.mechanisms.meter import Meter
from tidegauge.mechanisms.turn import Turn, no_copies, refuse_beyond_end
from tidegauge.strategies.strategy import Float64, Int64, State

__all__ = ["ClipMeter", "clipped_units", "in_units", "under_clips"]

_ROWS = 4096  # values that are clipped in all ways together


def in_units(total: Int64, clip: int) -> Int64:
    """Return totals in units of the clip, total * UNIT / clip, rounded to nearest, halves up.

    Exact for clips below 2^41, of totals that are cut off at 2^42 clips. An event that moves a
    total by at most the clip moves the result by at most UNIT: cutting off adds nothing to that,
    nor does rounding, since it commutes with whole units and never turns an order around.

    Examples:
        >>> in_units(np.array([-3, 0, 1, 3]), 3) / UNIT
        array([-1.        ,  0.        ,  0.33333302,  1.        ])
    """
    most = min(MOST, clip << 42)
    whole, rest = np.divmod(np.clip(total, -most, most), clip)
    return np.asarray(whole * UNIT + (2 * rest * UNIT + clip) // (2 * clip), dtype=np.int64)


def clipped_units(of: str, given: Values, values: Int64, clip: tuple[int, int]) -> Int64:
    """Return the exact totals under a clip in its units, shape (steps, coordinates).

    Args:
        of: ``"sum"`` or ``"mean"``; for means the counts follow the sums.
        given: Where the values belong.
        values: In grains, shape (events,), within their bounds.
        clip: How far below and above 0 they count as they are.
    """
    below, above = clip
    clipped = np.clip(values, -below, above)
    if of == "sum":
        return in_units(given.totals(clipped), max(clip))
    # each event's own distance from the centre: sums and counts that were cut off apart would
    # move further than one event does
    centred = given.totals(2 * clipped - (above - below))
    counts = given.totals(np.ones(len(values), np.int64))
    return np.concatenate([in_units(centred, below + above), in_units(counts, 1)], axis=1)


@final
class ClipMeter:
    """Measures values under the clip that it is told, and once an epoch their magnitudes.

    Which steps are an epoch is the plan's: its counts are kept until its last step, and measured
    there, once. Values that come before there is a clip are kept as sums: one for each clip that
    may be chosen and each cell, so that memory does not grow with the events.

    Guarantee:
        Values cost ``plan.main.cost`` and magnitudes ``plan.bins.cost``, and the two add up, also
        for streams and clips chosen after reading releases: a clip has to be a function of what
        was published. Proof: ``docs/proofs/moving_clip.md``.

    Args:
        plan: What to measure; its clip is chosen from magnitudes.
        state: What :attr:`state` was at ``step``; None: before the first step. It is taken over.
        step: How many steps it has seen.
    """

    def __init__(
        self, plan: ClipPlan, *, state: dict[str, State] | None = None, step: int = 0
    ) -> None:
        kept = {} if state is None else state
        main = Meter(plan.main, state=_of(kept, "main"), step=step)
        bins = Meter(plan.bins, state=_of(kept, "bins"), step=plan.epochs_before(step + 1))
        self._start(plan, main, bins, kept)

    def _start(
        self, plan: ClipPlan, main: Meter, bins: Meter, kept: dict[str, State] | None = None
    ) -> None:
        self._plan, self._main, self._bins = plan, main, bins
        kept = kept or {}
        self._turn = Turn("meter", "start again from what was stored")
        self._tables = clips_up_to(max(-plan.bounds.low, 0)), clips_up_to(max(plan.bounds.high, 0))
        self._epoch: State = kept.get("epoch") or {
            "counts": np.zeros(plan.bins.neighbors.known_cells, np.int64)
        }
        self._waiting: State = kept.get("waiting") or {
            "below": np.zeros((len(self._tables[0]), plan.cells), np.int64),
            "above": np.zeros((len(self._tables[1]), plan.cells), np.int64),
            "counts": np.zeros(plan.cells, np.int64),
            "steps": np.zeros(1, np.int64),  # how many have waited: public
        }

    @property
    def state(self) -> dict[str, State]:
        """Private: what has to be kept between steps, plain arrays."""
        kept = {"waiting": self._waiting, "epoch": self._epoch}
        for name, meter in (("main", self._main), ("bins", self._bins)):
            kept |= {f"{name}.{part}": state for part, state in meter.state.items()}
        return kept

    @property
    def clamped(self) -> int:
        """How many totals were clamped: for the operator, never for readers."""
        return self._main.clamped + self._bins.clamped

    def measure(self, given: Values, clip: tuple[int, int] | None) -> tuple[Int64, Int64]:
        """Measure a block under one clip; return the public rows of values and of magnitudes.

        Args:
            given: Checked values of the block, whose steps lie in one epoch.
            clip: How far below and above 0 they count as they are; None: they wait.

        Returns:
            int64 of shape (steps, coordinates) and of shape (steps, bins), in lattice units; rows
            of magnitudes are 0 but at the last step of an epoch.

        Raises:
            StreamEnded: The block reaches beyond the last step; nothing was kept or measured.
            LiveState: Copied, forked, interrupted, or in use by two threads at once.
        """
        values = np.clip(given.values, self._plan.bounds.low, self._plan.bounds.high)
        with self._turn:
            refuse_beyond_end(self._plan.last_step, self._main.step + given.length)
            counts, exact = self._counted(given, values), self._clipped(given, values, clip)
            waited = None if clip is None or not given.length else self._waited(clip)
            # all that could be refused was: both meters advance together
            magnitudes = self._magnitudes(counts, given.length)
            rows = self._main.measure(exact, waited)
            if clip is None:
                self._wait(given, values)
            elif waited is not None:
                self._forget()
            return rows, magnitudes

    def close(self) -> None:
        """Erase both keys."""
        self._main.close()
        self._bins.close()

    __copy__ = __deepcopy__ = __reduce__ = __reduce_ex__ = __getstate__ = no_copies("meter")

    def _counted(self, given: Values, values: Int64) -> Int64:
        """Count zeros, octaves above and octaves below, all steps together; shape (bins,)."""
        size = bins_of(np.abs(values))
        places = np.where(values < 0, size + self._plan.above, size)
        out = np.zeros((given.length, self._plan.bins.neighbors.known_cells), np.int64)
        np.add.at(out, (given.steps, places), 1)
        # each clamp is 1-Lipschitz, and so are all, one after the other
        np.minimum(out, self._plan.max_events_per_step * self._plan.cells, out=out)
        return np.asarray(np.minimum(out.sum(axis=0), self._plan.bins.max_per_step))

    def _magnitudes(self, counts: Int64, steps: int) -> Int64:
        """Keep the counts of the epoch, and measure them where it ends; rows of these steps."""
        kept = self._epoch["counts"]
        rows = np.zeros((steps, len(kept)), np.int64)
        kept += counts
        np.minimum(kept, self._plan.bins.max_per_step, out=kept)
        if steps and self._plan.ends_an_epoch(self._main.step + steps):
            rows[-1:] = self._bins.measure(kept[None])
            kept[...] = 0
        return rows

    def _clipped(self, given: Values, values: Int64, clip: tuple[int, int] | None) -> Int64:
        """The exact totals to measure, shape (steps, coordinates), without what waited."""
        if clip is None:
            return np.zeros((given.length, self._plan.main.neighbors.known_cells), np.int64)
        return clipped_units(self._plan.of, given, values, clip)

    def _wait(self, given: Values, values: Int64) -> None:
        for name, table, sizes in (
            ("below", self._tables[0], np.maximum(-values, 0)),
            ("above", self._tables[1], np.maximum(values, 0)),
        ):
            for start in range(0, len(values), _ROWS):
                part = slice(start, start + _ROWS)
                each = np.minimum(sizes[part], table[:, None])
                np.add.at(self._waiting[name].T, given.cells[part], each.T)
                # sums of sizes: cut off while they grow, in whatever order, they are what the
                # exact ones are cut off
                np.minimum(self._waiting[name], MOST, out=self._waiting[name])
        np.add.at(self._waiting["counts"], given.cells, 1)
        self._waiting["steps"] += given.length

    def _waited(self, clip: tuple[int, int]) -> Int64 | None:
        """What came before the first clip, to be counted at the first step that has one."""
        if not self._waiting["steps"][0]:
            return None
        counts = self._waiting["counts"]
        low, high = (
            self._waiting[name][int(np.searchsorted(table, end))]
            for name, table, end in zip(("below", "above"), self._tables, clip, strict=True)
        )
        if self._plan.of == "sum":
            return in_units(high - low, max(clip))
        below, above = clip
        # Python's integers: of so many events 64 bits may not hold the distances from the centre
        centred = 2 * (high - low).astype(object) - (above - below) * counts.astype(object)
        cut = np.clip(centred, -MOST, MOST).astype(np.int64)
        return np.concatenate([in_units(cut, below + above), in_units(counts, 1)])

    def _forget(self) -> None:
        """What waited was counted, once."""
        for array in self._waiting.values():
            array[...] = 0


def under_clips(
    meter: ClipMeter, reading: ClipReading, given: Values
) -> Iterator[tuple[Int64, Int64, tuple[int, int] | None, Float64]]:
    """Measure and decode a block in pieces, cut where a clip may be chosen.

    Args:
        meter: Measures it.
        reading: Chooses each clip from what was decoded before; of the same plan and step.
        given: Checked values of the block.

    Yields:
        Of each piece its rows of values and of magnitudes, its clip, and what was decoded.
    """
    done = 0
    while done < given.length:
        clip = reading.clip
        stop = min(given.length, done + reading.steps_until_a_choice)
        rows, magnitudes = meter.measure(given.part(done, stop), clip)
        yield rows, magnitudes, clip, reading.decode(rows, magnitudes, stop - done)
        done = stop


def _of(kept: dict[str, State], name: str) -> dict[str, State] | None:
    """The state of one of the two meters."""
    prefix = f"{name}."
    found = {key.removeprefix(prefix): kept[key] for key in kept if key.startswith(prefix)}
    return found or None
