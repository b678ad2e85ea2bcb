"""The promise in words: a text that can stand beside every release.

It is made of declared values alone, so that it can be read, and signed, before any data is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

from tidegauge.privacy.conversion import (
    KEvents,
    epsilon_from_mu,
    epsilon_from_rho,
    k_event_table,
)
from tidegauge.privacy.guarantee import (
    ZCDP,
    ApproxDP,
    GaussianDP,
    Guarantee,
    Number,
    PureDP,
    rounded_up,
)
from tidegauge.privacy.unit import Contributions, NeighboringRelation, PrivacyUnit

__all__ = ["fact_of", "privacy_statement"]

_NOT_COVERED = (
    "A changed time: an event that moves to another step is one event removed and one added.",
    "Any other store, gauge or plan over the same data: what it spends comes on top.",
    "What anybody publishes from the exact data by another way.",
)


def privacy_statement(
    guarantee: Guarantee,
    unit: PrivacyUnit,
    relation: NeighboringRelation,
    *,
    gauges: Mapping[str, str],
    declared: Mapping[str, object],
    spent: PureDP | ZCDP | GaussianDP | None = None,
    delta: Number = Fraction(1, 10**9),
    period: str | None = None,
) -> str:
    """Return what is promised, to whom, and what is not, as Markdown.

    Args:
        guarantee: The promise for everything ever published.
        unit: Who is protected.
        relation: Which two streams count as neighbors.
        gauges: For each gauge one sentence on its mechanism, its noise and its spend.
        declared: Every public constant that the promise rests on, by its public name.
        spent: What all charges amount to (``Ledger.total()``); it may be stronger than the promise.
        delta: At which delta a Gaussian or zCDP guarantee is also read as (epsilon, delta); an
            (epsilon, delta) guarantee brings its own.
        period: Of an id unit, the length of the periods that its bound holds for, each of which is
            protected by itself; None: the bound holds for the whole life of the stream.

    Raises:
        InvalidParameter: delta is not between 0 and 1.

    Examples:
        >>> from tidegauge.privacy.unit import Event
        >>> text = privacy_statement(
        ...     ApproxDP(1, 1e-9), Event(), NeighboringRelation.ADD_OR_REMOVE_ONE,
        ...     gauges={"visits": "counts."}, declared={"cells": 16},
        ... )
        >>> print(text.splitlines()[0])
        # What is promised
    """
    if isinstance(guarantee, ApproxDP):
        delta = guarantee.delta
    delta = ApproxDP(1, delta).delta
    fact = fact_of(unit, relation, period)
    sections = [
        "# What is promised",
        guarantee.in_words(fact),
        _protected(unit, relation, period),
        "The promise covers everything that is ever published from these gauges, together: every "
        "view, every step, and views that are thought of later.",
        "In numbers: " + _numbers(guarantee, spent, delta) + ".",
    ]
    if spent is not None and type(spent) is not type(guarantee):
        sections.append(f"The gauges together spend {spent!r}. {spent.in_words(fact)}")
    sections += ["## More events", _more_events(spent or guarantee, unit, delta)]
    sections += ["## Gauges", _bullets(f"**{name}**: {text}" for name, text in gauges.items())]
    sections += [
        "## Declared, not protected",
        "These constants are public. They were declared before any data was read, and nothing "
        "hides them.",
        _bullets(f"{name}: {value}" for name, value in declared.items()),
        "## Not covered",
        _bullets((*_NOT_COVERED, *_gaps(unit, relation, period))),
    ]
    return "\n\n".join(sections) + "\n"


def fact_of(unit: PrivacyUnit, relation: NeighboringRelation, period: str | None = None) -> str:
    """What a reader may try to learn about one protected unit."""
    added = relation is NeighboringRelation.ADD_OR_REMOVE_ONE
    if isinstance(unit, Contributions):
        when = f" in any one period of {period}" if period else ""
        whose = f"all events (at most {unit.max_events}) of any one id{when}"
        return f"{whose} having been in the stream" if added else f"{whose} being what they are"
    return "any one event having been in the stream" if added else "any one event being what it is"


def _protected(unit: PrivacyUnit, relation: NeighboringRelation, period: str | None) -> str:
    """The unit and the relation in full."""
    if isinstance(unit, Contributions):
        who = f"an id with at most {unit.max_events} events over the whole life of the stream"
        if period:
            who = f"an id in one period of {period}, with at most {unit.max_events} events in it"
        if unit.min_separation:
            who += f", at least {unit.min_separation} steps apart"
    else:
        who = "one event"
    if relation is NeighboringRelation.ADD_OR_REMOVE_ONE:
        how = "it is in the stream, or the stream has nothing of it (`add_or_remove_one`)"
    else:
        how = "its values and cells are these or any others, its steps the same (`replace_one`)"
    return f"Protected is {who}: {how}."


def _numbers(
    guarantee: Guarantee, spent: PureDP | ZCDP | GaussianDP | None, delta: Fraction
) -> str:
    """The guarantee and its equivalents."""
    numbers = [f"{guarantee!r}"]
    loss = spent or guarantee
    if isinstance(loss, GaussianDP):
        numbers.append(f"mu = {rounded_up(loss.mu)}")
        epsilon = epsilon_from_mu(loss.mu, delta)
        numbers.append(f"epsilon = {rounded_up(epsilon)} at delta = {rounded_up(delta)}")
    elif isinstance(loss, ZCDP):
        numbers.append(f"rho = {rounded_up(loss.rho)}")
        epsilon = epsilon_from_rho(loss.rho, delta)
        numbers.append(f"epsilon = {rounded_up(epsilon)} at delta = {rounded_up(delta)}")
    return ", ".join(numbers)


def _more_events(loss: Guarantee, unit: PrivacyUnit, delta: Fraction) -> str:
    """The k-event table."""
    rows = k_event_table(loss, delta)
    if isinstance(unit, Contributions):
        head = f"What the promise means for somebody with several times {unit.max_events} events:"
        many = [f"{row.events} x {unit.max_events}" for row in rows]
    else:
        head = "What the promise means for somebody with several events:"
        many = [str(row.events) for row in rows]
    lines = ["| events | epsilon | delta |", "| ---: | ---: | ---: |"]
    lines += [f"| {k} | {_cells(row)} |" for k, row in zip(many, rows, strict=True)]
    return f"{head}\n\n" + "\n".join(lines)


def _cells(row: KEvents) -> str:
    """Epsilon and delta of a row."""
    return f"{rounded_up(row.epsilon)} | {rounded_up(row.delta) if row.delta else 0}"


def _gaps(unit: PrivacyUnit, relation: NeighboringRelation, period: str | None) -> list[str]:
    """What this unit and this relation leave open."""
    gaps = []
    if relation is NeighboringRelation.REPLACE_ONE:
        gaps.append("Whether an event took place at all, and how many did.")
    if period:
        gaps.append(f"An id in several periods of {period}: what each of them may tell adds up.")
    if isinstance(unit, Contributions):
        gaps.append(f"An id with more than {unit.max_events} events, beyond the table above.")
    else:
        gaps.append("A person with many events, beyond the table above.")
    return gaps


def _bullets(lines: Iterable[str]) -> str:
    """A Markdown list; a dash for nothing."""
    return "\n".join(f"* {line}" for line in lines) or "* nothing"
