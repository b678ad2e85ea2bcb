"""Plain data, read without belief: fractions written as text, and mappings field by field."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from tidegauge.checks import LARGEST, shown
from tidegauge.errors import InvalidParameter

__all__ = ["Reader", "fraction_of", "fraction_text"]

_MOST_DIGITS = 4000


def fraction_text(value: Fraction) -> str:
    """Return a fraction as ``"n/d"`` in lowest terms.

    Examples:
        >>> fraction_text(Fraction(1, 2))
        '1/2'
    """
    return f"{value.numerator}/{value.denominator}"


def fraction_of(text: Any) -> Fraction:
    """Return the fraction written as ``"n/d"``; refuse every other way of writing it.

    Raises:
        InvalidParameter: It is not of the form, not in lowest terms, or beyond what doubles hold.
    """
    if isinstance(text, str) and len(text) <= _MOST_DIGITS:
        top, slash, bottom = text.partition("/")
        if slash and top.removeprefix("-").isdecimal() and bottom.isdecimal() and int(bottom):
            value = Fraction(int(top), int(bottom))
            if fraction_text(value) == text and abs(value) < LARGEST:
                return value
    raise InvalidParameter(
        f'Expected a fraction "n/d" in lowest terms, got {shown(text)}. '
        "The stored number was changed. Use the plan as it was written."
    )


class Reader:
    """Reads one mapping of plain data: every field once, none left over.

    Args:
        data: What was stored.
        what: What it should be, for the message.
    """

    def __init__(self, data: Any, what: str) -> None:
        if not isinstance(data, Mapping):
            raise self._refusal(f"Expected {what} to be a mapping, got {shown(data)}.")
        self._left = dict(data)
        self._what = what

    @staticmethod
    def _refusal(text: str) -> InvalidParameter:
        return InvalidParameter(
            f"{text} The plan was changed, or written by another version. "
            "Use the plan as it was written, with the version that wrote it."
        )

    @property
    def names(self) -> frozenset[str]:
        """The fields that are left."""
        return frozenset(self._left)

    def take(self, name: str) -> Any:
        """Return a field and strike it off."""
        if name not in self._left:
            raise self._refusal(f"Expected {self._what} to have {name!r}, got nothing of it.")
        return self._left.pop(name)

    def integer(self, name: str) -> int:
        """Return a field that is an integer."""
        value = self.take(name)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._refusal(f"Expected {self._what}.{name} to be an integer, got {value!r}.")
        return value

    def optional_integer(self, name: str) -> int | None:
        """Return a field that is an integer or null."""
        if self._left.get(name, 0) is None:
            self.take(name)
            return None
        return self.integer(name)

    def integers(self, name: str) -> tuple[int, ...]:
        """Return a field that is a list of integers."""
        values = self.items(name)
        if not all(isinstance(v, int) and not isinstance(v, bool) for v in values):
            raise self._refusal(f"Expected {self._what}.{name} to be integers.")
        return values

    def items(self, name: str) -> tuple[Any, ...]:
        """Return a field that is a list."""
        value = self.take(name)
        if not isinstance(value, list):
            raise self._refusal(f"Expected {self._what}.{name} to be a list, got {shown(value)}.")
        return tuple(value)

    def text(self, name: str) -> str:
        """Return a field that is text."""
        value = self.take(name)
        if not isinstance(value, str):
            raise self._refusal(f"Expected {self._what}.{name} to be text, got {shown(value)}.")
        return value

    def optional_text(self, name: str) -> str | None:
        """Return a field that is text or null."""
        if self._left.get(name, "") is None:
            self.take(name)
            return None
        return self.text(name)

    def fraction(self, name: str) -> Fraction:
        """Return a field that is a fraction."""
        return fraction_of(self.take(name))

    def flag(self, name: str) -> bool:
        """Return a field that is true or false."""
        value = self.take(name)
        if not isinstance(value, bool):
            raise self._refusal(
                f"Expected {self._what}.{name} to be true or false, got {shown(value)}."
            )
        return value

    def done(self) -> None:
        """Refuse what is left over."""
        if self._left:
            raise self._refusal(
                f"Expected {self._what} to have known fields only, got {shown(sorted(self._left))}."
            )
