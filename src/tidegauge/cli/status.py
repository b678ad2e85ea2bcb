"""``tidegauge status``: how far a store has got; for the operator, never for readers."""

from __future__ import annotations

from pathlib import Path

import click

from tidegauge.cli.command import command
from tidegauge.cli.terminal import Terminal

__all__ = ["status"]


@command("status", examples=("tidegauge status visits.tidegauge", "tidegauge status visits.tidegauge --json"))
@click.argument("store", type=click.Path(path_type=Path))
def status(terminal: Terminal, store: Path) -> None:
    """Show how far a store has got: for the operator, never for readers.

    Steps, releases charged, the guarantee in words, and how many rows were dropped and totals
    clamped. It waits for no lock and changes nothing.
    """
