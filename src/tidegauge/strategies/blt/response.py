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
from numpy.lib.stride_tricks import sliding_window_view

from tidegauge.strategies.blt.inverse import Inverse
from tidegauge.strategies.decay import Custom, Decay, Difference, Step, Window
from tidegauge.strategies.weights import Float64

__all__ = ["Products", "Response", "combed", "responses"]


_NO_GAP = 2.0**-100  # stands for the gap 0 of a running sum: exact in every sum below
_ASIDE = 3e-3  # least relative distance between the gaps of a pole and a zero
_DIRECT_TAPS = 512
_NO_TABLE = np.empty(0)
_FORGOTTEN = 1e-15  # echoes of a comb below this share are not followed


@final
@dataclass(frozen=True, eq=False)
class Response:
    """b_n: a table, then pieces that follow one another from its end to infinity.

    Args:
        table: The first weights.
        gaps: One minus each pole p_i.
        starts: Where each piece begins: the end of the table first, increasing.
        amplitudes: Piece k is ``sum_i amplitudes[k, i] p_i^(n - starts[k])``.
    """

    table: Float64
    gaps: Float64
    starts: Float64
    amplitudes: Float64

    def at(self, n: Float64) -> Float64:
        """Return b at the indices ``n``, any shape, none below 0."""
        early = n < len(self.table)
        late = self.terms(np.where(early, self.starts[0], n)).sum(axis=-1)
        if not len(self.table):
            return np.asarray(late)
        return np.where(early, self.table[np.where(early, n, 0).astype(np.int64)], late)

    def terms(self, n: Float64) -> Float64:
        """Return each term of b at ``n``, shape (..., poles); none in the table."""
        piece = np.searchsorted(self.starts, n, side="right") - 1
        k = n - self.starts[piece]
        return np.asarray(self.amplitudes[piece] * np.exp(k[..., None] * np.log1p(-self.gaps)))


@final
class Products:
    """Partial sums of b_k b_(k + lag) over k."""

    def __init__(self, response: Response, lag: int) -> None:
        early = np.arange(len(response.table), dtype=np.float64)
        self._table = np.r_[0.0, np.cumsum(response.table * response.at(early + lag))]
        self._gaps = gaps = response.gaps
        breaks = np.r_[response.starts, response.starts - lag]
        self._starts = np.unique(breaks[breaks >= response.starts[0]])
        left, right = response.terms(self._starts), response.terms(self._starts + lag)
        pairs = gaps[:, None] + gaps - gaps[:, None] * gaps
        self._matrices = left[:, :, None] * right[:, None, :] / pairs
        whole = self._stretch(self._matrices[:-1], np.diff(self._starts)[:, None])
        self._before = self._table[-1] + np.cumsum(np.r_[0.0, whole[:, 0]])

    def sums(self, n: Float64) -> Float64:
        """Return the sum over k < n for each of ``n``, at least 0 and of any shape."""
        total = np.array(self._table[np.minimum(n, len(self._table) - 1).astype(np.int64)])
        within = np.searchsorted(self._starts, n, side="right") - 1
        for index in np.unique(within[within >= 0]):
            chosen = within == index
            inside = self._stretch(self._matrices[index], n[chosen] - self._starts[index])
            total[chosen] = self._before[index] + inside
        return total

    def _stretch(self, matrix: Float64, n: Float64) -> Float64:
        """Return the first n products of stretches, from matrices (..., poles, poles)."""
        u = _lost(self._gaps, n)
        linear = u @ (matrix.sum(axis=-1) + matrix.sum(axis=-2))[..., None]
        return np.asarray(linear[..., 0] - ((u @ matrix) * u).sum(axis=-1))


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


def combed(response: Response, beta: float, lag: int) -> Response:
    """Return the response with its echoes, ``b_n + beta b_(n - lag) + beta^2 b_(n - 2 lag)`` etc.

    Echoes of a share below 1e-15 are left out; nothing here is a difference of large numbers.
    """
    echoes = math.ceil(math.log(_FORGOTTEN) / math.log(beta))
    shares = beta ** np.arange(echoes + 1.0)
    first = len(response.table) and len(response.table) + echoes * lag
    table = response.at(np.arange(first, dtype=np.float64))
    for start in range(lag, first, lag):
        table[start : start + lag] += beta * table[start - lag : first - lag][:lag]
    ages = response.starts[:, None] + lag * np.arange(-echoes, echoes + 1.0)
    begun = ages >= response.starts[0]
    terms = response.terms(np.maximum(ages, response.starts[0])) * begun[..., None]
    heard = sliding_window_view(terms, echoes + 1, axis=1) @ shares[::-1]
    starts, first_of = np.unique(ages[:, echoes:], return_index=True)
    late = starts >= first
    return Response(table, response.gaps, starts[late], np.concatenate(heard)[first_of[late]])


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
    return Response(b, inverse.y, np.array([float(n)]), (-inverse.omega * carried)[None])


def _window(inverse: Inverse, steps: int) -> Response:
    """A running sum up to the window's length; beyond, the difference of two."""
    gaps, rho = _running(inverse)
    forgotten = np.r_[0.0, -rho[1:] * _lost(inverse.y, np.array(steps, dtype=np.float64))]
    starts = np.array([0.0, steps])
    return Response(_NO_TABLE, gaps, starts, np.stack([rho, forgotten]))


def _change(of: Response, lag: int) -> Response:
    """Return b_n - b_(n - lag) of a response without a table, whose pieces are on the same poles.

    Within a piece every term falls by a factor in the lag, which loses no digits; terms of two
    pieces of a window have opposite signs, so that nothing cancels.
    """
    starts = np.unique(np.r_[of.starts, of.starts + lag])
    now = of.terms(starts)
    ages = starts - lag
    begun = ages >= of.starts[0]
    before = np.where(begun[:, None], of.terms(np.maximum(ages, of.starts[0])), 0.0)
    piece, earlier = (np.searchsorted(of.starts, n, side="right") for n in (starts, ages))
    fallen = -before * _lost(of.gaps, np.array(float(lag)))
    same = (begun & (piece == earlier))[:, None]
    return Response(_NO_TABLE, of.gaps, starts, np.where(same, fallen, now - before))


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
    return Response(_NO_TABLE, gaps, np.zeros(1), rho[None])


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
