"""Where a reader begins: ``tidegauge.open``."""

from __future__ import annotations

from pathlib import Path

from tidegauge.engine.public import PublicFolder

__all__ = ["open"]


def open(path: str | Path) -> PublicFolder:  # noqa: A001 (read as tg.open)
    """Return a public folder for reading: every view, planned or thought of later, from it alone.

    It needs neither the store nor the data, and costs no privacy.

    Args:
        path: The folder that ``public:`` of the config names.

    Raises:
        InvalidInput: There is no such folder, or what is in it does not belong together.

    Examples:
        ``tg.open("public").view("departures", tg.Window(14 * 24)).table()`` is a frame of the
        releases of the last two weeks at every hour.

        >>> open("nowhere")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        tidegauge.errors.InvalidInput: Expected a public folder at nowhere, got no plan.json ...
    """
    return PublicFolder(path)
