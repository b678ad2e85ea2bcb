r"""The threshold that the noisy count of an item has to pass before its name is shown.

An item that only one protected unit has must not be shown but with a chance of delta, over its
whole life. Its value in the discovery view is at most

.. math:: k D + (B N)_t + \rho, \qquad (B N)_t \sim N(0, \sigma_t^2)

with k D the largest that the unit adds, and rho all roundings: of the noise, of the encoder and of
the decoder's doubles. So the constant threshold m is enough if

.. math:: \sum_t \text{cells} \cdot Q((m - k D - \rho) / \sigma_t) \le \delta,

over all steps at which the unit alone can hold an item up: up to the end for a running view, W for
each event and cell for a window of W. Nothing is assumed of how noise at two steps hangs together.
Proof: ``docs/proofs/unknown_domain.md``.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from tidegauge.errors import UnsupportedCombination
from tidegauge.noise.law import Law
from tidegauge.privacy.unit import NeighboringRelation, Neighbors
from tidegauge.strategies.blt import Blt, Comb
from tidegauge.strategies.blt.fixed_point import rounding_error
from tidegauge.strategies.decay import Decay, Exponential, Running, Step, Window
from tidegauge.strategies.identity import Identity
from tidegauge.strategies.strategy import MOST_STEPS, Float64, Int64, Strategy

__all__ = ["false_releases", "least_threshold", "not_below", "window_of"]

_EPS = 2.0**-53
_SIGMAS = 30.0  # noise beyond them has a chance below 1e-180 in 2^38 steps of 2^40 cells
_LEAST_DELTA = 1e-100
_SPARE = 1e-6  # of delta, and of the stds: closed forms are right to 1e-6
_GRID = 1 << 20
_MOST = 1 << 50
_SINGLE_STEPS = 1024
_GROUP_GROWTH = 256  # later steps stand in groups of 1/256 of their age, at the last one's std


def window_of(decay: Decay) -> int | None:
    """Over how many steps an event holds its item up; None: for ever.

    Raises:
        UnsupportedCombination: The view discovers nothing: old events fade in it and never leave.

    Examples:
        >>> window_of(Window(7)), window_of(Running())
        (7, None)
    """
    match decay:
        case Running():
            return None
        case Window(steps=steps):
            return steps
        case Step():
            return 1
        case _:
            raise UnsupportedCombination(
                f"Expected items to be discovered in a running sum, a window or a step, got "
                f"{decay.name}. In other views an event fades and never leaves. Discover in a "
                "window; all views of what is found are released."
            )


def least_threshold(
    decay: Decay,
    strategy: Strategy,
    law: Law,
    neighbors: Neighbors,
    end: int | None,
    delta: Fraction,
) -> Fraction:
    """Return the least constant threshold that pays for names with ``delta``, in grains, upwards.

    Args:
        decay: The discovery view.
        strategy: What measures the stream.
        law: Its noise.
        neighbors: Who is protected.
        end: The last step; a running view needs it.
        delta: The chance to spend.

    Raises:
        UnsupportedCombination: No proof covers the view with this strategy; the message says why.

    Cost: no data is read; about 1 ms.
    """
    if delta < _LEAST_DELTA:
        raise UnsupportedCombination(
            f"Expected a part of delta of at least {_LEAST_DELTA} for names, got less. Doubles "
            "cannot tell so small a chance. Give a larger delta."
        )
    counts, stds = _steps(decay, strategy, law, neighbors, end)
    start = _largest_value(decay, neighbors) + _roundings(decay, strategy, law, neighbors, end)
    allowed = float(delta) * (1 - _SPARE)
    low, high = 0.0, 40.0 * float(stds.max())
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        if _chance(middle, counts, stds) > allowed:
            low = middle
        else:
            high = middle
    least = start + high
    if not least < _MOST:
        raise UnsupportedCombination(
            "Expected a threshold below 2^50 grains, got a larger one: doubles could not tell what "
            "passes it. Measure in coarser grains."
        )
    grid = _GRID if least < _MOST // _GRID else 1
    return Fraction(math.ceil(least * grid * (1 + 4 * _EPS)), grid)


def not_below(threshold: Fraction) -> float:
    """Return a threshold as a double, rounded up."""
    near = float(threshold)
    return near if near >= threshold else float(np.nextafter(near, np.inf))


def false_releases(
    threshold: Fraction,
    decay: Decay,
    strategy: Strategy,
    law: Law,
    neighbors: Neighbors,
    end: int | None,
) -> float:
    """Return a bound on the chance that names of one unit alone ever pass a threshold.

    Arguments and errors are otherwise those of :func:`least_threshold`.
    """
    counts, stds = _steps(decay, strategy, law, neighbors, end)
    start = _largest_value(decay, neighbors) + _roundings(decay, strategy, law, neighbors, end)
    return _chance(float(threshold) - start, counts, stds)


def _largest_value(decay: Decay, neighbors: Neighbors) -> int:
    """The most, k D, that the events of one unit can add up to in one cell of the view."""
    window, unit = window_of(decay), neighbors.unit
    together = unit.max_events
    if window is not None and unit.min_separation:
        together = min(together, 1 + (window - 1) // unit.min_separation)
    return together * neighbors.largest


def _steps(
    decay: Decay, strategy: Strategy, law: Law, neighbors: Neighbors, end: int | None
) -> tuple[Float64, Float64]:
    """How many pairs of a cell and a step one unit alone can hold up, and the largest std of each.

    Noise of these strategies never falls from step to step, so that the last step of a group stands
    for all of it.
    """
    window = window_of(decay)
    each = neighbors.max_cells * neighbors.unit.max_events
    if neighbors.relation is NeighboringRelation.REPLACE_ONE:
        each *= 2
    if window is not None:
        last = MOST_STEPS if end is None else end
        return np.array([each * float(min(window, last))]), _stds(
            decay, strategy, law, np.array([last])
        )
    if end is None:
        raise UnsupportedCombination("a running sum discovers items up to an end only")
    edges = list(range(min(end, _SINGLE_STEPS) + 1))
    while edges[-1] < end:
        edges.append(min(end, edges[-1] + edges[-1] // _GROUP_GROWTH))
    steps = np.array(edges, dtype=np.int64)
    return each * np.diff(steps).astype(np.float64), _stds(decay, strategy, law, steps[1:])


def _stds(decay: Decay, strategy: Strategy, law: Law, steps: Int64) -> Float64:
    """The std of the unrounded noise in the view, in grains, upwards."""
    gains = strategy.variance_gain(decay, steps)
    return np.asarray(np.sqrt(gains) * float(law.scale) * (1 + _SPARE))


def _chance(above: float, counts: Float64, stds: Float64) -> float:
    """Sum of counts Q(above / std); erfc is right to a few units in the last place."""
    if above <= 0:
        return math.inf
    tails = [math.erfc(above / (std * math.sqrt(2))) / 2 for std in stds.tolist()]
    return math.fsum(counts * np.array(tails)) * (1 + 1e-12)


def _roundings(
    decay: Decay, strategy: Strategy, law: Law, neighbors: Neighbors, end: int | None
) -> float:
    """How far all roundings together can lift a value of an item of one unit, in grains.

    Those of the noise to the lattice and of the encoder stay below ``off`` at each step; B weighs
    them. Doubles: see the proof; all first-order terms are doubled.
    """
    steps, k_d = window_of(decay), float(neighbors.unit.max_events * neighbors.largest)
    beta = float(strategy.beta) if isinstance(strategy, Comb) else 0.0
    filters: Blt | Comb | None = strategy if isinstance(strategy, Blt | Comb) else None
    if filters is None and not isinstance(strategy, Identity):
        raise UnsupportedCombination("its noise is not proved for items that nobody knows yet")
    if beta and steps is None:
        raise UnsupportedCombination(
            "behind a comb the noise of a running sum could help an item of one person to pass "
            "after it did not pass"
        )
    unit: float = 2.0**-strategy.lattice_bits
    off, inverse, row = unit / 2, 1.0, float(steps or end or 0)
    gaps = weights = states = np.empty(0)
    if filters is not None:
        denominator = filters.beta.denominator if isinstance(filters, Comb) else 1
        unit /= denominator
        rounded = rounding_error(filters.gaps, filters.lattice_bits) / denominator
        off, inverse = unit / 2 + float(rounded), 2 / (1 - beta)
        row *= 1.0 if steps is None else inverse
        gaps, weights = (filters.blt if isinstance(filters, Comb) else filters).floats
        poles = [Exponential(factor=1 - Fraction(gap, 1 << 64)) for gap in filters.gaps]
        last = np.array([MOST_STEPS if end is None else end])
        spread = [_stds(pole, strategy, law, last)[0] for pole in poles]
        states = (1 + beta) * (k_d + _SIGMAS * np.array(spread) + inverse * off / gaps)
    noise = unit * float(law.scale)
    step = k_d + inverse * (_SIGMAS * noise + off)  # of an increment
    state_error = 6 * _EPS * (states + step)
    step_error = (3 * len(gaps) + 8) * _EPS * (step + float(weights @ states)) / (1 - beta)
    if steps is None:
        assert end is not None
        value = k_d + _SIGMAS * float(_stds(decay, strategy, law, np.array([end]))[0]) + off * row
        doubles = end * (step_error + float(state_error.sum()) + _EPS * value)
    else:
        each = inverse * (step_error + float((weights / gaps) @ state_error))
        doubles = steps * (each + 4 * _EPS * steps * step)
    return off * row + 2 * doubles
