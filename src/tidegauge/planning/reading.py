"""How one value of a config is read: refusals that pydantic collects, and what all forms share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, PlainValidator, ValidationInfo
from pydantic_core import PydanticCustomError

from tidegauge.errors import TidegaugeError
from tidegauge.planning import fields
from tidegauge.planning.document import Scalar
from tidegauge.planning.where import PredicateError

__all__ = [
    "Context",
    "Count",
    "Form",
    "Key",
    "Line",
    "Number",
    "Text",
    "choice",
    "context_of",
    "reader",
    "refusal",
    "scalar",
    "truth",
]


@dataclass(frozen=True)
class Context:
    """What a single value is read with.

    Attributes:
        step_us: Length of a step; None: each record is a step.
        horizon: Steps that polynomial views have to reach; None: unknown.
    """

    step_us: int | None
    horizon: int | None = None


def context_of(info: ValidationInfo) -> Context:
    """Return what values are read with."""
    assert isinstance(info.context, Context)
    return info.context


def refusal(message: str, inside: int = 0) -> PydanticCustomError:
    """Return a problem that pydantic collects with all others, in our words."""
    return PydanticCustomError("config", "{message}", {"message": message, "inside": inside})


def reader(function: Callable[..., Any], *, steps: bool = False) -> Callable[..., Any]:
    """Return a reader of one value whose refusals pydantic collects.

    Args:
        function: Returns what the value means, or raises.
        steps: Whether it needs the length of a step, as its second argument.
    """

    def read(value: Any, info: ValidationInfo) -> Any:
        arguments = (context_of(info).step_us,) if steps else ()
        try:
            return function(value, *arguments)
        except PredicateError as error:
            raise refusal(str(error), error.offset) from None
        except TidegaugeError as error:
            raise refusal(str(error)) from None

    return read


def scalar(function: Callable[..., Any], shown: Any, *, steps: bool = False) -> Any:
    """Return a validator of one value; ``shown`` is its type in the JSON Schema."""
    return PlainValidator(reader(function, steps=steps), json_schema_input_type=shown)


def choice(*choices: str) -> Callable[[Any], str]:
    """Return a reader of one of several words."""

    def choose(value: Any) -> str:
        if isinstance(value, Scalar) and value in choices:
            return str(value)
        got = fields.seen(value)
        raise refusal(f"Expected {' or '.join(choices)}, got {got}. Write one of them.")

    return choose


def truth(value: Any) -> bool:
    """Return true or false as written without quotes."""
    if isinstance(value, Scalar) and not value.quoted and value in ("true", "false"):
        return value == "true"
    raise refusal(f"Expected true or false, got {fields.seen(value)}. Write one of them.")


def _key(value: Any) -> str:
    """The name of a column or gauge, as a key: pydantic hands keys on as plain text."""
    return fields.text(Scalar(value, True))


Text = Annotated[str, scalar(fields.text, str)]
Line = Annotated[str, scalar(fields.line, str)]
Key = Annotated[str, scalar(_key, str)]
Number = Annotated[Fraction, scalar(fields.amount, float)]
Count = Annotated[int, scalar(fields.whole, int)]


class Form(BaseModel):
    """A mapping of known fields; others are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)
