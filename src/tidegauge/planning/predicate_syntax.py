"""Predicates as sqlglot reads them, turned into our constructs; what is not listed is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tidegauge.checks import shown
from tidegauge.planning.predicate import (
    CAST_NAMES,
    CONDITION,
    FUNCTIONS,
    NUMBER,
    TEXT,
    Node,
    PredicateError,
    is_constant,
)

__all__ = ["predicate_of", "too_deep"]

_MOST_DEPTH = 60
_COMPARISONS = {"EQ": "=", "NEQ": "<>", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">="}
_ARITHMETIC = {"Add": "+", "Sub": "-", "Mul": "*", "Div": "/"}
_LOGIC = {"And": "AND", "Or": "OR"}
_CASTS = {"DOUBLE": NUMBER, "FLOAT": NUMBER, "BOOLEAN": CONDITION}
_CASTS |= dict.fromkeys(("TEXT", "VARCHAR", "CHAR", "NVARCHAR"), TEXT)

_NOT_ROWS = {
    "AggFunc": "An aggregate depends on other rows",
    "Window": "A window function depends on other rows",
    "Subquery": "A subquery depends on other rows",
    "Query": "A query depends on other rows",
    "Exists": "A subquery depends on other rows",
    "Rand": "A random number would make noise that nobody accounts for",
}


def predicate_of(text: str) -> Node:
    """Return a predicate as a tree of allowed constructs.

    Raises:
        PredicateError: It is not one condition in the allowed part of SQL.
    """
    return _Reader().condition(_statement(text))


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
        raise too_deep(0) from None
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


def too_deep(offset: int) -> PredicateError:
    """The refusal of a predicate that is too large to be checked by anybody."""
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
        return self._as(node, CONDITION)

    def _as(self, node: Any, kind: str) -> Node:
        return _typed(self._any(node), kind)

    def _any(self, node: Any) -> Node:
        """Read one node; chains of AND and OR count as one level."""
        name = type(node).__name__
        self._offset = _offset(node, self._offset)
        at = self._offset
        self._depth += 1
        if self._depth > _MOST_DEPTH:
            raise too_deep(at)
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
        return Node("literal", value=bool(node.this), kind=CONDITION)

    def _literal(self, node: Any, _: str) -> Node:
        _only(node, "this", "is_string")
        if node.is_string:
            return Node("literal", value=str(node.this), kind=TEXT)
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
        return Node("literal", value=number, kind=NUMBER)

    def _neg(self, node: Any, _: str) -> Node:
        _only(node, "this")
        return Node("negative", (self._as(node.this, NUMBER),), kind=NUMBER)

    def _not(self, node: Any, _: str) -> Node:
        _only(node, "this")
        return Node("NOT", (self.condition(node.this),), kind=CONDITION)

    def _comparison(self, node: Any, name: str) -> Node:
        _only(node, "this", "expression")
        parts = self._same([node.this, node.expression], "two sides")
        if parts[0].kind == CONDITION and name not in ("EQ", "NEQ"):
            raise PredicateError(
                "Expected = or <> between truth values, got an order. They have none. "
                "Use AND, OR and NOT.",
                parts[0].offset,
            )
        return Node(_COMPARISONS[name], parts, kind=CONDITION)

    def _arithmetic(self, node: Any, name: str) -> Node:
        _only(node, "this", "expression", "typed", "safe")
        sides = (self._as(node.this, NUMBER), self._as(node.expression, NUMBER))
        return Node(_ARITHMETIC[name], sides, kind=NUMBER)

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
        return Node(_LOGIC[name], tuple(self.condition(part) for part in parts), kind=CONDITION)

    def _function(self, node: Any, name: str) -> Node:
        _only(node, "this")
        needs, gives = FUNCTIONS[name]
        return Node(name, (self._as(node.this, needs),), kind=gives)

    def _is(self, node: Any, _: str) -> Node:
        _only(node, "this", "expression")
        what = type(node.expression).__name__
        if what == "Null":
            part = self._any(node.this)
            return Node("IS NULL", (part,), kind=CONDITION)
        if what != "Boolean":
            raise _refused(node, self._offset)
        name = "IS TRUE" if node.expression.this else "IS FALSE"
        return Node(name, (self.condition(node.this),), kind=CONDITION)

    def _in(self, node: Any, _: str) -> Node:
        _only(node, "this", "expressions")
        parts = self._same([node.this, *node.expressions], "a list")
        if len(parts) < 2 or not all(is_constant(part) for part in parts[1:]):
            raise PredicateError(
                "Expected a list of literals after IN, got something else. Write them out, such "
                "as IN ('UA', 'B6').",
                self._offset,
            )
        return Node("IN", parts, kind=CONDITION)

    def _between(self, node: Any, _: str) -> Node:
        _only(node, "this", "low", "high")
        parts = self._same([node.this, node.args["low"], node.args["high"]], "three values")
        if parts[0].kind == CONDITION:
            raise _refused(node, self._offset)
        return Node("BETWEEN", parts, kind=CONDITION)

    def _like(self, node: Any, _: str) -> Node:
        _only(node, "this", "expression", "negate")
        pattern = node.expression
        if type(pattern).__name__ != "Literal" or not pattern.is_string:
            raise PredicateError(
                "Expected a text literal after LIKE, got something else. % stands for any text, "
                "_ for one character.",
                self._offset,
            )
        like = Node("LIKE", (self._as(node.this, TEXT),), str(pattern.this), CONDITION)
        return Node("NOT", (like,), kind=CONDITION) if node.args.get("negate") else like

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
        if part.kind is None or part.kind != TEXT:
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
            read = [Node("=", (subject[0], test), kind=CONDITION) for test in subject[1:]]
        else:
            read = [self.condition(test) for test in tests]
        default = node.args.get("default")
        values = self._same(results + ([default] if default is not None else []), "results")
        if default is None:
            values += (Node("null", kind=values[0].kind),)
        return Node("CASE", (*read, *values), kind=values[0].kind)


_READ = {"Paren", "Column", "Null", "Boolean", "Literal", "Neg", "Not", "Is", "In", "Between"}
_READ |= {"Like", "Cast", "TryCast", "Coalesce", "Case"}


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
            f"Write TRY_CAST(... AS {CAST_NAMES[kind]}), or compare it with something.",
            node.offset,
        )
    return node
