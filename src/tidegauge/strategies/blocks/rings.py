"""Rings: for each level, running sums of its blocks at the latest positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tidegauge.compiled import lazy_module
from tidegauge.strategies.strategy import Int64, State

if TYPE_CHECKING:
    from tidegauge.strategies.blocks import _kernels
else:
    _kernels = lazy_module("tidegauge.strategies.blocks._kernels")

__all__ = ["grow", "init_rings", "moved", "ring_layout"]

_FIRST_REACH = 256


def init_rings(levels: tuple[int, ...], spans: Sequence[int], cells: int) -> State:
    """Rings that serve the sums over each of ``spans`` (0: everything); none: no slots.

    They begin with room for 256 steps and grow with the stream, up to the longest span.
    """
    longest = max(spans, default=0)
    reach = min(longest, _FIRST_REACH)
    layout = ring_layout(levels, reach)
    slots = int(layout[-1].sum()) if spans else 0
    return {
        "ring": np.zeros((slots, cells), np.int64),
        "layout": layout,
        "reach": np.array([reach, longest], np.int64),
    }


def ring_layout(levels: tuple[int, ...], reach: int) -> Int64:
    """First slot and number of slots of each level, shape (levels, 2).

    A path over ``span`` steps touches positions between the parent's boundary before its begin
    and the parent's boundary after its end, so ``span`` and two parents are kept.
    """
    parents = (*levels[1:], levels[-1])
    sizes = np.array(
        [
            1 << ((reach + 2 * parent) // size + 1).bit_length()  # above the number of positions
            for size, parent in zip(levels, parents, strict=True)
        ]
    )
    return np.stack((np.cumsum(sizes) - sizes, sizes), axis=1)


def grow(state: State, levels: tuple[int, ...], first: int, steps: int, opened: bool) -> None:
    """Make room for a block of steps: the longest span, or all steps so far if they are fewer.

    Args:
        state: With the arrays of :func:`init_rings`, replaced where they are too small.
        levels: Sizes of the blocks.
        first: Index of the first step, from 0.
        steps: Steps of the block.
        opened: The rings hold every child of the parents that are open, not just completed ones.
    """
    reach, longest = state["reach"].tolist()
    if reach >= min(longest, first + steps):
        return
    reach = min(longest, 1 << (first + steps - 1).bit_length())
    old, layout = state["layout"], ring_layout(levels, reach)
    ring = np.zeros((int(layout[-1].sum()), state["ring"].shape[1]), np.int64)
    parents = (*levels[1:], levels[-1])
    latest = [
        -(-first // parent) * (parent // size) if opened else first // size
        for size, parent in zip(levels, parents, strict=True)
    ]
    _kernels.move_rings(state["ring"], old, ring, layout, np.array(latest, np.int64))
    state["ring"], state["layout"] = ring, layout
    state["reach"] = np.array([reach, longest], np.int64)


def moved(ring: Int64, slots: int, latest: int) -> Int64:
    """Return a ring of ``slots`` slots with every position of ``ring`` up to ``latest``."""
    positions = np.arange(max(0, latest - len(ring) + 1), latest + 1)
    larger = np.zeros((slots, ring.shape[1]), np.int64)
    larger[positions % slots] = ring[positions % len(ring)]
    return larger
