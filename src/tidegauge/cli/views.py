"""The view that a reader names: a published one, or any other that is thought of now."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from tidegauge.engine.public import PublicFolder, PublishedView

__all__ = ["GAUGE", "VIEW", "opened_view"]


def opened_view(folder: PublicFolder, gauge: str | None, view: str) -> PublishedView:
    """Return a view of a public folder.

    Args:
        folder: The folder.
        gauge: The gauge's name; None: the only one.
        view: The name of a published view, or a view as a config writes it: ``14d``,
            ``{half_life: 2d}``, ``{window: 7d, every: 7d}``.
    """
    name = only_gauge(folder, gauge)
    if view in folder.views(name):
        return folder.view(name, view)
    planned, decay, every = parsed_view(view, folder)
    found = folder.view(name, decay, every=every)
    return renamed(found, planned)
