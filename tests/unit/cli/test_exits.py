"""Which kind of problem ends with which code, and that no message holds data."""

import errno

import pytest

from tidegauge import errors
from tidegauge.cli.exits import MEANINGS, Exit, failure_of

CASES = [
    (errors.BudgetExceeded("more than is left"), 3),
    (errors.StoreBehind("older than its mark"), 5),
    (errors.SourceUnavailable("no such file"), 69),
    (errors.MissingExtra("matplotlib"), 69),
    (errors.WriteFailed("no room"), 74),
    (errors.Locked("another process"), 75),
    (errors.StoreMismatch("another plan"), 78),
    (errors.InvalidParameter("epsilon"), 78),
    (errors.UnsupportedCombination("no proof"), 78),
    (FileNotFoundError(errno.ENOENT, "No such file", "x.csv"), 69),
    (IsADirectoryError(errno.EISDIR, "Is a directory", "x"), 69),
    (OSError(errno.ENOSPC, "No space left on device", "x"), 74),
    (PermissionError(errno.EACCES, "Permission denied", "x"), 74),
    (OSError(errno.EROFS, "Read-only file system"), 74),
    (KeyboardInterrupt(), 130),
    (RuntimeError("row 17: 4 bananas"), 1),
    (MemoryError(), 1),
]


@pytest.mark.parametrize(("problem", "code"), CASES, ids=lambda case: type(case).__name__)
def test_each_kind_of_problem_has_its_code(problem, code):
    assert code == failure_of(problem)[0]


def test_messages_raised_on_purpose_are_shown_whole():
    assert "Expected this, got that." == failure_of(errors.Locked("Expected this, got that."))[1]


@pytest.mark.parametrize("kind", [RuntimeError, ValueError, KeyError, ArithmeticError])
def test_the_text_of_an_unexpected_problem_is_never_shown(kind):
    assert "bananas" not in failure_of(kind("row 17: 4 bananas"))[1]
    assert kind.__name__ in failure_of(kind("row 17: 4 bananas"))[1]


def test_a_reader_that_closes_a_pipe_is_not_scolded():
    assert (Exit.WRITE, "") == failure_of(BrokenPipeError())


def test_every_code_has_a_meaning_and_the_numbers_are_those_of_the_design():
    assert set(Exit) == set(MEANINGS)
    assert [0, 1, 2, 3, 5, 65, 69, 74, 75, 78, 130] == sorted(Exit)


def test_every_error_of_tidegauge_has_a_code_of_its_own_kind():
    for name in errors.__all__:
        kind = getattr(errors, name)
        assert failure_of(kind("text"))[0] is not Exit.UNEXPECTED, name
