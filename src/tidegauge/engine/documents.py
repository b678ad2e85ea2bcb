"""The texts beside the numbers: the statement, its fields, and the account of what was spent."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tidegauge.engine.spends import Spend
from tidegauge.mechanisms.secret import store_secret
from tidegauge.planning.plan import Plan
from tidegauge.planning.promise import protected_of
from tidegauge.planning.spending import delta_of, epsilon_of
from tidegauge.planning.statement import Further, privacy_data, privacy_text
from tidegauge.privacy.costs import dp_event
from tidegauge.privacy.guarantee import rounded_up

__all__ = ["documents", "further_of", "ledger_data", "spend_of", "spends_in", "unit_sentence"]


def documents(plan: Plan, spends: Sequence[Spend]) -> dict[str, bytes]:
    """Return ``PRIVACY.md``, ``privacy.json`` and ``ledger.json``.

    Args:
        plan: What is published.
        spends: Every release that was charged; nothing else enters.
    """
    further = further_of(spends)
    return {
        "PRIVACY.md": privacy_text(plan, further).encode(),
        "privacy.json": _bytes(privacy_data(plan, further)),
        "ledger.json": _bytes(ledger_data(plan, spends)),
    }


def further_of(spends: Sequence[Spend]) -> list[Further]:
    """Return every release after the first, as a statement tells it."""
    return [Further(spend.day, spend.step + 1) for spend in spends[1:]]


def spend_of(plan: Plan, store: str, step: int, day: str) -> Spend:
    """Return what one release under a plan costs.

    Args:
        plan: Whose gauges are charged, all of them, once and for ever.
        store: The name of the store that measures.
        step: Steps that are committed in it.
        day: The day of the decision, as ``2013-01-31``.
    """
    gauges = {charge.name: charge.cost.event() for charge in plan.charged().charges}
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
    period = protected_of(plan).period
    during = f" in one of {period}" if period else ""
    most = plan.unit.max_contributions
    return f"one value of {plan.unit.column} with at most {most} events{during} ({relation})"


def ledger_data(plan: Plan, spends: Sequence[Spend]) -> dict[str, Any]:
    """Return ledger.json: every charge as it was made, in dp_accounting's terms.

    ``events`` is what ``dp_accounting.dp_event.DpEvent.from_named_tuple`` reads. Noise multipliers
    are relative to all that the plan's own neighboring relation can move, so an accountant has to
    be asked for ``accountant_relation``: for REPLACE_ONE it would double that distance again.

    ``names`` is what discovered values may add to delta; noise has the rest of it, and there an
    accountant is asked for epsilon. It is left out where there are none. ``thresholds`` is the
    same of clips that are drawn from first values; their epsilon is in ``events``.

    ``store`` is the one that publishes. Names of stores and ids of releases are random: they tell
    nothing, but which store may go on here.

    Args:
        plan: What is published.
        spends: Every release that was charged; of a lost store, too.
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
    releases = max(1, len(spends))
    currency, delta = plan.charged().currency, delta_of(plan, releases)
    names = (
        {"names": rounded_up(releases * plan.delta_for_names, 9)} if plan.delta_for_names else {}
    )
    drawn = plan.spent_on_thresholds(releases)
    if drawn is not None:
        names = {"thresholds": rounded_up(drawn.delta, 9)}
    return {
        "tidegauge_ledger": 1,
        "plan": plan.sha256,
        "store": spends[-1].store if spends else None,
        "guarantee": repr(plan.guarantee),
        "releases": len(spends),
        "currency": currency.value if currency else None,
        "charges": charges,
        "within_guarantee": len(spends) <= 1,
        "neighboring_relation": plan.relation.value,
        "accountant_relation": "ADD_OR_REMOVE_ONE",
        "events": dp_event("ComposedDpEvent", events=[charge["event"] for charge in charges]),
        "epsilon": rounded_up(epsilon_of(plan, len(spends)), 9) if spends else "0",
        "delta": rounded_up(delta, 9) if delta else "0",
        **names,
    }


def _bytes(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False).encode() + b"\n"
