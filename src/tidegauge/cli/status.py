"""``tidegauge status``: what a config gives and costs, before any data is read."""
from __future__ import annotations
import click
from tidegauge.cli.command import command
from tidegauge.cli.terminal import Terminal
@command("status", examples=("tidegauge status flights.yaml",))
@click.argument("config")
def status(terminal: Terminal, config: str) -> None:
    """status."""
