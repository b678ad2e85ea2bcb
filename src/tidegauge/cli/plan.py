"""``tidegauge plan``: what a config gives and costs, before any data is read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tidegauge.cli.accepted import accepted, plan_file
from tidegauge.cli.command import command
from tidegauge.cli.terminal import Column, Terminal
from tidegauge.cli.words import significant

if TYPE_CHECKING:
    from tidegauge.plan.plan import Plan
    from tidegauge.plan.settings import Settings

__all__ = ["plan"]


@command(
    "plan",
    examples=(
        "tidegauge plan visits.yaml",
        "tidegauge plan visits.yaml -o plan.json",
        "tidegauge plan visits.yaml --statement",
    ),
)
@click.argument("config", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write the plan file.")
@click.option("--statement", is_flag=True, help="Show what PRIVACY.md will say, for approval.")
def plan(terminal: Terminal, config: Path, output: Path | None, statement: bool) -> None:
    """Show what a config will give and what it costs; reads no data.

    For every view: the noise at the first, a middle and the last step, the smallest value that
    stands out, and the ratio to the lower bound of any factorization mechanism. The plan file can
    be signed and run: its SHA-256 says what was approved.
    """
    from tidegauge.plan.words import described

    made, settings, warnings = accepted(config, None)
    for warning in warnings:
        terminal.say(f"Warning: {warning}")
    told = described(made)
    if output is not None:
        from tidegauge.engine.files import put

        _refuse_to_overwrite(settings, config, output)
        put(output, plan_file(made, settings, output.parent))
    if statement:
        _tell_statement(terminal, made, settings)
    elif terminal.as_json:
        terminal.document(told)
    else:
        _tell(terminal, told)
    if output is not None:
        terminal.say(f"Plan: {output}")


def _tell_statement(terminal: Terminal, made: Plan, settings: Settings) -> None:
    """What the next run publishes as PRIVACY.md, to the byte; with --json its privacy.json."""
    from tidegauge.cli.accepted import further_releases
    from tidegauge.plan.statement import privacy_data, privacy_text

    further = further_releases(made, settings)
    if terminal.as_json:
        terminal.document(privacy_data(made, further))
    else:
        terminal.data(privacy_text(made, further).removesuffix("\n"))


def _refuse_to_overwrite(settings: Settings, config: Path, output: Path) -> None:
    """Refuse a plan file in the place of anything that the plan works with."""
    from tidegauge.plan.places import place_of

    place = place_of(output)
    public = place.inside(settings.path(settings.public))
    itself = config.suffix != ".json" and place.same(place_of(config))
    if settings.check(output) or public or itself:
        raise click.UsageError(
            f"Expected --output in a file of its own, got {output}, which the plan works with. It "
            "would be overwritten. Write it elsewhere."
        )


def _tell(terminal: Terminal, told: dict[str, Any]) -> None:
    """The same for people."""
    _tell_gauges(terminal, told["gauges"])
    _tell_views(terminal, told["gauges"])
    for gauge in told["gauges"]:
        for view in gauge["views"]:
            terminal.data(f"{gauge['name']}, {view['name']}: {view['stands_out']}.")
    terminal.data("")
    columns = [Column(title, right=True) for title in ("together", "epsilon", "delta")]
    rows = [
        [str(row["events"]), significant(row["epsilon"]), f"{row['delta']:g}".replace("e-0", "e-")]
        for row in told["k_events"]
    ]
    terminal.table(
        "What it means for several protected units, such as those of one person", columns, rows
    )
    terminal.data(f"\n{told['guarantee']}, spent: {told['spent']}\n{told['sha256']}")


def _tell_gauges(terminal: Terminal, gauges: list[dict[str, Any]]) -> None:
    columns = [Column("gauge"), Column("cells", right=True), Column("budget", right=True)]
    columns += [Column("noise"), Column("on every coordinate of")]
    rows = [
        [
            gauge["name"],
            f"{gauge['cells']:,}",
            f"{100 * gauge['budget_share']:.3g} %",
            gauge["noise"],
            gauge["measures"],
        ]
        for gauge in gauges
    ]
    terminal.table("What will be measured (no data was read)", columns, rows)
    terminal.data("")


def _tell_views(terminal: Terminal, gauges: list[dict[str, Any]]) -> None:
    columns = [Column("gauge"), Column("view")]
    columns += [Column(f"noise, {step} step", right=True) for step in ("first", "middle", "last")]
    columns += [Column("± 95 %, last", right=True), Column("ratio", right=True)]
    rows = [
        [
            gauge["name"],
            view["name"],
            *(significant(std) for std in view["noise_std"]),
            significant(view["half_width"][-1]),
            f"{view['ratio']:.2f}",
        ]
        for gauge in gauges
        for view in gauge["views"]
    ]
    terminal.table("What will be published (standard deviations)", columns, rows)
    terminal.data("Ratio: worst noise over the lower bound of any factorization mechanism.\n")
