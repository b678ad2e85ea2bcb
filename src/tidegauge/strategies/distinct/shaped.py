"""A count of different values in a window, itself, with noise shaped for intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import final

import numpy as np

from tidegauge.checks import integer, shown
from tidegauge.errors import InvalidParameter, StreamEnded
from tidegauge.privacy.rounding import sqrt_up
from tidegauge.privacy.unit import Neighbors
from tidegauge.strategies import filters, study
from tidegauge.strategies.blt import fit, fixed_point
from tidegauge.strategies.blt.buffers import MOST_BUFFERS, UNIT
from tidegauge.strategies.blt.inverse import Inverse
from tidegauge.strategies.decay import Decay, Step, Window
from tidegauge.strategies.distinct.change import check_norm, check_views, window_of, worst_change
from tidegauge.strategies.distinct.intervals import interval_gains
from tidegauge.strategies.strategy import (
    MOST_STEPS,
    Float64,
    Int64,
    Norm,
    RowPerStep,
    State,
)

__all__ = ["Shaped", "shaped"]

_FINE = 1 << 64  # the decoder's poles are found in units of 2^-128


@final
@dataclass(frozen=True)
class Shaped(RowPerStep):
    r"""x_t counts the different values of the last W steps; its noise is a filter b of white noise.

    .. math:: C = 1 / b, \qquad c_0 = 1, \; c_k = -\sum_j w_j \theta_j^{k-1}, \; \theta_j = 1 - g_j

    Unlike under other strategies, x is no sum over single steps: an event changes it over an
    interval (see :class:`~tidegauge.privacy.unit.Neighbors`), and the one view is x itself, called
    ``Window(W)``. It costs what a window sum costs: the two are transposes of one another.

    Guarantee:
        Neighboring streams' coordinates differ by at most ``sensitivity`` in L2, roundings
        included, up to ``hard_end`` steps, on every path of an adaptively chosen stream; the
        largest over all lengths of an interval is computed. Proof: ``docs/proofs/distinct.md``.

    Args:
        gaps: Integers g_j over 2^64, in (0, 2^64), increasing; 1 to 8 of them.
        weights: Integers w_j over 2^64, positive, with sum_j w_j / g_j < 1.
        window: W, at most 2^20.
        lattice_bits: Coordinates lie on the lattice 2^-lattice_bits grains; 0 to 40.
        charged_steps: Steps whose roundings the sensitivity counts, and the last that can be run.

    Raises:
        InvalidParameter: A number is out of range, or the decoder would not be stable.

    Memory: 16 bytes (private) and 8 bytes (public) a buffer and cell.

    Examples:
        >>> half = Shaped((1 << 63,), (1 << 62,), window=2, lattice_bits=3)
        >>> half.encode(half.init_encoder(1), np.array([[8], [8], [0]]), 0).ravel() / 8
        array([ 8.,  6., -3.])

    References:
        Windowed distinct counts were left open by Bolot, Fawaz, Muthukrishnan, Nikolov and Taft
        (2013); with other means: Ghazi, Kumar, Nelson and Manurangsi (2023).
    """

    gaps: tuple[int, ...]
    weights: tuple[int, ...]
    window: int
    lattice_bits: int = 0
    charged_steps: int = MOST_STEPS

    def __post_init__(self) -> None:
        for name in ("gaps", "weights"):
            object.__setattr__(self, name, _words(name, getattr(self, name)))
        for name, low, high, why in (
            ("lattice_bits", 0, 40, "Coordinates are 64-bit integers."),
            ("charged_steps", 1, MOST_STEPS, "Each one's roundings are paid for."),
        ):
            number = integer(name, getattr(self, name), low=low, high=high, why=why)
            object.__setattr__(self, name, number)
        object.__setattr__(self, "window", window_of(self.window))
        if len(self.gaps) != len(self.weights) or any(b <= a for a, b in pairwise(self.gaps)):
            raise InvalidParameter(
                "Expected increasing gaps, with one weight each, got others. Equal buffers are "
                "one. Take gaps and weights from one fit."
            )
        pairs = zip(self.weights, self.gaps, strict=True)
        if sum((Fraction(weight, gap) for weight, gap in pairs), Fraction(0)) >= 1:
            raise InvalidParameter(
                "Expected weights with sum_j w_j / gaps_j < 1, got a larger sum. The decoder would "
                "not be stable, and the worst interval another one. Use smaller weights."
            )

    @property
    def norms(self) -> frozenset[Norm]:
        """L2 only."""
        return frozenset({Norm.L2})

    @property
    def hard_end(self) -> int:
        """``charged_steps``."""
        return self.charged_steps

    @property
    def absolute_gain(self) -> Fraction:
        """2: more than sum_k |c_k|, and what its arithmetic needs room for."""
        return Fraction(2)

    @cached_property
    def largest_total(self) -> int:
        """The largest count for which neither states nor coordinates can overflow."""
        return fixed_point.largest_total(self.absolute_gain, self.gaps, self.lattice_bits)

    def sensitivity(self, norm: Norm, neighbors: Neighbors) -> Fraction:
        r"""How far the coordinates can move in L2, in lattice units, rounded up.

        .. math:: \Delta = k \, D \max_{\text{changes}} \| C (x - x') \| + e \sqrt{N},
            \qquad N = \text{hard end} \times \text{touched cells}

        with k the events of a unit, D the values of an event, and e of
        :func:`~tidegauge.strategies.blt.fixed_point.rounding_error`.

        Raises:
            UnsupportedCombination: The norm is L1, or x does not count the values of this window.
        """
        check_norm(self, norm)
        one, two = interval_gains(self.gaps, self.weights, self.window)
        moved = sqrt_up(worst_change(neighbors, self.window, one, two))
        error = fixed_point.rounding_error(self.gaps, self.lattice_bits)
        rounded = error * sqrt_up(Fraction(self.hard_end * neighbors.touched_cells))
        each = neighbors.unit.max_events * neighbors.high
        return (each * moved + rounded) * (1 << self.lattice_bits)

    def init_encoder(self, cells: int) -> State:
        """All states zero: 128 bits a buffer and cell."""
        return fixed_point.init_encoder(len(self.gaps), cells)

    def encode(self, state: State, x: Int64, first: int) -> Int64:
        """Encode a block of counts in 128-bit fixed point: twice x, less x and its tail.

        Raises:
            StreamEnded: The block reaches beyond ``hard_end``; the state is as it was.
        """
        if first + len(x) > self.hard_end:
            raise StreamEnded(
                f"Expected at most {self.hard_end} steps, got step {first + len(x)}. Roundings "
                "beyond are not paid for. Declare a longer stream from the start."
            )
        bits, largest = self.lattice_bits, self.largest_total
        gaps, weights = np.array(self.gaps, np.uint64), np.array(self.weights, np.uint64)
        plus: Int64 = fixed_point.encode(state, x, gaps, weights, largest, bits)
        doubled: Int64 = np.clip(x, -largest, largest) << (bits + 1)
        return np.subtract(doubled, plus, out=doubled)

    def init_decoder(self, views: Sequence[Decay], cells: int) -> State:
        """The decoder's own states, all zero.

        Raises:
            InvalidParameter: A view other than ``Window(W)``.
        """
        check_views(views, self.window)
        return filters.init_decoder([Step() for _ in views], cells, len(self.gaps))

    def decode(
        self, state: State, views: Sequence[Decay], measured: Int64, first: int, out: Float64
    ) -> None:
        """Recover x, with its shaped noise, in float64."""
        filters.decode_views(
            state, [Step() for _ in views], measured, first, out,
            gaps=np.array([g / UNIT for g in self.gaps]),
            weights=np.array([-w / UNIT for w in self.weights]),
            unit=2.0**-self.lattice_bits,
        )  # fmt: skip

    def variance_gain(self, view: Decay, steps: Int64) -> Float64:
        """The sum of the first ``steps`` squares of b, in closed form."""
        check_views([view], self.window)
        gaps, weights = decoder_poles(self.gaps, self.weights)
        before = np.asarray(steps, np.float64) - 1
        total = np.ones(len(before))
        for i in range(len(gaps)):
            for j in range(len(gaps)):
                rate = math.log1p(-gaps[i]) + math.log1p(-gaps[j])
                total += weights[i] * weights[j] * np.expm1(rate * before) / math.expm1(rate)
        return total * 4.0**-self.lattice_bits

    def worst_variance_gain(self, view: Decay, horizon: int) -> float:
        """The gain grows with the step to a limit, that of the last step there is."""
        return float(self.variance_gain(view, np.array([MOST_STEPS]))[0])

    def noise_terms(self, view: Decay, step: int) -> tuple[Float64, Int64]:
        """The coefficients of b; old ones in groups (see ``noise_groups``)."""
        return study.noise_groups(lambda steps: self.variance_gain(view, steps), step)

    def coefficients(self, n: int) -> Float64:
        """c_0 ... c_(n-1)."""
        integer("n", n, low=1, high=1 << 28, why="Each is computed. Ask for fewer.")
        lags, tail = np.arange(n - 1, dtype=np.float64), np.zeros(n - 1)
        for gap, weight in zip(self.gaps, self.weights, strict=True):
            tail -= weight / UNIT * np.exp(math.log1p(-gap / UNIT) * lags)
        return np.concatenate([np.ones(1), tail])


@lru_cache(maxsize=64)
def shaped(window: int) -> Shaped:
    """Return the strategy for a window whose noise is least, for ever.

    A window sum and this count are transposes of one another: the best b is the best C for
    ``Window(W)``, and its inverse is written out in poles here.

    Args:
        window: W, at least 2.

    Cost: that of a fit, 10 to 100 ms.

    Examples:
        >>> from tidegauge.privacy.unit import Event, NeighboringRelation
        >>> one = Neighbors(
        ...     Event(), NeighboringRelation.ADD_OR_REMOVE_ONE, 0, 1, 1, 1, distinct=256
        ... )
        >>> best = shaped(256)
        >>> gain = best.worst_variance_gain(Window(256), 1)
        >>> bool(float(best.sensitivity(Norm.L2, one)) * gain**0.5 <= 3.6)
        True
    """
    found = fit([Window(window)], longest_lag=0)
    inverse = Inverse.of(found.gaps, found.weights)
    gaps = tuple(min(UNIT - 1, max(1, round(float(gap) * UNIT))) for gap in inverse.y)
    weights = tuple(max(1, math.floor(float(weight) * UNIT)) for weight in inverse.omega)
    return Shaped(gaps, weights, window, lattice_bits=30)


@lru_cache(maxsize=64)
def decoder_poles(
    gaps: tuple[int, ...], weights: tuple[int, ...]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return 1 - phi_i and v_i of ``b_0 = 1, b_k = sum_i v_i phi_i^(k-1)``.

    The gaps y solve ``sum_j w_j / (g_j - y) = 1``, which rises to plus infinity before each g_j:
    one below the first, one between each two.
    """
    fine = [gap * _FINE for gap in gaps]

    def above(y: int) -> bool:
        return sum((w << 256) // (g - y) for g, w in zip(fine, weights, strict=True)) > 1 << 192

    roots = []
    for start, end in zip([0, *fine], fine, strict=False):
        low, high = start, end
        while high - low > 1:
            middle = (low + high) >> 1
            low, high = (low, middle) if above(middle) else (middle, high)
        roots.append(low)
    found = []
    for i, root in enumerate(roots):
        value = Fraction(fine[i] - root, UNIT * _FINE)
        for j, other in enumerate(roots):
            if j != i:
                value *= Fraction(fine[j] - root, other - root)
        found.append(float(value))
    return tuple(root / (UNIT * _FINE) for root in roots), tuple(found)


def _words(name: str, given: tuple[int, ...]) -> tuple[int, ...]:
    if not isinstance(given, tuple) or not 1 <= len(given) <= MOST_BUFFERS:
        raise InvalidParameter(
            f"Expected {name} to be a tuple of 1 to {MOST_BUFFERS} integers, got {shown(given)}. "
            "Each is one buffer of the filter. Fit fewer buffers."
        )
    why = "Each is an integer over 2**64, strictly between 0 and 1. Take the integers of a fit."
    return tuple(
        integer(f"{name}[{j}]", number, low=1, high=UNIT - 1, why=why)
        for j, number in enumerate(given)
    )
