"""What is wrong with a config, where in which file, and how to mend it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tidegauge.errors import InvalidParameter

__all__ = ["FOREIGN", "ConfigError", "Problem", "did_you_mean"]

_WIDEST = 160

FOREIGN = {
    "alpha": "half_life",
    "average": "views",
    "clip": "bounds",
    "cells": "by",
    "columns": "by",
    "curator_name": "curator",
    "database": "store",
    "date": "event_time",
    "description": "purpose",
    "domain": "by",
    "eps": "epsilon",
    "every_step": "step",
    "filter": "where",
    "grain": "round_to",
    "group_by": "by",
    "groups": "by",
    "halflife": "half_life",
    "input": "sources",
    "inputs": "sources",
    "interval": "step",
    "key": "id",
    "max_events": "max_contributions",
    "max_contribution": "max_contributions",
    "neighbors": "neighboring_relation",
    "neighbours": "neighboring_relation",
    "neighbouring_relation": "neighboring_relation",
    "output": "sinks",
    "outputs": "sinks",
    "period": "step",
    "range": "bounds",
    "relation": "neighboring_relation",
    "scale": "round_to",
    "share": "budget_weight",
    "statistics": "gauges",
    "metrics": "gauges",
    "state": "store",
    "steps": "horizon",
    "time": "event_time",
    "timestamp": "event_time",
    "tz": "timezone",
    "user": "id",
    "values": "by",
    "weight": "budget_weight",
    "workload": "views",
    "zone": "timezone",
}
"""Names from other tools, from the literature and from habit, and ours for the same thing."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong, or worth a warning.

    Attributes:
        file: As it was named.
        line: From 1; 0: the file as a whole.
        column: In characters, from 1; 0: the file as a whole.
        message: What was expected, what was found, what to do.
        source_line: The line as it stands in the file.
    """

    file: str
    line: int
    column: int
    message: str
    source_line: str = ""

    @property
    def place(self) -> str:
        """``file:line:column``, or the file alone."""
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file

    def __str__(self) -> str:
        """The place and the message, the line, and a caret under the column."""
        if not self.line:
            return f"{self.place}: {self.message}"
        start = max(0, self.column - 1 - _WIDEST // 2)
        line = self.source_line[start : start + _WIDEST].replace("\t", " ")
        line = "".join(sign if sign.isprintable() else "?" for sign in line)
        caret = " " * (self.column - 1 - start) + "^"
        return f"{self.place}: {self.message}\n    {line}\n    {caret}".rstrip()


class ConfigError(InvalidParameter):
    """A config that cannot be planned, with everything that is wrong with it.

    Attributes:
        problems: In the order of the file.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = list(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


def did_you_mean(name: str, known: Sequence[str], what: str = "fields") -> str:
    """Return the sentence that names the field (or what else) that was meant, or those there are.

    Examples:
        >>> did_you_mean("halflife", ["window", "half_life"])
        "Did you mean 'half_life'?"
    """
    lowered = name.lower().replace("-", "_").replace(" ", "_")
    foreign = FOREIGN.get(lowered)
    if foreign in known:
        return f"Did you mean {foreign!r}?"
    close = difflib.get_close_matches(lowered, known, 1, 0.7)
    if close:
        return f"Did you mean {close[0]!r}?"
    return f"The {what} here are {', '.join(known)}."
