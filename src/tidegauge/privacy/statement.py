"""The promise in words: a text that can stand beside every release.

It is made of declared values alone, so that it can be read, and signed, before any data is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

from tidegauge.privacy.conversion import odds_exceeded
from tidegauge.privacy.guarantee import (
    ZCDP,
    ApproxDP,
    GaussianDP,
    Guarantee,
    Number,
    PureDP,
    factor,
    rounded_up,
)
from tidegauge.privacy.k_events import KEvents, k_event_table
from tidegauge.privacy.protected import Protected

__all__ = ["bullets", "exactly", "more_units", "named", "numbers", "privacy_statement"]

Spend = Guarantee

_ELSEWHERE = (
    "Any other gauge, store or plan over the same data: what it spends comes on top.",
    "What anybody publishes from the exact data by another way.",
    "What the time, memory and power of a machine tell those who can measure them.",
)


def privacy_statement(
    guarantee: Guarantee,
    protected: Protected,
    *,
    gauges: Mapping[str, str],
    declared: Mapping[str, object],
    spent: Spend | None = None,
    delta: Number = Fraction(1, 10**9),
) -> str:
    """Return what a gauge promises, to whom, and what it does not, as Markdown.

    Args:
        guarantee: The promise for everything ever published.
        protected: Who is protected.
        gauges: For each gauge one sentence on its mechanism, its noise and its spend.
        declared: Every public constant that the promise rests on, by its public name; None: not
            declared, and left out.
        spent: What all charges amount to (``Ledger.total()``); it may be stronger than the promise.
        delta: At which delta a Gaussian or zCDP guarantee is also read as (epsilon, delta); an
            (epsilon, delta) guarantee brings its own.

    Raises:
        InvalidParameter: delta is not between 0 and 1.

    Examples:
        >>> from tidegauge.privacy.unit import Event, NeighboringRelation
        >>> text = privacy_statement(
        ...     ApproxDP(1, 1e-9), Protected(Event(), NeighboringRelation.ADD_OR_REMOVE_ONE),
        ...     gauges={"visits": "counts."}, declared={"cells": 16},
        ... )
        >>> print(text.splitlines()[0])
        # What is promised
    """
    delta = guarantee.delta if isinstance(guarantee, ApproxDP) else ApproxDP(1, delta).delta
    sections = [
        "# What is promised",
        protected.sentences(),
        *exactly(guarantee, spent, protected.question),
        "The promise covers everything that is ever published from "
        + ("this gauge" if len(gauges) == 1 else "these gauges, together")
        + ": every view, every step, and views that are thought of later.",
        f"In numbers: {numbers(guarantee, spent, delta)}.",
        "## Not covered",
        bullets((*_ELSEWHERE, *protected.gaps())),
        f"## Several {protected.units}",
        more_units(spent or guarantee, protected, delta),
        "## Gauges",
        bullets(f"**{name}**: {text}" for name, text in gauges.items()),
        "## Declared, not protected",
        "These constants are public. They were declared before any data was read, and nothing "
        "hides them.",
        bullets(
            f"{name}: {_plain(value)}" for name, value in declared.items() if value is not None
        ),
    ]
    return "\n\n".join(sections) + "\n"


def exactly(guarantee: Guarantee, spent: Spend | None, question: str) -> Iterable[str]:
    """Yield the promise as its definition says it, and what stands behind it.

    Args:
        guarantee: What is promised.
        spent: What was spent, if it is known; said where it is of another kind.
        question: What a reader may want to find out; begins with "whether".
    """
    yield guarantee.in_words(question)
    if spent is None or type(spent) is type(guarantee):
        return
    yield f"Spent: {named(spent)}. {spent.in_words(question)}"
    if isinstance(spent, GaussianDP) and isinstance(guarantee, ApproxDP):
        probability = odds_exceeded(spent.mu, guarantee.epsilon)
        if probability < 1:
            yield (
                f"Seen as odds: whatever else a reader knows, the odds on {question} change by "
                f"more than a factor of {factor(guarantee.epsilon)} with probability at most "
                f"{rounded_up(probability)}."
            )


def numbers(
    guarantee: Guarantee, spent: Spend | None, delta: Fraction, names: Fraction = Fraction(0)
) -> str:
    """Return the guarantee in numbers, and what it is worth in others; no full stop.

    Args:
        guarantee: What is promised.
        spent: What was spent, if it is known.
        delta: At which delta a Gaussian or zCDP spend is read as (epsilon, delta).
        names: What names of discovered items may add to it.
    """
    loss = spent or guarantee
    found = [named(guarantee)]
    if spent is not None and named(spent) not in found:
        found.append(f"spent: {named(spent)}")
    if isinstance(loss, GaussianDP | ZCDP):
        (row,) = k_event_table(loss, delta, (1,), names)
        pair = f"(epsilon, delta) = ({rounded_up(row.epsilon)}, {rounded_up(row.delta)})"
        if not isinstance(guarantee, ApproxDP):
            found.append(f"{pair}, one of its pairs: any smaller delta has a larger epsilon")
        elif pair not in found:
            found.append(pair)
    elif isinstance(loss, PureDP) and isinstance(guarantee, ApproxDP):
        found.append("delta is unused")
    return "; ".join(found)


def named(guarantee: Guarantee) -> str:
    """Return the parameters of a guarantee, and its kind where they do not tell."""
    match guarantee:
        case PureDP(epsilon=epsilon):
            return f"epsilon = {rounded_up(epsilon)}"
        case ZCDP(rho=rho):
            return f"rho = {rounded_up(rho)} (zCDP)"
        case GaussianDP(mu=mu):
            return f"mu = {rounded_up(mu)} (Gaussian DP)"
        case ApproxDP(epsilon=epsilon, delta=delta):
            return f"(epsilon, delta) = ({rounded_up(epsilon)}, {rounded_up(delta)})"


def more_units(
    loss: Guarantee,
    protected: Protected,
    delta: Number,
    names: Fraction = Fraction(0),
    thresholds: ApproxDP | None = None,
) -> str:
    """Return what a loss means for several units together: a table, and where moves stand in it.

    Args:
        loss: What one unit may lose.
        protected: The unit.
        delta: At which delta a Gaussian or zCDP loss is read.
        names: What names of discovered items may add to it for one unit.
        thresholds: What private thresholds spend for one unit, beside it.
    """
    rows = k_event_table(loss, delta, names=names, thresholds=thresholds)
    units = protected.units
    lines = [f"| {units} | epsilon | delta |", "| ---: | ---: | ---: |"]
    lines += [f"| {row.events} | {_cells(row)} |" for row in rows]
    head = f"What the promise means for several {units} together, such as those of one person:"
    parts = [head, "\n".join(lines), protected.moved()]
    return "\n\n".join(part for part in parts if part)


def _cells(row: KEvents) -> str:
    """Epsilon and delta of a row."""
    return f"{rounded_up(row.epsilon)} | {rounded_up(row.delta) if row.delta else 0}"


def _plain(value: object) -> str:
    """A declared value as it is written by hand."""
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def bullets(lines: Iterable[str]) -> str:
    """Return a Markdown list."""
    return "\n".join(f"* {line}" for line in lines) or "* nothing"
