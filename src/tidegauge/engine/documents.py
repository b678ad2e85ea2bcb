"""The statement beside the numbers: one page to sign, and the same as fields. Made of the plan."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from tidegauge.engine.store import Spend
from tidegauge.plan.plan import Clock, Plan, PlannedGauge
from tidegauge.privacy.conversion import k_event_table
from tidegauge.privacy.guarantee import ApproxDP, rounded_up
from tidegauge.privacy.statement import privacy_statement

__all__ = ["documents", "unit_sentence"]

_FORMAT = 1
_ASSUMED = (
    "The source is what it says it is: nobody but the protected writes rows, and each is delivered "
    "once.",
    "The store, its mark and the source are read by their operator alone.",
    "AES-256 under a key from the operating system stands for true randomness, so the guarantee is "
    "computational in this one respect.",
)


def documents(plan: Plan, spends: Sequence[Spend]) -> dict[str, bytes]:
    """Return ``PRIVACY.md`` and ``privacy.json``.

    Args:
        plan: What is published.
        spends: Every release that was charged; nothing else enters.
    """
    errata = _errata(spends)
    content = _fields(plan) | {"releases": len(spends), "errata": errata}
    fields = json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False)
    page = _page(plan)
    if errata:
        page = "\n".join([page, "## Errata\n", *(f"* {text}" for text in errata), ""])
    return {"PRIVACY.md": page.encode(), "privacy.json": fields.encode() + b"\n"}


def _errata(spends: Sequence[Spend]) -> list[str]:
    """What a statement has to add once a further release was accepted."""
    return [
        f"{spend.day}: a further release was accepted, from step {spend.step + 1} on. The promise "
        f"holds for each of the {len(spends)} releases by itself; together they spend what "
        "`ledger.json` adds up."
        for spend in spends[1:]
    ]


def unit_sentence(plan: Plan) -> str:
    """Return who is protected, as it stands in the metadata of every file."""
    relation = plan.relation.value
    if plan.unit is None:
        return f"one event ({relation})"
    per = "" if plan.unit.per == "lifetime" else f" in each {plan.unit.per} steps"
    most = plan.unit.max_contributions
    return f"one value of {plan.unit.column} with at most {most} events{per} ({relation})"


def _page(plan: Plan) -> str:
    about = dict(plan.about)
    title = about.pop("title", "")
    text = privacy_statement(
        plan.guarantee,
        plan.privacy_unit,
        plan.relation,
        gauges={gauge.name: _mechanism(gauge) for gauge in plan.gauges},
        declared=_declared(plan),
        spent=plan.ledger.total(),
    )
    lines = [f"# {title}\n"] if title else []
    lines += [f"* {name}: {value}" for name, value in about.items()]
    period = _period(plan)
    return "\n".join(
        [
            *lines,
            *([""] if about else []),
            text,
            *([f"* {period}"] if period else []),
            "## Assumed\n",
            *(f"* {sentence}" for sentence in _ASSUMED),
            "",
            f"Plan: {plan.sha256}",
            "",
        ]
    )


def _mechanism(gauge: PlannedGauge) -> str:
    mechanism = gauge.mechanism
    what = "the number of rows" if gauge.kind == "count" else f"the sum of {gauge.column}"
    where = f" where {gauge.where}" if gauge.where else ""
    return (
        f"{what}{where}, {len(gauge.cells)} cells; {mechanism.noise} noise on every coordinate of "
        f"{mechanism.measures}, drawn once; it spends {mechanism.cost!r}."
    )


def _period(plan: Plan) -> str:
    if plan.unit is None or plan.unit.per == "lifetime":
        return ""
    return (
        f"More than one period: the bound holds in each {plan.unit.per} steps, counted from the "
        "start, and what an id adds in several of them adds up."
    )


def _declared(plan: Plan) -> dict[str, object]:
    """Every public constant that the operator declared, by its name in the config."""
    declared: dict[str, object] = {
        "start": _moment(plan.clock, 0),
        "step": "record" if plan.clock.step_us is None else f"{plan.clock.step_us} microseconds",
        "end": "none" if plan.clock.end is None else _moment(plan.clock, plan.clock.end),
    }
    for gauge in plan.gauges:
        if gauge.kind == "sum":
            low, high = gauge.low * gauge.round_to, gauge.high * gauge.round_to
            declared[f"{gauge.name}: bounds"] = f"[{low}, {high}], rounded to {gauge.round_to}"
        for column, values in gauge.by:
            declared[f"{gauge.name}: {column}"] = ", ".join(values)
        declared[f"{gauge.name}: other"] = gauge.other or "drop"
        declared[f"{gauge.name}: max_per_step"] = gauge.mechanism.max_per_step
    return declared


def _moment(clock: Clock, step: int) -> str:
    if clock.step_us is None:
        return f"record {step}"
    since = timedelta(microseconds=clock.start_us + step * clock.step_us)
    return (datetime(1970, 1, 1, tzinfo=UTC) + since).isoformat().replace("+00:00", "Z")


def _fields(plan: Plan) -> dict[str, Any]:
    delta = plan.guarantee.delta if isinstance(plan.guarantee, ApproxDP) else 1e-9
    spent = plan.ledger.total() or plan.guarantee
    return {
        "format": _FORMAT,
        "plan": plan.sha256,
        "fingerprint": plan.fingerprint,
        "about": dict(plan.about),
        "unit": unit_sentence(plan),
        "neighboring_relation": plan.relation.value,
        "guarantee": repr(plan.guarantee),
        "spent": repr(spent),
        "events": [
            {
                "events": row.events,
                "epsilon": rounded_up(row.epsilon),
                "delta": rounded_up(row.delta) if row.delta else "0",
            }
            for row in k_event_table(spent, delta)
        ],
        "gauges": [_gauge_fields(gauge) for gauge in plan.gauges],
        "declared_not_protected": {name: str(value) for name, value in _declared(plan).items()},
        "assumed": list(_ASSUMED),
    }


def _gauge_fields(gauge: PlannedGauge) -> dict[str, Any]:
    mechanism = gauge.mechanism
    return {
        "name": gauge.name,
        "kind": gauge.kind,
        "column": gauge.column,
        "where": gauge.where,
        "by": [column for column, _ in gauge.by],
        "cells": len(gauge.cells),
        "noise": mechanism.noise,
        "noise_scale": str(mechanism.law.scale),
        "lattice_bits": mechanism.strategy.lattice_bits,
        "mechanism": mechanism.measures,
        "cost": repr(mechanism.cost),
        "level": mechanism.level,
        "views": [name for name, _ in gauge.views],
    }
