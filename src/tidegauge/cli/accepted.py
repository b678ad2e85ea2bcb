"""The plan that a command works on: of a config, of a plan file, or the one that was accepted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidegauge.errors import InvalidParameter, StoreBehind, StoreMismatch

if TYPE_CHECKING:
    from tidegauge.plan.plan import Plan
    from tidegauge.plan.problems import Problem
    from tidegauge.plan.settings import Settings
    from tidegauge.plan.statement import Further

__all__ = ["accepted", "further_releases", "plan_file", "planned"]

_MOST_BYTES = 1 << 28


def planned(path: Path) -> tuple[Plan, Settings, tuple[Problem, ...]]:
    """Return plan, settings and warnings of a config or of a plan file; no source is opened.

    Raises:
        ConfigError: The config is wrong; it tells every problem.
        InvalidParameter: The plan file is none, or its numbers contradict.
        BudgetExceeded: The plan file's gauges exceed its guarantee.
    """
    if path.suffix == ".json":
        return *_of_plan_file(path), ()
    from tidegauge.plan.config import config_of, settings_of
    from tidegauge.plan.planner import plan_of

    config = config_of(path)
    return plan_of(config), settings_of(config), config.warnings


def accepted(path: Path, approved: str | None) -> tuple[Plan, Settings, tuple[Problem, ...]]:
    """Return what may run: the approved plan, under the numbers that the store has accepted.

    A config whose store holds a plan of the same declaration runs under that plan's numbers, with
    the config's views: neither another library nor another fit changes what was accepted.

    Args:
        path: A config or a plan file.
        approved: The SHA-256 of the plan that may run; None: any.

    Raises:
        InvalidParameter: It is not the approved plan.
    """
    plan, settings, warnings = planned(path)
    stored = _stored(settings.path(settings.store))
    if path.suffix != ".json" and stored is not None and stored.declaration == plan.declaration:
        plan = stored.reading(plan)
    if approved is not None and plan.sha256 != approved:
        raise InvalidParameter(
            f"Expected the approved plan {approved}, got {plan.sha256}. What was not approved is "
            "not run. Write a plan file (tidegauge plan -o), have it approved, and run that."
        )
    return plan, settings, warnings


def further_releases(plan: Plan, settings: Settings) -> Sequence[Further]:
    """Return the releases of a plan that its store has charged after the first one."""
    from tidegauge.engine.documents import further_of
    from tidegauge.engine.status import status_of

    store = settings.path(settings.store)
    stored = _stored(store)
    if stored is None or stored.fingerprint != plan.fingerprint:
        return ()
    return further_of(status_of(store).spends)


def plan_file(plan: Plan, settings: Settings, folder: Path) -> bytes:
    """Return the bytes of a plan file in a folder: the plan, and settings that no hash covers."""
    from tidegauge.plan.canonical import canonical_bytes, parsed_json

    content: dict[str, Any] = parsed_json(plan.canonical())
    return canonical_bytes(content | {"settings": settings.data(folder)})


def _of_plan_file(path: Path) -> tuple[Plan, Settings]:
    from tidegauge.plan.canonical import parsed_json
    from tidegauge.plan.plan import Plan
    from tidegauge.plan.settings import Settings

    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as problem:
        raise InvalidParameter(
            f"Expected a plan file at {path}, got: {problem.strerror}. Nothing can be run from it. "
            'Write one with "tidegauge plan CONFIG -o plan.json".'
        ) from None
    plan = Plan.from_bytes(data)
    content = parsed_json(data)
    if "settings" not in content:
        raise InvalidParameter(
            f"Expected a plan file with settings at {path}, got the published copy, which has "
            "none. Where the source and the store are is not known. Run the file that "
            '"tidegauge plan CONFIG -o plan.json" wrote.'
        )
    return plan, Settings.of(content["settings"], path.parent, path)


def _stored(store: Path) -> Plan | None:
    """Return the plan that a store has accepted, if there is one that can be read."""
    from tidegauge.engine.status import status_of
    from tidegauge.plan.plan import Plan

    if not store.is_file():
        return None
    try:
        return Plan.from_bytes(status_of(store).plan)
    except (InvalidParameter, StoreBehind, StoreMismatch):
        return None  # the run itself opens the store, and says what is wrong with it
