"""The public names: complete, documented, and cheap to import."""

import inspect
import os
import pkgutil
import subprocess
import sys
from importlib import import_module

import pytest

import tidegauge as tg
from tidegauge import errors, strategies
from tidegauge.privacy import guarantee
from tidegauge.strategies.decay import Decay

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def printed(script):
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=ENVIRONMENT
    )
    return run.stdout.strip()


HAND_WRITTEN = {"ClippedGauge", "Contributions", "Discover", "DiscoveryGauge", "Gauge", "MeanGauge"}
HAND_WRITTEN |= {
    "MeanRelease",
    "PlannedRelease",
    "Release",
    "SumRelease",
    "__version__",
    "open",
    "plan",
}


def classes_of(*modules):
    """The names of the classes that modules define for others and that can be made."""
    return {
        kind.__name__
        for module in modules
        for kind in vars(module).values()
        if isinstance(kind, type)
        and kind.__module__ == module.__name__
        and not kind.__name__.startswith("_")
        and not inspect.isabstract(kind)
    }


def views():
    """The names of all decays, in whatever module of the strategies they live."""
    modules = [
        import_module(found.name)
        for found in pkgutil.walk_packages(strategies.__path__, "tidegauge.strategies.")
    ]
    decays = {kind.__name__ for m in modules for kind in vars(m).values() if is_decay(kind)}
    return decays & classes_of(*modules)


def is_decay(kind):
    return isinstance(kind, type) and issubclass(kind, Decay)


def test_every_error_view_and_guarantee_is_public_and_nothing_is_listed_twice():
    found = classes_of(errors, guarantee) | views()
    assert found | HAND_WRITTEN == set(tg.__all__)
    assert len(set(tg.__all__)) == len(tg.__all__)


def test_every_public_name_is_the_class_of_its_home():
    homes = {name: home for home, names in tg._HOMES.items() for name in names}
    assert homes.keys() == {*tg.__all__} - {"__version__"}
    for name, home in homes.items():
        assert home == getattr(tg, name).__module__
    assert set(tg.__all__) <= set(dir(tg))


def test_unknown_names_are_missing_attributes():
    with pytest.raises(AttributeError, match="nothing"):
        _ = tg.nothing


@pytest.mark.parametrize("name", tg.__all__)
def test_every_public_name_has_a_docstring_of_its_own(name):
    if name != "__version__":
        assert len(getattr(tg, name).__doc__ or "") > 20


def test_importing_reads_neither_numba_nor_scipy_nor_numpy():
    script = (
        "import sys, tidegauge; "
        "print([m for m in ('numba', 'scipy', 'numpy', 'cryptography') if m in sys.modules])"
    )
    assert "[]" == printed(script)
