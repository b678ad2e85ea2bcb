r"""Predicates over one event: a small part of SQL, checked, and compiled to polars.

A predicate sees one row and nothing else: aggregates, window functions, subqueries, clocks and
random numbers have no meaning here. Only listed constructs pass; sqlglot parses, and this page
decides what every construct means, so that neither sqlglot's nor polars' habits change what a
signed plan counts:

* numbers are doubles; what is no finite number is NULL (text that is none, division by zero,
  overflow);
* text is compared by Unicode code points; ``LIKE`` knows ``%`` and ``_``;
* a column has no type of its own: it is read as a number beside a number, as text beside text, as
  true or false where a condition stands. So CSV and Parquet give the same rows;
* logic is SQL's, with three values; a row counts only if the predicate is TRUE.

Nothing raises on data: a failed cast is NULL. A plain ``CAST`` is read as ``TRY_CAST``.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tidegauge.checks import shown
from tidegauge.errors import InvalidParameter

if TYPE_CHECKING:
    import polars

__all__ = ["FUNCTIONS", "Node", "PredicateError", "checked", "columns", "expression", "parsed"]

_MOST_TEXT = 4000
_MOST_DEPTH = 60
_MOST_WEIGHT = 20_000
_CONDITION, _NUMBER, _TEXT = "condition", "number", "text"

FUNCTIONS = {
    "ABS": (_NUMBER, _NUMBER),
    "CEIL": (_NUMBER, _NUMBER),
    "FLOOR": (_NUMBER, _NUMBER),
    "LENGTH": (_TEXT, _NUMBER),
    "LOWER": (_TEXT, _TEXT),
    "TRIM": (_TEXT, _TEXT),
    "UPPER": (_TEXT, _TEXT),
}
"""Functions of one argument: its kind, and the kind of the result. TRIM removes spaces only."""

_COMPARISONS = {"EQ": "=", "NEQ": "<>", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">="}
_ARITHMETIC = {"Add": "+", "Sub": "-", "Mul": "*", "Div": "/"}
_LOGIC = {"And": "AND", "Or": "OR"}
_CASTS = {"DOUBLE": _NUMBER, "FLOAT": _NUMBER, "BOOLEAN": _CONDITION}
_CASTS |= dict.fromkeys(("TEXT", "VARCHAR", "CHAR", "NVARCHAR"), _TEXT)
_CAST_NAMES = {_NUMBER: "DOUBLE", _TEXT: "VARCHAR", _CONDITION: "BOOLEAN"}
_NOT_ROWS = {
    "AggFunc": "An aggregate depends on other rows",
    "Window": "A window function depends on other rows",
    "Subquery": "A subquery depends on other rows",
    "Query": "A query depends on other rows",
    "Exists": "A subquery depends on other rows",
    "Rand": "A random number would make noise that nobody accounts for",
}


class PredicateError(InvalidParameter):
    """A predicate is not of the small part of SQL that is allowed.

    Attributes:
        offset: Where in the text, in characters from 0.
    """

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.offset = offset


@dataclass(frozen=True)
class Node:
    """One construct: its name, its parts, its kind.

    ``kind`` is None for what takes the kind of its surroundings: a column, or NULL.
    """

    name: str
    parts: tuple[Node, ...] = ()
    value: Any = None
    kind: str | None = None
    offset: int = field(default=0, compare=False)


def checked(text: str) -> str:
    """Return the canonical text of a predicate: fully bracketed, names quoted.

    Raises:
        PredicateError: It is not in the allowed part of SQL; the message says where and why.

    Examples:
        >>> checked("dep_delay > 15 and carrier in ('UA', 'B6')")
        '(("dep_delay" > 15.0) AND ("carrier" IN (\\'UA\\', \\'B6\\')))'
    """
    return _text(parsed(text))


def columns(text: str) -> tuple[str, ...]:
    """Return the names of the columns that a predicate reads, sorted.

    Examples:
        >>> columns("dep_delay IS NOT NULL OR air_time > 3")
        ('air_time', 'dep_delay')
    """
    return tuple(sorted({node.value for node in _walk(parsed(text)) if node.name == "column"}))


def expression(text: str) -> polars.Expr:
    """Return the polars expression that is true where the predicate is TRUE, and false elsewhere.

    It never raises on the values of columns that hold numbers, text, times or truth values (others
    and categories are to be read as text first), and the result for a row depends on that row
    alone.

    Raises:
        PredicateError: See :func:`checked`.
    """
    import polars as pl

    node = parsed(text)
    column = pl.col(min(part.value for part in _walk(node) if part.name == "column"))
    # polars may answer with one value for all rows, where all of a column is NULL; this has one each
    one_a_row = column.is_null() | column.is_not_null()
    return _polars(node).fill_null(False) & one_a_row


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
    node = _Reader().condition(_statement(text))
    if _weight(node) > _MOST_WEIGHT:
        raise _too_deep(0)
    if all(part.name != "column" for part in _walk(node)):
        raise PredicateError(
            "Expected a condition that reads a column, got constants alone. It counts every row or "
            'none. Leave "where" out to count every row.',
            0,
        )
    return node


def _walk(node: Node) -> Iterator[Node]:
    yield node
    for part in node.parts:
        yield from _walk(part)


# --- from sqlglot's tree to ours


def _statement(text: str) -> Any:
    import sqlglot
    from sqlglot.errors import SqlglotError

    try:
        statements = sqlglot.parse(text, dialect="duckdb")
    except SqlglotError as error:
        raise PredicateError(
            "Expected a condition in SQL, got something else from here on. "
            "Write one such as \"dep_delay > 15 AND carrier = 'UA'\".",
            _error_offset(text, error),
        ) from None
    except RecursionError:
        raise _too_deep(0) from None
    if len(statements) != 1 or statements[0] is None:
        raise PredicateError(
            f"Expected one condition, got {len(statements)}. Join them with AND or OR.",
            max(text.find(";"), 0),
        )
    return statements[0]


def _error_offset(text: str, error: Exception) -> int:
    found = getattr(error, "errors", None)
    if not found or not found[0].get("line"):
        return 0
    lines = text.split("\n")[: found[0]["line"] - 1]
    offset = sum(len(line) + 1 for line in lines) + (found[0].get("col") or 1) - 1
    return min(max(0, offset), len(text))


def _too_deep(offset: int) -> PredicateError:
    return PredicateError(
        f"Expected at most {_MOST_DEPTH} levels of brackets and operators, got more. "
        "Nobody could check it. Write it shorter, or use IN for a list of values.",
        offset,
    )


class _Reader:
    """Turns sqlglot's nodes into ours; whatever is not listed is refused."""

    def __init__(self) -> None:
        self._depth = 0
        self._offset = 0

    def condition(self, node: Any) -> Node:
        """Return a part that is TRUE, FALSE or NULL."""
        return self._as(node, _CONDITION)

    def _as(self, node: Any, kind: str) -> Node:
        return _typed(self._any(node), kind)

    def _any(self, node: Any) -> Node:
        """Read one node; chains of AND and OR count as one level."""
        name = type(node).__name__
        self._offset = _offset(node, self._offset)
        at = self._offset
        self._depth += 1
        if self._depth > _MOST_DEPTH:
            raise _too_deep(at)
        method: Callable[[Any, str], Node] | None = getattr(self, f"_{name.lower()}", None)
        if name in _COMPARISONS:
            read = self._comparison(node, name)
        elif name in _ARITHMETIC:
            read = self._arithmetic(node, name)
        elif name in _LOGIC:
            read = self._logic(node, name)
        elif name.upper() in FUNCTIONS:
            read = self._function(node, name.upper())
        elif name in _READ and method is not None:
            read = method(node, name)
        else:
            raise _refused(node, at)
        self._depth -= 1
        return Node(read.name, read.parts, read.value, read.kind, at)

    def _same(self, nodes: list[Any], what: str, kind: str | None = None) -> tuple[Node, ...]:
        """Parts of one kind, which at least one of them has to tell."""
        parts = [self._any(node) for node in nodes]
        kinds = {part.kind for part in parts if part.kind is not None}
        if kind is None and len(kinds) == 1:
            (kind,) = kinds
        if kind is None and not kinds:
            raise PredicateError(
                f"Expected {what} of which one has a known kind, got columns alone. A CSV file "
                "cannot say whether they are numbers or text. Write TRY_CAST(column AS DOUBLE) or "
                "TRY_CAST(column AS VARCHAR).",
                parts[0].offset,
            )
        if kind is None:
            raise PredicateError(
                f"Expected {what} of one kind, got {' and '.join(sorted(map(str, kinds)))}. They "
                "have no common order. Write TRY_CAST around one of them.",
                parts[0].offset,
            )
        return tuple(_typed(part, kind) for part in parts)

    def _paren(self, node: Any, _: str) -> Node:
        _only(node, "this")
        return self._any(node.this)

    def _column(self, node: Any, _: str) -> Node:
        _only(node, "this")
        _only(node.this, "this", "quoted")
        if type(node.this).__name__ != "Identifier" or not node.this.this:
            raise _refused(node, self._offset)
        return Node("column", value=str(node.this.this))

    def _null(self, node: Any, _: str) -> Node:
        return Node("null")

    def _boolean(self, node: Any, _: str) -> Node:
        return Node("literal", value=bool(node.this), kind=_CONDITION)

    def _literal(self, node: Any, _: str) -> Node:
        _only(node, "this", "is_string")
        if node.is_string:
            return Node("literal", value=str(node.this), kind=_TEXT)
        try:
            number = float(node.this)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise PredicateError(
                f"Expected a number, got {shown(str(node.this))}. It is no finite double. "
                "Write digits, such as 15 or 1.5e3.",
                self._offset,
            )
        return Node("literal", value=number, kind=_NUMBER)

    def _neg(self, node: Any, _: str) -> Node:
        _only(node, "this")
        return Node("negative", (self._as(node.this, _NUMBER),), kind=_NUMBER)

    def _not(self, node: Any, _: str) -> Node:
        _only(node, "this")
        return Node("NOT", (self.condition(node.this),), kind=_CONDITION)

    def _comparison(self, node: Any, name: str) -> Node:
        _only(node, "this", "expression")
        parts = self._same([node.this, node.expression], "two sides")
        if parts[0].kind == _CONDITION and name not in ("EQ", "NEQ"):
            raise PredicateError(
                "Expected = or <> between truth values, got an order. They have none. "
                "Use AND, OR and NOT.",
                parts[0].offset,
            )
        return Node(_COMPARISONS[name], parts, kind=_CONDITION)

    def _arithmetic(self, node: Any, name: str) -> Node:
        _only(node, "this", "expression", "typed", "safe")
        sides = (self._as(node.this, _NUMBER), self._as(node.expression, _NUMBER))
        return Node(_ARITHMETIC[name], sides, kind=_NUMBER)

    def _logic(self, node: Any, name: str) -> Node:
        parts: list[Any] = []
        waiting = [node]
        while waiting:  # a chain of ANDs leans to the left; each of its links is one part
            here = waiting.pop()
            if type(here).__name__ == name:
                _only(here, "this", "expression")
                waiting += [here.expression, here.this]
            else:
                parts.append(here)
        return Node(_LOGIC[name], tuple(self.condition(part) for part in parts), kind=_CONDITION)

    def _function(self, node: Any, name: str) -> Node:
        _only(node, "this")
        needs, gives = FUNCTIONS[name]
        return Node(name, (self._as(node.this, needs),), kind=gives)

    def _is(self, node: Any, _: str) -> Node:
        _only(node, "this", "expression")
        what = type(node.expression).__name__
        if what == "Null":
            part = self._any(node.this)
            return Node("IS NULL", (part,), kind=_CONDITION)
        if what != "Boolean":
            raise _refused(node, self._offset)
        name = "IS TRUE" if node.expression.this else "IS FALSE"
        return Node(name, (self.condition(node.this),), kind=_CONDITION)

    def _in(self, node: Any, _: str) -> Node:
        _only(node, "this", "expressions")
        parts = self._same([node.this, *node.expressions], "a list")
        if len(parts) < 2 or not all(_constant(part) for part in parts[1:]):
            raise PredicateError(
                "Expected a list of literals after IN, got something else. Write them out, such "
                "as IN ('UA', 'B6').",
                self._offset,
            )
        return Node("IN", parts, kind=_CONDITION)

    def _between(self, node: Any, _: str) -> Node:
        _only(node, "this", "low", "high")
        parts = self._same([node.this, node.args["low"], node.args["high"]], "three values")
        if parts[0].kind == _CONDITION:
            raise _refused(node, self._offset)
        return Node("BETWEEN", parts, kind=_CONDITION)

    def _like(self, node: Any, _: str) -> Node:
        _only(node, "this", "expression", "negate")
        pattern = node.expression
        if type(pattern).__name__ != "Literal" or not pattern.is_string:
            raise PredicateError(
                "Expected a text literal after LIKE, got something else. % stands for any text, "
                "_ for one character.",
                self._offset,
            )
        like = Node("LIKE", (self._as(node.this, _TEXT),), str(pattern.this), _CONDITION)
        return Node("NOT", (like,), kind=_CONDITION) if node.args.get("negate") else like

    def _cast(self, node: Any, _: str) -> Node:
        _only(node, "this", "to", "safe")
        name = getattr(node.to.this, "name", str(node.to.this))
        if name not in _CASTS or node.to.expressions:
            raise PredicateError(
                f"Expected a cast to DOUBLE, VARCHAR or BOOLEAN, got {shown(name)}. Others differ "
                "from one program to the next. Use one of these.",
                self._offset,
            )
        part, kind = self._any(node.this), _CASTS[name]
        if part.kind is None or part.kind != _TEXT:
            part = _typed(part, kind)
        return Node("TRY_CAST", (part,), kind, kind)

    _trycast = _cast

    def _coalesce(self, node: Any, _: str) -> Node:
        _only(node, "this", "expressions", "is_nvl", "is_null")
        parts = self._same([node.this, *node.expressions], "values")
        return Node("COALESCE", parts, kind=parts[0].kind)

    def _case(self, node: Any, _: str) -> Node:
        _only(node, "this", "ifs", "default")
        tests, results = [], []
        for branch in node.args["ifs"]:
            _only(branch, "this", "true")
            tests.append(branch.this)
            results.append(branch.args["true"])
        if node.this is not None:
            subject = self._same([node.this, *tests], "values")
            read = [Node("=", (subject[0], test), kind=_CONDITION) for test in subject[1:]]
        else:
            read = [self.condition(test) for test in tests]
        default = node.args.get("default")
        values = self._same(results + ([default] if default is not None else []), "results")
        if default is None:
            values += (Node("null", kind=values[0].kind),)
        return Node("CASE", (*read, *values), kind=values[0].kind)


