r"""The search behind a fit: the poles and zeros of C that make the worst view as good as possible.

The unknowns are 2 d increasing logits of one minus the pole, alternately of a pole and of a zero
of C, so that C is interlaced: c is positive and decreasing, and so is every decoder. The problem

    minimise s subject to log ratio_v(x) <= s for every view v

is solved by sequential quadratic programming. All norms are closed forms in these numbers, with
nothing that cancels near 1; gradients are by complex step, exact to rounding. The start is
geometric; no random numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from tidegauge.strategies.weights import Float64

__all__ = [
    "Demanding",
    "Demands",
    "Norms",
    "Solution",
    "geometric_start",
    "interlaced",
    "pairs",
    "quadratic",
    "residues",
    "solve",
]

Array = NDArray[Any]  # float64, or complex128 where a derivative rides along

_LOWEST, _HIGHEST = -48.0, 8.0  # box of the logits
_APART = 1e-3  # least distance of neighbours
_TINY = 1e-30  # complex step
_STEEPEST = 0.6  # largest beta of a comb


class Demanding(Protocol):
    """What a search can make small."""

    @property
    def log_bounds(self) -> Float64:
        """One number a view."""

    def log_ratios(self, x: Array) -> Array:
        """Return log(std / bound) of every view, shape (..., views), for unknowns (..., n)."""


@final
@dataclass(frozen=True, eq=False)
class Demands:
    """The views of a fit in the forms that the closed forms below take.

    Args:
        running: Horizons of running sums.
        windows: Lengths of windows.
        gaps: Gaps of all decays in pole form, one after another.
        phi: For each gap, ``sum_n R_F(n) = phi (1 + 2 sum ...)``: its share of R_F.
        starts: Where each decay in pole form begins in ``gaps``.
        taps: Autocorrelation R_F(0..n-1) of each decay in finite form.
        log_bounds: Log of each lower bound over its importance, in the order above.
    """

    running: Float64
    windows: Float64
    gaps: Float64
    phi: Float64
    starts: NDArray[np.int64]
    taps: tuple[Float64, ...]
    log_bounds: Float64

    def log_ratios(self, x: Array) -> Array:
        """Return log(std / bound) of every view, shape (..., views), for logits (..., 2 d)."""
        return self.judged(Norms(*interlaced(x)))

    def judged(self, norms: Norms) -> Array:
        """Return log(std / bound) of every view, shape (..., views), from norms."""
        energies = np.concatenate(
            [
                norms.running(self.running),
                norms.windows(self.windows),
                norms.decays(self.gaps, self.phi, self.starts),
                norms.finite(self.taps),
            ],
            axis=-1,
        )
        return np.asarray(0.5 * (np.log(norms.column) + np.log(energies)) - self.log_bounds)


def interlaced(x: Array) -> tuple[Array, Array]:
    """Return the gaps of the poles and of the zeros of C from increasing logits."""
    gaps: Array = 1 / (1 + np.exp(-x))
    return gaps[..., 0::2], gaps[..., 1::2]


def residues(of: Array, others: Array) -> Array:
    """Return prod_j (others_j - of_i) / prod_(j != i) (of_j - of_i), for each i."""
    own = of[..., None, :] - of[..., :, None]
    diagonal = np.arange(of.shape[-1])
    own[..., diagonal, diagonal] = 1
    crossed = (others[..., None, :] - of[..., :, None]).prod(axis=-1)
    result: Array = crossed / own.prod(axis=-1)
    return result


def pairs(a: Array, b: Array) -> Array:
    """Return 1 - p q for all pairs of poles, from their gaps."""
    result: Array = a[..., :, None] + b[..., None, :] - a[..., :, None] * b[..., None, :]
    return result


def quadratic(vector: Array, matrix: Array) -> Array:
    """Return ``vector' matrix vector`` over the last axes."""
    return np.asarray((vector[..., :, None] * vector[..., None, :] * matrix).sum(axis=(-1, -2)))


