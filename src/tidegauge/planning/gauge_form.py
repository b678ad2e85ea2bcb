"""The form of one gauge: what it measures, its cells, its views, and how."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import (
    Field,
    PlainValidator,
    TypeAdapter,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from tidegauge.errors import TidegaugeError
from tidegauge.mechanisms.discovery import MOST_ITEMS
from tidegauge.mechanisms.intervals import BANDS, Band, level_of
from tidegauge.planning import fields
from tidegauge.planning.document import Scalar
from tidegauge.planning.kind_form import (
    EVERY_ROW,
    CountForm,
    DistinctForm,
    MeanForm,
    SumForm,
    TopForm,
)
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
from tidegauge.planning.view_form import AnyView, AnyViews
from tidegauge.strategies.decay import Decay, Running, Window
from tidegauge.strategies.named import ByName, by_name

__all__ = ["AnyGauge", "DiscoverForm", "FileForm", "GaugeForm"]


def _discovery_view(value: Any, step_us: int | None) -> Decay:
    """Read in which view an item has to stand out."""
    if isinstance(value, Scalar) and value == "running":
        return Running()
    return Window(fields.length(value, step_us))


def _expected_items(value: Any) -> int:
    return fields.whole(value, high=MOST_ITEMS)


class DiscoverForm(Form):
    """When a value that is not known in advance is named."""

    view: Annotated[Decay | None, scalar(_discovery_view, str | int, steps=True)] = Field(
        None,
        description="The count whose noisy value has to pass the threshold: running, or of the "
        "last 7d, say; default: the published view with the longest memory",
    )
    delta_share: Number = Field(
        Fraction(1, 2),
        description="Part of delta spent on names",
        json_schema_extra={"default": 0.5},
    )
    expected_items: Annotated[int, scalar(_expected_items, int)] = Field(
        100_000, description="About how many items will come; more are accepted"
    )


class FileForm(Form):
    """Known values in a file: one value a line, or one column of a CSV file."""

    file: Text
    column: Text | None = None


_VALUES: TypeAdapter[list[str]] = TypeAdapter(list[Annotated[str, scalar(fields.cell_value, str)]])


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


def _level(value: Any) -> float:
    return level_of(fields.amount(value))


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
    return EVERY_ROW if isinstance(value, Scalar) and value.empty else handler(value)


class GaugeForm(Form):
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
    totals: Annotated[bool, PlainValidator(truth, json_schema_input_type=bool)] = Field(
        default=False, description="Publish the sum of all cells as well, as the cell *"
    )
    views: AnyViews = Field(default_factory=list, description="What is published; free")
    anticipate: list[AnyView] = Field(
        default_factory=list, description="Views that accuracy is designed for, not published"
    )
    budget_weight: Number = Fraction(1)
    level: Annotated[float, scalar(_level, float)] = Field(0.95, description="Of the intervals")
    band: Annotated[Band, PlainValidator(choice(*BANDS), json_schema_input_type=Band)] = Field(
        "pointwise", description="Whether the level holds at each step alone, or for all at once"
    )
    max_per_step: Number | None = Field(
        None, description="Cap on one cell's total in one step; of a mean, on its events"
    )
    max_items: Count | None = Field(
        None, description="Most cells that one event touches; beside event"
    )
    repeats: Annotated[int | None, scalar(_repeats, str | int)] = Field(
        None, description="How many times an event counts in a cell: once, or up to a number"
    )
    strategy: Annotated[
        ByName | None,
        PlainValidator(_strategy, json_schema_input_type=str | dict[str, dict[str, float]]),
    ] = Field(None, description="A paper's strategy by name: then no other is a candidate")


def _gauge(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    """Read ``name: count``."""
    if isinstance(value, Scalar) and value == "count":
        return GaugeForm.model_validate({"count": EVERY_ROW})
    return handler(value)


AnyGauge = Annotated[
    GaugeForm, WrapValidator(_gauge, json_schema_input_type=Literal["count"] | GaugeForm)
]
