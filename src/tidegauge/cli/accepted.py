"""The plan that a command works on: of a config, as approved and as the store has accepted it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tidegauge.errors import InvalidParameter, StoreBehind, StoreMismatch

if TYPE_CHECKING:
    from tidegauge.planning.plan import Plan
    from tidegauge.planning.problems import Problem
    from tidegauge.planning.settings import Settings
    from tidegauge.planning.statement import Further

__all__ = ["accepted", "further_releases", "plan_of_file"]

_MOST_BYTES = 1 << 28


def accepted(path: Path, approved: str | None) -> tuple[Plan, Settings, tuple[Problem, ...]]:
    """Return what may run: the approved plan, under the numbers that the store has accepted.

    A config says where everything is; a plan file says what was approved. A config whose store
    holds a plan of the same declaration runs under that plan's numbers, with the config's views:
    neither another library nor another fit changes what was accepted.

    Args:
        path: A config; no source is opened.
        approved: ``sha256:...`` of the plan that may run, or a plan file, whose numbers are used;
            None: any.

    Raises:
        ConfigError: The config is wrong; it tells every problem.
        InvalidParameter: It is not the approved plan, or no plan is approved.
        BudgetExceeded: The plan file's gauges exceed its guarantee.
    """
    from tidegauge.planning.config import config_of
    from tidegauge.planning.planner import plan_of

    if path.suffix == ".json":
        raise InvalidParameter(
            f"Expected a config, got the plan file {path}. It says what is measured, not where the "
            f"source and the store are. Run the config, with --approved {path}."
        )
    config = config_of(path)
    plan, settings = plan_of(config), config.settings
    stored = _stored(settings.path(settings.store))
    if stored is not None and stored.declaration == plan.declaration:
        plan = stored.reading(plan)
    if approved is not None and not approved.startswith("sha256:"):
        signed = plan_of_file(Path(approved))
        if signed.declaration == plan.declaration:
            plan = signed.reading(plan)
        approved = signed.sha256
    if approved is not None and plan.sha256 != approved:
        raise InvalidParameter(
            f"Expected the approved plan {approved}, got {plan.sha256}. What was not approved is "
            "not run. Write a plan file (tidegauge plan -o), have it approved, and run the same "
            "config with --approved and that file."
        )
    return plan, settings, config.warnings


def further_releases(plan: Plan, settings: Settings) -> Sequence[Further]:
    """Return the releases of a plan that its store has charged after the first one."""
    from tidegauge.engine.documents import further_of
    from tidegauge.engine.status import status_of

    store = settings.path(settings.store)
    stored = _stored(store)
    if stored is None or stored.fingerprint != plan.fingerprint:
        return ()
    return further_of(status_of(store).spends)


def plan_of_file(path: Path) -> Plan:
    """Return the plan of a plan file, or of the copy in a public folder: the same bytes.

    The file is what was signed: its sum, by any tool, is the plan's.

    Raises:
        InvalidParameter: It is none, its numbers contradict, or it is written in other words.
        BudgetExceeded: Its gauges exceed its guarantee.
    """
    from tidegauge.planning.verified import plan_from_bytes

    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as problem:
        raise InvalidParameter(
            f"Expected a plan file at {path}, got: {problem.strerror}. Nothing can be read from "
            'it. Write one with "tidegauge plan CONFIG -o plan.json".'
        ) from None
    plan = plan_from_bytes(data)
    if plan.canonical() != data:
        raise InvalidParameter(
            f"Expected {path} byte for byte as it was written, got the same plan in another form. "
            f"Its sum would not be the plan's, {plan.sha256}, which is what is approved. Use the "
            "file as it was written."
        )
    return plan


def _stored(store: Path) -> Plan | None:
    """Return the plan that a store has accepted, if there is one that can be read."""
    from tidegauge.engine.status import status_of
    from tidegauge.planning.verified import plan_from_bytes

    if not store.is_file():
        return None
    try:
        return plan_from_bytes(status_of(store).plan)
    except (InvalidParameter, StoreBehind, StoreMismatch):
        return None  # the run itself opens the store, and says what is wrong with it
