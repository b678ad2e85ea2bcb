"""``tidegauge plot``: what a config gives and costs, before any data is read."""
from __future__ import annotations
import click
from tidegauge.cli.command import command
from tidegauge.cli.terminal import Terminal
@command("plot", examples=("tidegauge plot flights.yaml",))
@click.argument("config")
def plot(terminal: Terminal, config: str) -> None:
    """plot."""
