"""``tidegauge run``: what a config gives and costs, before any data is read."""
from __future__ import annotations
import click
from tidegauge.cli.command import command
from tidegauge.cli.terminal import Terminal
@command("run", examples=("tidegauge run flights.yaml",))
@click.argument("config")
def run(terminal: Terminal, config: str) -> None:
    """run."""