_READ = frozenset(
    "Paren Column Null Boolean Literal Neg Not Is In Between Like Cast TryCast Coalesce "
    "Case".split()
)


def _only(node: Any, *names: str) -> None:
    """Refuse a construct with an argument that is not listed."""
    for name, value in node.args.items():
        if value and name not in names:
            raise _refused(node, _offset(node, 0), f" with {name!r}")


def _offset(node: Any, default: int) -> int:
    """Where a construct stands: its own place or its first part's."""
    places = [part.meta["start"] for part in node.walk() if "start" in part.meta]
    return min(places, default=default)


def _refused(node: Any, offset: int, detail: str = "") -> PredicateError:
    ancestors = {kind.__name__ for kind in type(node).__mro__}
    why = next((text for name, text in _NOT_ROWS.items() if name in ancestors), None)
    why = why or "Its meaning could depend on more than one row, or on the program that runs it"
    name = type(node).__name__
    if name == "Anonymous":
        name = str(node.this)
    return PredicateError(
        f"Expected a condition over one row, got {name.upper()}{detail}. {why}. Use columns, "
        "literals, comparisons, AND, OR, NOT, IS NULL, IN, BETWEEN, LIKE, + - * /, CASE, COALESCE, "
        f"TRY_CAST, {', '.join(sorted(FUNCTIONS))}.",
        offset,
    )


