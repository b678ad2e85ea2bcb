"""``tidegauge plan``: what a config gives and costs, before any data is read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tidegauge.cli.accepted import accepted, plan_of_file
from tidegauge.cli.command import command
from tidegauge.cli.plan_details import (
    budget_data,
    draw_noise,
    solved,
    warn_of_budget,
)
from tidegauge.cli.plan_tables import tell_plan
from tidegauge.cli.terminal import Terminal
from tidegauge.cli.views import refuse_overwriting, with_force

if TYPE_CHECKING:
    from tidegauge.planning.plan import Plan
    from tidegauge.planning.settings import Settings

__all__ = ["plan"]


@command(
    "plan",
    examples=(
        "tidegauge plan visits.yaml",
        "tidegauge plan visits.yaml -o plan.json && sha256sum plan.json",
        "tidegauge plan visits.yaml --statement",
        "tidegauge plan visits.yaml --compare",
        "tidegauge plan visits.yaml --for-error running=50",
        "tidegauge plan visits.yaml --plot noise.svg",
    ),
)
@click.argument("config", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write the plan file.")
@click.option("--statement", is_flag=True, help="Show what PRIVACY.md will say, for approval.")
@click.option(
    "--compare",
    is_flag=True,
    help="Show every candidate for every gauge, and why it was chosen or not.",
)
@click.option(
    "--for-error",
    "errors",
    multiple=True,
    metavar="VIEW=HALF-WIDTH",
    help="Find the least epsilon (rho, mu) at which half of the view's interval is at most this, "
    "in the unit of the view, at its worst step; the rest of the config is kept. Of several "
    "gauges: GAUGE.VIEW=HALF-WIDTH. Of a mean add how many events it is of, under clip: auto the "
    "clip that you expect, of values on both sides at both ends: "
    "VIEW=HALF-WIDTH,events=3000,clip=250. May be repeated.",
)
@click.option(
    "--plot",
    "picture",
    type=click.Path(path_type=Path),
    help='Draw the noise of every view over its steps, .png or .svg. Needs the extra "plots".',
)
@with_force
def plan(
    terminal: Terminal,
    config: Path,
    output: Path | None,
    statement: bool,
    compare: bool,
    errors: tuple[str, ...],
    picture: Path | None,
    force: bool,
) -> None:
    """Show what a config will give and what it costs; reads no data.

    For every view: the noise at the first, the worst and the last step, the smallest value that
    stands out at every step, and the ratio to the least noise of any factorization mechanism with
    noise of this kind at this cost. The plan file holds what is signed, byte for byte: its SHA-256
    is what was approved. CONFIG may be a plan file.
    """
    from tidegauge.planning.described import described

    _refuse(config, output, compare, errors, picture)
    settings: Settings | None = None
    more: dict[str, Any] = {}
    if errors:
        made, settings, more = _solved(config, errors)
        warn_of_budget(terminal, made)
    elif config.suffix == ".json":
        made = plan_of_file(config)
    else:
        made, settings, _ = accepted(config, None)  # "validate" tells the warnings
    told = described(made) | more
    if compare:
        told["compared"], others = _compared(config, made)
        if others:
            terminal.say(
                f"The store has accepted other strategies for {', '.join(others)}, and they stay: "
                "what is marked as chosen is what a new store would measure."
            )
    _write(made, settings, config, output, picture, force)
    if statement:
        _tell_statement(terminal, made, settings)
    elif terminal.as_json:
        terminal.document(told)
    else:
        tell_plan(terminal, told)
    for what, path in (("Plan", output), ("Picture", picture)):
        if path is not None:
            terminal.say(f"{what}: {path}")


def _write(
    made: Plan,
    settings: Settings | None,
    config: Path,
    output: Path | None,
    picture: Path | None,
    force: bool,
) -> None:
    """Write the plan file and the picture; a plan file that is there already need not be."""
    from tidegauge.engine.files import put

    plan_file = made.canonical()
    for option, path in (("--output", output), ("--plot", picture)):
        if path is not None:
            _refuse_what_is_worked_with(settings, config, option, path)
            if path is picture or not _holds(path, plan_file):
                refuse_overwriting(option, path, force)
    if output is not None:
        put(output, plan_file)
    if picture is not None:
        draw_noise(made, picture)


def _refuse(
    config: Path,
    output: Path | None,
    compare: bool,
    errors: tuple[str, ...],
    picture: Path | None,
) -> None:
    """Refuse options that do not go together, before anything is planned."""
    if config.suffix == ".json" and (compare or errors):
        raise click.UsageError(
            f"Expected a config for --compare and --for-error, got the plan file {config}. What it "
            "measures is settled. Give the config."
        )
    if errors and output is not None:
        raise click.UsageError(
            "Expected --for-error or --output, got both. The plan file would not be that of the "
            "config. Write the budget that is found into the config, then write the plan file."
        )
    if picture is not None and picture.suffix not in (".png", ".svg"):
        raise click.UsageError(
            f"Expected --plot to end in .png or .svg, got {picture.name}. The type of the picture "
            "follows from it. Rename it."
        )


def _solved(path: Path, errors: tuple[str, ...]) -> tuple[Plan, Settings, dict[str, Any]]:
    """The plan of the config with the least budget for the errors asked."""
    from tidegauge.planning.config import config_of
    from tidegauge.planning.planner import plan_of

    config = config_of(path)
    budget, targets = solved(config, errors)
    made = plan_of(budget.config)
    more = {"for_error": budget_data(budget, targets, made)}
    return made, config.settings, more


def _compared(path: Path, made: Plan) -> tuple[list[dict[str, Any]], list[str]]:
    """The candidates of a config, under its plan's guarantee; gauges whose store has others."""
    from tidegauge.planning.candidates import described_candidates
    from tidegauge.planning.config import config_of
    from tidegauge.planning.planner import candidates_of

    config = replace(config_of(path), guarantee=made.guarantee)
    found = candidates_of(config)
    pairs = zip(made.gauges, found, strict=True)
    others = [
        gauge.name
        for gauge, one in pairs
        if gauge.clip is None and one.plan.strategy != gauge.mechanism.strategy
    ]
    return described_candidates(config, found), others


def _tell_statement(terminal: Terminal, made: Plan, settings: Settings | None) -> None:
    """What the next run publishes as PRIVACY.md, to the byte; with --json its privacy.json."""
    from tidegauge.cli.accepted import further_releases
    from tidegauge.planning.statement import privacy_data, privacy_text

    further = () if settings is None else further_releases(made, settings)
    if terminal.as_json:
        terminal.document(privacy_data(made, further))
    else:
        terminal.data(privacy_text(made, further).removesuffix("\n"))


def _holds(path: Path, data: bytes) -> bool:
    """Whether these bytes are what a file holds; pipes and folders hold nothing."""
    if not path.is_file() or path.stat().st_size != len(data):
        return False
    return path.read_bytes() == data


def _refuse_what_is_worked_with(
    settings: Settings | None, config: Path, option: str, output: Path
) -> None:
    """Refuse a file in the place of anything that the plan works with."""
    from tidegauge.planning.places import place_of

    place = place_of(output)
    worked_with = place.same(place_of(config))
    if settings is not None:
        public = place.inside(settings.path(settings.public))
        worked_with = worked_with or public or bool(settings.check(output))
    if worked_with:
        raise click.UsageError(
            f"Expected {option} in a file of its own, got {output}, which the plan works with. It "
            "would be overwritten. Write it elsewhere."
        )
