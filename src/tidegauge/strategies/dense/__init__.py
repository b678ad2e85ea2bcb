"""Dense square-root Toeplitz strategies, for short streams and as an oracle."""

from tidegauge.strategies.dense.square_root import square_root, square_root_strategy
from tidegauge.strategies.dense.toeplitz import LONGEST, DenseToeplitz

__all__ = ["LONGEST", "DenseToeplitz", "square_root", "square_root_strategy"]
