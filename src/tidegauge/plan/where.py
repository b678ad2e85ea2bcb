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

    It never raises on the values of columns that hold numbers, text, times or truth values, and
    the result for a row depends on that row alone.

    Raises:
        PredicateError: See :func:`checked`.
    """
    return _polars(parsed(text)).fill_null(False)


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
    return _Reader().condition(_statement(text))


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
            'Write one such as "dep_delay > 15 AND carrier = \'UA\'".',
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
    return max(0, sum(len(line) + 1 for line in lines) + (found[0].get("col") or 1) - 1)


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
        items = node.expressions
        if not items or any(type(item).__name__ not in _PLAIN for item in items):
            raise PredicateError(
                "Expected a list of literals after IN, got something else. Write them out, such "
                "as IN ('UA', 'B6').",
                self._offset,
            )
        return Node("IN", self._same([node.this, *items], "a list"), kind=_CONDITION)

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
        part = self._any(node.this)
        return Node("TRY_CAST", (_readable(part),), _CASTS[name], _CASTS[name])

    _trycast = _cast

    def _coalesce(self, node: Any, _: str) -> Node:
        _only(node, "this", "expressions", "is_nvl", "is_null")
        parts = self._same([node.this, *node.expressions], "values")
        return Node("COALESCE", parts, kind=parts[0].kind)

    def _nullif(self, node: Any, _: str) -> Node:
        _only(node, "this", "expression")
        parts = self._same([node.this, node.expression], "two values")
        return Node("NULLIF", parts, kind=parts[0].kind)

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
    "Paren Column Null Boolean Literal Neg Not Is In Between Like Cast TryCast Coalesce Nullif "
    "Case".split()
)
_PLAIN = ("Literal", "Null", "Neg", "Boolean")


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
        f"NULLIF, TRY_CAST, {', '.join(sorted(FUNCTIONS))}.",
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


def _readable(node: Node) -> Node:
    """A column under a cast is read as the cast's kind; all else keeps its own."""
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
        case _ if node.name in FUNCTIONS or node.name in ("COALESCE", "NULLIF"):
            return f"{node.name}({', '.join(parts)})"
        case _:
            return f"({f' {node.name} '.join(parts)})"


def _quoted(text: str, mark: str) -> str:
    return mark + text.replace(mark, mark * 2) + mark


def _literal_text(value: Any) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return _quoted(value, "'") if isinstance(value, str) else repr(value)
