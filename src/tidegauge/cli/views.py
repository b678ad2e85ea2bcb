"""The view that a reader names: a published one, or any other that is thought of now."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from tidegauge.engine.public import PublicFolder, PublishedView

__all__ = ["only_gauge", "opened_view", "outside"]


def only_gauge(folder: PublicFolder, gauge: str | None) -> str:
    """Return a gauge of a public folder by its name; without a name the only one."""
    if gauge is None and len(folder.gauges) > 1:
        raise click.UsageError(
            f"Expected --gauge, got none, and the folder holds {', '.join(folder.gauges)}. Which "
            "one is meant is not known. Give its name."
        )
    chosen = folder.gauges[0] if gauge is None else gauge
    if chosen not in folder.gauges:
        raise click.UsageError(
            f"Expected --gauge to be one of {', '.join(folder.gauges)}, got {chosen}. There is "
            "nothing to show for it. Give one of these."
        )
    return chosen


def opened_view(folder: PublicFolder, gauge: str, view: str) -> PublishedView:
    """Return a view of a gauge of a public folder.

    Args:
        folder: The folder.
        gauge: The gauge's name.
        view: The name of a published view, or a view as a config writes it: ``14d``,
            ``{half_life: 2d}``, ``{window: 7d, every: 7d}``, ``{difference: 7d, of: 7d}``.
    """
    if view in folder.views(gauge):
        return folder.view(gauge, view)
    from tidegauge.errors import InvalidParameter
    from tidegauge.plan.viewing import view_of

    try:
        clock, mechanism = folder.plan.clock, folder.plan.gauge(gauge).mechanism
        found = view_of(view, clock.step_us, clock.end or mechanism.horizon)
    except InvalidParameter as problem:
        raise click.UsageError(
            f"{problem} Published views are {', '.join(folder.views(gauge))}."
        ) from None
    return folder.view(gauge, found.decay, every=found.every).renamed(found.name)


def outside(public: Path, output: Path) -> None:
    """Refuse an output inside a public folder, whatever links lead there."""
    from tidegauge.plan.places import place_of

    if place_of(output).inside(public):
        raise click.UsageError(
            f"Expected --output outside {public}, got {output}. What was published must stay as it "
            "is. Write it elsewhere."
        )
