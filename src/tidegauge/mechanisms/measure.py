"""Where noise meets data: the one function that adds noise to anything."""

from __future__ import annotations

from tidegauge.noise.law import Law
from tidegauge.noise.randomness import Words
from tidegauge.strategies.blocks import OpenBlocks
from tidegauge.strategies.strategy import Int64, State, Strategy

__all__ = ["measure", "private_state"]


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

    Returns:
        int64 of shape (rows, cells), in lattice units: public.
    """
    steps, cells = exact.shape
    rows = strategy.encode(state["encoder"], exact, first)
    if isinstance(strategy, OpenBlocks):
        assert numbers is None, "all cells are measured together"
        drawn = law.draw(words, strategy.noise_coordinates(first, steps), cells)
        rows += strategy.mix(state["noise"], drawn, first, steps)
    else:
        law.add(words, rows, strategy.coordinates(first, steps), numbers)
    return rows
