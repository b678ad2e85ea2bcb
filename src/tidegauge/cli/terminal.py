"""What is printed and where: data on standard output, talk on standard error.

On a terminal tables are drawn by rich, which obeys ``NO_COLOR`` and the width; elsewhere they are
plain columns, the same in every environment. Progress exists only on a terminal.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TextIO

import click

from tidegauge.checks import one_line

__all__ = [
    "Column", "Terminal", "open_streams", "plain_table", "settle", "short_name", "shown_text",
]  # fmt: skip

Progress = Callable[[int, int], None]

_TIGHT: Final = 2  # spaces between plain columns
_LONGEST: Final = 60  # signs of a name in a table


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Args:
        title: Its heading.
        right: Whether its texts are aligned to the right, as numbers are.
    """

    title: str
    right: bool = False


@dataclass(frozen=True)
class Terminal:
    """How one command talks.

    Args:
        as_json: Results are one JSON document, and errors one JSON line.
        quiet: Nothing but results and errors.
        verbose: Details for the operator, too.
    """

    as_json: bool = False
    quiet: bool = False
    verbose: bool = False
    warned: list[str] = field(default_factory=list, repr=False, compare=False)

    def say(self, text: str) -> None:
        """Talk: to standard error, unless quiet."""
        if not self.quiet:
            _talk(shown_text(text))

    def detail(self, text: str) -> None:
        """Talk that only ``-v`` asks for."""
        if self.verbose:
            _talk(shown_text(text))

    def data(self, text: str) -> None:
        """Write a result to standard output."""
        click.echo(shown_text(text))

    def document(self, value: Any) -> None:
        """Write a result as one JSON document to standard output; its escapes lose nothing."""
        text = json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True)
        click.echo(shown_text(text))

    def error(self, code: int, text: str) -> None:
        """Say what went wrong, to standard error."""
        if self.as_json:
            _talk(json.dumps({"error": text, "exit_code": code}, sort_keys=True))
        else:
            _talk(shown_text(text))

    def table(self, title: str, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
        """Write a table to standard output: drawn on a terminal, plain columns elsewhere."""
        if sys.stdout.isatty():
            _drawn(title, columns, rows)
        else:
            click.echo("\n".join(plain_table(title, columns, rows)))

    @contextmanager
    def progress(self, what: str) -> Iterator[Progress | None]:
        """Give a function of (done, all) that draws a bar; None where nobody would see it."""
        if self.quiet or self.as_json or not sys.stderr.isatty():
            yield None
            return
        from rich.console import Console
        from rich.progress import Progress as Bar

        with Bar(console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(what, total=None)

            def tell(done: int, everything: int) -> None:
                bar.update(task, completed=done, total=everything)

            yield tell


def _talk(text: str) -> None:
    """Write to standard error; where it has no room, what was done stays done all the same."""
    try:
        click.echo(text, err=True)
    except OSError:
        settle(sys.stderr)


def open_streams() -> None:
    """Give closed standard streams a place that leads nowhere, before a file gets their numbers."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            handle = os.open(os.devnull, os.O_RDWR)
            if number:  # closed standard input stays none: it must not be read as a source
                setattr(sys, name, os.fdopen(handle, "w", encoding="utf-8"))


def settle(stream: TextIO) -> None:
    """Let what a stream still holds go nowhere, or Python would complain of it at the end."""
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def shown_text(text: str) -> str:
    r"""Return a text of lines of our own; what else could drive a terminal is escaped.

    Examples:
        >>> print(shown_text("a\x1b[31mb"))
        a\u001b[31mb
    """
    return "\n".join(map(one_line, text.split("\n")))


def short_name(name: str) -> str:
    """Return a name as tables on a terminal show it: in one line that is not too long.

    Two long names that differ stay two: they end in a part of their SHA-256.

    Examples:
        >>> short_name("y" * 1000)
        'yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy...7e33ae'
    """
    text = one_line(name)
    if len(text) <= _LONGEST:
        return text
    end = "..." + hashlib.sha256(text.encode()).hexdigest()[:6]
    return text[: _LONGEST - len(end)] + end


def plain_table(title: str, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table in plain columns, a row a line whatever its names hold."""
    title, heads = one_line(title), [one_line(column.title) for column in columns]
    rows = [[one_line(text) for text in row] for row in rows]
    widths = [max(map(len, cells)) for cells in zip(heads, *rows, strict=True)]
    lines = [title] if title else []
    for row in (heads, ["-" * width for width in widths], *rows):
        cells = [
            text.rjust(width) if column.right else text.ljust(width)
            for text, width, column in zip(row, widths, columns, strict=True)
        ]
        lines.append((" " * _TIGHT).join(cells).rstrip())
    return lines


def _drawn(title: str, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    """Draw a table on the terminal."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=Text(one_line(title), style="bold") if title else None,
        title_justify="left",
        header_style="bold cyan",
    )
    for column in columns:
        table.add_column(
            Text(one_line(column.title)),
            justify="right" if column.right else "left",
            overflow="fold",
        )
    for row in rows:
        table.add_row(*(Text(one_line(text)) for text in row))
    Console().print(table)
