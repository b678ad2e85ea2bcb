"""docs/choosing.md: every figure is what the command or the code above it prints."""

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from terminals import environment

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "choosing.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.S)
PICTURES = re.findall(r"!\[[^]]*\]\(images/(\w+\.png)\)", PAGE)


def in_a_shell(line, folder):
    """Run a line in a copy of the page's configs, with ``tidegauge`` on the path."""
    (folder / "choosing").mkdir(exist_ok=True)
    (folder / "images").mkdir(exist_ok=True)
    for config in (DOCS / "choosing").glob("*.yaml"):
        (folder / "choosing" / config.name).write_bytes(config.read_bytes())
    script = folder / "tidegauge"
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m tidegauge "$@"\n')
    script.chmod(0o755)
    env = environment(HOME=str(folder), PATH=f"{folder}{os.pathsep}{os.environ['PATH']}")
    done = subprocess.run(
        ["bash", "-ec", line], cwd=folder / "choosing", env=env, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip
    assert 0 == done.returncode, done.stderr
    return done.stdout


def printed(page, folder):
    """What the blocks of the page print, beside what stands below them."""
    names = {}
    for (kind, code), (after, text) in zip(page, [*page[1:], ("", "")], strict=True):
        if kind == "python":
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(code, "choosing.md", "exec"), names)
            found = out.getvalue()
        elif kind == "sh":
            found = in_a_shell(code, folder)
        else:
            continue
        yield (
            "\n".join(map(str.rstrip, found.splitlines())),
            text.rstrip() if after == "text" else "",
        )


@pytest.mark.slow
def test_every_figure_of_the_page_is_what_is_printed(tmp_path):
    pairs = list(printed(BLOCKS, tmp_path))
    assert len(pairs) >= 7
    for found, stands in pairs:
        assert stands == found


@pytest.mark.slow
def test_the_pictures_are_drawn_by_the_commands_of_the_page(tmp_path):
    (commands,) = [code for kind, code in BLOCKS if kind == "sh" and "--plot" in code]
    in_a_shell(commands, tmp_path)
    assert sorted(PICTURES) == sorted(file.name for file in (tmp_path / "images").iterdir())
    for name in PICTURES:
        for folder in (tmp_path, DOCS):
            assert (folder / "images" / name).read_bytes().startswith(b"\x89PNG"), name


def test_make_draws_what_the_page_shows():
    make = (DOCS.parent / "Makefile").read_text()
    for name in PICTURES:
        assert name in make


@pytest.mark.parametrize("config", sorted((DOCS / "choosing").glob("*.yaml")), ids=lambda p: p.name)
def test_the_configs_are_on_the_page(config):
    assert config.name in PAGE
