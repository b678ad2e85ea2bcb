r"""The square root of a decay: c with c * c = g, or with \|C\|^2 = \|f\| on the circle.

For a decay with symbol f, the Toeplitz matrix C of :math:`f^{1/2}` makes both factors of
:math:`A = B C` equally large: :math:`\|b\|^2 = \|c\|^2 = \frac{1}{2\pi}\int |f|` as the stream
grows, which is the bound of any factorization mechanism. The power series of the root is right
where f has no zero inside the disc: running sums, windows, exponentials and polynomial decays.
Custom weights may have such zeros; for them C is the outer function of modulus :math:`|f|^{1/2}`,
whose inverse is stable, and :math:`B = f / C` has the same size.
"""

from __future__ import annotations

import numpy as np

from tidegauge.checks import integer
from tidegauge.strategies.decay import Custom, Decay
from tidegauge.strategies.dense.toeplitz import LONGEST, DenseToeplitz
from tidegauge.strategies.weights import Float64

__all__ = ["square_root", "square_root_strategy"]


_GRID = 1 << 19
_SHORT = "Each step costs as much as all before it. Use a buffered strategy for a longer stream."


def square_root(decay: Decay, steps: int) -> Float64:
    """Return the first coefficients of the root of a decay's symbol, shape (steps,); c_0 > 0.

    Cost: O(steps^2) operations, 20 ms at 4096 steps; 100 ms for :class:`Custom`.

    Raises:
        InvalidParameter: ``steps`` is not in [1, 4096].

    Examples:
        >>> from tidegauge.strategies.decay import Running
        >>> square_root(Running(), 4)
        array([1.    , 0.5   , 0.375 , 0.3125])
    """
    integer("steps", steps, low=1, high=LONGEST, why=_SHORT)
    if isinstance(decay, Custom):
        return _outer(decay.taps, steps)
    g = decay.weights(steps)
    c = np.zeros(steps)
    c[0] = np.sqrt(g[0])
    for n in range(1, steps):
        c[n] = (g[n] - c[1:n] @ c[n - 1 : 0 : -1]) / (2 * c[0])
    return c


def square_root_strategy(decay: Decay, steps: int, lattice_bits: int) -> DenseToeplitz:
    """Return the strategy whose integers are the root's coefficients over 2^-lattice_bits.

    Raises:
        InvalidParameter: ``steps`` or ``lattice_bits`` is out of range, or the integers leave no
            room for a total.

    Examples:
        >>> from tidegauge.strategies.decay import Window
        >>> square_root_strategy(Window(2), 3, 10).coefficients  # (1 + z)^(1/2)
        (1024, 512, -128)
    """
    c = square_root(decay, steps)
    scaled = np.rint(c / np.abs(c).max() * 2.0**lattice_bits)
    return DenseToeplitz(tuple(int(value) for value in scaled), lattice_bits)


def _outer(taps: Float64, steps: int) -> Float64:
    r"""Return the outer function of modulus \|f\|^(1/2), by its cepstrum.

    The logarithm of the modulus on a grid, its part of positive lags doubled, is the logarithm of
    the function. Zeros on the circle fall between the grid's points, or are lifted a little: that
    moves C, which the integers define, and no claim.
    """
    points = np.exp(-1j * np.pi / _GRID * np.arange(len(taps)))  # half a spacing aside
    size = np.abs(np.fft.fft(taps * points, _GRID))
    logarithm = np.log(np.maximum(size, 1e-12 * size.max())) / 2
    # real sequence: the grid at (2j + 1) pi / N is symmetric about pi
    cepstrum = np.fft.ifft(logarithm) * np.exp(1j * np.pi / _GRID * np.arange(_GRID))
    lags = cepstrum.real[:steps].copy()
    lags[1:] *= 2
    c = np.zeros(steps)
    c[0] = np.exp(lags[0])
    weighted = np.arange(steps) * lags
    for n in range(1, steps):  # c' = (log c)' c
        c[n] = weighted[1 : n + 1] @ c[n - 1 :: -1] / n
    return c
