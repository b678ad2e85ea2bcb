"""Releases: published numbers with their error, known before any data was read."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegauge.checks import shown
from tidegauge.errors import InvalidParameter
from tidegauge.mechanisms.plan import GaugePlan

__all__ = ["Release"]

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Release:
    """One view's published values over a block of steps, with their intervals.

    Everything but ``value`` is known from the plan alone and is computed when it is asked for.
    A release is public: it holds no state of the gauge and may be stored, copied and shown.

    Attributes:
        plan: The plan that produced it.
        view: Name of the view.
        first_step: The first step in it, counted from 1.
        value: Unbiased estimates, may be negative; float64 of shape (cells,) for one step,
            (steps, cells) for a block; without the cell axis for a scalar gauge or one cell.
        names: The names of the cells; None where they have none.
        block: Whether ``value`` has an axis of steps.

    Examples:
        >>> import tidegauge as tg
        >>> gauge = tg.Gauge(views=[tg.Running()], epsilon=1, unit="event")
        >>> release = gauge.update(5)["running"]
        >>> bool(release.lower < release.value < release.upper), float(release.noise_std) < 40
        (True, True)
    """

    plan: GaugePlan = field(repr=False)
    view: str
    first_step: int
    value: Array = field(repr=False)
    names: tuple[str, ...] | None = field(default=None, repr=False)
    block: bool = field(default=False, repr=False)

    @classmethod
    def _of(cls, fields: dict[str, Any]) -> Release:
        """Make a release at once: a frozen dataclass sets its fields one by one, 2 us more."""
        release = object.__new__(cls)
        release.__dict__.update(fields)
        return release

    @property
    def steps(self) -> Array:
        """The step numbers, counted from 1; shape (steps,)."""
        return np.arange(self.first_step, self.first_step + (len(self.value) if self.block else 1))

    @property
    def level(self) -> float:
        """The chance that intervals cover the true values, over the noise alone."""
        return self.plan.level

    @property
    def band(self) -> str:
        """``"pointwise"``: the level is each interval's; ``"simultaneous"``: a whole curve's."""
        return self.plan.band

    @property
    def noise_std(self) -> Array:
        """Standard deviation of the noise, in the shape of ``value``."""
        return self._shaped(self.plan.noise_std(self.view, self.steps))

    @property
    def half_width(self) -> Array:
        """Half the width of the interval, in the shape of ``value``."""
        return self._shaped(self.plan.half_width(self.view, self.steps))

    @property
    def lower(self) -> Array:
        """Lower end of the interval; speaks of noise only, not of clamped totals."""
        return np.asarray(self.value - self.half_width)

    @property
    def upper(self) -> Array:
        """Upper end of the interval; speaks of noise only, not of clamped totals."""
        return np.asarray(self.value + self.half_width)

    @property
    def complete(self) -> Array:
        """False while a window is not yet full; shape (steps,)."""
        return np.asarray(self.steps >= self.plan.full_after(self.view))

    def cell(self, cell: str | int) -> Release:
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
        return replace(self, value=self.value[..., cell], names=None)

    def columns(self) -> dict[str, Array]:
        """Return the release as columns of equal length, one row a step and cell: a data frame.

        The columns are step, cell (a name or an index; absent for a scalar), value, noise_std,
        lower and upper.

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
        for name in ("value", "noise_std", "lower", "upper"):
            columns[name] = np.ravel(getattr(self, name))
        return columns

    def __str__(self) -> str:
        numbers = np.array2string(self.value, precision=1, suppress_small=True, threshold=20)
        return f"{self.view} from step {self.first_step}: {numbers}"

    def __len__(self) -> int:
        return len(self.steps)

    def _shaped(self, by_step: Array) -> Array:
        """Spread one number a step over the cells, without copying."""
        if not self.block:
            return np.broadcast_to(by_step[0], self.value.shape)
        column = by_step.reshape((-1,) + (1,) * (self.value.ndim - 1))
        return np.broadcast_to(column, self.value.shape)
