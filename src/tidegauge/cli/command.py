"""What all commands share: options, examples in the help, and how each kind of error ends.

A command's function gets a :class:`Terminal` and raises; here the message alone is shown, without
a traceback and without a value of the data, and the exit code is chosen by the kind of the error.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any, NoReturn

import click

from tidegauge.cli.exits import Exit, failure_of
from tidegauge.cli.terminal import Terminal, settle

__all__ = ["command"]

Function = Callable[..., None]


def command(name: str, *, examples: tuple[str, ...]) -> Callable[[Function], click.Command]:
    """Return a decorator that makes a command of a function of a terminal and its options.

    Args:
        name: The command's name.
        examples: Lines that a user can type; each is run by a test.
    """

    def decorate(function: Function) -> click.Command:
        @functools.wraps(function)
        def guarded(*, as_json: bool, quiet: bool, verbose: bool, **options: Any) -> None:
            terminal = Terminal(as_json, quiet, verbose)
            try:
                function(terminal, **options)
                sys.stdout.flush()  # what does not fit is an error of this command
            except (click.ClickException, click.exceptions.Exit):
                raise
            except (KeyboardInterrupt, Exception) as problem:
                _end(terminal, problem)

        lines = "\n".join(f"  {line}" for line in examples)
        about = inspect.cleandoc(function.__doc__ or "")
        guarded.__doc__ = f"{about}\n\n\b\nExamples:\n{lines}\n"
        own = list(getattr(guarded, "__click_params__", ()))
        guarded.__dict__["__click_params__"] = []
        for option in _SHARED:
            guarded = option(guarded)
        guarded.__dict__["__click_params__"] += own  # click reverses the list: its own come first
        return click.command(name, short_help=about.split("\n")[0])(guarded)

    return decorate


_SHARED = (
    click.option("-v", "--verbose", is_flag=True, help="Say more, to standard error."),
    click.option("-q", "--quiet", is_flag=True, help="Say nothing but results and errors."),
    click.option("--json", "as_json", is_flag=True, help="Results as JSON on standard output."),
)


def _end(terminal: Terminal, problem: BaseException) -> NoReturn:
    """Show the message of a problem and leave with its code."""
    code, text = failure_of(problem)
    if isinstance(problem, OSError):
        settle(sys.stdout)
    if text:
        terminal.error(code, text)
    if code is Exit.UNEXPECTED and terminal.verbose:
        terminal.error(code, _places(problem))
    raise click.exceptions.Exit(code) from None


def _places(problem: BaseException) -> str:
    """Where an unexpected problem arose: files, lines and functions, never a value."""
    import traceback

    frames = traceback.extract_tb(problem.__traceback__)
    return "\n".join(f"  {frame.filename}:{frame.lineno} in {frame.name}" for frame in frames)
