"""The form of a config file: which fields there are, as pydantic models.

The models check one value at a time, so that every mistake of a file is found in one reading;
:mod:`tidegauge.planning.agreement` checks what several fields have to agree on.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, PlainValidator, ValidatorFunctionWrapHandler, WrapValidator

from tidegauge.errors import TidegaugeError
from tidegauge.planning import fields
from tidegauge.planning.document import Scalar
from tidegauge.planning.durations import microseconds
from tidegauge.planning.gauge_form import AnyGauge
from tidegauge.planning.reading import (
    Count,
    Form,
    Key,
    Line,
    Number,
    Text,
    choice,
    refusal,
    scalar,
    truth,
)

__all__ = ["AboutForm", "ConfigForm", "IdForm", "PrivacyForm", "SinkFileForm", "SinkForm"]


def _zone(value: Any) -> str:
    return fields.zone(fields.text(value))


def _step(value: Any) -> int | None:
    if isinstance(value, Scalar) and value == "record":
        return None
    return microseconds(fields.text(value))


def _per(value: Any, step_us: int | None) -> str | int:
    if isinstance(value, Scalar) and value == "lifetime":
        return "lifetime"
    return fields.length(value, step_us)


def _end(value: Any, step_us: int | None) -> int:
    return fields.whole(value) if step_us is None else fields.moment(value)


def _horizon(value: Any, step_us: int | None) -> int:
    try:
        return fields.whole(value)
    except TidegaugeError:
        return fields.length(value, step_us)


Moment = Annotated[int, scalar(fields.moment, str)]


class IdForm(Form):
    """An id with at most so many events is protected."""

    id: Line = Field(description="Column with the id; rows without one are dropped")
    max_contributions: Count = Field(description="Most events of one id, over all gauges")
    per: Annotated[str | int, scalar(_per, str | int, steps=True)] = Field(
        description="lifetime (of the store), or a duration: each period is protected by itself"
    )


def _unit(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    if isinstance(value, Scalar):
        if value == "event":
            return "event"
        raise refusal(
            f"Expected event or a mapping with an id, got {fields.seen(value)}. There is no "
            "default: it says who is protected. Write event, or "
            "{id: customer, max_contributions: 20, per: lifetime}."
        )
    return handler(value)


class PrivacyForm(Form):
    """Who is protected, and how well."""

    unit: Annotated[
        IdForm, WrapValidator(_unit, json_schema_input_type=Literal["event"] | IdForm)
    ] = Field(description="event, or an id with a bound on its contributions; no default")
    neighboring_relation: Annotated[
        str,
        PlainValidator(
            choice("add_or_remove_one", "replace_one"),
            json_schema_input_type=Literal["add_or_remove_one", "replace_one"],
        ),
    ] = "add_or_remove_one"
    epsilon: Number | None = Field(None, description="Largest logarithm of a change of odds")
    delta: Number | None = Field(
        None, description="What is added to probabilities beyond e^epsilon"
    )
    rho: Number | None = Field(None, description="In place of epsilon: zero-concentrated DP")
    mu: Number | None = Field(None, description="In place of epsilon: Gaussian DP")


class AboutForm(Form):
    """What the operator says of the publication; published as it stands."""

    title: Line | None = None
    curator: Line | None = None
    contact: Line | None = None
    purpose: Line | None = None
    data: Line | None = None
    license: Line | None = None


class SinkFileForm(Form):
    """A copy of releases in one file."""

    path: Text
    views: list[Text] | None = None


class SinkForm(Form):
    """One copy of releases."""

    parquet: SinkFileForm | None = None
    jsonl: SinkFileForm | None = None
    csv: SinkFileForm | None = None


class CsvForm(Form):
    """How CSV sources are cut into rows."""

    multiline: Annotated[
        bool,
        PlainValidator(truth, json_schema_input_type=bool),
    ] = Field(
        default=False,
        description="Newlines within quotes belong to a field; else rows end at every newline",
    )


def _sources(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    return handler([value] if isinstance(value, Scalar) else value)


class ConfigForm(Form):
    """A config of tidegauge."""

    sources: Annotated[
        list[Text], WrapValidator(_sources, json_schema_input_type=str | list[str])
    ] = Field(description="Files (.csv, .jsonl, .parquet), globs, or - for JSONL on standard input")
    csv: CsvForm = Field(default_factory=CsvForm, description="How .csv sources are cut into rows")
    event_time: Line | None = Field(None, description="Column with the time of an event")
    event: Line | None = Field(
        None, description="Column whose rows of one value are one event; else each row is one"
    )
    timezone: Annotated[str | None, scalar(_zone, str)] = Field(
        None, description="Zone of stamps that carry none"
    )
    time_format: Annotated[
        Any,
        PlainValidator(
            choice("iso", "epoch_s", "epoch_ms"),
            json_schema_input_type=Literal["iso", "epoch_s", "epoch_ms"],
        ),
    ] = "iso"
    step: Annotated[int | None, scalar(_step, str)] = Field(
        description="Fixed length such as 1h; or record: each record is a step"
    )
    start: Moment | None = Field(None, description="Where the first step begins; public")
    end: Annotated[int | None, scalar(_end, str | int, steps=True)] = Field(
        None, description="Where the last step ends; public"
    )
    horizon: Annotated[int | None, scalar(_horizon, str | int, steps=True)] = Field(
        None, description="What accuracy is designed for: a duration, or a number of steps"
    )
    privacy: PrivacyForm
    gauges: dict[Key, AnyGauge]
    about: AboutForm = Field(default_factory=AboutForm)
    store: Text | None = Field(None, description="Private state")
    public: Text = Field("public/", description="Folder of what may leave")
    mark: Text | None = Field(None, description="High-water mark, away from the store")
    sinks: list[SinkForm] = Field(default_factory=list)
