"""A binary tree whose nodes hold decayed sums: for one exponential decay, without an end."""

from tidegauge.strategies.decayed.tree import DecayedTree, printed_sensitivity

__all__ = ["DecayedTree", "printed_sensitivity"]