class Norms:
    """Squared norms of C and of (view / C), batched over the leading axes."""

    def __init__(self, poles: Array, zeros: Array) -> None:
        self.poles, self.zeros = poles, zeros
        self.column_weights = residues(poles, zeros)
        self.column = 1 + quadratic(self.column_weights, 1 / pairs(poles, poles))[..., None]
        ends = np.concatenate([np.zeros_like(zeros[..., :1]), zeros], axis=-1)
        self.sums = residues(ends, poles)  # of 1 / ((1 - z) C), on 1 and the zeros: all positive
        self.logs = np.log1p(-ends)
        self.pairs = pairs(ends, ends)
        self.pairs[..., 0, 0] = 1
        omega = residues(zeros, poles)  # 1 / C = 1 + sum omega zh^(n-1) z^n
        inverse = 1 / pairs(zeros, zeros)
        self.power = 1 + quadratic(omega, inverse)[..., None]
        self.lagged = omega * (pairs(zeros, poles) * inverse).prod(axis=-1)
        # R_(1/C)(0) = power and R_(1/C)(n) = sum_k lagged_k zh_k^(n-1)

    def running(self, steps: Float64) -> Array:
        """The energy of running sums of so many steps, shape (..., steps)."""
        exponents = self.logs[..., :, None] + self.logs[..., None, :]
        t = steps[:, None, None]
        matrix = -np.expm1(t * exponents[..., None, :, :]) / self.pairs[..., None, :, :]
        matrix[..., 0, 0] = steps
        return quadratic(self.sums[..., None, :], matrix)

    def windows(self, steps: Float64) -> Array:
        """The energy of windows of so many steps, in the limit."""
        return np.asarray(self.running(steps) + self.beyond(steps))

    def beyond(self, steps: Float64) -> Array:
        """The energy of windows from their own length on."""
        inner = self.logs[..., None, 1:] * steps[:, None]
        forgotten = self.sums[..., None, 1:] * -np.expm1(inner)
        return quadratic(forgotten, 1 / self.pairs[..., None, 1:, 1:])

    def decays(self, gaps: Float64, phi: Float64, starts: NDArray[np.int64]) -> Array:
        """sum_n R_F(n) R_(1/C)(n): a pole of F may coincide with a zero of C."""
        if not len(starts):
            return np.zeros((*self.zeros.shape[:-1], 0))
        batch = np.broadcast_to(gaps, (*self.zeros.shape[:-1], len(gaps)))
        tail = (self.lagged[..., None, :] / pairs(batch, self.zeros)).sum(axis=-1)
        terms = phi * (self.power + 2 * (1 - gaps) * tail)
        return np.add.reduceat(terms, starts, axis=-1)

    def finite(self, autocorrelations: tuple[Float64, ...]) -> Array:
        """The energy of decays in finite form, in the limit."""
        columns = [self._finite(r) for r in autocorrelations]
        return np.stack(columns, axis=-1) if columns else np.zeros((*self.zeros.shape[:-1], 0))

    def _finite(self, r: Float64) -> Array:
        lagged = self.power_sum(np.arange(len(r) - 1, dtype=np.float64), r[1:])
        return np.asarray(r[0] * self.power[..., 0] + 2 * (self.lagged * lagged).sum(axis=-1))

    def power_sum(self, exponents: Float64, r: Float64) -> Array:
        """Return ``sum_n r_n zh^exponents_n`` of every zero.

        The derivative is carried by hand: there may be 65536 terms.
        """
        base = 1 - self.zeros.real.reshape(-1, self.zeros.shape[-1])[0]
        powers = np.exp(np.log(base)[:, None] * exponents)
        value, slope = powers @ r, (powers * exponents) @ r / base
        return np.asarray(value + slope * ((1 - self.zeros) - base))


@final
@dataclass(frozen=True, eq=False)
class Solution:
    """Logits of a local optimum, log of the worst ratio there, and beta of a comb (0: none)."""

    logits: Float64
    worst: float
    beta: float = 0.0


def geometric_start(buffers: int, memory: float, top: float, low: float) -> Float64:
    """Return logits whose gaps run evenly, in logarithm, from low / memory up."""
    return np.linspace(math.log(low / memory), top, 2 * buffers)


def solve(demands: Demanding, start: Float64) -> Solution:
    """Return the local optimum that sequential quadratic programming finds from ``start``.

    Unknowns beyond an even number are not logits, but a comb's beta.
    """
    from scipy.optimize import minimize

    n = len(start)
    rise = _Rise(demands, n)
    logits = n - n % 2
    order = np.zeros((logits - 1, n + 1))
    order[:, :logits] = np.diff(np.eye(logits), axis=0)
    objective: Float64 = np.r_[np.zeros(n), 1.0]

    def ratios_below(y: Float64) -> Float64:
        room: Float64 = y[n] - rise.at(y[:n])[0]
        return room

    def ratios_slope(y: Float64) -> Float64:
        slope: Float64 = np.ones((len(demands.log_bounds), n + 1))
        slope[:, :n] = -rise.at(y[:n])[1]
        return slope

    def apart(y: Float64) -> Float64:
        room: Float64 = order @ y - _APART
        return room

    def last(y: Float64) -> float:
        return float(y[n])

    def last_slope(y: Float64) -> Float64:
        return objective

    constraints: Any = [  # of vectors; scipy-stubs know those of one number alone
        {"type": "ineq", "fun": ratios_below, "jac": ratios_slope},
        {"type": "ineq", "fun": apart, "jac": lambda y: order},
    ]
    found = minimize(
        last,
        np.r_[start, rise.at(start)[0].max()],
        jac=last_slope,
        constraints=constraints,
        method="SLSQP",
        bounds=[(_LOWEST, _HIGHEST)] * logits + [(0.0, _STEEPEST)] * (n % 2) + [(None, None)],
        options={"maxiter": 400, "ftol": 1e-8},
    )
    x = np.asarray(found.x[:n])
    worst = float(rise.at(x)[0].max())
    usable = math.isfinite(worst) and bool((np.diff(x[:logits]) > 0).all())
    return Solution(x[:logits], worst if usable else math.inf, float(x[logits:].sum()))


@final
class _Rise:
    """Log ratios and their derivatives by complex step; the last point is remembered."""

    def __init__(self, demands: Demanding, n: int) -> None:
        self._demands = demands
        self._around = 1j * _TINY * np.vstack([np.zeros(n), np.eye(n)])
        self._known: dict[bytes, tuple[Float64, Float64]] = {}

    def at(self, x: Float64) -> tuple[Float64, Float64]:
        key = x.tobytes()
        if key not in self._known:
            with np.errstate(all="ignore"):  # a trial step may break the order; it is rejected
                values = self._demands.log_ratios(x + self._around)
            self._known = {key: (values[0].real, values[1:].imag.T / _TINY)}
        return self._known[key]
