"""Predicates as polars expressions: SQL's logic of three values, one row at a time."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tidegauge.planning.predicate import FUNCTIONS, NUMBER, TEXT, Node, walk

if TYPE_CHECKING:
    import polars

__all__ = ["compiled", "weight"]


def compiled(node: Node) -> polars.Expr:
    """Return the expression that is true where a predicate is TRUE, and false elsewhere."""
    import polars as pl

    column = pl.col(min(part.value for part in walk(node) if part.name == "column"))
    # polars may answer once for all rows, where a column is all NULL; this answers for each of them
    one_a_row = column.is_null() | column.is_not_null()
    return _polars(node).fill_null(False) & one_a_row


def weight(node: Node) -> int:
    """How many polars nodes the expression has, those that occur twice counted twice."""
    weights = [weight(part) for part in node.parts]
    if node.name == "BETWEEN":
        weights.append(weights[0])
    if node.name == "COALESCE":
        weights += weights
    if _is_boundary(node):
        weights += [w for part, w in zip(node.parts, weights, strict=False) if part.kind == NUMBER]
    return 1 + sum(weights)


def _is_boundary(node: Node) -> bool:
    """Whether numbers among the parts of a node have to be finite or NULL.

    They need not inside arithmetic: what is not finite stays so through + - * and ABS.
    """
    return node.name not in ("+", "-", "*", "negative", "ABS", "CEIL", "FLOOR", "AND", "OR", "NOT")


def _polars(node: Node) -> polars.Expr:
    """The expression; a number may be infinite or NaN in place of NULL (see ``_value``)."""
    import polars as pl

    if node.name == "column":
        return _column(node)
    if node.name == "literal":
        return pl.lit(node.value)
    if node.name == "null":
        return pl.lit(None, dtype=_dtype(node.kind))
    parts = [_value(part) if _is_boundary(node) else _polars(part) for part in node.parts]
    if node.name in FUNCTIONS or node.name == "negative":
        return _function(node.name, parts[0])
    if node.name in _BUILT:
        found: polars.Expr = _BUILT[node.name](node, parts)
        return found
    built: polars.Expr = _OPERATIONS[node.name](parts[0], parts[1])
    return built


def _value(node: Node) -> polars.Expr:
    """The expression, with NULL in place of every number that is not finite."""
    import polars as pl

    found = _polars(node)
    if node.kind != NUMBER or node.name == "literal":
        return found
    return pl.when(found.is_finite()).then(found)


def _dtype(kind: str | None) -> Any:
    import polars as pl

    return {NUMBER: pl.Float64, TEXT: pl.String, None: pl.Null}.get(kind, pl.Boolean)


def _column(node: Node) -> polars.Expr:
    """A column, read as the kind that it stands for."""
    import polars as pl

    column = pl.col(node.value)
    if node.kind is None:
        return column
    if node.kind == NUMBER:
        return column.cast(pl.Float64, strict=False)
    text = column.cast(pl.String, strict=False)
    return text if node.kind == TEXT else _truth(text)


def _truth(text: polars.Expr) -> polars.Expr:
    """TRUE for "true", FALSE for "false", in any case, and NULL for the rest."""
    import polars as pl

    both = pl.Series(["true", "false"]), pl.Series([True, False])
    return text.str.to_lowercase().replace_strict(*both, default=None, return_dtype=pl.Boolean)


def _cast(node: Node, part: polars.Expr) -> polars.Expr:
    import polars as pl

    if node.parts[0].kind == node.kind:
        return part
    return part.cast(pl.Float64, strict=False) if node.kind == NUMBER else _truth(part)


def _horizontal(which: str, parts: list[polars.Expr]) -> polars.Expr:
    """AND or OR of many, with three values, without a deep tree."""
    import polars as pl

    return pl.all_horizontal(parts) if which == "all" else pl.any_horizontal(parts)


def _in(node: Node, parts: list[polars.Expr]) -> polars.Expr:
    """Membership with SQL's NULL: unknown if the value is, or if it is not found beside a NULL."""
    import polars as pl

    known = [part for part in node.parts[1:] if part.name != "null"]
    values = [-part.parts[0].value if part.parts else part.value for part in known]
    found = parts[0].is_in(pl.Series(values, dtype=_dtype(node.parts[0].kind)).implode())
    return found if len(known) == len(node.parts) - 1 else found | pl.lit(None, dtype=pl.Boolean)


def _pattern(like: str) -> str:
    """A LIKE pattern as a regular expression."""
    import polars as pl

    signs = {"%": ".*", "_": "."}
    return "(?s)^" + "".join(signs.get(sign) or pl.escape_regex(sign) for sign in like) + "$"


def _coalesced(_: Node, parts: list[polars.Expr]) -> polars.Expr:
    """The first that is not NULL; polars' own coalesce loses the length of an all-NULL column."""
    import polars as pl

    result = parts[-1]
    for part in reversed(parts[:-1]):
        result = pl.when(part.is_not_null()).then(part).otherwise(result)
    return result


def _case(_: Node, parts: list[polars.Expr]) -> polars.Expr:
    import polars as pl

    half = len(parts) // 2
    result = parts[-1]
    for test, value in reversed(list(zip(parts[:half], parts[half:], strict=False))):
        result = pl.when(test).then(value).otherwise(result)
    return result


def _function(name: str, part: polars.Expr) -> polars.Expr:
    import polars as pl

    match name:
        case "negative":
            return -part
        case "ABS":
            return part.abs()
        case "CEIL":
            return part.ceil()
        case "FLOOR":
            return part.floor()
        case "LENGTH":
            return part.str.len_chars().cast(pl.Float64)
        case "LOWER":
            return part.str.to_lowercase()
        case "UPPER":
            return part.str.to_uppercase()
        case _:
            return part.str.strip_chars(" ")


_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
_BUILT: dict[str, Callable[[Node, list[Any]], Any]] = {
    "AND": lambda _, parts: _horizontal("all", parts),
    "OR": lambda _, parts: _horizontal("any", parts),
    "NOT": lambda _, parts: ~parts[0],
    "IS NULL": lambda _, parts: parts[0].is_null(),
    "IS TRUE": lambda _, parts: parts[0].fill_null(False),
    "IS FALSE": lambda _, parts: (~parts[0]).fill_null(False),
    "IN": _in,
    "BETWEEN": lambda _, parts: (parts[0] >= parts[1]) & (parts[0] <= parts[2]),
    "LIKE": lambda node, parts: parts[0].str.contains(_pattern(node.value)),
    "COALESCE": _coalesced,
    "TRY_CAST": lambda node, parts: _cast(node, parts[0]),
    "CASE": _case,
}
