"""From noisy rows to views: sums by the fewest completed blocks, other decays step by step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tidegauge.compiled import lazy_module
from tidegauge.strategies import study
from tidegauge.strategies.blocks.combinations import Paths, base_of, sum_of
from tidegauge.strategies.blocks.levels import row_coordinates
from tidegauge.strategies.blocks.rings import grow, init_rings
from tidegauge.strategies.decay import Decay, Difference
from tidegauge.strategies.filters import decode_views, init_decoder, init_past, take_off_past
from tidegauge.strategies.strategy import COORDINATES_PER_STEP, Float64, Int64, State

if TYPE_CHECKING:
    from tidegauge.strategies.blocks import _kernels
else:
    _kernels = lazy_module("tidegauge.strategies.blocks._kernels")

__all__ = [
    "decode_rows",
    "init_decoding",
    "read_sums",
    "view_gain",
    "view_terms",
    "view_worst",
]

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
    paths: Paths,
    views: Sequence[Decay],
    planned: int,
    measured: Int64,
    first: int,
    unit: float,
    out: Float64,
    scales: Float64 = _NONE,
) -> None:
    """Write every view: planned ones from their rows, the others from completed blocks.

    Args:
        state: From :func:`init_decoding`; changed in place.
        paths: How sums that are not planned are put together, from completed blocks.
        views: As given to :func:`init_decoding`.
        planned: Number of planned views: rows after the blocks of each step.
        measured: Noisy rows in lattice units, shape (rows, cells).
        first: Index of the first step, from 0.
        unit: The lattice step in grains.
        out: Shape (views, steps, cells); in grains.
        scales: What the rows of each level are multiplied by; none where all rows are alike.
    """
    steps = out.shape[1]
    grow(state, paths.levels, first, steps, opened=False)
    _kernels.decode(
        state["ring"],
        state["layout"],
        measured,
        first,
        paths.sizes,
        paths.level_prices,
        scales,
        int(paths.way),
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
        single = row_coordinates(paths.levels, planned, first, steps) % COORDINATES_PER_STEP == 0
        filters = [views[place] for place in places]
        filtered = np.empty((len(places), steps, out.shape[2]))
        decode_views(
            state,
            filters,
            measured[single],
            first,
            filtered,
            gaps=_NONE,
            weights=_NONE,
            unit=unit * float(scales[0]) if len(scales) else unit,
        )
        out[places] = filtered


def read_sums(
    state: State, paths: Paths, spans: Int64, step: int, unit: float, scales: Float64
) -> Float64:
    """Return the sums over the last ``spans`` of the first ``step`` steps, shape (spans, cells).

    The state has to have been decoding a window at least as long as the longest of them.
    """
    out = np.empty((len(spans), state["ring"].shape[1]))
    levels, prices = paths.sizes, paths.level_prices
    factors = scales if len(scales) else np.ones(len(levels))
    _kernels.read_sums(
        state["ring"],
        state["layout"],
        step,
        levels,
        prices,
        factors,
        int(paths.way),
        spans,
        unit,
        out,
    )
    return out


def view_gain(paths: Paths, view: Decay, steps: Int64) -> Float64:
    """Sum of the squared weights that a view gives to draws of noise, at each of ``steps``."""
    found = sum_of(view)
    if found is None:
        return study.energy(view, steps) * float(paths.level_prices[0])
    span, lag = found
    return paths.prices_of_sums(span, steps, lag)


def view_worst(paths: Paths, view: Decay, horizon: int) -> float:
    """The largest of ``view_gain`` up to the horizon; of a decay that is no sum, the limit."""
    found = sum_of(view)
    if found is None:
        return study.worst_energy(view, horizon) * float(paths.level_prices[0])
    span, lag = found
    return paths.worst_price(span, horizon, lag=lag)


def view_terms(paths: Paths, view: Decay, step: int) -> tuple[Float64, Int64]:
    """The weights that a view gives to draws of noise at ``step``, and how often each occurs."""
    roots = np.sqrt(paths.level_prices)
    found = sum_of(view)
    if found is None:
        weights, counts = study.noise_terms(view, step)
        return weights * float(roots[0]), counts
    span, lag = found
    blocks = paths.count_blocks(span, np.array([step]), lag)[0]
    if not paths.prices:
        blocks, roots = blocks.sum(axis=0, keepdims=True), roots[:1]
    weighed = roots[:, None] * np.array([1.0, 2.0])
    return weighed[blocks > 0], blocks[blocks > 0]
