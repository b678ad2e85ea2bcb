"""Fits for an unknown horizon, shipped because each takes about a second."""

from __future__ import annotations

from tidegauge.strategies.decay import Decay

__all__ = ["SHIPPED", "UNKNOWN_HORIZON"]

UNKNOWN_HORIZON = (1 << 10, 1 << 14, 1 << 17, 1 << 20, 1 << 24)
"""Steps at which a running sum is read where no horizon is given."""

SHIPPED: dict[frozenset[Decay], tuple[tuple[int, ...], tuple[int, ...]]] = {}
