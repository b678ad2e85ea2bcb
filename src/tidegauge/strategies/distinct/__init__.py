"""Strategies for counts of different values: noise for a change that lasts a window at most."""

from tidegauge.strategies.distinct.anchored import Anchored, anchored
from tidegauge.strategies.distinct.intervals import interval_gains, worst_intervals
from tidegauge.strategies.distinct.shaped import Shaped, decoder_poles, shaped

__all__ = [
    "Anchored",
    "Shaped",
    "anchored",
    "decoder_poles",
    "interval_gains",
    "shaped",
    "worst_intervals",
]
