"""Plain-Python twins of the tree of decayed sums: each node from its definition."""

from __future__ import annotations

import numpy as np

from tidegauge.strategies.decayed.table import table_of
from tidegauge.strategies.strategy import Float64, Int64


def encode(x: Int64, gap: int, bits: int, largest: int) -> Int64:
    """Every node that a stream from its first step on completes, one a step."""
    steps, cells = x.shape
    out = np.zeros((steps, cells), dtype=np.int64)
    table = table_of(gap)
    for t in range(1, steps + 1):
        for step in range(t - (t & -t) + 1, t + 1):
            for cell in range(cells):
                total = max(-largest, min(largest, int(x[step - 1, cell])))
                out[t - 1, cell] += table.weight(t - step, bits) * total
    return out


def decode(measured: Int64, powers: list[float], unit: float) -> Float64:
    """Decayed sums from the nodes of the binary digits of each step, oldest node last."""
    steps, cells = measured.shape
    out = np.zeros((steps, cells))
    for t in range(1, steps + 1):
        for cell in range(cells):
            out[t - 1, cell] = _prefix(measured, t, cell, powers, unit)
    return out


def _prefix(measured: Int64, t: int, cell: int, powers: list[float], unit: float) -> float:
    node = int(measured[t - 1, cell]) * unit
    before = t & (t - 1)
    if not before:
        return node
    level = (t & -t).bit_length() - 1
    return node + powers[level] * _prefix(measured, before, cell, powers, unit)
