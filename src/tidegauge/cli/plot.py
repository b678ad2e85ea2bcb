"""``tidegauge plot``: releases with their bands, from the public folder alone."""

from __future__ import annotations

from collections.abc import Sequence
from math import lcm
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from tidegauge.cli import completion
from tidegauge.cli.command import command
from tidegauge.cli.steps import ends_of
from tidegauge.cli.terminal import Terminal
from tidegauge.cli.views import (
    from_public,
    only_gauge,
    opened_view,
    refuse_output,
    with_force,
    with_intervals,
)
from tidegauge.errors import InvalidInput

if TYPE_CHECKING:
    from tidegauge.engine.public import PublicFolder
    from tidegauge.engine.published_view import PublishedView
    from tidegauge.planning.plan import Clock
    from tidegauge.plots import Panel
    from tidegauge.strategies.strategy import Int64

__all__ = ["plot"]

_MOST_PANELS: Final = 64
_MOST_FOUND: Final = 24  # of cells that are discovered: there may be thousands
_MOST_READINGS: Final = 500  # more cannot be told apart
_SPANS_US: Final = (60_000_000, 3_600_000_000, 86_400_000_000, 7 * 86_400_000_000)


@command(
    "plot",
    examples=(
        "tidegauge plot public -o visits.png",
        "tidegauge plot public --view running --view 14d -o visits.svg",
    ),
)
@from_public
@click.option(
    "--view",
    "views",
    multiple=True,
    shell_complete=completion.views,
    help="Which views, as for export; may be repeated. Default: the published ones.",
)
@with_intervals
@click.option(
    "-o", "--output", required=True, type=click.Path(path_type=Path), help="Ends in .png or .svg."
)
@with_force
def plot(
    terminal: Terminal,
    public: Path,
    gauge: str | None,
    views: tuple[str, ...],
    level: float | None,
    band: str | None,
    output: Path,
    force: bool,
) -> None:
    """Draw releases with their bands: a panel for each view and cell.

    The guarantee is written below. A picture holds at most 500 readings of a panel; how far they
    are apart is written at its foot. Of cells that are discovered those with the largest last
    values are drawn, 24 panels at most; while none is named, the picture says so. Needs the extra
    "plots".
    """
    import numpy as np

    from tidegauge.engine.public import PublicFolder
    from tidegauge.plots import releases_figure

    if output.suffix not in (".png", ".svg"):
        raise click.UsageError(
            f"Expected --output to end in .png or .svg, got {output.name}. The type of the picture "
            "follows from it. Rename it."
        )
    refuse_output(public, output, force)
    folder = PublicFolder(public)
    name = only_gauge(folder, gauge)
    opened = [opened_view(folder, name, view, level, band) for view in views or folder.views(name)]
    if not len(opened[0].grains):
        raise InvalidInput(
            f"Expected published steps in {public}, got none. There is nothing to draw. Run the "
            "config first."
        )
    clock = folder.plan.clock
    stride = _stride(opened, clock)
    steps = np.arange(stride, len(opened[0].grains) + 1, stride)
    what = {view.name: _what(folder, name, view) for view in opened}
    drawn = _largest(terminal, opened)
    panels = [
        panel
        for colour, view in enumerate(opened)
        for part in ([view, view.total()] if view.view.gauge.totals else [view])
        for number, panel in enumerate(
            _panels(
                part,
                steps,
                colour,
                what[view.name] if len(opened) > 1 else "",
                _joined(view, stride),
            )
        )
        if drawn is None or number in drawn
    ]
    if len(panels) > _MOST_PANELS:
        raise click.UsageError(
            f"Expected at most {_MOST_PANELS} panels, got {len(panels)}: one for each view and "
            "cell. They would be too small. Choose views with --view."
        )
    cells = len(panels) // len(opened)
    columns = next(n for n in (3, 2, 1) if cells % n == 0) if len(opened) > 1 < cells else 2
    about, mechanism = dict(folder.plan.about), opened[0].view.gauge.mechanism
    label = what[opened[0].name] if len(opened) == 1 else _kind(folder, name)
    apart = "" if stride == 1 else f", one reading every {_length(stride, clock)}"
    caption = folder.promise()
    if opened[0].view.gauge.clip is not None:
        caption = (
            "Values beyond the clip of their step count as the clip; the first reading holds all "
            f"that waited for one. {caption}"
        )
    unit = "number of the record" if clock.step_us is None else "end of the step (UTC)"
    releases_figure(
        ends_of(steps, clock), panels, path=output, title=f"{about.get('title', name)}: {label}",
        value_label=label, time_label=unit + apart, caption=caption, share_y=False,
        level=mechanism.level, band=mechanism.band, columns=columns,
    )  # fmt: skip
    terminal.say(f"Picture: {output}")


