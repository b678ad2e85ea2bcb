"""The statement that is published and signed: PRIVACY.md, privacy.json and ledger.json.

Pure functions of a plan, so that anybody who has ``plan.json`` can write them again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from statistics import NormalDist
from typing import Any

from tidegauge.planning.durations import instant_text, written
from tidegauge.planning.plan import Plan, PlannedGauge
from tidegauge.planning.words import (
    budget_share,
    delta_of,
    epsilon_of,
    gauge_in_words,
    k_events,
    length_in_words,
    mu_of,
    view_in_words,
)
from tidegauge.privacy.costs import Cost, GaussianCost
from tidegauge.privacy.guarantee import ApproxDP, PureDP, rounded_up
from tidegauge.privacy.statement import fact_of, privacy_statement
from tidegauge.strategies.decay import Decay

__all__ = [
    "assumptions",
    "at_rest",
    "declared",
    "ledger_data",
    "odds",
    "privacy_data",
    "privacy_text",
    "promise",
]

_FEW = 12
_ALARM = 0.05
_AT_REST = (
    "The store holds exact totals of the past, as far as later steps need them, and, with an id "
    "unit, how often each id was counted. Ids are kept as keyed hashes alone. Only its owner may "
    "read it (mode 0600), and what later steps do not need is erased at the end.",
    "Exact counts of rows that were dropped and of totals that were clamped stay in the store, "
    "after the end as well. They carry no noise and are the operator's alone.",
    "The public folder holds noisy numbers alone. What was published cannot be recalled, and need "
    "not be: the promise holds whatever becomes of it.",
)
_VALUES_AT_REST = (
    "For counts of different values the store holds each value that later steps need, as a keyed "
    "hash alone, with its cell and, in a window, the step at which it was seen last. They are "
    "erased at the end."
)


def at_rest(plan: Plan) -> tuple[str, ...]:
    """Return what is kept where, and for how long."""
    if not any(gauge.kind == "count_distinct" for gauge in plan.gauges):
        return _AT_REST
    return (*_AT_REST[:1], _VALUES_AT_REST, *_AT_REST[1:])


def assumptions(plan: Plan) -> tuple[str, ...]:
    """Return what the promise rests on, beside the mathematics."""
    found = [
        "Noise comes from AES-256 under keys of the operating system, erased after use: the "
        "promise holds against readers who cannot break AES.",
        "Nobody but the operator reads the sources, the store, logs and counts of bad rows.",
        "Each event is delivered once: a row that stands twice in the sources counts twice.",
        "The declared constants were chosen without looking at the data.",
        "The plan is run once. A second release of the same data spends again (ledger.json).",
    ]
    if plan.multiline:
        found.append(
            "In CSV sources rows are split at newlines outside quotes: a row with an open quote "
            "can swallow the rows that follow it. Every such source has balanced quotes."
        )
    found += [
        f"Different values of {gauge.column} (gauge {gauge.name}) are different texts, byte for "
        "byte; rows without one are not counted."
        for gauge in plan.gauges
        if gauge.kind == "count_distinct"
    ]
    if plan.unit is not None:
        found.append(
            f"Column {plan.unit.column} tells the ids apart, compared as text byte for byte; rows "
            "without one, or with one spelled as a float (1.0), are left out."
        )
    return tuple(found)


def declared(plan: Plan) -> dict[str, str]:
    """Return every public constant that the promise rests on, in words; nothing protects them."""
    clock, time, unit = plan.clock, plan.time, plan.unit
    found = {}
    if clock.step_us is None:
        found["step"] = "each record; their number is public"
        found["end"] = "none" if clock.end is None else f"{clock.end:,} records"
    else:
        found["step"] = written(clock.step_us)
        found["start"] = instant_text(clock.start_us)
        end = clock.end
        found["end"] = (
            "none"
            if end is None
            else f"{instant_text(clock.start_us + end * clock.step_us)} ({end:,} steps)"
        )
    if plan.multiline:
        found["csv"] = "newlines within quotes belong to a field"
    if time is not None:
        zone = "" if time.timezone is None else f", {time.timezone} where a stamp has no zone"
        found["event time"] = f"column {time.column} ({time.format}{zone})"
    if unit is not None:
        found["id"] = f"column {unit.column}, at most {unit.max_contributions:,} events"
    for gauge in plan.gauges:
        found |= _declared_of(gauge)
    horizon = plan.gauges[0].mechanism.horizon
    found["horizon"] = "unknown" if horizon is None else f"{horizon:,} steps"
    return found


def _declared_of(gauge: PlannedGauge) -> dict[str, str]:
    name, grain = gauge.name, gauge.round_to
    found = {}
    if gauge.kind == "sum":
        found[f"{name}, bounds"] = (
            f"[{_number(gauge.low * grain)}, {_number(gauge.high * grain)}] in multiples of "
            f"{_number(grain)}"
        )
    if gauge.where is not None:
        found[f"{name}, where"] = f"`{gauge.where}`"
    for column, values in gauge.by:
        shown = ", ".join(_code(value) for value in values[:_FEW])
        more = f" and {len(values) - _FEW:,} more (plan.json)" if len(values) > _FEW else ""
        found[f"{name}, values of {column}"] = shown + more
    if gauge.by:
        found[f"{name}, other"] = "dropped" if gauge.other is None else _code(gauge.other)
    limit = "largest total of a cell and step"
    if gauge.mechanism.neighbors.lasting:
        limit = "most different values in a cell"
    found[f"{name}, {limit}"] = _number(gauge.mechanism.max_per_step * grain)
    return found


def _number(value: Fraction) -> str:
    value = Fraction(value)
    return f"{value.numerator:,}" if value.denominator == 1 else f"{float(value):,.12g}"


def _code(text: str) -> str:
    """Text of the config as it may stand in Markdown."""
    fence = "``" if "`" in text else "`"
    return f"{fence}{text}{fence}"


def promise(plan: Plan) -> str:
    """Return the guarantee in one sentence, for what this plan protects."""
    return plan.guarantee.in_words(fact_of(plan.privacy_unit, plan.relation, _period(plan)))


def odds(plan: Plan) -> str:
    """Return the promise as odds that a reader finds one unit out: for people, and exact."""
    spent = plan.ledger.total()
    if isinstance(spent, PureDP):
        epsilon = float(spent.epsilon)
        found = min(math.exp(epsilon) * _ALARM, 1 - (1 - _ALARM) * math.exp(-epsilon))
    else:
        normal = NormalDist()
        found = normal.cdf(normal.inv_cdf(_ALARM) + float(mu_of(plan)))
    percent = min(100.0, math.ceil(1000 * found * (1 + 1e-12)) / 10)
    fact = fact_of(plan.privacy_unit, plan.relation, _period(plan))
    return (
        f"Somebody who wants to find out about {fact}, and accepts to be wrong 5 times in 100 "
        f"when it is not so, will be right at most {percent:g} times in 100 when it is "
        "(guessing blindly: 5)."
    )


def _period(plan: Plan) -> str | None:
    unit = plan.unit
    if unit is None or unit.per == "lifetime":
        return None
    return length_in_words(unit.per, plan.clock.step_us)


def _mechanism(plan: Plan, gauge: PlannedGauge) -> str:
    """One sentence on what is measured, with which noise, at what cost."""
    mechanism, cost = gauge.mechanism, gauge.mechanism.cost
    what = "number of rows" if gauge.kind == "count" else gauge_in_words(gauge)
    by = f" by {' and '.join(column for column, _ in gauge.by)}" if gauge.by else ""
    spends = f"mu^2 = {rounded_up(cost.mu_squared)}" if isinstance(cost, GaussianCost) else (
        f"epsilon = {rounded_up(cost.epsilon)}"
    )  # fmt: skip
    scale = mechanism.law.scale / Fraction(2) ** mechanism.strategy.lattice_bits * gauge.round_to
    views = "; ".join(_published(plan, gauge, name, decay) for name, decay in gauge.views)
    number = f"{len(gauge.cells):,} cell{'s' * (len(gauge.cells) != 1)}"
    return (
        f"the {what}{by} ({number}), as {mechanism.measures}, with "
        f"{mechanism.noise} noise of scale {float(scale):.6g} on every coordinate, drawn once. "
        f"{100 * budget_share(plan, gauge):.3g} % of the budget ({spends}). "
        f"Published: {views}."
    )


def _published(plan: Plan, gauge: PlannedGauge, name: str, decay: Decay) -> str:
    """A view's name and what it is."""
    every, step_us = gauge.every_of(name), plan.clock.step_us
    aligned = f", every {length_in_words(every, step_us)}" if every > 1 else ""
    return f"{name} ({view_in_words(decay, step_us)}{aligned})"


