"""One block at a time: keeps out second threads, copies, and all that follows an interruption."""

from __future__ import annotations

from threading import Lock
from typing import NoReturn, final

from tidegauge.errors import LiveState, TidegaugeError

__all__ = ["Turn", "refuse_copy"]


@final
class Turn:
    """Taken for a block and given back at its end, or when it was refused; not if interrupted.

    Raises:
        LiveState: It is taken: a block was interrupted, or another thread is inside one.

    Examples:
        >>> turn = Turn()
        >>> with turn:
        ...     pass
    """

    def __init__(self) -> None:
        self._busy = Lock()

    def __enter__(self) -> None:
        if not self._busy.acquire(blocking=False):
            raise LiveState(
                "Expected a gauge between two blocks, got one inside a block: it was interrupted, "
                "or another thread is using it. Its noise may be ahead of its releases. Use one "
                "thread; after an interruption make another gauge, at its own cost."
            )

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None or issubclass(kind, TidegaugeError):  # refused before anything changed
            self._busy.release()


def refuse_copy(*_: object) -> NoReturn:
    """Refuse to copy or pickle what measures.

    Raises:
        LiveState: Always.
    """
    raise LiveState(
        "Expected one live gauge, got an attempt to copy or pickle it. Two copies would draw the "
        "same noise for different data. Copy its releases, or make a gauge of its plan."
    )
