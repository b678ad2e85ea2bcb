"""Colour, width and help on a pseudo-terminal and in pipes."""

import re
import subprocess
import sys

import pytest
from terminals import environment, on_a_terminal, tidegauge
from visits import STEPS_ALONE, rows_of_visits, write_visits

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
    run = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=environment())
    assert run.returncode in (0, 74)  # true may end before or after the text is written
    assert "" == run.stderr


@pytest.fixture
def shop(tmp_path):
    return write_visits(tmp_path / "shop", rows_of_visits(), STEPS_ALONE)


@pytest.fixture(scope="module")
def piped(tmp_path_factory):
    shop = write_visits(tmp_path_factory.mktemp("piped"), rows_of_visits(), STEPS_ALONE)
    return tidegauge("plan", "visits.yaml", cwd=shop)[1]


def test_a_pipe_gets_plain_text(piped):
    assert "\x1b" not in piped
    assert piped.isascii() or set(piped) - set("±") <= set(map(chr, range(128)))
    assert "noise, first step" in piped
    assert "1e-9" in piped
    assert "1e-09" not in piped


def test_a_terminal_gets_drawn_tables_in_colour(shop, piped):
    code, shown = on_a_terminal("plan", "visits.yaml", cwd=shop, COLUMNS="120")
    assert 0 == code
    assert "┃" in shown
    assert COLOUR.search(shown)
    assert piped.split()[-1] in shown  # the same plan


def test_no_color_is_obeyed(shop):
    code, shown = on_a_terminal("plan", "visits.yaml", cwd=shop, NO_COLOR="1")
    assert 0 == code
    assert "┃" in shown
    assert not COLOUR.search(shown)


def test_a_dumb_terminal_gets_no_codes_at_all(shop):
    code, shown = on_a_terminal("plan", "visits.yaml", cwd=shop, TERM="dumb")
    assert 0 == code
    assert "\x1b" not in shown


@pytest.mark.parametrize("columns", [60, 100])
def test_tables_keep_to_the_width(shop, columns):
    _, shown = on_a_terminal("plan", "visits.yaml", cwd=shop, COLUMNS=str(columns))
    drawn = [line for line in re.sub(r"\x1b\[[0-9;]*m", "", shown).splitlines() if "│" in line]
    assert drawn
    assert all(len(line) <= columns for line in drawn)


def test_progress_is_drawn_on_a_terminal_only(shop):
    code, shown = on_a_terminal("run", "visits.yaml", "--until", "2025-01-08T00:00:00Z", cwd=shop)
    assert 0 == code
    assert "100%" in shown
    code, out, err = tidegauge("run", "visits.yaml", cwd=shop)
    assert 0 == code
    assert "%" not in err
    assert "\r" not in out + err


def test_quiet_says_nothing_on_a_terminal(shop):
    code, shown = on_a_terminal("validate", "visits.yaml", "-q", cwd=shop)
    assert (0, "") == (code, shown)
