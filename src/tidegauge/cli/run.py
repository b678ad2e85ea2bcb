"""``tidegauge run``: from the source to the public folder, as far as the public clock goes."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tidegauge.cli.accepted import accepted
from tidegauge.cli.command import command
from tidegauge.cli.latest import tell_latest
from tidegauge.cli.terminal import Terminal

if TYPE_CHECKING:
    from tidegauge.engine.run import Outcome

__all__ = ["run"]


class _Moment(click.ParamType):
    """A moment with its zone."""

    name = "time"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        try:
            moment = datetime.fromisoformat(str(value))
        except ValueError:
            moment = None
        if moment is None or moment.tzinfo is None:
            self.fail(
                f"Expected a moment with its zone, got {str(value)[:60]!r}. Two clocks would give "
                "two plans. Write 2025-01-08T00:00:00Z.",
                param,
                ctx,
            )
        return moment.astimezone(UTC)


@command(
    "run",
    examples=(
        "tidegauge run visits.yaml --until 2025-01-08T00:00:00Z",
        "tidegauge run visits.yaml",
    ),
)
@click.argument("config", type=click.Path(path_type=Path))
@click.option("--approved", metavar="SHA256", help="Run only the plan with this sum.")
@click.option("--until", type=_Moment(), help="Publish no step that ends after this moment.")
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

    CONFIG is a config or a plan file. The source is read completely, then each block of steps is
    measured, stored and published. What was published never changes: run it again after a crash,
    or after more rows came, and it goes on where it stopped.
    """
    from tidegauge.connectors.files import Files
    from tidegauge.engine.run import run as execute

    plan, settings, problems = accepted(config, approved)
    source = Files(settings.sources, folder=Path(settings.base))
    terminal.detail(f"Plan {plan.sha256}")
    terminal.detail(f"Source: {source.describe()}")
    with terminal.progress("steps") as progress:
        outcome = execute(
            plan,
            source,
            settings,
            until=until,
            accept_second_release=accept_second_release,
            progress=progress,
        )
    for warning in (*problems, *outcome.warnings):
        terminal.say(f"Warning: {warning}")
    for name, count in sorted(outcome.counters.items()):
        terminal.detail(f"{name}: {count:,} (for the operator alone)")
    _tell(terminal, outcome)
    if all(sink.path != "-" for sink in settings.sinks):
        tell_latest(terminal, settings.path(settings.public), outcome)


def _tell(terminal: Terminal, outcome: Outcome) -> None:
    steps = outcome.last - outcome.first
    what = f"{steps:,} steps measured" if steps else "Nothing to measure"
    terminal.say(f"{what}; published up to step {outcome.last:,}.")
