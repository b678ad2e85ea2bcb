"""The manual is the help; every example of every command and of the README runs."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from terminals import environment, in_process
from visits import rows_of_visits, write_visits

from tidegauge.cli.main import program
from tidegauge.cli.manual import manual

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()


def blocks(kind):
    return re.findall(rf"```{kind}\n(.*?)```", README, re.S)


def examples(name):
    """The lines under "Examples:" in a command's help."""
    text = program.commands[name].help
    return [line.strip() for line in text.split("Examples:\n")[1].splitlines() if line.strip()]


def run(line, folder):
    """Run a line, with no home to spoil: what no shell has a part in, within this process."""
    command = line.split(" #")[0]
    if set("&|<>*?~$;'`") & set(command):
        done = in_a_shell(line, folder)
        return done.returncode, done.stderr
    name, *words = shlex.split(command)
    assert "tidegauge" == name
    code, _, err = in_process(*words, cwd=folder, HOME=str(folder))
    return code, err


def in_a_shell(line, folder):
    """Run a line as a user types it, with ``tidegauge`` on the path."""
    bin_folder = folder / "bin"
    if not bin_folder.exists():
        bin_folder.mkdir()
        script = bin_folder / "tidegauge"
        script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m tidegauge "$@"\n')
        script.chmod(0o755)
    env = environment(HOME=str(folder), PATH=f"{bin_folder}{os.pathsep}{os.environ['PATH']}")
    return subprocess.run(
        ["bash", "-c", line], cwd=folder, env=env, capture_output=True, text=True, timeout=120
    )


def test_the_manual_is_the_help_of_every_command():
    assert manual() == (ROOT / "docs" / "cli.md").read_text(), "run: make docs"
    for name in program.commands:
        assert f"## {name}\n" in manual()


@pytest.mark.parametrize("name", list(program.commands))
def test_every_command_has_two_examples_of_its_own(name):
    lines = examples(name)
    assert len(lines) >= 2
    assert all(line.startswith(f"tidegauge {name}") for line in lines)


def test_all_examples_of_the_help_run(tmp_path):
    folder = write_visits(tmp_path / "shop", rows_of_visits())
    for name in program.commands:
        for line in examples(name):
            code, err = run(line, folder)
            assert 0 == code, (line, err)
    assert (folder / "visits.png").read_bytes().startswith(b"\x89PNG")


def test_the_readme_leads_from_a_file_of_events_to_a_picture(tmp_path):
    config, *_ = blocks("yaml")
    assert len([line for line in config.splitlines() if line.strip()]) == 10
    folder = write_visits(tmp_path / "mine", rows_of_visits(days=28), config)
    (folder / "visits.yaml").write_text(config)
    (commands,) = blocks("sh")
    for line in commands.splitlines():
        code, err = run(line, folder)
        assert 0 == code, (line, err)
    head, *rows = (folder / "fortnight.csv").read_text().splitlines()
    assert head.startswith("gauge,view,shop,step,step_start,step_end,value,noise_std,lower,upper")
    assert len(rows) == 28 * 24 * 3
    for name in ("plan.json", "PRIVACY.md", "privacy.json", "ledger.json"):
        assert (folder / "public" / name).stat().st_size > 0
    assert (folder / "visits.png").read_bytes().startswith(b"\x89PNG")


def test_the_first_line_of_the_readme_runs_in_a_shell(tmp_path):
    (config, *_), (commands,) = blocks("yaml"), blocks("sh")
    folder = write_visits(tmp_path / "mine", [], config)
    done = in_a_shell(commands.splitlines()[0], folder)
    assert 0 == done.returncode, done.stderr


def test_the_histograms_of_the_readme_are_gauges(tmp_path):
    config, gauges, _ = blocks("yaml")
    more = config[: config.index("gauges:")] + "event: basket\nstore: s.tidegauge\n" + gauges
    folder = write_visits(tmp_path, [], more.replace("1.0e-9", "1.0e-6"))
    (folder / "departments.txt").write_text("\n".join("ABCDEFGHI"))
    code, err = run("tidegauge validate visits.yaml", folder)
    assert 0 == code, err


def test_the_means_of_the_readme_are_gauges(tmp_path):
    config, _, gauges = blocks("yaml")
    more = config[: config.index("gauges:")] + "store: s.tidegauge\n" + gauges
    code, err = run("tidegauge validate visits.yaml", write_visits(tmp_path, [], more))
    assert 0 == code, err


def test_make_run_can_be_given_again():
    lines = [line for line in (ROOT / "Makefile").read_text().splitlines() if " plot " in line]
    assert 3 == len(lines)
    assert all(line.endswith(" --force") for line in lines)
