"""A running count of 65,536 steps beside jax-privacy, dpcrpy and OpenDP, as lines of JSON.

Each system runs in an environment of its own, made in a temporary folder, and each case in a
process of its own, so that peaks of memory can be compared. Same stream, same promise: rho = 0.5 or
epsilon = 1, one event added or removed. What cannot be installed or run is told as skipped.

    python benchmarks/others.py [--only NAME] [--environments FOLDER] [--quick]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

SCRIPTS = Path(__file__).parent / "systems"
STEPS, RUNS, FEW = 1 << 16, 200, 3  # few where one run takes ten seconds
OURS = ("rho 0.5, for ever", "rho 0.5, with an end", "epsilon 1, for ever")
DPCRPY = (
    *(f"rho 0.5, {name}" for name in ("BinMech", "Honaker", "BCRG", "ABCRG", "AuBCR", "KTCR")),
    *(f"epsilon 1, {name}" for name in ("BinMech", "Honaker", "FDA")),
)
OTHERS = {
    # system: what pip installs, script, cases and how many runs of each
    "jax-privacy": ("jax-privacy==2.0.0", "with_jax_privacy.py", {"blt": RUNS, "root": 0}),
    "dpcrpy": ("dpcrpy==1.0.0", "with_dpcrpy.py", dict.fromkeys(DPCRPY, FEW)),
    "opendp": ("opendp==0.16.0", "with_opendp.py", {"each step": 1, "tree": FEW}),
}


def skip(system, why, name=None):
    print(json.dumps({"system": system, "case": name, "skipped": why}), flush=True)


def run(python, script, system, name, steps, runs):
    """Run one case and print its line; what else it prints is left out."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    if system == "tidegauge":
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path[1:]))
    command = [python, SCRIPTS / script, name, str(steps), str(runs)]
    try:
        done = subprocess.run(
            command, check=False, env=environment, capture_output=True, text=True, timeout=1800
        )
    except subprocess.TimeoutExpired:
        return skip(system, "took longer than half an hour", name)
    lines = [line for line in done.stdout.splitlines() if line.startswith('{"system"')]
    if done.returncode or not lines:
        return skip(system, (done.stderr.strip().splitlines() or ["no figures"])[-1], name)
    return print(*lines, sep="\n", flush=True)


def installed(requirement, folder):
    """Return the Python of an environment that has a package, or None; an old one is used again."""
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    pip += [requirement, "numpy"]
    done = subprocess.run(pip, check=False, capture_output=True, text=True)
    return None if done.returncode else python


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--quick", action="store_true", help="our first case only, 256 steps, 20 runs"
    )
    parser.add_argument("--only", choices=["tidegauge", *OTHERS], help="one system")
    parser.add_argument("--environments", type=Path, help="keep them in this folder")
    arguments = parser.parse_args()
    wanted = [arguments.only] if arguments.only else ["tidegauge", *OTHERS]
    steps, most = (256, 20) if arguments.quick else (STEPS, RUNS)
    if "tidegauge" in wanted:
        for name in OURS[:1] if arguments.quick else OURS:
            run(sys.executable, "ours.py", "tidegauge", name, steps, most)
    with tempfile.TemporaryDirectory() as temporary:
        for system, (requirement, script, cases) in OTHERS.items():
            if system not in wanted:
                continue
            if arguments.quick:
                skip(system, "needs an environment of its own; run without --quick")
                continue
            python = installed(requirement, (arguments.environments or Path(temporary)) / system)
            if python is None:
                skip(system, f"pip could not install {requirement}")
                continue
            for name, runs in cases.items():
                run(python, script, system, name, steps, runs)


if __name__ == "__main__":
    main()
