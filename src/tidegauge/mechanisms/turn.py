"""One block at a time, up to the end: no forks, second threads or copies, nothing interrupted."""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import Lock
from typing import NoReturn, final

from tidegauge.errors import LiveState, StreamEnded, TidegaugeError

__all__ = ["Turn", "no_copies", "refuse_beyond_end"]


@final
class Turn:
    """Taken for a block and given back at its end, or when it was refused; not if interrupted.

    Args:
        what: Whose turn it is, as messages call it.
        remedy: What to do after an interruption; None: pay for another one.

    Raises:
        LiveState: It is taken: a block was interrupted, or another thread is inside one; or this
            is a fork of the process that made it.

    Examples:
        >>> turn = Turn()
        >>> with turn:
        ...     pass
    """

    def __init__(self, what: str = "gauge", remedy: str | None = None) -> None:
        self._what, self._remedy = what, remedy or f"make another {what}, at its own cost"
        self._owner = os.getpid()
        self._busy = Lock()
        self._ended = False

    def __enter__(self) -> None:
        if os.getpid() != self._owner:
            raise LiveState(
                f"Expected the process that made this {self._what}, got a fork of it. Both would "
                "draw the same noise for different data. Make it in the process that uses it."
            )
        if self._ended:
            raise LiveState(
                f"Expected a live {self._what}, got one that was closed. What it needs to go on is "
                "erased. Close it after the last block."
            )
        if not self._busy.acquire(blocking=False):
            raise LiveState(
                f"Expected a {self._what} between two blocks, got one inside a block: it was "
                "interrupted, or another thread is using it. Its noise may be ahead of its "
                f"releases. Use one thread; after an interruption {self._remedy}."
            )

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None or issubclass(kind, TidegaugeError):  # refused before anything changed
            self._busy.release()

    def end(self) -> None:
        """Refuse all that follows."""
        self._ended = True


def no_copies(what: str = "gauge") -> Callable[..., NoReturn]:
    """Return what refuses to copy or pickle something live, for its ``__copy__`` and the like.

    Args:
        what: What is copied, as messages call it.

    Examples:
        >>> no_copies("meter")(object())  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        tidegauge.errors.LiveState: Expected one live meter, got an attempt to copy ...
    """

    def refuse(*_: object) -> NoReturn:
        raise LiveState(
            f"Expected one live {what}, got an attempt to copy or pickle it. Two copies would draw "
            "the same noise for different data. Copy its releases, or make another "
            f"{what}, at its own cost."
        )

    return refuse


def refuse_beyond_end(last: int | None, end: int) -> None:
    """Refuse a block that reaches beyond the last step, before anything of it is kept or measured.

    Args:
        last: The last step that was planned, from 1; None: there is none.
        end: The last step of the block.

    Raises:
        StreamEnded: It lies beyond.

    Examples:
        >>> refuse_beyond_end(None, 9), refuse_beyond_end(9, 9)
        (None, None)
    """
    if last is not None and end > last:
        raise StreamEnded(
            f"Expected steps up to {last}, got {end}. The guarantee was computed for these "
            "steps only. Plan a gauge with a later end."
        )
