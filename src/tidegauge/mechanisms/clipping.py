r"""Where to clip, from published counts of magnitudes alone.

Values are counted in octaves: bin k holds magnitudes in [2^(k-1), 2^k), bin 0 the zeros. At steps
of a public schedule the noisy counts so far are turned into a tail, the number of events beyond
each magnitude, and the clip is taken that makes bias^2 + noise variance of the asked views least.

The tail. Bins far above all values hold noise alone, and times their magnitude that noise would
decide everything. So the bins that stand out are believed, one by one or a few together, those far
from the others only if noise does not explain them. But the best clip leaves out about as many
events as one view's noise, fewer than the bins can show; so beyond what is believed the tail is
continued: -log of the share of events grows as a power of the magnitude, which spend, delays and
durations do, with powers of 0.5 to 0.8, and no more is put there than may hide in the noise of what
was counted there. Too high a clip costs noise in proportion, too low a one a bias that stays.

The first clip. Noise and bias of the first steps stay in a running sum for ever, and events can
wait at no cost but delay: so the first choice is made late, when the counts leave little doubt or
after a tenth of the horizon. Later ones are few: at twice the step each time.
"""

from __future__ import annotations

from math import exp, log1p

import numpy as np

from tidegauge.strategies.decay import Decay, Exponential, Running, Step, Window
from tidegauge.strategies.strategy import Float64, Int64

__all__ = ["best_clip", "bins_of", "clips_up_to", "octaves", "schedule", "tail", "weight_so_far"]

_SPANS = (1, 2, 4)  # octaves that are added up to see a tail
# in stds of a bin's noise:
_BELIEVED = 4.5  # where it is apart from the others: one false alarm in 3000 looks at 20 bins
_FOLLOWED = 3.5  # next to one that is believed
_LEAST = 2.5  # where none is believed, the one that stands out most
_HIDDEN = 3.0  # what the bins that follow may hide
_FEW, _PLENTY = 6.0, 400.0  # all events, for a first clip: late, and early

_SHAPE = 0.68, 0.08  # the power by which -log of a tail's share grows: its prior, and how loose
_LOCAL = 3  # octaves whose shares tell it
_MOST_SHARE = 0.9
_LATER = 1.0
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


def schedule(step: int) -> int:
    """Return the step after ``step`` at which a clip that is in force may be chosen anew.

    Examples:
        >>> schedule(1), schedule(1000)
        (2, 2000)
    """
    return step + max(1, int(step * _LATER))


def tail(counts: Float64, zeros: float, std: float) -> Float64 | None:
    """Return how many events have magnitudes of at least 2^k, for each k; None: nothing is seen.

    Args:
        counts: Noisy numbers of events in the octaves from [1, 2) on, shape (octaves,).
        zeros: How many events are below 1, or at the other end.
        std: The standard deviation of the noise of each count.

    Returns:
        Estimates for k = 0, ..., octaves; they do not increase, and all but the last are above 0.

    Examples:
        >>> tail(np.array([800.0, 300, 90, -5, 4]), 0.0, 10).round(1)
        array([1.19e+03, 3.90e+02, 9.00e+01, 1.57e+01, 8.00e-01, 0.00e+00])
    """
    if not len(counts):
        return None
    # beyond 2^k lie the events of the next octaves; of some of them they stand out most
    spans = [np.convolve(counts, np.ones(span))[span - 1 :] for span in _SPANS]
    scores = np.stack(spans) / (std * np.sqrt(_SPANS)[:, None])
    score, number = scores.max(axis=0), np.stack(spans).max(axis=0)
    top = int(score.argmax())
    if score[top] < _LEAST:
        return None
    top = int(np.flatnonzero(score >= min(_BELIEVED, score[top]))[-1])
    while top + 1 < len(counts) and score[top + 1] > _FOLLOWED:
        top += 1
    inside = np.maximum(counts[: top + 1], 0.0)
    inside[top] = number[top]
    inside = inside[::-1].cumsum()[::-1]
    whole = inside[0] + max(zeros, 0.0)
    shares = np.minimum(inside / whole, _MOST_SHARE)
    shape = _shape(shares, std / whole)
    share = shares[top]
    # no more than was counted in the next octaves and noise may hide there
    hidden = max(counts[top + 1 : top + 1 + _SPANS[-1]].sum(), 0.0) + _HIDDEN * std
    next_share = min(share ** (2**shape), hidden / whole)
    beyond = whole * next_share ** (2 ** (shape * np.arange(len(counts) - top)))
    beyond[-1] = 0.0  # 2^octaves is above every bound
    return np.concatenate([inside, np.minimum(beyond, inside[top])])


def _shape(shares: Float64, std: float) -> float:
    """How fast -log of the share of events grows with the magnitude, near the last that is seen.

    Least squares on the last octaves, with a prior: tails of spend, delays and durations have 0.5
    to 0.8, and a share that is hardly seen tells little.
    """
    rate, top = -np.log(shares), len(shares) - 1
    spread = (std / (shares * rate * np.log(2.0))) ** 2  # variance of log2 of the rate
    prior, loose = _SHAPE
    weight, total = 1 / loose**2, prior / loose**2
    for j in range(max(0, top - _LOCAL), top):
        if shares[j] < _MOST_SHARE:
            slope = np.log2(rate[top] / rate[j]) / (top - j)
            precision = (top - j) ** 2 / (spread[top] + spread[j] + 0.01)
            weight, total = weight + precision / _LOCAL, total + slope * precision / _LOCAL
    return float(min(max(total / weight, 0.4), 1.2))


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
    """Return the clip of one end that makes bias^2 + noise variance of the views least.

    Args:
        counts: Noisy numbers of events in the octaves of that end, so far.
        zeros: How many events are below 1, or at the other end.
        std: The standard deviation of the noise of each count.
        clips: What may be chosen, from :func:`clips_up_to`.
        views: Of each view, how many times the events so far it weighs, and the variance of its
            noise for a clip of 1. Where there are several, the geometric mean of their errors
            counts.
        now: The clip in force; every change adds noise to sums over both, which later noise no
            longer undoes.
        waiting: Whether a first clip should rather come later than be a doubtful one.

    Returns:
        A clip; 0 where there are events but none of this end is seen; None where nothing is.
    """
    if counts.sum() + zeros < (_PLENTY if waiting else _FEW) * std:
        return None
    beyond = tail(counts, zeros, std)
    if beyond is None:
        return None if counts.sum() + zeros < _PLENTY * std else 0
    # between two powers of two a tail is a straight line on logarithmic scales
    places = np.arange(len(beyond))[:-1]
    likely = np.log2(np.maximum(beyond[:-1], 1e-9))
    steps = np.log2(np.maximum(clips[1:], 1))
    last = likely[-1] + (likely[-1] - likely[-2] if len(likely) > 1 else 0.0)
    number = np.exp2(np.interp(steps, np.append(places, len(places)), np.append(likely, last)))
    number = np.r_[number[:1], number]  # beyond 0 there are those beyond 1
    lost = np.r_[((number[1:] + number[:-1]) / 2 * np.diff(clips))[::-1].cumsum()[::-1], 0.0]
    sizes = clips.astype(np.float64)
    moved = np.zeros(len(clips)) if now is None else sizes - now
    error = np.zeros(len(clips))
    for weight, variance in views:
        noise = variance * (sizes**2 + moved**2) / (1 if now is None else 2)
        error += np.log((weight * lost) ** 2 + noise + 1e-300)
    return int(clips[error.argmin()])


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
