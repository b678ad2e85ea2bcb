"""Importing the package loads nothing slow or optional: that waits until it is needed."""

import os
import subprocess
import sys

EVERY_MODULE = """
import importlib, pkgutil, sys, tidegauge

for module in pkgutil.walk_packages(tidegauge.__path__, "tidegauge."):
    if not module.name.endswith(("._kernels", ".__main__")):
        importlib.import_module(module.name)
assert "tidegauge.strategies.blt.blt" in sys.modules
print(sorted({"numba", "llvmlite", "scipy", "mpmath", "matplotlib"} & set(sys.modules)))
"""


def test_no_module_but_the_kernels_imports_numba_scipy_or_matplotlib():
    path = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(
        [sys.executable, "-c", EVERY_MODULE],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert ("[]\n", "") == (done.stdout, done.stderr)