def privacy_text(plan: Plan, errata: Sequence[str] = ()) -> str:
    """Return PRIVACY.md: one page that a privacy officer can sign and a reader can read.

    Args:
        plan: The accepted plan.
        errata: Dated sentences on what went wrong; none: it says so.
    """
    about = dict(plan.about)
    lines = [f"# Privacy of {about.pop('title', 'this publication')}", odds(plan)]
    if about:
        lines.append("\n".join(f"* {name}: {text}" for name, text in about.items()))
    promised = privacy_statement(
        plan.guarantee,
        plan.privacy_unit,
        plan.relation,
        gauges={gauge.name: _mechanism(plan, gauge) for gauge in plan.gauges},
        declared=declared(plan),
        spent=plan.ledger.total(),
        delta=delta_of(plan) or Fraction(1, 10**9),
        period=_period(plan),
        records=plan.clock.step_us is None,
    )
    lines.append("#" + promised.rstrip())
    lines += ["## Assumed", _bullets(assumptions(plan)), "## At rest", _bullets(at_rest(plan))]
    lines += ["## Errata", _bullets(errata or ("None so far.",))]
    lines += ["## Plan", f"`{plan.sha256}` (of plan.json). ledger.json has the spend."]
    return "\n\n".join(lines) + "\n"


