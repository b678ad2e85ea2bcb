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
from tidegauge.strategies.polynomial import exponential_sum

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

_MOST_STEPS = 1 << 40
_MOST_TAPS = 1 << 16
_LEAST_GAP = Fraction(1, _MOST_STEPS)
_TAP_RANGE = 1e100


def _fixed(array: Float64) -> Float64:
    """The array, which nobody can change any more."""
    array.flags.writeable = False
    return array


def _lags(n: int) -> int:
    return integer("n", n, low=0, high=_MOST_STEPS)


def _short(value: Any) -> str:
    """Return a number as it stands in a name: 24, 0.5, 1e-06."""
    number = float(value)
    return str(int(number)) if number.is_integer() and abs(number) < 1e16 else repr(number)


def _plain(value: Any) -> Any:
    """Return a NumPy scalar as the Python number it holds, and everything else as it is."""
    return value.item() if isinstance(value, np.generic) else value


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
        return _fixed(np.ones(1))

    def weights(self, n: int) -> Float64:
        """Return g(0..n-1)."""
        return _padded(self.taps, _lags(n))


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
        return _fixed(np.zeros(1)), _fixed(np.ones(1))

    def weights(self, n: int) -> Float64:
        """Return g(0..n-1)."""
        return np.ones(_lags(n))


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
            high=_MOST_STEPS,
            why="A window is a whole number of steps. Use Running() for everything so far.",
        )
        object.__setattr__(self, "steps", steps)

    @property
    def name(self) -> str:
        """The name of a view of this decay where none is given."""
        return f"window_{self.steps}"

    def weights(self, n: int) -> Float64:
        """Return g(0..n-1)."""
        return (np.arange(_lags(n)) < self.steps).astype(np.float64)


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
            object.__setattr__(self, "half_life", _plain(self.half_life))
            gap = _half_life_gap(self.half_life)
        else:
            object.__setattr__(self, "factor", _plain(self.factor))
            gap = _factor_gap(self.factor)
        object.__setattr__(self, "gap", gap)

    @property
    def name(self) -> str:
        """The name of a view of this decay where none is given."""
        if self.half_life is not None:
            return f"half_life_{_short(self.half_life)}"
        return f"factor_{_short(self.factor)}"

    @cached_property
    def poles(self) -> tuple[Float64, Float64]:
        """``(gaps, weights)``, each of shape (1,)."""
        return _fixed(np.array([self.gap])), _fixed(np.ones(1))

    def weights(self, n: int) -> Float64:
        """Return g(0..n-1)."""
        k = np.arange(_lags(n), dtype=np.float64)
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


@final
@dataclass(frozen=True)
class Polynomial:
    """g(k) = (k + 1)^-c, implemented as a sum of exponentials.

    The power law itself would need the whole stream in memory. The exponentials are within
    ``error`` (at most 0.5 %, relative) of it up to ``reach``, or up to where g falls below 2^-53;
    beyond, they fall faster. Every std and interval is of these implemented weights.

    Args:
        c: Exponent, in [0.01, 16].
        reach: Largest age in steps at which the weights are right; at most 2^40.

    Raises:
        InvalidParameter: A parameter is out of range.

    Examples:
        >>> abs(Polynomial(1).weights(10)[9] - 0.1) < 0.005 * 0.1
        np.True_
    """

    c: float
    reach: int = 1 << 20

    def __post_init__(self) -> None:
        why = "Use Running() for no decay, Step() or Exponential() for a steeper one."
        c = exact("c", self.c, above=0, why=why)
        if not Fraction(1, 100) <= c <= 16:
            raise InvalidParameter(f"Expected c in [0.01, 16], got c={shown(self.c)}. {why}")
        object.__setattr__(self, "c", float(c))
        reach = integer(
            "reach", self.reach, low=1, high=_MOST_STEPS, why="Give the horizon, in steps."
        )
        object.__setattr__(self, "reach", reach)

    @property
    def name(self) -> str:
        """The name of a view of this decay where none is given."""
        return f"polynomial_{_short(self.c)}"

    @cached_property
    def poles(self) -> tuple[Float64, Float64]:
        """``(gaps, weights)`` of the exponentials; computed at first use."""
        gaps, weights, _ = self._terms
        return _fixed(gaps.copy()), _fixed(weights.copy())

    @property
    def error(self) -> float:
        """Largest relative error of the implemented weights up to the reach, as measured."""
        return self._terms[2]

    @cached_property
    def _terms(self) -> tuple[Float64, Float64, float]:
        return exponential_sum(self.c, self.reach)

    def weights(self, n: int) -> Float64:
        """Return the implemented g(0..n-1)."""
        gaps, weights, _ = self._terms
        k = np.arange(_lags(n), dtype=np.float64)
        total = np.zeros(len(k))
        for gap, weight in zip(gaps, weights, strict=True):
            total += weight * np.exp(k * math.log1p(-gap))
        return total


@final
@dataclass(frozen=True)
class Custom:
    """Finite weights g(0), g(1), ..., g(n-1), and 0 beyond.

    Any signs, any order; the first may be zero (a delayed view).

    Args:
        values: The weights, newest step first; 1 to 65536 finite numbers, not all zero, the
            largest between 1e-100 and 1e100.

    Raises:
        InvalidParameter: The weights cannot make a view.

    Examples:
        >>> Custom([0.5, 0.25]).weights(3)
        array([0.5 , 0.25, 0.  ])
    """

    values: tuple[float, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", _checked_taps(self.values))

    @property
    def name(self) -> str:
        """The name of a view of this decay where none is given."""
        return f"custom_{len(self.values)}"

    @cached_property
    def taps(self) -> Float64:
        """g(0..n-1)."""
        return _fixed(np.array(self.values))

    def weights(self, n: int) -> Float64:
        """Return g(0..n-1), filled up with zeros."""
        return _padded(self.taps, _lags(n))


def _checked_taps(given: Any) -> tuple[float, ...]:
    try:
        values = [_plain(value) for value in given]
    except TypeError:
        raise InvalidParameter(
            f"Expected weights to be a sequence of numbers, got {shown(given)}. "
            "They are the weights of this step, the one before it, and so on. Give a list."
        ) from None
    if not 1 <= len(values) <= _MOST_TAPS:
        raise InvalidParameter(
            f"Expected 1 to {_MOST_TAPS} weights, got {len(values)}. Each costs a multiplication "
            "a cell and step. Use Window, Exponential or Polynomial for a longer memory."
        )
    taps = tuple(float(exact(f"weights[{k}]", value)) for k, value in enumerate(values))
    largest = max(abs(tap) for tap in taps)
    if not 1 / _TAP_RANGE <= largest <= _TAP_RANGE:
        raise InvalidParameter(
            f"Expected the largest weight in [1e-100, 1e100], got {largest}. Squares of weights "
            "would leave the range of a float. Scale the weights."
        )
    return taps


def _padded(taps: Float64, n: int) -> Float64:
    out = np.zeros(n)
    out[: min(n, len(taps))] = taps[:n]
    return out


PoleDecay = Running | Exponential | Polynomial
"""Decays with ``.poles``: sums of exponentials."""

FiniteDecay = Step | Custom
"""Decays with ``.taps``: short lists of weights."""

Decay = Step | Running | Window | Exponential | Polynomial | Custom
