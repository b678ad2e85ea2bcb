"""A config file, checked whole: every mistake at once, each with its place and its remedy.

Reads the file and the files of known values that it names; never a source.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tidegauge.errors import InvalidParameter, TidegaugeError
from tidegauge.planning import durations, fields
from tidegauge.planning.agreement import agreed
from tidegauge.planning.complaints import note, value_at
from tidegauge.planning.declared import Config
from tidegauge.planning.document import Document, Scalar, document_of
from tidegauge.planning.form import ConfigForm
from tidegauge.planning.known_values import distinct
from tidegauge.planning.problems import ConfigError
from tidegauge.planning.reading import Context

__all__ = ["config_of"]

_PLACEHOLDERS: dict[str, Any] = {
    "sources": [Scalar("-", False)],
    "step": Scalar("1us", False),
    "privacy": {"unit": Scalar("event", False), "mu": Scalar("1", False)},
}


def config_of(path: str | Path) -> Config:
    """Return the config of a file, checked whole; no source is opened.

    Raises:
        ConfigError: With every problem at once.
    """
    document = document_of(str(path))
    if not isinstance(document.root, dict):
        got = "an empty file" if document.root in (None, "") else "something else"
        document.refuse(
            (), f"Expected fields such as sources, step and privacy, got {got}. Write them."
        )
        raise ConfigError(document.problems)
    context = Context(*_lengths(document.root))
    config = None
    try:
        read = ConfigForm.model_validate(document.root, context=context)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        for one in found:
            note(document, one)
        _check_rest(document, context, [tuple(map(str, one["loc"][:2])) for one in found])
    else:
        config = agreed(document, read)
    if document.problems or config is None:
        raise ConfigError(document.sorted_problems())
    return config


def _check_rest(document: Document, context: Context, bad: list[tuple[str, ...]]) -> None:
    """Check what several fields have to agree on, where those fields themselves are right."""
    wrong = {place[0] for place in bad if place}
    gauges = document.root.get("gauges")
    wrong_gauges = {place[1] for place in bad if place[:1] == ("gauges",) and len(place) > 1}
    rest = {name: value for name, value in document.root.items() if name not in wrong}
    rest["gauges"] = {
        name: gauge
        for name, gauge in (gauges.items() if isinstance(gauges, dict) else ())
        if name not in wrong_gauges
    }
    for name in wrong_gauges:
        by = value_at(document.root, ("gauges", name, "by"))
        for column, values in by.items() if isinstance(by, dict) else ():
            if isinstance(values, list) and all(isinstance(value, Scalar) for value in values):
                distinct(document, ("gauges", name, "by", column), values)
    for name, value in _PLACEHOLDERS.items():
        rest.setdefault(name, value)
    try:
        read = ConfigForm.model_validate(rest, context=context)
    except ValidationError:  # pragma: no cover (what was wrong is left out)
        return
    agreed(document, read, frozenset(wrong))


def _lengths(root: dict[str, Any]) -> tuple[int | None, int | None]:
    """The length of a step and the horizon, for reading durations; a guess where they are wrong."""
    guess = durations.UNITS["us"]
    step: int | None = guess
    value = root.get("step")
    if isinstance(value, Scalar):
        try:
            step = None if value == "record" else durations.microseconds(str(value))
        except InvalidParameter:
            step = guess
    for name in ("end", "horizon"):
        try:
            if name == "horizon" or step is None:
                number = root[name]
                whole = step is None or number.isdecimal()
                return step, fields.whole(number) if whole else fields.length(number, step)
            return step, max(1, (fields.moment(root[name]) - fields.moment(root["start"])) // step)
        except (TidegaugeError, KeyError, AttributeError):
            continue
    return step, None
