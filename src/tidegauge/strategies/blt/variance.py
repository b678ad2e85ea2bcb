r"""How much noise of a buffered Toeplitz matrix C reaches a view: closed forms at any step.

A view of decay F adds up measurement noise with the impulse response b = F / C, so its variance
at step t is ``sum_(n<t) b_n^2`` times the variance of a lattice draw. b is a sum of geometric
sequences: on the poles of F, and on the zeros of C. So is every partial sum of b^2:

.. math::
    \sum_{n<t} \Bigl(\sum_i \rho_i p_i^n\Bigr)^2
    = \sum_{ij} \frac{\rho_i \rho_j}{1 - p_i p_j} (u_i + u_j - u_i u_j), \quad u_i = 1 - p_i^t

Poles are carried as gaps (one minus the pole), differences of gaps are taken exactly, and the
zeros come from integers: nothing is lost near 1.

A pole of F may meet a zero of C, where the two residues blow up with opposite signs although b
does not notice. There the poles of F are moved aside by a few parts in a thousand, to four
places, and the result, smooth in the place, is interpolated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import final

import numpy as np
from numpy.typing import NDArray

from tidegauge.checks import shown
from tidegauge.errors import InvalidParameter
from tidegauge.strategies.blt.buffers import UNIT
from tidegauge.strategies.decay import Custom, Decay, Running, Step, Window

__all__ = ["variance_gain", "variance_limit", "zeros"]

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]

_FINE = 1 << 64  # zeros are found in units of 2^-128
_NO_GAP = 2.0**-100  # stands for the gap 0 of a running sum: exact in every sum below
_ASIDE = 3e-3  # least relative distance between the gaps of a pole and a zero
_DIRECT_TAPS = 512


def variance_gain(
    gaps: tuple[int, ...], weights: tuple[int, ...], decay: Decay, steps: Int64
) -> Float64:
    """Return the variance of a view at each of ``steps`` over the variance of the noise.

    Args:
        gaps: 1 - theta_j of C, in units of 2^-64; interlaced with the weights, as
            :func:`~tidegauge.strategies.blt.buffers.checked_buffers` returns them.
        weights: w_j of C, in units of 2^-64.
        decay: The decay of the view.
        steps: Steps counted from 1, any shape.

    Returns:
        ``sum_(n<t) b_n^2``, the shape of ``steps``; relative error below 1e-6. The residues of a
        decay are kept; then 256 steps take about 0.1 ms.

    Raises:
        InvalidParameter: A step is below 1.

    Examples:
        >>> variance_gain((1 << 63,), (1 << 62,), Step(), np.array([1, 2]))
        array([1.    , 1.0625])
    """
    t = np.asarray(steps, dtype=np.float64)
    if t.size and t.min() < 1:
        raise InvalidParameter(
            f"Expected steps of at least 1, got {shown(int(t.min()))}. Before the first step "
            "there is nothing to release. Count steps from 1."
        )
    return _response(gaps, weights, decay).energy(t)


def variance_limit(gaps: tuple[int, ...], weights: tuple[int, ...], decay: Decay) -> float:
    """Return the limit of :func:`variance_gain` as the step grows; infinite for a running sum.

    Examples:
        >>> round(variance_limit((1 << 63,), (1 << 62,), Step()), 6)
        1.066667
    """
    if isinstance(decay, Running):
        return math.inf
    return float(_response(gaps, weights, decay).energy(np.array(math.inf)))


@lru_cache(maxsize=256)
def zeros(gaps: tuple[int, ...], weights: tuple[int, ...]) -> tuple[int, ...]:
    """Return one minus each zero of C, in units of 2^-128: one after each gap.

    They solve ``1 + sum_j w_j / (gaps_j - y) = 0``, which rises from minus to plus infinity
    between two neighbours, and is positive at 1 if C is interlaced; found by bisection in integers.

    Examples:
        >>> zeros((1 << 63,), (1 << 62,))[0] / 2**128
        0.75
    """
    ends = (*gaps, UNIT)

    def above(y: int) -> bool:
        return sum((w << 256) // (g * _FINE - y) for g, w in zip(gaps, weights, strict=True)) > -(
            1 << 192
        )

    found = []
    for start, end in zip(gaps, ends[1:], strict=True):
        low, high = start * _FINE, end * _FINE
        while high - low > 1:
            middle = (low + high) >> 1
            low, high = (low, middle) if above(middle) else (middle, high)
        found.append(low if low > start * _FINE else high)
    return tuple(found)


@final
@dataclass(frozen=True, eq=False)
class _Geometric:
    """A share of sum (sum_i rho_i p_i^(n - start))^2 over start <= n < start + length."""

    gaps: Float64
    matrix: Float64  # rho_i rho_j / (1 - p_i p_j)
    start: float = 0.0
    length: float = math.inf
    share: float = 1.0

    def energy(self, t: Float64) -> Float64:
        n = np.clip(t - self.start, 0, self.length)
        u: Float64 = -np.expm1(n[..., None] * np.log1p(-self.gaps))
        linear = 2 * (u @ self.matrix.sum(axis=1))
        return np.asarray(self.share * (linear - ((u @ self.matrix) * u).sum(axis=-1)))


@final
@dataclass(frozen=True, eq=False)
class _Response:
    """Partial sums of b^2: a table for the first steps, then geometric parts."""

    table: Float64  # table[n] = sum of the first n squares
    parts: tuple[_Geometric, ...]

    def energy(self, t: Float64) -> Float64:
        total = self.table[np.minimum(t, len(self.table) - 1).astype(np.int64)]
        for part in self.parts:
            total = total + part.energy(t)
        return np.asarray(total)


def _geometric(gaps: Float64, rho: Float64) -> tuple[Float64, Float64]:
    pair = gaps[:, None] + gaps - gaps[:, None] * gaps
    return gaps, rho[:, None] * rho / pair


@lru_cache(maxsize=256)
def _response(gaps: tuple[int, ...], weights: tuple[int, ...], decay: Decay) -> _Response:
    inverse = _Inverse.of(gaps, weights)
    match decay:
        case Step() | Custom():
            return _finite(inverse, decay.taps)
        case Window(steps=steps):
            return _window(inverse, steps)
        case _:
            return _Response(np.zeros(1), _poles(inverse, *decay.poles))


@final
@dataclass(frozen=True, eq=False)
class _Inverse:
    """1 / C = 1 - sum_i omega_i z / (1 - zh_i z), with y_i = 1 - zh_i; omega_i > 0."""

    poles: Float64  # 1 - theta_j
    y: Float64
    omega: Float64

    @classmethod
    def of(cls, gaps: tuple[int, ...], weights: tuple[int, ...]) -> _Inverse:
        roots = zeros(gaps, weights)
        omega = []
        for i, root in enumerate(roots):
            value = Fraction(root - gaps[i] * _FINE, UNIT * _FINE)
            for j, other in enumerate(roots):
                if j != i:
                    value *= Fraction(gaps[j] * _FINE - root, other - root)
            omega.append(float(value))
        y = np.array([min(root / (UNIT * _FINE), 1 - 2.0**-53) for root in roots])
        return cls(np.array([g / UNIT for g in gaps]), y, np.array(omega))

    def at(self, gap: Float64) -> Float64:
        """Return 1 / C at z = 1 / (1 - gap)."""
        ratios = (self.poles - gap[:, None]) / (self.y - gap[:, None])
        return np.asarray(ratios.prod(axis=1))

    def impulse(self, n: int) -> Float64:
        """Return the first n coefficients of 1 / C."""
        k = np.arange(n - 1, dtype=np.float64)
        tail = np.zeros(n - 1)
        for y, omega in zip(self.y, self.omega, strict=True):
            tail -= omega * np.exp(k * math.log1p(-y))
        return np.concatenate([np.ones(1), tail])


def _finite(inverse: _Inverse, taps: Float64) -> _Response:
    """Convolve with the taps as far as they go; from there b is geometric on the zeros of C."""
    n = len(taps)
    impulse = inverse.impulse(n)
    if n <= _DIRECT_TAPS:
        b = np.convolve(taps, impulse)[:n]
    else:
        b = np.fft.irfft(np.fft.rfft(taps, 2 * n) * np.fft.rfft(impulse, 2 * n), 2 * n)[:n]
    table = np.r_[0.0, np.cumsum(b * b)]
    if not len(inverse.y):
        return _Response(table, ())
    back = np.arange(n - 1, -1, -1, dtype=np.float64)
    carried = [taps @ np.exp(back * math.log1p(-y)) for y in inverse.y]
    part = _Geometric(*_geometric(inverse.y, inverse.omega * np.array(carried)), start=n)
    return _Response(table, (part,))


def _window(inverse: _Inverse, steps: int) -> _Response:
    """Run up to the window's length; beyond, each new square is b_n = h_n - h_(n-steps)."""
    running = _Geometric(*_running(inverse), length=steps)
    if not len(inverse.y):
        return _Response(np.zeros(1), (running,))
    forgotten = inverse.omega / inverse.y * -np.expm1(steps * np.log1p(-inverse.y))
    beyond = _Geometric(*_geometric(inverse.y, forgotten), start=steps)
    return _Response(np.zeros(1), (running, beyond))


