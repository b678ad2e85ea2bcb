"""``tidegauge run``: from the source to the public folder, as far as the public clock goes."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tidegauge.cli.accepted import accepted
from tidegauge.cli.command import command
from tidegauge.cli.counts import told
from tidegauge.cli.latest import tell_latest
from tidegauge.cli.terminal import Terminal

if TYPE_CHECKING:
    from tidegauge.engine.run import Outcome
    from tidegauge.planning.plan import Plan
    from tidegauge.planning.settings import Settings

__all__ = ["run"]


def _moment(ctx: click.Context, param: click.Parameter, value: str | None) -> datetime | None:
    """Read a moment with its zone."""
    if value is None:
        return None
    try:
        given = datetime.fromisoformat(value)
        moment = None if given.tzinfo is None else given.astimezone(UTC)
    except (ValueError, OverflowError):  # the latter where UTC would leave the calendar
        moment = None
    if moment is None:
        raise click.BadParameter(
            f"Expected a moment with its zone, got {value[:60]!r}. Two clocks would publish two "
            "lists of steps. Write it such as 2025-01-08T00:00:00Z."
        )
    return moment


@command(
    "run",
    examples=(
        "tidegauge run visits.yaml --until 2025-01-08T00:00:00Z",
        "tidegauge run visits.yaml",
    ),
)
@click.argument("config", type=click.Path(path_type=Path))
@click.option(
    "--approved",
    metavar="SHA256|FILE",
    help="Run only the plan with this sum (sha256:...), or only that of this plan file, with the "
    "numbers in it.",
)
@click.option(
    "--until", metavar="TIME", callback=_moment, help="Publish no step that ends after this moment."
)
@click.option(
    "--accept-second-release",
    is_flag=True,
    help="Go on with a store behind its mark, and charge everything once more.",
)
def run(
    terminal: Terminal,
    config: Path,
    approved: str | None,
    until: datetime | None,
    accept_second_release: bool,
) -> None:
    """Publish every step that is over and not yet published.

    The source is read completely, then each block of steps is
    measured, stored and published, also where no row came; rows that come later for a published
    step count nowhere. What was published never changes: run it again after a crash, or when more
    steps are over, and it goes on where it stopped. Try a config with --until first.
    """
    from tidegauge.engine.interruptions import Interruptions

    with Interruptions():  # SIGTERM ends like Ctrl-C, from the first moment on
        plan, settings, warnings = accepted(config, approved)
        if not settings.path(settings.store).exists():  # said once, and before anything is done
            _warn(terminal, warnings)
        outcome = _publish(terminal, plan, settings, until, accept_second_release)
        _warn(terminal, outcome.warnings)
        steps = outcome.last - outcome.first
        what = f"{steps:,} steps measured" if steps else "Nothing to measure"
        terminal.say(f"{what}; published up to step {outcome.last:,}.")
        if steps:
            for line in told(outcome.counters):
                terminal.say(line)
        store = shlex.quote(str(settings.path(settings.store)))
        terminal.say(f"How far the store has got: tidegauge status {store}")
        if all(sink.path != "-" for sink in settings.sinks):
            tell_latest(terminal, settings.path(settings.public), outcome)


def _warn(terminal: Terminal, warnings: Iterable[object]) -> None:
    for warning in warnings:
        terminal.say(f"Warning: {warning}")


def _publish(
    terminal: Terminal, plan: Plan, settings: Settings, until: datetime | None, again: bool
) -> Outcome:
    """Run the engine, with progress on a terminal."""
    from tidegauge.connectors.files import Files
    from tidegauge.engine.run import run as execute

    folder = Path(settings.base)
    source = Files(settings.sources, folder=folder, multiline=plan.multiline)
    terminal.detail(f"Plan {plan.sha256}")
    terminal.detail(f"Source: {source.describe()}")
    with terminal.progress("steps") as progress:
        return execute(
            plan, source, settings, until=until, accept_second_release=again, progress=progress
        )
