r"""How much noise of a column-normalised filter reaches a view.

The noise of the increments is :math:`\nu_s = D_s (C^{-1} z)_s` with D constant on pieces of the
stream, and 1/C = 1 - sum_i omega_i z / (1 - zh_i z). A running sum is followed from piece to
piece: with states :math:`u_i(t) = \sum_{n} zh_i^n z_{t-n}` of the decoder and
:math:`h_n = h_\infty + \sum_i \rho_i zh_i^n` the partial sums of 1/C,

.. math::
    R_{t+n} = R_t + D \Bigl( \sum_{m<n} h_{n-1-m} z_{t+1+m}
        - \sum_i \omega_i \frac{1 - zh_i^n}{1 - zh_i} u_i(t) \Bigr)

whose variance needs only Var R, Cov(R, u) and Cov(u, u) at the piece's start, all in closed form.
Other views have no such short state; their rows are computed one by one, by convolution.
"""

from __future__ import annotations

import numpy as np

from tidegauge.strategies.blt.inverse import Inverse
from tidegauge.strategies.decay import Decay
from tidegauge.strategies.weights import Float64

__all__ = ["noise_row", "running_gains"]


def running_gains(
    gaps: tuple[int, ...], weights: tuple[int, ...], lengths: tuple[int, ...], scales: Float64
) -> Float64:
    """Return Var R over the noise's variance at every step of the stream, shape (steps,).

    Args:
        gaps: 1 - theta_j of C, in units of 2^-64.
        weights: w_j of C, in units of 2^-64.
        lengths: Steps of each piece.
        scales: D on each piece, shape (pieces,).

    Examples:
        >>> running_gains((1 << 62,), (1 << 62,), (1, 1), np.array([2.0, 1.0]))  # 4, 1.75^2 + 1
        array([4.    , 4.0625])
    """
    inverse = Inverse.of(gaps, weights)
    y, omega = inverse.y, inverse.omega
    modes = np.r_[0.0, y]
    rho = np.r_[1 - (omega / y).sum(), omega / y]
    out, done, variance = [], 0, 0.0
    covariance = np.zeros(len(y))  # of R and the states u
    for length, scale in zip(lengths, scales.tolist(), strict=True):
        n = np.arange(1.0, length + 1)
        kept = np.exp(n[:, None] * np.log1p(-y))  # zh^n, (n, buffers)
        carried = omega / y * (1 - kept)
        shared = _sums(y, y, np.array([float(done)]))[0]  # covariance of the states
        fresh = (_sums(modes, modes, n) * rho[:, None] * rho).sum(axis=(1, 2))
        pull = carried @ shared
        gain = variance - 2 * scale * (carried @ covariance)
        gain += scale**2 * (fresh + (pull * carried).sum(axis=1))
        out.append(gain)
        seen = (_sums(modes, y, n[-1:])[0] * rho[:, None]).sum(axis=0)
        covariance = kept[-1] * (covariance - scale * pull[-1]) + scale * seen
        variance, done = float(gain[-1]), done + length
    return np.concatenate(out)


def noise_row(
    gaps: tuple[int, ...],
    weights: tuple[int, ...],
    scale_of_step: Float64,
    view: Decay,
    step: int,
) -> Float64:
    """Return the weights of the noise in a view at ``step`` (from 1), newest first.

    ``b_n = sum_(m <= n) g(m) D_(t-m) k_(n-m)`` with k the coefficients of 1/C, by convolution.

    Args:
        gaps: 1 - theta_j of C, in units of 2^-64.
        weights: w_j of C, in units of 2^-64.
        scale_of_step: D at each step, shape (steps,).
        view: The decay.
        step: The step.

    Examples:
        >>> from tidegauge.strategies.decay import Running
        >>> noise_row((1 << 62,), (1 << 62,), np.array([2.0, 1.0]), Running(), 2)
        array([1.  , 1.75])
    """
    impulse = Inverse.of(gaps, weights).impulse(step)
    weighed = view.weights(step) * scale_of_step[step - 1 :: -1]
    size = 2 * step
    product = np.fft.irfft(np.fft.rfft(impulse, size) * np.fft.rfft(weighed, size), size)
    return np.asarray(product[:step])


def _sums(a: Float64, b: Float64, n: Float64) -> Float64:
    """``sum_(m < n) ((1 - a_i)(1 - b_j))^m``, shape (n, a, b); a and b are gaps, 0 for a pole 1."""
    gap = a[:, None] + b - a[:, None] * b
    powers = -np.expm1(n[:, None, None] * np.log1p(-gap))
    return np.asarray(np.where(gap == 0, n[:, None, None], powers / np.where(gap == 0, 1, gap)))
