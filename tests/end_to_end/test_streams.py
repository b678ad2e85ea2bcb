"""Standard streams that are closed or full: what is published stays so, and no traceback."""

import subprocess
import sys

import pytest
from terminals import environment
from visits import STEPS_ALONE, rows_of_visits, write_visits


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    shop = write_visits(tmp_path_factory.mktemp("streams"), rows_of_visits(), STEPS_ALONE)
    assert (0, b"", b"") == shell("run visits.yaml -q > /dev/null", shop)
    return shop


def shell(line, folder):
    """Run the program in a shell, so that its streams can be closed."""
    done = subprocess.run(
        ["sh", "-c", f'exec "$PYTHON" -m tidegauge {line}'],
        cwd=folder, env=environment(PYTHON=sys.executable), capture_output=True,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    "line",
    ["run visits.yaml", "status visits.tidegauge", "plan visits.yaml", "--help",
     "export public --view step --format csv"],
)  # fmt: skip
def test_a_closed_output_is_no_fault(published, line):
    code, _, err = shell(f"{line} >&-", published)
    assert 0 == code, err
    assert b"Traceback" not in err
    assert b"Exception" not in err


@pytest.mark.parametrize("where", ["2>&-", "2>/dev/full", "-v 2>/dev/full", "--json 2>&-"])
def test_talk_that_nobody_hears_fails_no_run(published, where):
    code, out, _ = shell(f"run visits.yaml {where}", published)
    assert 0 == code
    assert b"shop" in out or b"latest" in out


@pytest.mark.parametrize(
    "line", ["--help", "run --help", "--version", "status visits.tidegauge", "run visits.yaml"]
)
def test_a_full_output_is_a_file_that_could_not_be_written(published, line):
    code, _, err = shell(f"{line} > /dev/full", published)
    assert 74 == code
    assert b"No space left on device" in err
    assert b"Traceback" not in err
    assert b"Exception" not in err


def test_a_wrong_use_ends_as_one_though_nobody_hears(published):
    assert 78 == shell("validate nothing.yaml 2>/dev/full", published)[0]
    assert 78 == shell("validate nothing.yaml 2>&-", published)[0]


def test_no_file_gets_the_number_of_a_closed_stream(tmp_path):
    shop = write_visits(tmp_path / "shop", rows_of_visits(), STEPS_ALONE)
    assert 0 == shell("run visits.yaml <&- >&- 2>&-", shop)[0]
    assert 0 == shell("status visits.tidegauge", shop)[0]


def test_closed_input_is_not_an_empty_source(tmp_path):
    text = STEPS_ALONE.replace("[visits.csv]", '["-"]')
    shop = write_visits(tmp_path / "shop", rows_of_visits(), text)
    code, _, err = shell("run visits.yaml <&-", shop)
    assert 69 == code
    assert b"got a closed one" in err
    assert not list((shop / "public").rglob("*.parquet"))
