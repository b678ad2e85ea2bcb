r"""Predicates over one event: a small part of SQL, checked, and compiled to polars.

A predicate sees one row and nothing else: aggregates, window functions, subqueries, clocks and
random numbers have no meaning here. Only listed constructs pass; sqlglot parses, and this page
decides what every construct means, so that neither sqlglot's nor polars' habits change what a
signed plan counts:

* numbers are doubles; what is no finite number is NULL (text that is none, also with blanks around
  it, division by zero, overflow: ``1e400``); a sum reads more than that, see
  :mod:`~tidegauge.engine.grains`: it leaves out blanks, and clamps 1e400 to its bounds;
* text is compared by Unicode code points; ``LIKE`` knows ``%`` and ``_``;
* a column has no type of its own: it is read as a number beside a number, as text beside text, as
  true or false where a condition stands. So CSV and Parquet give the same rows, but for truth
  values beside a number: 1 and 0 in a typed file, no numbers in text;
* logic is SQL's, with three values; a row counts only if the predicate is TRUE.

Nothing raises on data: a failed cast is NULL. A plain ``CAST`` is read as ``TRY_CAST``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tidegauge.planning.predicate import Node, PredicateError, canonical_text, walk
from tidegauge.planning.predicate_syntax import predicate_of, too_deep

if TYPE_CHECKING:
    import polars

__all__ = ["PredicateError", "checked", "columns", "condition", "expression", "parsed"]

_MOST_TEXT = 4000
_MOST_WEIGHT = 20_000


def checked(text: str) -> str:
    r"""Return the canonical text of a predicate: fully bracketed, names quoted.

    Raises:
        PredicateError: It is not in the allowed part of SQL; the message says where and why.

    Examples:
        >>> checked("dep_delay > 15 and carrier in ('UA', 'B6')")
        '(("dep_delay" > 15.0) AND ("carrier" IN (\'UA\', \'B6\')))'
    """
    return canonical_text(parsed(text))


@lru_cache(maxsize=256)
def columns(text: str) -> tuple[str, ...]:
    """Return the names of the columns that a predicate reads, sorted.

    Examples:
        >>> columns("dep_delay IS NOT NULL OR air_time > 3")
        ('air_time', 'dep_delay')
    """
    return tuple(sorted({node.value for node in walk(parsed(text)) if node.name == "column"}))


@lru_cache(maxsize=256)
def expression(text: str) -> polars.Expr:
    """Return the polars expression that is true where the predicate is TRUE, and false elsewhere.

    It never raises on the values of columns that hold numbers, text, times or truth values (others
    and categories are to be read as text first), and the result for a row depends on that row
    alone.

    Raises:
        PredicateError: See :func:`checked`.
    """
    from tidegauge.planning.predicate_polars import compiled

    return compiled(parsed(text))


def condition(text: str) -> Callable[[Mapping[str, Any]], bool]:
    """Return a predicate as a function of one event, a mapping from names of columns.

    A column that the event does not have is NULL. For ``tidegauge.papers.bolot.PredicateSum``; it
    takes some 0.1 ms an event.

    Raises:
        PredicateError: See :func:`checked`.

    Examples:
        >>> late = condition("dep_delay > 15 AND carrier = 'UA'")
        >>> late({"dep_delay": 40, "carrier": "UA"}), late({"dep_delay": 40})
        (True, False)
    """
    compiled, names = expression(text), columns(text)

    def holds(event: Mapping[str, Any]) -> bool:
        import polars

        row = polars.DataFrame({name: [event.get(name)] for name in names})
        return bool(row.select(compiled).item())

    return holds


def parsed(text: str) -> Node:
    """Return a predicate as a tree of allowed constructs.

    Raises:
        PredicateError: See :func:`checked`.
    """
    if not text.strip() or len(text) > _MOST_TEXT:
        raise PredicateError(
            f"Expected a condition of 1 to {_MOST_TEXT} characters, got {len(text)}. "
            'Leave "where" out to count every row.',
            0,
        )
    node = predicate_of(text)
    from tidegauge.planning.predicate_polars import weight

    if weight(node) > _MOST_WEIGHT:
        raise too_deep(0)
    for part in walk(node):
        if part.name == "column" and _is_pattern(part.value):
            raise PredicateError(
                f"Expected the name of one column, got {part.value!r}. Names of this form stand "
                "for many columns in polars. Rename the column.",
                part.offset,
            )
    if all(part.name != "column" for part in walk(node)):
        raise PredicateError(
            "Expected a condition that reads a column, got constants alone. It counts every row or "
            'none. Leave "where" out to count every row.',
            0,
        )
    return node


def _is_pattern(name: str) -> bool:
    """Whether polars reads a name as a pattern of names."""
    return name == "*" or (name.startswith("^") and name.endswith("$"))
