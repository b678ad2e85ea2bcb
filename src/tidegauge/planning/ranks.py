"""What may stand beside ``top_k``: a count by cells, of which the largest are published."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from tidegauge.mechanisms.selection import Select
from tidegauge.planning import fields
from tidegauge.planning.gauge_form import GaugeForm
from tidegauge.strategies.decay import Running

__all__ = ["refuse_beside_top", "select_of"]

_LEAST_MISS = Fraction(1, 10**9)  # of one interval: beyond it tails cannot be told apart


def refuse_beside_top(read: GaugeForm, cells: int, refuse: Callable[[str, str], None]) -> None:
    """Note what has no meaning beside ``top_k``.

    Args:
        read: One gauge, with a ``top_k``.
        cells: How many are ranked together; of discovered ones, how many are expected.
        refuse: Notes a problem: the field that it is with (empty: the gauge), and the message.
    """
    if not read.by:
        refuse(
            "",
            "Expected by beside top_k, got nothing of it. Cells are what is ranked. Write "
            "by: {shop: [north, south]}.",
        )
    if "other" in read.model_fields_set and read.other != "drop":
        refuse(
            "other",
            "Expected no other beside top_k, got one. The rest is no cell that could be ranked: "
            "it is left out. Remove it.",
        )
    if read.totals:
        refuse(
            "totals",
            "Expected no totals beside top_k, got some. The sum of all cells has no rank. Remove "
            "it, or count in a gauge of its own.",
        )
    for column in sorted(fields.RANKED.intersection(read.by)):
        refuse(
            "by",
            f"Expected a column that no ranked release has, got {column}. Both would stand side by "
            "side under one name. Rename it in the source.",
        )
    if (1 - Fraction(repr(read.level))) / cells < _LEAST_MISS:
        refuse(
            "level",
            "Expected a level that so many cells can have at once, got a larger one. So far out, "
            "double precision cannot tell tails apart. Write 0.95, and beside discover no more "
            "expected_items than there may be.",
        )


def select_of(
    read: GaugeForm,
    cells: int,
    *,
    has_event: bool,
    has_end: bool,
    refuse: Callable[[str, str], None],
) -> Select | None:
    """Return how cells are to be chosen, by the ``method`` of a ``top_k``; None: by no method.

    Args:
        read: One gauge, with a ``top_k``.
        cells: How many there are.
        has_event: Whether ``event`` makes sets of rows events.
        has_end: Whether the stream has a declared end.
        refuse: As in :func:`refuse_beside_top`.
    """
    asked = read.top_k
    assert asked is not None
    if asked.method is None:
        for name in ("switches", "margin"):
            if getattr(asked, name) is not None:
                refuse(
                    f"top_k.{name}",
                    f"Expected {name} beside method, got it alone. Without a method all cells are "
                    "measured, and the largest shown at each step. Write method: sparse_gumb, or "
                    "remove it.",
                )
        return None
    _refuse_beside_method(read, refuse)
    if not has_event:
        refuse(
            "top_k.method",
            "Expected event beside method: sparse_gumb, got none. Each row is in one cell then, "
            "and a plain top_k has less noise. Remove method, or write event: COLUMN.",
        )
    if asked.switches is None:
        refuse(
            "top_k",
            "Expected switches beside method: sparse_gumb, got nothing of it. Each is paid for "
            "from the start. Write switches: 20.",
        )
    if asked.margin is None and not has_end:
        refuse(
            "top_k",
            "Expected end, or a margin beside method: sparse_gumb, got neither. By how much a cell "
            "has to lead, so that noise alone rarely makes a switch, depends on how many steps "
            "there are. Give end, or margin: 100, say.",
        )
    if asked.k >= cells:
        refuse(
            "top_k.k",
            f"Expected fewer cells to be shown than the {cells:,} that there are, got {asked.k:,}. "
            "Nothing is left to be chosen. Remove method, and write max_items.",
        )
    return Select(asked.k, asked.switches or 1, asked.margin)


def _refuse_beside_method(read: GaugeForm, refuse: Callable[[str, str], None]) -> None:
    """Note what a choice of cells leaves no room for."""
    if read.max_items is not None:
        refuse(
            "max_items",
            "Expected no max_items beside method: sparse_gumb, got one. An event may be in any "
            "number of cells. Remove it, or remove method.",
        )
    views: list[Any] = list(read.views)
    if any(view.decay != Running() for view in views) or len(views) > 1:
        refuse(
            "views",
            "Expected the one view running beside method: sparse_gumb, got others. Of a cell "
            "nothing is published while it is hidden, so that no other view can be made. Write "
            "views: [running], or {view: running, every: 1d}.",
        )
    if read.anticipate:
        refuse(
            "anticipate",
            "Expected no anticipate beside method: sparse_gumb, got some. No other view can be "
            "made. Remove it.",
        )
