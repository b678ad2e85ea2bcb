"""A gauge's plan as plain data, and back: strategy integers, law, cost, everything.

Restoring fits nothing and measures nothing: the numbers that were stored are the numbers that are
used. They are not believed either: sensitivity and cost are computed anew from them, and a plan
whose noise is too small for its cost is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tidegauge.checks import LARGEST, shown
from tidegauge.errors import InvalidParameter, TidegaugeError
from tidegauge.mechanisms.discovery import Discovery
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

__all__ = ["VERSION", "Reader", "fraction_of", "fraction_text", "plain", "read_as"]

VERSION = 2
"""Of the stored form and of what the numbers mean; a reader refuses every other."""

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


def _decimal(value: float | Fraction) -> str:
    """A float as the decimal that its author wrote: it reads back as the same float."""
    return fraction_text(value if isinstance(value, Fraction) else Fraction(repr(float(value))))


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

    def optional_items(self, name: str) -> tuple[Any, ...] | None:
        """Return a field that is a list or null."""
        if self._left.get(name, "") is None:
            self.take(name)
            return None
        return self.items(name)

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


@dataclass(frozen=True)
class _Form:
    """How one class is written and read."""

    write: Callable[[Any], dict[str, Any]]
    read: Callable[[Reader], Any]


def _exponential(decay: Exponential) -> dict[str, Any]:
    average = {"average": True} if decay.average else {}  # a total says nothing of it
    if decay.half_life is not None:
        return {"half_life": _decimal(decay.half_life), **average}
    assert decay.factor is not None
    return {"factor": _decimal(decay.factor), **average}


def _read_exponential(reader: Reader) -> Exponential:
    average = "average" in reader.names and reader.flag("average")
    if "half_life" in reader.names:
        return Exponential(half_life=reader.fraction("half_life"), average=average)
    return Exponential(factor=reader.fraction("factor"), average=average)


def _read_difference(reader: Reader) -> Difference:
    view = read_as(reader.take("view"), Step, Window, Exponential, Polynomial, Custom)
    return Difference(view, reader.integer("lag"))


def _nothing(_: Any) -> dict[str, Any]:
    return {}


def _neighbors(neighbors: Neighbors) -> dict[str, Any]:
    distinct = {} if neighbors.distinct is None else {"distinct": neighbors.distinct}
    return {
        "unit": plain(neighbors.unit),
        "relation": neighbors.relation.value,
        "low": neighbors.low,
        "high": neighbors.high,
        "max_cells": neighbors.max_cells,
        "cells": neighbors.cells,
        **distinct,  # sums say nothing of it
        **({"paired": True} if neighbors.paired else {}),
    }


def _read_neighbors(reader: Reader) -> Neighbors:
    unit = read_as(reader.take("unit"), Event, Contributions)
    relation = relation_of(reader.text("relation"))
    low, high = reader.integer("low"), reader.integer("high")
    touched, cells = reader.integer("max_cells"), reader.optional_integer("cells")
    distinct = _read_distinct(reader) if "distinct" in reader.names else None
    paired = reader.flag("paired") if "paired" in reader.names else False
    return Neighbors(unit, relation, low, high, touched, cells, distinct, paired)


def _selection(selection: Selection) -> dict[str, Any]:
    return {
        "k": selection.k,
        "switches": selection.switches,
        "margin": selection.margin,
        "scale": fraction_text(selection.scale),
        "epsilon": fraction_text(selection.epsilon),
    }


def _read_selection(reader: Reader) -> Selection:
    return Selection(
        reader.integer("k"),
        reader.integer("switches"),
        reader.integer("margin"),
        reader.fraction("scale"),
        reader.fraction("epsilon"),
    )


def _discovery(discovery: Discovery) -> dict[str, Any]:
    return {
        "view": discovery.view,
        "decay": plain(discovery.decay),
        "delta": fraction_text(discovery.delta),
        "threshold": fraction_text(discovery.threshold),
        "expected_items": discovery.expected_items,
        "adaptive": discovery.adaptive,
    }


def _read_discovery(reader: Reader) -> Discovery:
    return Discovery(
        reader.text("view"),
        read_as(reader.take("decay"), Step, Running, Window),
        reader.fraction("delta"),
        reader.fraction("threshold"),
        reader.integer("expected_items"),
        reader.flag("adaptive"),
    )


def _read_distinct(reader: Reader) -> Distinct:
    given = reader.take("distinct")
    if given == "ever":
        return "ever"
    if isinstance(given, bool) or not isinstance(given, int):
        raise InvalidParameter(
            f'Expected distinct to be "ever" or steps, got {shown(given)}. It was changed.'
        )
    return given


def _weights(strategy: Blocks | OpenBlocks) -> dict[str, Any]:
    return {"weights": list(strategy.weights)} if strategy.weights else {}  # equal ones say nothing


def _read_weights(reader: Reader) -> tuple[int, ...]:
    return reader.integers("weights") if "weights" in reader.names else ()


def _blocks(strategy: Blocks) -> dict[str, Any]:
    return {
        "levels": list(strategy.levels),
        "signed": strategy.signed,
        "lattice_bits": strategy.lattice_bits,
        **_weights(strategy),
        **({"printed": True} if strategy.printed else {}),
    }


def _read_blocks(reader: Reader) -> Blocks:
    return Blocks(
        reader.integers("levels"),
        reader.flag("signed"),
        reader.integer("lattice_bits"),
        _read_weights(reader),
        "printed" in reader.names and reader.flag("printed"),
    )


def _open_blocks(strategy: OpenBlocks) -> dict[str, Any]:
    return {
        "levels": list(strategy.levels),
        "views": [plain(view) for view in strategy.views],
        "lattice_bits": strategy.lattice_bits,
        **_weights(strategy),
    }


def _comb(strategy: Comb) -> dict[str, Any]:
    return {"beta": fraction_text(strategy.beta), "lag": strategy.lag, **_blt(strategy)}


def _blt(strategy: Blt | Comb) -> dict[str, Any]:
    return {
        "gaps": list(strategy.gaps),
        "weights": list(strategy.weights),
        "lattice_bits": strategy.lattice_bits,
        "charged_steps": strategy.charged_steps,
    }


def _normalised(strategy: NormalisedBlt) -> dict[str, Any]:
    return {
        "gaps": list(strategy.gaps),
        "weights": list(strategy.weights),
        "lengths": list(strategy.lengths),
        "multipliers": list(strategy.multipliers),
        "lattice_bits": strategy.lattice_bits,
    }


def _dense(strategy: DenseToeplitz) -> dict[str, Any]:
    return {"coefficients": list(strategy.coefficients), "lattice_bits": strategy.lattice_bits}


def _shaped(strategy: Shaped) -> dict[str, Any]:
    return {
        "gaps": list(strategy.gaps),
        "weights": list(strategy.weights),
        "window": strategy.window,
        "lattice_bits": strategy.lattice_bits,
        "charged_steps": strategy.charged_steps,
    }


def _polynomial_sum(strategy: PolynomialSum) -> dict[str, Any]:
    return {
        "beta": fraction_text(strategy.beta),
        "powers": list(strategy.powers),
        "ends": list(strategy.ends),
        "weights": list(strategy.weights),
        "printed": strategy.printed,
    }


_FORMS: dict[type, _Form] = {
    Step: _Form(_nothing, lambda r: Step()),
    Running: _Form(_nothing, lambda r: Running()),
    Window: _Form(lambda d: {"steps": d.steps}, lambda r: Window(r.integer("steps"))),
    Exponential: _Form(_exponential, _read_exponential),
    Polynomial: _Form(
        lambda d: {"c": _decimal(d.c), "reach": d.reach},
        lambda r: Polynomial(float(r.fraction("c")), r.integer("reach")),
    ),
    Custom: _Form(
        lambda d: {"values": [_decimal(value) for value in d.values]},
        lambda r: Custom(tuple(float(fraction_of(text)) for text in r.items("values"))),
    ),
    Difference: _Form(lambda d: {"view": plain(d.view), "lag": d.lag}, _read_difference),
    Identity: _Form(
        lambda s: {"lattice_bits": s.lattice_bits}, lambda r: Identity(r.integer("lattice_bits"))
    ),
    Blt: _Form(
        _blt,
        lambda r: Blt(
            r.integers("gaps"),
            r.integers("weights"),
            r.integer("lattice_bits"),
            r.integer("charged_steps"),
        ),
    ),
    Comb: _Form(
        _comb,
        lambda r: Comb(
            r.integers("gaps"),
            r.integers("weights"),
            r.fraction("beta"),
            r.integer("lag"),
            r.integer("lattice_bits"),
            r.integer("charged_steps"),
        ),
    ),
    NormalisedBlt: _Form(
        _normalised,
        lambda r: NormalisedBlt(
            r.integers("gaps"),
            r.integers("weights"),
            r.integers("lengths"),
            r.integers("multipliers"),
            r.integer("lattice_bits"),
        ),
    ),
    DenseToeplitz: _Form(
        _dense, lambda r: DenseToeplitz(r.integers("coefficients"), r.integer("lattice_bits"))
    ),
    Shaped: _Form(
        _shaped,
        lambda r: Shaped(
            r.integers("gaps"),
            r.integers("weights"),
            r.integer("window"),
            r.integer("lattice_bits"),
            r.integer("charged_steps"),
        ),
    ),
    Anchored: _Form(
        lambda s: {"periods": list(s.periods), "window": s.window},
        lambda r: Anchored(r.integers("periods"), r.integer("window")),
    ),
    DecayedTree: _Form(
        lambda s: {"gap": s.gap, "lattice_bits": s.lattice_bits, "printed": s.printed},
        lambda r: DecayedTree(r.integer("gap"), r.integer("lattice_bits"), r.flag("printed")),
    ),
    Blocks: _Form(_blocks, _read_blocks),
    OpenBlocks: _Form(
        _open_blocks,
        lambda r: OpenBlocks(
            r.integers("levels"),
            tuple(read_as(view, Running, Window) for view in r.items("views")),
            r.integer("lattice_bits"),
            _read_weights(r),
        ),
    ),
    PolynomialSum: _Form(
        _polynomial_sum,
        lambda r: PolynomialSum(
            r.fraction("beta"),
            r.integers("powers"),
            r.integers("ends"),
            r.integers("weights"),
            r.flag("printed"),
        ),
    ),
    Responses: _Form(
        lambda s: {"scale": fraction_text(s.scale)}, lambda r: Responses(r.fraction("scale"))
    ),
    RoundedGaussian: _Form(
        lambda law: {"scale": fraction_text(law.scale)},
        lambda r: RoundedGaussian(r.fraction("scale")),
    ),
    DiscreteLaplace: _Form(
        lambda law: {"scale": fraction_text(law.scale)},
        lambda r: DiscreteLaplace(r.fraction("scale")),
    ),
    BitFlips: _Form(
        lambda law: {"scale": fraction_text(law.scale)}, lambda r: BitFlips(r.fraction("scale"))
    ),
    GaussianCost: _Form(
        lambda cost: {"mu_squared": fraction_text(cost.mu_squared)},
        lambda r: GaussianCost(r.fraction("mu_squared")),
    ),
    PureCost: _Form(
        lambda cost: {"epsilon": fraction_text(cost.epsilon)},
        lambda r: PureCost(r.fraction("epsilon")),
    ),
    PureDP: _Form(
        lambda g: {"epsilon": fraction_text(g.epsilon)}, lambda r: PureDP(r.fraction("epsilon"))
    ),
    ZCDP: _Form(lambda g: {"rho": fraction_text(g.rho)}, lambda r: ZCDP(r.fraction("rho"))),
    GaussianDP: _Form(
        lambda g: {"mu": fraction_text(g.mu)}, lambda r: GaussianDP(r.fraction("mu"))
    ),
    ApproxDP: _Form(
        lambda g: {"epsilon": fraction_text(g.epsilon), "delta": fraction_text(g.delta)},
        lambda r: ApproxDP(r.fraction("epsilon"), r.fraction("delta")),
    ),
    Event: _Form(_nothing, lambda r: Event()),
    Contributions: _Form(
        lambda u: {"max_events": u.max_events, "min_separation": u.min_separation},
        lambda r: Contributions(r.integer("max_events"), r.integer("min_separation")),
    ),
    Neighbors: _Form(_neighbors, _read_neighbors),
    Selection: _Form(_selection, _read_selection),
    Discovery: _Form(_discovery, _read_discovery),
}


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
    return {"is": type(value).__name__, **form.write(value)}


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
        value = _FORMS[names[name]].read(reader)
    except TidegaugeError as error:
        raise InvalidParameter(f"Expected the {name} that was stored. {error}") from None
    reader.done()
    return value
