"""The public names: complete, documented, and cheap to import."""

import subprocess
import sys

import pytest

import tidegauge as tg


def test_all_names_exist_and_are_listed():
    assert sorted(tg.__all__, key=str.lower) == sorted(set(tg.__all__), key=str.lower)
    for name in tg.__all__:
        assert getattr(tg, name) is not None
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
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "[]" == run.stdout.strip()
