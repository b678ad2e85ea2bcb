"""Steps as a picture shows them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidegauge.planning.plan import Clock
    from tidegauge.strategies.strategy import Int64

__all__ = ["ends_of"]


def ends_of(steps: Int64, clock: Clock) -> list[Any]:
    """Return the end of each step; its number where each record is a step."""
    if clock.step_us is None:
        return [int(step) for step in steps]
    start = datetime(1970, 1, 1, tzinfo=UTC)
    ends = (clock.start_us + int(step) * clock.step_us for step in steps)
    return [start + timedelta(microseconds=end) for end in ends]
