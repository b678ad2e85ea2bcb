"""``tidegauge export``: what a config gives and costs, before any data is read."""
from __future__ import annotations
import click
from tidegauge.cli.command import command
from tidegauge.cli.terminal import Terminal
@command("export", examples=("tidegauge export flights.yaml",))
@click.argument("config")
def export(terminal: Terminal, config: str) -> None:
    """export."""
