"""What a gauge publishes: its views, those that are anticipated, and those it has by default."""

from __future__ import annotations

from typing import Any

from tidegauge.errors import TidegaugeError
from tidegauge.planning.complaints import value_at
from tidegauge.planning.document import Document, Path_
from tidegauge.planning.form import ConfigForm
from tidegauge.planning.gauge_form import GaugeForm
from tidegauge.planning.view_form import View
from tidegauge.strategies.decay import Running, Step
from tidegauge.strategies.named import own_decay

__all__ = ["anticipated_of", "views_of"]

_WHY_NOT_DISTINCT = {
    "views": "Expected no views beside count_distinct, got some. Different values of another "
    "window are no function of these: each window is a gauge of its own.",
    "anticipate": "Expected no anticipate beside count_distinct, got some. Its one view is its "
    "window.",
    "max_per_step": "Expected no max_per_step beside count_distinct, got one. A count of different "
    "values cannot be cut off as a sum can.",
    "totals": "Expected no totals beside count_distinct, got some. A value that occurs in two "
    "cells would count twice: a gauge without by counts it once.",
}


def views_of(
    document: Document, path: Path_, config: ConfigForm, read: GaugeForm
) -> tuple[View, ...]:
    """Return what a gauge publishes, in the order of the config."""
    views = _each_once(document, (*path, "views"), read.views)
    if read.count_distinct is not None:
        views = _distinct(document, path, config, read, read.count_distinct.window)
    return views or _default(document, path, read)


def anticipated_of(document: Document, path: Path_, read: GaugeForm) -> tuple[View, ...]:
    """Return views that accuracy is designed for; they are never read, and count once."""
    views: list[Any] = list(read.anticipate)
    for i, view in enumerate(views):
        if view.every != 1:
            document.refuse(
                (*path, "anticipate", i),
                "Expected no every in anticipate, got one. Accuracy does not depend on when a "
                "view is read. Remove it.",
            )
        if view.importance != 1:
            document.refuse(
                (*path, "anticipate", i),
                "Expected no importance in anticipate, got one. What is not published counts "
                "once. Remove it, or publish the view.",
            )
    return tuple(views)


def _each_once(document: Document, path: Path_, given: list[Any]) -> tuple[View, ...]:
    views: list[View] = list(given)
    seen: set[str] = set()
    written = value_at(document.root, path)
    keys = list(written) if isinstance(written, dict) else range(len(views))
    for key, view in zip(keys, views, strict=True):
        if view.name in seen:
            document.refuse(
                (*path, key),
                f"Expected each view once, got {view.name} again. Both would be the same "
                "numbers. Remove one, or name them in a mapping.",
            )
        seen.add(view.name)
    return tuple(views)


def _distinct(
    document: Document, path: Path_, config: ConfigForm, read: GaugeForm, window: View
) -> tuple[View, ...]:
    """The one view of a count of different values; refuse what has no meaning beside it."""
    for name in ("views", "anticipate", "max_per_step", "totals"):
        if name in read.model_fields_set:
            document.refuse((*path, name), f"{_WHY_NOT_DISTINCT[name]} Remove it.", key=True)
    end, steps = config.end, getattr(window.decay, "steps", 0)
    if end is not None and config.step is not None and config.start is not None:
        end = (end - config.start) // config.step
    if end is not None and 0 < end < steps:
        document.refuse(
            (*path, "count_distinct", "window"),
            f"Expected a window within the stream, got {steps:,} steps of {end:,}. It would "
            "never be full. Write running for everything since the start.",
        )
    return (window,)


def _default(document: Document, path: Path_, read: GaugeForm) -> tuple[View, ...]:
    """Each step and the running sum; of a strategy that releases one decay of its own, that."""
    try:
        own = None if read.strategy is None else own_decay(read.strategy)
    except TidegaugeError as error:
        document.refuse((*path, "strategy"), str(error))
        own = None
    if own is not None:
        return (View("polynomial_sum", own),)
    if read.top_k is not None and read.top_k.method is not None:
        return (View("running", Running()),)
    return View("step", Step()), View("running", Running())
