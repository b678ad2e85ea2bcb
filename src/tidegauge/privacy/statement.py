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
    odds_exceeded,
)
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
from tidegauge.privacy.unit import Contributions, NeighboringRelation, PrivacyUnit

__all__ = ["fact_of", "privacy_statement"]

Spend = PureDP | ZCDP | GaussianDP

_NOT_COVERED = (
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
    spent: Spend | None = None,
    delta: Number = Fraction(1, 10**9),
    period: str | None = None,
    records: bool = False,
) -> str:
    """Return what is promised, to whom, and what is not, as Markdown.

    Args:
        guarantee: The promise for everything ever published.
        unit: Who is protected.
        relation: Which two streams count as neighbors.
        gauges: For each gauge one sentence on its mechanism, its noise and its spend.
        declared: Every public constant that the promise rests on, by its public name; None: not
            declared, and left out.
        spent: What all charges amount to (``Ledger.total()``); it may be stronger than the promise.
        delta: At which delta a Gaussian or zCDP guarantee is also read as (epsilon, delta); an
            (epsilon, delta) guarantee brings its own.
        period: Of an id unit, the length of the periods that its bound holds for, each of which is
            protected by itself; None: the bound holds for the whole life of the stream.
        records: Whether each record is a step, so that one that is taken away leaves its step.

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
    delta = guarantee.delta if isinstance(guarantee, ApproxDP) else ApproxDP(1, delta).delta
    sections = [
        "# What is promised",
        *_promise(guarantee, unit, relation, spent, delta, period, len(gauges), records),
        "## More events",
        _more_events(spent or guarantee, unit, relation, delta),
        "## Gauges",
        _bullets(f"**{name}**: {text}" for name, text in gauges.items()),
        "## Declared, not protected",
        "These constants are public. They were declared before any data was read, and nothing "
        "hides them.",
        _bullets(
            f"{name}: {_plain(value)}" for name, value in declared.items() if value is not None
        ),
        "## Not covered",
        _bullets((*_NOT_COVERED, *_gaps(unit, relation, period))),
    ]
    return "\n\n".join(sections) + "\n"


def fact_of(unit: PrivacyUnit, relation: NeighboringRelation, period: str | None = None) -> str:
    """Return what a reader may try to learn about one protected unit, for ``in_words``.

    Examples:
        >>> PureDP(1).in_words(fact_of(Contributions(20), NeighboringRelation.REPLACE_ONE))
        'Whatever else a reader knows, all releases together change the odds of all events (at most
        20) of any one id being what they are by at most a factor of 2.72.'
    """
    added = relation is NeighboringRelation.ADD_OR_REMOVE_ONE
    if isinstance(unit, Contributions):
        when = f" in any one period of {period}" if period else ""
        whose = f"all events (at most {unit.max_events}) of any one id{when}"
        return f"{whose} having been in the stream" if added else f"{whose} being what they are"
    return "any one event having been in the stream" if added else "any one event being what it is"


def _promise(
    guarantee: Guarantee,
    unit: PrivacyUnit,
    relation: NeighboringRelation,
    spent: Spend | None,
    delta: Fraction,
    period: str | None,
    gauges: int,
    records: bool,
) -> Iterable[str]:
    """The promise, who it is for, what it covers, and what stands behind it."""
    fact, alone = fact_of(unit, relation, period), gauges == 1
    yield guarantee.in_words(fact)
    yield _protected(unit, relation, period, records)
    which = "from this gauge" if alone else "from these gauges, together"
    yield (
        f"The promise covers everything that is ever published {which}: every view, every step, "
        "and views that are thought of later."
    )
    yield f"In numbers: {_numbers(guarantee, spent, delta)}."
    if spent is not None and type(spent) is not type(guarantee):
        who = "This gauge spends" if alone else "The gauges together spend"
        yield f"{who} {_named(spent)}. {spent.in_words(fact)}"
        if isinstance(spent, GaussianDP) and isinstance(guarantee, ApproxDP):
            yield from _odds(spent, guarantee, fact)


def _odds(spent: GaussianDP, guarantee: ApproxDP, fact: str) -> Iterable[str]:
    """How often the odds change by more than the promised factor, if a Gaussian spend tells."""
    probability = odds_exceeded(spent.mu, guarantee.epsilon)
    if probability < 1:
        yield (
            f"Seen as odds: whatever else a reader knows, the odds of {fact} change by more than a "
            f"factor of {factor(guarantee.epsilon)} with probability at most "
            f"{rounded_up(probability)}."
        )


def _protected(
    unit: PrivacyUnit, relation: NeighboringRelation, period: str | None, records: bool
) -> str:
    """The unit and the relation in full."""
    if isinstance(unit, Contributions):
        many = "1 event" if unit.max_events == 1 else f"{unit.max_events} events"
        who = f"an id with at most {many} over the whole life of the stream"
        if period:
            who = f"an id in one period of {period}, with at most {many} in it"
        if unit.min_separation == 1:
            who += ", no two in one step"
        elif unit.min_separation:
            who += f", at least {unit.min_separation} steps apart"
    else:
        who = "one event"
    if relation is NeighboringRelation.ADD_OR_REMOVE_ONE:
        how = "it is in the stream, or the stream has nothing of it (`add_or_remove_one`)"
        if records:
            how += "; a record that is taken away keeps its place and adds nothing"
    else:
        how = "its values and cells are these or any others, its steps the same (`replace_one`)"
    return f"Protected is {who}: {how}."


def _numbers(guarantee: Guarantee, spent: Spend | None, delta: Fraction) -> str:
    """The guarantee and what it is worth in other words."""
    loss = spent or guarantee
    numbers = [_named(guarantee)]
    if spent is not None and _named(spent) not in numbers:
        numbers.append(f"spent: {_named(spent)}")
    if isinstance(loss, GaussianDP | ZCDP):
        epsilon = (
            epsilon_from_mu(loss.mu, delta)
            if isinstance(loss, GaussianDP)
            else epsilon_from_rho(loss.rho, delta)
        )
        pair = f"(epsilon, delta) = ({rounded_up(epsilon)}, {rounded_up(delta)})"
        if pair not in numbers:
            numbers.append(pair)
    elif isinstance(loss, PureDP) and isinstance(guarantee, ApproxDP):
        numbers.append("delta is unused")
    return "; ".join(numbers)


def _named(guarantee: Guarantee) -> str:
    """The parameters of a guarantee, and its kind where they do not tell."""
    match guarantee:
        case PureDP(epsilon=epsilon):
            return f"epsilon = {rounded_up(epsilon)}"
        case ZCDP(rho=rho):
            return f"rho = {rounded_up(rho)} (zCDP)"
        case GaussianDP(mu=mu):
            return f"mu = {rounded_up(mu)} (Gaussian DP)"
        case ApproxDP(epsilon=epsilon, delta=delta):
            return f"(epsilon, delta) = ({rounded_up(epsilon)}, {rounded_up(delta)})"


def _more_events(
    loss: Guarantee, unit: PrivacyUnit, relation: NeighboringRelation, delta: Fraction
) -> str:
    """The k-event table, and where a changed time stands in it."""
    rows = k_event_table(loss, delta)
    if isinstance(unit, Contributions):
        times = f" x {unit.max_events}"
        apart = unit.min_separation
        head = f"What the promise means for somebody with several times {unit.max_events} events"
        head += f", each {unit.max_events} of them at least {apart} steps apart:" if apart else ":"
        moved = "An id whose events change or move to other steps counts as two ids"
    else:
        times = ""
        head = "What the promise means for somebody with several events:"
        moved = "An event that changes or moves to another step counts as two events"
    lines = ["| events | epsilon | delta |", "| ---: | ---: | ---: |"]
    lines += [f"| {row.events}{times} | {_cells(row)} |" for row in rows]
    parts = [head, "\n".join(lines)]
    if relation is NeighboringRelation.ADD_OR_REMOVE_ONE:
        parts.append(f"{moved}, one removed and one added: see the row for 2{times}.")
    return "\n\n".join(parts)


def _cells(row: KEvents) -> str:
    """Epsilon and delta of a row."""
    return f"{rounded_up(row.epsilon)} | {rounded_up(row.delta) if row.delta else 0}"


def _gaps(unit: PrivacyUnit, relation: NeighboringRelation, period: str | None) -> list[str]:
    """What this unit and this relation leave open."""
    gaps = []
    if relation is NeighboringRelation.REPLACE_ONE:
        gaps.append("Whether an event took place at all, at which step, and how many did.")
    if period:
        gaps.append(f"An id in several periods of {period}: what each of them may tell adds up.")
    if isinstance(unit, Contributions):
        gaps.append(f"An id with more than {unit.max_events} events, beyond the table above.")
        if unit.min_separation > 1:
            gaps.append(f"An id with two events less than {unit.min_separation} steps apart.")
    else:
        gaps.append("A person with many events, beyond the table above.")
    return gaps


def _plain(value: object) -> str:
    """A declared value as it is written by hand."""
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _bullets(lines: Iterable[str]) -> str:
    """A Markdown list."""
    return "\n".join(f"* {line}" for line in lines) or "* nothing"
