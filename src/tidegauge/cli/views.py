"""The view that a reader names: a published one, or any other that is thought of now."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tidegauge.cli import completion

if TYPE_CHECKING:
    from tidegauge.engine.public import PublicFolder
    from tidegauge.engine.published_view import PublishedView

__all__ = [
    "from_public",
    "only_gauge",
    "opened_view",
    "refuse_output",
    "refuse_overwriting",
    "with_force",
    "with_intervals",
]


def from_public(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the arguments ``public`` and ``gauge``."""
    gauge = click.option(
        "--gauge", shell_complete=completion.gauges, help="Which gauge; not for a single one."
    )
    folder = click.argument("public", type=click.Path(path_type=Path), is_eager=True)
    return folder(gauge(function))


def with_intervals(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options ``level`` and ``band``."""
    level = click.option(
        "--level",
        type=float,
        callback=_level,
        help="Coverage of the intervals. Default: as the plan says.",
    )
    band = click.option(
        "--band",
        type=click.Choice(["pointwise", "simultaneous"]),
        help="Whether the level holds at each step alone, or for all steps of a view and cell "
        "at once. Default: as the plan says.",
    )
    return level(band(function))


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


def _level(_: click.Context, __: click.Parameter, value: float | None) -> float | None:
    from tidegauge.errors import InvalidParameter
    from tidegauge.mechanisms.intervals import level_of

    try:
        return None if value is None else level_of(value)
    except InvalidParameter as problem:
        raise click.UsageError(str(problem)) from None


def opened_view(
    folder: PublicFolder, gauge: str, view: str, level: float | None, band: str | None
) -> PublishedView:
    """Return a view of a gauge of a public folder.

    Args:
        folder: The folder.
        gauge: The gauge's name.
        view: The name of a published view, or a view as a config writes it: ``14d``,
            ``{half_life: 2d}``, ``{window: 7d, every: 7d}``, ``{difference: 7d, of: 7d}``.
        level: Of the intervals; None: the plan's.
        band: Of the intervals; None: the plan's.
    """
    if view in folder.views(gauge):
        return folder.view(gauge, view, level=level, band=band)
    from tidegauge.errors import InvalidParameter
    from tidegauge.planning.viewing import view_of

    try:
        clock, mechanism = folder.plan.clock, folder.plan.gauge(gauge).mechanism
        found = view_of(view, clock.step_us, clock.end or mechanism.horizon)
    except InvalidParameter as problem:
        raise click.UsageError(
            f"{problem}\nPublished views are {', '.join(folder.views(gauge))}."
        ) from None
    opened = folder.view(gauge, found.decay, every=found.every, level=level, band=band)
    return opened.renamed(found.name)


def with_force(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the option ``force``."""
    return click.option(
        "--force", is_flag=True, help="Write over an output that is there already."
    )(function)


def refuse_output(public: Path, output: Path, force: bool) -> None:
    """Refuse an output that would change what was published, or what somebody may need."""
    from tidegauge.planning.places import place_of

    if place_of(output).inside(public):
        raise click.UsageError(
            f"Expected --output outside {public}, got {output}. What was published must stay as it "
            "is. Write it elsewhere."
        )
    refuse_overwriting("--output", output, force)


def refuse_overwriting(option: str, output: Path, force: bool) -> None:
    """Refuse an output in the place of a file, which may be one that somebody needs.

    A command knows no other config, so it cannot tell a source or a mark from an earlier output:
    whatever is there stays unless ``force`` is given, and a database, as a store is, in any case.
    """
    from tidegauge.engine.files import is_database
    from tidegauge.errors import WriteFailed

    if not output.parent.is_dir():
        raise WriteFailed(
            f"Expected {option} in a folder that is there, got {output}. Nothing was written. Make "
            "the folder, or name another."
        )
    if not os.path.lexists(output):
        return
    if not force:
        raise click.UsageError(
            f"Expected {option} to name no file yet, got {output}, which is there. It could be a "
            "source, a config or a mark. Name another file, or give --force to write over it."
        )
    if not output.is_file() or is_database(output):
        raise click.UsageError(
            f"Expected {option} to name an earlier output, got {output}, which is a store or "
            "another database, or no file at all. It is not written over. Name another file."
        )
