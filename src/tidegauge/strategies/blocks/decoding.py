"""From noisy rows to views: sums by the fewest completed blocks, other decays step by step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tidegauge.compiled import lazy_module
from tidegauge.strategies import study
from tidegauge.strategies.blocks.combinations import (
    base_of,
    count_blocks,
    count_changes,
    sum_of,
    worst_count,
)
from tidegauge.strategies.blocks.levels import row_coordinates, sizes
from tidegauge.strategies.blocks.rings import grow, init_rings
from tidegauge.strategies.decay import Decay, Difference
from tidegauge.strategies.filters import decode_views, init_decoder, init_past, take_off_past
from tidegauge.strategies.strategy import COORDINATES_PER_STEP, Float64, Int64, State

if TYPE_CHECKING:
    from tidegauge.strategies.blocks import _kernels
else:
    _kernels = lazy_module("tidegauge.strategies.blocks._kernels")

__all__ = ["decode_rows", "init_decoding", "view_gain", "view_terms", "view_worst"]

_NONE = np.empty(0)


def init_decoding(
    levels: tuple[int, ...], views: Sequence[Decay], planned: Sequence[Decay], cells: int
) -> State:
    """The public state before the first step.

    ``spans`` holds how many steps each view sums up (0: all, -1: it is a filter), ``sources`` its
    place among the planned views, or -1; of a difference, both are of the view that it is of.
    """
    sums = [sum_of(view) for view in views]
    spans = [None if found is None else found[0] for found in sums]
    bases = [base_of(view) for view in views]
    sources = [planned.index(view) if view in planned else -1 for view in bases]
    kept = [
        span for span, source in zip(spans, sources, strict=True) if span is not None and source < 0
    ]
    filters = [view for view, span in zip(views, spans, strict=True) if span is None]
    state = {
        **init_decoder(filters, cells, 0),
        **init_rings(levels, kept, cells),
        "spans": np.array([-1 if span is None else span for span in spans], np.int64),
        "sources": np.array(sources, np.int64),
    }
    for place, found in enumerate(sums):
        if found is not None and found[1]:
            init_past(state, _past(place), found[1], cells)
    return state


def _past(place: int) -> str:
    """The name of what a change of a sum remembers; filters have names of their own."""
    return f"sum {place}.past"


def decode_rows(
    state: State,
    levels: tuple[int, ...],
    views: Sequence[Decay],
    planned: int,
    signed: bool,
    measured: Int64,
    first: int,
    unit: float,
    out: Float64,
) -> None:
    """Write every view: planned ones from their rows, the others from completed blocks.

    Args:
        state: From :func:`init_decoding`; changed in place.
        levels: Sizes of the blocks.
        views: As given to :func:`init_decoding`.
        planned: Number of planned views: rows after the blocks of each step.
        signed: Blocks may be subtracted.
        measured: Noisy rows in lattice units, shape (rows, cells).
        first: Index of the first step, from 0.
        unit: The lattice step in grains.
        out: Shape (views, steps, cells); in grains.
    """
    steps = out.shape[1]
    grow(state, levels, first, steps, opened=False)
    _kernels.decode(
        state["ring"],
        state["layout"],
        measured,
        first,
        sizes(levels),
        signed,
        planned,
        state["spans"],
        state["sources"],
        unit,
        out,
    )
    for place, view in enumerate(views):
        if isinstance(view, Difference) and state["spans"][place] >= 0:
            take_off_past(state, _past(place), view.lag, first, out[place])
    places = np.flatnonzero(state["spans"] < 0).tolist()
    if places and steps > 0:
        single = row_coordinates(levels, planned, first, steps) % COORDINATES_PER_STEP == 0
        filters = [views[place] for place in places]
        filtered = np.empty((len(places), steps, out.shape[2]))
        decode_views(
            state, filters, measured[single], first, filtered, gaps=_NONE, weights=_NONE, unit=unit
        )
        out[places] = filtered


def view_gain(
    levels: tuple[int, ...], view: Decay, steps: Int64, signed: bool, opened: bool
) -> Float64:
    """Sum of the squared weights that a view gives to draws of noise, at each of ``steps``."""
    found = sum_of(view)
    if found is None:
        return study.energy(view, steps)
    span, lag = found
    if not lag:
        return count_blocks(levels, span, steps, signed, opened).astype(np.float64)
    counts = count_changes(levels, span, lag, steps, signed, opened)
    return np.asarray(counts @ np.array([1.0, 4.0]))


def view_worst(
    levels: tuple[int, ...], view: Decay, horizon: int, signed: bool, opened: bool
) -> float:
    """The largest of ``view_gain`` up to the horizon; of a decay that is no sum, the limit."""
    found = sum_of(view)
    if found is None:
        return study.worst_energy(view, horizon)
    span, lag = found
    return float(worst_count(levels, span, horizon, signed, opened, lag=lag))


def view_terms(
    levels: tuple[int, ...], view: Decay, step: int, signed: bool, opened: bool
) -> tuple[Float64, Int64]:
    """The weights that a view gives to draws of noise at ``step``, and how often each occurs."""
    found = sum_of(view)
    if found is None:
        return study.noise_terms(view, step)
    span, lag = found
    if not lag:
        return np.ones(1), count_blocks(levels, span, np.array([step]), signed, opened)
    counts = count_changes(levels, span, lag, np.array([step]), signed, opened)[0]
    return np.array([1.0, 2.0])[counts > 0], counts[counts > 0]