def _typed(node: Node, kind: str) -> Node:
    """The node as a part of this kind, if it is one or can be read as one."""
    if node.kind is None:
        return Node(node.name, node.parts, node.value, kind, node.offset)
    if node.kind != kind:
        raise PredicateError(
            f"Expected a {kind}, got a {node.kind}. Nothing is converted by itself. "
            f"Write TRY_CAST(... AS {_CAST_NAMES[kind]}), or compare it with something.",
            node.offset,
        )
    return node


# --- our tree as text


def _text(node: Node) -> str:
    """The canonical text; reading it gives the same tree."""
    parts = [_text(part) for part in node.parts]
    match node.name:
        case "column":
            return _quoted(node.value, '"')
        case "null":
            return "NULL"
        case "literal":
            return _literal_text(node.value)
        case "negative":
            return f"(- {parts[0]})"
        case "NOT":
            return f"(NOT {parts[0]})"
        case "IS NULL" | "IS TRUE" | "IS FALSE":
            return f"({parts[0]} {node.name})"
        case "IN":
            return f"({parts[0]} IN ({', '.join(parts[1:])}))"
        case "BETWEEN":
            return f"({parts[0]} BETWEEN {parts[1]} AND {parts[2]})"
        case "LIKE":
            return f"({parts[0]} LIKE {_quoted(node.value, chr(39))})"
        case "TRY_CAST":
            return f"TRY_CAST({parts[0]} AS {_CAST_NAMES[node.value]})"
        case "CASE":
            half = len(parts) // 2
            pairs = zip(parts[:half], parts[half:], strict=False)
            whens = " ".join(f"WHEN {test} THEN {value}" for test, value in pairs)
            return f"CASE {whens} ELSE {parts[-1]} END"
        case _ if node.name in FUNCTIONS or node.name == "COALESCE":
            return f"{node.name}({', '.join(parts)})"
        case _:
            return f"({f' {node.name} '.join(parts)})"


