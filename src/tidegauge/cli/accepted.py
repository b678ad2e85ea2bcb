"""The plan that a command works on: of a config, of a plan file, or the one that was accepted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from tidegauge.errors import InvalidParameter

if TYPE_CHECKING:
    from tidegauge.plan.plan import Plan
    from tidegauge.plan.settings import Settings

__all__ = ["accepted", "planned"]


def planned(path: Path) -> tuple[Plan, Settings]:
    """Return plan and settings of a config or of a plan file; no source is opened.

    Raises:
        ConfigError: The config is wrong; it tells every problem.
        InvalidParameter: The plan file is none, or its numbers contradict.
    """


def accepted(path: Path, approved: str | None) -> tuple[Plan, Settings]:
    """Return what may run: the approved plan, and the one that the store has accepted.

    A config whose store holds a plan of the same declaration runs under that plan's numbers, with
    the config's views: neither another library nor another fit changes what was accepted.

    Args:
        path: A config or a plan file.
        approved: The SHA-256 of the plan that may run; None: any.

    Raises:
        InvalidParameter: It is not the approved plan.
    """
    plan, settings = planned(path)
    stored = _stored(Path(settings.store))
    if stored is not None and stored.declaration == plan.declaration:
        plan = stored.reading(plan)
    if approved is not None and plan.sha256 != approved:
        raise InvalidParameter(
            f"Expected the approved plan {approved}, got {plan.sha256}. What was not approved is "
            "not run. Write a plan file (tidegauge plan -o), have it approved, and run that."
        )
    return plan, settings


def _stored(store: Path) -> Plan | None:
    """Return the plan that a store has accepted, if there is one that can be read."""
    from tidegauge.engine.status import status_of
    from tidegauge.errors import StoreBehind, StoreMismatch
    from tidegauge.plan.plan import Plan

    if not store.is_file():
        return None
    try:
        return Plan.from_bytes(status_of(store).plan)
    except (StoreBehind, StoreMismatch):
        return None  # the run itself opens the store, and says what is wrong with it
