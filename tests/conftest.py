"""What tests of all folders share: hypothesis examples, folders, and a measurement that is hidden.

One file for all: two of the same name could not be collected together by name of their folders.
"""

import gc
import os

# Two workers with two threads each wait for one another: four times the time for dense matrices.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when NumPy is first imported

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from visits import rows_of_visits, write_visits

settings.register_profile(
    "fixed", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("fixed")


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Look for no garbage while tests are collected: none is let go, and it takes a quarter."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


MEMORY = Path("/dev/shm")


@pytest.fixture
def shop(tmp_path):
    """A small shop with a door counter: what the end-to-end tests publish."""
    return write_visits(tmp_path / "shop", rows_of_visits())


@pytest.fixture
def memory_path(tmp_path):
    """A folder in memory where the machine has one: what kills leave does not depend on a disk."""
    if not MEMORY.is_dir():
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        yield Path(folder)


@pytest.fixture
def plain_names(monkeypatch):
    """Names that are random in a run are functions of their purpose."""
    from tidegauge.engine import documents, store

    for module in (documents, store):
        monkeypatch.setattr(module, "store_secret", lambda text: text.encode().ljust(32, b"-"))


@pytest.fixture
def hidden_values(plain_names, monkeypatch):
    """A measurement that depends on the plan and the step, and on nothing else."""
    from tidegauge.mechanisms import meter

    measure = meter.measure

    def hidden(strategy, state, law, words, exact, first, **once):
        rows = measure(strategy, state, law, words, exact, first, **once)
        return np.arange(rows.size, dtype=np.int64).reshape(rows.shape) + first

    monkeypatch.setattr(meter, "measure", hidden)
