"""A BLT in plain integers and plain floats: the twin of the kernels, and the stem of broken ones.

The unit of the fixed point is 2^-unit_bits: 64 for the twin, and a few bits where an attack has to
reach the bound on the roundings within a few hundred steps. The bound holds for any unit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tidegauge.errors import StreamEnded
from tidegauge.privacy.rounding import sqrt_up
from tidegauge.privacy.unit import Neighbors
from tidegauge.strategies.blt.fixed_point import rounding_error
from tidegauge.strategies.blt.patterns import pattern_gain_squared
from tidegauge.strategies.decay import Decay, Difference, Running, Window
from tidegauge.strategies.strategy import Norm, State, Strategy


def floored(a: int, bits: int) -> int:
    return a >> bits if bits >= 0 else a << -bits


def truncated(a: int, bits: int) -> int:
    return floored(a, bits) if a >= 0 else -floored(-a, bits)


def paid_in_full(blt: PythonBlt, neighbors: Neighbors) -> Fraction:
    scale = 1 << (64 - blt.unit_bits)
    gaps, weights = [g * scale for g in blt.gaps], [w * scale for w in blt.weights]
    unit = neighbors.unit
    pattern = pattern_gain_squared(gaps, weights, unit.max_events, unit.min_separation)
    moved = sqrt_up(neighbors.event_l2_squared * pattern)
    return moved + blt.error * sqrt_up(Fraction(blt.charged_steps * neighbors.touched_cells))


@dataclass(frozen=True)
class PythonBlt(Strategy):
    gaps: tuple[int, ...]
    weights: tuple[int, ...]
    lattice_bits: int
    charged_steps: int
    unit_bits: int = 64
    rounded: Callable[[int, int], int] = floored
    paid: Callable[[PythonBlt, Neighbors], Fraction] = paid_in_full
    sign: float = -1.0

    @property
    def error(self) -> Fraction:
        return rounding_error(self.gaps, self.lattice_bits)

    @property
    def norms(self) -> frozenset[Norm]:
        return frozenset({Norm.L2})

    @property
    def hard_end(self) -> int:
        return self.charged_steps

    @property
    def absolute_gain(self) -> Fraction:
        pairs = zip(self.weights, self.gaps, strict=True)
        return sum((Fraction(w, g) for w, g in pairs), Fraction(1))

    @property
    def largest_total(self) -> int:
        return int((1 << 62) / (self.absolute_gain * (1 << max(0, self.lattice_bits)))) - 1

    def sensitivity(self, norm: Norm, neighbors: Neighbors) -> Fraction:
        assert norm is Norm.L2
        return self.paid(self, neighbors) * Fraction(2) ** self.lattice_bits

    def init_encoder(self, cells: int) -> State:
        return {"states": np.zeros((cells, len(self.gaps)), dtype=object)}

    def encode(self, state: State, x: np.ndarray, first: int) -> np.ndarray:
        if first + len(x) > self.charged_steps:
            raise StreamEnded("Expected at most as many steps as are charged.")
        one, out = self.unit_bits, np.empty_like(x)
        for t, i in np.ndindex(*x.shape):
            u, total = state["states"][i], int(x[t, i])
            m = (total << one) + sum(u)
            out[t, i] = self.rounded(m, one - self.lattice_bits)
            for j, (gap, weight) in enumerate(zip(self.gaps, self.weights, strict=True)):
                u[j] = u[j] - self.rounded(gap * u[j], one) + weight * total
        return out

    def coordinates(self, first: int, steps: int) -> np.ndarray:
        return np.arange(first, first + steps) * 64

    def gain_tells_terms(self, view):
        return True

    @property
    def drawn_places(self) -> int:
        return 1

    def init_decoder(self, views: Sequence[Decay], cells: int) -> State:
        return {"past": np.zeros((0, cells)), "q": np.zeros((len(self.gaps), cells))}

    def decode(
        self,
        state: State,
        views: Sequence[Decay],
        measured: np.ndarray,
        first: int,
        out: np.ndarray,
    ) -> None:
        scale = float(1 << self.unit_bits)
        gaps, weights = [g / scale for g in self.gaps], [w / scale for w in self.weights]
        y = np.empty(measured.shape)
        for i in range(measured.shape[1]):
            q = [float(a) for a in state["q"][:, i]]
            for t in range(len(measured)):
                y[t, i] = float(int(measured[t, i])) * 2.0**-self.lattice_bits
                for j, weight in enumerate(weights):
                    y[t, i] += self.sign * (weight * q[j])
                q = [(a - gap * a) + float(y[t, i]) for a, gap in zip(q, gaps, strict=True)]
            state["q"][:, i] = q
        past = np.concatenate([state["past"], y])
        state["past"] = past
        for n, view in enumerate(views):
            for i in range(y.shape[1]):
                whole = filtered(view, [float(a) for a in past[:, i]])
                out[n, :, i] = whole[first:]

    def variance_gain(self, view: Decay, steps: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def worst_variance_gain(self, view: Decay, horizon: int) -> float:
        raise NotImplementedError

    def noise_terms(self, view: Decay, step: int) -> tuple[np.ndarray, np.ndarray]:
        raise NotImplementedError


def filtered(view: Decay, y: list[float]) -> list[float]:
    """A view of a whole series of increments, in the order of operations that the views promise."""
    if isinstance(view, Difference):
        values = filtered(view.view, y)
        return [
            now - (values[t - view.lag] if t >= view.lag else 0.0) for t, now in enumerate(values)
        ]
    if isinstance(view, Running):
        return _sums(y)
    if isinstance(view, Window):
        return _window(y, view.steps)
    if hasattr(view, "taps"):
        return [_taps([float(tap) for tap in view.taps], y, t) for t in range(len(y))]
    return _poles(view, y)


def _sums(y: list[float]) -> list[float]:
    out, total = [], 0.0
    for value in y:
        total += value
        out.append(total)
    return out


def _window(y: list[float], length: int) -> list[float]:
    out, total, fresh = [], 0.0, 0.0
    for t, value in enumerate(y):
        if (t + 1) % length == 0:
            total, fresh = fresh + value, 0.0
        else:
            total = (total - (y[t - length] if t >= length else 0.0)) + value
            fresh += value
        out.append(total)
    return out


def _taps(taps: list[float], y: list[float], t: int) -> float:
    total = taps[0] * y[t]
    for k in range(1, len(taps)):
        total += taps[k] * (y[t - k] if t >= k else 0.0)
    return total


def _poles(view: Decay, y: list[float]) -> list[float]:
    gaps, weights = ([float(a) for a in array] for array in view.poles)
    states, out = [0.0] * len(gaps), []
    for value in y:
        states = [(a - gap * a) + value for a, gap in zip(states, gaps, strict=True)]
        total = weights[0] * states[0]
        for weight, state in zip(weights[1:], states[1:], strict=True):
            total += weight * state
        out.append(total)
    return out
