"""Strategies that a config may ask for by name: those of the papers.

A strategy of a paper is added here, with one entry of :data:`NAMED`. Its builder gets what is asked
of a gauge and the options that were written, and returns the strategy at its coarsest lattice; or
it raises ``UnsupportedCombination`` where the strategy does not serve the views or the noise.
One that is ``offered`` is also a candidate of each gauge that it fits, unasked.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from types import MappingProxyType
from typing import Any, final

from tidegauge.checks import exact, shown
from tidegauge.errors import InvalidParameter, UnsupportedCombination
from tidegauge.strategies.asked import Asked
from tidegauge.strategies.decay import Decay, Exponential, Running, Step, Window
from tidegauge.strategies.decayed.named import build_exponential_sum
from tidegauge.strategies.distinct.named import build_first_occurrences
from tidegauge.strategies.identity import Identity
from tidegauge.strategies.responses import build_responses
from tidegauge.strategies.stepped import build_polynomial_sum, polynomial_sum_of
from tidegauge.strategies.strategy import Strategy
from tidegauge.strategies.trees import (
    build_all_window_sum,
    build_base_mech,
    build_binary_tree,
    build_window_sum,
)

__all__ = ["NAMED", "Asked", "ByName", "NamedStrategy", "by_name", "named_strategy", "own_decay"]


@final
@dataclass(frozen=True)
class ByName:
    """A strategy asked for by name.

    Attributes:
        name: One of :data:`NAMED`.
        options: Name and exact value of each option that was given, sorted.
    """

    name: str
    options: tuple[tuple[str, Fraction], ...] = ()


@final
@dataclass(frozen=True)
class NamedStrategy:
    """One strategy that has a name.

    Attributes:
        build: From what is asked and the options, as keywords, to the strategy.
        words: What it is, in words, for the table of candidates.
        options: Names of its options.
        offered: Whether it is a candidate where nobody asks for it.
    """

    build: Callable[..., Strategy]
    words: str
    options: tuple[str, ...] = ()
    offered: bool = False


_HOLISTIC = (
    "Expected a strategy that a config can hold, got HolisticPredicateSum. It takes a function of "
    "the whole history, which is code. Write DistinctCount beside count_distinct for first "
    "occurrences; else use tidegauge.papers.bolot.HolisticPredicateSum in Python."
)


def _stream_itself(asked: Asked) -> Identity:
    """Return the trivial strategy, which serves everything and is always a candidate."""
    return Identity(0)


def _paper_tree(asked: Asked) -> Strategy:
    """Return the paper's tree for the views: of windows, of one factor, or of every window.

    Raises:
        UnsupportedCombination: There is none.
    """
    views = [view for view in asked.views if not isinstance(view, Step)]
    if views and all(isinstance(view, Window) for view in views):
        return build_window_sum(asked)
    if views and all(isinstance(view, Exponential) for view in views):
        return build_exponential_sum(asked)
    if any(isinstance(view, Window | Running) for view in views):
        return build_all_window_sum(asked)
    raise UnsupportedCombination(
        "the paper has trees for windows, running sums and one factor; its tree for polynomials "
        "rounds their weights: ask for it by its name, PolynomialSum"
    )


NAMED: Mapping[str, NamedStrategy] = MappingProxyType(
    {
        "BaseMech": NamedStrategy(
            build_base_mech, "BaseMech, blocks of a base's digits", ("base",)
        ),
        "BinaryTree": NamedStrategy(
            build_binary_tree,
            "BinaryTree, the binary mechanism for running sums",
            # not offered: blocks of the best base are tried already
        ),
        "DistinctCount": NamedStrategy(
            build_first_occurrences,
            "DistinctCount, a binary tree over values seen for the first time",
            # not offered: of sums it would be the binary mechanism
        ),
        "PredicateSum": NamedStrategy(_paper_tree, "PredicateSum, the paper's tree for the views"),
        "DecayedHistogram": NamedStrategy(
            _paper_tree, "DecayedHistogram, the paper's tree for the views"
        ),
        "RandomizedResponse": NamedStrategy(
            build_responses, "RandomizedResponse, the bits themselves"
        ),
        "InputPerturbation": NamedStrategy(_stream_itself, "InputPerturbation, the stream itself"),
        "ExponentialSum": NamedStrategy(
            build_exponential_sum,
            "ExponentialSum, the left nodes of a tree of decayed sums",
            offered=True,
        ),
        "ExponentialSumAsPrinted": NamedStrategy(
            partial(build_exponential_sum, printed=True),
            "ExponentialSum with the printed lambda",
            offered=True,
        ),
        "WindowSum": NamedStrategy(
            build_window_sum, "WindowSum, binary trees without roots", offered=True
        ),
        "WindowSumDirect": NamedStrategy(
            partial(build_window_sum, decode="direct"),
            "WindowSum, binary trees with roots",
        ),
        "WindowSumAsPrinted": NamedStrategy(
            partial(build_window_sum, decode="paper"), "WindowSum as printed", offered=True
        ),
        "AllWindowSum": NamedStrategy(
            build_all_window_sum, "AllWindowSum, one tree for every window", ("beta",), offered=True
        ),
        "AllWindowSumAsPrinted": NamedStrategy(
            partial(build_all_window_sum, printed=True),
            "AllWindowSum by the printed formula",
            ("beta",),
        ),
        "PolynomialSum": NamedStrategy(
            build_polynomial_sum,
            "PolynomialSum, a window for each step of the weights",
            ("c", "beta", "reach"),
        ),
        "PolynomialSumAsPrinted": NamedStrategy(
            partial(build_polynomial_sum, printed=True),
            "PolynomialSum as printed, a baseline",
            ("c", "beta", "reach"),
        ),
    }
)


def by_name(name: Any, options: Mapping[str, Any] | None = None) -> ByName:
    """Return a checked name with its options.

    Raises:
        InvalidParameter: No such strategy or option, or an option that is no number.

    Examples:
        >>> by_name("ExponentialSum")
        ByName(name='ExponentialSum', options=())
    """
    if name == "HolisticPredicateSum":
        raise InvalidParameter(_HOLISTIC)
    entry = NAMED.get(name) if isinstance(name, str) else None
    if entry is None:
        raise InvalidParameter(
            f"Expected the name of a strategy, got {shown(name)}. Nothing else is known by a name. "
            f"{_meant(name, NAMED)}"
        )
    given = dict(options or {})
    for option in given:
        if option not in entry.options:
            raise InvalidParameter(
                f"Expected an option of {name}, got {shown(option)}. It would change nothing. "
                f"{_meant(option, entry.options)}"
            )
    why = "It is an option of the strategy. Give a number."
    exacts = ((key, exact(key, value, why=why)) for key, value in given.items())
    return ByName(name, tuple(sorted(exacts)))


def named_strategy(asked_for: ByName, asked: Asked) -> Strategy:
    """Return the strategy of a name for what is asked.

    Raises:
        UnsupportedCombination: It does not serve the views or the noise.
        InvalidParameter: An option is out of range.
    """
    return NAMED[asked_for.name].build(asked, **dict(asked_for.options))


def own_decay(asked_for: ByName) -> Decay | None:
    """Return the one decay that a strategy releases whatever is asked; None: it has none.

    Raises:
        InvalidParameter: An option is missing or out of range.
    """
    if not asked_for.name.startswith("PolynomialSum"):
        return None
    printed = asked_for.name.endswith("AsPrinted")
    return polynomial_sum_of(printed=printed, **dict(asked_for.options)).decay


def _meant(word: object, known: Any) -> str:
    close = difflib.get_close_matches(str(word), known, 1)
    if close:
        return f"Did you mean {close[0]!r}?"
    return f"Use one of {shown(sorted(known))}." if known else "Leave it out."
