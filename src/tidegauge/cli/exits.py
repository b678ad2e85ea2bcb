"""Exit codes: one for each kind of remedy, none of which depends on rows of the data."""

from __future__ import annotations

import errno
from enum import IntEnum
from typing import Final

from tidegauge import errors

__all__ = ["MEANINGS", "Exit", "failure_of"]


class Exit(IntEnum):
    """What a supervisor is told."""

    DONE = 0
    UNEXPECTED = 1
    USAGE = 2
    BUDGET = 3
    BEHIND = 5
    INPUT = 65
    AWAY = 69
    WRITE = 74
    LOCKED = 75
    CONFIG = 78
    INTERRUPTED = 130


MEANINGS: Final = {
    Exit.DONE: "done",
    Exit.UNEXPECTED: "unexpected: a fault of tidegauge; please report it",
    Exit.USAGE: "wrong use of a command or of its options",
    Exit.BUDGET: "refused: it would exceed the guarantee",
    Exit.BEHIND: "the store is behind its mark; never retry",
    Exit.INPUT: "input is not as declared (reserved)",
    Exit.AWAY: "a source or a sink is away",
    Exit.WRITE: "a file could not be written",
    Exit.LOCKED: "another process writes this store; retry later",
    Exit.CONFIG: "the config or the plan is wrong or not the approved one",
    Exit.INTERRUPTED: "interrupted (Ctrl-C or SIGTERM); run again to go on",
}

_AWAY = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENXIO, errno.ENODEV}
_CODES: tuple[tuple[type[BaseException], Exit], ...] = (
    (errors.BudgetExceeded, Exit.BUDGET),
    (errors.StoreBehind, Exit.BEHIND),
    (errors.SourceUnavailable, Exit.AWAY),
    (errors.InvalidInput, Exit.AWAY),  # a public folder that is not there, or not whole
    (errors.MissingExtra, Exit.AWAY),
    (errors.WriteFailed, Exit.WRITE),
    (errors.Locked, Exit.LOCKED),
    (errors.TidegaugeError, Exit.CONFIG),
)


def failure_of(problem: BaseException) -> tuple[Exit, str]:
    """Return the exit code of a problem and the text to show; neither holds data.

    The message of an error that tidegauge raises on purpose is shown; of any other only its type.
    """
    if isinstance(problem, KeyboardInterrupt):
        return Exit.INTERRUPTED, (
            "Interrupted. What was published stays as it is. Run the same command again to go on."
        )
    for kind, code in _CODES:
        if isinstance(problem, kind):
            return code, str(problem)
    if isinstance(problem, OSError):
        return _of_the_system(problem)
    return Exit.UNEXPECTED, (
        f"Expected no fault here, got an unexpected {type(problem).__name__}. The command ended; "
        "what was published stays as it is. Run it with -v for the places in the code, which hold "
        "no data, and report them."
    )


def _of_the_system(problem: OSError) -> tuple[Exit, str]:
    """The end of an error of the operating system; it names a file, never what is in it."""
    if isinstance(problem, BrokenPipeError):
        return Exit.WRITE, ""  # the reader of a pipe had enough, as `head` has
    what = problem.strerror or type(problem).__name__
    file = f" ({problem.filename})" if isinstance(problem.filename, str) else ""
    if problem.errno in _AWAY:
        return Exit.AWAY, (
            f"Expected a file that can be opened, got: {what}{file}. Nothing was changed. "
            "Correct the path, or bring the file back."
        )
    return Exit.WRITE, (
        f"Expected to write, got: {what}{file}. What was published stays as it is. Make room, or "
        "give the right to write, and run the same command again."
    )
