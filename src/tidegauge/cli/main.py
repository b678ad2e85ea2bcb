"""The program: its commands, and the table of exit codes in its help."""

from __future__ import annotations

import sys
from typing import Any, Final

import click

from tidegauge import __version__
from tidegauge.cli.completion import completion
from tidegauge.cli.exits import MEANINGS, failure_of
from tidegauge.cli.export import export
from tidegauge.cli.plan import plan
from tidegauge.cli.plot import plot
from tidegauge.cli.run import run
from tidegauge.cli.schema import schema
from tidegauge.cli.status import status
from tidegauge.cli.terminal import Terminal, open_streams, settle
from tidegauge.cli.validate import validate

__all__ = ["program"]

_COMMANDS: Final = (validate, plan, run, status, export, plot, schema, completion)
_CODES: Final = "\n".join(f"  {int(code):>3}  {meaning}" for code, meaning in MEANINGS.items())

_HELP: Final = f"""Publish live statistics of sensitive events under one privacy guarantee.

A config says which events are counted and what is promised. `plan` shows what that gives without
reading any data, `run` publishes, and everything that readers may see lies in the public folder.

\b
Exit codes, none of which depends on the data:
{_CODES}

\b
Examples:
  tidegauge plan visits.yaml
  tidegauge run visits.yaml
"""


class _Program(click.Group):
    """The group, in the order in which a user meets its commands."""

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run a command, whatever the streams are; help that finds no room is no fault either."""
        open_streams()
        try:
            return super().main(*args, **extra)
        except OSError as problem:
            code, text = failure_of(problem)
            Terminal().error(code, text)
            settle(sys.stdout)
            sys.exit(code)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


program = _Program(
    "tidegauge",
    help=_HELP,
    commands=dict((str(one.name), one) for one in _COMMANDS),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    params=[],
)
program = click.version_option(__version__, prog_name="tidegauge")(program)
