"""Buffered linear Toeplitz strategies: the filter, its fixed point, its variances and its fit."""

from tidegauge.strategies.blt.blt import Blt
from tidegauge.strategies.blt.comb import Comb
from tidegauge.strategies.blt.fitting import Fit, fit
from tidegauge.strategies.blt.normalised import NormalisedBlt, fit_normalised

__all__ = ["Blt", "Comb", "Fit", "NormalisedBlt", "fit", "fit_normalised"]
