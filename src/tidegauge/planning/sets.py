"""How much of an event that is a set of rows a gauge counts: cells, and times in each."""

from __future__ import annotations

from collections.abc import Callable

from tidegauge.planning.gauge_form import GaugeForm

__all__ = ["cells_of_event"]


def cells_of_event(
    read: GaugeForm,
    has_event: bool,
    cells: int,
    high: int,
    refuse: Callable[[str, str], None],
) -> tuple[int, int]:
    """Return the most cells that an event touches, and the most that it adds to one, in grains.

    Args:
        read: One gauge, with its own ``max_items`` and ``repeats``.
        has_event: Whether ``event`` makes sets of rows events; else each row is one.
        cells: How many there are: an event touches no more.
        high: The most that one row adds.
        refuse: Notes a problem: the field that it is with (empty: the gauge), and the message.
    """
    items, repeats = read.max_items, read.repeats
    if not has_event:
        _refuse_alone(items, repeats, refuse)
        return 1, high
    distinct = read.count_distinct is not None
    counts = read.sum is None and read.mean is None and not distinct
    if read.top_k is not None and read.top_k.method is not None:
        return cells, repeats or 1
    if repeats is not None and not counts:
        why = (
            "The values of an event count once each."
            if distinct
            else "The amounts of an event are added up in each cell, and the sum is clamped to "
            "bounds."
        )
        kind = "count_distinct" if distinct else "sum" if read.mean is None else "mean"
        refuse("repeats", f"Expected no repeats beside {kind}, got some. {why} Remove it.")
    if items is None and (read.by or distinct):
        refuse(
            "",
            "Expected max_items where an event is a set, got nothing of it. An event may bring "
            f"many {'values' if distinct else 'cells'}, and noise is made for the most that count. "
            "Write max_items: 5, say.",
        )
    if distinct and read.by and (items or 1) > 1:
        refuse(
            "max_items",
            "Expected max_items: 1 beside count_distinct and by, got more. What several values in "
            "several cells cost is not proved. Write 1, or leave out by.",
        )
    if not distinct and not read.by and (items or 1) > 1:
        refuse(
            "max_items",
            "Expected max_items beside by, got it alone. Without by there is one cell. Remove it.",
        )
    if distinct:
        return 1, items or 1
    return min(items or 1, cells), (repeats or 1) if counts else high


def _refuse_alone(
    items: int | None, repeats: int | None, refuse: Callable[[str, str], None]
) -> None:
    """Each row is one event: it has one cell, and counts there once."""
    for name, number in (("max_items", items), ("repeats", repeats)):
        if (number or 1) > 1:
            refuse(
                name,
                f"Expected event beside {name}, got {name} alone. Each row is one event then, and "
                "counts once in one cell. Write event: COLUMN at the top of the file, whose rows "
                "of one value are one event, or remove it.",
            )
