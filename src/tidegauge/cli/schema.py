"""``tidegauge schema``: the JSON Schema of a config, for editors."""

from __future__ import annotations

from tidegauge.cli.command import command
from tidegauge.cli.terminal import Terminal

__all__ = ["schema"]


@command("schema", examples=("tidegauge schema", "tidegauge schema > tidegauge.schema.json"))
def schema(terminal: Terminal) -> None:
    """Write the JSON Schema of a config, for editors that complete and check."""
    from tidegauge.planning.schema import config_schema

    terminal.document(config_schema())
