"""YAML with places: plain values, exactly as written, and where each of them stands.

Read from the parser's events, so that nothing is constructed: no tags, no anchors, no merge keys,
no types that one YAML reader sees and another does not. A scalar keeps its text, see
:class:`Scalar`; what it means is decided by the field it stands in.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tidegauge.checks import shown
from tidegauge.planning.problems import ConfigError, Problem

__all__ = ["Document", "Path_", "Scalar", "document_from", "document_of", "read_text"]

_MOST_BYTES = 1 << 20
_FRACTION = re.compile(r"Fraction\((-?[0-9]+), ([0-9]+)\)")
_MOST_DEPTH = 20

Path_ = tuple[str | int, ...]


class Scalar(str):
    """The text of a scalar, with whether it was quoted; quoted text is never a number."""

    __slots__ = ("quoted",)
    quoted: bool

    def __new__(cls, text: str, quoted: bool) -> Scalar:
        """A scalar with this text."""
        scalar = super().__new__(cls, text)
        scalar.quoted = quoted
        return scalar

    @property
    def empty(self) -> bool:
        """Nothing was written, or null."""
        return not self.quoted and self in ("", "~", "null", "Null", "NULL")


@dataclass
class Document:
    """A config file as read.

    Attributes:
        file: As it was named.
        lines: Of the text.
        root: Mappings as dict, sequences as list, scalars as :class:`Scalar`; None: empty.
        values: Where the value at each path begins: line and column, from 0.
        keys: Where the key of each path begins.
        problems: What was wrong so far.
        warnings: What is worth a warning.
    """

    file: str
    lines: list[str]
    root: Any = None
    values: dict[Path_, tuple[int, int]] = field(default_factory=dict)
    keys: dict[Path_, tuple[int, int]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)

    def at(self, place: tuple[int, int], message: str) -> Problem:
        """Return a problem at a line and column, both from 0."""
        line, column = place
        message = _FRACTION.sub(lambda found: f"{int(found[1]) / int(found[2]):g}", message)
        source = self.lines[line] if line < len(self.lines) else ""
        return Problem(self.file, line + 1, column + 1, message, source)

    def place(self, path: Path_, *, key: bool = False, inside: int = 0) -> tuple[int, int]:
        """Where a path stands, or the nearest part of the file around it that does."""
        path = tuple(path)
        if key and path in self.keys:
            return self.keys[path]
        while path and path not in self.values:
            path = path[:-1]
            inside, key = 0, False
        line, column = self.values.get(path, (0, 0))
        return line, column + self._inside(path, line, column, inside)

    def _inside(self, path: Path_, line: int, column: int, inside: int) -> int:
        """How far a character of a scalar stands from its beginning, if that can be told."""
        found = self.root
        for part in path:
            found = found[part]
        if not inside or not isinstance(found, Scalar) or line >= len(self.lines):
            return 0
        for quote in (0, 1):
            start = column + quote
            if self.lines[line][start : start + len(found)] == found:
                return quote + inside
        return 0

    def refuse(self, path: Path_, message: str, *, key: bool = False, inside: int = 0) -> None:
        """Note a problem at a path."""
        self.problems.append(self.at(self.place(path, key=key, inside=inside), message))

    def warn(self, path: Path_, message: str) -> None:
        """Note a warning at a path."""
        self.warnings.append(self.at(self.place(path), message))

    def sorted_problems(self) -> list[Problem]:
        """Every problem once, in the order of the file."""
        unique = list(dict.fromkeys(self.problems))
        return sorted(unique, key=lambda problem: (problem.line, problem.column))


def read_text(path: str, shown_as: str, most: int = _MOST_BYTES) -> str:
    """Return the text of a small file in UTF-8, without a byte order mark.

    Raises:
        ConfigError: It cannot be read, is too large, or is not text in UTF-8.
    """
    try:
        with Path(path).open("rb") as file:
            data = file.read(most + 1)
    except IsADirectoryError:
        raise _unreadable(shown_as, "a folder", "Name a file in it.") from None
    except FileNotFoundError:
        raise _unreadable(shown_as, "no file of this name", "Check the path.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise _unreadable(shown_as, str(reason), "Check the path and its permissions.") from None
    if len(data) > most:
        raise _unreadable(
            shown_as, f"more than {most >> 20} MiB", "Keep data out of it, or split it."
        )
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line = before.count(b"\n")
        column = len(before[before.rfind(b"\n") + 1 :].decode(errors="replace"))
        raise ConfigError(
            [
                Problem(
                    shown_as,
                    line + 1,
                    column + 1,
                    f"Expected text in UTF-8, got the byte 0x{data[error.start]:02x} here. "
                    "It has no meaning in UTF-8. Save the file as UTF-8.",
                    data.split(b"\n")[line].decode(errors="replace").rstrip("\r"),
                )
            ]
        ) from None


def _unreadable(file: str, got: str, remedy: str) -> ConfigError:
    return ConfigError([Problem(file, 0, 0, f"Expected a file to read, got {got}. {remedy}")])


def document_of(path: str) -> Document:
    """Return a config file as plain values with places.

    Raises:
        ConfigError: It is no YAML that every reader would read alike.
    """
    return document_from(read_text(path, path), path)


def document_from(text: str, file: str) -> Document:
    """Return a text as plain values with places; ``file`` is what messages call it.

    Raises:
        ConfigError: It is no YAML that every reader would read alike.
    """
    document = Document(file, text.replace("\r\n", "\n").split("\n"))
    _Builder(document).read(text)
    if document.problems:
        raise ConfigError(document.sorted_problems())
    return document


class _Builder:
    """Builds values from events, without recursion."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._open: list[tuple[Any, Path_]] = []  # collections that are not closed yet
        self._keys: list[Scalar | None] = []  # the key that waits for its value, in each of them
        self._documents = 0
        self._skipped = 0  # depth inside something that was refused

    def read(self, text: str) -> None:
        from ruamel.yaml import YAML
        from ruamel.yaml.error import MarkedYAMLError, YAMLError

        try:
            for event in YAML(typ="rt").parse(text):
                if not self._event(event, type(event).__name__):
                    return
        except MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            place = (mark.line, mark.column) if mark else (0, 0)
            self._refuse(place, _syntax(str(error.problem or error.context or ""), place, text))
        except (YAMLError, ValueError, RecursionError) as error:
            found = getattr(error, "position", None)
            before = text[:found] if isinstance(found, int) else ""
            place = before.count("\n"), len(before) - before.rfind("\n") - 1
            self._refuse(
                place,
                "Expected printable text, got a character that YAML does not allow here. "
                "Remove it.",
            )

    def _refuse(self, place: tuple[int, int], message: str) -> None:
        self._document.problems.append(self._document.at(place, message))

    def _event(self, event: Any, name: str) -> bool:
        """Take one event; False: nothing behind it can be read."""
        if name == "DocumentStartEvent":
            self._documents += 1
        place = (event.start_mark.line, event.start_mark.column)
        if self._documents > 1:
            self._refuse(
                place,
                "Expected one document, got a second one after '---'. A plan has one config. "
                "Put the second into a file of its own.",
            )
            return False
        if name == "AliasEvent" or getattr(event, "anchor", None):
            what = "an alias" if name == "AliasEvent" else "an anchor"
            self._refuse(
                place,
                f"Expected values written out, got {what}. What a plan says must be readable "
                "where it stands. Write the value instead.",
            )
            return False
        if getattr(event, "tag", None):
            self._refuse(
                place,
                "Expected plain values, got a YAML tag. Tags mean different things to different "
                "readers. Remove it; put text in quotes.",
            )
            return False
        if name in ("MappingStartEvent", "SequenceStartEvent"):
            return self._start({} if name.startswith("Mapping") else [], place)
        if name in ("MappingEndEvent", "SequenceEndEvent"):
            self._open.pop()
            self._keys.pop()
        if name == "ScalarEvent":
            self._scalar(Scalar(event.value, event.style is not None), place)
        return True

    def _start(self, collection: Any, place: tuple[int, int]) -> bool:
        if self._open and isinstance(self._open[-1][0], dict) and self._keys[-1] is None:
            self._refuse(
                place,
                "Expected the name of a field, got a collection. Fields have names. "
                "Write 'name: value'.",
            )
            return False
        if len(self._open) >= _MOST_DEPTH:
            self._refuse(
                place,
                f"Expected at most {_MOST_DEPTH} levels, got more. No config is so deep. "
                "Check the brackets.",
            )
            return False
        path = self._put(collection, place)
        self._open.append((collection, path))
        self._keys.append(None)
        return True

    def _scalar(self, scalar: Scalar, place: tuple[int, int]) -> None:
        if any(
            unicodedata.category(sign) in ("Cc", "Cs", "Cn") and sign != "\n" for sign in scalar
        ):
            self._refuse(
                place,
                "Expected printable text, got a control character or an unassigned one in it. "
                "Nobody could see it in a signed plan. Remove it.",
            )
        if self._open and isinstance(self._open[-1][0], dict) and self._keys[-1] is None:
            self._key(scalar, place)
        else:
            self._put(scalar, place)

    def _key(self, key: Scalar, place: tuple[int, int]) -> None:
        mapping, path = self._open[-1]
        if key == "<<" and not key.quoted:
            self._refuse(
                place,
                "Expected values written out, got a merge key. What a plan says must be readable "
                "where it stands. Write the fields instead.",
            )
        if key in mapping:
            line = self._document.keys[(*path, str(key))][0] + 1
            self._refuse(
                place,
                f"Expected each field once, got {shown(str(key))} again (first in line {line}). "
                "One of the two would be ignored. Remove one.",
            )
        else:
            self._document.keys[(*path, str(key))] = place
        self._keys[-1] = key

    def _put(self, value: Any, place: tuple[int, int]) -> Path_:
        """Put a value where it belongs and return its path."""
        if not self._open:
            self._document.root = value
            path: Path_ = ()
        else:
            collection, parent = self._open[-1]
            if isinstance(collection, dict):
                key = str(self._keys[-1])
                self._keys[-1] = None
                path = (*parent, key)
                if isinstance(value, Scalar) and not value and not value.quoted:
                    place = self._document.keys[path]  # nothing has no place of its own
                collection.setdefault(key, value)
            else:
                path = (*parent, len(collection))
                collection.append(value)
        self._document.values.setdefault(path, place)
        return path


def _syntax(problem: str, place: tuple[int, int], text: str) -> str:
    """The parser's complaint in our form; it can only show signs of the config's syntax."""
    lines = text.split("\n")
    line = lines[place[0]] if place[0] < len(lines) else ""
    if "\t" in line[: place[1] + 1]:
        return (
            "Expected spaces, got a tab. YAML allows no tab where it counts columns. "
            "Replace it by spaces."
        )
    if "mapping values are not allowed" in problem:
        return (
            "Expected a value, got a second ':' in it. It would be a field inside a text. "
            "Put the text in quotes, or the field on a line of its own."
        )
    return f"Expected YAML, got something else here ({problem.strip()}). Check quotes and indents."