def _quoted(text: str, mark: str) -> str:
    return mark + text.replace(mark, mark * 2) + mark


def _literal_text(value: Any) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return _quoted(value, "'") if isinstance(value, str) else repr(value)


# --- our tree as a polars expression


def _weight(node: Node) -> int:
    """How many polars nodes the expression has, those that occur twice counted twice."""
    weights = [_weight(part) for part in node.parts]
    if node.name == "BETWEEN":
        weights.append(weights[0])
    if node.name == "COALESCE":
        weights += weights
    if _is_boundary(node):
        weights += [w for part, w in zip(node.parts, weights, strict=False) if part.kind == _NUMBER]
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
    match node.name:
        case "AND":
            return pl.all_horizontal(parts)
        case "OR":
            return pl.any_horizontal(parts)
        case "NOT":
            return ~parts[0]
        case "IS NULL":
            return parts[0].is_null()
        case "IS TRUE":
            return parts[0].fill_null(False)
        case "IS FALSE":
            return (~parts[0]).fill_null(False)
        case "IN":
            return _in(node, parts)
        case "BETWEEN":
            return (parts[0] >= parts[1]) & (parts[0] <= parts[2])
        case "LIKE":
            return parts[0].str.contains(_pattern(node.value))
        case "COALESCE":
            return _coalesced(parts)
        case "TRY_CAST":
            return _cast(node, parts[0])
        case "CASE":
            return _case(parts)
        case _:
            return _OPERATIONS[node.name](parts[0], parts[1])


