"""What is measured, and under which noise: the words for each strategy and each kind of noise."""

from __future__ import annotations

from tidegauge.privacy.costs import Cost, GaussianCost, PureCost
from tidegauge.strategies.blocks import Blocks, OpenBlocks
from tidegauge.strategies.blt import Blt, Comb, NormalisedBlt
from tidegauge.strategies.decayed import DecayedTree
from tidegauge.strategies.dense import DenseToeplitz
from tidegauge.strategies.distinct import Anchored, Shaped
from tidegauge.strategies.identity import Identity
from tidegauge.strategies.responses import Responses
from tidegauge.strategies.stepped import PolynomialSum
from tidegauge.strategies.strategy import Strategy

__all__ = ["NOISE_IN_WORDS", "STRATEGIES", "strategy_in_words"]

STRATEGIES: dict[type, str] = {
    Identity: "the stream itself",
    Blt: "a buffered linear Toeplitz encoding of the stream",
    Comb: "a buffered linear Toeplitz encoding of the stream behind a comb",
    NormalisedBlt: "a buffered linear Toeplitz encoding with multipliers, for so many steps",
    DenseToeplitz: "a Toeplitz encoding of a short stream",
    DecayedTree: "the left nodes of a tree of decayed sums",
    Blocks: "blocks",
    OpenBlocks: "blocks, open ones included",
    Shaped: "the count itself under shaped noise",
    Anchored: "the count now and then, and its changes in between",
    PolynomialSum: "windows of falling weight, each by binary trees",
    Responses: "the bits themselves",
}
"""Every strategy that a plan may have, and what it measures."""
NOISE_IN_WORDS: dict[type[Cost], str] = {
    GaussianCost: "rounded Gaussian",
    PureCost: "discrete Laplace",
}
_MOST_SIZES = 7  # of blocks, written out beside the largest


def strategy_in_words(strategy: Strategy) -> str:
    """Return what a strategy measures; of blocks, how many steps they have.

    Examples:
        >>> strategy_in_words(Identity(0)), strategy_in_words(Blocks((1, 24)))
        ('the stream itself', 'blocks of 1 and 24 steps')
        >>> strategy_in_words(Blocks(tuple(2**level for level in range(30))))
        'blocks of 1, 2, 4, ... and 536870912 steps'
    """
    words = STRATEGIES[type(strategy)]
    if not isinstance(strategy, Blocks | OpenBlocks):
        return words
    *smaller, largest = map(str, strategy.levels)
    if len(smaller) > _MOST_SIZES:
        smaller = [*smaller[:3], "..."]
    sizes = f"{', '.join(smaller)} and {largest} steps" if smaller else "1 step"
    return words.replace("blocks", f"blocks of {sizes}", 1)
