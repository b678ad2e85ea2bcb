"""The form of what a gauge measures: a count, a sum, a mean, different values, or the largest."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import Field, PlainValidator, ValidatorFunctionWrapHandler, WrapValidator

from tidegauge.mechanisms.clip_plan import SHARE
from tidegauge.planning import fields
from tidegauge.planning.document import Scalar
from tidegauge.planning.reading import Form, Line, Number, Text, choice, refusal, scalar
from tidegauge.planning.view_form import View
from tidegauge.planning.where import checked
from tidegauge.privacy.unit import LONGEST_WINDOW
from tidegauge.strategies.decay import Running, Window

__all__ = [
    "EVERY_ROW",
    "AutoForm",
    "ClipForm",
    "CountForm",
    "DistinctForm",
    "MeanForm",
    "PerrierForm",
    "SumForm",
    "TopForm",
]


def _predicate(value: Any) -> str:
    found = checked(fields.text(value))
    if not fields.is_line(found):
        raise refusal(
            "Expected a condition whose texts are of one line, got another. Published documents "
            "would show something else than was signed. Compare with other text."
        )
    return found


_Condition = Annotated[str | None, scalar(_predicate, str)]


class CountForm(Form):
    """A count of rows."""

    where: _Condition = Field(None, description="A condition over one row, in a small part of SQL")


EVERY_ROW = CountForm.model_validate({})


class AutoForm(Form):
    """A clip that is chosen from published counts of magnitudes."""

    share: Number = Field(
        SHARE, description="The part of the gauge's budget that learning the clip costs"
    )


def _first(value: Any, step_us: int | None) -> int:
    """Read for how long values wait, as a number of steps."""
    return fields.length(value, step_us)


class PerrierForm(Form):
    """A clip that is drawn once, from the values of the first steps (Perrier et al. 2019)."""

    first: Annotated[int, scalar(_first, str | int, steps=True)] = Field(
        description="From the values of so many first steps, which wait: a duration"
    )
    quantile: Number = Field(
        Fraction(17, 4000), description="The share of values that should lie above the clip"
    )
    beta_lt: Number = Field(
        Fraction(6, 1000), description="How often the clip may lie below that quantile"
    )
    share: Number = Field(
        Fraction(1, 2), description="The part of the gauge's epsilon that the clip costs"
    )
    delta_share: Number = Field(
        Fraction(1, 2), description="The part of the gauge's delta that the clip costs"
    )


def _clip(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    """Read ``clip: auto``, or a mapping."""
    if isinstance(value, Scalar):
        if value == "auto":
            return ClipForm.model_validate({"auto": AutoForm.model_validate({})})
        raise refusal(
            f"Expected auto or a mapping, got {fields.seen(value)}. Without clip values count up "
            "to the bounds: a clip that you know is a bound. Write clip: auto, or "
            "clip: {auto: {share: 0.1}}, or clip: {perrier: {first: 7d}}."
        )
    found = handler(value)
    if (found.auto is None) == (found.perrier is None):
        raise refusal(
            "Expected one of auto and perrier, got another number of them. A clip is found in one "
            "way. Write clip: auto, or clip: {perrier: {first: 7d}}."
        )
    return found


class ClipForm(Form):
    """How the clip of a sum or a mean is found."""

    auto: AutoForm | None = Field(
        None, description="Chosen from published counts of magnitudes; it moves"
    )
    perrier: PerrierForm | None = Field(
        None, description="Drawn once, from the values of the first steps"
    )


_AnyClip = Annotated[
    ClipForm | None, WrapValidator(_clip, json_schema_input_type=Literal["auto"] | ClipForm)
]


class SumForm(Form):
    """A sum of one column."""

    column: Line
    bounds: tuple[Number, Number] = Field(description="Values outside are clamped to them")
    round_to: Number = Field(Fraction(1), description="Values are rounded to multiples of it")
    clip: _AnyClip = Field(None, description="Values count up to a clip that is found")
    where: _Condition = None


class MeanForm(Form):
    """A mean of one column."""

    column: Line
    bounds: tuple[Number, Number] = Field(description="Values outside count as the nearest one")
    round_to: Number = Field(Fraction(1), description="Values are rounded to multiples of it")
    clip: _AnyClip = Field(None, description="Values count up to a clip that is found")
    where: _Condition = None


def _distinct_window(value: Any, step_us: int | None) -> View:
    """Read which different values are counted, as the one view of their gauge."""
    if isinstance(value, Scalar) and value == "running":
        return View("running", Running())
    steps = fields.length(value, step_us)
    if steps > LONGEST_WINDOW:
        raise refusal(
            f"Expected a window of at most {LONGEST_WINDOW:,} steps, got {steps:,}. Each length up "
            "to it is looked at. Write running, a shorter window, or a longer step."
        )
    return View(f"window_{value}", Window(steps))


class DistinctForm(Form):
    """A count of the different values of one column."""

    column: Text = Field(description="Text, integers or truth values; nulls are not counted")
    window: Annotated[View, scalar(_distinct_window, str | int, steps=True)] = Field(
        description="Values of so long; or running: all since the start"
    )
    where: _Condition = None


def _most_ranked(value: Any) -> int:
    return fields.whole(value, 1, 1 << 20)


def _margin(value: Any) -> int:
    return fields.whole(value, 0)


class TopForm(Form):
    """The cells with the most rows."""

    k: Annotated[int, scalar(_most_ranked, int)] = Field(
        description="How many are published at each step; fewer if there are fewer cells"
    )
    where: _Condition = None
    method: Annotated[
        str | None,
        PlainValidator(choice("sparse_gumb"), json_schema_input_type=Literal["sparse_gumb"]),
    ] = Field(None, description="In place of max_items: cells are chosen, and seldom anew")
    switches: Annotated[int | None, scalar(_most_ranked, int)] = Field(
        None, description="Beside method: how often the cells that are shown change at most"
    )
    margin: Annotated[int | None, scalar(_margin, int)] = Field(
        None, description="Beside method: by how much another cell has to lead"
    )
