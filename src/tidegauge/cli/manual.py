"""The page of all help texts: ``python -m tidegauge.cli.manual`` writes ``docs/cli.md``."""

from __future__ import annotations

import click

from tidegauge.cli.counts import LEFT_OUT, OF_GAUGES, OTHERS, meaning
from tidegauge.cli.main import program

__all__ = ["manual"]

_WIDTH = 88
_HEAD = """# The command line

Data goes to standard output, talk to standard error; progress is shown on a terminal only. Colour
obeys `NO_COLOR`. `python -m tidegauge` is the same program.

SIGTERM ends a run like Ctrl-C: the block in hand is finished, then the code is 130, because the
stream is not at its end; the next run goes on.

The public folder and what `export` and `plot` make of it are for readers. Standard error of `run`,
`status` and the store are for the operator: they show counts that no guarantee covers.

| count | of |
| --- | --- |
{counts}"""


def manual() -> str:
    """Return the help of the program and of every command, as Markdown."""
    of_gauges = (f"GAUGE: {name}" for name in OF_GAUGES)
    names = dict.fromkeys(("records", *LEFT_OUT, *OTHERS, *of_gauges))
    rows = "".join(f"| `{name}` | {meaning(name)} |\n" for name in names)
    parts = [_HEAD.format(counts=rows)]
    root = click.Context(program, info_name="tidegauge", help_option_names=["-h", "--help"])
    parts.append(_block("tidegauge", program, root))
    for name, one in program.commands.items():
        parts += [f"## {name}\n", _block(name, one, root)]
    return "\n".join(parts)


def _block(name: str, one: click.Command, root: click.Context) -> str:
    context = root
    if one is not program:
        context = click.Context(one, info_name=name, parent=root)
    context.terminal_width = _WIDTH
    return f"```text\n{one.get_help(context)}\n```\n"


if __name__ == "__main__":
    click.echo(manual(), nl=False)
