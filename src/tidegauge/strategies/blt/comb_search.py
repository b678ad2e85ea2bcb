r"""The search with a comb: the same norms for C = C_0 (1 - beta z^W), in closed form.

The response of a view is ``sum_a beta^a b_(n - a W)``, b that of C_0, so its energy in the limit is

.. math::
    \frac{1}{1 - \beta^2} \Bigl( L(0) + 2 \sum_{m \ge 1} \beta^m L(m W) \Bigr), \quad
    L(n) = \sum_k b_k b_{k+n}

and L is a sum of exponentials of n, so that the sum over m is geometric. A running sum up to a
step is taken block by block of W steps, in each of which its response is one sum of exponentials.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from tidegauge.strategies.blt.search import Array, Demands, Norms, interlaced, pairs
from tidegauge.strategies.weights import Float64

__all__ = ["CombDemands"]

_ECHOES = 32  # followed one by one: 0.6^32 = 8e-8


@final
@dataclass(frozen=True, eq=False)
class CombDemands:
    """The views of a fit for C_0 (1 - beta z^lag).

    Args:
        demands: Those views. None in finite form is longer than the lag.
        lag: W, at least 1.
        beta: Fixed; None: it is the last of the unknowns.
    """

    demands: Demands
    lag: int
    beta: float | None = None

    @property
    def log_bounds(self) -> Float64:
        """One number a view."""
        return self.demands.log_bounds

    def log_ratios(self, x: Array) -> Array:
        """Return log(std / bound) of every view, shape (..., views)."""
        if self.beta is None:
            beta, x = x[..., -1:], x[..., :-1]
        else:
            beta = np.full_like(x[..., :1], self.beta)
        return self.demands.judged(_CombNorms(*interlaced(x), beta, self.lag))


@final
class _CombNorms(Norms):
    """Squared norms of C and of (view / C); ``beta`` has the shape (..., 1)."""

    def __init__(self, poles: Array, zeros: Array, beta: Array, lag: int) -> None:
        super().__init__(poles, zeros)
        self.beta, self.lag = beta, lag
        across = (pairs(poles, zeros) / pairs(poles, poles)).prod(axis=-1)  # C_0(theta_k)
        later = self.column_weights * across * np.exp((lag - 1) * np.log1p(-poles))
        self.column = (1 + beta**2) * self.column - 2 * beta * later.sum(axis=-1, keepdims=True)
        self.rate = self.logs[..., 1:]
        self.kept = np.exp(lag * self.rate)  # zh^W

    def _echoed(self, alone: Array, later: Array) -> Array:
        """The energy from L(0) and sum_m beta^m L(m W), m >= 1."""
        return np.asarray((alone + 2 * later) / (1 - self.beta**2))

    def running(self, steps: Float64) -> Array:
        shape = (*self.beta.shape[:-1], _ECHOES + 1, self.sums.shape[-1])
        alpha = np.ones(shape, dtype=self.sums.dtype)  # of the terms at the start of each block
        decay, share = np.exp(self.lag * self.logs), np.ones_like(self.beta)
        for block in range(1, _ECHOES + 1):
            share = share * self.beta
            alpha[..., block, :] = decay * alpha[..., block - 1, :] + share
        alpha = alpha * self.sums[..., None, :]
        whole = self._geometric(self.lag)
        energies = []
        for step in steps.tolist():
            full = min(int(step // self.lag), _ECHOES)
            early, last = alpha[..., :full, :], alpha[..., full, :]
            gram = np.swapaxes(early, -1, -2) @ early
            rest = last[..., :, None] * last[..., None, :] * self._geometric(step - full * self.lag)
            energies.append((gram * whole + rest).sum(axis=(-1, -2)))
        return np.stack(energies, axis=-1) if energies else np.zeros((*shape[:-2], 0))

    def _geometric(self, steps: float) -> Array:
        """Return ``sum_(k < steps) (p_i p_j)^k`` of the poles 1 and zh."""
        exponents = self.logs[..., :, None] + self.logs[..., None, :]
        matrix: Array = -np.expm1(steps * exponents) / self.pairs
        matrix[..., 0, 0] = steps
        return matrix

    def windows(self, steps: Float64) -> Array:
        if not len(steps):
            return np.zeros((*self.beta.shape[:-1], 0))
        alone = super().running(steps) + self.beyond(steps)
        later = [self._window_later(int(length)) for length in steps]
        return self._echoed(alone, np.stack(later, axis=-1))

    def _window_later(self, length: int) -> Array:
        """From the variance of a sum of n increments, ``n r_0^2 + 2 sum_i K_i (1 - zh_i^n)``."""
        first, inner = self.sums[..., 0], self.sums[..., 1:]
        mixed = (inner[..., None, :] / self.pairs[..., 1:, 1:]).sum(axis=-1)
        weights = inner * (first[..., None] / self.zeros + mixed)  # K_i
        inside = -(-length // self.lag) - 1  # echoes that overlap with the window
        gone = weights * np.expm1(length * self.rate) ** 2
        after = np.exp(((inside + 1) * self.lag - length) * self.rate)
        apart = -(gone * after / (1 - self.beta * self.kept)).sum(axis=-1)
        total: Array = self.beta[..., 0] ** (inside + 1) * apart
        for m in range(1, min(inside, _ECHOES) + 1):
            n = m * self.lag
            ends = 2 * np.exp(n * self.rate) - np.exp((length + n) * self.rate)
            overlap = (weights * (ends - np.exp((length - n) * self.rate))).sum(axis=-1)
            total = total + self.beta[..., 0] ** m * (first**2 * (length - n) + overlap)
        return total

    def decays(self, gaps: Float64, phi: Float64, starts: NDArray[np.int64]) -> Array:
        alone = super().decays(gaps, phi, starts)
        if not len(starts):
            return alone
        beta, pole = self.beta, 1 - gaps
        power = np.exp(self.lag * np.log1p(-gaps))
        own, echo = beta * power / (1 - beta * power), beta * self.kept / (1 - beta * self.kept)
        batch = np.broadcast_to(gaps, (*self.zeros.shape[:-1], len(gaps)))
        crossed = pole[:, None] * (own[..., :, None] + echo[..., None, :])
        crossed = crossed / pairs(batch, self.zeros)
        scale = (1 - beta * power)[..., :, None] * (1 - beta * self.kept)[..., None, :]
        divided = self._divided(gaps) * beta[..., None] / scale
        tail = (self.lagged[..., None, :] * (crossed + divided)).sum(axis=-1)
        later = np.add.reduceat(phi * (own * self.power + tail), starts, axis=-1)
        return self._echoed(alone, later)

    def _divided(self, gaps: Float64) -> Array:
        """Return (a^W - zh^W) / (a - zh), shape (..., decays, zeros); a may meet a zero."""
        a, z = gaps[:, None], self.zeros[..., None, :]
        apart = z - a + 1e-18
        near = np.where(apart.real > 0, a, z)  # the smaller gap
        apart = np.where(apart.real > 0, apart, -apart)
        lost = -np.expm1(self.lag * np.log1p(-apart / (1 - near)))
        return np.asarray(np.exp(self.lag * np.log1p(-near)) * lost / apart)

    def finite(self, autocorrelations: tuple[Float64, ...]) -> Array:
        alone = super().finite(autocorrelations)
        if not autocorrelations:
            return alone
        later = [self._finite_later(r) for r in autocorrelations]
        return self._echoed(alone, np.stack(later, axis=-1))

    def _finite_later(self, r: Float64) -> Array:
        n = len(r)
        exponents = self.lag - 1 + np.arange(1.0 - n, n)
        powers = self.power_sum(exponents, np.r_[r[:0:-1], r])
        return np.asarray(
            (self.lagged * self.beta * powers / (1 - self.beta * self.kept)).sum(axis=-1)
        )
