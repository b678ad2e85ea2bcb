"""The operator's counts in plain words: exact, without noise, and for nobody else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["LEFT_OUT", "OF_GAUGES", "OPERATOR", "OTHERS", "meaning", "told"]

OPERATOR: Final = "For the operator alone: "
"""How each line of standard error begins that depends on the data."""

LEFT_OUT: Final = {
    "unreadable": "could not be read",
    "no_time": "have no time stamp that can be read, or one without a zone and no timezone: is set",
    "step_published": "are of steps published before (counted then, or too late)",
    "outside": "are before the start or after the last step of the run",
    "no_event": "have no event id",
    "no_id": "have no id",
    "beyond_bound": "are beyond max_contributions of their id",
}
"""Why rows were left out of everything: the name of each count, and what its rows are."""

OTHERS: Final = {
    "records": "rows read in the last run",
    "event_before": "events that began before the first step of the run, or of the stream",
    "event_outside": "events that begin after the last step of the run",
    "event_beyond_bound": "events beyond max_contributions of their id",
    "clamped": "totals of a cell and step that were cut off at max_per_step",
}
"""All other counts of a run: the name of each, and what it is of."""

OF_GAUGES: Final = {
    "no_number": "rows without a number in the column that is summed or averaged",
    "no_value": "rows without a value in the column whose different values are counted",
    "other": "rows whose value is not among the declared ones (other: drop)",
    "no_item": "rows without a value in a column whose values are discovered",
    "long_item": "rows with a value of more than 1,024 bytes in such a column",
    "items": "different values seen, named or not",
}
"""Counts of one gauge, after its name and a colon."""


def meaning(name: str) -> str:
    """Return what a count is of.

    Examples:
        >>> meaning("no_id"), meaning("money: no_number")
        ('rows that have no id', 'rows without a number in the column that is summed or averaged')
    """
    if name in LEFT_OUT:
        return f"rows that {LEFT_OUT[name]}"
    return OTHERS.get(name) or OF_GAUGES.get(name.rpartition(": ")[2], "")


def told(counters: Mapping[str, int]) -> list[str]:
    """Return what was read and what was left out, a line each; a warning if nothing is left.

    Args:
        counters: Of the run that has just read its source.
    """
    read = counters.get("records", 0)
    lost = {name: counters.get(name, 0) for name in LEFT_OUT}
    lines = [f"{read:,} rows read, {sum(lost.values()):,} of them left out of all gauges"]
    lines += [f"{count:,} {LEFT_OUT[name]} ({name})" for name, count in lost.items() if count]
    lines += [
        f"{count:,} {meaning(name)} ({name})"
        for name, count in sorted(counters.items())
        if count and name not in LEFT_OUT and name != "records"
    ]
    if read and read == sum(lost.values()):
        lines.append("Warning: no row was counted. What was published is noise around zero")
    return [f"{OPERATOR}{line}." for line in lines]
