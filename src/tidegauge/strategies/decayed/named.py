"""ExponentialSum, as a config asks for it."""

from __future__ import annotations

from tidegauge.errors import InvalidParameter, UnsupportedCombination
from tidegauge.strategies.asked import Asked
from tidegauge.strategies.decay import Exponential
from tidegauge.strategies.decayed.tree import DecayedTree
from tidegauge.strategies.strategy import Norm

__all__ = ["build_exponential_sum"]


def build_exponential_sum(asked: Asked, *, printed: bool = False) -> DecayedTree:
    """Return the tree of the one exponential decay that is asked, on a lattice of 2^-20.

    Raises:
        UnsupportedCombination: Other views, more than one decay, or a half-life beyond 10^7 steps;
            the printed lambda under L2, or where it does not cover the sensitivity.
    """
    decays = {view for view in asked.views if isinstance(view, Exponential)}
    if len({decay.gap for decay in decays}) != 1 or len(decays) < len(asked.views):
        raise UnsupportedCombination("its nodes hold sums of one exponential decay")
    if printed and asked.norm is not Norm.L1:
        raise UnsupportedCombination("the printed lambda is for discrete Laplace noise")
    decay = decays.pop()
    if decay.gap < 2.0**-24:
        raise UnsupportedCombination("its half-life is beyond 10^7 steps")
    try:
        return DecayedTree.of(decay, 20, printed=printed)
    except InvalidParameter:
        raise UnsupportedCombination("the printed lambda is below its sensitivity") from None
