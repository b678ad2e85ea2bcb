r"""Means of a decay's symbol over the unit circle, and over the modes of a finite stream.

``|f|`` of a decay with weights g(k), f(z) = sum_k g(k) z^k, takes the place of the singular values
of its matrix as the stream grows; for geometric weights the singular values are known at any
number of steps. What bounds are made of: :mod:`tidegauge.strategies.bounds`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tidegauge.strategies.weights import Float64

__all__ = [
    "exponential",
    "geometric",
    "modes",
    "modulus",
    "pole_change",
    "pole_mean",
    "pole_symbol",
    "tap_mean",
    "window",
    "window_change",
]


_EXACT_MODES = 4096
_SERIES = 4096
_DOUBLE_SERIES = 256
_PERIODS = 2048
_FAR_APART = 100
_NODES = 1 << 15


def modes(steps: int) -> tuple[Float64, Float64]:
    """The frequencies (2 j - 1) pi / (2 steps + 1), j = 1..steps, or nodes among them; a mean."""
    first = min(steps, _EXACT_MODES)
    theta = _angles(0.0, steps, np.arange(1.0, first + 1))
    measure = np.full(first, 1 / steps)
    if steps > first:
        low, high = _angles(0.0, steps, np.array([first + 0.5, steps + 0.5]))
        edges = np.geomspace(low, high, _NODES + 1)
        theta = np.r_[theta, (edges[1:] + edges[:-1]) / 2]
        measure = np.r_[measure, np.diff(edges) * ((2 * steps + 1) / (2 * math.pi * steps))]
    return theta, measure


def pole_symbol(gaps: Float64, weights: Float64, theta: Float64) -> NDArray[np.complex128]:
    """Return ``sum_j weights_j / (1 - (1 - gaps_j) e^(i t))`` at each frequency."""
    near = 2 * np.sin(theta / 2) ** 2 - 1j * np.sin(theta)  # 1 - e^(i t), without cancellation
    return np.asarray((weights / (gaps + (1 - gaps) * near[:, None])).sum(axis=1))


def geometric(gap: float, steps: int) -> float:
    r"""Return ``||A||_* / steps`` for g(k) = a^k, a = 1 - gap, at a finite number of steps.

    A^{-1} = I - a Z has the singular values |e^{i theta_j} - a| where
    steps * theta_j + arg(e^{i theta_j} - a) = j pi, j = 1..steps. The first modes are summed;
    the rest, where neighbours hardly differ, is an integral over j.
    """
    first = min(steps, _EXACT_MODES)
    j = np.arange(1.0, first + 1)
    total = float((1 / modulus(gap, _angles(gap, steps, j))).sum())
    if steps > first:
        low, high = _angles(gap, steps, np.array([first + 0.5, steps + 0.5]))
        theta, measure = _panels(np.geomspace(low, high, 40))
        size = modulus(gap, theta)
        density = (steps + (gap + 2 * (1 - gap) * np.sin(theta / 2) ** 2) / size**2) / math.pi
        total += float((density / size) @ measure)
    return total / steps


def modulus(gap: float, theta: Float64) -> Float64:
    """Return ``|1 - (1 - gap) e^(i t)|`` at each frequency."""
    return np.hypot(gap, 2 * math.sqrt(1 - gap) * np.sin(theta / 2))


def _angles(gap: float, steps: int, j: Float64) -> Float64:
    if gap == 0:
        return (2 * j - 1) * (math.pi / (2 * steps + 1))
    low, high = (j - 1) * (math.pi / steps), np.minimum(j * (math.pi / steps), math.pi)
    for _ in range(60):
        middle = (low + high) / 2
        phase = np.arctan2(np.sin(middle), gap - 2 * np.sin(middle / 2) ** 2)
        below = steps * middle + phase < j * math.pi
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return (low + high) / 2


def exponential(gap: float) -> float:
    """Return (2 / pi) K(a^2) by the arithmetic-geometric mean: 1 / agm(1, sqrt(1 - a^2))."""
    a, b = 1.0, math.sqrt(gap * (2 - gap))
    while a - b > 1e-15 * a:
        a, b = (a + b) / 2, math.sqrt(a * b)
    return 1 / a


def window(steps: int) -> float:
    r"""Return the mean of |sin(W t / 2) / sin(t / 2)| by a series without quadrature.

    (16 / pi^2) sum_k H(k W) / (4 k^2 - 1), H(m) = 1 + 1/3 + ... + 1/(2m-1): the Fourier series
    of |sin| integrated term by term. The tail is an integral.
    """
    k = np.arange(1.0, _SERIES + 1)
    edge = _SERIES + 0.5
    tail = (math.log(4 * edge * steps) + np.euler_gamma + 1) / (8 * edge)
    return 16 / math.pi**2 * (float((_odd_harmonic(k * steps) / (4 * k * k - 1)).sum()) + tail)


def _odd_harmonic(m: Float64) -> Float64:
    """Return 1 + 1/3 + ... + 1/(2m-1); beyond 64 by the expansion of digamma(m + 1/2)."""
    table = np.r_[0.0, np.cumsum(1 / np.arange(1.0, 128, 2))]
    far = np.maximum(m, 64.0)
    inverse = 1 / (far * far)
    series = inverse / 24 - 7 * inverse**2 / 960 + 31 * inverse**3 / 8064
    large = 0.5 * (np.log(4 * far) + np.euler_gamma + series)
    return np.asarray(np.where(m <= 64, table[np.minimum(m, 64).astype(np.int64)], large))


def pole_mean(gaps: Float64, weights: Float64) -> float:
    """Return the mean of |sum_j weights_j / (1 - (1 - gaps_j) e^(i t))| over the circle."""
    theta, measure = _panels(np.r_[0.0, np.geomspace(1e-3 * gaps.min(), math.pi, 160)])
    return float(np.abs(pole_symbol(gaps, weights, theta)) @ measure) / math.pi


def tap_mean(taps: Float64) -> float:
    """Return the mean of |sum_k taps_k e^(i k t)|, from a grid far finer than its oscillation.

    |f| has a kink at each zero on the circle, so the error falls with the square of the spacing;
    a second grid of double spacing takes its leading term away.
    """
    points = 1 << min(max((256 * len(taps) - 1).bit_length(), 16), 22)
    size = np.abs(np.fft.rfft(taps, points))
    fine = float(2 * size.sum() - size[0] - size[-1]) / points
    coarse = float(2 * size[::2].sum() - size[0] - size[-1]) / (points // 2)
    return (4 * fine - coarse) / 3


def _panels(edges: Float64) -> tuple[Float64, Float64]:
    """Return nodes and weights of Gauss-Legendre quadrature, 12 a panel."""
    x, weight = np.polynomial.legendre.leggauss(12)
    middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
    return (middle[:, None] + half[:, None] * x).ravel(), (half[:, None] * weight).ravel()


def window_change(steps: int, lag: int) -> float:
    r"""Return the mean of 2 |sin(L t / 2) sin(W t / 2) / sin(t / 2)| by a double series.

    Both factors by the Fourier series of |sin|, with coefficients a_j, term by term as in
    :func:`window`: ``-(4 / pi) sum_jk a_j a_k (H(jL + kW) + H(|jL - kW|))``. What is left out
    falls with the square of the number of terms; half of them take its leading part away. If one
    length is a hundred times the other, the faster factor counts with its mean.
    """
    shorter, longer = sorted((steps, lag))
    if longer >= _FAR_APART * shorter:
        return 4 / math.pi * window(shorter)
    j = np.arange(_DOUBLE_SERIES + 1.0)
    a = np.where(j == 0, 2 / math.pi, -4 / (math.pi * (4 * j * j - 1)))
    one, other = j[:, None] * lag, j * steps
    terms = np.outer(a, a) * (_odd_harmonic(one + other) + _odd_harmonic(np.abs(one - other)))
    half = _DOUBLE_SERIES // 2 + 1
    return -4 / math.pi * float(4 * terms.sum() - terms[:half, :half].sum()) / 3


def pole_change(gaps: Float64, weights: Float64, lag: int) -> float:
    """Return the mean of 2 |sin(lag t / 2)| |f|, f smooth.

    Period by period near 0, where f is steep; from there with the mean of |sin| over a period.
    """
    near = np.arange(0.0, min(lag // 2, _PERIODS) + 1) * (2 * math.pi / lag)
    edge = near[-1] if lag // 2 > _PERIODS else math.pi
    steep = np.geomspace(1e-3 * gaps.min(), math.pi, 160)
    theta, measure = _panels(np.unique(np.r_[near, steep[steep < edge], edge]))
    wave = 2 * np.abs(np.sin(lag * theta / 2))
    total = float((wave * np.abs(pole_symbol(gaps, weights, theta))) @ measure)
    if edge < math.pi:
        theta, measure = _panels(np.geomspace(edge, math.pi, 40))
        total += 4 / math.pi * float(np.abs(pole_symbol(gaps, weights, theta)) @ measure)
    return total / math.pi
