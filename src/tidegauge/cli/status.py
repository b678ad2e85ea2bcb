"""``tidegauge status``: how far a store has got; for the operator, never for readers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tidegauge.cli.command import command
from tidegauge.cli.counts import meaning
from tidegauge.cli.latest import moment
from tidegauge.cli.terminal import Column, Terminal

if TYPE_CHECKING:
    from tidegauge.engine.status import Status
    from tidegauge.planning.plan import Plan
    from tidegauge.privacy.costs import AnyCost

__all__ = ["status"]


@command(
    "status",
    examples=("tidegauge status visits.tidegauge", "tidegauge status visits.tidegauge --json"),
)
@click.argument("store", type=click.Path(path_type=Path))
def status(terminal: Terminal, store: Path) -> None:
    """Show how far a store has got: for the operator, never for readers.

    Steps, what was charged, the promise in words, who is writing, and how many rows were dropped
    and totals clamped. It waits for no lock and changes nothing.
    """
    from tidegauge.engine.status import status_of
    from tidegauge.planning.promise import odds
    from tidegauge.planning.settings import default_mark
    from tidegauge.planning.verified import plan_from_bytes

    seen = status_of(store)
    plan = plan_from_bytes(seen.plan)
    if terminal.as_json:
        terminal.document(_document(seen, plan))
        return
    end = "without an end" if plan.clock.end is None else f"of {plan.clock.end:,}"
    terminal.data(f"Steps: {seen.step:,} {end}, up to {moment(plan.clock, seen.step)}")
    terminal.data(f"Writing: {_owner(seen) or 'nobody'}")
    if (mark := default_mark(store)).exists():
        terminal.data(f"Mark: {mark}")
    terminal.data(f"Plan: {plan.sha256}")
    terminal.data(f"Charged: {len(seen.spends)} x {plan.guarantee!r}\n")
    terminal.data(f"{odds(plan, max(1, len(seen.spends)))}\n")
    charges = [[one.name, _cost(one.cost)] for one in plan.charged().charges]
    terminal.table("Ledger of one release", [Column("gauge"), Column("cost")], charges)
    counts = [[name, f"{n:,}", meaning(name)] for name, n in sorted(seen.counters.items())]
    terminal.data("")
    columns = [Column("rows and totals"), Column("count", right=True), Column("")]
    terminal.table("For the operator alone: exact, and not private", columns, counts)


def _cost(cost: AnyCost) -> str:
    from tidegauge.privacy.costs import GaussianCost, ThresholdCost, ZCDPCost
    from tidegauge.privacy.guarantee import rounded_up

    if isinstance(cost, GaussianCost):
        return f"mu = {rounded_up(cost.mu)} (Gaussian DP)"
    if isinstance(cost, ZCDPCost):
        return f"rho = {rounded_up(cost.rho)} (zCDP)"
    if isinstance(cost, ThresholdCost):
        return f"epsilon = {rounded_up(cost.epsilon)}, delta = {rounded_up(cost.delta)}"
    return f"epsilon = {rounded_up(cost.epsilon)}"


def _owner(seen: Status) -> str | None:
    return None if seen.owner is None else f"process {seen.owner.pid} on {seen.owner.host}"


def _document(seen: Status, plan: Plan) -> dict[str, Any]:
    """The same for programs."""
    return {
        "sha256": plan.sha256,
        "steps": seen.step,
        "end": plan.clock.end,
        "guarantee": repr(plan.guarantee),
        "releases_charged": len(seen.spends),
        "writing": _owner(seen),
        "operator_only": {"counters": seen.counters},
    }
