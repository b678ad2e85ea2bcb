"""A comb in plain integers and floats: the twin of the kernels, and the stem of broken ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from twins.python_blt import PythonBlt, filtered

from tidegauge.privacy.rounding import sqrt_up
from tidegauge.privacy.unit import Neighbors
from tidegauge.strategies.blt.comb_patterns import comb_pattern_gain_squared
from tidegauge.strategies.decay import Decay
from tidegauge.strategies.strategy import State


def paid_in_full(comb: PythonComb, neighbors: Neighbors) -> Fraction:
    unit = neighbors.unit
    pattern = comb_pattern_gain_squared(
        comb.gaps, comb.weights, comb.beta, comb.lag, unit.max_events, unit.min_separation
    )
    moved = comb.beta.denominator * sqrt_up(neighbors.event_l2_squared * pattern)
    return moved + comb.error * sqrt_up(Fraction(comb.charged_steps * neighbors.touched_cells))


@dataclass(frozen=True)
class PythonComb(PythonBlt):
    """``unit_bits`` must be 64."""

    beta: Fraction = Fraction(1, 2)
    lag: int = 1
    paid: Callable[[PythonComb, Neighbors], Fraction] = paid_in_full

    @property
    def growth(self) -> int:
        return self.beta.numerator + self.beta.denominator

    @property
    def absolute_gain(self) -> Fraction:
        return super().absolute_gain * self.growth

    def init_encoder(self, cells: int) -> State:
        return {**super().init_encoder(cells), "totals": np.zeros((0, cells), dtype=object)}

    def encode(self, state: State, x: np.ndarray, first: int) -> np.ndarray:
        totals = np.concatenate([state["totals"], x.astype(object)])
        y = np.empty(x.shape, dtype=object)
        for t in range(len(x)):
            old = totals[first + t - self.lag] if first + t >= self.lag else 0
            y[t] = self.beta.denominator * totals[first + t] - self.beta.numerator * old
        encoded = super().encode(state, y, first)
        state["totals"] = totals
        return encoded.astype(np.int64)

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
        scale, cells = 2.0**-self.lattice_bits / self.beta.denominator, measured.shape[1]
        gaps, weights = ([a / 2.0**64 for a in pair] for pair in (self.gaps, self.weights))
        past = [list(map(float, column)) for column in state["past"].T]
        for i in range(cells):
            q = [float(a) for a in state["q"][:, i]]
            for t in range(len(measured)):
                y = float(int(measured[t, i])) * scale
                for weight, a in zip(weights, q, strict=True):
                    y -= weight * a
                q = [(a - gap * a) + y for a, gap in zip(q, gaps, strict=True)]
                old = past[i][first + t - self.lag] if first + t >= self.lag else 0.0
                past[i].append(y + float(self.beta) * old)
            state["q"][:, i] = q
            for n, view in enumerate(views):
                out[n, :, i] = filtered(view, past[i])[first:]
        state["past"] = np.array(past).T
