"""Compiled kernels, loaded when they are first needed and found at once from then on."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any

__all__ = ["lazy_module"]


class _LazyModule(ModuleType):
    """A module that loads the real one at the first name it is asked for."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # asked by tools that look at every module
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r} yet")
        real = import_module(self.__name__)  # waits while another thread is loading it
        self.__dict__.update(vars(real))
        self.__class__ = ModuleType  # type: ignore[assignment]  # its names are plain from here on
        return getattr(real, name)


def lazy_module(name: str) -> ModuleType:
    """Return a module that is loaded when one of its names is first used (Numba: 0.3 to 1 s).

    An import statement inside a function costs about a microsecond at every call; a name of this
    module costs what any name of a module does, once it is loaded. Write it as the other half of an
    import, so that type checkers and the check of layers see what it stands for::

        if TYPE_CHECKING:
            from tidegauge.noise import _kernels
        else:
            _kernels = lazy_module("tidegauge.noise._kernels")

    Threads that come while the module is being loaded wait for all of it; this is why it does not
    use ``importlib.util.LazyLoader``, which lets them see half of it before Python 3.12.4.

    Args:
        name: The module's full name.

    Examples:
        >>> colours = lazy_module("colorsys")
        >>> type(colours).__name__, colours.rgb_to_hsv(1, 0, 0), type(colours).__name__
        ('_LazyModule', (0.0, 1.0, 1), 'module')
    """
    return _LazyModule(name)
