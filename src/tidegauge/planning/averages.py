"""What may stand beside ``mean``: known cells, and views of which a ratio is a mean."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tidegauge.errors import TidegaugeError
from tidegauge.mechanisms.mean import refuse_without_mean
from tidegauge.planning import fields
from tidegauge.planning.gauge_form import GaugeForm
from tidegauge.planning.view_form import View

__all__ = ["MOST_REACH", "refuse_beside_mean"]

MOST_REACH = 1 << 39
"""Most grains of a bound of a mean: sums of so many events as a step can have fit in 64 bits."""


def refuse_beside_mean(
    read: GaugeForm, views: Iterable[View], refuse: Callable[[str, str], None]
) -> None:
    """Note what has no meaning beside ``mean``.

    Args:
        read: One gauge, with a ``mean``.
        views: What is published, and what is anticipated.
        refuse: Notes a problem: the field that it is with (empty: the gauge), and the message.
    """
    for view in views:
        try:
            refuse_without_mean(view.name, view.decay)
        except TidegaugeError as problem:
            refuse("views", str(problem))
    if read.strategy is not None:
        refuse(
            "strategy",
            "Expected no strategy beside mean, got one. The papers have strategies for counts and "
            "sums. Remove it, or publish a count and a sum.",
        )
    for column in sorted(fields.AVERAGED.intersection(read.by)):
        refuse(
            "by",
            f"Expected a column that no release of means has, got {column}. Both would stand side "
            "by side under one name. Rename it in the source.",
        )
    by: dict[str, Any] = dict(read.by)  # lists, files or a word
    if fields.DISCOVER in by.values():
        refuse(
            "by",
            "Expected known values beside mean, got discover. It finds the cells of counts and "
            "sums alone. List the values, or discover them in a count.",
        )
