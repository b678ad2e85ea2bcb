"""Sums and means in memory whose clip is found from published numbers and moves with the stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tidegauge.checks import shown
from tidegauge.mechanisms.clip_meter import ClipMeter, under_clips
from tidegauge.mechanisms.clip_plan import SHARE, ClipPlan, clip_plan
from tidegauge.mechanisms.clip_reading import ClipReading
from tidegauge.mechanisms.live import LiveGauge
from tidegauge.mechanisms.mean import Values, bounds_of
from tidegauge.mechanisms.mean_release import MeanRelease, mean_release
from tidegauge.mechanisms.release import Release
from tidegauge.mechanisms.request import cells_of
from tidegauge.mechanisms.turn import refuse_beyond_end
from tidegauge.privacy.guarantee import Guarantee
from tidegauge.privacy.unit import PrivacyUnit
from tidegauge.strategies.decay import Decay
from tidegauge.strategies.strategy import Float64, Int64

__all__ = ["ClippedGauge", "SumRelease"]


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class SumRelease(Release):
    """A release of sums of clipped values: unbiased, in grains; NaN before the first clip.

    Other attributes are those of :class:`~tidegauge.Release`.

    Attributes:
        noise_std: Standard deviation of the noise under the clips that were in force.
        ends: Lower and upper ends of the intervals.
        clip: Least and largest value that counted as it was, of each step; shape (steps,) each.

    Examples:
        >>> import tidegauge as tg
        >>> gauge = tg.ClippedGauge("sum", views=[tg.Running()], bounds=(0, 1000), epsilon=1,
        ...                         delta=1e-9, unit="event", cells=["a", "b"], horizon=100)
        >>> release = gauge.update_many([7], [0], 2)["running"]  # too little to find a clip
        >>> release.cell("b").value.tolist(), release.clip[1].tolist()
        ([nan, nan], [0, 0])
    """

    noise_std: NDArray[Any] = field(repr=False)
    ends: tuple[NDArray[Any], NDArray[Any]] = field(repr=False)
    clip: tuple[Int64, Int64] = field(repr=False)

    _columns = "value", "noise_std", "lower", "upper"

    @property
    def lower(self) -> NDArray[Any]:
        """Lower end of the interval; speaks of noise only."""
        return self.ends[0]

    @property
    def upper(self) -> NDArray[Any]:
        """Upper end of the interval; speaks of noise only."""
        return self.ends[1]

    def _in_cells(self, pick: Callable[[NDArray[Any]], NDArray[Any]]) -> Self:
        return replace(
            self,
            value=pick(self.value),
            noise_std=pick(self.noise_std),
            ends=(pick(self.lower), pick(self.upper)),
        )


@final
class ClippedGauge(LiveGauge[ClipPlan]):
    """A private sum or mean of values whose upper end nobody knows in advance.

    A declared share of the budget counts the magnitudes of values, once an epoch of steps that are
    fixed in advance; from the published counts the clip is chosen, and chosen anew whenever the
    stream is twice as long. Values beyond it count as
    the clip. Until the counts leave little doubt, or for a tenth of the horizon, events wait and
    releases have no value; they count at the first step that has a clip.

    Args:
        of: ``"sum"`` or ``"mean"``.
        views: Names and decays, or a list of decays: steps, running sums, windows, exponentials.
        bounds: What a value may be, in grains, around 0 and at most 2^39 in size: the clip never
            lies beyond them.
        unit: Who is protected: ``"event"``, or ``Contributions(k)``. There is no default.
        epsilon: With ``delta``.
        delta: See ``epsilon``.
        guarantee: Instead of the two; not ``PureDP``.
        cells: How many cells, or their names; they share one clip. Left out: a scalar gauge.
        horizon: For how many steps the accuracy is designed.
        end: The last step, counted from 1; two or more.
        neighboring_relation: ``"add_or_remove_one"`` or ``"replace_one"``.
        max_events_per_step: Totals of a cell and step are clamped to those of so many events, at
            most 2^22; left out: 2^20. What waited for the first clip is not, though it counts in
            one step: up to 2^32 events of a cell, or 2^62 grains, are counted.
        share: The part of the budget that learning the clip costs, from 0.01 to 0.5.
        level: Coverage of the intervals.
        band: ``"pointwise"`` or ``"simultaneous"``.

    Raises:
        InvalidParameter: A parameter is impossible.
        UnsupportedCombination: A pure guarantee; a view whose noise would not be known, which is
            any but steps, running sums, windows and exponentials; an end of one step, before which
            no clip could be chosen; or ids whose events are apart (``min_separation``), for what
            waits counts together at one step.

    Cost:
        Privacy: all of the guarantee, at once. Time and memory: those of a gauge, and of another
        with 20 to 40 cells.

    Examples:
        >>> import numpy as np
        >>> import tidegauge as tg
        >>> gauge = tg.ClippedGauge("mean", views=[tg.Running()], bounds=(0, 100_000), epsilon=1,
        ...                         delta=1e-9, unit="event", horizon=100)
        >>> values = np.tile([1, 2, 3], 20_000)
        >>> release = gauge.update_many(values, np.repeat(range(100), 600), 100)["running"]
        >>> bool(1.9 < release.value[-1] < 2.1), bool(release.clip[1][-1] < 30)
        (True, True)
    """

    def __init__(
        self,
        of: Literal["sum", "mean"],
        *,
        views: Mapping[str, Decay] | Sequence[Decay],
        bounds: tuple[int, int],
        unit: PrivacyUnit | str,
        epsilon: float | Fraction | None = None,
        delta: float | Fraction | None = None,
        guarantee: Guarantee | None = None,
        cells: int | Sequence[str] | None = None,
        horizon: int | None = None,
        end: int | None = None,
        neighboring_relation: str = "add_or_remove_one",
        max_events_per_step: int | None = None,
        share: float | Fraction = SHARE,
        level: float = 0.95,
        band: str = "pointwise",
    ) -> None:
        plan = clip_plan(
            of=of, bounds=bounds_of(bounds), share=share, cells=cells, views=views, unit=unit,
            max_events_per_step=max_events_per_step, epsilon=epsilon, delta=delta,
            guarantee=guarantee, horizon=horizon, end=end, level=level, band=band,
            neighboring_relation=neighboring_relation,
        )  # fmt: skip
        _, self._names, self._scalar = cells_of(cells)
        self._start(plan, ClipMeter(plan))

    def _start(self, plan: ClipPlan, meter: ClipMeter) -> None:
        self._begin(plan)
        self._meter = meter
        self._reading = ClipReading(plan)

    @property
    def step(self) -> int:
        """How many steps have been measured and released."""
        return self._reading.step

    @property
    def choices(self) -> Int64:
        """Every clip so far: rows (first step, below, above), in grains; public."""
        return self._reading.choices

    def update(
        self, values: ArrayLike, cells: ArrayLike | None = None
    ) -> dict[str, SumRelease | MeanRelease]:
        """Measure the values of one step and release every view of it.

        Args:
            values: The step's values, in grains; integers of shape (events,), maybe none.
            cells: The cell of each one by its index; None: the first.

        Raises:
            InvalidInput: Not integers of this shape; the gauge is as it was.
            StreamEnded: The end is reached; the gauge is as it was.
            LiveState: The gauge was forked, interrupted, or is in use by another thread.
        """
        return self._measure(Values(values, None, cells, 1, self._plan.cells), block=False)

    def update_many(
        self, values: ArrayLike, steps: ArrayLike, length: int, cells: ArrayLike | None = None
    ) -> dict[str, SumRelease | MeanRelease]:
        """Measure a block of steps and release every view of each.

        Args:
            values: All values, in grains; integers of shape (events,), in any order.
            steps: The step of each one by its index in the block, from 0.
            length: How many steps the block has, empty ones too.
            cells: The cell of each one by its index; None: the first.

        Raises:
            InvalidInput: Not integers of this shape; the gauge is as it was.
            StreamEnded: The block reaches beyond the end; the gauge is as it was.
            LiveState: The gauge was forked, interrupted, or is in use by another thread.
        """
        return self._measure(Values(values, steps, cells, length, self._plan.cells), block=True)

    def statement(self) -> str:
        """Return what is promised, in words, and what has to be said of the clip."""
        return self._plan.statement(self._names)

    def close(self) -> None:
        """Erase the keys; nothing more can be measured. ``with`` a gauge does it at the end."""
        self._meter.close()

    def _measure(self, given: Values, *, block: bool) -> dict[str, SumRelease | MeanRelease]:
        with self._turn:
            first, decoded = self._advance(given)
        return {
            name: self._release(name, first, values, block)
            for (name, _), values in zip(self._plan.main.views, decoded, strict=True)
        }

    def _advance(self, given: Values) -> tuple[int, Float64]:
        """Measure and decode a block; return its first step and every view."""
        first = self._reading.step + 1
        refuse_beyond_end(self._plan.last_step, self._reading.step + given.length)
        pieces = [decoded for *_, decoded in under_clips(self._meter, self._reading, given)]
        empty = np.zeros((len(self._plan.main.views), 0, self._plan.main.neighbors.known_cells))
        return first, np.concatenate([empty, *pieces], axis=1)

    def _release(
        self, name: str, first: int, decoded: Float64, block: bool
    ) -> SumRelease | MeanRelease:
        steps = first + np.arange(len(decoded))
        reading, main = self._reading, self._plan.main
        clip = reading.clips(steps)
        if self._plan.of == "mean":
            means = reading.means(name, steps, decoded)
            return mean_release(
                main,
                name,
                first,
                means,
                names=self._names,
                scalar=self._scalar,
                block=block,
                clip=clip,
            )
        waits = (clip[0] == 0) & (clip[1] == 0)
        decoded = np.where(waits[:, None], np.nan, decoded)
        std, half = reading.noise_std(name, steps), reading.half_width(name, steps)
        shape = decoded.shape
        arrays = (
            decoded,
            np.broadcast_to(std[:, None], shape),
            decoded - half[:, None],
            decoded + half[:, None],
        )
        shaped = [array if block else array[0] for array in arrays]
        value, noise, lower, upper = (array[..., 0] if self._scalar else array for array in shaped)
        return SumRelease(
            plan=main,
            view=name,
            first_step=first,
            value=value,
            names=self._names,
            block=block,
            noise_std=noise,
            ends=(lower, upper),
            clip=clip,
        )

    def __repr__(self) -> str:
        names = ", ".join(shown(name) for name, _ in self._plan.main.views[:8])
        return (
            f"ClippedGauge({self._plan.of}, views=[{names}], cells={self._plan.cells}, "
            f"step={self.step}, guarantee={self._plan.main.guarantee})"
        )
