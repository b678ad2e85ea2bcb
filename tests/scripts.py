"""Running a script of a folder within this process, where all that it imports is loaded once."""

import os
import runpy
import sys

import pytest


def run(script, *options):
    """What ``python SCRIPT OPTIONS`` does; warnings are errors here as under ``-W error``."""
    known = set(sys.modules)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "argv", [str(script), *map(str, options)])
        patched.syspath_prepend(script.parent)
        # for the processes that it starts
        patched.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
        try:
            runpy.run_path(str(script), run_name="__main__")
        finally:  # its neighbours in the folder: other folders have files of the same names
            for name in set(sys.modules) - known:
                file = getattr(sys.modules[name], "__file__", None)
                if file is not None and str(script.parent) in file:
                    del sys.modules[name]
