"""A view as a reader writes it: in the words of a config, thought of after the plan."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter, ValidationError

from tidegauge.errors import InvalidParameter
from tidegauge.planning.document import document_from
from tidegauge.planning.reading import Context
from tidegauge.planning.view_form import AnyView, View

__all__ = ["view_of"]

_VIEW: TypeAdapter[Any] = TypeAdapter(AnyView)


def view_of(text: str, step_us: int | None, horizon: int | None = None) -> View:
    """Return the view that a text declares, as a config's ``views:`` would.

    Args:
        text: Such as ``14d``, ``running``, ``{half_life: 2d}``, ``{window: 7d, every: 7d}`` or
            ``{difference: 7d, of: 7d}``.
        step_us: Length of a step in microseconds; None: each record is a step.
        horizon: Steps that polynomial views have to reach; None: unknown.

    Raises:
        InvalidParameter: It is no view.

    Examples:
        >>> view_of("{window: 7d, every: 1d}", 3_600_000_000)
        View(name='window_7d_every_1d', decay=Window(steps=168), every=24, importance=1.0)
    """
    try:
        written = document_from(text, "the view").root
        found: View = _VIEW.validate_python(written, context=Context(step_us, horizon))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        if first["type"] == "config":
            raise InvalidParameter(first["msg"]) from None
        raise InvalidParameter(
            f"Expected a view such as 7d, running or {{half_life: 2d}}, got {text[:60]!r}. There "
            "is nothing to decode. Write it as in a config."
        ) from None
    if found.importance != 1:
        raise InvalidParameter(
            "Expected a view without importance, got one with it. It shapes the noise when the "
            "plan is made, and this one is made. Remove it."
        )
    return found
