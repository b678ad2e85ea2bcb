"""A gauge's plan as plain data, and back: strategy integers, law, cost, everything.

Restoring fits nothing and measures nothing: the numbers that were stored are the numbers that are
used. They are not believed either: sensitivity and cost are computed anew from them, and a plan
whose noise is too small for its cost is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tidegauge.checks import shown
from tidegauge.errors import InvalidParameter, TidegaugeError
from tidegauge.mechanisms.discovery import Discovery
from tidegauge.mechanisms.plain_data import Reader, fraction_of, fraction_text
from tidegauge.mechanisms.selection import Selection
from tidegauge.noise.gaussian import RoundedGaussian
from tidegauge.noise.laplace import DiscreteLaplace
from tidegauge.noise.response import BitFlips
from tidegauge.privacy.costs import GaussianCost, PureCost
from tidegauge.privacy.guarantee import ZCDP, ApproxDP, GaussianDP, PureDP
from tidegauge.privacy.unit import Contributions, Distinct, Event, Neighbors, relation_of
from tidegauge.strategies.blocks import Blocks, OpenBlocks
from tidegauge.strategies.blt import Blt, Comb, NormalisedBlt
from tidegauge.strategies.decay import (
    Custom,
    Difference,
    Exponential,
    Polynomial,
    Running,
    Step,
    Window,
)
from tidegauge.strategies.decayed import DecayedTree
from tidegauge.strategies.dense import DenseToeplitz
from tidegauge.strategies.distinct import Anchored, Shaped
from tidegauge.strategies.identity import Identity
from tidegauge.strategies.responses import Responses
from tidegauge.strategies.stepped import PolynomialSum

__all__ = ["VERSION", "plain", "read_as"]

VERSION = 2
"""Of the stored form and of what the numbers mean; a reader refuses every other."""

_ALWAYS = object()  # in place of a default: the field is written whatever it is


@dataclass(frozen=True)
class _Field:
    """How a field is written and read.

    Attributes:
        write: From its value to plain data.
        read: From the mapping it stands in, by its name.
        default: Of this value nothing is written, and nothing written means it.
    """

    write: Callable[[Any], Any]
    read: Callable[[Reader, str], Any]
    default: Any = _ALWAYS

    def unless(self, default: object) -> _Field:
        """Return this field, left out where it has a value of which there is nothing to say."""
        return _Field(self.write, self.read, default)


def plain(value: Any) -> dict[str, Any]:
    """Return a decay, strategy, law, cost, guarantee, unit or neighbors as plain data.

    Integers, text, fractions as ``"n/d"``, lists, true and false; never a float.

    Raises:
        InvalidParameter: There is no stored form of it.

    Examples:
        >>> plain(Window(168))
        {'is': 'Window', 'steps': 168}
    """
    form = _FORMS.get(type(value))
    if form is None:
        raise InvalidParameter(
            f"Expected a part of a plan, got a {type(value).__name__}. It has no stored form. "
            "Use tidegauge's own decays and strategies."
        )
    data: dict[str, Any] = {"is": type(value).__name__}
    for field, how in form.items():
        part = getattr(value, field)
        if how.default is _ALWAYS or part != how.default:
            data[field] = how.write(part)
    return data


def read_as(data: Any, *kinds: type) -> Any:
    """Return what :func:`plain` was given, which has to be one of ``kinds``.

    Raises:
        InvalidParameter: It is none of them, its fields are not exactly those that were written,
            or its numbers are impossible.

    Examples:
        >>> read_as({"is": "Window", "steps": 168}, Running, Window)
        Window(steps=168)
    """
    names = {kind.__name__: kind for kind in kinds}
    reader = Reader(data, " or ".join(names))
    name = reader.text("is")
    if name not in names:
        raise InvalidParameter(
            f"Expected one of {sorted(names)}, got {shown(name)}. This version does not know it, "
            "or the plan was changed. Use the version that wrote the plan."
        )
    try:
        given = {
            field: how.read(reader, field)
            for field, how in _FORMS[names[name]].items()
            if how.default is _ALWAYS or field in reader.names
        }
        value = names[name](**given)
    except TidegaugeError as error:
        raise InvalidParameter(f"Expected the {name} that was stored. {error}") from None
    reader.done()
    return value


def _decimal(value: float | Fraction) -> str:
    """A float as the decimal that its author wrote: it reads back as the same float."""
    return fraction_text(value if isinstance(value, Fraction) else Fraction(repr(float(value))))


def _same(value: Any) -> Any:
    return value


def _read_distinct(reader: Reader, name: str) -> Distinct:
    given = reader.take(name)
    if given == "ever":
        return "ever"
    if isinstance(given, bool) or not isinstance(given, int):
        raise InvalidParameter(
            f'Expected distinct to be "ever" or steps, got {shown(given)}. It was changed.'
        )
    return given


def _one_of(*kinds: type) -> _Field:
    """A field that is itself a part with a stored form."""
    return _Field(plain, lambda r, name: read_as(r.take(name), *kinds))


def _some_of(*kinds: type) -> _Field:
    """A field that is a list of such parts."""
    return _Field(
        lambda parts: [plain(part) for part in parts],
        lambda r, name: tuple(read_as(part, *kinds) for part in r.items(name)),
    )


_INTEGER = _Field(_same, Reader.integer)
_INTEGER_OR_NULL = _Field(_same, Reader.optional_integer)
_INTEGERS = _Field(list, Reader.integers)
_FLAG = _Field(_same, Reader.flag)
_TEXT = _Field(_same, Reader.text)
_FRACTION = _Field(fraction_text, Reader.fraction)
_DECIMAL = _Field(_decimal, Reader.fraction)
_FLOAT = _Field(_decimal, lambda r, name: float(r.fraction(name)))
_FLOATS = _Field(
    lambda values: [_decimal(value) for value in values],
    lambda r, name: tuple(float(fraction_of(text)) for text in r.items(name)),
)
_RELATION = _Field(lambda relation: relation.value, lambda r, name: relation_of(r.text(name)))
_DISTINCT = _Field(_same, _read_distinct)

_BLT = {
    "gaps": _INTEGERS,
    "weights": _INTEGERS,
    "lattice_bits": _INTEGER,
    "charged_steps": _INTEGER,
}
_LAW = {"scale": _FRACTION}
_FORMS: dict[type, dict[str, _Field]] = {
    Step: {},
    Running: {},
    Window: {"steps": _INTEGER},
    Exponential: {
        "half_life": _DECIMAL.unless(None),
        "factor": _DECIMAL.unless(None),
        "average": _FLAG.unless(False),
    },
    Polynomial: {"c": _FLOAT, "reach": _INTEGER},
    Custom: {"values": _FLOATS},
    Difference: {
        "view": _one_of(Step, Window, Exponential, Polynomial, Custom),
        "lag": _INTEGER,
    },
    Identity: {"lattice_bits": _INTEGER},
    Blt: _BLT,
    Comb: {**_BLT, "beta": _FRACTION, "lag": _INTEGER},
    NormalisedBlt: {
        "gaps": _INTEGERS,
        "weights": _INTEGERS,
        "lengths": _INTEGERS,
        "multipliers": _INTEGERS,
        "lattice_bits": _INTEGER,
    },
    DenseToeplitz: {"coefficients": _INTEGERS, "lattice_bits": _INTEGER},
    Shaped: {**_BLT, "window": _INTEGER},
    Anchored: {"periods": _INTEGERS, "window": _INTEGER},
    DecayedTree: {"gap": _INTEGER, "lattice_bits": _INTEGER, "printed": _FLAG},
    Blocks: {
        "levels": _INTEGERS,
        "signed": _FLAG,
        "lattice_bits": _INTEGER,
        "weights": _INTEGERS.unless(()),
        "printed": _FLAG.unless(False),
    },
    OpenBlocks: {
        "levels": _INTEGERS,
        "views": _some_of(Running, Window),
        "lattice_bits": _INTEGER,
        "weights": _INTEGERS.unless(()),
    },
    PolynomialSum: {
        "beta": _FRACTION,
        "powers": _INTEGERS,
        "ends": _INTEGERS,
        "weights": _INTEGERS,
        "printed": _FLAG,
    },
    Responses: {"scale": _FRACTION},
    RoundedGaussian: _LAW,
    DiscreteLaplace: _LAW,
    BitFlips: _LAW,
    GaussianCost: {"mu_squared": _FRACTION},
    PureCost: {"epsilon": _FRACTION},
    PureDP: {"epsilon": _FRACTION},
    ZCDP: {"rho": _FRACTION},
    GaussianDP: {"mu": _FRACTION},
    ApproxDP: {"epsilon": _FRACTION, "delta": _FRACTION},
    Event: {},
    Contributions: {"max_events": _INTEGER, "min_separation": _INTEGER},
    Neighbors: {
        "unit": _one_of(Event, Contributions),
        "relation": _RELATION,
        "low": _INTEGER,
        "high": _INTEGER,
        "max_cells": _INTEGER,
        "cells": _INTEGER_OR_NULL,
        "distinct": _DISTINCT.unless(None),
        "paired": _FLAG.unless(False),
    },
    Selection: {
        "k": _INTEGER,
        "switches": _INTEGER,
        "margin": _INTEGER,
        "scale": _FRACTION,
        "epsilon": _FRACTION,
    },
    Discovery: {
        "view": _TEXT,
        "decay": _one_of(Step, Running, Window),
        "delta": _FRACTION,
        "threshold": _FRACTION,
        "expected_items": _INTEGER,
        "adaptive": _FLAG,
    },
}
"""Each class and the fields that its constructor takes; they are read in this order."""