def _running(inverse: _Inverse) -> tuple[Float64, Float64]:
    rest = float(inverse.at(np.zeros(1))[0])
    rho = np.r_[rest, inverse.omega / inverse.y]
    return _geometric(np.r_[_NO_GAP, inverse.y], rho)


def _poles(inverse: _Inverse, gaps: Float64, weights: Float64) -> tuple[_Geometric, ...]:
    if (gaps == 0).any():
        return (_Geometric(*_running(inverse)),)
    parts = []
    for moved, share in _aside(inverse.y, gaps):
        far = (weights / (inverse.y[:, None] - moved)).sum(axis=1)
        rho = np.r_[weights * inverse.at(moved), inverse.omega * far]
        parts.append(_Geometric(*_geometric(np.r_[moved, inverse.y], rho), share=share))
    return tuple(parts)


def _aside(y: Float64, gaps: Float64) -> list[tuple[Float64, float]]:
    """Return places for the poles of F that keep off the zeros of C, and the share of each.

    Each pole's gap is scaled by a common factor e^s; the four values of s nearest to 0 that keep
    every pole ``_ASIDE`` away from every zero are the nodes of a cubic through s = 0.
    """
    distance = np.log(gaps)[:, None] - np.log(y)
    if not distance.size or np.abs(distance).min() >= _ASIDE:
        return [(gaps, 1.0)]
    clear: list[float] = []
    for k in range(1, 400):
        for s in (k * _ASIDE, -k * _ASIDE):
            inside = gaps.max() * math.exp(s) < 1
            if len(clear) < 4 and inside and np.abs(distance + s).min() >= 0.7 * _ASIDE:
                clear.append(s)
    assert len(clear) == 4, "far more places are tried than poles and zeros can block"
    shares = [math.prod(r / (r - s) for r in clear if r != s) for s in clear]
    return [(gaps * math.exp(s), share) for s, share in zip(clear, shares, strict=True)]
