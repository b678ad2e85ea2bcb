"""A clip that is found: what it stands beside, and what has no meaning there."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction

from tidegauge.errors import TidegaugeError
from tidegauge.mechanisms.clip_plan import LEAST_SHARE, MOST_SHARE
from tidegauge.mechanisms.mean import refuse_without_mean
from tidegauge.planning import fields
from tidegauge.planning.gauge_form import GaugeForm
from tidegauge.planning.view_form import View
from tidegauge.strategies.rescaled import refuse_rescaled

__all__ = ["refuse_beside_clip"]


def refuse_beside_clip(
    read: GaugeForm,
    bounds: tuple[int, int],
    share: Fraction,
    views: Iterable[View],
    refuse: Callable[[str, str], None],
) -> None:
    """Note what has no meaning beside a clip that is found.

    Args:
        read: One gauge, with ``clip: auto``.
        bounds: What a value may be, in grains.
        share: The part of the budget that learning the clip costs.
        views: What is published, and what is anticipated.
        refuse: Notes a problem: the field that it is with (empty: the gauge), and the message.
    """
    kind = "sum" if read.mean is None else "mean"
    if not bounds[0] <= 0 <= bounds[1]:
        refuse(
            kind,
            "Expected bounds around 0 beside clip, got others. Clips are found from 0 on. Write 0 "
            "as the nearer bound, or leave out clip.",
        )
    if not LEAST_SHARE <= share <= MOST_SHARE:
        refuse(
            kind,
            "Expected a share from 0.01 to 0.5, got another. It is the part of the gauge's budget "
            "that learning the clip costs. Write clip: {auto: {share: 0.1}}.",
        )
    for view in views:
        try:
            refuse_rescaled(view.name, view.decay)
            refuse_without_mean(view.name, view.decay)
        except TidegaugeError as problem:
            refuse("views", str(problem))
    if read.strategy is not None:
        refuse(
            "strategy",
            "Expected no strategy beside clip, got one. The noise under a clip that is found is "
            "known for our own alone. Remove one of them.",
        )
    if read.totals:
        refuse(
            "totals",
            "Expected no totals beside clip, got some. All cells share the clip and the budget. "
            "Remove it, or measure the same in a gauge without by.",
        )
    if (read.max_items or 1) > 1:
        refuse(
            "max_items",
            "Expected max_items: 1 beside clip, got more. An event has one magnitude. Write 1, or "
            "leave out clip.",
        )
    if fields.DISCOVER in dict[str, object](read.by).values():
        refuse(
            "by",
            "Expected known values beside clip, got discover. All cells share one clip, and are "
            "known. List the values, or leave out clip.",
        )
    for column in sorted(fields.CLIPPED.intersection(read.by)):
        refuse(
            "by",
            f"Expected a column that no clipped release has, got {column}. Both would stand side "
            "by side under one name. Rename it in the source.",
        )
