"""Releases: published numbers with their intervals, whatever they are of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self, final

import numpy as np
from numpy.typing import NDArray

from tidegauge.checks import integer, shown
from tidegauge.errors import InvalidParameter
from tidegauge.mechanisms.plan import GaugePlan

__all__ = ["PlannedRelease", "Release"]

Array = NDArray[Any]


@dataclass(frozen=True, eq=False, kw_only=True)
class Release(ABC):
    """One view's published values over a block of steps, with their intervals.

    A release is public: it holds no state of the gauge and may be stored, copied and shown. Those
    of a :class:`~tidegauge.Gauge` and a :class:`~tidegauge.DiscoveryGauge` are planned releases,
    those of a :class:`~tidegauge.MeanGauge` means, those of a :class:`~tidegauge.ClippedGauge`
    sums or means.

    Attributes:
        plan: The plan of its measurement.
        view: Name of the view.
        first_step: The first step in it, counted from 1.
        value: float64 of shape (cells,) for one step, (steps, cells) for a block; without the cell
            axis for a scalar gauge or one cell.
        names: The names of the cells; None where they have none.
        block: Whether ``value`` has an axis of steps.

    Examples:
        >>> import tidegauge as tg
        >>> gauge = tg.Gauge(views=[tg.Running()], epsilon=1, unit="event", cells=["a", "b"])
        >>> release = gauge.update_many([[5, 1], [7, 2]])["running"]
        >>> isinstance(release, tg.Release), release.steps.tolist(), release.cell("b").upper.shape
        (True, [1, 2], (2,))
    """

    plan: GaugePlan = field(repr=False)
    view: str
    first_step: int
    value: Array = field(repr=False)
    names: tuple[str, ...] | None = field(default=None, repr=False)
    block: bool = field(default=False, repr=False)

    _columns: ClassVar[tuple[str, ...]]

    @property
    @abstractmethod
    def lower(self) -> Array:
        """Lower end of the interval, in the shape of ``value``; speaks of noise only."""

    @property
    @abstractmethod
    def upper(self) -> Array:
        """Upper end of the interval, in the shape of ``value``; speaks of noise only."""

    @abstractmethod
    def _in_cells(self, pick: Callable[[Array], Array]) -> Self:
        """Return this release with ``pick`` applied to every array in the shape of ``value``."""

    @property
    def steps(self) -> Array:
        """The step numbers, counted from 1; shape (steps,)."""
        return self.first_step + np.arange(len(self.value) if self.block else 1)

    @property
    def level(self) -> float:
        """The chance that intervals cover the true values, over the noise alone."""
        return self.plan.level

    @property
    def band(self) -> str:
        """``"pointwise"``: the level is each interval's; ``"simultaneous"``: a whole curve's."""
        return self.plan.band

    @property
    def complete(self) -> Array:
        """False while a window is not yet full; shape (steps,)."""
        return np.asarray(self.steps >= self.plan.full_after(self.view))

    def cell(self, cell: str | int) -> Self:
        """Return the release of one cell, by name or by index, without the cell axis.

        Raises:
            InvalidParameter: There is no such cell.

        Examples:
            >>> import tidegauge as tg
            >>> gauge = tg.Gauge(views=[tg.Step()], epsilon=1, unit="event", cells=["a", "b"])
            >>> gauge.update_many([[1, 2], [3, 4], [5, 6]])["step"].cell("b").value.shape
            (3,)
        """
        cells = self.value.shape[-1] if self.value.ndim > self.block else 0
        if self.names is not None and cell in self.names:
            cell = self.names.index(str(cell))
        if isinstance(cell, bool) or not isinstance(cell, int) or not 0 <= cell < cells:
            known = list(self.names) if self.names else f"0 to {cells - 1}" if cells else "no cells"
            raise InvalidParameter(
                f"Expected a cell by name or index, got {shown(cell)}. Nothing was released for "
                f"it. Known here: {shown(known)}."
            )
        return replace(self._in_cells(lambda array: array[..., cell]), names=None)

    def columns(self) -> dict[str, Array]:
        """Return the release as columns of equal length, one row a step and cell: a data frame.

        The columns are step, cell (a name or an index; absent for a scalar), value, lower, upper
        and what else has a number for each cell, such as noise_std.

        Examples:
            >>> import tidegauge as tg
            >>> gauge = tg.Gauge(views=[tg.Step()], epsilon=1, unit="event", cells=["a", "b"])
            >>> gauge.update_many([[1, 2], [3, 4]])["step"].columns()["cell"].tolist()
            ['a', 'b', 'a', 'b']
        """
        each = self.value.size // max(1, len(self))
        columns: dict[str, Array] = {"step": np.repeat(self.steps, each)}
        if self.value.ndim > self.block:
            names = self.names if self.names is not None else range(each)
            columns["cell"] = np.tile(np.array(names), len(self))
        for name in self._columns:
            columns[name] = np.ravel(getattr(self, name))
        return columns

    def __str__(self) -> str:
        numbers = np.array2string(self.value, precision=1, suppress_small=True, threshold=20)
        return f"{self.view} from step {self.first_step}: {numbers}"

    def __len__(self) -> int:
        return len(self.steps)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class PlannedRelease(Release):
    """A release of counts or sums: its noise is known from the plan alone.

    Everything but ``value``, which are unbiased estimates and may be negative, is computed from
    the plan when it is asked for. Other attributes are those of :class:`Release`.

    Attributes:
        summed: How many cells each value adds up.
        stride: How many steps the values of a block are apart.

    Examples:
        >>> import tidegauge as tg
        >>> gauge = tg.Gauge(views=[tg.Running()], epsilon=1, unit="event")
        >>> release = gauge.update(5)["running"]
        >>> bool(release.lower < release.value < release.upper), float(release.noise_std) < 40
        (True, True)
    """

    summed: int = field(default=1, repr=False)
    stride: int = field(default=1, repr=False)

    _columns = "value", "noise_std", "lower", "upper"

    @classmethod
    def _of(cls, fields: dict[str, Any]) -> PlannedRelease:
        """Make a release at once: a frozen dataclass sets its fields one by one, 2 us more."""
        release = object.__new__(cls)
        release.__dict__.update(fields)
        return release

    @property
    def steps(self) -> Array:
        """The step numbers, counted from 1; shape (steps,)."""
        count = len(self.value) if self.block else 1
        return self.first_step + self.stride * np.arange(count)

    @property
    def noise_std(self) -> Array:
        """Standard deviation of the noise, in the shape of ``value``."""
        return self._shaped(self.plan.noise_std(self.view, self.steps, self.summed))

    @property
    def half_width(self) -> Array:
        """Half the width of the interval, in the shape of ``value``."""
        return self._shaped(self.plan.half_width(self.view, self.steps, self.summed))

    @property
    def lower(self) -> Array:
        """Lower end of the interval; speaks of noise only, not of clamped totals."""
        return np.asarray(self.value - self.half_width)

    @property
    def upper(self) -> Array:
        """Upper end of the interval; speaks of noise only, not of clamped totals."""
        return np.asarray(self.value + self.half_width)

    def every(self, steps: int) -> PlannedRelease:
        """Return the values at every so many steps, counted from the first of the stream.

        A window of that length is then read once for each stretch, like the days of a calendar.

        Raises:
            InvalidParameter: Not a number of steps, or the release is of one step alone.

        Examples:
            >>> import tidegauge as tg
            >>> gauge = tg.Gauge(views=[tg.Window(7)], epsilon=1, unit="event", keep=True)
            >>> _ = gauge.update_many(range(20))
            >>> gauge.view(tg.Window(7)).every(7).steps
            array([ 7, 14])
        """
        why = "The view is read at every so many steps. Give the length of the window."
        steps = integer("steps", steps, low=1, high=1 << 40, why=why)
        if not self.block or self.stride != 1:
            raise InvalidParameter(
                "Expected a release of each step of a block, got another. Steps between are not "
                "there. Ask a release of update_many, or of view."
            )
        offset = -self.first_step % steps
        first = self.first_step + offset
        return replace(self, value=self.value[offset::steps], first_step=first, stride=steps)

    def total(self) -> PlannedRelease:
        """Return the sum of all cells, without the cell axis, with an error of its own.

        The noises of cells are independent: its noise_std is the root of their number times that
        of one cell. A gauge without cells has a smaller one at the same cost.

        Raises:
            InvalidParameter: The release has no cells.

        Examples:
            >>> import tidegauge as tg
            >>> gauge = tg.Gauge(views=[tg.Step()], epsilon=1, unit="event", cells=4)
            >>> release = gauge.update([1, 2, 3, 4])["step"]
            >>> release.total().noise_std == 2 * release.noise_std[0]
            np.True_
        """
        if self.value.ndim == self.block:
            raise InvalidParameter(
                "Expected a release of several cells, got one without cells. There is nothing to "
                "add up. Take its value as it is."
            )
        summed = self.summed * self.value.shape[-1]
        return replace(self, value=self.value.sum(axis=-1), names=None, summed=summed)

    def _in_cells(self, pick: Callable[[Array], Array]) -> Self:
        return replace(self, value=pick(self.value))

    def _shaped(self, by_step: Array) -> Array:
        """Spread one number a step over the cells, without copying."""
        if not self.block:
            return np.broadcast_to(by_step[0], self.value.shape)
        column = by_step.reshape((-1,) + (1,) * (self.value.ndim - 1))
        return np.broadcast_to(column, self.value.shape)
