"""Where noise meets data, and nowhere else.

Of a gauge in one function, :func:`measure`; of the papers' systems that select, that count items
nobody knew before or that learn a threshold, in the four short ones below it.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from tidegauge.errors import InvalidInput
from tidegauge.noise.law import Law
from tidegauge.noise.randomness import Words, open_words
from tidegauge.noise.selection import gumbel_order
from tidegauge.strategies.blocks import OpenBlocks
from tidegauge.strategies.rescaled import serves_rescaled
from tidegauge.strategies.strategy import Int64, State, Strategy

if TYPE_CHECKING:
    from tidegauge.mechanisms.threshold_rule import ThresholdRule

__all__ = [
    "measure",
    "measure_counts",
    "measure_items",
    "measure_order",
    "measure_threshold",
    "private_state",
]


def private_state(strategy: Strategy, cells: int) -> dict[str, State]:
    """Return what has to stay private between steps, before the first one."""
    state = {"encoder": strategy.init_encoder(cells)}
    if isinstance(strategy, OpenBlocks):
        state["noise"] = strategy.init_noise(cells)  # drawn, and not released yet
    return state


def measure(
    strategy: Strategy,
    state: dict[str, State],
    law: Law,
    words: Words,
    exact: Int64,
    first: int,
    numbers: Int64 | None = None,
    once: Int64 | None = None,
) -> Int64:
    r"""Return the noisy measurement :math:`v = C x + L z` of a block of steps.

    Guarantee:
        With ``law.scale`` at least the strategy's sensitivity over the budget, everything that
        this function ever returns for one gauge is differentially private, also when later
        totals were chosen after reading earlier measurements. Proofs:
        ``docs/proofs/rounded_gaussian.md``, ``discrete_laplace.md``, ``blt.md``, ``blocks.md``.

    Args:
        strategy: The factorization; its lattice is the noise's lattice.
        state: The private state, changed in place.
        law: The noise.
        words: The gauge's own random words; each coordinate is drawn once.
        exact: Exact totals in grains, shape (steps, cells), C-contiguous int64, already clamped.
        first: Index of the block's first step, counted from 0.
        numbers: The number of each cell in the noise's addresses, shape (cells,), increasing;
            None: 0, 1, 2, .. Where cells are measured in parts, no two have one number.
        once: What one step has beyond the totals that it may have, shape (cells,): at most
            ``strategy.largest_once`` in size, once in a stream; None: nothing.

    Returns:
        int64 of shape (rows, cells), in lattice units: public.
    """
    steps, cells = exact.shape
    rows = strategy.encode(state["encoder"], exact, first)
    if once is not None:
        assert serves_rescaled(strategy), "others have no room for it"
        assert steps == 1, "it belongs to one step"
        rows += strategy.add_once(state["encoder"], once)
    if isinstance(strategy, OpenBlocks):
        assert numbers is None, "all cells are measured together"
        drawn = law.draw(words, strategy.noise_coordinates(first, steps), cells)
        rows += strategy.mix(state["noise"], drawn, first, steps)
    else:
        law.add(words, rows, strategy.coordinates(first, steps), numbers)
    return rows


def measure_counts(law: Law, words: Words, exact: Int64, bits: int, coordinate: int) -> Int64:
    """Return counts on the lattice 2^-bits with a draw of their own, shape (n,): public.

    Args:
        law: The noise, in lattice units.
        words: Words for this purpose alone.
        exact: Exact counts, shape (n,), int64.
        bits: Of the lattice.
        coordinate: The number of this draw, never used twice.
    """
    rows = np.ascontiguousarray(exact[np.newaxis] << bits)
    law.add(words, rows, np.array([coordinate], np.int64))
    noisy: Int64 = rows[0]
    return noisy


def measure_order(words: Words, scores: Int64, scale: Fraction, coordinate: int) -> Int64:
    """Return the places of scores in the order of Gumbel noise; how many are public is paid for."""
    return gumbel_order(words, scores, scale, coordinate)


def measure_items(exact: Int64, drawn: Int64, bits: int) -> Int64:
    """Return counts on the lattice 2^-bits with noise that exists already, shape (n,).

    Args:
        exact: Exact counts, shape (n,), int64.
        drawn: The noise of each, in lattice units, shape (n,), int64.
        bits: Of the lattice.
    """
    noisy: Int64 = (exact << bits) + drawn
    return noisy


def measure_threshold(
    rule: ThresholdRule, values: Int64, most: int, words: Words | None = None
) -> int:
    """Return a private upper quantile of exact values, in grains.

    Guarantee:
        (rule.epsilon, rule.delta)-DP when one value is added, removed, or replaced by any other
        in [0, most]; how many there are may be private. Each call spends it. Proof:
        ``docs/proofs/perrier.md``.

    Args:
        rule: Which quantile, and at what cost.
        values: In grains, int64 of shape (count,), in any order; without one, all of the noise is
            that of the bound.
        most: The largest value there can be, in [1, 2^40].
        words: A source for this one threshold; None: a fresh one, erased afterwards.

    Returns:
        In [0, most]: public. Nothing else that is computed here is.

    Raises:
        InvalidInput: There are no such values; none is shown.

    Cost: O(count log count): some 30 ms for 65,536 values.
    """
    from tidegauge.mechanisms.smooth import smooth_bound
    from tidegauge.mechanisms.threshold_rule import MOST_GRAINS
    from tidegauge.noise.clamped import clamped_laplace

    good = values.dtype == np.int64 and values.ndim == 1 and 1 <= most <= MOST_GRAINS
    if not good or ((values < 0) | (values > most)).any():
        raise InvalidInput(
            "Expected values in whole grains from 0 to the largest, which is at most 2^40, got "
            "others. Noise is made for values in that range. Clamp them first."
        )
    rank = rule.rank(len(values))
    smooth = smooth_bound(values.astype(np.float64), rank, rule.b, float(most))
    scale = rule.kappa * smooth / rule.a
    quantile = int(np.partition(values, rank - 1)[rank - 1]) if len(values) else most
    center = quantile + scale * rule.shift
    if words is not None:
        return clamped_laplace(words, center, scale, most)
    numbers = (rule.epsilon, rule.delta, rule.quantile, rule.beta_lt)
    fresh = open_words("tidegauge threshold 1", most, *numbers)
    try:
        return clamped_laplace(fresh, center, scale, most)
    finally:
        fresh.close()
