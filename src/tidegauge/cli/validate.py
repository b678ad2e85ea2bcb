"""``tidegauge validate``: every problem of a config at once, at its line and column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tidegauge.cli.command import command
from tidegauge.cli.exits import Exit
from tidegauge.cli.terminal import Terminal

if TYPE_CHECKING:
    from tidegauge.planning.problems import Problem

__all__ = ["validate"]


@command("validate", examples=("tidegauge validate visits.yaml", "tidegauge validate *.yaml -q"))
@click.argument("configs", nargs=-1, required=True, type=click.Path(path_type=Path))
def validate(terminal: Terminal, configs: tuple[Path, ...]) -> None:
    """Check configs and show every problem at once.

    Each problem is shown with its file, line and column. No data is read: only the configs, and
    the files of known values that they name; of sources it is seen whether they are there.
    """
    reports = {str(path): _checked(path) for path in configs}
    if terminal.as_json:
        files = {path: _plain(*found) for path, found in reports.items()}
        terminal.document({"files": files})
    for path, (problems, warnings) in reports.items():
        if not terminal.as_json:
            for problem in problems:
                terminal.error(Exit.CONFIG, str(problem))
        for warning in warnings:
            terminal.say(f"Warning: {warning}")
        if not problems:
            terminal.say(f"{path}: no problem")
    if any(problems for problems, _ in reports.values()):
        raise click.exceptions.Exit(Exit.CONFIG)


def _checked(path: Path) -> tuple[Sequence[Problem], Sequence[Problem]]:
    """Problems and warnings of one config."""
    from tidegauge.planning.config import config_of
    from tidegauge.planning.problems import ConfigError

    try:
        config = config_of(path)
        return (), (*config.warnings, *_missing(str(path), config.settings.missing()))
    except ConfigError as error:
        return error.problems, ()


def _missing(file: str, sources: Sequence[str]) -> list[Problem]:
    """A warning for each source that is not there; it may come later."""
    from tidegauge.planning.problems import Problem

    text = "Expected a file for the source {}, got none yet. A run would have nothing to read."
    return [Problem(file, 0, 0, text.format(source)) for source in sources]


def _plain(problems: Sequence[Problem], warnings: Sequence[Problem]) -> dict[str, Any]:
    return {
        "problems": [asdict(problem) for problem in problems],
        "warnings": [asdict(problem) for problem in warnings],
    }
