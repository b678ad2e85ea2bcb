"""``tidegauge plan``: what a config gives and costs, before any data is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tidegauge.cli.accepted import accepted, plan_file
from tidegauge.cli.command import command
from tidegauge.cli.outlook import Outlook, outlook, tell
from tidegauge.cli.terminal import Column, Terminal
from tidegauge.cli.words import decay_in_words, significant

if TYPE_CHECKING:
    from tidegauge.plan.plan import Plan
    from tidegauge.privacy.conversion import KEvents

__all__ = ["plan"]


@command(
    "plan",
    examples=("tidegauge plan visits.yaml", "tidegauge plan visits.yaml -o plan.json"),
)
@click.argument("config", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write the plan file.")
def plan(terminal: Terminal, config: Path, output: Path | None) -> None:
    """Show what a config will give and what it costs; reads no data.

    For every view: the noise at the first, a middle and the last step, the smallest value that
    stands out, and the ratio to the lower bound of any factorization mechanism. The plan file can
    be signed and run: its SHA-256 says what was approved.
    """
    made, settings, warnings = accepted(config, None)
    for warning in warnings:
        terminal.say(f"Warning: {warning}")
    rows = [
        row
        for gauge in made.gauges
        for row in outlook(
            gauge.name, gauge.views, gauge.mechanism, float(gauge.round_to), made.clock.end
        )
    ]
    events = _events(made)
    if output is not None:
        from tidegauge.engine.files import put

        put(output, plan_file(made, settings, output.parent))
    if terminal.as_json:
        terminal.document(_document(made, rows, events))
    else:
        tell(terminal, rows)
        terminal.data(_in_words(made, rows))
        _tell_events(terminal, events)
        terminal.data(made.sha256)
    if output is not None:
        terminal.say(f"Plan: {output}")


def _events(made: Plan) -> tuple[KEvents, ...]:
    """What the spend means for somebody with several events."""
    from fractions import Fraction

    from tidegauge.privacy.conversion import k_event_table
    from tidegauge.privacy.guarantee import ApproxDP

    guarantee = made.guarantee
    delta = guarantee.delta if isinstance(guarantee, ApproxDP) else Fraction(1, 10**9)
    return k_event_table(made.ledger.total() or guarantee, delta)


def _tell_events(terminal: Terminal, events: Sequence[KEvents]) -> None:
    from tidegauge.privacy.guarantee import rounded_up

    rows = [
        [str(row.events), rounded_up(row.epsilon), rounded_up(row.delta) if row.delta else "0"]
        for row in events
    ]
    columns = [Column(title, right=True) for title in ("times the unit", "epsilon", "delta")]
    terminal.table("What it means for somebody with more", columns, rows)
    terminal.data("")


def _in_words(made: Plan, rows: Sequence[Outlook]) -> str:
    """The half-widths at the last step, as sentences."""
    lines = []
    for row in rows:
        gauge = made.gauge(row.gauge)
        what = decay_in_words(dict(gauge.views)[row.view], gauge.kind, made.clock.step_us)
        lines.append(
            f"{row.gauge}, {row.view}: the smallest {what} that stands out is "
            f"{significant(row.half_width)}."
        )
    return "\n" + "\n".join(lines) + "\n"


def _document(made: Plan, rows: Sequence[Outlook], events: Sequence[KEvents]) -> dict[str, Any]:
    """The same for programs."""
    weights = sum(gauge.budget_weight for gauge in made.gauges)
    gauges = [
        {
            "name": gauge.name,
            "strategy": type(gauge.mechanism.strategy).__name__,
            "noise": type(gauge.mechanism.law).__name__,
            "budget_share": float(gauge.budget_weight / weights),
            "cells": len(gauge.cells),
            "max_per_step": gauge.mechanism.max_per_step,
            "views": [asdict(row) for row in rows if row.gauge == gauge.name],
        }
        for gauge in made.gauges
    ]
    return {
        "sha256": made.sha256,
        "fingerprint": made.fingerprint,
        "guarantee": repr(made.guarantee),
        "gauges": gauges,
        "k_events": [
            {"events": row.events, "epsilon": float(row.epsilon), "delta": float(row.delta)}
            for row in events
        ],
    }
