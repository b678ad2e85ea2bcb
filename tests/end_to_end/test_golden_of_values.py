"""Means, and sums under a clip that is found, as users and programs read them, byte for byte.

Written anew as all of `tests/golden` is: ``TIDEGAUGE_GOLDEN=write pytest
tests/end_to_end/test_golden_of_values.py``. The measurement has no noise.
"""

import pytest
from test_golden import compare, run, without_fit
from test_published_clips import CLIP, ODD
from test_published_means import MEANS, ROWS, no_noise, write

SURE = CLIP.replace("epsilon: 1.0, delta: 1.0e-9", "rho: 5")  # a clip is known within hours
CONFIGS = {"mean": (MEANS, ROWS), "clip": (SURE, ODD)}
ERRORS = {"mean": "running=1,events=2000", "clip": "running=500,clip=2.5"}


@pytest.fixture(params=CONFIGS)
def published(request, tmp_path, monkeypatch):
    """The kind of what was published, in two runs of four hours."""
    no_noise(monkeypatch)
    monkeypatch.chdir(tmp_path)
    config, rows = CONFIGS[request.param]
    write(tmp_path, rows, config.replace("end: 2025-01-08T", "end: 2025-01-07T"))
    for hour in ("04", "08"):
        run("run", "visits.yaml", "--until", f"2025-01-06T{hour}:00:00Z", "-q")
    return request.param


def test_releases_status_and_files(published, tmp_path):
    ended = run("export", "public", "--view", "running", "--format", "csv")
    compare(f"{published}.csv", ended.stdout)
    status = run("status", "visits.tidegauge", "--json").stdout
    lines = [line for line in status.splitlines() if "sha256" not in line]
    files = (tmp_path / "public").rglob("*")
    names = sorted(str(file.relative_to(tmp_path)) for file in files if file.is_file())
    compare(f"{published}_status.txt", "\n".join([*lines, *names]) + "\n")


def test_plans_and_the_budget_for_an_error(published):
    ended = run("plan", "visits.yaml")
    compare(f"{published}_plan.txt", without_fit(ended.stdout))
    ended = run("plan", "visits.yaml", "--json", "--for-error", ERRORS[published])
    compare(f"{published}_plan.json", without_fit(ended.stdout))
