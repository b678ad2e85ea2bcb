"""The known values of a ``by`` column: each once, from a list or from a file beside the config."""

from __future__ import annotations

import csv
import io
import unicodedata
from collections.abc import Iterator
from pathlib import Path

from tidegauge.checks import shown
from tidegauge.planning.document import Document, Path_, read_text
from tidegauge.planning.fields import twins
from tidegauge.planning.gauge_form import FileForm
from tidegauge.planning.problems import ConfigError

__all__ = ["distinct", "values_of_file"]

_MOST_VALUES_BYTES = 1 << 25


def distinct(document: Document, path: Path_, values: list[str]) -> None:
    """Refuse values that come twice; warn of values that look alike."""
    seen: dict[str, int] = {}
    for i, value in enumerate(values):
        if value in seen:
            document.refuse(
                (*path, i),
                f"Expected each value once, got {shown(value)} again. A row would count in both "
                "cells. Remove one.",
            )
        seen.setdefault(value, i)
        if (look := _hidden(value)) is not None:
            document.warn((*path, i), look)
    for i, look in twins(values):
        document.warn(
            (*path, i),
            f"{shown(look)} is written in two ways of Unicode here (composed and decomposed). They "
            "are two cells, and a row counts in the one that it is spelled like.",
        )


def _hidden(value: str) -> str | None:
    """What to say of a value in which something is not seen."""
    if not value.strip():
        return "A value is empty. Rows count in its cell where the column is empty text."
    if any(unicodedata.category(sign) == "Cf" for sign in value):
        return (
            f"{value!a} holds a character that is not seen. A row counts in its cell only "
            "where the column holds it, too."
        )
    return None


def values_of_file(document: Document, path: Path_, given: FileForm) -> list[str]:
    """The known values of a file; its problems are told with its own lines."""
    shown_as = str(Path(document.file).parent / given.file)
    try:
        text = read_text(shown_as, shown_as, _MOST_VALUES_BYTES)
    except ConfigError as error:
        document.problems += [
            document.at(document.place((*path, "file")), problem.message)
            if not problem.line
            else problem
            for problem in error.problems
        ]
        return []
    lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n") if text else []
    if given.column is None:
        found = list(enumerate(lines))
    else:
        rows = list(_rows(text))
        if not rows or given.column not in rows[0][1]:
            document.refuse(
                (*path, "column"),
                f"Expected a column of {given.file}, got {shown(given.column)}. Its first line "
                "does not name it. Check the spelling.",
            )
            return []
        index = rows[0][1].index(given.column)
        found = [(line, row[index] if index < len(row) else "") for line, row in rows[1:]]
    lined = Document(shown_as, lines)
    _check_lines(lined, found)
    document.problems += lined.problems
    document.warnings += lined.warnings
    return [value for _, value in found]


def _check_lines(lined: Document, found: list[tuple[int, str]]) -> None:
    """Refuse values that are empty or come twice; warn of values that look alike."""
    seen: set[str] = set()
    for line, value in found:
        if not value.strip() or not value.isprintable():
            lined.problems.append(
                lined.at((line, 0), "Expected a known value, got nothing to print. Remove it.")
            )
        elif value in seen:
            lined.problems.append(
                lined.at(
                    (line, 0), f"Expected each value once, got {shown(value)} again. Remove it."
                )
            )
        seen.add(value)
    for position, look in twins([value for _, value in found]):
        lined.warnings.append(
            lined.at(
                (found[position][0], 0),
                f"{shown(look)} is written in two ways of Unicode here. They are two cells.",
            )
        )


def _rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """The rows of a CSV text with their first lines, from 0."""
    reader = csv.reader(io.StringIO(text, newline=""))
    line = 0
    for row in reader:
        if row:
            yield line, row
        line = reader.line_num
