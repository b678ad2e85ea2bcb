"""ExponentialSum, as a config asks for it."""

from __future__ import annotations

from fractions import Fraction

from tidegauge.errors import InvalidParameter, UnsupportedCombination
from tidegauge.strategies.asked import Asked
from tidegauge.strategies.decay import Exponential
from tidegauge.strategies.decayed.tree import DecayedTree
from tidegauge.strategies.strategy import Norm

__all__ = ["exponential_sum"]


def exponential_sum(asked: Asked, as_printed: Fraction = Fraction(0)) -> DecayedTree:
    """Return the tree of the one exponential decay that is asked, on a lattice of 2^-20.

    Raises:
        UnsupportedCombination: Other views, or more than one decay; the printed lambda under L2.
        InvalidParameter: A half-life beyond about 10^7 steps, or ``as_printed`` is not 0 or 1, or
            the printed lambda does not cover the sensitivity.
    """
    if as_printed not in (0, 1):
        raise InvalidParameter(
            f"Expected as_printed to be 0 or 1, got {as_printed}. It chooses the paper's lambda in "
            "place of the sensitivity. Leave it out."
        )
    decays = {view for view in asked.views if isinstance(view, Exponential)}
    if len({decay.gap for decay in decays}) != 1 or len(decays) < len(asked.views):
        raise UnsupportedCombination("its nodes hold sums of one exponential decay")
    if as_printed and asked.norm is not Norm.L1:
        raise UnsupportedCombination("the printed lambda is for discrete Laplace noise")
    decay = decays.pop()
    if decay.gap < 2.0**-24:
        raise UnsupportedCombination("its half-life is beyond 10^7 steps")
    return DecayedTree.of(decay, 20, printed=bool(as_printed))
