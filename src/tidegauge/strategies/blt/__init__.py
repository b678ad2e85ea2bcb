"""Buffered linear Toeplitz strategies: the filter, its fixed point, its variances and its fit."""

from tidegauge.strategies.blt.blt import Blt
from tidegauge.strategies.blt.comb import Comb
from tidegauge.strategies.blt.fitting import Fit, fit

__all__ = ["Blt", "Comb", "Fit", "fit"]
