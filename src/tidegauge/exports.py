"""Public names of a package, imported from their modules when they are first used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["exported"]


def exported(
    package: str, homes: Mapping[str, tuple[str, ...]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package, so that importing it costs nothing.

    Args:
        package: The package's ``__name__``; its ``__all__`` is what it lists.
        homes: For each module, by its full name, the names that are imported from it.

    Examples:
        >>> lent, _ = exported(__name__, {"json.decoder": ("JSONDecoder",)})
        >>> lent("JSONDecoder").__module__
        'json.decoder'
        >>> lent("nothing")
        Traceback (most recent call last):
            ...
        AttributeError: module 'tidegauge.exports' has no attribute 'nothing'
    """
    home_of = {name: home for home, names in homes.items() for name in names}

    def get(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(home_of[name]), name)
        setattr(sys.modules[package], name, value)  # found at once from here on
        return value

    return get, lambda: list(sys.modules[package].__all__)
