"""``tidegauge completion``: what a shell needs to complete commands, options and names."""

from __future__ import annotations

import json
from pathlib import Path

import click
from click.shell_completion import CompletionItem, get_completion_class

from tidegauge.cli.command import command
from tidegauge.cli.terminal import Terminal

__all__ = ["completion", "gauges", "views"]


@command(
    "completion",
    examples=("tidegauge completion bash >> ~/.bashrc", "tidegauge completion fish"),
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(terminal: Terminal, shell: str) -> None:
    """Write the completion script of a shell.

    It completes commands, options and files, and the names of gauges and views of a public folder.
    """
    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"Expected a known shell, got {shell}.")
    program = click.get_current_context().find_root().command
    terminal.data(kind(program, {}, "tidegauge", "_TIDEGAUGE_COMPLETE").source().rstrip())


def gauges(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the name of a gauge of the public folder on the line."""
    return _starting(list(_gauges(ctx)), incomplete)


def views(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the name of a published view."""
    chosen = ctx.params.get("gauge")
    found = _gauges(ctx)
    names = [name for gauge in found if chosen in (None, gauge) for name in found[gauge]]
    return _starting(list(dict.fromkeys(names)), incomplete)


def _gauges(ctx: click.Context) -> dict[str, list[str]]:
    """Gauges and their views in the plan of the public folder; nothing where there is none."""
    given = ctx.params.get("public") or next(iter(ctx.args), "")  # before an option is complete
    try:
        text = (Path(given) / "plan.json").read_text(encoding="utf-8")
        found = json.loads(text)["gauges"]
        return {one["name"]: [view[0] for view in one["views"]] for one in found}
    except (OSError, KeyError, TypeError, ValueError, IndexError):
        return {}


def _starting(names: list[str], incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]
