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
    from tidegauge.engine.glance import glance

    plan, settings = planned(path)
    store = Path(settings.store)
    stored = glance(store) if store.is_file() else None
    if stored is not None and stored.plan.declaration == plan.declaration:
        plan = stored.plan.reading(plan)
    if approved is not None and plan.sha256 != approved:
        raise InvalidParameter(
            f"Expected the approved plan {approved}, got {plan.sha256}. What was not approved is "
            "not run. Write a plan file (tidegauge plan -o), have it approved, and run that."
        )
    return plan, settings
