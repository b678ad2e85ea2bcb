"""The public account: what every release costs, in terms that another library understands."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tidegauge.engine.store import Spend
from tidegauge.plan.plan import Plan
from tidegauge.privacy.costs import dp_event

__all__ = ["ledger_of", "releases_in", "spend_of"]

_FORMAT = 1


def spend_of(plan: Plan, store: str, step: int, day: str) -> Spend:
    """Return what one release under a plan costs.

    Args:
        plan: Whose gauges are charged, all of them, once and for ever.
        store: The name of the store that measures.
        step: Steps that are committed in it.
        day: The day of the decision, as ``2013-01-31``.
    """
    gauges = {charge.name: charge.cost.event() for charge in plan.ledger.charges}
    return Spend(store, plan.fingerprint, step, day, gauges)


def ledger_of(plan: Plan, spends: Sequence[Spend]) -> bytes:
    """Return ``ledger.json``: the charges, one line a gauge and release, and all of them composed.

    ``dp_accounting.dp_event.DpEvent.from_named_tuple`` on equal fields gives the events back, so
    that a stranger recomputes epsilon from ``events``. The stores' names are not in it.
    """
    charges = [
        {
            "release": number,
            "gauge": gauge,
            "fingerprint": spend.fingerprint,
            "from_step": spend.step + 1,
            "day": spend.day,
            "event": event,
        }
        for number, spend in enumerate(spends, 1)
        for gauge, event in spend.gauges.items()
    ]
    content = {
        "format": _FORMAT,
        "guarantee": repr(plan.guarantee),
        "releases": len(spends),
        "charges": charges,
        "events": dp_event("ComposedDpEvent", events=[charge["event"] for charge in charges]),
    }
    return json.dumps(content, indent=1, sort_keys=True).encode() + b"\n"


def releases_in(ledger: bytes) -> int:
    """Return how many releases a ``ledger.json`` counts."""
    content: Any = json.loads(ledger)
    return int(content["releases"])
