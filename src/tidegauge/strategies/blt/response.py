r"""The impulse response b = F / C of a view, in pieces, and its autocovariances in closed form.

A view of decay F adds up measurement noise with weights b. They are a table for the first steps
(as long as the weights of F are written out) and then, between one breakpoint and the next, a sum
of geometric sequences: on the poles of F and on the zeros of C. Over the k for which b_k lies in
one piece and b_(k + lag) in one, every partial sum of products is then a closed form:

.. math::
    \sum_{k<n} \sum_i \rho_i p_i^k \sum_j \sigma_j q_j^k
    = \sum_{ij} \frac{\rho_i \sigma_j}{1 - p_i q_j} (u_i + v_j - u_i v_j),
    \quad u_i = 1 - p_i^n, \; v_j = 1 - q_j^n

Poles are carried as gaps (one minus the pole), differences of gaps are taken exactly, and the
zeros come from integers: nothing is lost near 1.

A pole of F may meet a zero of C, where the two residues blow up with opposite signs although b
does not notice. There the poles of F are moved aside by a few parts in a thousand, to four
places, and the result, smooth in the place, is interpolated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from tidegauge.strategies.blt.inverse import Inverse
from tidegauge.strategies.decay import Custom, Decay, Difference, Step, Window

__all__ = ["Piece", "Products", "Response", "responses"]

Float64 = NDArray[np.float64]

_NO_GAP = 2.0**-100  # stands for the gap 0 of a running sum: exact in every sum below
_ASIDE = 3e-3  # least relative distance between the gaps of a pole and a zero
_DIRECT_TAPS = 512


@final
@dataclass(frozen=True, eq=False)
class Piece:
    """``sum_i amplitudes_i (1 - gaps_i)^(n - start)`` for start <= n < end."""

    start: float
    end: float
    gaps: Float64
    amplitudes: Float64

    def terms(self, n: Float64 | float) -> Float64:
        """Return each term at n, shape (..., poles); also outside of the piece."""
        return self.amplitudes * _powers(self.gaps, np.asarray(n) - self.start)


@final
@dataclass(frozen=True, eq=False)
class Response:
    """b_n: a table, then pieces that follow one another from its end to infinity."""

    table: Float64
    pieces: tuple[Piece, ...]

    def at(self, n: Float64) -> Float64:
        """Return b at the indices ``n``, shape (m,), none below 0."""
        b = np.zeros(len(n))
        early = n < len(self.table)
        b[early] = self.table[n[early].astype(np.int64)]
        for piece in self.pieces:
            inside = (n >= piece.start) & (n < piece.end)
            if inside.any():
                b[inside] = piece.terms(n[inside]).sum(axis=-1)
        return b


@final
@dataclass(frozen=True, eq=False)
class _Stretch:
    """Sums of products of one piece with one piece: over ``length`` indices from ``start`` on."""

    start: float
    length: float
    left: Float64  # gaps
    right: Float64
    matrix: Float64  # rho_i sigma_j / (1 - p_i q_j)

    def sums(self, n: Float64) -> Float64:
        u, v = _lost(self.left, n), _lost(self.right, n)
        linear = u @ self.matrix.sum(axis=1) + v @ self.matrix.sum(axis=0)
        return np.asarray(linear - ((u @ self.matrix) * v).sum(axis=-1))


@final
class Products:
    """Partial sums of b_k b_(k + lag) over k."""

    def __init__(self, response: Response, lag: int) -> None:
        early = np.arange(len(response.table), dtype=np.float64)
        self._table = np.r_[0.0, np.cumsum(response.table * response.at(early + lag))]
        self._stretches = [
            stretch
            for left in response.pieces
            for right in response.pieces
            if (stretch := _stretch(left, right, lag)) is not None
        ]
        wholes = [float(s.sums(np.array(s.length))) for s in self._stretches[:-1]]
        self._before = self._table[-1] + np.cumsum([0.0, *wholes])
        self._starts = np.array([stretch.start for stretch in self._stretches])

    def sums(self, n: Float64) -> Float64:
        """Return the sum over k < n for each of ``n``, at least 0 and of any shape."""
        total = np.array(self._table[np.minimum(n, len(self._table) - 1).astype(np.int64)])
        within = np.searchsorted(self._starts, n, side="right") - 1
        for index in np.unique(within[within >= 0]):
            stretch, chosen = self._stretches[index], within == index
            total[chosen] = self._before[index] + stretch.sums(n[chosen] - stretch.start)
        return total


def responses(inverse: Inverse, decay: Decay) -> list[tuple[float, Response]]:
    """Return b as one response of share 1, or as an affine combination of four neighbours."""
    match decay:
        case Step() | Custom() | Difference(view=Step() | Custom()):
            return [(1.0, _finite(inverse, decay.taps))]
        case Difference(view=of, lag=lag):
            return [(share, _change(of, lag)) for share, of in responses(inverse, of)]
        case Window(steps=steps):
            return [(1.0, _window(inverse, steps))]
        case _:
            return _poles(inverse, *decay.poles)


def _stretch(left: Piece, right: Piece, lag: int) -> _Stretch | None:
    start = max(left.start, right.start - lag)
    length = min(left.end, right.end - lag) - start
    if length <= 0:
        return None
    rho, sigma = left.terms(start), right.terms(start + lag)
    pair = left.gaps[:, None] + right.gaps - left.gaps[:, None] * right.gaps
    return _Stretch(start, length, left.gaps, right.gaps, rho[:, None] * sigma / pair)


def _powers(gaps: Float64, n: Float64) -> Float64:
    return np.exp(n[..., None] * np.log1p(-gaps))


def _lost(gaps: Float64, n: Float64) -> Float64:
    """Return 1 - (1 - gaps)^n, shape (..., gaps)."""
    return np.asarray(-np.expm1(n[..., None] * np.log1p(-gaps)))


def _finite(inverse: Inverse, taps: Float64) -> Response:
    """Convolve with the taps as far as they go; from there b is geometric on the zeros of C."""
    n = len(taps)
    impulse = inverse.impulse(n)
    if n <= _DIRECT_TAPS:
        b = np.convolve(taps, impulse)[:n]
    else:
        b = np.fft.irfft(np.fft.rfft(taps, 2 * n) * np.fft.rfft(impulse, 2 * n), 2 * n)[:n]
    back = np.arange(n - 1, -1, -1, dtype=np.float64)
    carried = np.array([taps @ np.exp(back * math.log1p(-y)) for y in inverse.y])
    return Response(b, (Piece(n, math.inf, inverse.y, -inverse.omega * carried),))


def _window(inverse: Inverse, steps: int) -> Response:
    """A running sum up to the window's length; beyond, the difference of two."""
    gaps, rho = _running(inverse)
    forgotten = np.r_[0.0, -rho[1:] * _lost(inverse.y, np.array(steps, dtype=np.float64))]
    return Response(
        np.zeros(0), (Piece(0, steps, gaps, rho), Piece(steps, math.inf, gaps, forgotten))
    )


