"""Views: linear filters of the private increments, one compiled loop for each form of a decay.

A strategy turns its measurement into private increments, an ordinary time series. Every view is a
filter of them, so views can be added at will and cost no privacy. All arithmetic is float64 in a
fixed order for each cell: the bytes do not depend on how a stream is cut into blocks.

====================  =====================================  =========================
decay                 state, floats a cell                   error for ever
====================  =====================================  =========================
Step                  none                                   none
Running               1                                      random walk of roundings
Exponential           1                                      bounded by the memory
Polynomial            one for each of its exponentials       bounded by the memory
Window(W)             min(W, steps so far) (doubling) + 2    bounded by 2 W roundings
Custom                one for each weight                    bounded by the weights
a comb's increments   min(lag, steps so far) (doubling)      bounded by the echoes
Difference(f, L)      f's and min(L, steps so far)           f's
====================  =====================================  =========================
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tidegauge.compiled import lazy_module
from tidegauge.errors import InvalidInput
from tidegauge.strategies.decay import Custom, Decay, Difference, Running, Step, Window
from tidegauge.strategies.strategy import Float64, Int64, State

if TYPE_CHECKING:
    from tidegauge.strategies import _kernels
else:
    _kernels = lazy_module("tidegauge.strategies._kernels")

__all__ = ["decode_views", "filter_views", "init_decoder", "init_past", "take_off_past"]

_LANES = 16384  # cell-steps of one turn; their increments stay in the cache for every view
_FIRST_ROWS = 256  # rows of a ring before it has to grow


def init_decoder(views: Sequence[Decay], cells: int, buffers: int, lag: int = 0) -> State:
    """The state of ``buffers`` decoder poles, of a comb, and of every view, before the first step.

    ``lag``: of the comb; 0: there is none.
    """
    state: State = {"decoder": np.zeros((buffers, cells))}
    if lag:
        state["echoes"] = np.zeros((min(lag, _FIRST_ROWS), cells))
    for index, given in enumerate(views):
        view = given
        if isinstance(view, Difference):
            init_past(state, f"{index}.past", view.lag, cells)
            view = view.view
        if isinstance(view, Window):
            state[f"{index}.ring"] = np.zeros((min(view.steps, _FIRST_ROWS), cells))
            state[f"{index}.sums"] = np.zeros((2, cells))
        elif isinstance(view, Custom):
            state[f"{index}.ring"] = np.zeros((len(view.taps), cells))
        elif isinstance(view, Running):
            state[f"{index}.sum"] = np.zeros(cells)
        elif not isinstance(view, Step):
            state[f"{index}.poles"] = np.zeros((len(view.poles[0]), cells))
    return state


def decode_views(
    state: State,
    views: Sequence[Decay],
    measured: Int64,
    first: int,
    out: Float64,
    *,
    gaps: Float64,
    weights: Float64,
    unit: float,
    comb: tuple[float, int] | None = None,
) -> None:
    """Decode a block to increments by ``y = v unit - sum_j w_j q_j`` and filter it by every view.

    Args:
        state: From :func:`init_decoder`; changed in place, window rings are replaced as they grow.
        views: As given to :func:`init_decoder`.
        measured: Rows of the measurement in lattice units, shape (steps, cells), C-contiguous.
        first: Index of the first step, from 0.
        out: Written; shape (views, steps, cells), C-contiguous; in grains.
        gaps: One minus each pole of the decoder's states, shape (buffers,); none: ``y = v unit``.
        weights: Weight of each state, shape (buffers,).
        unit: The lattice step in grains, a power of two.
        comb: ``(beta, lag)``: beta times the increment of ``lag`` steps ago is added to each; its
            share in a later one falls as beta^n, so errors do not add up.

    Raises:
        InvalidInput: The shapes do not belong together; nothing has changed.
    """
    steps, cells = measured.shape
    if out.shape != (len(views), steps, cells) or state["decoder"].shape[1] != cells:
        raise InvalidInput(
            f"Expected {len(views)} views of {state['decoder'].shape[1]} cells, got a measurement "
            f"of shape {measured.shape} and results of shape {out.shape}. Memory beside the arrays "
            "would be overwritten. Give arrays of one shape."
        )
    rows = max(1, min(steps, _LANES // cells))
    increments = np.empty((rows, cells))
    if rows == steps:  # one turn: a live step has no time for slices
        _kernels.decode(measured, state["decoder"], gaps, weights, unit, increments)
        _add_echoes(state, increments, first, comb)
        for index, view in enumerate(views):
            _filter(state, index, view, increments, first, out[index])
        return
    for start in range(0, steps, rows):
        stop = min(start + rows, steps)
        block = increments[: stop - start]
        _kernels.decode(measured[start:stop], state["decoder"], gaps, weights, unit, block)
        _add_echoes(state, block, first + start, comb)
        for index, view in enumerate(views):
            _filter(state, index, view, block, first + start, out[index, start:stop])


def _add_echoes(
    state: State, increments: Float64, first: int, comb: tuple[float, int] | None
) -> None:
    if comb is not None:
        beta, lag = comb
        ring = _grown(state, "echoes", min(lag, first + len(increments)), lag)
        _kernels.echoes(increments, ring, beta, lag, first % lag)


def filter_views(
    state: State, views: Sequence[Decay], increments: Float64, first: int, out: Float64
) -> None:
    """Filter a block of increments, shape (steps, cells), that a strategy has recovered itself.

    Arguments and errors are otherwise those of :func:`decode_views`.
    """
    steps, cells = increments.shape
    if out.shape != (len(views), steps, cells) or state["decoder"].shape[1] != cells:
        raise InvalidInput(
            f"Expected {len(views)} views of {state['decoder'].shape[1]} cells, got increments of "
            f"shape {increments.shape} and results of shape {out.shape}. Memory beside the arrays "
            "would be overwritten. Give arrays of one shape."
        )
    for index, view in enumerate(views):
        _filter(state, index, view, increments, first, out[index])


def _filter(
    state: State,
    index: int,
    view: Decay,
    increments: Float64,
    first: int,
    out: Float64,
) -> None:
    """Write one view of one turn into ``out``, shape (steps, cells)."""
    if isinstance(view, Difference):
        _filter(state, index, view.view, increments, first, out)
        take_off_past(state, f"{index}.past", view.lag, first, out)
    elif isinstance(view, Step):
        out[...] = increments
    elif isinstance(view, Running):
        _kernels.running(increments, state[f"{index}.sum"], out)
    elif isinstance(view, Window):
        ring = _grown(state, f"{index}.ring", min(view.steps, first + len(increments)), view.steps)
        position = first % view.steps
        _kernels.window(increments, ring, state[f"{index}.sums"], view.steps, position, out)
    elif isinstance(view, Custom):
        taps = view.taps
        _kernels.finite(increments, state[f"{index}.ring"], taps, first % len(taps), out)
    else:
        gaps, weights = view.poles
        _kernels.poles(increments, state[f"{index}.poles"], gaps, weights, out)


def init_past(state: State, name: str, lag: int, cells: int) -> None:
    """Add what a difference remembers: a ring of its view's values, row ``s % lag`` for step s."""
    state[name] = np.zeros((min(lag, _FIRST_ROWS), cells))


def take_off_past(state: State, name: str, lag: int, first: int, out: Float64) -> None:
    """Turn the values of a view into their change over ``lag`` steps.

    Args:
        state: With what :func:`init_past` added; changed in place.
        name: As given to it.
        lag: How far back.
        first: Index of the first step, from 0.
        out: The view's values, shape (steps, cells); changed in place.
    """
    past = _grown(state, name, min(lag, first + len(out)), lag)
    _kernels.take_off(past, lag, first % lag, out)


def _grown(state: State, name: str, needed: int, most: int) -> Float64:
    """The ring with at least ``needed`` rows; it doubles until it has ``most``."""
    ring: Float64 = state[name]
    if len(ring) < needed:
        larger = np.zeros((min(most, max(needed, 2 * len(ring))), ring.shape[1]))
        larger[: len(ring)] = ring
        state[name] = ring = larger
    return ring
