"""The form of a config file: which fields there are, as pydantic models.

The models check one value at a time, so that every mistake of a file is found in one reading;
:mod:`tidegauge.planning.config` checks what several fields have to agree on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    TypeAdapter,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic_core import PydanticCustomError

from tidegauge.errors import TidegaugeError
from tidegauge.mechanisms.discovery import MOST_ITEMS
from tidegauge.mechanisms.intervals import BANDS, Band, level_of
from tidegauge.mechanisms.request import importance_in
from tidegauge.planning import fields
from tidegauge.planning.document import Scalar
from tidegauge.planning.where import PredicateError, checked
from tidegauge.privacy.unit import LONGEST_WINDOW
from tidegauge.strategies.decay import Custom, Decay, Difference, Running, Window
from tidegauge.strategies.named import ByName, by_name

__all__ = ["ConfigForm", "Context", "FileForm", "GaugeForm", "IdForm", "View"]


@dataclass(frozen=True)
class Context:
    """What a single value is read with.

    Attributes:
        step_us: Length of a step; None: each record is a step.
        horizon: Steps that polynomial views have to reach; None: unknown.
    """

    step_us: int | None
    horizon: int | None = None


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


def _context(info: ValidationInfo) -> Context:
    assert isinstance(info.context, Context)
    return info.context


def refusal(message: str, inside: int = 0) -> PydanticCustomError:
    """Return a problem that pydantic collects with all others, in our words."""
    return PydanticCustomError("config", "{message}", {"message": message, "inside": inside})


def _read(function: Callable[..., Any], *, steps: bool = False) -> Callable[..., Any]:
    """A reader of one value whose refusals pydantic collects."""

    def read(value: Any, info: ValidationInfo) -> Any:
        arguments = (_context(info).step_us,) if steps else ()
        try:
            return function(value, *arguments)
        except PredicateError as error:
            raise refusal(str(error), error.offset) from None
        except TidegaugeError as error:
            raise refusal(str(error)) from None

    return read


def _scalar(function: Callable[..., Any], shown: Any, *, steps: bool = False) -> Any:
    return PlainValidator(_read(function, steps=steps), json_schema_input_type=shown)


def _choice(*choices: str) -> Callable[[Any], str]:
    def choose(value: Any) -> str:
        if isinstance(value, Scalar) and value in choices:
            return str(value)
        got = fields.seen(value)
        raise refusal(f"Expected {' or '.join(choices)}, got {got}. Write one of them.")

    return choose


def _truth(value: Any) -> bool:
    if isinstance(value, Scalar) and not value.quoted and value in ("true", "false"):
        return value == "true"
    raise refusal(f"Expected true or false, got {fields.seen(value)}. Write one of them.")


def _level(value: Any) -> float:
    return level_of(fields.amount(value))


def _importance(value: Any) -> float:
    return importance_in("importance", fields.amount(value))


def _predicate(value: Any) -> str:
    found = checked(fields.text(value))
    if not fields.is_line(found):
        raise refusal(
            "Expected a condition whose texts are of one line, got another. Published documents "
            "would show something else than was signed. Compare with other text."
        )
    return found


def _zone(value: Any) -> str:
    return fields.zone(fields.text(value))


def _step(value: Any) -> int | None:
    from tidegauge.planning.durations import microseconds

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


def _key(value: Any) -> str:
    """The name of a column or gauge, as a key: pydantic hands keys on as plain text."""
    return fields.text(Scalar(value, True))


Text = Annotated[str, _scalar(fields.text, str)]
Line = Annotated[str, _scalar(fields.line, str)]
Key = Annotated[str, _scalar(_key, str)]
Number = Annotated[Fraction, _scalar(fields.amount, float)]
Moment = Annotated[int, _scalar(fields.moment, str)]
Count = Annotated[int, _scalar(fields.whole, int)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


class IdForm(_Strict):
    """An id with at most so many events is protected."""

    id: Line = Field(description="Column with the id; rows without one are dropped")
    max_contributions: Count = Field(description="Most events of one id, over all gauges")
    per: Annotated[str | int, _scalar(_per, str | int, steps=True)] = Field(
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


class PrivacyForm(_Strict):
    """Who is protected, and how well."""

    unit: Annotated[
        IdForm, WrapValidator(_unit, json_schema_input_type=Literal["event"] | IdForm)
    ] = Field(description="event, or an id with a bound on its contributions; no default")
    neighboring_relation: Annotated[
        str,
        PlainValidator(
            _choice("add_or_remove_one", "replace_one"),
            json_schema_input_type=Literal["add_or_remove_one", "replace_one"],
        ),
    ] = "add_or_remove_one"
    epsilon: Number | None = Field(None, description="Largest logarithm of a change of odds")
    delta: Number | None = Field(
        None, description="What is added to probabilities beyond e^epsilon"
    )
    rho: Number | None = Field(None, description="In place of epsilon: zero-concentrated DP")
    mu: Number | None = Field(None, description="In place of epsilon: Gaussian DP")


class CountForm(_Strict):
    """A count of rows."""

    where: Annotated[str | None, _scalar(_predicate, str)] = Field(
        None, description="A condition over one row, in a small part of SQL"
    )


_EVERY_ROW = CountForm.model_validate({})


class AutoForm(_Strict):
    """A clip that is chosen from published counts of magnitudes."""

    share: Number = Field(
        Fraction(1, 5), description="The part of the gauge's budget that learning the clip costs"
    )


def _clip(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    """Read ``clip: auto``, or a mapping."""
    if isinstance(value, Scalar):
        if value == "auto":
            return ClipForm.model_validate({"auto": AutoForm.model_validate({})})
        raise refusal(
            f"Expected auto or a mapping, got {fields.seen(value)}. Without clip values count up "
            "to the bounds. Write clip: auto, or clip: {auto: {share: 0.1}}."
        )
    if isinstance(value, dict) and "perrier" in value:
        raise refusal(
            "Expected auto, got perrier. The private threshold of Perrier et al. is not available "
            "in a config: tidegauge.papers.perrier has it in Python. Write clip: auto."
        )
    return handler(value)


class ClipForm(_Strict):
    """How the clip of a sum or a mean is found."""

    auto: AutoForm = Field(description="Chosen from published counts of magnitudes; it moves")


AnyClip = Annotated[
    ClipForm | None, WrapValidator(_clip, json_schema_input_type=Literal["auto"] | ClipForm)
]


class SumForm(_Strict):
    """A sum of one column."""

    column: Line
    bounds: tuple[Number, Number] = Field(description="Values outside are clamped to them")
    round_to: Number = Field(Fraction(1), description="Values are rounded to multiples of it")
    clip: AnyClip = Field(None, description="auto: values count up to a clip that is found")
    where: Annotated[str | None, _scalar(_predicate, str)] = None


class MeanForm(_Strict):
    """A mean of one column."""

    column: Line
    bounds: tuple[Number, Number] = Field(description="Values outside count as the nearest one")
    round_to: Number = Field(Fraction(1), description="Values are rounded to multiples of it")
    clip: AnyClip = Field(None, description="auto: values count up to a clip that is found")
    where: Annotated[str | None, _scalar(_predicate, str)] = None


def _most_ranked(value: Any) -> int:
    return fields.whole(value, 1, 1 << 20)


def _margin(value: Any) -> int:
    return fields.whole(value, 0)


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


class DistinctForm(_Strict):
    """A count of the different values of one column."""

    column: Text = Field(description="Text, integers or truth values; nulls are not counted")
    window: Annotated[View, _scalar(_distinct_window, str | int, steps=True)] = Field(
        description="Values of so long; or running: all since the start"
    )
    where: Annotated[str | None, _scalar(_predicate, str)] = None


def _discovery_view(value: Any, step_us: int | None) -> Decay:
    """Read in which view an item has to stand out."""
    if isinstance(value, Scalar) and value == "running":
        return Running()
    return Window(fields.length(value, step_us))


def _expected_items(value: Any) -> int:
    return fields.whole(value, high=MOST_ITEMS)


class DiscoverForm(_Strict):
    """When a value that is not known in advance is named."""

    view: Annotated[Decay | None, _scalar(_discovery_view, str | int, steps=True)] = Field(
        None,
        description="The count that has to stand out: running, or of the last 7d, say; default: "
        "the view of the gauge in which the least does",
    )
    delta_share: Number = Field(
        Fraction(1, 2),
        description="Part of delta spent on names",
        json_schema_extra={"default": 0.5},
    )
    expected_items: Annotated[int, _scalar(_expected_items, int)] = Field(
        100_000, description="About how many items will come; more are accepted"
    )


class TopForm(_Strict):
    """The cells with the most rows."""

    k: Annotated[int, _scalar(_most_ranked, int)] = Field(
        description="How many are published at each step; fewer if there are fewer cells"
    )
    where: Annotated[str | None, _scalar(_predicate, str)] = None
    method: Annotated[
        str | None,
        PlainValidator(_choice("sparse_gumb"), json_schema_input_type=Literal["sparse_gumb"]),
    ] = Field(None, description="In place of max_items: cells are chosen, and seldom anew")
    switches: Annotated[int | None, _scalar(_most_ranked, int)] = Field(
        None, description="Beside method: how often the cells that are shown change at most"
    )
    margin: Annotated[int | None, _scalar(_margin, int)] = Field(
        None, description="Beside method: by how much another cell has to lead"
    )


class FileForm(_Strict):
    """Known values in a file: one value a line, or one column of a CSV file."""

    file: Text
    column: Text | None = None


def _values(value: Any, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
    if isinstance(value, Scalar):
        if value == fields.DISCOVER:
            return fields.DISCOVER
        raise refusal(
            f"Expected a list of known values, got {fields.seen(value)}. Write ['a', 'b'], or "
            "{file: values.csv}; or discover, if they are not known in advance."
        )
    if isinstance(value, dict):
        return handler(value)
    words = [one for one in value if isinstance(one, Scalar) and not one.quoted]
    if fields.DISCOVER in words:
        raise refusal(
            "Expected known values, got discover in their list. It would be a value of that name, "
            "and nothing would be discovered. Write COLUMN: discover without brackets, or quote it."
        )
    return _VALUES.validate_python(value, context=info.context)


class ViewForm(_Strict):
    """A view that needs more than one word."""

    view: Annotated[Scalar | None, _scalar(lambda value: value, str | int)] = Field(
        None, description="A view of one word, such as running, beside every or importance"
    )
    window: Annotated[Scalar | None, _scalar(lambda value: value, str | int)] = None
    half_life: Annotated[Scalar | None, _scalar(lambda value: value, str | float)] = None
    factor: Annotated[Scalar | None, _scalar(lambda value: value, float)] = None
    polynomial: Annotated[Scalar | None, _scalar(lambda value: value, float)] = None
    custom: list[Number] | None = Field(None, description="Weights, newest step first")
    average: Annotated[bool, PlainValidator(_truth, json_schema_input_type=bool)] = Field(
        default=False, description="Weights of a half-life or factor that sum to 1"
    )
    difference: Annotated[Scalar | None, _scalar(lambda value: value, str | int)] = Field(
        None, description="Minus the same so much earlier; beside it stands of"
    )
    of: AnyView | None = Field(None, description="The view that a difference is of")
    every: Annotated[int | None, _scalar(fields.length, str | int, steps=True)] = Field(
        None, description="Published at every such step only, counted from the start"
    )
    importance: Annotated[float | None, _scalar(_importance, float)] = Field(
        None, description="How many times its noise counts when the accuracy is designed"
    )


def _view(value: Any, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> View:
    """Read a view written in one word, or as a mapping."""
    context = _context(info)
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
_VALUES: TypeAdapter[list[str]] = TypeAdapter(list[Annotated[str, _scalar(fields.cell_value, str)]])


def _views(value: Any, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
    """Read a list of views that name themselves, or a mapping that names them."""
    if isinstance(value, dict):
        for name in value:
            _read(fields.name)(name, info)
        named = _NAMED_VIEWS.validate_python(value, context=info.context)
        return [replace(view, name=str(name)) for name, view in named.items()]
    return handler(value)


def _strategy(value: Any) -> ByName:
    """Read the name of a strategy, alone or with its options: ``{Name: {option: 2}}``."""
    try:
        if isinstance(value, dict) and len(value) == 1:
            [(name, options)] = value.items()
            if isinstance(options, dict):
                numbers = {str(key): fields.amount(number) for key, number in options.items()}
                return by_name(str(name), numbers)
        return by_name(fields.text(value))
    except TidegaugeError as error:
        raise refusal(str(error)) from None


def _repeats(value: Any) -> int:
    if isinstance(value, Scalar) and value == "once":
        return 1
    try:
        return fields.whole(value)
    except TidegaugeError:
        raise refusal(
            f"Expected once or a number above 0, got {fields.seen(value)}. It bounds how often one "
            "event counts in a cell. Write once, or 3."
        ) from None


def _bare(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    """Read ``count:`` without a condition."""
    return _EVERY_ROW if isinstance(value, Scalar) and value.empty else handler(value)


class GaugeForm(_Strict):
    """One gauge."""

    count: Annotated[CountForm | None, WrapValidator(_bare)] = None
    sum: SumForm | None = None
    mean: MeanForm | None = Field(None, description="A mean of a column, and its noisy count")
    count_distinct: DistinctForm | None = Field(
        None, description="Different values of a column; another window is another gauge"
    )
    top_k: TopForm | None = Field(None, description="A count by cells: its largest, ranked")
    by: dict[
        Key,
        Annotated[
            FileForm,
            WrapValidator(
                _values, json_schema_input_type=list[str] | FileForm | Literal["discover"]
            ),
        ],
    ] = Field(
        default_factory=dict,
        description="Known values, or discover; several columns cross",
    )
    discover: DiscoverForm | None = Field(None, description="When values of by: discover are named")
    other: Line = Field("other", description="Name of the cell for the rest; drop leaves it out")
    totals: Annotated[bool, PlainValidator(_truth, json_schema_input_type=bool)] = Field(
        default=False, description="Publish the sum of all cells as well, as the cell *"
    )
    views: Annotated[
        list[AnyView],
        WrapValidator(_views, json_schema_input_type=list[AnyView] | dict[str, AnyView]),
    ] = Field(default_factory=list, description="What is published; free")
    anticipate: list[AnyView] = Field(
        default_factory=list, description="Views that accuracy is designed for, not published"
    )
    budget_weight: Number = Fraction(1)
    level: Annotated[float, _scalar(_level, float)] = Field(0.95, description="Of the intervals")
    band: Annotated[Band, PlainValidator(_choice(*BANDS), json_schema_input_type=Band)] = Field(
        "pointwise", description="Whether the level holds at each step alone, or for all at once"
    )
    max_per_step: Number | None = Field(
        None, description="Cap on one cell's total in one step; of a mean, on its events"
    )
    max_items: Count | None = Field(
        None, description="Most cells that one event touches; beside event"
    )
    repeats: Annotated[int | None, _scalar(_repeats, str | int)] = Field(
        None, description="How many times an event counts in a cell: once, or up to a number"
    )
    strategy: Annotated[
        ByName | None,
        PlainValidator(_strategy, json_schema_input_type=str | dict[str, dict[str, float]]),
    ] = Field(None, description="A paper's strategy by name: then no other is a candidate")


def _gauge(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    """Read ``name: count``."""
    if isinstance(value, Scalar) and value == "count":
        return GaugeForm.model_validate({"count": _EVERY_ROW})
    return handler(value)


class AboutForm(_Strict):
    """What the operator says of the publication; published as it stands."""

    title: Line | None = None
    curator: Line | None = None
    contact: Line | None = None
    purpose: Line | None = None
    data: Line | None = None
    license: Line | None = None


class SinkFileForm(_Strict):
    """A copy of releases in one file."""

    path: Text
    views: list[Text] | None = None


class SinkForm(_Strict):
    """One copy of releases."""

    parquet: SinkFileForm | None = None
    jsonl: SinkFileForm | None = None
    csv: SinkFileForm | None = None


class CsvForm(_Strict):
    """How CSV sources are cut into rows."""

    multiline: Annotated[
        bool,
        PlainValidator(_truth, json_schema_input_type=bool),
    ] = Field(
        default=False,
        description="Newlines within quotes belong to a field; else rows end at every newline",
    )


def _sources(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    return handler([value] if isinstance(value, Scalar) else value)


class ConfigForm(_Strict):
    """A config of tidegauge."""

    sources: Annotated[
        list[Text], WrapValidator(_sources, json_schema_input_type=str | list[str])
    ] = Field(description="Files (.csv, .jsonl, .parquet), globs, or - for JSONL on standard input")
    csv: CsvForm = Field(default_factory=CsvForm, description="How .csv sources are cut into rows")
    event_time: Line | None = Field(None, description="Column with the time of an event")
    event: Line | None = Field(
        None, description="Column whose rows of one value are one event; else each row is one"
    )
    timezone: Annotated[str | None, _scalar(_zone, str)] = Field(
        None, description="Zone of stamps that carry none"
    )
    time_format: Annotated[
        Any,
        PlainValidator(
            _choice("iso", "epoch_s", "epoch_ms"),
            json_schema_input_type=Literal["iso", "epoch_s", "epoch_ms"],
        ),
    ] = "iso"
    step: Annotated[int | None, _scalar(_step, str)] = Field(
        description="Fixed length such as 1h; or record: each record is a step"
    )
    start: Moment | None = Field(None, description="Where the first step begins; public")
    end: Annotated[int | None, _scalar(_end, str | int, steps=True)] = Field(
        None, description="Where the last step ends; public"
    )
    horizon: Annotated[int | None, _scalar(_horizon, str | int, steps=True)] = Field(
        None, description="What accuracy is designed for: a duration, or a number of steps"
    )
    privacy: PrivacyForm
    gauges: dict[
        Key,
        Annotated[
            GaugeForm, WrapValidator(_gauge, json_schema_input_type=Literal["count"] | GaugeForm)
        ],
    ]
    about: AboutForm = Field(default_factory=AboutForm)
    store: Text | None = Field(None, description="Private state")
    public: Text = Field("public/", description="Folder of what may leave")
    mark: Text | None = Field(None, description="High-water mark, away from the store")
    sinks: list[SinkForm] = Field(default_factory=list)
