import subprocess
import sys


def test_strategies_are_imported_without_numba_and_scipy():
    code = (
        "import sys, tidegauge.strategies.blt, tidegauge.strategies.identity\n"
        "print(sorted({'numba', 'scipy', 'llvmlite'} & set(sys.modules)))"
    )
    path = ":".join(sys.path)
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": path}, capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")