def _bullets(lines: Sequence[str]) -> str:
    return "\n".join(f"* {line}" for line in lines)


def privacy_data(plan: Plan, errata: Sequence[str] = ()) -> dict[str, Any]:
    """Return privacy.json: what PRIVACY.md says, for programs."""
    unit = plan.unit
    return {
        "tidegauge_privacy": 1,
        "plan": plan.sha256,
        "fingerprint": plan.fingerprint,
        "about": dict(plan.about),
        "unit": "event"
        if unit is None
        else {"id": unit.column, "max_contributions": unit.max_contributions, "per": unit.per},
        "neighboring_relation": plan.relation.value,
        "guarantee": _guarantee(plan),
        "odds": odds(plan),
        "k_events": [
            {
                "events": row.events,
                "epsilon": rounded_up(row.epsilon, 6),
                "delta": rounded_up(row.delta, 6) if row.delta else "0",
            }
            for row in k_events(plan)
        ],
        "gauges": {gauge.name: _mechanism(plan, gauge) for gauge in plan.gauges},
        "declared_not_protected": declared(plan),
        "assumed": list(assumptions(plan)),
        "at_rest": list(at_rest(plan)),
        "errata": list(errata),
    }


def _guarantee(plan: Plan) -> dict[str, str]:
    """The guarantee as promised and as spent; decimals as text, rounded up."""
    promised = plan.guarantee
    found = {
        "promised": repr(promised),
        "spent": repr(plan.ledger.total()),
        "epsilon": rounded_up(epsilon_of(plan), 9),
        "delta": rounded_up(delta_of(plan), 9) if delta_of(plan) else "0",
        "mu": rounded_up(mu_of(plan), 9),
    }
    if isinstance(promised, ApproxDP):
        found["promised_epsilon"] = rounded_up(promised.epsilon, 9)
    return found


def ledger_data(plan: Plan, releases: int = 1) -> dict[str, Any]:
    """Return ledger.json: every charge in dp_accounting's terms.

    ``events`` is what ``dp_accounting.dp_event.DpEvent.from_named_tuple`` reads. Noise multipliers
    are relative to all that the plan's own neighboring relation can move, so an accountant has to
    be asked for ``accountant_relation``: for REPLACE_ONE it would double that distance again.

    Args:
        plan: The accepted plan.
        releases: How often the whole plan was released; every second release costs it again.
    """
    ledger = plan.ledger
    charges = [
        {"gauge": charge.name, "release": release, **_spent(charge.cost)}
        for release in range(1, releases + 1)
        for charge in ledger.charges
    ]
    events = ledger.events()
    events["events"] = events["events"] * releases
    return {
        "tidegauge_ledger": 1,
        "plan": plan.sha256,
        "guarantee": repr(plan.guarantee),
        "releases": releases,
        "currency": ledger.currency.value if ledger.currency else None,
        "charges": charges,
        "within_guarantee": releases == 1,
        "neighboring_relation": plan.relation.value,
        "accountant_relation": "ADD_OR_REMOVE_ONE",
        "events": events,
        "epsilon": rounded_up(epsilon_of(plan), 9) if releases == 1 else None,
        "delta": rounded_up(delta_of(plan), 9) if delta_of(plan) else "0",
    }


def _spent(cost: Cost) -> dict[str, str]:
    if isinstance(cost, GaussianCost):
        return {"mu_squared": rounded_up(cost.mu_squared, 15)}
    return {"epsilon": rounded_up(cost.epsilon, 15)}
