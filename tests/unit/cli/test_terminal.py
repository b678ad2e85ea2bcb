"""Where output goes, what a table looks like without a terminal, and what is never shown."""

import json
import sys

import pytest

from tidegauge.cli.terminal import Column, Terminal, shown_text

COLUMNS = [Column("carrier"), Column("value", right=True)]
ROWS = [["UA", "1,112"], ["ünited", "7"]]


def test_a_piped_table_is_plain_columns(capsys):
    Terminal().table("Departures", COLUMNS, ROWS)
    assert (
        "Departures\ncarrier  value\n-------  -----\nUA       1,112\nünited       7\n"
        == capsys.readouterr().out
    )


def test_a_piped_table_needs_no_rich(capsys):
    before = set(sys.modules)
    Terminal().table("", COLUMNS, ROWS)
    assert not {name for name in set(sys.modules) - before if name.startswith("rich")}


def test_an_empty_table_has_its_heads(capsys):
    Terminal().table("", COLUMNS, [])
    assert "carrier  value\n-------  -----\n" == capsys.readouterr().out


def test_data_goes_to_standard_output_and_talk_to_standard_error(capsys):
    terminal = Terminal()
    terminal.say("talk")
    terminal.detail("more talk")
    terminal.data("data")
    terminal.error(74, "wrong")
    shown = capsys.readouterr()
    assert ("data\n", "talk\nwrong\n") == (shown.out, shown.err)


def test_quiet_keeps_results_and_errors(capsys):
    terminal = Terminal(quiet=True)
    terminal.say("talk")
    terminal.data("data")
    terminal.error(74, "wrong")
    shown = capsys.readouterr()
    assert ("data\n", "wrong\n") == (shown.out, shown.err)


def test_verbose_says_more(capsys):
    Terminal(verbose=True).detail("more talk")
    assert "more talk\n" == capsys.readouterr().err


def test_errors_are_json_where_results_are(capsys):
    Terminal(as_json=True).error(75, 'a "lock"')
    assert {"error": 'a "lock"', "exit_code": 75} == json.loads(capsys.readouterr().err)


def test_without_a_terminal_there_is_no_progress(capsys):
    with Terminal().progress("reading") as progress:
        assert progress is None
    shown = capsys.readouterr()
    assert ("", "") == (shown.out, shown.err)


@pytest.mark.parametrize("sign", ["\x1b", "\x07", "\r", "\x9b", "\x00", "\t"])
def test_names_cannot_drive_a_terminal(sign, capsys):
    assert "a\ufffdb" == shown_text(f"a{sign}b")
    Terminal().table(f"t{sign}", COLUMNS, [[f"U{sign}A", "1"]])
    Terminal().error(1, f"e{sign}")
    shown = capsys.readouterr()
    assert sign not in shown.out + shown.err
