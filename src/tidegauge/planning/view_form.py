"""The form of a view: one word, or a mapping; several in a list, or named in a mapping."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any

from pydantic import (
    Field,
    PlainValidator,
    TypeAdapter,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from tidegauge.errors import TidegaugeError
from tidegauge.mechanisms.request import importance_in
from tidegauge.planning import fields
from tidegauge.planning.document import Scalar
from tidegauge.planning.reading import (
    Context,
    Form,
    Number,
    context_of,
    reader,
    refusal,
    scalar,
    truth,
)
from tidegauge.strategies.decay import Custom, Decay, Difference, Running

__all__ = ["AnyView", "AnyViews", "View", "ViewForm"]


@dataclass(frozen=True)
class View:
    """One view as declared.

    Attributes:
        name: Given, or made from the declaration.
        decay: Its weights.
        every: It is published at every n-th step.
        importance: How many times its noise counts when the accuracy is designed.
    """

    name: str
    decay: Decay
    every: int = 1
    importance: float = 1.0


def _importance(value: Any) -> float:
    return importance_in("importance", fields.amount(value))


class ViewForm(Form):
    """A view that needs more than one word."""

    view: Annotated[Scalar | None, scalar(lambda value: value, str | int)] = Field(
        None, description="A view of one word, such as running, beside every or importance"
    )
    window: Annotated[Scalar | None, scalar(lambda value: value, str | int)] = None
    half_life: Annotated[Scalar | None, scalar(lambda value: value, str | float)] = None
    factor: Annotated[Scalar | None, scalar(lambda value: value, float)] = None
    polynomial: Annotated[Scalar | None, scalar(lambda value: value, float)] = None
    custom: list[Number] | None = Field(None, description="Weights, newest step first")
    average: Annotated[bool, PlainValidator(truth, json_schema_input_type=bool)] = Field(
        default=False, description="Weights of a half-life or factor that sum to 1"
    )
    difference: Annotated[Scalar | None, scalar(lambda value: value, str | int)] = Field(
        None, description="Minus the same so much earlier; beside it stands of"
    )
    of: AnyView | None = Field(None, description="The view that a difference is of")
    every: Annotated[int | None, scalar(fields.length, str | int, steps=True)] = Field(
        None, description="Published at every such step only, counted from the start"
    )
    importance: Annotated[float | None, scalar(_importance, float)] = Field(
        None, description="How many times its noise counts when the accuracy is designed"
    )


def _view(value: Any, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> View:
    """Read a view written in one word, or as a mapping."""
    context = context_of(info)
    try:
        if isinstance(value, Scalar):
            return View(*fields.simple_decay(value, context.step_us))
        form = handler(value)
        name, decay = _named_decay(form, context)
    except TidegaugeError as error:
        raise refusal(str(error)) from None
    if form.every is not None:
        name += f"_every_{value['every']}"
    return View(name, decay, form.every or 1, form.importance or 1.0)


def _named_decay(form: ViewForm, context: Context) -> tuple[str, Decay]:
    """Return the default name and the decay of a view that is written as a mapping."""
    given = [kind for kind in _KINDS if getattr(form, kind) is not None]
    if len(given) != 1:
        raise refusal(
            f"Expected one of {', '.join(_KINDS[:-1])} and {_KINDS[-1]}, got {len(given)}. "
            "Each is a view of its own. Write one."
        )
    kind = given[0]
    if form.average and kind not in ("half_life", "factor"):
        raise refusal(
            f"Expected average beside half_life or factor, got it beside {kind}. Only their "
            "weights are made to sum to 1. Remove it."
        )
    if (form.of is not None) != (kind == "difference"):
        raise refusal(
            f"Expected difference and of together, got {kind} {'with' if form.of else 'without'} "
            "of. A difference is of a view. Write {difference: 7d, of: 7d}."
        )
    if form.custom is not None:
        return f"custom_{len(form.custom)}", Custom(tuple(float(w) for w in form.custom))
    written = getattr(form, kind)
    if form.view is not None:
        return fields.simple_decay(written, context.step_us)
    if form.of is None:
        decay = fields.decay_of(kind, written, context.step_us, context.horizon, form.average)
        return f"{kind}_{written}{'_average' * form.average}", decay
    of: Any = form.of  # a View: its form was read already
    if isinstance(of.decay, Running):
        raise refusal(
            "Expected a difference of another view, got one of running. How much a running sum has "
            f"grown is a window. Write {written}."
        )
    if of.every != 1:
        raise refusal(
            "Expected every beside difference, got it inside of. The earlier value is so far back "
            "whenever the later one is read. Move it out."
        )
    if of.importance != 1:
        raise refusal(
            "Expected importance beside difference, got it inside of. It is the difference that "
            "is published. Move it out."
        )
    change = Difference(of.decay, fields.length(written, context.step_us))
    return f"difference_{written}_of_{of.name}", change


_KINDS = ("window", "half_life", "factor", "polynomial", "custom", "difference", "view")
AnyView = Annotated[ViewForm, WrapValidator(_view, json_schema_input_type=str | int | ViewForm)]
ViewForm.model_rebuild()  # a difference is of a view
_NAMED_VIEWS: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, AnyView])


def _views(value: Any, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
    """Read a list of views that name themselves, or a mapping that names them."""
    if isinstance(value, dict):
        for name in value:
            reader(fields.name)(name, info)
        named = _NAMED_VIEWS.validate_python(value, context=info.context)
        return [replace(view, name=str(name)) for name, view in named.items()]
    return handler(value)


AnyViews = Annotated[
    list[AnyView], WrapValidator(_views, json_schema_input_type=list[AnyView] | dict[str, AnyView])
]
