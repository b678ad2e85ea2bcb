"""``tidegauge validate``: every problem of a config at once, at its line and column."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tidegauge.cli.command import command
from tidegauge.cli.exits import Exit
from tidegauge.cli.terminal import Terminal

if TYPE_CHECKING:
    from tidegauge.plan.problems import Problem

__all__ = ["validate"]


@command("validate", examples=("tidegauge validate flights.yaml", "tidegauge validate *.yaml -q"))
@click.argument("configs", nargs=-1, required=True, type=click.Path(path_type=Path))
def validate(terminal: Terminal, configs: tuple[Path, ...]) -> None:
    """Check configs and show every problem at once.

    Each problem is shown with its file, line and column. No data is read: only the configs, and
    the files of known values that they name.
    """
    reports = {str(path): _problems(path) for path in configs}
    if terminal.as_json:
        terminal.document({"files": {path: _plain(found) for path, found in reports.items()}})
    for path, problems in reports.items():
        if not problems:
            terminal.say(f"{path}: no problem")
        elif not terminal.as_json:
            for problem in problems:
                terminal.error(Exit.CONFIG, str(problem))
    if any(reports.values()):
        raise click.exceptions.Exit(Exit.CONFIG)
