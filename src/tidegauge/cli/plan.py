"""``tidegauge plan``: what a config gives and costs, before any data is read."""
from __future__ import annotations
import click
from tidegauge.cli.command import command
from tidegauge.cli.terminal import Terminal
@command("plan", examples=("tidegauge plan flights.yaml",))
@click.argument("config")
def plan(terminal: Terminal, config: str) -> None:
    """Plan."""
