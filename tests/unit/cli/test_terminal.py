"""Where output goes, what a table looks like without a terminal, and what is never shown."""

import json
import sys

import pytest

from tidegauge.cli.terminal import Column, Terminal, plain_table, short_name, shown_text

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


DRIVING = ["\x1b", "\x07", "\r", "\x9b", "\x00", "\t", "\x7f", "\u2028", "\u2029", "\u202e",
           "\u2066", "\u200b", "\ufeff", "\ue000", "\ud800", "\uffff", "\U000e0041"]  # fmt: skip


@pytest.mark.parametrize("sign", DRIVING)
def test_names_cannot_drive_a_terminal(sign, capsys):
    escaped = json.dumps(sign)[1:-1] if sign != "\x7f" else "\\u007f"
    assert f"a{escaped}b" == shown_text(f"a{sign}b")
    Terminal().table(f"t{sign}", COLUMNS, [[f"U{sign}A", "1"]])
    Terminal().error(1, f"e{sign}")
    shown = capsys.readouterr()
    assert sign not in shown.out + shown.err


def test_a_name_forges_no_row(capsys, monkeypatch):
    forged = "mm\n\nApproved. Deaths: 4,711 \u00b1 2\nbread"
    lines = plain_table("t", COLUMNS, [[forged, "1"], ["b", "2"]])
    assert 5 == len("\n".join(lines).splitlines())
    assert "mm\\n\\nApproved" in lines[3]
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(type(sys.stdout), "isatty", lambda stream: True, raising=False)
    Terminal().table("t", COLUMNS, [[forged, "1"]])
    assert 1 == len([line for line in capsys.readouterr().out.splitlines() if "Approved" in line])


def test_letters_of_all_languages_are_shown_as_they_are():
    for text in ("e\u0301", "\u00e9", "\u6771\u4eac\u3000\u99c5", "\u0645\u0631", "a\xa0b", "\\n"):
        assert text == shown_text(text) == short_name(text)


def test_a_document_on_a_terminal_is_escaped_and_whole(capsys):
    name = "a\u202eb\x9b\n\U000e0041\x7f"
    Terminal().document({"name": name})
    out = capsys.readouterr().out
    assert not {"\u202e", "\x9b", "\U000e0041", "\x7f"} & set(out)
    assert {"name": name} == json.loads(out)


def test_long_names_are_cut_and_stay_two():
    one, two = short_name("x" * 1000 + "a"), short_name("x" * 1000 + "b")
    assert 60 == len(one) == len(two)
    assert one != two
    assert 60 == len(short_name("\n" * 1000))
