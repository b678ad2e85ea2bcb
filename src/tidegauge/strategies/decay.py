r"""Decays: the weight g(k) that a view gives to what happened k steps ago.

A view at step t is ``sum_k g(k) x_(t-k)``. Decays come in three forms, and a decoder needs one
routine for each:

* *pole form* (:data:`PoleDecay`): ``g(k) = sum_j weights[j] (1 - gaps[j])^k``, from ``.poles``;
* *finite form* (:data:`FiniteDecay`): ``g(k) = taps[k]``, and 0 beyond, from ``.taps``;
* :class:`Window`: ones, too many to be written out; a difference of two running sums.

Poles are carried as gaps, one minus the pole, so that nothing is lost near 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from tidegauge.checks import exact, integer, shown
from tidegauge.errors import InvalidParameter
from tidegauge.strategies.custom import Custom
from tidegauge.strategies.polynomial import Polynomial
from tidegauge.strategies.weights import LONGEST_REACH, fixed, lags, padded, plain, short

__all__ = [
    "Custom",
    "Decay",
    "Exponential",
    "FiniteDecay",
    "PoleDecay",
    "Polynomial",
    "Running",
    "Step",
    "Window",
]

Float64 = NDArray[np.float64]

_LEAST_GAP = Fraction(1, LONGEST_REACH)


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

    Args:
        half_life: In steps; from about 0.02 to about 7.6e11.
        factor: Strictly between 0 and 1; a float is read by its shortest decimal form.

    Raises:
        InvalidParameter: Not exactly one of the two is given, or it is out of range.

    Examples:
        >>> Exponential(half_life=1).weights(3)
        array([1.  , 0.5 , 0.25])
        >>> Exponential(factor=1 - 1e-12).gap
        1e-12
        >>> Exponential(half_life=1) == Exponential(factor=0.5)
        True
    """

    half_life: float | Fraction | None = field(default=None, compare=False)
    factor: float | Fraction | None = field(default=None, compare=False)
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

    @property
    def name(self) -> str:
        """The name of a view of this decay where none is given."""
        if self.half_life is not None:
            return f"half_life_{short(self.half_life)}"
        return f"factor_{short(self.factor)}"

    @cached_property
    def poles(self) -> tuple[Float64, Float64]:
        """``(gaps, weights)``, each of shape (1,)."""
        return fixed(np.array([self.gap])), fixed(np.ones(1))

    def weights(self, n: int) -> Float64:
        """Return g(0..n-1)."""
        k = np.arange(lags(n), dtype=np.float64)
        return np.asarray(np.exp(k * math.log1p(-self.gap)))


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


PoleDecay = Running | Exponential | Polynomial
"""Decays with ``.poles``: sums of exponentials."""

FiniteDecay = Step | Custom
"""Decays with ``.taps``: short lists of weights."""

Decay = Step | Running | Window | Exponential | Polynomial | Custom
