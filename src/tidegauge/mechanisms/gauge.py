"""The gauge: measures a stream once and releases any view of it, step by step.

Theory of operation. Totals are checked and clamped, then cut into tiles that fit the cache; each
tile is measured (encoded, noise added) and decoded. The exact totals meet nothing but the clamp and
``measure``; the decoder sees the measurement alone. All checks come first: an input that is refused
leaves the gauge as it was. If a block is interrupted half-way (a keyboard interrupt, memory running
out), none of it was released, and the gauge refuses to go on, since its state and its noise may be
ahead of what was released. One lock, taken for a block and given back at its end, keeps out a
second thread and everything after an interruption.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from tidegauge.checks import shown
from tidegauge.errors import InvalidParameter
from tidegauge.mechanisms.design import design
from tidegauge.mechanisms.live import LiveGauge, std_at
from tidegauge.mechanisms.meter import Meter
from tidegauge.mechanisms.plan import GaugePlan
from tidegauge.mechanisms.reading import Reading
from tidegauge.mechanisms.release import PlannedRelease
from tidegauge.mechanisms.request import request_of
from tidegauge.mechanisms.totals import totals
from tidegauge.mechanisms.turn import refuse_beyond_end
from tidegauge.privacy.guarantee import Guarantee
from tidegauge.privacy.unit import PrivacyUnit
from tidegauge.strategies.decay import Decay
from tidegauge.strategies.strategy import Float64, Int64

__all__ = ["Gauge"]

_LANES = 16_384  # coordinates measured together: their buffers fit the second-level cache


class Gauge(LiveGauge[GaugePlan]):
    r"""A private count or sum over many cells, released step by step in any mix of views.

    The privacy budget is spent once, when the gauge is made; every release after that is free,
    and so is every view. The guarantee covers everything the gauge ever releases, also when
    later totals were chosen after reading earlier releases.

    Args:
        views: Names and decays, or a list of decays that name themselves.
        epsilon: With ``delta``, an (epsilon, delta) guarantee; alone, a pure one.
        delta: See ``epsilon``; below one over the number of protected units.
        guarantee: Instead of the two: ``PureDP``, ``ZCDP``, ``GaussianDP`` or ``ApproxDP``.
        unit: Who is protected: ``"event"``, or ``Contributions(k)`` for an id with at most k
            events. There is no default.
        cells: How many cells, or their names. Left out: a scalar gauge.
        horizon: For how many steps the accuracy is designed; privacy does not depend on it. Left
            out: ``end``, or else designed flat over four decades of steps.
        end: The last step, counted from 1; later ones are refused.
        neighboring_relation: ``"add_or_remove_one"`` or ``"replace_one"``.
        max_change: Largest contribution of one event to one cell, in grains: an integer m for
            contributions 0..m, or a pair (low, high).
        max_cells: Most cells that one event touches.
        max_per_step: Totals of one cell and step are clamped to this; default: 2^20 events'.
        keep: Keep the measurement in memory (8 bytes a cell and step), so that ``view`` can
            decode views thought of later.
        level: Coverage of the intervals.
        band: ``"pointwise"``: of each interval by itself; ``"simultaneous"``: of all intervals of
            a view and cell at once (see :mod:`tidegauge.mechanisms.intervals`).
        importance: Views, by name, whose noise counts more or less than once when all are made
            as even, relative to their lower bounds, as can be: ``{"running": 2}``.

    Raises:
        InvalidParameter: A parameter is impossible; the message says which and what to do.
        UnsupportedCombination: No proven mechanism serves this combination.

    Cost:
        Privacy: all of the guarantee, at once. Time: about 30 ns a cell and step for three views.
        Memory: about 112 bytes a cell and 8 bytes a cell and step of each window, and 16 of the
        shortest where a comb pays; constant in the number of steps unless ``keep``.

    Examples:
        >>> import tidegauge as tg
        >>> gauge = tg.Gauge(views=[tg.Running(), tg.Window(7)], epsilon=1.0, delta=1e-9,
        ...                  unit="event", cells=["north", "south"], horizon=365)
        >>> releases = gauge.update([120, 80])
        >>> releases["running"].value.shape
        (2,)
        >>> round(gauge.noise_std("running", step=365), 1)
        12.5

    References:
        Correlated noise for continual counting: Fichtenberger, Henzinger, Upadhyay (2023);
        buffered linear Toeplitz strategies: McMahan, Pillutla, Steinke et al. (2024).
    """

    def __init__(
        self,
        *,
        views: Mapping[str, Decay] | Sequence[Decay],
        unit: PrivacyUnit | str,
        epsilon: float | Fraction | None = None,
        delta: float | Fraction | None = None,
        guarantee: Guarantee | None = None,
        cells: int | Sequence[str] | None = None,
        horizon: int | None = None,
        end: int | None = None,
        neighboring_relation: str = "add_or_remove_one",
        max_change: int | tuple[int, int] = 1,
        max_cells: int = 1,
        max_per_step: int | None = None,
        keep: bool = False,
        level: float = 0.95,
        band: str = "pointwise",
        importance: Mapping[str, float] | None = None,
    ) -> None:
        request = request_of(
            views=views, unit=unit, epsilon=epsilon, delta=delta, guarantee=guarantee, cells=cells,
            horizon=horizon, end=end, neighboring_relation=neighboring_relation,
            max_change=max_change, max_cells=max_cells, max_per_step=max_per_step, level=level,
            band=band, importance=importance,
        )  # fmt: skip
        if not isinstance(keep, bool):
            raise InvalidParameter(
                f"Expected keep to be True or False, got {shown(keep)}. It decides whether later "
                "views are possible. Write keep=True to keep the measurement in memory."
            )
        plan = design(request)
        self._start(plan, Meter(plan), keep=keep)

    def _start(self, plan: GaugePlan, meter: Meter, *, keep: bool) -> None:
        self._begin(plan)
        self._meter = meter
        self._cells = plan.neighbors.known_cells
        self._reading = Reading(plan, [decay for _, decay in plan.views])
        self._clamped = 0
        self._kept: list[tuple[int, Int64]] | None = [] if keep else None

    @property
    def step(self) -> int:
        """How many steps have been measured and released."""
        return self._reading.step

    @property
    def clamped(self) -> int:
        """How many totals were clamped to ``max_per_step``: for the operator, never for readers."""
        return self._clamped

    def update(self, counts: ArrayLike) -> dict[str, PlannedRelease]:
        """Measure one step and release every view of it.

        Args:
            counts: Exact totals of the step in grains; integers of shape (cells,), or one
                integer for a scalar gauge.

        Returns:
            The releases by view name; values of shape (cells,), or () for a scalar gauge.

        Raises:
            InvalidInput: Not integers of this shape; the gauge is as it was.
            StreamEnded: The end is reached; the gauge is as it was.
            LiveState: The gauge was forked, interrupted, or is in use by another thread.

        Examples:
            >>> import tidegauge as tg
            >>> gauge = tg.Gauge(views=[tg.Running()], epsilon=1, unit="event", cells=["a", "b"])
            >>> release = gauge.update([412, 31])["running"]
            >>> bool((release.lower < release.value).all()), release.first_step
            (True, 1)
        """
        out, step = self._measure(*totals(counts, self._plan, block=False))
        return self._releases(self._plan, out, step, block=False)

    def update_many(self, history: ArrayLike) -> dict[str, PlannedRelease]:
        """Measure a block of steps and release every view of each.

        Args:
            history: Exact totals in grains; integers of shape (steps, cells), or (steps,) for a
                scalar gauge. Zero steps are allowed.

        Returns:
            The releases by view name; values of shape (steps, cells), or (steps,).

        Raises:
            InvalidInput: Not integers of this shape; the gauge is as it was.
            StreamEnded: The block reaches beyond the end; the gauge is as it was.
            LiveState: The gauge was forked, interrupted, or is in use by another thread.

        Examples:
            >>> import tidegauge as tg
            >>> gauge = tg.Gauge(views=[tg.Window(7)], epsilon=1, unit="event", cells=2)
            >>> gauge.update_many([[412, 31], [398, 28]])["window_7"].noise_std.shape
            (2, 2)
        """
        out, first = self._measure(*totals(history, self._plan, block=True))
        return self._releases(self._plan, out, first, block=True)

    def noise_std(self, view: str | Decay, step: int) -> float:
        """Return the standard deviation of a view's noise at a step; reads no data.

        Args:
            view: The name of a view, or any decay (as ``view`` would give it).
            step: The step, counted from 1, up to the last one.

        Raises:
            InvalidParameter: No such view or step.

        Examples:
            >>> import tidegauge as tg
            >>> gauge = tg.Gauge(views=[tg.Step()], epsilon=1.0, unit="event")
            >>> round(gauge.noise_std("step", step=10), 4)
            1.357
        """
        return std_at(self._plan, view, step)

    def view(self, view: str | Decay, name: str | None = None) -> PlannedRelease:
        """Release a view thought of later, over all steps so far; costs no privacy.

        It is decoded from the kept measurement and equals, byte for byte, what it would have been
        as a planned view of the same strategy; planning for it would have given less noise.

        Args:
            view: Any decay, or the name of a planned view.
            name: What to call it; default: the decay's own name.

        Returns:
            Values of shape (steps, cells), or (steps,) for a scalar gauge.

        Raises:
            InvalidParameter: Neither a decay nor a view, or the gauge keeps no measurement.

        Cost:
            No privacy. Time: one decoding of the stream, a few ns a cell and step.

        Examples:
            >>> import tidegauge as tg
            >>> gauge = tg.Gauge(views=[tg.Running()], epsilon=1, unit="event", keep=True)
            >>> _ = gauge.update_many([5, 0, 7, 2])
            >>> gauge.view(tg.Window(2)).value.shape
            (4,)
        """
        decay = self._plan.decay(view)
        if name is None:
            name = view if isinstance(view, str) else decay.name
        if not isinstance(name, str) or not name:
            raise InvalidParameter(
                f"Expected name to be text, got {shown(name)}. The release is called by it. "
                "Leave it out for the decay's own name."
            )
        if self._kept is None:
            raise InvalidParameter(
                "Expected a gauge with keep=True, got one that keeps no measurement. A later view "
                "is decoded from the measurement. Make the gauge with keep=True, or plan the view."
            )
        reading, kept = Reading(self._plan, [decay]), tuple(self._kept)
        out = np.empty((1, sum(steps for steps, _ in kept), self._cells))
        for steps, measured in kept:
            reading.decode(measured, steps, out[:, reading.step : reading.step + steps])
        plan = self._plan.with_view(name, decay)
        return self._releases(plan, out, 1, block=True)[name]

    def close(self) -> None:
        """Erase the key; nothing more can be measured. ``with`` a gauge does it at the end."""
        self._meter.close()

    def statement(self) -> str:
        """Return what is promised, in words, with every declared constant."""
        return self._plan.statement()

    def _measure(self, exact: Int64, clamped: int) -> tuple[Float64, int]:
        """Measure checked totals; return every view of them and their first step, from 1."""
        steps = len(exact)
        out = np.empty((len(self._plan.views), steps, self._cells))
        tile = max(1, _LANES // self._cells)
        with self._turn:
            first = self._reading.step
            refuse_beyond_end(self._plan.last_step, first + steps)
            kept: list[tuple[int, Int64]] = []
            for start in range(0, steps, tile):
                block, views = exact, out
                if steps > tile:
                    block, views = exact[start : start + tile], out[:, start : start + tile]
                measured = self._meter.advance(block)
                self._reading.decode(measured, len(block), views)
                if self._kept is not None:
                    kept.append((len(block), measured))
            if self._kept is not None:
                self._kept.extend(kept)
            self._clamped += clamped
        return out, first + 1

    def _releases(
        self, plan: GaugePlan, out: Float64, first: int, *, block: bool
    ) -> dict[str, PlannedRelease]:
        releases = {}
        common = {"plan": plan, "first_step": first, "names": plan.cells, "block": block}
        for (name, _), values in zip(plan.views, out, strict=True):
            value = values if block else values[0]
            value = value[..., 0] if plan.scalar else value
            releases[name] = PlannedRelease._of({**common, "view": name, "value": value})
        return releases

    def __repr__(self) -> str:
        names = ", ".join(shown(name) for name, _ in self._plan.views[:8])
        return (
            f"Gauge(views=[{names}], cells={self._cells}, step={self.step}, "
            f"guarantee={self._plan.guarantee}, meter={self._meter!r})"
        )
