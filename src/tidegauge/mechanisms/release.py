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
    """

    plan: GaugePlan = field(repr=False)
    view: str
    first_step: int
    value: Array = field(repr=False)
    names: tuple[str, ...] | None = field(default=None, repr=False)
    block: bool = field(default=False, repr=False)

    @classmethod
    def _of(cls, **fields: Any) -> Release:
        """Make a release at once: a frozen dataclass sets its fields one by one, 2 us more."""
        release = object.__new__(cls)
        vars(release).update(fields)
        return release

    @property
    def steps(self) -> Array:
        """The step numbers, counted from 1; shape (steps,)."""
        return np.arange(self.first_step, self.first_step + (len(self.value) if self.block else 1))

    @property
    def level(self) -> float:
        """The chance that one interval covers the true value, over the noise alone."""
        return self.plan.level

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
        """Lower end of the pointwise interval; speaks of noise only, not of clamped totals."""
        return np.asarray(self.value - self.half_width)

    @property
    def upper(self) -> Array:
        """Upper end of the pointwise interval; speaks of noise only, not of clamped totals."""
        return np.asarray(self.value + self.half_width)

    @property
    def complete(self) -> Array:
        """False while a window is not yet full; shape (steps,)."""
        return np.asarray(self.steps >= self.plan.full_after(self.view))

    def cell(self, name: str) -> Release:
        """Return the release of one named cell, without the cell axis.

        Raises:
            InvalidParameter: There is no cell of this name.
        """
        if self.names is None or name not in self.names:
            raise InvalidParameter(
                f"Expected the name of a cell, got {shown(name)}. There is nothing to show for it. "
                f"Use one of {shown(list(self.names or ()))}."
            )
        value = self.value[..., self.names.index(name)]
        return replace(self, value=value, names=None)

    def __len__(self) -> int:
        return len(self.steps)

    def _shaped(self, by_step: Array) -> Array:
        """Spread one number a step over the cells, without copying."""
        if not self.block:
            return np.broadcast_to(by_step[0], self.value.shape)
        column = by_step.reshape((-1,) + (1,) * (self.value.ndim - 1))
        return np.broadcast_to(column, self.value.shape)
