"""Compiled kernels, loaded when they are first needed and found at once from then on."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import ModuleType

__all__ = ["kernels"]


@cache
def kernels(package: str) -> ModuleType:
    """Return the ``_kernels`` module of a package; the first call loads Numba (0.3 to 1 s).

    An import statement inside a function costs about a microsecond at every call; this does not.

    Args:
        package: The caller's package, such as ``tidegauge.noise``.
    """
    return import_module(f"{package}._kernels")
