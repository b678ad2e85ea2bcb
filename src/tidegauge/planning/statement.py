"""The statement that is published and signed: PRIVACY.md, and privacy.json for programs.

Pure functions of a plan and of its releases, so that anybody who has ``plan.json`` can write them
again, and an officer can read them before any data is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tidegauge.planning.constants import declared
from tidegauge.planning.measured import measured
from tidegauge.planning.plan import Plan
from tidegauge.planning.promise import guarantee_of_all, odds, protected_of
from tidegauge.planning.sentences import at_rest, duties, left_out, named_when, not_covered
from tidegauge.planning.spending import (
    delta_in_words,
    delta_of,
    epsilon_of,
    k_events,
    noise_delta_of,
    thresholds_in_words,
)
from tidegauge.privacy.conversion import mu_from_pure
from tidegauge.privacy.guarantee import ApproxDP, GaussianDP, PureDP, rounded_up
from tidegauge.privacy.statement import bullets, exactly, more_units, named, numbers

__all__ = ["Further", "first_page", "privacy_data", "privacy_text"]

_DETAILS = "# Details"


@dataclass(frozen=True)
class Further:
    """A release of the same plan that was accepted after the first one.

    Attributes:
        day: When, as ``2013-01-31``.
        step: The first step that it measured anew, counted from 1.
    """

    day: str
    step: int


def privacy_text(plan: Plan, further: Sequence[Further] = ()) -> str:
    """Return PRIVACY.md: a page that a privacy officer can sign, then the details.

    Args:
        plan: The accepted plan.
        further: Every release after the first; with one, all sentences are about all together.
    """
    return "\n\n".join([*_page(plan, further), _DETAILS, *_details(plan, further)]) + "\n"


def first_page(text: str) -> str:
    """Return the part of a PRIVACY.md that is signed."""
    return text.split(f"\n{_DETAILS}\n")[0]


def _page(plan: Plan, further: Sequence[Further]) -> list[str]:
    """The first page: who, how well, what not, on what it rests, and where to sign."""
    about, protected = dict(plan.about), protected_of(plan)
    releases, names = 1 + len(further), named_when(plan)
    title = f"# Privacy of {about.pop('title', 'this publication')}"
    lines = [title]
    if further:
        lines = [f"{title}: ERRATUM, {releases} releases", bullets(_errata(further))]
    if about:
        lines.append(bullets(f"{name}: {text}" for name, text in about.items()))
    lines += [
        "## What is promised",
        protected.sentences(),
        odds(plan, releases),
        _numbers(plan, releases),
        f"This covers everything that {'is ever' if releases == 1 else 'was or will be'} published "
        f"{_source(plan, releases)}: every view, every step, and views that are thought of later.",
        *([bullets(names)] if names else []),
        "## What is not",
        bullets(not_covered(plan)),
        "## What the operator sees to",
        bullets(duties(plan, releases)),
        "## Approval",
        f"Plan: `{plan.sha256}` (of plan.json)",
        "Name, date, signature: ________________________________________",
    ]
    return lines


def _source(plan: Plan, releases: int) -> str:
    """What everything is published from."""
    gauges = "this gauge" if len(plan.gauges) == 1 else "these gauges, together,"
    if releases == 1:
        return f"from {gauges} under this plan"
    return f"by the {releases} releases of this plan"


def _numbers(plan: Plan, releases: int) -> str:
    spent = plan.spent_on_noise(releases)
    delta, names = noise_delta_of(plan), releases * plan.delta_for_names
    whole = guarantee_of_all(plan, releases)
    if plan.thresholds is not None:
        text = f"In numbers: {named(whole)}. {thresholds_in_words(plan, releases)}."
    else:
        text = f"In numbers: {numbers(whole, spent, delta, names)}."
    if names:
        text += (
            f" {delta_in_words(plan, releases)}. The part for names is the chance that a value "
            f"is named which one {'event' if plan.unit is None else 'id'} alone brings."
        )
    if releases > 1:
        text += f" Promised was {named(plan.guarantee)}."
    return text


def _errata(further: Sequence[Further]) -> list[str]:
    """What became untrue of the first statement, and what this one is of."""
    if not further:
        return []
    releases = 1 + len(further)
    return [
        *(
            f"{one.day}: a further release was accepted, from step {one.step:,} on."
            for one in further
        ),
        f"What was promised holds for each release by itself. All that follows is of all "
        f"{releases} together.",
    ]


def _details(plan: Plan, further: Sequence[Further]) -> list[str]:
    """What stands behind the page."""
    releases, protected = 1 + len(further), protected_of(plan)
    spent, drawn = plan.spent_on_noise(releases), plan.spent_on_thresholds(releases)
    told = spent if drawn is None else None  # what noise spends is not all that is spent
    return [
        "## The promise, as defined",
        *exactly(guarantee_of_all(plan, releases), told, protected.question),
        *_of_names(plan, releases),
        f"## Several {protected.units}",
        more_units(spent, protected, noise_delta_of(plan), releases * plan.delta_for_names, drawn),
        "## Gauges",
        bullets(f"**{gauge.name}**: {measured(plan, gauge)}" for gauge in plan.gauges),
        "## Declared, not protected",
        "These constants are public. They were declared before any data was read, and nothing "
        "hides them.",
        bullets(f"{name}: {text}" for name, text in declared(plan).items()),
        "## Left out and cut",
        bullets(left_out(plan)),
        "## Noise and storage",
        bullets(at_rest(plan)),
        *(() if further else ("## Errata", bullets(["None so far."]))),
    ]


def _of_names(plan: Plan, releases: int) -> list[str]:
    """What names of discovered cells add to what is said of the noise."""
    if not plan.delta_for_names:
        return []
    most = rounded_up(releases * plan.delta_for_names)
    return [
        "What is said of mu, and of odds, is of the noise. The names of discovered values add at "
        f"most {most} to the probability of any result; the delta above has it in it."
    ]


def privacy_data(plan: Plan, further: Sequence[Further] = ()) -> dict[str, Any]:
    """Return privacy.json: what PRIVACY.md says, for programs.

    Args:
        plan: The accepted plan.
        further: Every release after the first; with one, all numbers are of all together.
    """
    unit, releases = plan.unit, 1 + len(further)
    return {
        "tidegauge_privacy": 1,
        "plan": plan.sha256,
        "fingerprint": plan.fingerprint,
        "about": dict(plan.about),
        "unit": "event"
        if unit is None
        else {"id": unit.column, "max_contributions": unit.max_contributions, "per": unit.per},
        "event": plan.event,
        "neighboring_relation": plan.relation.value,
        "protected": protected_of(plan).sentences(),
        "releases": releases,
        "guarantee": _guarantee(plan, releases),
        "odds": odds(plan, releases),
        "k_events": [
            {
                "events": row.events,
                "epsilon": rounded_up(row.epsilon, 6),
                "delta": rounded_up(row.delta, 6) if row.delta else "0",
            }
            for row in k_events(plan, releases)
        ],
        "gauges": {gauge.name: measured(plan, gauge) for gauge in plan.gauges},
        "declared_not_protected": declared(plan),
        "not_covered": list(not_covered(plan)),
        "assumed": list(duties(plan, releases)),
        "left_out": list(left_out(plan)),
        "at_rest": list(at_rest(plan)),
        "errata": _errata(further),
    }


def _guarantee(plan: Plan, releases: int) -> dict[str, str]:
    """The guarantee as promised, and what all releases spent; decimals as text, rounded up."""
    promised, spent = plan.guarantee, plan.spent_on_noise(releases)
    delta = delta_of(plan, releases)
    found = {
        "promised": repr(promised),
        "spent": repr(spent),
        "epsilon": rounded_up(epsilon_of(plan, releases), 9),
        "delta": rounded_up(delta, 9) if delta else "0",
    }
    if isinstance(spent, PureDP):
        found["mu"] = rounded_up(mu_from_pure(spent.epsilon), 9)
    elif isinstance(spent, GaussianDP):
        found["mu"] = rounded_up(spent.mu, 9)
    drawn = plan.spent_on_thresholds(releases)
    if drawn is not None:
        found["spent_on_thresholds"] = repr(drawn)
    if isinstance(promised, ApproxDP):
        found["promised_epsilon"] = rounded_up(promised.epsilon, 9)
    return found