def _largest(terminal: Terminal, opened: Sequence[PublishedView]) -> set[int] | None:
    """Return which discovered cells are drawn: those of the largest last values.

    None: all, or of ranked cells those that the last step shows.
    """
    first, most = opened[0], max(1, _MOST_FOUND // len(opened))
    if first.view.shown is None:
        return None
    if len(first.cells) <= most or first.view.top is not None:
        return None
    terminal.say(
        f"Drawn are the {most} of {len(first.cells):,} named cells whose last {first.name} is "
        "largest; export has all."
    )
    return set((-first.grains[-1]).argsort(kind="stable")[:most].tolist())


def _stride(opened: Sequence[PublishedView], clock: Clock) -> int:
    """Return how many steps readings are apart: a minute, an hour, a day or a week, if they fit."""
    least = -(-len(opened[0].grains) // _MOST_READINGS)
    spans = [
        span // clock.step_us
        for span in _SPANS_US
        if clock.step_us is not None and span % clock.step_us == 0
    ]
    fitting = [span for span in (1, *spans) if span >= least]
    return lcm(fitting[0] if fitting else least, *(view.view.every for view in opened))


def _joined(opened: PublishedView, stride: int) -> bool:
    """Whether every step is in one of the readings, so that a line between them means something."""
    from tidegauge.strategies.decay import Difference, Step, Window

    decay = opened.view.decay
    match decay.view if isinstance(decay, Difference) else decay:
        case Step():
            return stride == 1
        case Window(steps=steps):
            return stride <= steps
        case _:
            return True


def _panels(
    opened: PublishedView, steps: Int64, colour: int, label: str, joined: bool
) -> list[Panel]:
    """One panel a cell that is drawn; a window that is not full, or no value, leaves a gap."""
    import numpy as np

    from tidegauge.plots import OKABE_ITO, Panel

    if opened.view.shown is not None and not opened.cells:
        return [_empty(len(steps), label or opened.name)]
    found = opened.view.numbers(steps, opened.grains[steps - 1])
    gap = ~opened.view.complete(steps)
    value, lower, upper = (np.array(one) for one in (found.value, found.lower, found.upper))
    for array in (value, lower, upper):
        array[gap] = np.nan
        array[np.isnan(value)] = np.nan  # all that is possible, where no value is, hides the rest
    panels = []
    for number in _drawn(opened):
        cell = opened.cells[number]
        name = ", ".join([*cell, label] if label else cell) or opened.name
        ends = value[:, number], lower[:, number], upper[:, number]
        panels.append(Panel(name, *ends, colour % len(OKABE_ITO), joined))
    return panels


def _empty(steps: int, label: str) -> Panel:
    """The panel of discovered cells of which none is named: what is named depends on data."""
    import numpy as np

    from tidegauge.plots import Panel

    nothing = np.full(steps, np.nan)
    return Panel(f"{label}: nothing is named yet", nothing, nothing, nothing)


def _drawn(opened: PublishedView) -> Sequence[int]:
    """The cells that are drawn: all, or of ranked cells those that the last step shows."""
    if opened.view.top is None or not len(opened.steps):
        return range(len(opened.cells))
    names = [name for name, _ in opened.view.gauge.by]
    return [opened.cells.index(cell) for cell in opened.last().select(names).iter_rows()]


def _what(folder: PublicFolder, gauge: str, opened: PublishedView) -> str:
    """What a view shows, in words."""
    from tidegauge.planning.words import span_in_words

    return f"{_kind(folder, gauge)} {span_in_words(opened.view.decay, folder.plan.clock.step_us)}"


def _kind(folder: PublicFolder, gauge: str) -> str:
    from tidegauge.planning.words import gauge_in_words

    planned = folder.plan.gauge(gauge)
    return gauge_in_words(planned) if planned.kind in ("count_distinct", "mean") else planned.kind


def _length(steps: int, clock: Clock) -> str:
    from tidegauge.planning.words import length_in_words

    return length_in_words(steps, clock.step_us).removeprefix("1 ")
