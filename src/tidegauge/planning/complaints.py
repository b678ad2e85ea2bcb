"""Pydantic's errors in our words, each with its place in the file."""

from __future__ import annotations

from typing import Any

from tidegauge.checks import shown
from tidegauge.planning import fields
from tidegauge.planning.document import Document, Path_
from tidegauge.planning.form import (
    AboutForm,
    ConfigForm,
    IdForm,
    PrivacyForm,
    SinkFileForm,
    SinkForm,
)
from tidegauge.planning.gauge_form import DiscoverForm, FileForm, GaugeForm
from tidegauge.planning.kind_form import (
    AutoForm,
    ClipForm,
    CountForm,
    DistinctForm,
    MeanForm,
    PerrierForm,
    SumForm,
    TopForm,
)
from tidegauge.planning.problems import did_you_mean
from tidegauge.planning.view_form import ViewForm

__all__ = ["note", "value_at"]

_LATER = {
    "strategy": "A strategy by name",
    "late": "A rule for late events",
    "grace": "A grace for late events",
}
_NEEDED = {
    "sources": "Write sources: [events.csv].",
    "step": "Write step: 1h, or step: record.",
    "privacy": "Write privacy: {unit: event, epsilon: 1, delta: 1e-9}.",
    "unit": "It says who is protected, and there is no default. Write unit: event, or "
    "unit: {id: customer, max_contributions: 20, per: lifetime}.",
    "gauges": "Write gauges: {visits: count}.",
    "first": "It is for how long values wait, from which the clip is then drawn. Write first: 7d, "
    "or with step: record a number of records.",
    "k": "It is how many cells are published at each step. Write k: 10.",
    "bounds": "Without them one row could move a sum without end. Write bounds: [0, 100].",
    "per": "A bound for the lifetime of the store promises more than one for each day. Write "
    "per: lifetime, or a duration.",
}
_MAPPINGS = {
    "count": "Write count: {}.",
    "sum": "Write sum: {column: amount, bounds: [0, 100]}.",
    "mean": "Write mean: {column: amount, bounds: [0, 100]}.",
    "count_distinct": "Write count_distinct: {column: customer, window: 7d}.",
    "top_k": "Write top_k: {k: 10}.",
    "discover": "Write discover: {view: 7d}.",
    "by": "Write by: {product: discover}, or by: {shop: [north, south]}.",
    "privacy": _NEEDED["privacy"],
    "gauges": _NEEDED["gauges"],
}
_LENGTHS = ("missing", "too_short", "too_long")
_MAPPING = "a mapping of fields"


_OF_GAUGES = {
    "count": CountForm,
    "sum": SumForm,
    "mean": MeanForm,
    "count_distinct": DistinctForm,
    "top_k": TopForm,
    "discover": DiscoverForm,
}


def note(document: Document, error: Any) -> None:
    """Turn one of pydantic's errors into a problem with a place."""
    path = _path(document.root, error["loc"])
    kind, name = error["type"], str(error["loc"][-1]) if error["loc"] else ""
    if kind == "config":
        document.refuse(path, error["msg"], inside=error["ctx"]["inside"])
    elif kind == "extra_forbidden":
        message = _unknown(path[:-1], name)
        document.refuse(path, message, key=True)
    elif kind == "missing" and not isinstance(error["loc"][-1], int):
        hint = _NEEDED.get(name, f"Write {name}.")
        document.refuse(path[:-1], f"Expected {name}, got nothing of it. {hint}", key=True)
    else:
        got = (
            "another number of them"
            if kind in _LENGTHS
            else fields.seen(value_at(document.root, path))
        )
        shape = _shape(kind, path)
        ours = shape == _MAPPING and len(path) in (1, 3)  # a gauge may be called "sum"
        remedy = _MAPPINGS.get(name, "Correct it.") if ours else "Correct it."
        document.refuse(path, f"Expected {shape}, got {got}. {remedy}")


def _shape(kind: str, path: Path_) -> str:
    if "bounds" in path:
        return "two bounds, [lowest, highest]"
    if kind in ("list_type", "tuple_type"):
        return "a list"
    return _MAPPING


def _path(root: Any, location: tuple[str | int, ...]) -> Path_:
    """Pydantic's location without the parts that are not in the file, but for the last."""
    path: list[str | int] = []
    here = root
    for part in location:
        inside = value_at(here, (part,)) if isinstance(here, dict | list) else None
        if inside is None and (isinstance(here, list) or part == "[key]"):
            continue
        here = inside
        path.append(part)
    return tuple(path)


def value_at(root: Any, path: Path_) -> Any:
    """Return what stands at a path; None: nothing."""
    for part in path:
        try:
            root = root[part]
        except (KeyError, IndexError, TypeError):
            return None
    return root


def _unknown(parent: Path_, name: str) -> str:
    if name in _LATER and (len(parent) == 2 or not parent):
        return (
            f"Expected count, sum, mean, count_distinct or top_k, got {name}. {_LATER[name]} is "
            "not available in this version. Remove it."
        )
    known = list(_model(parent).model_fields)
    return f"Expected a known field, got {shown(name)}. {did_you_mean(name, known)}"


def _model(path: Path_) -> Any:
    """The model of the mapping at a path."""
    match path:
        case ("gauges", _, "count" | "sum" | "count_distinct" | "top_k" | "discover" as part):
            return _OF_GAUGES[part]
        case ("gauges", _, "sum" | "mean", "clip"):
            return ClipForm
        case ("gauges", _, "sum" | "mean", "clip", "auto" | "perrier" as part):
            return AutoForm if part == "auto" else PerrierForm
        case ("gauges", _, "by", _):
            return FileForm
        case ("gauges", _, "views" | "anticipate", _):
            return ViewForm
        case ("sinks", _, _):
            return SinkFileForm
        case ("gauges" | "sinks" as part, _):
            return GaugeForm if part == "gauges" else SinkForm
        case ("privacy", "unit"):
            return IdForm
        case ("privacy" | "about" as part,):
            return PrivacyForm if part == "privacy" else AboutForm
        case _:
            return ConfigForm
