"""What a gauge whose cells are discovered needs, and what has no meaning beside it."""

from __future__ import annotations

from typing import Any

from tidegauge.errors import InvalidParameter
from tidegauge.mechanisms.discovery import Discover
from tidegauge.planning import fields
from tidegauge.planning.document import Document, Path_
from tidegauge.planning.form import PrivacyForm
from tidegauge.planning.gauge_form import DiscoverForm, GaugeForm

__all__ = ["discovery_of"]


def discovery_of(
    document: Document, path: Path_, read: GaugeForm, privacy: PrivacyForm | None
) -> Discover | None:
    """Return how cells are discovered; None: all are known, or a problem is noted.

    Args:
        document: Where problems are noted.
        path: Of the gauge.
        read: One gauge.
        privacy: What is promised; None: it was refused already.
    """
    by: dict[str, Any] = dict(read.by)
    unknown = [column for column, given in by.items() if given == fields.DISCOVER]
    if not unknown:
        if read.discover is not None:
            document.refuse(
                (*path, "discover"),
                "Expected discover beside a by column whose values are not known, got it "
                "without. Nothing is to be found. Write by: {COLUMN: discover}, or remove it.",
                key=True,
            )
        return None
    _refuse_beside(document, path, read, unknown[0], privacy)
    asked = read.discover or DiscoverForm.model_validate({})
    if not 0 < asked.delta_share < 1:
        document.refuse(
            (*path, "discover", "delta_share"),
            "Expected a part of delta between 0 and 1, got another. Names need some of it, and "
            "so does the noise. Write 0.5.",
        )
        return None
    try:
        return Discover(asked.view, asked.delta_share, asked.expected_items)
    except InvalidParameter as error:
        document.refuse((*path, "discover", "expected_items"), str(error))
        return None


def _refuse_beside(
    document: Document, path: Path_, read: GaugeForm, column: str, privacy: PrivacyForm | None
) -> None:
    """Refuse what has no meaning beside a column whose values are discovered."""
    place: Path_ = (*path, "by", column)
    if privacy is not None and privacy.delta is None:
        given = next((n for n in ("epsilon", "rho", "mu") if getattr(privacy, n)), "no delta")
        document.refuse(
            place,
            f"Expected epsilon and delta beside discover, got {given} alone. A name that only "
            "one unit brings is never shown by noise that may be large by chance: that chance "
            "is a delta. List the values, or write epsilon: 1 and delta: 1e-9.",
        )
    if read.count_distinct is not None:
        document.refuse(
            place,
            "Expected known values beside count_distinct, got discover. It finds the cells of "
            "counts and sums alone. List the values, or count rows.",
        )
    if read.totals:
        document.refuse(
            (*path, "totals"),
            "Expected no totals beside discover, got some. A sum over the cells that are named "
            "leaves out the rest, and changes with every new name. Count the same in a gauge "
            "without by.",
            key=True,
        )
    if fields.MEASURED & set(read.by):
        name = min(fields.MEASURED & set(read.by))
        document.refuse(
            (*path, "by", name),
            f"Expected a column that no measurement has, got {name}. Both would stand side by "
            "side under one name. Rename it in the source.",
            key=True,
        )
