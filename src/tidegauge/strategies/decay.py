r"""Decays: the weight g(k) that a view gives to what happened k steps ago.

A view at step t is ``sum_k g(k) x_(t-k)``; steps before the first count as empty. Decays come in
four forms, and a decoder needs one routine for each:

* *pole form* (:data:`PoleDecay`): ``g(k) = sum_j weights[j] (1 - gaps[j])^k``, from ``.poles``;
* *finite form* (:data:`FiniteDecay`): ``g(k) = taps[k]``, and 0 beyond, from ``.taps``;
* :class:`Window`: ones, too many to be written out; a difference of two running sums;
* :class:`Difference`: any of the others minus itself some steps earlier.

Poles are carried as gaps, one minus the pole, so that nothing is lost near 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, final

import numpy as np

from tidegauge.checks import exact, integer, shown
from tidegauge.errors import InvalidParameter
from tidegauge.strategies.custom import Custom
from tidegauge.strategies.polynomial import Polynomial
from tidegauge.strategies.weights import LONGEST_REACH, Float64, fixed, lags, padded, plain, short

__all__ = [
    "Custom",
    "Decay",
    "Difference",
    "Exponential",
    "FiniteDecay",
    "PlainDecay",
    "PoleDecay",
    "Polynomial",
    "Running",
    "Step",
    "Window",
    "full_after",
]


_LEAST_GAP = Fraction(1, LONGEST_REACH)
_LONGEST_LAG = 1 << 20  # where the weights of a difference are written out


@final
@dataclass(frozen=True)
class Step:
    """Each step alone: g(0) = 1.

    Examples:
        >>> Step().weights(3)
        array([1., 0., 0.])
    """

    @property
    def name(self) -> str:
        """The name of a view of this decay where none is given."""
        return "step"

    @cached_property
    def taps(self) -> Float64:
        """g(0), the only weight; shape (1,)."""
        return fixed(np.ones(1))

    def weights(self, n: int) -> Float64:
        """Return g(0..n-1)."""
        return padded(self.taps, lags(n))


@final
@dataclass(frozen=True)
class Running:
    """The sum of everything so far: g(k) = 1.

    Examples:
        >>> Running().weights(3)
        array([1., 1., 1.])
    """

    @property
    def name(self) -> str:
        """The name of a view of this decay where none is given."""
        return "running"

    @cached_property
    def poles(self) -> tuple[Float64, Float64]:
        """``(gaps, weights)``: one pole at 1, of gap 0."""
        return fixed(np.zeros(1)), fixed(np.ones(1))

    def weights(self, n: int) -> Float64:
        """Return g(0..n-1)."""
        return np.ones(lags(n))


@final
@dataclass(frozen=True)
class Window:
    """The sum of the last ``steps`` steps: g(k) = 1 for k < steps.

    ``Window(1)`` is allowed and gives the values of :class:`Step`.

    Args:
        steps: Length, in steps; at most 2^40.

    Raises:
        InvalidParameter: ``steps`` is not an integer in the range.

    Examples:
        >>> Window(2).weights(3)
        array([1., 1., 0.])
    """

    steps: int

    def __post_init__(self) -> None:
        steps = integer(
            "steps",
            self.steps,
            low=1,
            high=LONGEST_REACH,
            why="A window is a whole number of steps. Use Running() for everything so far.",
        )
        object.__setattr__(self, "steps", steps)

    @property
    def name(self) -> str:
        """The name of a view of this decay where none is given."""
        return f"window_{self.steps}"

    def weights(self, n: int) -> Float64:
        """Return g(0..n-1)."""
        return (np.arange(lags(n)) < self.steps).astype(np.float64)


@final
@dataclass(frozen=True, kw_only=True)
class Exponential:
    """g(k) = factor^k; ``half_life`` is the number of steps in which a weight halves.

    Two exponentials are equal if their gaps are: however the decay was stated.

    As an average, g(k) = (1 - factor) factor^k: weights that sum to 1 over an endless past. Steps
    before the first count as empty, so at step t the weights sum to 1 - factor^t only; divide by
    that for the average over the steps there are. ``complete`` is false while it is below 0.99.

    Args:
        half_life: In steps; from about 0.02 to about 7.6e11.
        factor: Strictly between 0 and 1; a float is read by its shortest decimal form.
        average: An average per step in place of a total.

    Raises:
        InvalidParameter: Not exactly one of the two is given, or it is out of range.

    Examples:
        >>> Exponential(half_life=1).weights(3)
        array([1.  , 0.5 , 0.25])
        >>> Exponential(factor=1 - 1e-12).gap
        1e-12
        >>> Exponential(half_life=1) == Exponential(factor=0.5)
        True
        >>> Exponential(half_life=1, average=True).weights(3)
        array([0.5  , 0.25 , 0.125])
    """

    half_life: float | Fraction | None = field(default=None, compare=False)
    factor: float | Fraction | None = field(default=None, compare=False)
    average: bool = False
    gap: float = field(init=False, repr=False)
    """1 - factor, to full relative precision."""

    def __post_init__(self) -> None:
        if (self.half_life is None) == (self.factor is None):
            raise InvalidParameter(
                "Expected exactly one of half_life and factor, got "
                f"half_life={shown(self.half_life)}, factor={shown(self.factor)}. "
                "Each of them says all. Give one."
            )
        if self.half_life is not None:
            object.__setattr__(self, "half_life", plain(self.half_life))
            gap = _half_life_gap(self.half_life)
        else:
            object.__setattr__(self, "factor", plain(self.factor))
            gap = _factor_gap(self.factor)
        object.__setattr__(self, "gap", gap)
        if not isinstance(self.average, bool):
            raise InvalidParameter(
                f"Expected average to be True or False, got {shown(self.average)}. A total and an "
                "average differ by a factor. Write average=True for weights that sum to 1."
            )

    @property
    def name(self) -> str:
        """The name of a view of this decay where none is given."""
        end = "_average" * self.average
        if self.half_life is not None:
            return f"half_life_{short(self.half_life)}{end}"
        return f"factor_{short(self.factor)}{end}"

    @property
    def scale(self) -> float:
        """g(0): one minus the factor of an average, else 1."""
        return self.gap if self.average else 1.0

    @cached_property
    def poles(self) -> tuple[Float64, Float64]:
        """``(gaps, weights)``, each of shape (1,)."""
        return fixed(np.array([self.gap])), fixed(np.array([self.scale]))

    def weights(self, n: int) -> Float64:
        """Return g(0..n-1)."""
        k = np.arange(lags(n), dtype=np.float64)
        return np.asarray(self.scale * np.exp(k * math.log1p(-self.gap)))


def _half_life_gap(value: Any) -> float:
    length = exact(
        "half_life",
        value,
        above=0,
        why="A half-life is a positive number of steps. Use Step() for no memory at all.",
    )
    gap = -math.expm1(-math.log(2) / float(length)) if float(length) > 0 else 1.0
    return _checked_gap("half_life", value, Fraction(gap))


def _factor_gap(value: Any) -> float:
    factor = exact(
        "factor",
        value,
        above=0,
        below=1,
        why="Weights fall by this factor each step. Use Step() for 0 and Running() for 1.",
    )
    return _checked_gap("factor", value, 1 - factor)


def _checked_gap(name: str, value: object, gap: Fraction) -> float:
    if float(gap) >= 1:
        raise InvalidParameter(
            f"Expected a decay that keeps something of the last step, got {name}={shown(value)}. "
            "The factor is below the resolution of a float. Use Step()."
        )
    if float(gap) < float(_LEAST_GAP):
        raise InvalidParameter(
            "Expected a decay that loses at least 2**-40 of its weight each step, got "
            f"{name}={shown(value)}. It would lose nothing within any stream. Use Running()."
        )
    return float(gap)


@final
@dataclass(frozen=True)
class Difference:
    """A view's change: its value minus its value ``lag`` steps earlier, g(k) = f(k) - f(k - lag).

    Week on week, say. Up to step ``lag`` there is no earlier value, and the view itself is given;
    ``complete`` says so. It has an error and an interval of its own: two intervals must not be
    subtracted.

    Args:
        view: What changes; anything but a running sum, whose change is a window, and another
            difference.
        lag: How many steps earlier; at most 2^40, of :class:`Step` and :class:`Custom` 2^20.

    Raises:
        InvalidParameter: ``view`` is no such decay, or ``lag`` is not an integer in the range.

    Examples:
        >>> Difference(Window(2), lag=2).weights(5)
        array([ 1.,  1., -1., -1.,  0.])
        >>> Difference(Window(168), 168).name
        'difference_168_of_window_168'
    """

    view: Step | Window | Exponential | Polynomial | Custom
    lag: int

    def __post_init__(self) -> None:
        of: object = self.view
        if isinstance(of, Running):
            raise InvalidParameter(
                f"Expected a difference of another view, got one of Running(). How much a running "
                f"sum has grown is a window. Write Window({shown(self.lag)})."
            )
        if not isinstance(of, PlainDecay):
            raise InvalidParameter(
                f"Expected a difference of a decay, got {shown(of)}. Differences of "
                "differences are not available. Write Difference(Window(168), lag=168)."
            )
        why = "The earlier value is so many steps back. Give a whole number of steps."
        most = _LONGEST_LAG if isinstance(self.view, FiniteDecay) else LONGEST_REACH
        lag = integer("lag", self.lag, low=1, high=most, why=why)
        object.__setattr__(self, "lag", lag)

    @property
    def name(self) -> str:
        """The name of a view of this decay where none is given."""
        return f"difference_{self.lag}_of_{self.view.name}"

    @cached_property
    def taps(self) -> Float64:
        """All weights of a difference of :class:`Step` or :class:`Custom`, which are few."""
        assert isinstance(self.view, FiniteDecay), "other views have weights without an end"
        return fixed(self.weights(len(self.view.taps) + self.lag))

    def weights(self, n: int) -> Float64:
        """Return g(0..n-1)."""
        weights = np.array(self.view.weights(n))
        weights[self.lag :] -= self.view.weights(max(0, n - self.lag))
        return weights


PoleDecay = Running | Exponential | Polynomial
"""Decays with ``.poles``: sums of exponentials."""

FiniteDecay = Step | Custom
"""Decays with ``.taps``: short lists of weights."""

PlainDecay = Step | Running | Window | Exponential | Polynomial | Custom
"""Every decay but a difference."""

Decay = PlainDecay | Difference

_NEARLY_ALL = 0.99  # of an average's weights


def full_after(decay: Decay) -> int:
    """Return the first step, from 1, at which a view has seen all that it weighs.

    A total that never forgets is complete from the first step. An average is, once the weights
    so far sum to 0.99; a difference, once there is an earlier value and that is complete.

    Examples:
        >>> full_after(Window(7)), full_after(Difference(Window(7), 7)), full_after(Running())
        (7, 14, 1)
        >>> full_after(Exponential(half_life=24, average=True))
        160
    """
    match decay:
        case Difference(view=view, lag=lag):
            return lag + full_after(view)
        case Window(steps=steps):
            return steps
        case Step() | Custom():
            return len(decay.taps)
        case Exponential(average=True, gap=gap):
            return max(1, math.ceil(math.log1p(-_NEARLY_ALL) / math.log1p(-gap)))
        case _:
            return 1