def _value(node: Node) -> polars.Expr:
    """The expression, with NULL in place of every number that is not finite."""
    import polars as pl

    found = _polars(node)
    if node.kind != _NUMBER or node.name == "literal":
        return found
    return pl.when(found.is_finite()).then(found)


def _dtype(kind: str | None) -> Any:
    import polars as pl

    return {_NUMBER: pl.Float64, _TEXT: pl.String, None: pl.Null}.get(kind, pl.Boolean)


def _column(node: Node) -> polars.Expr:
    """A column, read as the kind that it stands for."""
    import polars as pl

    column = pl.col(node.value)
    if node.kind is None:
        return column
    if node.kind == _NUMBER:
        return column.cast(pl.Float64, strict=False)
    text = column.cast(pl.String, strict=False)
    return text if node.kind == _TEXT else _truth(text)


def _truth(text: polars.Expr) -> polars.Expr:
    """TRUE for "true", FALSE for "false", in any case, and NULL for the rest."""
    import polars as pl

    both = pl.Series(["true", "false"]), pl.Series([True, False])
    return text.str.to_lowercase().replace_strict(*both, default=None, return_dtype=pl.Boolean)


def _cast(node: Node, part: polars.Expr) -> polars.Expr:
    import polars as pl

    if node.parts[0].kind == node.kind:
        return part
    return part.cast(pl.Float64, strict=False) if node.kind == _NUMBER else _truth(part)


def _constant(node: Node) -> bool:
    return node.name in ("literal", "null") or (
        node.name == "negative" and node.parts[0].name == "literal"
    )


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


def _coalesced(parts: list[polars.Expr]) -> polars.Expr:
    """The first that is not NULL; polars' own coalesce loses the length of an all-NULL column."""
    import polars as pl

    result = parts[-1]
    for part in reversed(parts[:-1]):
        result = pl.when(part.is_not_null()).then(part).otherwise(result)
    return result


def _case(parts: list[polars.Expr]) -> polars.Expr:
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
