r"""Where to clip, from published counts of magnitudes alone.

Values are counted in octaves: bin k holds magnitudes in [2^(k-1), 2^k), bin 0 the zeros. Counts are
published once an epoch, whose ends are public: the rule needs shares of events and no running sums,
so each event is counted under one draw of noise. Pooled over epochs, the counts are turned into
tails, the number of events beyond each magnitude, and the clip is taken that is expected to lose
least against the best one, by bias^2 + noise variance of the asked views.

The tails. The best clip leaves out about as many events as one view's noise, fewer than an octave
can show. So counts are believed, one by one, up to the last octave a = 2^j that stands out; beyond
it the number of events is continued as

.. math:: T \exp\Bigl(-\frac{\lambda}{k}\bigl((x / a)^k - 1\bigr)\Bigr)

which is Pareto for k near 0, exponential for 1, in between for spend, delays and durations, and
ends sharply for large k. Hundreds of (lambda, k) are tried, each with its best T; how well each
explains the noisy counts near a and beyond is its weight. Bins far above all values hold noise
alone, and are explained by every tail that ends before them.

The clip. Squared errors of a few heavy tails would outweigh all others; so of each tail the error
counts in parts of what its own best clip would have, and the mean over tails decides.

The first clip. Noise and bias of the first steps stay in a running sum for ever, and events can
wait at no cost but delay: so the first choice is made late, when the counts leave little doubt or
after a tenth of the horizon, or sooner where more could not be held. Later ones are few: at twice
the step each time.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log, log1p
from typing import final

import numpy as np

from tidegauge.strategies.decay import Decay, Exponential, Running, Step, Window
from tidegauge.strategies.strategy import Float64, Int64

__all__ = [
    "Tails", "best_clip", "bins_of", "clips_up_to", "next_epoch", "octaves", "pooled", "tails",
    "weight_so_far",
]  # fmt: skip

# in stds of a bin's noise:
_APART = 4.8  # a count that stands out wherever it is: one false alarm in 50,000 looks at 20 bins
_NEXT = 3.7  # next to one that does, or the largest where none does
_PLENTY = 200.0  # all events, for a first clip that comes early

_NEAR = 3  # octaves below the last that stands out which tell how fast the tail falls
_MISFIT = 0.1  # no tail is a formula: counts may be off by so much
_BENDS = np.array([-0.25, -0.1, 0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 1, 1.25, 1.5, 2, 3, 5, 10])  # k
_RATES = np.geomspace(0.4, 80, 20)  # lambda
_SHARP = 200.0  # k of tails that end within the octave, near its end, too: as equal values may do
_ENDS = np.array([1.25, 1.5, 1.75, 2.0])
_SHARP_BENDS, _SHARP_RATES = np.full(len(_ENDS), _SHARP), 30 * _SHARP / (_ENDS**_SHARP - 1)
# (x / x0)^k = -log of the share beyond x has lambda = k times that number at a; it is taken to be
# lognormal around _RATE times it, which is at least _LEAST_RATE where nearly all lie beyond a
_RATE, _LOOSE, _LEAST_RATE = 1.0, 0.5, 0.7
_UNLIKELY = 1e-4  # tails of less weight, in parts of the likeliest one's, are left out

_SHORTER = 16  # an epoch begins at the lag, and one where this part of the steps before is over
_FINER = 8  # clips an octave


def octaves(largest: int) -> int:
    """Return how many bins hold the magnitudes 1 to ``largest``.

    Examples:
        >>> octaves(1), octaves(5000)
        (1, 13)
    """
    return largest.bit_length()


def bins_of(magnitudes: Int64) -> Int64:
    """Return the bin of each magnitude: its number of bits; exact below 2^53.

    Examples:
        >>> bins_of(np.array([0, 1, 2, 3, 4, 1023, 1024]))
        array([ 0,  1,  2,  2,  3, 10, 11])
    """
    return np.frexp(magnitudes.astype(np.float64))[1].astype(np.int64)


def clips_up_to(largest: int) -> Int64:
    """Return all clips that may be in force: 0, then eight an octave, then ``largest``.

    Examples:
        >>> clips_up_to(24)
        array([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16,
               18, 20, 22, 24])
    """
    found = {0, largest}
    for octave in range(largest.bit_length() + 1):
        found |= {max(1, (_FINER + part << octave) >> 3) for part in range(_FINER)}
    return np.array(sorted(clip for clip in found if clip <= largest), dtype=np.int64)


def next_epoch(step: int, lag: int | None) -> int:
    """Return the first step of the epoch after the one that ``step`` lies in; steps from 1.

    One begins at the lag, at its doublings, and where a sixteenth of the steps before one is over:
    so nearly all that a choice at the lag reads was counted under one draw of noise. Where no lag
    is known, each is as long as all before it. A clip may be chosen where an epoch begins.

    Args:
        step: Counted from 1.
        lag: Where a first clip is chosen at the latest, at least 2; None: unknown.

    Examples:
        >>> def begin(lag, steps):
        ...     return [step + 1 for step in range(1, steps) if next_epoch(step, lag) == step + 1]
        >>> begin(100, 500), begin(5, 50), begin(None, 50)
        ([2, 7, 100, 200, 400], [2, 5, 10, 20, 40], [2, 4, 8, 16, 32])
    """
    if lag is None:
        return 1 << step.bit_length()
    if step >= lag:
        return lag << (step // lag).bit_length()
    first = lag
    while step < (earlier := max(2, -(-first // _SHORTER))) < first:
        first = earlier
    return first


def pooled(epochs: Float64, std: float) -> tuple[Float64, float]:
    """Return counts of all events so far, from the counts of each epoch, and their noise.

    The shares of each bin are a mean over epochs, each weighted as precise as it is: by its number
    of events.

    Args:
        epochs: Noisy counts, shape (epochs, bins).
        std: The standard deviation of the noise of each.

    Examples:
        >>> counts, noise = pooled(np.array([[30.0, 10], [300, 100]]), 5.0)
        >>> counts.round(), round(noise, 1)
        (array([330., 110.]), 5.5)
    """
    # at least what noise may be: epochs of few events are added up as they are
    events = np.maximum(epochs.sum(axis=1), std * np.sqrt(epochs.shape[1]))
    weights = events * events.sum() / (events**2).sum()
    return weights @ epochs, std * float(np.sqrt((weights**2).sum()))


@final
@dataclass(frozen=True)
class Tails:
    """What may lie beyond the last octave that stands out.

    Attributes:
        octave: j: beyond a = 2^j counts alone are not believed.
        events: T of each tail: how many events lie beyond a; shape (tails,).
        rates: lambda of each tail.
        bends: k of each tail.
        weights: How likely each one is; 1 together.
    """

    octave: int
    events: Float64
    rates: Float64
    bends: Float64
    weights: Float64

    def beyond(self, magnitudes: Float64) -> Float64:
        """Return how many events of each tail lie beyond magnitudes, shape (tails, magnitudes)."""
        parts = _beyond(magnitudes / 2.0**self.octave, self.rates, self.bends)
        return np.asarray(self.events[:, None] * parts)


def _beyond(x: Float64, rates: Float64, bends: Float64) -> Float64:
    """How many times as many events lie beyond x a as beyond a, shape (tails, magnitudes)."""
    powers = np.minimum(np.outer(bends, np.log(x)), 600.0)  # no overflow
    fall = rates[:, None] / bends[:, None] * np.expm1(powers)
    return np.asarray(np.exp(-np.clip(fall, -50.0, 700.0)))


def tails(counts: Float64, std: float) -> Tails | None:
    """Return the tails that explain noisy counts; None: nothing is seen.

    Args:
        counts: Noisy numbers of events in the octaves from [1, 2) on, shape (octaves,).
        std: The standard deviation of the noise of each.

    Examples:
        >>> found = tails(np.array([800.0, 300, 90, -5, 4]), 10)
        >>> found.octave, (found.weights @ found.beyond(np.array([4.0, 8.0]))).round(1)
        (2, array([83.7,  9.5]))
    """
    if not len(counts) or counts.max() < _NEXT * std:
        return None
    octave = int(np.flatnonzero(counts >= min(_APART * std, counts.max()))[-1])
    while octave + 1 < len(counts) and counts[octave + 1] >= _NEXT * std:
        octave += 1
    first = octave
    while first > max(0, octave - _NEAR) and counts[first - 1] >= counts[first]:
        first -= 1
    near = counts[first:]
    bends, rates = (each.ravel() for each in np.meshgrid(_BENDS, _RATES))
    bends, rates = np.append(bends, _SHARP_BENDS), np.append(rates, _SHARP_RATES)
    edges = np.arange(first, len(counts) + 1, dtype=np.float64)
    beyond = _beyond(np.exp2(edges - octave), rates, bends)
    beyond[:, -1] = 0.0  # 2^octaves is above every bound
    parts = beyond[:, :-1] - beyond[:, 1:]
    seen = np.maximum(near, 0.0)
    variance = std**2 + seen + (_MISFIT * seen) ** 2
    events = (parts * near / variance).sum(axis=1) / (parts**2 / variance).sum(axis=1)
    events = np.maximum(events, 0.0)
    misfit = ((near - events[:, None] * parts) ** 2 / variance).sum(axis=1)
    inside = np.maximum(counts[:octave], 0.0).sum()
    likely = _RATE * max(log(1 + inside / counts[octave]), _LEAST_RATE)
    misfit += np.where(bends == _SHARP, 0.0, np.log(rates / likely) / _LOOSE) ** 2
    weights = np.exp((misfit.min() - misfit) / 2)
    kept = (weights > _UNLIKELY) & (events > std / 2)  # what stands out is not nothing
    if not kept.any():
        return None
    weights = weights[kept] / weights[kept].sum()
    return Tails(octave, events[kept], rates[kept], bends[kept], weights)


def best_clip(
    counts: Float64,
    zeros: float,
    std: float,
    clips: Int64,
    views: list[tuple[float, float]],
    now: int | None = None,
    *,
    waiting: bool = False,
) -> int | None:
    """Return the clip of one end that is expected to lose least in bias^2 + noise variance.

    Args:
        counts: Noisy numbers of events in the octaves of that end, so far.
        zeros: How many events are below 1, or at the other end.
        std: The standard deviation of the noise of each count.
        clips: What may be chosen, from :func:`clips_up_to`.
        views: Of each view, how many times the events so far it weighs, and the variance of its
            noise for a clip of 1. Where there are several, the geometric mean of their losses
            counts.
        now: The clip in force; every change adds noise to sums over both, which later noise no
            longer undoes.
        waiting: Whether a first clip should rather come later than be a doubtful one.

    Returns:
        A clip; 0 where there are events but none of this end is seen; None where nothing is.
    """
    events = counts.sum() + zeros
    if waiting and events < _PLENTY * std:
        return None
    found = tails(counts, std)
    if found is None:
        return None if events < _PLENTY * std else 0
    sizes = clips.astype(np.float64)
    beyond = found.beyond(np.maximum(sizes, 1.0))  # beyond 0 there are those beyond 1
    inside = np.r_[np.maximum(counts[: found.octave], 0.0)[::-1].cumsum()[::-1], 0.0]
    counted = sizes < 2.0**found.octave
    edges = 2.0 ** np.arange(found.octave + 1)
    beyond[:, counted] = found.events[:, None] + np.interp(sizes[counted], edges, inside)
    pieces = (beyond[:, 1:] + beyond[:, :-1]) / 2 * np.diff(sizes)
    lost = np.zeros_like(beyond)
    lost[:, :-1] = pieces[:, ::-1].cumsum(axis=1)[:, ::-1]
    moved = np.zeros(len(clips)) if now is None else sizes - now
    loss = np.zeros(len(clips))
    for weight, variance in views:
        noise = variance * (sizes**2 + moved**2) / (1 if now is None else 2)
        error = (weight * lost) ** 2 + noise
        loss += np.log(found.weights @ (error / error.min(axis=1, keepdims=True)))
    return int(clips[loss.argmin()])


def weight_so_far(decay: Decay, step: int) -> float:
    """Return the sum of the weights of all steps up to ``step`` in a view.

    Examples:
        >>> weight_so_far(Window(7), 5), weight_so_far(Window(7), 50)
        (5.0, 7.0)
    """
    match decay:
        case Step():
            return 1.0
        case Running():
            return float(step)
        case Window(steps=steps):
            return float(min(step, steps))
        case Exponential(gap=gap):
            return decay.scale * (1 - exp(step * log1p(-gap))) / gap
        case _:
            return float(decay.weights(min(step, 1 << 20)).sum())
