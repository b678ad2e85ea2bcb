"""The cells of a gauge: the known values of its ``by`` columns, crossed, and the rest."""

from __future__ import annotations

from typing import Any

from tidegauge.errors import TidegaugeError
from tidegauge.planning import fields
from tidegauge.planning.document import Document, Path_
from tidegauge.planning.gauge_form import FileForm, GaugeForm
from tidegauge.planning.known_values import distinct, values_of_file
from tidegauge.planning.parts import ALL_CELLS, count_cells

__all__ = ["by_of", "rest_of"]

_By = tuple[tuple[str, tuple[str, ...]], ...]


def rest_of(read: GaugeForm) -> str | None:
    """Return the name of the cell for the rest; None: it is left out, as where cells are ranked."""
    return None if read.other == "drop" or read.top_k is not None else read.other


def by_of(document: Document, path: Path_, read: GaugeForm) -> _By | None:
    """Return every ``by`` column with its known values, none where they are discovered.

    None: a problem is noted.
    """
    before = len(document.problems)
    crossed: list[tuple[str, tuple[str, ...]]] = []
    by: dict[str, Any] = dict(read.by)  # lists and files
    for column, given in by.items():
        place: Path_ = (*path, "by", column)
        _check_column(document, place, column)
        if given == fields.DISCOVER:
            crossed.append((column, ()))
            continue
        if isinstance(given, FileForm):
            values = values_of_file(document, place, given)
        else:
            values = list(given)
            distinct(document, place, values)
        if not values and len(document.problems) == before:
            document.refuse(place, "Expected at least one known value, got none. List them.")
        if rest_of(read) in values:
            document.refuse(
                (*path, "other") if "other" in read.model_fields_set else place,
                f"Expected a name for the rest that is no value of {column}, got "
                f"{read.other!r}. Two cells would have one name. Write other: REST, or drop.",
            )
        crossed.append((column, tuple(values)))
    if read.totals:
        _check_totals(document, path, read, crossed)
    if "other" in read.model_fields_set and not any(values for _, values in crossed):
        document.refuse(
            (*path, "other"),
            "Expected other beside known values, got it without. Nothing is left over. Remove it.",
            key=True,
        )
    if len(document.problems) > before:
        return None
    other = rest_of(read)
    try:
        count_cells(crossed, other if crossed else None)
    except TidegaugeError as error:
        document.refuse((*path, "by"), str(error), key=True)
    return tuple(crossed)


def _check_column(document: Document, place: Path_, column: str) -> None:
    """Refuse a ``by`` column that could not stand in what is published."""
    if not column or not fields.is_line(column):
        document.refuse(
            place,
            "Expected a column's name in one line, got another. Published documents would "
            "show something else than was signed. Rename it in the source.",
            key=True,
        )
    if column in fields.RESERVED:
        document.refuse(
            place,
            f"Expected a column that no release has, got {column}. Both would stand side "
            "by side under one name. Rename it in the source.",
            key=True,
        )


def _check_totals(
    document: Document, path: Path_, read: GaugeForm, crossed: list[tuple[str, tuple[str, ...]]]
) -> None:
    """Refuse a sum over cells that there are not, or beside a cell of its name."""
    if not read.by:
        document.refuse(
            (*path, "totals"),
            "Expected totals beside by, got it alone. Without cells there is nothing to add "
            "up. Remove it.",
            key=True,
        )
    rest = rest_of(read) or ""
    for column, values in crossed:
        if ALL_CELLS in (*values, rest):
            document.refuse(
                (*path, "totals"),
                f"Expected totals beside values of {column} other than {ALL_CELLS}, got that. "
                "The sum of all cells has this name. Remove totals, or rename the value.",
                key=True,
            )