def _change(of: Response, lag: int) -> Response:
    """Return b_n - b_(n - lag) of a response without a table, whose pieces are on the same poles.

    Within a piece every term falls by a factor in the lag, which loses no digits; terms of two
    pieces of a window have opposite signs, so that nothing cancels.
    """
    edges = sorted({p.start for p in of.pieces} | {p.start + lag for p in of.pieces})
    pieces = []
    for start, end in zip(edges, [*edges[1:], math.inf], strict=True):
        now = max((p for p in of.pieces if p.start <= start), key=lambda p: p.start)
        before = [p for p in of.pieces if p.start <= start - lag]
        amplitudes = now.terms(start)
        if before and before[-1] is now:
            amplitudes = -now.terms(start - lag) * _lost(now.gaps, np.array(float(lag)))
        elif before:
            amplitudes = amplitudes - before[-1].terms(start - lag)
        pieces.append(Piece(start, end, now.gaps, amplitudes))
    return Response(np.zeros(0), tuple(pieces))


def _running(inverse: Inverse) -> tuple[Float64, Float64]:
    rest = float(inverse.at(np.zeros(1))[0])
    return np.r_[_NO_GAP, inverse.y], np.r_[rest, inverse.omega / inverse.y]


def _poles(inverse: Inverse, gaps: Float64, weights: Float64) -> list[tuple[float, Response]]:
    if (gaps == 0).any():
        return [(1.0, _alone(*_running(inverse)))]
    parts = []
    for moved, share in _aside(inverse.y, gaps):
        far = (weights / (inverse.y[:, None] - moved)).sum(axis=1)
        rho = np.r_[weights * inverse.at(moved), inverse.omega * far]
        parts.append((share, _alone(np.r_[moved, inverse.y], rho)))
    return parts


def _alone(gaps: Float64, rho: Float64) -> Response:
    return Response(np.zeros(0), (Piece(0, math.inf, gaps, rho),))


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
