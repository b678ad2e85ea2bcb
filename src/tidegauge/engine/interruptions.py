"""Ctrl-C and SIGTERM: between two blocks, never inside one."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, final

__all__ = ["Interruptions"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@final
class Interruptions:
    """While entered, both signals raise ``KeyboardInterrupt``, but not while something is held.

    Outside the main thread no signal arrives, and nothing is changed.

    Examples:
        >>> with Interruptions() as interruptions:
        ...     with interruptions.held():
        ...         "a block is committed and published"
        'a block is committed and published'
    """

    def __init__(self) -> None:
        self._asked = self._holding = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Interruptions:
        if threading.current_thread() is threading.main_thread():
            for one in _SIGNALS:
                self._before[one] = signal.signal(one, self._ask)
        return self

    def __exit__(self, *_: object) -> None:
        for one, handler in self._before.items():
            signal.signal(one, handler)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Put an interruption off to the end of what is inside."""
        self._holding = True
        try:
            yield
        finally:
            self._holding = False
        if self._asked:
            raise KeyboardInterrupt

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self._asked = True
        if not self._holding:
            raise KeyboardInterrupt
