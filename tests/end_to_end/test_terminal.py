"""Colour, width and help on a pseudo-terminal and in pipes."""

import re
import subprocess
import sys

import pytest
from terminals import SOURCE, environment, on_a_terminal, tidegauge

COLOUR = re.compile(r"\x1b\[[0-9;]*?(3[0-7]|4[0-7]|9[0-7])[0-9;]*m")


def test_help_loads_nothing_heavy():
    script = (
        "import sys, tidegauge.cli.main; heavy = 'numpy rich polars numba scipy pydantic ruamel "
        "sqlglot platformdirs sqlite3 matplotlib'.split(); "
        "print([name for name in heavy if name in sys.modules])"
    )
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment()
    )
    assert "[]" == run.stdout.strip(), run.stderr


def test_python_m_tidegauge_and_no_words_at_all_show_the_help():
    assert tidegauge("--help")[1] == tidegauge("-h")[1]
    code, out, err = tidegauge()
    assert 2 == code
    assert "Commands:" in out + err


def test_an_unknown_command_or_option_ends_with_2_and_the_next_step():
    code, out, err = tidegauge("pln", "x.yaml")
    assert (2, "") == (code, out)
    assert "tidegauge --help" in err
    assert 2 == tidegauge("plan", "--jsn", "x.yaml")[0]
    assert "Did you mean" in tidegauge("plan", "--jsno", "x.yaml")[2]


def test_a_closed_pipe_ends_quietly():
    command = f"{sys.executable} -m tidegauge schema | true; exit ${{PIPESTATUS[0]}}"
    run = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, env=environment()
    )
    assert run.returncode in (0, 74)  # true may end before or after the text is written
    assert "" == run.stderr
