"""ThresholdedSum: sums of readings truncated at a threshold that the first of them give."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tidegauge.checks import exact, integer, shown
from tidegauge.errors import (
    InvalidInput,
    InvalidParameter,
    StreamEnded,
    UnsupportedCombination,
)
from tidegauge.mechanisms.measure import measure_threshold
from tidegauge.mechanisms.meter import Meter
from tidegauge.mechanisms.plan import GaugePlan
from tidegauge.mechanisms.reading import Reading
from tidegauge.mechanisms.threshold_rule import ThresholdRule
from tidegauge.mechanisms.totals import array_of
from tidegauge.mechanisms.turn import Turn, no_copies
from tidegauge.papers.perrier.plans import TREE, plans_of
from tidegauge.papers.perrier.ranges import range_of
from tidegauge.papers.perrier.threshold import BETA_LT, LAM, P, rule_of
from tidegauge.papers.system import grains_of, moved_by
from tidegauge.privacy.guarantee import ApproxDP
from tidegauge.privacy.unit import Event, unit_of
from tidegauge.strategies.decay import Running
from tidegauge.strategies.named import by_name
from tidegauge.strategies.strategy import MOST_STEPS, Float64, Int64

__all__ = ["ThresholdedSum"]

_MOST_FIRST = 1 << 26  # readings that are kept until the threshold is drawn


@final
class ThresholdedSum:
    r"""Releases the sum of all readings so far, each truncated at a private threshold.

    Nothing is released before step ``first``. There the threshold is taken from the readings so
    far, at the price ``share * epsilon`` and delta, and their truncated sum is released at the
    price of the rest of epsilon. From then on each reading is truncated at the threshold before
    anything else, and measured at the price of all of epsilon: it is another reading.

    Guarantee:
        (epsilon, delta)-DP for everything that is ever released, when one reading is replaced by
        any other in [0, upper], also when readings after the first ones were chosen after reading
        releases. Proof: ``docs/proofs/perrier.md``.

    Args:
        upper: The largest reading, B; 0 is the least.
        first: The time lag m. Some 55,000 are needed with the default p and lam: see
            :func:`~.budget.first_needed`.
        end: The last step, n; None: unknown, with another strategy than the paper's.
        epsilon: Of the whole.
        delta: Of the threshold, and so of the whole; None: 1 / end^2.
        share: The part of epsilon that the threshold spends; the text of the paper does not fix it.
        p: The share of readings to cut.
        lam: The quantile of ``lam * p`` is estimated.
        beta_lt: How often noise may move the threshold below that quantile.
        grain: Readings, threshold and sums are whole grains; None: upper / 2^20.
        strategy: What measures the readings after the first: ``"BinaryTree"``, the paper's; the
            name of another; None: the best there is for (epsilon, delta).
        unit: Who is protected: ``"event"`` only. An id may have readings on both sides of step
            ``first``, where both prices add up.

    Raises:
        InvalidParameter: A parameter is impossible.
        UnsupportedCombination: Another unit, or numbers that the proof does not cover.

    Cost:
        Privacy: epsilon and delta, all at once. Memory: 8 bytes a reading up to step ``first``,
        then what the strategy keeps. Time: 30 ms at step ``first``, and the choice of a strategy.

    Examples:
        >>> with ThresholdedSum(1440, first=300, end=1000, epsilon=1, grain=1) as trips:
        ...     released = trips.update_many([25] * 301)
        >>> int(np.isnan(released).sum())
        299

    References:
        Perrier, Asghar and Kaafar 2019, Mechanism 1, as corrected in ``docs/errata.md``.
    """

    def __init__(
        self,
        upper: float | Fraction,
        *,
        first: int,
        end: int | None,
        epsilon: float | Fraction,
        delta: float | Fraction | None = None,
        share: float | Fraction = Fraction(1, 2),
        p: float | Fraction = P,
        lam: float | Fraction = LAM,
        beta_lt: float | Fraction = BETA_LT,
        grain: float | Fraction | None = None,
        strategy: str | None = TREE,
        unit: Any = "event",
    ) -> None:
        if not isinstance(unit_of(unit), Event):
            raise UnsupportedCombination(
                f'Expected unit="event", got {shown(unit)}. An id with readings on both sides of '
                "the threshold would pay for both. Protect events, or give each of at most k "
                "events of an id epsilon / k and delta / (k e^epsilon)."
            )
        self._unit, self._most = range_of(upper, grain)
        why = "It is the last step. Leave it None with a strategy for streams without an end."
        self._end = None if end is None else integer("end", end, low=1, high=MOST_STEPS, why=why)
        high = min(_MOST_FIRST, MOST_STEPS if self._end is None else self._end)
        why = "Nothing is released before it, so it lies within the stream. Use first_needed()."
        self._first = integer("first", first, low=1, high=high, why=why)
        self._cost = ApproxDP(epsilon, self._delta(delta))
        why = "The threshold and the first sum both need a part of epsilon. Use 0.5."
        part = exact("share", share, above=0, below=1, why=why)
        self._rule = rule_of(part * self._cost.epsilon, self._cost.delta, p, lam, beta_lt)
        self._strategy = None if strategy is None else by_name(strategy)
        for most in (1, self._most):
            self._plans(most)  # refuses what does not fit, before any data
        self._draw: Callable[[ThresholdRule, Int64, int], int] = measure_threshold
        self._open: Callable[[GaugePlan], Meter] = Meter
        self._buffer: Int64 = np.zeros(self._first, np.int64)
        self._threshold: int | None = None
        self._sum = 0.0
        self._rest: tuple[Meter, Reading] | None = None
        self._step = 0
        self._turn = Turn("system")

    def _delta(self, delta: Any) -> Any:
        if delta is None and self._end is None:
            raise InvalidParameter(
                "Expected delta or end, got neither. delta defaults to 1 / end^2. Give one of them."
            )
        return Fraction(1, max(2, self._end or 0) ** 2) if delta is None else delta

    def _plans(self, most: int) -> tuple[GaugePlan, GaugePlan | None]:
        """The plans of the first sum and of the rest, for a threshold of ``most`` grains, > 0."""
        left = self._cost.epsilon - self._rule.epsilon
        return plans_of(self._cost, left, self._first, self._end, self._strategy, most)

    @property
    def source(self) -> str:
        """Where it stands in the paper."""
        return "Perrier, Asghar and Kaafar 2019, Mechanism 1"

    @property
    def step(self) -> int:
        """How many readings there were."""
        return self._step

    @property
    def first(self) -> int:
        """The time lag: the step of the first release."""
        return self._first

    @property
    def cost(self) -> ApproxDP:
        """What the system spends, all at once: the first readings and the others are disjoint."""
        return self._cost

    @property
    def threshold(self) -> Fraction | None:
        """The threshold in force, published; None before step ``first``."""
        return None if self._threshold is None else Fraction(self._threshold) / self._unit

    @property
    def sensitivity(self) -> Fraction:
        """How far one reading after the first moves all their measurements together.

        In L1, or L2 under Gaussian noise, in units of a reading; with the threshold in force, and
        with ``upper`` as long as there is none. 0 with a threshold of 0 or without such readings.
        """
        most = self._most if self._threshold is None else self._threshold
        rest = self._plans(most)[1] if most else None
        return Fraction(0) if rest is None else moved_by(rest) / self._unit

    def noise_std(self, step: int, threshold: float | Fraction | None = None) -> float:
        """Return the standard deviation of the released sum's noise at a step; reads no data.

        Args:
            step: From ``first`` on.
            threshold: In [0, upper], rounded up to the grain; None: the one in force.

        Raises:
            InvalidParameter: Nothing is released at this step, or no threshold is in force.
        """
        why = "Nothing is released before step first, nor after the last."
        last = self._end or MOST_STEPS
        step = integer("step", step, low=self._first, high=last, why=why)
        most = self._threshold if threshold is None else self._grains(threshold)
        if most is None:
            raise InvalidParameter(
                "Expected a threshold, got none before there is one. Noise is in proportion to "
                "it. Give the threshold that noise should be told for."
            )
        if not most:
            return 0.0
        first, rest = self._plans(most)
        variance = float(first.noise_std(Running(), [1])[0]) ** 2
        if step > self._first and rest is not None:
            variance += float(rest.noise_std(Running(), [step - self._first])[0]) ** 2
        return float(variance**0.5 / float(self._unit))

    def _grains(self, threshold: Any) -> int:
        why = "Readings are truncated at it. Give one up to upper."
        value = exact("threshold", threshold, why=why) * self._unit
        if not 0 <= value <= self._most:
            raise InvalidParameter(f"Expected threshold in [0, upper], got another. {why}")
        return -(-value.numerator // value.denominator)

    def update(self, reading: ArrayLike) -> Float64:
        """Take one reading and release the truncated sum; NaN before step ``first``.

        Args:
            reading: A real in [0, upper].

        Returns:
            float64 of shape ().

        Raises:
            InvalidInput: Not a reading of this range; the system is as it was.
            StreamEnded: The last step is reached; the system is as it was.
            LiveState: Closed, interrupted, forked, or in use by another thread.
        """
        value: Float64 = self._released(self._exact(array_of(reading, "readings"), 0))[0]
        return value

    def update_many(self, readings: ArrayLike) -> Float64:
        """Take a block of readings and release the truncated sum after each.

        Args:
            readings: Reals in [0, upper], shape (steps,).

        Returns:
            float64 of shape (steps,), NaN before step ``first``. Errors are those of
            :meth:`update`.
        """
        return self._released(self._exact(array_of(readings, "readings"), 1))

    def _exact(self, array: NDArray[Any], axes: int) -> Int64:
        """Readings in grains, shape (steps,), checked whole before anything changes."""
        if array.ndim != axes:
            raise InvalidInput(
                f"Expected readings of shape {'(steps,)' if axes else '()'}, got shape "
                f"{array.shape}. Every step has one reading. Use update for one step, update_many "
                "for a block."
            )
        return grains_of(array.reshape(-1), self._unit, self._most / self._unit)

    def _released(self, exact: Int64) -> Float64:
        with self._turn:
            if self._end is not None and self._step + len(exact) > self._end:
                raise StreamEnded(
                    f"Expected steps up to {self._end}, got {self._step + len(exact)}. The "
                    "guarantee was computed for these steps only. Make a system with a later end."
                )
            out = np.full(len(exact), np.nan)
            early = min(len(exact), max(0, self._first - self._step))
            if early:
                self._buffer[self._step : self._step + early] = exact[:early]
                if self._step + early == self._first:
                    self._begin()
                    out[early - 1] = self._sum
            if early < len(exact):
                out[early:] = self._sum + self._decoded(exact[early:])
            self._step += len(exact)
        return out

    def _begin(self) -> None:
        """Draw the threshold, and measure the first readings' truncated sum; forget them."""
        threshold = self._draw(self._rule, self._buffer, self._most)
        if threshold:  # every reading truncated at 0 is 0
            first, rest = self._plans(threshold)
            total = np.minimum(self._buffer, threshold).sum()
            rows = self._open(first).advance(np.array([[total]]))
            noisy = Reading(first, [Running()]).decode(rows, 1)[0, 0, 0]
            self._sum = float(noisy) / float(self._unit)
            if rest is not None:
                self._rest = self._open(rest), Reading(rest, [Running()])
        self._threshold = threshold
        self._buffer[:] = 0
        self._buffer = self._buffer[:0]

    def _decoded(self, exact: Int64) -> Float64:
        """The sums since step ``first``, shape (steps,)."""
        if self._rest is None:
            return np.zeros(len(exact))
        meter, reading = self._rest
        assert self._threshold is not None
        rows = meter.advance(np.minimum(exact, self._threshold).reshape(-1, 1))
        sums: Float64 = reading.decode(rows, len(exact))[0, :, 0] / float(self._unit)
        return sums

    def close(self) -> None:
        """Erase the key and the first readings; nothing more is released."""
        self._turn.end()
        self._buffer[:] = 0
        if self._rest is not None:
            self._rest[0].close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    __copy__ = __deepcopy__ = __reduce__ = __reduce_ex__ = __getstate__ = no_copies("system")

    def __repr__(self) -> str:
        return f"ThresholdedSum(first={self._first}, step={self._step}, cost={self._cost})"
