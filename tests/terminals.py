"""Running the command line as users do: in a process of its own, piped or on a terminal."""

import contextlib
import os
import pty
import subprocess
import sys
from pathlib import Path

SOURCE = str(Path(__file__).parents[1] / "src")


def environment(**changes):
    kept = ("PATH", "HOME", "LANG", "NUMBA_CACHE_DIR", "OPENBLAS_NUM_THREADS", "TMPDIR")
    env = {name: os.environ[name] for name in kept if name in os.environ}
    return {**env, "PYTHONPATH": SOURCE, **changes}


def tidegauge(*words, cwd=None, stdin=None, **changes):
    """Run a command with everything piped; return code, standard output, standard error."""
    done = subprocess.run(
        [sys.executable, "-m", "tidegauge", *map(str, words)],
        cwd=cwd, input=stdin, capture_output=True, text=True, env=environment(**changes),
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def in_process(*words, cwd=None, stdin=None, **changes):
    """The same within this process: the program is loaded once."""
    from click.testing import CliRunner

    from tidegauge.cli.main import program

    with contextlib.chdir(cwd or "."):
        ended = CliRunner().invoke(program, [*map(str, words)], input=stdin, env=changes)
    unforeseen = ended.exception
    assert unforeseen is None or isinstance(unforeseen, SystemExit), unforeseen
    return ended.exit_code, ended.stdout, ended.stderr


def on_a_terminal(*words, cwd=None, **changes):
    """Run a command on a pseudo-terminal; return code and all that it showed."""
    ours, theirs = pty.openpty()
    changes = {"TERM": "xterm-256color", "COLUMNS": "80", **changes}
    process = subprocess.Popen(
        [sys.executable, "-m", "tidegauge", *map(str, words)],
        cwd=cwd, stdin=theirs, stdout=theirs, stderr=theirs, env=environment(**changes),
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        shown += part
    os.close(ours)
    return process.wait(), shown.decode()
