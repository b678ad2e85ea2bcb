"""The latest releases and the statement: how a run ends."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidegauge.cli.terminal import Column, Terminal, short_name
from tidegauge.cli.words import significant

if TYPE_CHECKING:
    from tidegauge.engine.public import PublicFolder
    from tidegauge.engine.published_view import PublishedView
    from tidegauge.engine.run import Outcome
    from tidegauge.planning.plan import Clock

__all__ = ["moment", "tell_latest"]

_MOST_ROWS = 40
_NUMBERS = (
    "step", "value", "noise_std", "lower", "upper", "count", "count_std", "clip_low", "clip_high",
    "complete", "reason",
)  # fmt: skip


def tell_latest(terminal: Terminal, public: Path, outcome: Outcome) -> None:
    """Print, from the public folder alone, the latest release of every view, and the statement."""
    from tidegauge.engine.public import PublicFolder

    folder = PublicFolder(
        public, remedy="Remove that file and run again: it is written anew from the store."
    )
    opened = {
        gauge: [folder.view(gauge, view) for view in folder.views(gauge)] for gauge in folder.gauges
    }
    if terminal.as_json:
        terminal.document(_document(folder, opened, outcome))
        return
    for gauge, views in opened.items():
        if not views or not len(views[0].grains):
            continue
        if folder.plan.gauge(gauge).top is None:
            _table(terminal, folder, gauge, views)
        else:
            _ranks(terminal, folder, gauge, views)
    if outcome.first == 0 and not terminal.quiet:
        from tidegauge.planning.statement import first_page

        terminal.data(first_page(folder.statement()))
    terminal.data(f"The whole statement, to be signed: {public / 'PRIVACY.md'}")


def _table(
    terminal: Terminal, folder: PublicFolder, gauge: str, views: list[PublishedView]
) -> None:
    """One row a cell, one column a view."""
    by = [name for name, _ in folder.plan.gauge(gauge).by]
    columns = [Column(name) for name in by]
    columns += [Column(view.name, right=True) for view in views]
    latest = [_latest(view) for view in views]
    cells = views[0].cells
    first = range(len(cells)) if views[0].view.shown is None else _by_size(views)
    rows = [
        [*map(short_name, cells[at]), *(texts[at] for texts in latest)] for at in first[:_MOST_ROWS]
    ]
    if folder.plan.gauge(gauge).totals:
        totals = [view.total() for view in views]
        rows.append([*totals[0].cells[0], *(_latest(total)[0] for total in totals)])
    if not rows:
        until = moment(folder.plan.clock, len(views[0].grains))
        terminal.data(f"{gauge} up to {until}: nothing is named yet.\n")
        return
    terminal.table(_title(folder, gauge, views[0]), columns, rows)
    if len(cells) > _MOST_ROWS:
        which = "cells" if views[0].view.shown is None else "named cells, with less"
        terminal.data(f"... and {len(cells) - _MOST_ROWS:,} more {which}, in the public folder.")
    terminal.data("")


def _ranks(
    terminal: Terminal, folder: PublicFolder, gauge: str, views: list[PublishedView]
) -> None:
    """One row a rank, one column a view; what may as well be in another order is marked."""
    latest = [_ranked(view) for view in views]
    rows = [
        [str(rank + 1), *(texts[rank] if rank < len(texts) else "" for texts in latest)]
        for rank in range(min(_MOST_ROWS, max(map(len, latest))))
    ]
    until = moment(folder.plan.clock, len(views[0].grains))
    planned = views[0].view.gauge
    discover, select = planned.discover, planned.select
    if not rows:
        terminal.data(f"{gauge} up to {until}: nothing is named yet.\n")
        return
    which, rest = "all cells", "all"
    if select is not None:
        which, rest = "all shown cells", "all shown ones"
    elif discover is not None:
        which, rest = f"up to {discover.expected_items:,} items", "all named ones"
    title = _title(folder, gauge, views[0], of=f" of {which} at once")
    columns = [Column("rank", right=True), *(Column(view.name, right=True) for view in views)]
    terminal.table(title, columns, rows)
    terminal.data(
        "~: the next one may as well have more. A row without ~ is a cut: with "
        f"{100 * planned.mechanism.level:.10g} % certainty"
    )
    terminal.data(
        f"at this step it and all above it have more than {rest} below it, of what counted.\n"
    )
    if select is not None:
        chosen = views[0].view.chosen
        used = 0 if chosen is None or not len(chosen.used) else int(chosen.used[-1])
        left = select.switches - used
        terminal.data(f"{left:,} of {select.switches:,} switches are left.\n")


def _by_size(views: list[PublishedView]) -> list[int]:
    """Discovered cells, those with the largest last values of the first view first."""
    if not len(views[0].steps):
        return list(range(len(views[0].cells)))
    values = _values(views[0])
    return sorted(range(len(values)), key=lambda cell: -values[cell])


def _title(folder: PublicFolder, gauge: str, view: PublishedView, of: str = "") -> str:
    """What a table shows, up to when, and what its intervals cover."""
    level = f"{100 * view.view.gauge.mechanism.level:.10g} %"
    until = moment(folder.plan.clock, len(view.grains))
    return f"{gauge} up to {until}, with {level} intervals{of} (noise only)"


def _ranked(view: PublishedView) -> list[str]:
    """The largest cells of the last release, each with its interval and its mark."""
    if not len(view.steps):
        return ["none yet"]
    table = view.last().to_dicts()
    half = float(view.half_width[-1])
    part = "" if bool(view.complete[-1]) else " (not full)"
    return [
        f"{', '.join(short_name(str(row[name])) for name, _ in view.view.gauge.by)} "
        f"{row['value']:z,.0f} ± {half:,.0f}{part} {'~' if row['close'] else ' '}"
        for row in table
    ]


def _latest(view: PublishedView) -> list[str]:
    """The last release of each cell, with its interval; nothing where none is published yet."""
    if not len(view.steps):
        return ["none yet"] * len(view.cells)
    if _with_reasons(view):
        return _latest_with_reasons(view)
    last = _last(view)
    half, part = last["half_width"], "" if last["complete"] else " (not full)"
    return [f"{value:z,.0f} ± {half:,.0f}{part}" for value in _values(view)]


def _with_reasons(view: PublishedView) -> bool:
    """Whether a value may be missing: of means, and under a clip that is found."""
    return view.view.gauge.kind == "mean" or view.view.gauge.clip is not None


def _latest_with_reasons(view: PublishedView) -> list[str]:
    """The last value of each cell between the ends of its interval, or that there is none."""
    part = "" if bool(view.complete[-1]) else " (not full)"
    found = []
    for row in view.last().to_dicts():
        value, lower, upper = (row[name] for name in ("value", "lower", "upper"))
        text = "none" if value is None else significant(value)
        if lower is not None:
            text += f" [{significant(lower)}, {significant(upper)}]"
        if row.get("count") is not None:
            text += f" of {row['count']:z,.0f}"
        if row.get("clip_high") is not None:
            text += f", clip {significant(row['clip_low'])} to {significant(row['clip_high'])}"
        found.append(text + part)
    return found


def _values(view: PublishedView) -> list[float]:
    """The last release of each cell: all other steps of a long stream are not looked at."""
    shown = view.view.of(view.grains[view.steps[-1:] - 1]) * view.view.grain
    return [float(value) for value in shown[0]]


def _last(view: PublishedView) -> dict[str, Any]:
    """What all cells share at the last published step."""
    step = view.steps[-1:]
    return {
        "step": int(step[0]),
        "noise_std": float(view.view.noise_std(step)[0]),
        "half_width": float(view.view.half_width(step)[0]),
        "complete": bool(view.view.complete(step)[0]),
    }


def _document(
    folder: PublicFolder, opened: dict[str, list[PublishedView]], outcome: Outcome
) -> dict[str, Any]:
    """The same for programs; public, every part of it."""
    ranked = [
        {
            "gauge": gauge,
            "view": view.name,
            "cell": [row[name] for name, _ in view.view.gauge.by],
            "step": row["step"],
            "rank": row["rank"],
            "value": row["value"],
            "noise_std": row["noise_std"],
            "half_width": float(view.half_width[-1]),
            "close": row["close"],
            "complete": row["complete"],
        }
        for gauge, views in opened.items()
        for view in views
        if view.view.top is not None and len(view.steps)
        for row in view.last().to_dicts()
    ]
    releases = [
        {
            "gauge": gauge,
            "view": view.name,
            "cell": list(cell),
            "step": last["step"],
            "value": value,
            **last,
        }
        for gauge, views in opened.items()
        for planned in views
        if planned.view.top is None and not _with_reasons(planned)
        for view in ([planned, planned.total()] if planned.view.gauge.totals else [planned])
        if len(view.steps)
        for last in [_last(view)]
        for cell, value in zip(view.cells, _values(view), strict=True)
    ]
    means = [
        {
            "gauge": gauge,
            "view": view.name,
            "cell": [row[name] for name, _ in view.view.gauge.by],
            **{name: row[name] for name in _NUMBERS if name in row},
        }
        for gauge, views in opened.items()
        for planned in views
        if _with_reasons(planned) and len(planned.steps)
        for view in ([planned, planned.total()] if planned.view.gauge.totals else [planned])
        for row in view.last().to_dicts()
    ]
    return {
        "sha256": folder.plan.sha256,
        "first_step": outcome.first + 1,
        "last_step": outcome.last,
        "releases_charged": outcome.releases,
        "public": str(folder.path),
        "latest": releases + ranked + means,
    }


def moment(clock: Clock, step: int) -> str:
    """Return when a step, counted from 1, ends."""
    if clock.step_us is None:
        return f"record {step:,}"
    start = datetime(1970, 1, 1, tzinfo=UTC)
    end = start + timedelta(microseconds=clock.start_us + step * clock.step_us)
    return f"{end:%Y-%m-%d %H:%M:%S} UTC".replace(":00 UTC", " UTC")
