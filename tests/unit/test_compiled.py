"""Modules that load late: nothing before the first name, everything from then on."""

import os
import subprocess
import sys
import textwrap
import threading
from types import ModuleType

import pytest

from tidegauge.compiled import lazy_module

SLOW = """
import time
first = 1
time.sleep(0.2)
last = 2
"""


@pytest.fixture
def slow(tmp_path, monkeypatch):
    (tmp_path / "half_loaded.py").write_text(SLOW)
    monkeypatch.syspath_prepend(tmp_path)
    yield "half_loaded"
    sys.modules.pop("half_loaded", None)


def test_nothing_is_loaded_before_the_first_name_and_tools_that_look_load_nothing(slow):
    module = lazy_module(slow)
    assert not hasattr(module, "__wrapped__")
    assert "half_loaded" not in sys.modules
    assert 1 == module.first
    assert "half_loaded" in sys.modules


def test_a_loaded_module_has_plain_attributes(slow):
    module = lazy_module(slow)
    assert 2 == module.last
    assert type(module) is ModuleType
    assert {"first", "last"} <= set(vars(module))
    with pytest.raises(AttributeError, match="middle"):
        _ = module.middle


def test_threads_that_come_together_never_see_half_a_module(slow):
    module, found = lazy_module(slow), []
    together = threading.Barrier(4)

    def use():
        together.wait()
        found.append((module.first, module.last))

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [(1, 2)] * 4 == found


def test_the_noise_loads_numba_with_its_first_draw_only():
    script = """
    import sys
    from fractions import Fraction
    import numpy as np
    from tidegauge.noise.gaussian import RoundedGaussian
    from tidegauge.noise.randomness import open_words
    law, words = RoundedGaussian(Fraction(9)), open_words("test")
    before = "numba" in sys.modules
    law.draw(words, np.zeros(1, np.int64), 1)
    print(before, "numba" in sys.modules)
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True, text=True, check=True, env=environment,
    )  # fmt: skip
    assert "False True" == run.stdout.strip()
