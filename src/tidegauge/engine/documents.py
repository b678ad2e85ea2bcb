"""The texts beside the numbers: the statement, its fields, and the account of what was spent."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tidegauge.engine.store import Spend
from tidegauge.mechanisms.secret import store_secret
from tidegauge.planning.plan import Plan
from tidegauge.planning.promise import ledger_data, privacy_data, privacy_text

__all__ = ["documents", "spend_of", "spends_in", "unit_sentence"]


def documents(plan: Plan, spends: Sequence[Spend]) -> dict[str, bytes]:
    """Return ``PRIVACY.md``, ``privacy.json`` and ``ledger.json``.

    Args:
        plan: What is published.
        spends: Every release that was charged; nothing else enters.
    """
    errata = _errata(spends)
    return {
        "PRIVACY.md": privacy_text(plan, errata).encode(),
        "privacy.json": _bytes(privacy_data(plan, errata)),
        "ledger.json": _bytes(_ledger(plan, spends)),
    }


def spend_of(plan: Plan, store: str, step: int, day: str) -> Spend:
    """Return what one release under a plan costs.

    Args:
        plan: Whose gauges are charged, all of them, once and for ever.
        store: The name of the store that measures.
        step: Steps that are committed in it.
        day: The day of the decision, as ``2013-01-31``.
    """
    gauges = {charge.name: charge.cost.event() for charge in plan.ledger.charges}
    return Spend(store, plan.fingerprint, step, day, gauges, store_secret("release").hex()[:32])


def spends_in(ledger: bytes) -> list[Spend]:
    """Return the releases that a ``ledger.json`` charges, in order.

    Raises:
        ValueError: It is not one that was written here.
    """
    try:
        content: Any = json.loads(ledger)
        spends: dict[int, Spend] = {}
        for charge in content["charges"]:
            spend = Spend(
                store=str(charge["store"]),
                fingerprint=str(charge["fingerprint"]),
                step=int(charge["from_step"]) - 1,
                day=str(charge["day"]),
                gauges={},
                id=str(charge["id"]),
            )
            gauges = spends.setdefault(int(charge["release"]), spend).gauges
            gauges[str(charge["gauge"])] = dict(charge["event"])
        if not spends or list(spends) != list(range(1, int(content["releases"]) + 1)):
            raise ValueError
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError("no ledger") from None
    return list(spends.values())


def unit_sentence(plan: Plan) -> str:
    """Return who is protected, as it stands in the metadata of every file."""
    relation = plan.relation.value
    if plan.unit is None:
        return f"one event ({relation})"
    per = "" if plan.unit.per == "lifetime" else f" in each {plan.unit.per} steps"
    most = plan.unit.max_contributions
    return f"one value of {plan.unit.column} with at most {most} events{per} ({relation})"


def _ledger(plan: Plan, spends: Sequence[Spend]) -> dict[str, Any]:
    """The plan's ledger with the charges as they were made: a lost store may have had others.

    ``store`` is the one that publishes. Names of stores and ids of releases are random: they tell
    nothing, but which store may go on here.
    """
    charges = [
        {
            "release": number,
            "id": spend.id,
            "store": spend.store,
            "gauge": gauge,
            "fingerprint": spend.fingerprint,
            "from_step": spend.step + 1,
            "day": spend.day,
            "event": event,
        }
        for number, spend in enumerate(spends, 1)
        for gauge, event in spend.gauges.items()
    ]
    content = ledger_data(plan, len(spends))
    events = content["events"] | {"events": [charge["event"] for charge in charges]}
    store = spends[-1].store if spends else None
    return content | {"charges": charges, "events": events, "store": store}


def _errata(spends: Sequence[Spend]) -> list[str]:
    """What a statement has to add once a further release was accepted."""
    return [
        f"{spend.day}: a further release was accepted, from step {spend.step + 1} on. The promise "
        f"holds for each of the {len(spends)} releases by itself; together they spend what "
        "`ledger.json` adds up."
        for spend in spends[1:]
    ]


def _bytes(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False).encode() + b"\n"
