"""What every system of the papers has in common: it measures reals and releases one decay of them.

A system is thin: it names a strategy, a decay and a guarantee. Noise, sensitivity, encoding and
decoding are those of any gauge, and noise meets data in ``mechanisms/measure.py`` alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tidegauge.checks import integer, shown
from tidegauge.errors import InvalidInput, LiveState
from tidegauge.mechanisms.design import design
from tidegauge.mechanisms.meter import Meter
from tidegauge.mechanisms.plan import GaugePlan
from tidegauge.mechanisms.reading import Reading
from tidegauge.mechanisms.request import request_of
from tidegauge.mechanisms.totals import array_of
from tidegauge.mechanisms.turn import no_copies
from tidegauge.privacy.costs import Cost, GaussianCost
from tidegauge.privacy.guarantee import Guarantee
from tidegauge.privacy.unit import Contributions
from tidegauge.strategies.decay import Decay
from tidegauge.strategies.named import ByName
from tidegauge.strategies.strategy import MOST_STEPS, Float64, Int64, Norm

__all__ = ["GRAINS", "System", "grains_of", "moved_by", "plan_of"]

GRAINS = 1 << 20
"""Grains in 1: readings in [0, 1] are rounded to multiples of 2^-20 before anything else."""


def plan_of(
    decay: Decay,
    *,
    epsilon: float | Fraction | None,
    guarantee: Guarantee | None,
    cells: int,
    strategy: ByName | None,
    largest: int = GRAINS,
    neighboring_relation: str | None = None,
    max_cells: int = 1,
    changed_steps: int = 1,
    either_sign: bool = False,
    max_per_step: int | None = None,
    horizon: int | None = None,
    end: int | None = None,
) -> GaugePlan:
    """Return the plan of a system that releases one decay.

    Args:
        decay: What is released.
        epsilon: Pure epsilon-DP; this or ``guarantee``.
        guarantee: Any other guarantee.
        cells: Independent streams side by side.
        strategy: What measures them; None: the best there is.
        largest: The largest reading, in grains.
        neighboring_relation: Left out: one reading of one cell is replaced by another in [0,
            largest]. Of one cell this is ``"replace_one"``; where there are several, a reading
            cannot move to another cell, so that it changes no more than ``"add_or_remove_one"``.
        max_cells: Most cells that one reading touches.
        changed_steps: At how many different steps one protected unit changes a reading.
        either_sign: Its changes may go up at one step and down at another, which
            ``"replace_one"`` holds already.
        max_per_step: Totals are clamped to this many grains; left out: one reading's.
        horizon: Steps to design for.
        end: The last step.

    Raises:
        InvalidParameter: A parameter is impossible.
        UnsupportedCombination: The strategy does not serve the decay under this guarantee.
    """
    if neighboring_relation is None:
        neighboring_relation = "replace_one" if cells == 1 else "add_or_remove_one"
    request = request_of(
        views={"released": decay},
        unit="event" if changed_steps == 1 else Contributions(changed_steps, min_separation=1),
        epsilon=epsilon,
        guarantee=guarantee,
        cells=cells,
        horizon=horizon,
        end=end,
        neighboring_relation=neighboring_relation,
        max_change=(-largest, largest) if either_sign else largest,
        max_cells=max_cells,
        max_per_step=largest if max_per_step is None else max_per_step,
        strategy=strategy,
    )
    return design(request)


def moved_by(plan: GaugePlan) -> Fraction:
    """Return how far one reading moves all measurements of a plan, in grains; never too little."""
    norm = Norm.L2 if isinstance(plan.cost, GaussianCost) else Norm.L1
    strategy = plan.strategy
    return strategy.sensitivity(norm, plan.neighbors) / Fraction(2) ** strategy.lattice_bits


class System(ABC):
    """One system of a paper: exact readings go in, noisy values of one decay come out.

    Its budget is spent once, when it is made, and covers everything it ever releases, also when
    later readings were chosen after reading earlier releases. A system is live: it cannot be
    copied, pickled or used in a fork, and one that was interrupted inside a block goes no further.

    Subclasses are final, set themselves up by :meth:`_start` and name their source.

    Examples:
        >>> from tidegauge.papers.bolot import WindowSum
        >>> system = WindowSum(7, epsilon=1)
        >>> isinstance(system, System), system.update_many([1, 0, 0.5]).shape, system.step
        (True, (3,), 3)
    """

    _plan: GaugePlan
    _meter: Meter
    _reading: Reading
    _unit: int | Fraction
    _upper: int | Fraction
    _scalar: bool

    def _start(
        self, plan: GaugePlan, *, unit: int | Fraction = GRAINS, upper: int | Fraction = 1
    ) -> None:
        """Begin.

        Args:
            plan: Of one view.
            unit: Grains in 1, in which values are released.
            upper: The largest reading; 0 is the least.
        """
        self._plan, self._unit, self._upper = plan, unit, upper
        self._scalar = plan.neighbors.known_cells == 1
        self._meter = Meter(plan)
        self._reading = Reading(plan, [self.decay])

    @property
    @abstractmethod
    def source(self) -> str:
        """The paper, and where in it the system stands."""

    @property
    def plan(self) -> GaugePlan:
        """Everything that affects privacy, chosen before data; public."""
        return self._plan

    @property
    def decay(self) -> Decay:
        """What is released: the weight of each step of the past."""
        return self._plan.views[0][1]

    @property
    def cells(self) -> int:
        """How many streams are measured side by side."""
        return self._plan.neighbors.known_cells

    @property
    def step(self) -> int:
        """How many steps have been released."""
        return self._reading.step

    @property
    def cost(self) -> Cost:
        """What the system spends, all at once."""
        return self._plan.cost

    @property
    def sensitivity(self) -> Fraction:
        """How far one reading moves all measurements together, in L1 or (Gaussian noise) L2.

        In units of a reading; never below the truth.
        """
        return moved_by(self._plan) / self._unit

    def update(self, reading: ArrayLike) -> Float64:
        """Measure one step and release the decayed sum.

        Args:
            reading: A real in [0, upper], where upper is 1 unless told; of several cells, shape
                (cells,).

        Returns:
            float64 of shape (), or (cells,).

        Raises:
            InvalidInput: Not readings of this shape and range; the system is as it was.
            StreamEnded: The last step is reached; the system is as it was.
            LiveState: Interrupted, forked, or in use by another thread.
        """
        value: Float64 = self._released(self._exact(reading, block=False))[0]
        return value

    def update_many(self, readings: ArrayLike) -> Float64:
        """Measure a block of steps and release the decayed sum at each.

        Args:
            readings: Reals in [0, upper] as for :meth:`update`, shape (steps,); of several cells,
                (steps, cells).

        Returns:
            float64 of the same shape. Errors are those of :meth:`update`.
        """
        return self._released(self._exact(readings, block=True))

    def noise_std(self, step: int) -> float:
        """Return the standard deviation of the released value's noise at a step; reads no data.

        Args:
            step: Counted from 1.

        Raises:
            InvalidParameter: There is no such step.
        """
        return float(self._plan.noise_std(self.decay, [self._checked(step)])[0]) / float(self._unit)

    def error_at(self, gamma: float, step: int) -> float:
        """Return what the noise at a step exceeds with probability at most ``gamma``.

        The papers' (delta, gamma)-utility, computed from the law of the noise, not from a tail
        bound.

        Args:
            gamma: In [1e-9, 1 - 1e-9].
            step: Counted from 1.

        Raises:
            InvalidParameter: A number is out of range.
        """
        plan = self._plan.with_intervals(level=1 - gamma, band="pointwise")
        return float(plan.half_width(self.decay, [self._checked(step)])[0]) / float(self._unit)

    def close(self) -> None:
        """Erase the key; nothing more can be measured. ``with`` a system does it at the end."""
        self._meter.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _exact(self, readings: ArrayLike, *, block: bool) -> Int64:
        """The readings in grains, shape (steps, cells), checked whole before anything changes."""
        return grains_of(self._shaped(readings, block=block), self._unit, self._upper)

    def _shaped(self, readings: ArrayLike, *, block: bool) -> NDArray[Any]:
        """An array of shape (steps, cells)."""
        array = array_of(readings, "readings")
        wanted = ("steps",) * block + (() if self._scalar else (self.cells,))
        if array.ndim != len(wanted) or (not self._scalar and array.shape[-1] != self.cells):
            named = ", ".join(map(str, wanted)) + "," * (len(wanted) == 1)
            raise InvalidInput(
                f"Expected readings of shape ({named}), got shape {array.shape}. Every step has "
                "one reading for every cell. Use update for one step, update_many for a block."
            )
        return array.reshape(-1, self.cells)

    def _released(self, exact: Int64) -> Float64:
        """Measure checked grains, shape (steps, cells), and decode them."""
        if self._meter.step != self._reading.step:
            raise LiveState(
                "Expected a system between two blocks, got one that was interrupted inside a "
                "block. Its noise is ahead of its releases. Make another system, at its own cost."
            )
        measured = self._meter.advance(exact)
        values: Float64 = self._reading.decode(measured, len(exact))[0] / float(self._unit)
        return values[:, 0] if self._scalar else values

    def _checked(self, step: int) -> int:
        last = self._plan.last_step or MOST_STEPS
        why = "Steps are counted from 1, and nothing is measured after the last."
        return integer("step", step, low=1, high=last, why=why)

    __copy__ = __deepcopy__ = __reduce__ = __reduce_ex__ = __getstate__ = no_copies("system")

    def __repr__(self) -> str:
        return f"{type(self).__name__}(cells={self.cells}, step={self.step}, cost={self.cost})"


def grains_of(
    readings: NDArray[Any], unit: int | Fraction = GRAINS, upper: int | Fraction = 1
) -> Int64:
    """Return reals in [0, upper] in grains, rounded to the nearest.

    Two of them are never further apart than ``unit * upper``, which is a whole number.

    Args:
        readings: Of any shape.
        unit: Grains in 1.
        upper: The largest reading.

    Raises:
        InvalidInput: Not real numbers in [0, upper]; no value is shown.
    """
    span = f"[0, {shown(upper)}]"
    if readings.dtype.kind not in "biuf":
        raise InvalidInput(
            f"Expected readings that are real numbers, got dtype {readings.dtype}. Noise is made "
            f"for numbers in {span}. Convert them first."
        )
    largest = float(upper)
    if readings.size and not ((readings >= 0) & (readings <= largest)).all():  # false of NaN too
        raise InvalidInput(
            f"Expected readings in {span}, got one outside, or one that is no number. Noise is "
            f"made for a change of at most {shown(upper)}. Scale by the declared range first, or "
            "clamp to it, and drop what is missing as 0."
        )
    exact: Int64 = np.rint(readings.astype(np.float64) * float(unit)).astype(np.int64)
    return np.minimum(np.ascontiguousarray(exact), int(unit * upper))
