"""The constructs of a predicate, and their canonical text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tidegauge.errors import InvalidParameter

__all__ = [
    "CAST_NAMES",
    "CONDITION",
    "FUNCTIONS",
    "NUMBER",
    "TEXT",
    "Node",
    "PredicateError",
    "canonical_text",
    "is_constant",
    "walk",
]

CONDITION, NUMBER, TEXT = "condition", "number", "text"

FUNCTIONS = {
    "ABS": (NUMBER, NUMBER),
    "CEIL": (NUMBER, NUMBER),
    "FLOOR": (NUMBER, NUMBER),
    "LENGTH": (TEXT, NUMBER),
    "LOWER": (TEXT, TEXT),
    "TRIM": (TEXT, TEXT),
    "UPPER": (TEXT, TEXT),
}
"""Functions of one argument: its kind, and the kind of the result. TRIM removes spaces only."""

CAST_NAMES = {NUMBER: "DOUBLE", TEXT: "VARCHAR", CONDITION: "BOOLEAN"}


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


def walk(node: Node) -> Iterator[Node]:
    """Yield a construct and everything in it."""
    yield node
    for part in node.parts:
        yield from walk(part)


def is_constant(node: Node) -> bool:
    """Whether a construct is a literal, perhaps with a sign, or NULL."""
    return node.name in ("literal", "null") or (
        node.name == "negative" and node.parts[0].name == "literal"
    )


def canonical_text(node: Node) -> str:
    """Return the canonical text of a predicate; reading it gives the same tree."""
    if node.name in _SHAPES:
        return _SHAPES[node.name](node, [canonical_text(part) for part in node.parts])
    parts = [canonical_text(part) for part in node.parts]
    if node.name in FUNCTIONS or node.name == "COALESCE":
        return f"{node.name}({', '.join(parts)})"
    return f"({f' {node.name} '.join(parts)})"


def _case_text(_: Node, parts: list[str]) -> str:
    half = len(parts) // 2
    pairs = zip(parts[:half], parts[half:], strict=False)
    whens = " ".join(f"WHEN {test} THEN {value}" for test, value in pairs)
    return f"CASE {whens} ELSE {parts[-1]} END"


def _is_text(node: Node, parts: list[str]) -> str:
    return f"({parts[0]} {node.name})"


_SHAPES: dict[str, Callable[[Node, list[str]], str]] = {
    "column": lambda node, _: _quoted(node.value, '"'),
    "null": lambda node, _: "NULL",
    "literal": lambda node, _: _literal_text(node.value),
    "negative": lambda _, parts: f"(- {parts[0]})",
    "NOT": lambda _, parts: f"(NOT {parts[0]})",
    "IS NULL": _is_text,
    "IS TRUE": _is_text,
    "IS FALSE": _is_text,
    "IN": lambda _, parts: f"({parts[0]} IN ({', '.join(parts[1:])}))",
    "BETWEEN": lambda _, parts: f"({parts[0]} BETWEEN {parts[1]} AND {parts[2]})",
    "LIKE": lambda node, parts: f"({parts[0]} LIKE {_quoted(node.value, chr(39))})",
    "TRY_CAST": lambda node, parts: f"TRY_CAST({parts[0]} AS {CAST_NAMES[node.value]})",
    "CASE": _case_text,
}


def _quoted(text: str, mark: str) -> str:
    return mark + text.replace(mark, mark * 2) + mark


def _literal_text(value: Any) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return _quoted(value, "'") if isinstance(value, str) else repr(value)
